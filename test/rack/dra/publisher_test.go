package dra

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

func devices(n int) []resourcev1.Device {
	var out []resourcev1.Device
	for i := range n {
		out = append(out, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return out
}

func TestDevicesArePublishedUnderANewGenerationWhenTheyChange(t *testing.T) {
	p := Publisher{Driver: "gpu.nvidia.com", Node: "node-1", Contents: Contents{Devices: devices(300)}}
	first := p.nextSlices(nil)
	if len(first) != 3 || len(first[0].Devices) != 128 || len(first[2].Devices) != 44 {
		t.Fatalf("%d slices", len(first))
	}
	var there []resourcev1.ResourceSlice
	for _, spec := range first {
		if spec.Pool != (resourcev1.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 3}) || *spec.NodeName != "node-1" {
			t.Errorf("%+v", spec.Pool)
		}
		there = append(there, resourcev1.ResourceSlice{Spec: spec})
	}
	if again := p.nextSlices(there); again != nil {
		t.Errorf("what is published is published again: %+v", again[0].Pool)
	}
	if again := p.nextSlices(there[:2]); len(again) != 3 || again[0].Pool.Generation != 2 {
		t.Errorf("a slice is lost: %d slices", len(again))
	}
	p.Contents.Devices = devices(8)
	if again := p.nextSlices(there); len(again) != 1 || again[0].Pool != (resourcev1.ResourcePool{Name: "node-1", Generation: 2, ResourceSliceCount: 1}) {
		t.Errorf("fewer devices: %d slices", len(again))
	}
	p.Contents.Devices = nil
	if none := p.nextSlices(nil); len(none) != 1 || len(none[0].Devices) != 0 {
		t.Errorf("no device: %d slices", len(none))
	}
	p.MissingSlices = 1
	if less := p.nextSlices(nil); len(less) != 1 || less[0].Pool.ResourceSliceCount != 2 {
		t.Errorf("an incomplete pool: %+v", less)
	}
}
