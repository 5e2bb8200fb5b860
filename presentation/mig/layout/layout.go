package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// Counts has the number of instances of each profile that one GPU has, in the order of the geometry's profiles.
type Counts []int

// Placement is the position of an instance on the GPU.
type Placement struct {
	// Profile is the index of the instance's profile among the geometry's.
	Profile int
	// Start is the first memory slice of the instance.
	Start int
}

// Rules that a layout can break.
const (
	// RuleInstances: a profile has more instances than one GPU can have.
	RuleInstances = "instances"
	// RuleMedia: more instances have media engines than one GPU allows.
	RuleMedia = "media-extension"
	// RuleCompute: the instances need more compute slices than the GPU has.
	RuleCompute = "compute-slices"
	// RuleMemory: the instances need more memory slices than the GPU has.
	RuleMemory = "memory-slices"
	// RulePlacement: there are enough slices, and no choice of starts avoids an overlap.
	RulePlacement = "placement"
)

// ImpossibleError says which rule a layout breaks, and which layouts would fit.
type ImpossibleError struct {
	// Rule that is broken.
	Rule string
	// Message says what was requested and what the GPU has.
	Message string
	// Largest is the largest part of the request that fits.
	Largest Counts
	// Nearby are up to two full layouts that are closest to the request.
	Nearby []Counts
}

// Error returns the message and the rule.
func (i *ImpossibleError) Error() string { return i.Message + " (rule " + i.Rule + ")" }

// Place returns the position of each instance. The order is that of creation: each instance is created at the lowest start that
// is free for it. The order matters, because a large instance that is created first at its lowest start can block those that
// follow. The error is an *ImpossibleError.
func Place(g catalogue.Geometry, counts Counts) ([]Placement, error) {
	if rule, message := brokenRule(g, counts); rule != "" {
		return nil, newImpossibleError(g, counts, rule, message)
	}
	left := slices.Clone(counts)
	placed, ok := placeRemaining(g, left, 0, make([]Placement, 0, counts.Total()))
	if !ok {
		return nil, newImpossibleError(g, counts, RulePlacement, "there are slices enough, and no choice of starts without an overlap")
	}
	return placed, nil
}

// brokenRule checks the rules that need no search. It returns an empty rule when none is broken.
func brokenRule(g catalogue.Geometry, counts Counts) (rule, message string) {
	media, all, others, compute, memory := 0, 0, 0, 0, 0
	for i, n := range counts {
		p := g.Profiles[i]
		if n > p.Max {
			return RuleInstances, fmt.Sprintf("a GPU can have %d instances of %dg%s with %d/%d of the memory, not %d", p.Max, p.ComputeSlices, p.Suffix, p.MemorySlices, g.MemorySlices, n)
		}
		if p.Media {
			media += n
		}
		if p.AllMedia {
			all += n
		} else if !p.NoMedia {
			others += n
		}
		compute += n * p.ComputeSlices
		memory += n * p.MemorySlices
	}
	switch {
	case media > 1:
		return RuleMedia, fmt.Sprintf("one instance can have the media engines, not %d", media)
	case all > 0 && others > 0:
		return RuleMedia, fmt.Sprintf("an instance with +me.all has all media engines, and %d others would have some: they must be profiles with -me", others)
	case compute > g.ComputeSlices:
		return RuleCompute, fmt.Sprintf("the instances need %d compute slices and the GPU has %d", compute, g.ComputeSlices)
	case memory > g.MemorySlices:
		return RuleMemory, fmt.Sprintf("the instances need %d memory slices and the GPU has %d", memory, g.MemorySlices)
	}
	return "", ""
}

// placeRemaining tries every order of the instances that are left. takenSlices has a bit for each memory slice.
func placeRemaining(g catalogue.Geometry, left Counts, takenSlices uint64, placed []Placement) ([]Placement, bool) {
	if len(placed) == cap(placed) {
		return placed, true
	}
	for i, p := range g.Profiles {
		if left[i] == 0 {
			continue
		}
		start, ok := lowestFreeStart(p, takenSlices)
		if !ok {
			continue
		}
		left[i]--
		if out, ok := placeRemaining(g, left, takenSlices|sliceMask(p, start), append(placed, Placement{Profile: i, Start: start})); ok {
			return out, true
		}
		left[i]++
	}
	return nil, false
}

func lowestFreeStart(p catalogue.Profile, takenSlices uint64) (int, bool) {
	for _, s := range p.Starts {
		if takenSlices&sliceMask(p, s) == 0 {
			return s, true
		}
	}
	return 0, false
}

func sliceMask(p catalogue.Profile, start int) uint64 { return (1<<p.MemorySlices - 1) << start }

// Total returns the number of instances.
func (m Counts) Total() int {
	out := 0
	for _, n := range m {
		out += n
	}
	return out
}

// IsWithin reports whether the other layout has at least as many instances of every profile.
func (m Counts) IsWithin(other Counts) bool {
	for i, n := range m {
		if n > other[i] {
			return false
		}
	}
	return true
}

// Format writes the counts with the names of the profiles: {3g.40gb: 2, 1g.10gb: 1}.
func (m Counts) Format(names []string) string {
	var parts []string
	for i, n := range m {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", names[i], n))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// All returns every valid layout of a geometry, including the empty one, each once and in a fixed order.
func All(g catalogue.Geometry) []Counts {
	seen := map[string]bool{}
	var out []Counts
	visitLayouts(g, 0, make(Counts, len(g.Profiles)), func(m Counts) {
		key := m.key()
		if !seen[key] {
			seen[key] = true
			out = append(out, slices.Clone(m))
		}
	})
	slices.SortFunc(out, func(a, b Counts) int { return slices.Compare(b, a) })
	return out
}

// visitLayouts goes through the memory slices. At each slice it starts every profile that may start there, and also no profile.
func visitLayouts(g catalogue.Geometry, slice int, counts Counts, visit func(Counts)) {
	if slice >= g.MemorySlices {
		if rule, _ := brokenRule(g, counts); rule == "" {
			visit(counts)
		}
		return
	}
	visitLayouts(g, slice+1, counts, visit)
	for i, p := range g.Profiles {
		if counts[i] < p.Max && slices.Contains(p.Starts, slice) {
			counts[i]++
			visitLayouts(g, slice+p.MemorySlices, counts, visit)
			counts[i]--
		}
	}
}

func (m Counts) key() string {
	out := make([]byte, len(m))
	for i, n := range m {
		out[i] = byte(n)
	}
	return string(out)
}

// Maximal returns the valid layouts to which no instance can be added.
func Maximal(g catalogue.Geometry) []Counts { return maximal(All(g)) }

func maximal(all []Counts) []Counts {
	valid := make(map[string]bool, len(all))
	for _, m := range all {
		valid[m.key()] = true
	}
	// Whatever fits after more instances were added fits after the first of them too, so one more decides.
	return slices.DeleteFunc(slices.Clone(all), func(m Counts) bool {
		more := slices.Clone(m)
		for i := range more {
			more[i]++
			if valid[more.key()] {
				return true
			}
			more[i]--
		}
		return false
	})
}

// maxNearby is the number of nearby layouts that an error names.
const maxNearby = 2

func newImpossibleError(g catalogue.Geometry, counts Counts, rule, message string) *ImpossibleError {
	all := All(g)
	out := &ImpossibleError{Rule: rule, Message: message, Largest: largestPart(g, all, counts)}
	near := slices.DeleteFunc(maximal(all), func(m Counts) bool {
		return slices.Equal(m, out.Largest) || hasMedia(g, m) && !hasMedia(g, counts)
	})
	slices.SortStableFunc(near, func(a, b Counts) int {
		return cmp.Or(cmp.Compare(distance(g, a, counts), distance(g, b, counts)), cmp.Compare(a.Total(), b.Total()))
	})
	out.Nearby = near[:min(maxNearby, len(near))]
	return out
}

// largestPart returns the part of the request that takes most memory, and among equal ones most compute.
func largestPart(g catalogue.Geometry, all []Counts, counts Counts) Counts {
	best, bestMemory, bestCompute := make(Counts, len(counts)), 0, 0
	for _, m := range all {
		if !m.IsWithin(counts) {
			continue
		}
		memory, compute := 0, 0
		for i, n := range m {
			memory += n * g.Profiles[i].MemorySlices
			compute += n * g.Profiles[i].ComputeSlices
		}
		if memory > bestMemory || memory == bestMemory && compute > bestCompute {
			best, bestMemory, bestCompute = m, memory, compute
		}
	}
	return best
}

// distance returns the number of memory slices of the instances that only one of the two layouts has.
func distance(g catalogue.Geometry, a, b Counts) int {
	out := 0
	for i := range a {
		out += max(a[i]-b[i], b[i]-a[i]) * g.Profiles[i].MemorySlices
	}
	return out
}

// hasMedia reports whether one of the instances has the media engines.
func hasMedia(g catalogue.Geometry, m Counts) bool {
	for i, n := range m {
		if n > 0 && g.Profiles[i].Media {
			return true
		}
	}
	return false
}
