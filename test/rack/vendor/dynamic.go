package vendor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/test/rack/dra"
	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// dynamicContents returns every placement of every profile (KEP-4815) and, from Hopper on, each whole GPU. On Ampere the MIG mode decides which of them.
// The devices of one GPU consume its counters, so that the scheduler allocates only what fits beside what is allocated.
func (h Host) dynamicContents() (dra.Contents, error) {
	whole, err := h.wholeGPUs()
	if err != nil {
		return dra.Contents{}, err
	}
	var out dra.Contents
	for i, g := range h.GPUs {
		if !g.HasMIGMode() || g.Model.HasPersistentMIGMode() && !g.MIG {
			out.Devices = append(out.Devices, whole[i])
			continue
		}
		common, err := h.commonAttributes(g)
		if err != nil {
			return dra.Contents{}, err
		}
		set := wholeCounters(g)
		out.Counters = append(out.Counters, set)
		if !g.Model.HasPersistentMIGMode() {
			whole[i].Capacity = instanceCapacity(g.Model, largestInstance(g))
			whole[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: set.Name, Counters: set.Counters}}
			out.Devices = append(out.Devices, whole[i])
		}
		out.Devices = append(out.Devices, placements(g, set.Name, common)...)
	}
	slices.SortStableFunc(out.Devices, func(a, b resourcev1.Device) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// placements returns a device for each place at which an instance of each profile can be.
func placements(g *gpu.GPU, set string, common map[resourcev1.QualifiedName]resourcev1.DeviceAttribute) []resourcev1.Device {
	var out []resourcev1.Device
	for _, p := range g.Model.Profiles {
		for _, start := range p.Starts {
			instance := gpu.Instance{Profile: p, Start: start}
			device := migDevice(g, instance, maps.Clone(common))
			delete(device.Attributes, "uuid") // there is no instance yet
			device.Capacity = instanceCapacity(g.Model, instance)
			device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: counters(g.Model, instance)}}
			out = append(out, device)
		}
	}
	return out
}

// wholeCounters returns what all instances of the GPU together can have: what its largest profile has.
func wholeCounters(g *gpu.GPU) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: fmt.Sprintf("gpu-%d-counter-set", g.Minor), Counters: counters(g.Model, largestInstance(g))}
}

// largestInstance returns an instance of the largest profile. A whole GPU has its capacities when the driver may also partition it (cmd/gpu-kubelet-plugin/partitions.go).
func largestInstance(g *gpu.GPU) gpu.Instance {
	return gpu.Instance{Profile: slices.MaxFunc(g.Model.Profiles, func(a, b gpu.Profile) int { return a.Slots - b.Slots })}
}

// counterNames are the counters of the capacities of an instance.
var counterNames = map[resourcev1.QualifiedName]string{
	"memory": "memory", "multiprocessors": "multiprocessors", "copyEngines": "copy-engines", "decoders": "decoders", "encoders": "encoders", "jpegEngines": "jpeg-engines", "ofaEngines": "ofa-engines",
}

// counters returns the counters of an instance: its capacity and the memory slices that it occupies.
func counters(model gpu.Model, instance gpu.Instance) map[string]resourcev1.Counter {
	out := map[string]resourcev1.Counter{}
	for name, capacity := range instanceCapacity(model, instance) {
		out[counterNames[name]] = resourcev1.Counter{Value: capacity.Value}
	}
	for slot := instance.Start; slot < instance.Start+instance.Profile.Slots; slot++ {
		out[fmt.Sprint("memory-slice-", slot)] = resourcev1.Counter{Value: number(1).Value}
	}
	return out
}

// wholeGPUs returns the GPUs as devices, whatever their MIG mode.
func (h Host) wholeGPUs() ([]resourcev1.Device, error) {
	plain := h
	plain.GPUs = nil
	for _, g := range h.GPUs {
		copied := *g
		copied.MIG = false
		plain.GPUs = append(plain.GPUs, &copied)
	}
	return plain.nvidiaDevices()
}
