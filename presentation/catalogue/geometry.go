package catalogue

import (
	"fmt"
	"slices"
)

// Geometry says how GPUs of a family can be partitioned into GPU instances: which sizes there are, and where on the GPU each of
// them can start. Instances must not overlap on the memory slices. There must be enough compute slices for all of them, and their
// positions do not matter.
type Geometry struct {
	// Name in messages and in the table.
	Name string
	// MemorySlices that the GPU has.
	MemorySlices int
	// ComputeSlices that the GPU has.
	ComputeSlices int
	// Profiles are the sizes of instances, from the largest.
	Profiles []Profile
	// Combinations are sets of profiles that only newer drivers create on one GPU.
	Combinations []Combination
}

// Profile is a size of GPU instances.
type Profile struct {
	// ID is the number of the profile in nvidia-smi.
	ID int
	// ComputeSlices that an instance takes.
	ComputeSlices int
	// MemorySlices that an instance takes, from its start upwards.
	MemorySlices int
	// Starts are the memory slices at which an instance can start, ascending.
	Starts []int
	// Max is the number of instances that one GPU can have.
	Max int
	// Suffix of the profile's name: +me.
	Suffix string
	// Media: an instance has the GPU's media engines, which only one instance can have.
	Media bool
	// AllMedia: an instance has every media engine, so that all others must have none.
	AllMedia bool
	// NoMedia: an instance has no media engine, although others of its size have some.
	NoMedia bool
	// Graphics: an instance supports graphics APIs.
	Graphics bool
	// MinimumDriver is the oldest driver that knows the profile; empty: every driver of the model knows it.
	MinimumDriver string
}

// Combination is a set of profiles that only newer drivers create on one GPU.
type Combination struct {
	// IDs of the profiles.
	IDs []int
	// MinimumDriver is the oldest driver that creates them together.
	MinimumDriver string
}

// sevenSlices is the geometry of GPUs of the size class of A100, H100 and B200 (MIG user guide, "nvidia-smi mig -lgipp"). The
// mocks in go-nvml have other values for Hopper, which are wrong.
var sevenSlices = &Geometry{
	Name: "7 slices", MemorySlices: 8, ComputeSlices: 7,
	Profiles: []Profile{
		{ID: 0, ComputeSlices: 7, MemorySlices: 8, Starts: []int{0}, Max: 1},
		{ID: 5, ComputeSlices: 4, MemorySlices: 4, Starts: []int{0}, Max: 1},
		{ID: 9, ComputeSlices: 3, MemorySlices: 4, Starts: []int{0, 4}, Max: 2},
		{ID: 14, ComputeSlices: 2, MemorySlices: 2, Starts: []int{0, 2, 4}, Max: 3},
		{ID: 15, ComputeSlices: 1, MemorySlices: 2, Starts: []int{0, 2, 4, 6}, Max: 4, MinimumDriver: "525"},
		{ID: 19, ComputeSlices: 1, MemorySlices: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}, Max: 7},
		{ID: 20, ComputeSlices: 1, MemorySlices: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}, Max: 1, Suffix: "+me", Media: true},
	},
	Combinations: []Combination{{IDs: []int{5, 9}, MinimumDriver: "510"}},
}

// fourSlices is the geometry of the A30.
var fourSlices = &Geometry{
	Name: "4 slices", MemorySlices: 4, ComputeSlices: 4,
	Profiles: []Profile{
		{ID: 0, ComputeSlices: 4, MemorySlices: 4, Starts: []int{0}, Max: 1},
		{ID: 5, ComputeSlices: 2, MemorySlices: 2, Starts: []int{0, 2}, Max: 2},
		{ID: 6, ComputeSlices: 2, MemorySlices: 2, Starts: []int{0, 2}, Max: 1, Suffix: "+me", Media: true},
		{ID: 14, ComputeSlices: 1, MemorySlices: 1, Starts: []int{0, 1, 2, 3}, Max: 4},
		{ID: 21, ComputeSlices: 1, MemorySlices: 1, Starts: []int{0, 1, 2, 3}, Max: 1, Suffix: "+me", Media: true},
	},
}

// twelveSlices is the geometry of the RTX PRO 6000 Blackwell.
var twelveSlices = &Geometry{
	Name: "12 slices", MemorySlices: 12, ComputeSlices: 4,
	Profiles: []Profile{
		{ID: 0, ComputeSlices: 4, MemorySlices: 12, Starts: []int{0}, Max: 1},
		{ID: 32, ComputeSlices: 4, MemorySlices: 12, Starts: []int{0}, Max: 1, Suffix: "+gfx", Graphics: true},
		{ID: 5, ComputeSlices: 2, MemorySlices: 6, Starts: []int{0, 6}, Max: 2},
		{ID: 35, ComputeSlices: 2, MemorySlices: 6, Starts: []int{0, 6}, Max: 2, Suffix: "+gfx", Graphics: true},
		{ID: 66, ComputeSlices: 2, MemorySlices: 6, Starts: []int{0, 6}, Max: 2, Suffix: "-me", NoMedia: true},
		{ID: 64, ComputeSlices: 2, MemorySlices: 6, Starts: []int{0, 6}, Max: 1, Suffix: "+me.all", Media: true, AllMedia: true},
		{ID: 14, ComputeSlices: 1, MemorySlices: 3, Starts: []int{0, 3, 6, 9}, Max: 4},
		{ID: 47, ComputeSlices: 1, MemorySlices: 3, Starts: []int{0, 3, 6, 9}, Max: 4, Suffix: "+gfx", Graphics: true},
		{ID: 67, ComputeSlices: 1, MemorySlices: 3, Starts: []int{0, 3, 6, 9}, Max: 4, Suffix: "-me", NoMedia: true},
		{ID: 21, ComputeSlices: 1, MemorySlices: 3, Starts: []int{0, 3, 6, 9}, Max: 1, Suffix: "+me", Media: true},
		{ID: 65, ComputeSlices: 1, MemorySlices: 3, Starts: []int{0, 3, 6, 9}, Max: 1, Suffix: "+me.all", Media: true, AllMedia: true},
	},
}

// Geometries returns every geometry that a model of the catalogue has.
func Geometries() []Geometry {
	var out []Geometry
	for _, m := range models {
		if m.Geometry != nil && !slices.ContainsFunc(out, func(g Geometry) bool { return g.Name == m.Geometry.Name }) {
			out = append(out, *m.Geometry)
		}
	}
	return out
}

// ProfileNames returns the names that drivers give a profile of the model's geometry. It is one name, except for models whose
// total memory differs between drivers. The rule is go-nvlib's: the share of the memory, rounded to GiB.
func (m Model) ProfileNames(p Profile) []string {
	if m.Geometry == nil {
		return nil
	}
	var out []string
	for _, total := range m.MemoryGiB {
		if name := m.profileName(p, total); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ProfileNameSets returns the names of all profiles of the model's geometry, in its order: one list for each total memory that
// drivers report.
func (m Model) ProfileNameSets() [][]string {
	if m.Geometry == nil {
		return nil
	}
	var out [][]string
	for _, total := range m.MemoryGiB {
		var names []string
		for _, p := range m.Geometry.Profiles {
			names = append(names, m.profileName(p, total))
		}
		out = append(out, names)
	}
	return out
}

// profileName returns the name of a profile when the driver reports a total memory of so many GiB.
func (m Model) profileName(p Profile, total int) string {
	memoryGiB := (2*p.MemorySlices*total + m.Geometry.MemorySlices) / (2 * m.Geometry.MemorySlices)
	return fmt.Sprintf("%dg.%dgb%s", p.ComputeSlices, memoryGiB, p.Suffix)
}
