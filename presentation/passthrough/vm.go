package passthrough

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Drivers that hold a GPU for a virtual machine.
const (
	vfioDriver  = "vfio-pci"
	graceDriver = "nvgrace_gpu_vfio_pci"
)

// ResolveVM plans unpartitioned GPUs for virtual machines. The error is a *spec.Refusal.
func ResolveVM(r spec.Request) (v1alpha1.NodePlan, error) {
	passthroughSpec := r.GPU.Presentation.Passthrough
	model, err := checkRequest(r, *passthroughSpec)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	name, err := resourceName(model, passthroughSpec.ResourceName)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	driver, module := vfioDriver, "vfio_pci"
	if model.FormFactor == catalogue.Superchip {
		driver, module = graceDriver, graceDriver
	}
	file, unit := gpumode.FileAndUnit(bindScript(model, r.GPU.Count, driver, passthroughSpec.Addresses))
	p := v1alpha1.NodePlan{
		KernelArguments: append([]string{nvidia.NouveauBlacklistArgument}, nvidia.IOMMUArguments(r.Image)...),
		Modules:         v1alpha1.KernelModules{Load: []string{module}, Blacklist: []string{"nouveau", "nova_core", "nvidiafb", "nvidia", "nvidia_drm"}},
		Files:           []v1alpha1.NodeFile{file},
		Units:           []v1alpha1.SystemdUnit{unit},
		NodeLabels:      map[string]string{wellknown.LabelWorkloadConfig: wellknown.WorkloadVMPassthrough},
		Tenant:          v1alpha1.TenantSoftware{WorkloadConfig: wellknown.WorkloadVMPassthrough, HostDevices: hostDevices(model, name)},
		Expectation: v1alpha1.NodeExpectation{Resources: []v1alpha1.ExpectedResource{{
			Name: name, Quantity: *resource.NewQuantity(int64(r.GPU.Count), resource.DecimalSI), Waits: true,
			Hint: "is the pod of NVIDIA's KubeVirt device plugin (the operator's sandbox device plugin) on the node, and does it tolerate the gate? It names GPUs by the pci.ids file of its release, " +
				"and looks for them only when it starts. On the node: journalctl -u " + gpumode.UnitName,
		}}},
	}
	p.Warnings = append(p.Warnings, nvidia.KeptMIGModeWarnings(model, "virtual machines find it on, and turn it off with nvidia-smi -mig 0")...)
	if model.HasNVSwitch(r.GPU.Count) {
		p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/vm-nvswitch", Message: fmt.Sprintf("no fabric manager serves %d %s of virtual machines: "+
			"how a virtual machine with some of the GPUs of a board with NVSwitches uses them is up to its own driver", r.GPU.Count, model.Name)})
	}
	return p, nil
}

func checkRequest(r spec.Request, passthroughSpec v1alpha1.PassthroughSpec) (catalogue.Model, error) {
	model, err := nvidia.LookupModel(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	if passthroughSpec.Advertise == v1alpha1.AdvertiseDRA {
		return catalogue.Model{}, spec.Invalid(spec.PresentationField("passthrough.workload"), "vm/advertise", "it is VM and passthrough.advertise is DRA: use presentation.mode: DRA with dra.devices: VFIO, which gives the same GPUs to containers and virtual machines")
	}
	if passthroughSpec.Sharing != nil {
		return catalogue.Model{}, spec.Invalid(spec.PresentationField("passthrough.sharing"), "vm/sharing", "a virtual machine owns its GPU; remove it, or choose presentation.mode: VGPU")
	}
	if d := r.Image.Software.GPUDriver; d != nil {
		return catalogue.Model{}, spec.Invalid(spec.ImageField("software.gpuDriver"), "image/driver-unwanted", "the driver %s of %s is baked in, which takes the GPUs before they are bound for virtual machines: use an image without", d.Version, d.Vendor)
	}
	if r.GPU.Driver.Source == v1alpha1.DriverFromPackages {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("driver.source"), "vm/driver-source", "it is Packages, and GPUs for virtual machines take no driver on the node: leave gpu.driver out")
	}
	if err := nvidia.CheckNouveau(r.Image); err != nil {
		return catalogue.Model{}, err
	}
	if err := nvidia.CheckIOMMU(r.Image); err != nil {
		return catalogue.Model{}, err
	}
	return model, checkAddresses(r, passthroughSpec.Addresses)
}

func checkAddresses(r spec.Request, addresses []string) error {
	if len(addresses) > 0 && len(addresses) != int(r.GPU.Count) {
		return spec.Invalid(spec.PresentationField("passthrough.addresses"), "vm/addresses", "it has %d addresses, and gpu.count is %d: name each GPU of a server once", len(addresses), r.GPU.Count)
	}
	for i, a := range addresses {
		if !IsPCIAddress(a) || slices.Contains(addresses[:i], a) {
			return spec.Invalid(spec.PresentationField(fmt.Sprintf("passthrough.addresses[%d]", i)), "vm/addresses", "%q is there twice, or is not a PCI address such as 0000:17:00.0", a)
		}
	}
	return nil
}

// IsPCIAddress reports whether the text is a PCI address as sysfs writes it: domain, bus, device and function in lower-case
// hex.
func IsPCIAddress(s string) bool {
	const shape = "xxxx:xx:xx.f"
	if len(s) != len(shape) {
		return false
	}
	for i := range shape {
		digits := string(shape[i])
		switch shape[i] {
		case 'x':
			digits = "0123456789abcdef"
		case 'f':
			digits = "01234567"
		}
		if strings.IndexByte(digits, s[i]) < 0 {
			return false
		}
	}
	return s[8] == '0' || s[8] == '1' // A bus has 32 devices.
}

func resourceName(model catalogue.Model, ordered string) (corev1.ResourceName, error) {
	if ordered != "" {
		return corev1.ResourceName(ordered), nil
	}
	names, unlisted := model.KubeVirtResourceNames()
	if len(names) == 1 && len(unlisted) == 0 {
		return corev1.ResourceName(wellknown.NVIDIADomain + names[0]), nil
	}
	return "", spec.Invalid(spec.PresentationField("passthrough.resourceName"), "vm/resource-name", "it is missing, and NVIDIA's KubeVirt device plugin advertises %s by the pci.ids file of its release: %s; set it to what yours advertises", model.Name, strings.Join(advertisedNames(names, unlisted), ", "))
}

// advertisedNames says under which resources the device plugin can advertise a model.
func advertisedNames(names, unlisted []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "as "+wellknown.NVIDIADomain+name+" with that of 1.6.0")
	}
	for _, id := range unlisted {
		out = append(out, "as "+wellknown.NVIDIADomain+id+" with a file in which its PCI id "+id+" has no name")
	}
	return out
}

func hostDevices(model catalogue.Model, name corev1.ResourceName) []v1alpha1.PermittedHostDevice {
	var out []v1alpha1.PermittedHostDevice
	for _, id := range model.PCIDevices {
		out = append(out, v1alpha1.PermittedHostDevice{PCISelector: strings.ToUpper(model.PCIVendor + ":" + id), ResourceName: string(name), External: true})
	}
	return out
}

// bindScript returns the lines that bind every GPU of the model, or those with the given addresses, to the driver for virtual
// machines.
func bindScript(model catalogue.Model, count int32, driver string, addresses []string) []string {
	devices := "/sys/bus/pci/devices/*"
	if len(addresses) > 0 {
		devices = "/sys/bus/pci/devices/" + strings.Join(addresses, " /sys/bus/pci/devices/")
	}
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+model.PCIVendor+":0x"+id)
	}
	n := strconv.Itoa(int(count))
	return []string{
		"# Bind the GPUs to " + driver + " before kubelet starts, for virtual machines.",
		"driver_of() {",
		"\tif [ -e \"$1/driver\" ]; then",
		"\t\tbasename \"$(readlink -f \"$1/driver\")\"",
		"\tfi",
		"}",
		"modprobe " + driver,
		"bound=0",
		"for device in " + devices + "; do",
		"\tcase \"$(cat \"$device/vendor\"):$(cat \"$device/device\")\" in",
		"\t" + strings.Join(ids, " | ") + ") ;;",
		"\t*) continue ;;",
		"\tesac",
		"\tif [ \"$(driver_of \"$device\")\" != " + driver + " ]; then",
		"\t\techo " + driver + " >\"$device/driver_override\"",
		"\t\tif [ -e \"$device/driver\" ]; then",
		"\t\t\techo \"${device##*/}\" >\"$device/driver/unbind\"",
		"\t\tfi",
		"\t\techo \"${device##*/}\" >/sys/bus/pci/drivers_probe",
		"\tfi",
		"\tif [ \"$(driver_of \"$device\")\" != " + driver + " ]; then",
		"\t\techo \"the GPU ${device##*/} is not held by " + driver + " but by '$(driver_of \"$device\")': is the IOMMU on? dmesg | grep -i -e iommu -e vfio\" >&2",
		"\t\texit 1",
		"\tfi",
		"\tbound=$((bound + 1))",
		"done",
		"if [ \"$bound\" -ne " + n + " ]; then",
		"\techo \"$bound GPUs of the model " + model.Name + " are there, and " + n + " were ordered: lspci -nn\" >&2",
		"\texit 1",
		"fi",
	}
}
