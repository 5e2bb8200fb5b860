package generic

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// Resolve plans accelerators as the NodeType describes them. The error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	device := r.GPU.Generic
	if device == nil {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("vendor"), "generic/missing", "it is generic, and gpu.generic is missing: say what Ingot cannot know of %s, the resourceName at least", r.GPU.Model)
	}
	if err := check(r, *device); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p := v1alpha1.NodePlan{
		KernelArguments: slices.Clone(device.KernelArguments),
		Modules:         v1alpha1.KernelModules{Load: slices.Clone(device.Modules), Blacklist: slices.Clone(device.Blacklist)},
		Packages:        slices.Concat(r.GPU.Driver.Packages, device.Packages),
	}
	if passthroughSpec(r).Advertise == v1alpha1.AdvertiseDRA {
		p.Expectation.Slices = []v1alpha1.ExpectedSlices{expectedSlices(*device.DRA, int(r.GPU.Count))}
		if device.ResourceName != "" {
			p.Expectation.AbsentPrefixes = []string{device.ResourceName}
		}
		return p, nil
	}
	if device.DRA != nil {
		p.Expectation.AbsentDrivers = []string{device.DRA.Driver}
	}
	each := max(int64(device.ResourcesPerDevice), 1)
	p.Expectation.Resources = []v1alpha1.ExpectedResource{{
		Name: corev1.ResourceName(device.ResourceName), Quantity: *resource.NewQuantity(int64(r.GPU.Count)*each, resource.DecimalSI), Waits: true,
		Hint: "is the pod of the device plugin that advertises " + device.ResourceName + " on the node, does it tolerate the gate, and what does it log? On the node: lsmod; dmesg",
	}}
	return p, nil
}

// expectedSlices returns the devices that the DRA driver of the accelerator must publish.
func expectedSlices(device v1alpha1.GenericDRA, count int) v1alpha1.ExpectedSlices {
	out := v1alpha1.ExpectedSlices{
		Driver:  device.Driver,
		Devices: []v1alpha1.ExpectedDevices{{Type: device.Type, Count: count}},
		Hint:    "is the pod of the DRA driver " + device.Driver + " on the node, does it tolerate the gate, and what does it log? On the node: lsmod; dmesg",
	}
	if device.DeviceClass != "" {
		out.DeviceClasses = []v1alpha1.ExpectedDeviceClass{{Name: device.DeviceClass, Count: count}}
	}
	return out
}

func passthroughSpec(r spec.Request) v1alpha1.PassthroughSpec {
	if p := r.GPU.Presentation.Passthrough; p != nil {
		return *p
	}
	return v1alpha1.PassthroughSpec{}
}

// check refuses a description that contradicts itself or the image.
func check(r spec.Request, device v1alpha1.GenericSpec) error {
	how := passthroughSpec(r)
	switch {
	case r.GPU.Count < 1 || r.GPU.Count > 64:
		return spec.Invalid(spec.GPUField("count"), "gpu/count", "it is %d, and a server has 1 to 64 accelerators", r.GPU.Count)
	case how.Workload == v1alpha1.WorkloadVM:
		return spec.Invalid(spec.PresentationField("passthrough.workload"), "generic/vm", "it is VM, and this version does not present generic accelerators to virtual machines: choose Container")
	case how.Sharing != nil:
		return spec.Invalid(spec.PresentationField("passthrough.sharing"), "generic/sharing", "it is of NVIDIA's software: remove it; a plugin that shares devices of its own is described by generic.resourcesPerDevice")
	case how.Advertise == v1alpha1.AdvertiseDRA && device.DRA == nil:
		return spec.Invalid(spec.PresentationField("passthrough.advertise"), "generic/dra", "it is DRA, and generic.dra is missing: name the driver")
	case how.Advertise != v1alpha1.AdvertiseDRA && device.ResourceName == "":
		return spec.Invalid(spec.GPUField("generic.resourceName"), "generic/resource-name", "it is missing, and a device plugin advertises: name the resource, or set passthrough.advertise: DRA")
	}
	for _, module := range device.Modules {
		if slices.Contains(device.Blacklist, module) {
			return spec.Invalid(spec.GPUField("generic.modules"), "generic/modules", "it has %s, and generic.blacklist has it too: remove one of them", module)
		}
	}
	return checkKernelArguments(r.Image, device.KernelArguments)
}

// checkKernelArguments refuses an image without the kernel arguments. User data cannot change the kernel's command line before it
// boots.
func checkKernelArguments(image v1alpha1.OSImageSpec, needed []string) error {
	if image.UserData == v1alpha1.UserDataIgnition {
		return nil
	}
	var missing []string
	for _, a := range needed {
		if !slices.Contains(image.KernelArguments, a) {
			missing = append(missing, a)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return spec.Refuse(spec.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "%v lack %s, which generic.kernelArguments needs: bake them in", image.KernelArguments, strings.Join(missing, " "))
}
