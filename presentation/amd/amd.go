package amd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// minimumContainerd is the oldest containerd that gives CDI devices to containers.
const minimumContainerd = "1.7"

// Resolve plans AMD GPUs for containers. The error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	model, err := checkRequest(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	partitions := r.GPU.Presentation.Partitions
	gpuPartition, err := requestedPartition(partitions, model)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p, err := nodePlan(r, model, gpuPartition)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if !gpuPartition.isDocumented(model) {
		p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/amd-partition", Message: fmt.Sprintf("%s with %s is what the kernel takes and AMD does not document for %s", gpuPartition.compute, gpuPartition.memory, model.Name)})
	}
	count := int(r.GPU.Count) * gpuPartition.devicesPerGPU(model.XCC)
	if isAdvertisedByDRA(r.GPU) {
		expectDevices(&p, r, gpuPartition, count)
		return p, nil
	}
	name, naming := wellknown.AMDGPU, wellknown.AMDNamingSingle
	if partitions != nil && partitions.ResourceNaming == wellknown.AMDNamingMixed {
		name, naming = wellknown.AMDDomain+gpuPartition.String(), wellknown.AMDNamingMixed
	}
	p.Tenant.ResourceNaming = naming
	p.Expectation.Resources = []v1alpha1.ExpectedResource{{
		Name: corev1.ResourceName(name), Quantity: *resource.NewQuantity(int64(count), resource.DecimalSI), Waits: true,
		Hint: "is the pod of AMD's device plugin on the node, does it tolerate the gate, and is its resource_naming_strategy " + naming + "? It counts devices only when it starts. On the node: amd-smi partition; journalctl -u " + gpumode.UnitName,
	}}
	return p, nil
}

func isAdvertisedByDRA(gpu *v1alpha1.GPUSpec) bool {
	p := gpu.Presentation.Passthrough
	return gpu.Presentation.Mode == v1alpha1.ModeDRA || p != nil && p.Advertise == v1alpha1.AdvertiseDRA
}

// nodePlan returns the plan with the software that partitions the GPUs: a script before kubelet starts, or AMD's operator.
func nodePlan(r spec.Request, model catalogue.Model, gpuPartition partition) (v1alpha1.NodePlan, error) {
	if r.GPU.Driver.Source == v1alpha1.DriverFromOperator {
		return operatorPlan(r, gpuPartition)
	}
	file, unit := gpumode.FileAndUnit(gpuPartition.modeScript(model, r.GPU.Count))
	p := v1alpha1.NodePlan{
		Modules:  v1alpha1.KernelModules{Load: []string{wellknown.AMDKernelModule}},
		Packages: r.GPU.Driver.Packages, Files: []v1alpha1.NodeFile{file}, Units: []v1alpha1.SystemdUnit{unit},
	}
	if gpuPartition.compute == "CPX" {
		p.Modules.Blacklist = []string{displayDriver}
	}
	return p, nil
}

// operatorPlan returns the plan of a node on which AMD's operator installs the driver and partitions the GPUs.
func operatorPlan(r spec.Request, gpuPartition partition) (v1alpha1.NodePlan, error) {
	profile, known := configProfiles[gpuPartition]
	if !known {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("driver.source"), "amd/profile", "it is Operator, and the default configuration of its device config manager has no profile for %s with %s: use source: Image or Packages", gpuPartition.compute, gpuPartition.memory)
	}
	p := v1alpha1.NodePlan{
		Modules: v1alpha1.KernelModules{Blacklist: []string{wellknown.AMDKernelModule}}, // The operator loads its own.
		Tenant:  v1alpha1.TenantSoftware{DriverVersion: r.GPU.Driver.Version},
	}
	if gpuPartition == unpartitioned {
		return p, nil
	}
	p.NodeLabels = map[string]string{wellknown.LabelAMDConfigProfile: profile}
	const state = wellknown.LabelAMDConfigProfileState
	p.Expectation.Labels = []v1alpha1.ExpectedLabel{{Check: "label/" + state, Key: state, Value: "success", Hint: "kubectl logs of the pod of AMD's device config manager on the node; the device plugin must start again after it"}}
	if gpuPartition.compute == "CPX" {
		p.Modules.Blacklist = append(p.Modules.Blacklist, displayDriver)
		// The operator starts the GPUs' driver later.
		file, unit := gpumode.FileAndUnit(append([]string{"# Free the device number of the BMC's display before the GPUs' driver starts."}, freeDeviceNumbers()...))
		p.Files, p.Units = []v1alpha1.NodeFile{file}, []v1alpha1.SystemdUnit{unit}
	}
	return p, nil
}

// expectDevices adds the devices that AMD's DRA driver must publish. Its source code of October 2025 is the reference.
func expectDevices(p *v1alpha1.NodePlan, r spec.Request, gpuPartition partition, count int) {
	device := v1alpha1.ExpectedDevices{
		Type: wellknown.AMDDeviceTypeGPU, Count: count,
		Attributes: map[string][]string{wellknown.AMDAttributePartitionProfile: {gpuPartition.String()}}, Optional: []string{wellknown.AMDAttributePartitionProfile},
	}
	if gpuPartition != unpartitioned {
		device.Type, device.Optional = wellknown.AMDDeviceTypePartition, nil
	}
	p.Expectation.Slices = []v1alpha1.ExpectedSlices{{
		Driver: wellknown.AMDDRADriver, DeviceClasses: []v1alpha1.ExpectedDeviceClass{{Name: wellknown.AMDDRADriver, Count: count}}, Devices: []v1alpha1.ExpectedDevices{device},
		Hint: "is the pod of AMD's DRA driver on the node, and does it tolerate the gate? On the node: amd-smi partition; journalctl -u " + gpumode.UnitName,
	}}
	p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/amd-dra", Message: "the devices of " + wellknown.AMDDRADriver + " are expected as its code of October 2025 publishes them; a newer driver may differ"})
}

// checkRequest returns the model of the GPUs, and refuses what its driver or AMD's software cannot do.
func checkRequest(r spec.Request) (catalogue.Model, error) {
	model, err := catalogue.Lookup(r.GPU.Vendor, r.GPU.Model)
	if err != nil {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("model"), "gpu/model", "%v", err)
	}
	if r.GPU.Count < 1 || r.GPU.Count > 64 {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("count"), "gpu/count", "it is %d, and a server has 1 to 64 GPUs", r.GPU.Count)
	}
	if err := checkMode(r); err != nil {
		return catalogue.Model{}, err
	}
	return model, checkDriver(r)
}

func checkMode(r spec.Request) error {
	if p := r.GPU.Presentation.Passthrough; p != nil {
		if p.Workload == v1alpha1.WorkloadVM {
			return spec.Invalid(spec.PresentationField("passthrough.workload"), "amd/vm", "it is VM, and this version does not present AMD GPUs to virtual machines: choose Container")
		}
		if p.Sharing != nil {
			return sharingRefusal("passthrough")
		}
	}
	if d := r.GPU.Presentation.DRA; d != nil {
		if d.Sharing != nil {
			return sharingRefusal("dra")
		}
		plain := v1alpha1.DRASpec{Driver: cmp.Or(d.Driver, wellknown.AMDDRADriver), Devices: cmp.Or(d.Devices, spec.DRADevicesGPU)}
		if plain.Driver != wellknown.AMDDRADriver || plain.Devices != spec.DRADevicesGPU || len(d.FeatureGates)+len(d.Layout)+len(d.DriverRelease) > 0 {
			return spec.Invalid(spec.PresentationField("dra"), "dra/driver", "GPUs of vendor amd are published by %s, as devices: GPU, without feature gates or a layout: correct it; partitions are in presentation.partitions", wellknown.AMDDRADriver)
		}
	}
	return checkContainerd(r)
}

func sharingRefusal(mode string) error {
	return spec.Invalid(spec.PresentationField(mode+".sharing"), "amd/sharing", "AMD's software shares no GPU between pods: remove it, or partition them with presentation.partitions")
}

func checkContainerd(r spec.Request) error {
	if c := r.Image.Software.Containerd; isAdvertisedByDRA(r.GPU) {
		if older, ok := spec.IsOlderVersion(c, minimumContainerd); older || !ok {
			return spec.Invalid(spec.ImageField("software.containerd"), "dra/containerd-version", "it is %q, and %s or newer is needed: devices reach containers by CDI", c, minimumContainerd)
		}
	}
	return nil
}

func checkDriver(r spec.Request) error {
	baked, source, version := r.Image.Software.GPUDriver, r.GPU.Driver.Source, r.GPU.Driver.Version
	fromImage := source == "" || source == v1alpha1.DriverFromImage
	switch {
	case fromImage && baked == nil:
		return spec.Refuse(spec.GPUField("driver.source"), v1alpha1.ReasonDriverMissing, "image/driver", "Image needs a driver in the image, and the OSImage's software.gpuDriver names none: bake amdgpu in, or name the kernel's own")
	case fromImage && baked.Vendor != v1alpha1.VendorAMD:
		return spec.Refuse(spec.ImageField("software.gpuDriver.vendor"), v1alpha1.ReasonDriverMissing, "image/driver-vendor", "it is %s, and the GPUs need a driver of vendor amd", baked.Vendor)
	case fromImage:
		version = baked.Version
	case baked != nil:
		return spec.Invalid(spec.GPUField("driver.source"), "driver/two", "it is %s, and the OSImage has the driver %s baked in: use an image without, or source: Image", source, baked.Version)
	}
	if _, ok := spec.IsOlderVersion(version, "1"); !ok {
		return spec.Invalid(spec.DriverField(source, "version"), "image/driver-version", "%q is not a version such as 30.20.1", version)
	}
	if source == v1alpha1.DriverFromPackages && !slices.ContainsFunc(r.GPU.Driver.Packages, func(p string) bool { return strings.Contains(p, version) && !strings.Contains(p, "*") }) {
		return spec.Invalid(spec.GPUField("driver.packages"), "packages/version", "it has nothing of version %s, which gpu.driver.version promises: write each package with its exact version", version)
	}
	return nil
}
