package vm

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/boot"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// workload is how the operator calls nodes whose GPUs belong to virtual machines.
const workload = "vm-passthrough"

// Drivers that hold a GPU for a virtual machine.
const (
	vfio  = "vfio-pci"
	grace = "nvgrace_gpu_vfio_pci"
)

// Resolve plans whole GPUs for virtual machines. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	spec := r.GPU.Presentation.Passthrough
	model, err := judge(r, *spec)
	if err != nil {
		return plan.Plan{}, err
	}
	name, err := resourceName(model, spec.ResourceName)
	if err != nil {
		return plan.Plan{}, err
	}
	driver, module := vfio, "vfio_pci"
	if model.FormFactor == catalogue.Superchip {
		driver, module = grace, grace
	}
	file, unit := boot.Mode(bind(model, r.GPU.Count, driver, spec.Addresses))
	p := plan.Plan{
		KernelArguments: append([]string{nvidia.BlacklistNouveau}, nvidia.IOMMU(r.Image)...),
		Modules:         plan.Modules{Load: []string{module}, Blacklist: []string{"nouveau", "nova_core", "nvidiafb", "nvidia", "nvidia_drm"}},
		Files:           []plan.File{file},
		Units:           []plan.Unit{unit},
		NodeLabels:      map[string]string{nvidia.LabelWorkload: workload},
		Tenant:          plan.Tenant{WorkloadConfig: workload, HostDevices: hostDevices(model, name)},
		Expectation: plan.Expectation{Resources: []plan.Resource{{
			Name: name, Quantity: *resource.NewQuantity(int64(r.GPU.Count), resource.DecimalSI), Waits: true,
			Hint: "is the pod of NVIDIA's KubeVirt device plugin (the operator's sandbox device plugin) on the node, and does it tolerate the gate? It names GPUs by the pci.ids file of its release, " +
				"and looks for them only when it starts. On the node: journalctl -u " + boot.Unit,
		}}},
	}
	p.Warnings = append(p.Warnings, nvidia.KeptMode(model, "virtual machines find it on, and turn it off with nvidia-smi -mig 0")...)
	if model.HasNVSwitch(r.GPU.Count) {
		p.Warnings = append(p.Warnings, plan.Warning{Rule: "unverified/vm-nvswitch", Message: fmt.Sprintf("no fabric manager serves %d %s of virtual machines: "+
			"how a virtual machine with some of the GPUs of a board with NVSwitches uses them is up to its own driver", r.GPU.Count, model.Name)})
	}
	return p, nil
}

func judge(r plan.Request, spec v1alpha1.PassthroughSpec) (catalogue.Model, error) {
	model, err := nvidia.Find(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	if spec.Advertise == v1alpha1.AdvertiseDRA {
		return catalogue.Model{}, refuse(plan.PresentationField("passthrough.workload"), "vm/advertise", "it is VM and passthrough.advertise is DRA: use presentation.mode: DRA with dra.devices: VFIO, which gives the same GPUs to containers and virtual machines")
	}
	if spec.Sharing != nil {
		return catalogue.Model{}, refuse(plan.PresentationField("passthrough.sharing"), "vm/sharing", "a virtual machine owns its GPU; remove it, or choose presentation.mode: VGPU")
	}
	if d := r.Image.Software.GPUDriver; d != nil {
		return catalogue.Model{}, refuse(plan.ImageField("software.gpuDriver"), "image/driver-unwanted", "the driver %s of %s is baked in, which takes the GPUs before they are bound for virtual machines: use an image without", d.Version, d.Vendor)
	}
	if r.GPU.Driver.Source == v1alpha1.DriverFromPackages {
		return catalogue.Model{}, refuse(plan.GPUField("driver.source"), "vm/driver-source", "it is Packages, and GPUs for virtual machines take no driver on the node: leave gpu.driver out")
	}
	if err := nvidia.JudgeNouveau(r.Image); err != nil {
		return catalogue.Model{}, err
	}
	if err := nvidia.JudgeIOMMU(r.Image); err != nil {
		return catalogue.Model{}, err
	}
	return model, judgeAddresses(r, spec.Addresses)
}

func judgeAddresses(r plan.Request, addresses []string) error {
	if len(addresses) > 0 && len(addresses) != int(r.GPU.Count) {
		return refuse(plan.PresentationField("passthrough.addresses"), "vm/addresses", "it has %d addresses, and gpu.count is %d: name each GPU of a server once", len(addresses), r.GPU.Count)
	}
	for i, a := range addresses {
		if !Address(a) || slices.Contains(addresses[:i], a) {
			return refuse(plan.PresentationField(fmt.Sprintf("passthrough.addresses[%d]", i)), "vm/addresses", "%q is there twice, or is not a PCI address such as 0000:17:00.0", a)
		}
	}
	return nil
}

// Address says whether the text is a PCI address as sysfs writes it: domain, bus, device and function in lower-case hex.
func Address(s string) bool {
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
	names, unlisted := model.ResourceNames()
	if len(names) == 1 && len(unlisted) == 0 {
		return corev1.ResourceName("nvidia.com/" + names[0]), nil
	}
	return "", refuse(plan.PresentationField("passthrough.resourceName"), "vm/resource-name", "it is missing, and the pci.ids file of NVIDIA's KubeVirt device plugin 1.6.0 names %s %s, and lacks its PCI ids %s, which that release advertises by number, as nvidia.com/3182: set it to what yours advertises", model.Name, orNothing(names), orNothing(unlisted))
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " and ")
}

func hostDevices(model catalogue.Model, name corev1.ResourceName) []plan.HostDevice {
	var out []plan.HostDevice
	for _, id := range model.PCIDevices {
		out = append(out, plan.HostDevice{PCISelector: strings.ToUpper(model.PCIVendor + ":" + id), ResourceName: string(name), External: true})
	}
	return out
}

func refuse(field plan.Field, rule, format string, args ...any) error {
	return plan.Refuse(field, v1alpha1.ReasonPresentationInvalid, rule, format, args...)
}
