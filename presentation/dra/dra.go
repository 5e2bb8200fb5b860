package dra

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// What the driver needs (its documentation's prerequisites).
const (
	minimumDriver  = "565"
	minimumKubelet = "1.34.2"
	// minimumDomainDriver is the oldest GPU driver with which compute domains, which run IMEX, work.
	minimumDomainDriver = "570.158.01"
	// minimumOperatorDriver is the oldest GPU driver with which NVIDIA's operator runs the DRA driver.
	minimumOperatorDriver = "580"
)

// architectureNames are the architectures as the driver spells them in an attribute.
var architectureNames = map[catalogue.Architecture]string{catalogue.Ampere: "Ampere", catalogue.Hopper: "Hopper", catalogue.Blackwell: "Blackwell"}

// DeviceKind is a number of devices of one kind that the driver publishes.
type DeviceKind struct {
	// Type is the value of the attribute type.
	Type string
	// Class is the DeviceClass that selects devices of the type.
	Class string
	// Profiles are the names that drivers give the MIG profile; empty: the devices are not MIG instances.
	Profiles []string
	// Count is the number of devices.
	Count int
	// Attributes that the devices must have; nil: the architecture and the driver version.
	Attributes map[string][]string
	// Products by the attribute that names them, and Capacities by name.
	Products   map[string]v1alpha1.ExpectedProduct
	Capacities map[string]v1alpha1.ExpectedRange
}

// GPUDevices returns the devices of GPUs that are not partitioned.
func GPUDevices(model catalogue.Model, count int) DeviceKind {
	return DeviceKind{
		Type: wellknown.NVIDIADeviceTypeGPU, Class: wellknown.NVIDIADeviceClassGPU, Count: count,
		Products: nvidia.ExpectedProducts(model), Capacities: map[string]v1alpha1.ExpectedRange{wellknown.NVIDIACapacityMemory: nvidia.ExpectedMemory(model)},
	}
}

// MIGDevices returns the devices of MIG instances of one profile, which drivers give one of its names.
func MIGDevices(model catalogue.Model, p catalogue.Profile, count int) DeviceKind {
	return DeviceKind{
		Type: wellknown.NVIDIADeviceTypeMIG, Class: wellknown.NVIDIADeviceClassMIG, Profiles: model.ProfileNames(p), Count: count,
		Products: nvidia.ExpectedProducts(model), Capacities: map[string]v1alpha1.ExpectedRange{wellknown.NVIDIACapacityMemory: nvidia.ExpectedInstanceMemory(model, p)},
	}
}

// VFIODevices returns the devices of GPUs for virtual machines. The driver binds such a GPU to vfio-pci when a claim requests it. Their product is known by
// the PCI id: productName is that of the driver's pci.ids file, which names an H100 NVL H100L.
func VFIODevices(model catalogue.Model, count int) DeviceKind {
	var ids []string
	for _, id := range model.PCIDevices {
		ids = append(ids, "0x"+id, "0x"+strings.ToUpper(id))
	}
	slices.Sort(ids)
	return DeviceKind{Type: wellknown.NVIDIADeviceTypeVFIO, Class: wellknown.NVIDIADeviceClassVFIO, Count: count, Attributes: map[string][]string{"deviceID": slices.Compact(ids)}}
}

// Resolve plans GPUs that the DRA driver publishes: unpartitioned GPUs for containers, the same GPUs also for virtual machines,
// or GPUs that the driver partitions as claims request it. The error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	draSpec := v1alpha1.DRASpec{}
	if s := r.GPU.Presentation.DRA; s != nil {
		draSpec = *s
	} else if s := r.GPU.Presentation.Passthrough; s != nil {
		draSpec.Sharing = s.Sharing
	}
	gates, err := FeatureGates(r, draSpec)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	model, err := CheckRequest(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if draSpec.Devices == spec.DRADevicesMIG {
		return resolveDynamicMIG(r, model, draSpec, gates)
	}
	if slices.Contains(gates, wellknown.GateDynamicMIG) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("dra.featureGates"), "dra/dynamic-mig", "it has DynamicMIG, which makes the driver publish partitions too: choose dra.devices: MIG, or remove it")
	}
	p := nodePlan(r, model, nvidia.UnpartitionedScript(model, r.GPU.Count))
	// With PassthroughSupport a claim takes a GPU from NVIDIA's driver, and nvidia-smi lists one less.
	if !nvidia.IsDriverFromOperator(r) && !slices.Contains(gates, wellknown.GatePassthrough) {
		nvidia.AddModeReport(&p, model, r.GPU.Count, nvidia.IsNeverPartitioned)
	}
	kinds := []DeviceKind{GPUDevices(model, int(r.GPU.Count))}
	if slices.Contains(gates, wellknown.GatePassthrough) {
		if err := nvidia.CheckIOMMU(r.Image); err != nil {
			return v1alpha1.NodePlan{}, err
		}
		p.KernelArguments = append(p.KernelArguments, nvidia.IOMMUArguments(r.Image)...)
		p.Modules.Load = append(p.Modules.Load, "vfio_pci")
		kinds = append(kinds, VFIODevices(model, int(r.GPU.Count)))
	}
	SetTenantDriver(&p, draSpec, gates)
	ExpectDevices(&p, r, model, kinds...)
	if len(kinds) > 1 {
		// A claim that is prepared leaves one form of its GPU (RemoveSiblingDevices of the driver 0.4.1).
		p.Expectation.Slices[0].GPUAttribute = pciAddressAttribute
	}
	return p, nil
}

// pciAddressAttribute is the PCI address in all forms of a GPU.
const pciAddressAttribute = "resource.kubernetes.io/pciBusID"

func nodePlan(r spec.Request, model catalogue.Model, mode []string) v1alpha1.NodePlan {
	if nvidia.IsDriverFromOperator(r) {
		p := nvidia.OperatorPlan(r, model, wellknown.WorkloadContainer)
		p.Warnings = append(p.Warnings, nvidia.KeptMIGModeWarnings(model, "the DRA driver publishes no such GPU, and the node is not admitted; nvidia-smi -mig 0 in the pod of the driver helps, or driver.source: Image or Packages")...)
		return p
	}
	return nvidia.NodePlan(r, model, mode)
}

// CheckRequest returns the model of the GPUs. When the DRA driver does not work with the image, the error is a *spec.Refusal.
func CheckRequest(r spec.Request) (catalogue.Model, error) {
	model, err := nvidia.CheckRequest(r, spec.DriverKindGPU)
	if err != nil {
		return catalogue.Model{}, err
	}
	software, driver := r.Image.Software, minimumDriver
	switch {
	case nvidia.IsDriverFromOperator(r):
		driver = minimumOperatorDriver
	case model.Link == catalogue.LinkRack && r.GPU.IMEX != spec.IMEXHost:
		driver = minimumDomainDriver
	}
	for _, requirement := range []struct {
		field                               spec.Field
		rule, reason, version, minimum, why string
	}{
		{spec.DriverField(r.GPU.Driver.Source, "version"), "dra/driver-version", v1alpha1.ReasonDriverTooOld, nvidia.DriverVersion(r), driver, "NVIDIA's DRA driver does not work with older drivers"},
		{spec.ImageField("software.kubelet"), "dra/kubelet-version", v1alpha1.ReasonPresentationInvalid, software.Kubelet, minimumKubelet, "NVIDIA's DRA driver does not work with older kubelets"},
		{spec.ImageField("software.containerd"), "dra/containerd-version", v1alpha1.ReasonPresentationInvalid, software.Containerd, nvidia.MinimumCDIContainerd, "devices reach containers by CDI, which older ones ignore without an error; before 2.0 its configuration must say enable_cdi"},
	} {
		older, ok := spec.IsOlderVersion(requirement.version, requirement.minimum)
		if !ok {
			return catalogue.Model{}, spec.Invalid(requirement.field, requirement.rule, "it is %q, and must be a version, %s or newer: %s", requirement.version, requirement.minimum, requirement.why)
		}
		if older {
			return catalogue.Model{}, spec.Refuse(requirement.field, requirement.reason, requirement.rule, "it is %s, and %s or newer is needed: %s", requirement.version, requirement.minimum, requirement.why)
		}
	}
	return model, nil
}

// ExpectDevices changes the plan so that the DRA driver runs on the node instead of the device plugin, and must publish these
// devices. The request has passed CheckRequest.
func ExpectDevices(p *v1alpha1.NodePlan, r spec.Request, model catalogue.Model, kinds ...DeviceKind) {
	if p.NodeLabels == nil {
		p.NodeLabels = map[string]string{}
	}
	p.NodeLabels[wellknown.LabelDeployDevicePlugin], p.NodeLabels[wellknown.LabelDRAKubeletPlugin] = "false", "true"
	slice := v1alpha1.ExpectedSlices{
		Driver: wellknown.NVIDIADRADriver,
		Hint: "is the pod of the DRA driver's kubelet plugin on the node, and does it tolerate the gate? It looks for devices when it starts, and never again. " +
			"On the node: nvidia-smi -L; journalctl -u " + gpumode.UnitName,
	}
	for _, k := range kinds {
		if k.Attributes == nil {
			k.Attributes = deviceAttributes(model, nvidia.DriverVersion(r))
		}
		slice.Devices = append(slice.Devices, v1alpha1.ExpectedDevices{Type: k.Type, Profiles: k.Profiles, Count: k.Count, Attributes: k.Attributes, Products: k.Products, Capacities: k.Capacities})
		at := slices.IndexFunc(slice.DeviceClasses, func(c v1alpha1.ExpectedDeviceClass) bool { return c.Name == k.Class })
		if at < 0 {
			at, slice.DeviceClasses = len(slice.DeviceClasses), append(slice.DeviceClasses, v1alpha1.ExpectedDeviceClass{Name: k.Class})
		}
		slice.DeviceClasses[at].Count += k.Count
	}
	p.Expectation.Slices = []v1alpha1.ExpectedSlices{slice}
}

// deviceAttributes returns the attributes that every device of the driver has.
func deviceAttributes(model catalogue.Model, driver string) map[string][]string {
	out := map[string][]string{"driverVersion": versionAttribute(driver)}
	if spelled, known := architectureNames[model.Architecture]; known {
		out["architecture"] = []string{spelled}
	}
	return out
}

// versionAttribute returns the accepted values of the attribute driverVersion: the driver writes its version as a semantic
// version.
func versionAttribute(driver string) []string {
	if semantic, ok := spec.SemanticVersion(driver); ok && semantic != driver {
		return []string{semantic, driver}
	}
	return []string{driver}
}

// resolveDynamicMIG plans GPUs that the driver partitions as claims request it. The driver publishes a device for every placement
// of every MIG profile, and the scheduler's counters keep track of what is in use. From Hopper on it publishes the unpartitioned
// GPU as well. On Ampere the MIG mode decides which of the two it publishes, so the mode is turned on before kubelet starts.
func resolveDynamicMIG(r spec.Request, model catalogue.Model, draSpec v1alpha1.DRASpec, gates []string) (v1alpha1.NodePlan, error) {
	if !slices.Contains(gates, wellknown.GateDynamicMIG) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("dra.devices"), "dra/mig-layout", "it is MIG: say in dra.layout how the GPUs are partitioned, or add the feature gate %s, with which the driver partitions them as claims ask for it (alpha)", wellknown.GateDynamicMIG)
	}
	if model.Geometry == nil {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("model"), "mig/model", "%s cannot be partitioned: choose another model, or dra.devices: GPU", model.Name)
	}
	if model.HasPersistentMIGMode() && nvidia.IsDriverFromOperator(r) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("driver.source"), "mig/operator-dra", "it is Operator: nobody would turn the MIG mode of %s on before the DRA driver looks for devices; use source: Image or Packages", model.Name)
	}
	count, mode := int(r.GPU.Count), nvidia.MIGDisabledScript()
	var kinds []DeviceKind
	if model.HasPersistentMIGMode() {
		mode = nvidia.MIGEnabledScript()
	} else {
		kinds = append(kinds, GPUDevices(model, count))
	}
	for _, p := range model.Geometry.Profiles {
		kinds = append(kinds, MIGDevices(model, p, count*len(p.Starts)))
	}
	p := nodePlan(r, model, mode)
	if p.NodeLabels == nil {
		p.NodeLabels = map[string]string{}
	}
	// The operator's MIG manager would take the partitions of claims away.
	p.NodeLabels[wellknown.LabelDeployMIGManager] = "false"
	SetTenantDriver(&p, draSpec, gates)
	p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "experimental/dynamic-mig", Message: "dynamic MIG is alpha in the DRA driver: before Kubernetes 1.36 it needs the tenant's feature gate DRAPartitionableDevices, " +
		"it deletes partitions that it does not know, and the number of devices expected is derived from the places that profiles have"})
	if model.PlacementsInferred {
		p.Warnings = append(p.Warnings, nvidia.InferredPlacementsWarning(model))
	}
	p.Warnings = append(p.Warnings, nvidia.DisplayModeWarnings(model)...)
	ExpectDevices(&p, r, model, kinds...)
	return p, nil
}
