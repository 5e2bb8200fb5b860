package vgpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

const (
	configFile = "/etc/nvidia-vgpu-dm/config.yaml"
	configName = "ingot"
	// minimumVFIOKernel is the oldest kernel with which NVIDIA's driver provides the virtual functions.
	minimumVFIOKernel = "6.8"
)

// Resolve plans a host of virtual GPUs or a guest that has some. The error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	vgpuSpec := r.GPU.Presentation.VGPU
	switch {
	case vgpuSpec == nil:
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("mode"), "vgpu/missing", "it is VGPU, and presentation.vgpu is missing: say role: Host with types, or role: Guest with a licence")
	case vgpuSpec.Role == spec.VGPURoleHost:
		return resolveHost(r, *vgpuSpec)
	case vgpuSpec.Role == spec.VGPURoleGuest:
		return resolveGuest(r, *vgpuSpec)
	}
	return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("vgpu.role"), "vgpu/role", "%q is not one of Host, Guest", vgpuSpec.Role)
}

func resolveHost(r spec.Request, vgpuSpec v1alpha1.VGPUSpec) (v1alpha1.NodePlan, error) {
	model, err := checkHost(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	types, err := readTypes(vgpuSpec.Types, model)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	prefix, err := namePrefix(vgpuSpec, model)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	framework, err := selectFramework(r, vgpuSpec, model)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p, err := hostPlan(r, model, types, framework)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p.Tenant.WorkloadConfig = wellknown.WorkloadVMVGPU
	hint := "is the pod of NVIDIA's KubeVirt device plugin on the node, and does it tolerate the gate? It looks for devices only when it starts. On the node: ls /sys/bus/mdev/devices; journalctl -u " + gpumode.UnitName
	if framework == spec.VGPUFrameworkVendorVFIO {
		hint = "is virt-handler of KubeVirt 1.9 or newer on the node, and does the KubeVirt object permit the PCI device? On the node: journalctl -u " + gpumode.UnitName
	}
	for _, t := range types {
		name := corev1.ResourceName(wellknown.NVIDIADomain + prefix + "_" + t.Name)
		p.Expectation.Resources = append(p.Expectation.Resources, v1alpha1.ExpectedResource{Name: name, Quantity: *resource.NewQuantity(int64(t.count)*int64(r.GPU.Count), resource.DecimalSI), Waits: true, Hint: hint})
		p.Tenant.HostDevices = append(p.Tenant.HostDevices, permittedHostDevices(model, prefix+" "+t.Name, name, framework)...)
	}
	if model.HasNVSwitch(r.GPU.Count) {
		p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/vgpu-nvswitch", Message: "guests that have whole GPUs of a board with NVSwitches need a fabric manager with FABRIC_MODE=2 on the host, which the vGPU manager does not bring, and this plan does not set up"})
	}
	return p, nil
}

func checkHost(r spec.Request) (catalogue.Model, error) {
	if r.GPU.Driver.Source == v1alpha1.DriverFromPackages {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("driver.source"), "vgpu/driver-source", "it is Packages, and the vGPU manager is in no package repository: bake it into the image, or use source: Operator")
	}
	model, err := nvidia.CheckRequest(r, spec.DriverKindVGPUManager)
	if err != nil {
		return catalogue.Model{}, err
	}
	return model, nvidia.CheckIOMMU(r.Image)
}

// namePrefix returns the word with which the vGPU manager begins the names of types. Some releases use an older word for older
// GPUs.
func namePrefix(vgpuSpec v1alpha1.VGPUSpec, model catalogue.Model) (string, error) {
	if vgpuSpec.NamePrefix == "" && model.Architecture == catalogue.Turing {
		return "", spec.Invalid(spec.PresentationField("vgpu.namePrefix"), "vgpu/name-prefix", "it is missing, and releases of the vGPU manager call the types of %s NVIDIA or GRID: set it to what yours writes in /sys/class/mdev_bus/*/mdev_supported_types/*/name", model.Name)
	}
	if vgpuSpec.NamePrefix == "" {
		return "NVIDIA", nil
	}
	return vgpuSpec.NamePrefix, nil
}

// selectFramework returns the framework by which the kernel makes virtual GPUs. It refuses a NodeType that leaves the framework
// open where the kernel does not decide it.
func selectFramework(r spec.Request, vgpuSpec v1alpha1.VGPUSpec, model catalogue.Model) (string, error) {
	if model.Architecture == catalogue.Turing {
		if vgpuSpec.Framework == spec.VGPUFrameworkVendorVFIO {
			return "", spec.Invalid(spec.PresentationField("vgpu.framework"), "vgpu/framework", "it is VendorVFIO, and %s has no virtual functions: use Mdev", model.Name)
		}
		return spec.VGPUFrameworkMdev, nil
	}
	older, known := spec.IsOlderVersion(r.Image.OS.Kernel, minimumVFIOKernel)
	switch {
	case !known && vgpuSpec.Framework == "":
		return "", spec.Invalid(spec.PresentationField("vgpu.framework"), "vgpu/framework", "it is missing, and whether %s has mediated devices follows from the kernel, while the OSImage's os.kernel is %q: name its release there, or set the framework", model.Name, r.Image.OS.Kernel)
	case !known:
		return vgpuSpec.Framework, nil
	case older && vgpuSpec.Framework == spec.VGPUFrameworkVendorVFIO:
		return "", spec.Invalid(spec.PresentationField("vgpu.framework"), "vgpu/framework", "it is VendorVFIO, which kernels from %s on have, and the OSImage's os.kernel is %s: use Mdev", minimumVFIOKernel, r.Image.OS.Kernel)
	case older:
		return spec.VGPUFrameworkMdev, nil
	case model.Architecture == catalogue.Ampere:
		return vgpuSpec.Framework, checkAmpereFramework(r, vgpuSpec, model)
	case vgpuSpec.Framework == spec.VGPUFrameworkMdev:
		return "", spec.Invalid(spec.PresentationField("vgpu.framework"), "vgpu/framework", "it is Mdev, and %s has no mediated devices with kernel %s: use VendorVFIO, or a kernel older than %s", model.Name, r.Image.OS.Kernel, minimumVFIOKernel)
	}
	return spec.VGPUFrameworkVendorVFIO, nil
}

// checkAmpereFramework refuses a NodeType without a framework: for Ampere GPUs the release of the kernel does not decide it.
func checkAmpereFramework(r spec.Request, vgpuSpec v1alpha1.VGPUSpec, model catalogue.Model) error {
	if vgpuSpec.Framework != "" {
		return nil
	}
	return spec.Invalid(spec.PresentationField("vgpu.framework"), "vgpu/framework", "it is missing, and some kernels from %s on have mediated devices for %s and some have not, while the OSImage's os.kernel is %s: set it to Mdev where /sys/class/mdev_bus lists the GPU, else to VendorVFIO", minimumVFIOKernel, model.Name, r.Image.OS.Kernel)
}

// hostPlan returns the plan with the software that makes the virtual GPUs: a script before kubelet starts, or the operator's vGPU
// device manager.
func hostPlan(r spec.Request, model catalogue.Model, types []typeCount, framework string) (v1alpha1.NodePlan, error) {
	if framework == spec.VGPUFrameworkVendorVFIO {
		return virtualFunctionPlan(r, model, types)
	}
	if nvidia.IsDriverFromOperator(r) {
		p := nvidia.OperatorPlan(r, model, wellknown.WorkloadVMVGPU)
		p.KernelArguments = append(p.KernelArguments, nvidia.IOMMUArguments(r.Image)...)
		name := spec.ConfigurationName(configuration(configName, types))
		p.Tenant.VGPUConfig = &v1alpha1.SoftwareConfiguration{Name: name, Content: configuration(name, types)}
		p.NodeLabels[wellknown.LabelVGPUConfig] = name
		p.Expectation.Labels = []v1alpha1.ExpectedLabel{nvidia.ExpectedStateLabel(wellknown.LabelVGPUConfigState, "kubectl logs of the pod nvidia-vgpu-device-manager on the node")}
		return p, nil
	}
	if r.Image.Software.VGPUDeviceManager == "" {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.ImageField("software.vgpuDeviceManager"), "image/vgpu-device-manager", "it is empty: without nvidia-vgpu-dm no virtual GPU can be made before kubelet starts; bake it in and name its version")
	}
	p := imagePlan(r, model, mediatedDeviceScript(model, types))
	p.Files = append(p.Files, v1alpha1.NodeFile{Path: configFile, Mode: "0644", Content: configuration(configName, types)})
	return p, nil
}

// virtualFunctionPlan returns the plan of a host whose virtual functions NVIDIA's driver provides.
func virtualFunctionPlan(r spec.Request, model catalogue.Model, types []typeCount) (v1alpha1.NodePlan, error) {
	if nvidia.IsDriverFromOperator(r) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("driver.source"), "vgpu/vendor-vfio", "it is Operator, and its vGPU device manager makes mediated devices only, which %s does not have with kernel %s: bake the vGPU manager into the image, or use an older kernel", model.Name, r.Image.OS.Kernel)
	}
	if len(types) > 1 || types[0].Slices > 0 {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/vendor-vfio", "virtual functions of all types have one PCI id, so that KubeVirt cannot tell them apart, and this version makes none with MIG instances behind them: order one type that shares the GPU in time")
	}
	p := imagePlan(r, model, virtualFunctionScript(model, r.GPU.Count, types[0]))
	p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "experimental/vendor-vfio", Message: "virtual functions of NVIDIA's own driver are advertised by KubeVirt 1.9 or newer alone, and how the driver lists their types is read from reports, not from its documentation"})
	return p, nil
}

// imagePlan returns the plan of a host whose image has the vGPU manager.
func imagePlan(r spec.Request, model catalogue.Model, mode []string) v1alpha1.NodePlan {
	units := []v1alpha1.SystemdUnit{{Name: "nvidia-vgpud.service"}, {Name: "nvidia-vgpu-mgr.service"}}
	file, unit := gpumode.FileAndUnit(mode, units...)
	blacklist := []string{"nouveau"}
	if model.HasPersistentMIGMode() {
		blacklist = append(blacklist, "nvidia_drm")
	}
	return v1alpha1.NodePlan{
		KernelArguments: append([]string{nvidia.NouveauBlacklistArgument}, nvidia.IOMMUArguments(r.Image)...),
		Modules:         v1alpha1.KernelModules{Load: []string{"nvidia", "nvidia_vgpu_vfio"}, Blacklist: blacklist},
		Files:           []v1alpha1.NodeFile{file},
		Units:           append(units, unit),
		NodeLabels: map[string]string{
			wellknown.LabelWorkloadConfig: wellknown.WorkloadVMVGPU, wellknown.LabelDeployVGPUManager: "false", wellknown.LabelDeployVGPUDeviceManager: "false",
		},
	}
}

// permittedHostDevices returns the entries of KubeVirt's permittedHostDevices for one type.
func permittedHostDevices(model catalogue.Model, mdevName string, name corev1.ResourceName, framework string) []v1alpha1.PermittedHostDevice {
	if framework == spec.VGPUFrameworkMdev {
		return []v1alpha1.PermittedHostDevice{{MdevName: mdevName, ResourceName: string(name), External: true}}
	}
	var out []v1alpha1.PermittedHostDevice
	for _, id := range slices.Sorted(slices.Values(model.PCIDevices)) {
		out = append(out, v1alpha1.PermittedHostDevice{PCISelector: strings.ToUpper(model.PCIVendor + ":" + id), ResourceName: string(name)})
	}
	return out
}

// configuration returns a configuration of the vGPU device manager, version v1, with the given name.
func configuration(name string, types []typeCount) string {
	var out strings.Builder
	fmt.Fprintf(&out, "version: v1\n%s:\n  %s:\n  - devices: all\n    vgpu-devices:\n", wellknown.VGPUConfigsKey, name)
	for _, t := range types {
		fmt.Fprintf(&out, "      %q: %d\n", t.ConfigurationName(), t.count)
	}
	return out.String()
}

// typeCount is a vGPU type and how many of it every GPU has.
type typeCount struct {
	catalogue.VGPUType
	count int
}

// readTypes returns the types that the NodeType orders, sorted by name. It refuses types that do not fit on one GPU.
func readTypes(ordered map[string]int32, model catalogue.Model) ([]typeCount, error) {
	all := model.VGPUTypes()
	var out []typeCount
	for _, name := range slices.Sorted(maps.Keys(ordered)) {
		at := slices.IndexFunc(all, func(t catalogue.VGPUType) bool { return t.Name == name || t.ConfigurationName() == name })
		if at < 0 {
			return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/type", "it has %s, and %s has %s", name, model.Name, typeNames(all))
		}
		if n := int(ordered[name]); n < 1 || n > all[at].Max {
			return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/count", "%s is %d, and one %s can have 1 to %d of them", name, n, model.Name, all[at].Max)
		}
		if slices.ContainsFunc(out, func(t typeCount) bool { return t.Name == all[at].Name }) {
			return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/type", "it has %s twice, as %s too: order it once", all[at].Name, name)
		}
		out = append(out, typeCount{all[at], int(ordered[name])})
	}
	if len(out) == 0 {
		return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/type", "it is empty: say which and how many on each GPU; %s has %s", model.Name, typeNames(all))
	}
	return out, checkTypes(out, model)
}

func typeNames(types []catalogue.VGPUType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return "no vGPU type that is known"
	}
	return strings.Join(names, ", ")
}

// checkTypes refuses types that cannot share a GPU.
func checkTypes(types []typeCount, model catalogue.Model) error {
	first, total := types[0], 0
	instances := make(layout.Counts, 0)
	if model.Geometry != nil {
		instances = make(layout.Counts, len(model.Geometry.Profiles))
	}
	for _, t := range types {
		if (t.Slices > 0) != (first.Slices > 0) {
			return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/mixed-kinds", "it has %s and %s: a GPU is shared in time or by MIG instances, not both", first.Name, t.Name)
		}
		if t.Slices == 0 && (t.GiB != first.GiB || t.Series != first.Series) {
			return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/equal-size", "it has %s and %s: virtual GPUs that share a GPU in time must be of one size and series", first.Name, t.Name)
		}
		total += t.count
		if t.Slices > 0 {
			instances[model.ProfileIndex(t.VGPUType)] += (t.count + t.PerInstance - 1) / t.PerInstance
		}
	}
	if first.Slices == 0 {
		return nil
	}
	_, err := layout.Place(*model.Geometry, instances)
	var impossible *layout.ImpossibleError
	if errors.As(err, &impossible) {
		return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/"+impossible.Rule, "the MIG instances behind them do not fit on one %s: %s", model.Name, impossible.Message)
	}
	return err
}

const enableSRIOV = "/usr/lib/nvidia/sriov-manage -e ALL"

// mediatedDeviceScript returns the lines that make the mediated devices of every GPU.
func mediatedDeviceScript(model catalogue.Model, types []typeCount) []string {
	lines := scriptStart(model, types)
	if model.Architecture != catalogue.Turing {
		lines = append(lines, enableSRIOV)
	}
	return append(lines,
		"nvidia-vgpu-dm apply -f "+configFile+" -c "+configName,
		"nvidia-vgpu-dm assert -f "+configFile+" -c "+configName,
	)
}

// scriptStart returns the comment that says what the script does, and the lines that turn the MIG mode off when the
// virtual GPUs share a GPU in time.
func scriptStart(model catalogue.Model, types []typeCount) []string {
	lines := []string{"# Make the virtual GPUs before kubelet starts. They are gone after every boot."}
	if model.Geometry != nil && types[0].Slices == 0 {
		lines = append(lines, nvidia.MIGDisabledScript()...)
	}
	return lines
}

// virtualFunctionScript returns the lines that set the type of as many virtual functions of every GPU as were ordered.
func virtualFunctionScript(model catalogue.Model, count int32, t typeCount) []string {
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+model.PCIVendor+":0x"+id)
	}
	return append(scriptStart(model, []typeCount{t}),
		enableSRIOV,
		"gpus=0",
		"for gpu in /sys/bus/pci/devices/*; do",
		"\tcase \"$(cat \"$gpu/vendor\"):$(cat \"$gpu/device\")\" in",
		"\t"+strings.Join(ids, " | ")+") ;;",
		"\t*) continue ;;",
		"\tesac",
		"\tif [ -e \"$gpu/physfn\" ]; then",
		"\t\tcontinue",
		"\tfi",
		"\tgpus=$((gpus + 1))",
		"\tmade=0",
		"\tfor function in \"$gpu\"/virtfn*; do",
		fmt.Sprintf("\t\tif [ \"$made\" -eq %d ]; then", t.count),
		"\t\t\tbreak",
		"\t\tfi",
		"\t\tif [ \"$(cat \"$function/nvidia/current_vgpu_type\")\" = 0 ]; then",
		"\t\t\ttype=$(sed -n 's/^ *\\([0-9][0-9]*\\) *: *\\(NVIDIA \\|GRID \\)\\{0,1\\}"+t.Name+" *$/\\1/p' \"$function/nvidia/creatable_vgpu_types\")",
		"\t\t\tif [ -z \"$type\" ]; then",
		"\t\t\t\techo \"$function can be no "+t.Name+", but: $(cat \"$function/nvidia/creatable_vgpu_types\")\" >&2",
		"\t\t\t\texit 1",
		"\t\t\tfi",
		"\t\t\techo \"$type\" >\"$function/nvidia/current_vgpu_type\"",
		"\t\tfi",
		"\t\tmade=$((made + 1))",
		"\tdone",
		fmt.Sprintf("\tif [ \"$made\" -ne %d ]; then", t.count),
		fmt.Sprintf("\t\techo \"$gpu has $made virtual functions, and %d of %s were ordered\" >&2", t.count, t.Name),
		"\t\texit 1",
		"\tfi",
		"done",
		fmt.Sprintf("if [ \"$gpus\" -ne %d ]; then", count),
		fmt.Sprintf("\techo \"$gpus GPUs of the model %s are there, and %d were ordered: lspci -nn\" >&2", model.Name, count),
		"\texit 1",
		"fi",
	)
}
