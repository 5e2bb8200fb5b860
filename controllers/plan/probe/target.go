package probe

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// maxClaimed is how many devices a claim can be given (AllocationResultsMaxSize of resource.k8s.io/v1).
const maxClaimed = 32

// Target is what one pod asks for.
type Target struct {
	// Name of the resource or of the DeviceClass.
	Name string
	// IsClass is true for a DeviceClass.
	IsClass bool
	// Count of devices that the pod asks for.
	Count int64
	// isInstance is true where the devices are MIG instances.
	isInstance bool
}

func (t Target) text() string {
	if t.IsClass {
		return fmt.Sprintf("a pod that claims %d devices of class %s uses them", t.Count, t.Name)
	}
	return fmt.Sprintf("a pod that asks for %d of %s uses them", t.Count, t.Name)
}

// Targets returns what is asked for in turn. NvidiaSMI asks for NVIDIA's own devices only, and not for those of virtual machines.
func Targets(e v1alpha1.NodeExpectation, s v1alpha1.ProbeSpec) []Target {
	var out []Target
	isBuiltIn := s.Kind != v1alpha1.ProbeCommand
	for _, r := range e.Resources {
		name := string(r.Name)
		isOwn := name == wellknown.NVIDIAGPU || strings.HasPrefix(name, wellknown.NVIDIAMIGPrefix)
		if strings.Contains(name, "/") && r.Quantity.Value() > 0 && (isOwn || !isBuiltIn) {
			out = append(out, resourceTarget(e, r))
		}
	}
	for _, slices := range e.Slices {
		for _, c := range slices.DeviceClasses {
			if c.Count > 0 && !(isBuiltIn && c.Name == wellknown.NVIDIADeviceClassVFIO) {
				out = append(out, classTarget(c))
			}
		}
	}
	return out
}

func resourceTarget(e v1alpha1.NodeExpectation, r v1alpha1.ExpectedResource) Target {
	name := string(r.Name)
	t := Target{Name: name, Count: r.Quantity.Value(), isInstance: strings.HasPrefix(name, wellknown.NVIDIAMIGPrefix) || hasLabel(e, wellknown.LabelMIGStrategy, wellknown.MIGStrategySingle)}
	if hasLabel(e, wellknown.LabelGPUReplicas, "") {
		// A plugin that shares GPUs may refuse a pod that asks for more than one share.
		t.Count = 1
	}
	return t
}

func classTarget(c v1alpha1.ExpectedDeviceClass) Target {
	t := Target{Name: c.Name, IsClass: true, Count: min(int64(c.Count), maxClaimed), isInstance: c.Name == wellknown.NVIDIADeviceClassMIG}
	if t.isInstance {
		// With dynamic MIG the driver publishes every place that an instance can have, and they exclude each other.
		t.Count = 1
	}
	return t
}

func hasLabel(e v1alpha1.NodeExpectation, key, value string) bool {
	for _, l := range e.Labels {
		if l.Key == key && (value == "" || l.Value == value) {
			return true
		}
	}
	return false
}
