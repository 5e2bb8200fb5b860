package generic

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Resolve plans accelerators as the NodeType describes them. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	spec := r.GPU.Generic
	if spec == nil {
		return plan.Plan{}, refuse(plan.GPUField("vendor"), "generic/missing", "it is generic, and gpu.generic is missing: say what Ingot cannot know of %s, the resourceName at least", r.GPU.Model)
	}
	if err := judge(r, *spec); err != nil {
		return plan.Plan{}, err
	}
	p := plan.Plan{
		KernelArguments: slices.Clone(spec.KernelArguments),
		Modules:         plan.Modules{Load: slices.Clone(spec.Modules), Blacklist: slices.Clone(spec.Blacklist)},
		Packages:        slices.Concat(r.GPU.Driver.Packages, spec.Packages),
	}
	if passthrough(r).Advertise == v1alpha1.AdvertiseDRA {
		p.Expectation.Slices = []plan.SliceExpectation{published(*spec.DRA, int(r.GPU.Count))}
		if spec.ResourceName != "" {
			p.Expectation.AbsentPrefixes = []string{spec.ResourceName}
		}
		return p, nil
	}
	if spec.DRA != nil {
		p.Expectation.AbsentDrivers = []string{spec.DRA.Driver}
	}
	each := max(int64(spec.ResourcesPerDevice), 1)
	p.Expectation.Resources = []plan.Resource{{
		Name: corev1.ResourceName(spec.ResourceName), Quantity: *resource.NewQuantity(int64(r.GPU.Count)*each, resource.DecimalSI), Waits: true,
		Hint: "is the pod of the device plugin that advertises " + spec.ResourceName + " on the node, does it tolerate the gate, and what does it log? On the node: lsmod; dmesg",
	}}
	return p, nil
}

func published(spec v1alpha1.GenericDRA, count int) plan.SliceExpectation {
	out := plan.SliceExpectation{
		Driver:  spec.Driver,
		Devices: []plan.DeviceExpectation{{Type: spec.Type, Count: count}},
		Hint:    "is the pod of the DRA driver " + spec.Driver + " on the node, does it tolerate the gate, and what does it log? On the node: lsmod; dmesg",
	}
	if spec.DeviceClass != "" {
		out.DeviceClasses = []plan.DeviceClassExpectation{{Name: spec.DeviceClass, Count: count}}
	}
	return out
}

func passthrough(r plan.Request) v1alpha1.PassthroughSpec {
	if p := r.GPU.Presentation.Passthrough; p != nil {
		return *p
	}
	return v1alpha1.PassthroughSpec{}
}

func judge(r plan.Request, spec v1alpha1.GenericSpec) error {
	how := passthrough(r)
	switch {
	case r.GPU.Count < 1 || r.GPU.Count > 64:
		return refuse(plan.GPUField("count"), "gpu/count", "it is %d, and a server has 1 to 64 accelerators", r.GPU.Count)
	case how.Workload == v1alpha1.WorkloadVM:
		return refuse(plan.PresentationField("passthrough.workload"), "generic/vm", "it is VM, and this version does not present generic accelerators to virtual machines: choose Container")
	case how.Sharing != nil:
		return refuse(plan.PresentationField("passthrough.sharing"), "generic/sharing", "it is of NVIDIA's software: remove it; a plugin that shares devices of its own is described by generic.resourcesPerDevice")
	case how.Advertise == v1alpha1.AdvertiseDRA && spec.DRA == nil:
		return refuse(plan.PresentationField("passthrough.advertise"), "generic/dra", "it is DRA, and generic.dra is missing: name the driver")
	case how.Advertise != v1alpha1.AdvertiseDRA && spec.ResourceName == "":
		return refuse(plan.GPUField("generic.resourceName"), "generic/resource-name", "it is missing, and a device plugin advertises: name the resource, or set passthrough.advertise: DRA")
	}
	for _, module := range spec.Modules {
		if slices.Contains(spec.Blacklist, module) {
			return refuse(plan.GPUField("generic.modules"), "generic/modules", "it has %s, and generic.blacklist has it too: remove one of them", module)
		}
	}
	return judgeArguments(r.Image, spec.KernelArguments)
}

// judgeArguments refuses an image without the kernel arguments: user data cannot change the command line before it boots.
func judgeArguments(image v1alpha1.OSImageSpec, needed []string) error {
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
	return plan.Refuse(plan.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "%v lack %s, which generic.kernelArguments needs: bake them in", image.KernelArguments, strings.Join(missing, " "))
}

func refuse(field plan.Field, rule, format string, args ...any) error {
	return plan.Refuse(field, v1alpha1.ReasonPresentationInvalid, rule, format, args...)
}
