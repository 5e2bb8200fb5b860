package dra

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// Contents are the devices of a pool and the counters that they share.
type Contents struct {
	Devices  []resourcev1.Device
	Counters []resourcev1.CounterSet
}

// Slices returns the ResourceSlices of the pool, without generation and node. Counter sets have slices of their own, which come first, and the devices of
// one counter set have theirs, as NVIDIA's driver writes them from Kubernetes 1.35 on.
func (c Contents) Slices() []resourcev1.ResourceSliceSpec {
	var out []resourcev1.ResourceSliceSpec
	for sets := range slices.Chunk(c.Counters, resourcev1.ResourceSliceMaxCounterSets) {
		out = append(out, resourcev1.ResourceSliceSpec{SharedCounters: sets})
	}
	add := func(devices []resourcev1.Device, most int) {
		for part := range slices.Chunk(devices, most) {
			out = append(out, resourcev1.ResourceSliceSpec{Devices: part})
		}
	}
	for _, set := range c.Counters {
		add(consumersOf(c.Devices, set.Name), resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures)
	}
	add(consumersOf(c.Devices, ""), resourcev1.ResourceSliceMaxDevices)
	if len(out) == 0 {
		out = append(out, resourcev1.ResourceSliceSpec{}) // an empty pool is published too
	}
	return out
}

// consumersOf returns the devices that consume counters of the set, or those that consume none where the name is empty.
func consumersOf(devices []resourcev1.Device, set string) []resourcev1.Device {
	var out []resourcev1.Device
	for _, d := range devices {
		if len(d.ConsumesCounters) == 0 && set == "" || len(d.ConsumesCounters) > 0 && d.ConsumesCounters[0].CounterSet == set {
			out = append(out, d)
		}
	}
	return out
}
