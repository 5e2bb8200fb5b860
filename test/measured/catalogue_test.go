package measured

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/test/rack/gpu"
)

func TestARealGPUIsKnownByItsIDsItsNameAndItsMemory(t *testing.T) {
	for name, r := range readRecordings(t) {
		for _, d := range r.nvml.Devices {
			// NVML writes the device before the vendor: 0x233010de.
			device, vendor := strings.ToLower(d.PCI.DeviceID[2:6]), strings.ToLower(d.PCI.DeviceID[6:])
			if m, known := catalogue.Identify(vendor, device); !known || m.Name != r.model.Name {
				t.Errorf("%s: %s:%s is %q, and the GPU is a %s", name, vendor, device, m.Name, r.model.Name)
			}
			// The name of a module may be that of a card without its last word: "NVIDIA H200" and "NVIDIA H200 NVL".
			if named := catalogue.IdentifyName(d.Name); !slices.ContainsFunc(named, func(m catalogue.Model) bool { return m.Name == r.model.Name }) {
				t.Errorf("%s: %q names %v, and the GPU is a %s", name, d.Name, named, r.model.Name)
			}
			least, most := r.model.MemoryMiB()
			if seen := d.MemoryV1.Total >> 20; seen < least || seen > most {
				t.Errorf("%s: the GPU has %d MiB, and %d to %d are accepted", name, seen, least, most)
			}
		}
	}
}

// profileText describes a profile: what NVML says of it and what the catalogue does.
func profileText(id, computeSlices, memorySlices, count int, starts []int) string {
	return fmt.Sprintf("id %d, %d compute slices, %d memory slices, %d at most, starts %v", id, computeSlices, memorySlices, count, starts)
}

func TestTheCatalogueHasTheMIGProfilesOfARealGPU(t *testing.T) {
	for name, r := range readRecordings(t) {
		expected := map[string]string{}
		for _, p := range r.model.Geometry.Profiles {
			expected[r.model.ProfileNames(p)[0]] = profileText(p.ID, p.ComputeSlices, p.MemorySlices, p.Max, p.Starts)
		}
		for _, d := range r.nvml.Devices {
			seen := map[string]string{}
			for _, p := range d.profiles() {
				seen[p.name()] = profileText(p.Info.ID, p.Info.SliceCount, p.size(), p.Info.InstanceCount, p.starts())
			}
			for _, profile := range keysOf(expected, seen) {
				if expected[profile] != seen[profile] {
					t.Errorf("%s: %s has %q, and in the catalogue %q", name, profile, seen[profile], expected[profile])
				}
			}
		}
	}
}

func TestTheMemoryOfARealProfileIsAccepted(t *testing.T) {
	for name, r := range readRecordings(t) {
		for _, p := range r.nvml.Devices[0].profiles() {
			at := slices.IndexFunc(r.model.Geometry.Profiles, func(c catalogue.Profile) bool { return c.ID == p.Info.ID })
			if at < 0 {
				t.Errorf("%s: the catalogue has no profile %d, which is %s", name, p.Info.ID, p.Name)
				continue
			}
			if least, most := r.model.InstanceMemoryMiB(r.model.Geometry.Profiles[at]); p.Info.MemorySizeMB < least || p.Info.MemorySizeMB > most {
				t.Errorf("%s: %s has %d MiB, and %d to %d are accepted", name, p.Name, p.Info.MemorySizeMB, least, most)
			}
		}
	}
}

func TestASimulatedGPUHasTheMIGProfilesOfARealOne(t *testing.T) {
	for name, r := range readRecordings(t) {
		model := simulated(t, r).GPUs[0].Model
		expected, seen := map[string]string{}, map[string]string{}
		for _, p := range model.Profiles {
			e := p.Engines
			expected[p.Name] = engineText(p.Multiprocessors, e.Copy, e.Decoders, e.Encoders, e.JPEG, e.OpticalFlow, (gpu.Instance{Profile: p}).MemoryMiB(model)) +
				profileText(p.ID, p.Compute, p.Slots, p.Max, p.Starts)
		}
		for _, p := range r.nvml.Devices[0].profiles() {
			i := p.Info
			seen[p.name()] = engineText(i.MultiprocessorCount, i.CopyEngineCount, i.DecoderCount, i.EncoderCount, i.JpegCount, i.OfaCount, i.MemorySizeMB) +
				profileText(i.ID, i.SliceCount, p.size(), i.InstanceCount, p.starts())
		}
		for _, profile := range keysOf(expected, seen) {
			if expected[profile] != seen[profile] {
				t.Errorf("%s: %s has\n%q, and simulated\n%q", name, profile, seen[profile], expected[profile])
			}
		}
		if device := r.nvml.Devices[0]; model.MemoryMiB != device.MemoryV1.Total>>20 || model.Product != device.Name {
			t.Errorf("%s: it is a %s with %d MiB, and simulated a %s with %d", name, device.Name, device.MemoryV1.Total>>20, model.Product, model.MemoryMiB)
		}
	}
}

func engineText(multiprocessors, copies, decoders, encoders, jpegs, flows, memory int64) string {
	return fmt.Sprintf("%d multiprocessors, %d copy engines, %d decoders, %d encoders, %d JPEG decoders, %d optical flow accelerators, %d MiB, ", multiprocessors, copies, decoders, encoders, jpegs, flows, memory)
}

// profiles returns the profiles that the GPU has, each once: NVML may give one profile several numbers.
func (d nvmlDevice) profiles() []nvmlProfile {
	byID := map[int]nvmlProfile{}
	for _, p := range d.Profiles {
		if p.Error == "" {
			byID[p.Info.ID] = p
		}
	}
	var out []nvmlProfile
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out
}

// name returns the name without the word MIG, with which NVML begins it.
func (p nvmlProfile) name() string { return strings.TrimPrefix(p.Name, "MIG ") }

// size returns the memory slices that an instance takes; 0: its placements differ, or it has none.
func (p nvmlProfile) size() int {
	size := 0
	for i, place := range p.Placements {
		if i > 0 && place.Size != size {
			return 0
		}
		size = place.Size
	}
	return size
}

func (p nvmlProfile) starts() []int {
	var out []int
	for _, place := range p.Placements {
		out = append(out, place.Start)
	}
	slices.Sort(out)
	return out
}
