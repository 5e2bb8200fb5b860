package presentation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// acceleratorDomains are the domains under which accelerators are advertised. A resource there that was not promised belongs to
// another presentation, or remains from an earlier use of the node.
var acceleratorDomains = []string{wellknown.AMDDomain, wellknown.IntelGPUDomain, wellknown.HabanaDomain, wellknown.NVIDIADomain}

// acceleratorDRADrivers publish accelerators as devices of ResourceSlices. NVIDIA's driver for compute domains is not among them.
var acceleratorDRADrivers = []string{wellknown.GaudiDRADriver, wellknown.AMDDRADriver, wellknown.IntelGPUDRADriver, wellknown.NVIDIADRADriver}

// gpuResourcePrefixes begin the names of GPU resources in those domains that follow from spec.gpu alone. Other devices, such as network functions and
// what NVIDIA's plugin for KubeVirt advertises, may be promised beside GPUs.
var gpuResourcePrefixes = []string{wellknown.AMDDomain, wellknown.IntelGPUDomain, wellknown.HabanaDomain, wellknown.NVIDIAGPU, wellknown.NVIDIAMIGPrefix}

// WithDeclaredResources returns the expectation with the resources that a NodeType declares beside those that follow from its
// GPUs. When the two disagree, the error is a *spec.Refusal. The given expectation is not changed.
func WithDeclaredResources(e v1alpha1.NodeExpectation, declared corev1.ResourceList) (v1alpha1.NodeExpectation, error) {
	derived := len(e.Resources)
	e.Resources = slices.Clone(e.Resources)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		quantity := declared[name]
		if quantity.Sign() < 0 {
			return v1alpha1.NodeExpectation{}, disagreement(name, "promise/negative", "it is %s, and a promise cannot be negative", quantity.String())
		}
		if err := addResource(name, quantity, &e, derived); err != nil {
			return v1alpha1.NodeExpectation{}, err
		}
	}
	slices.SortFunc(e.Resources, func(a, b v1alpha1.ExpectedResource) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return e, nil
}

func addResource(name corev1.ResourceName, quantity resource.Quantity, e *v1alpha1.NodeExpectation, derived int) error {
	switch {
	case name == corev1.ResourceCPU:
		e.CPU = &quantity
	case name == corev1.ResourceMemory:
		e.Memory = &quantity
	case name == corev1.ResourceEphemeralStorage:
		e.EphemeralStorage = &quantity
	case strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		e.Resources = append(e.Resources, v1alpha1.ExpectedResource{Name: name, Quantity: quantity, Hint: "on the node: cat /proc/cmdline; the image's kernel arguments reserve hugepages"})
	case strings.Contains(string(name), "/"):
		return addExtendedResource(name, quantity, e, derived)
	default:
		return disagreement(name, "promise/unknown-resource", "no node advertises a resource of that name that could be checked; use cpu, memory, ephemeral-storage, hugepages-SIZE or an extended resource such as vendor.example/device")
	}
	return nil
}

func addExtendedResource(name corev1.ResourceName, quantity resource.Quantity, e *v1alpha1.NodeExpectation, derived int) error {
	if quantity.MilliValue()%1000 != 0 {
		return disagreement(name, "promise/fraction", "it is %s, and extended resources are whole numbers", quantity.String())
	}
	for _, d := range e.Resources[:derived] {
		if d.Name != name {
			continue
		}
		if d.Quantity.Cmp(quantity) != 0 {
			return disagreement(name, "promise/gpu", "it is %s, and %s follows from spec.gpu: correct one of them, or leave the resource out", quantity.String(), d.Quantity.String())
		}
		return nil
	}
	if IsAdvertisedByGPUSoftware(name) && slices.ContainsFunc(gpuResourcePrefixes, func(p string) bool { return strings.HasPrefix(string(name), p) }) {
		return disagreement(name, "promise/gpu", "it is promised, and no such resource follows from spec.gpu: remove it, or change the presentation")
	}
	e.Resources = append(e.Resources, v1alpha1.ExpectedResource{Name: name, Quantity: quantity, Waits: true, Hint: "the device plugin that advertises it: is its pod on the node, and what does it log?"})
	return nil
}

// absentDrivers returns the DRA drivers that must publish nothing: those of the mode, and all others that no ResourceSlices are
// expected of.
func absentDrivers(e v1alpha1.NodeExpectation) []string {
	all := append(slices.Clone(acceleratorDRADrivers), e.AbsentDrivers...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(driver string) bool {
		return slices.ContainsFunc(e.Slices, func(s v1alpha1.ExpectedSlices) bool { return s.Driver == driver })
	})
}

func disagreement(name corev1.ResourceName, rule, format string, args ...any) error {
	return spec.Refuse(spec.ResourceField(string(name)), v1alpha1.ReasonResourcesDisagree, rule, format, args...)
}
