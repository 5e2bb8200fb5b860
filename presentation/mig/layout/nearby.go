package layout

import (
	"cmp"
	"slices"

	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// All returns every valid layout of a geometry, the empty one too, each once, in a fixed order.
func All(g catalogue.Geometry) []Multiset {
	seen := map[string]bool{}
	var out []Multiset
	walk(g, 0, make(Multiset, len(g.Profiles)), func(m Multiset) {
		key := m.key()
		if !seen[key] {
			seen[key] = true
			out = append(out, slices.Clone(m))
		}
	})
	slices.SortFunc(out, func(a, b Multiset) int { return slices.Compare(b, a) })
	return out
}

// walk goes over the memory slices and starts each profile that may start there, or none.
func walk(g catalogue.Geometry, slice int, counts Multiset, visit func(Multiset)) {
	if slice >= g.MemorySlices {
		if rule, _ := broken(g, counts); rule == "" {
			visit(counts)
		}
		return
	}
	walk(g, slice+1, counts, visit)
	for i, p := range g.Profiles {
		if counts[i] < p.Max && slices.Contains(p.Starts, slice) {
			counts[i]++
			walk(g, slice+p.MemorySlices, counts, visit)
			counts[i]--
		}
	}
}

func (m Multiset) key() string {
	out := make([]byte, len(m))
	for i, n := range m {
		out[i] = byte(n)
	}
	return string(out)
}

// Maximal returns the valid layouts to which no instance can be added.
func Maximal(g catalogue.Geometry) []Multiset { return maximal(All(g)) }

func maximal(all []Multiset) []Multiset {
	valid := make(map[string]bool, len(all))
	for _, m := range all {
		valid[m.key()] = true
	}
	// Whatever fits after more instances were added fits after the first of them too, so one more decides.
	return slices.DeleteFunc(slices.Clone(all), func(m Multiset) bool {
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

// nearbyCount is how many nearby layouts are told.
const nearbyCount = 2

func refuse(g catalogue.Geometry, want Multiset, rule, message string) *Impossible {
	all := All(g)
	out := &Impossible{Rule: rule, Message: message, Largest: largest(g, all, want)}
	near := slices.DeleteFunc(maximal(all), func(m Multiset) bool {
		return slices.Equal(m, out.Largest) || media(g, m) && !media(g, want)
	})
	slices.SortStableFunc(near, func(a, b Multiset) int {
		return cmp.Or(cmp.Compare(distance(g, a, want), distance(g, b, want)), cmp.Compare(a.Instances(), b.Instances()))
	})
	out.Nearby = near[:min(nearbyCount, len(near))]
	return out
}

// largest is the part of what is wanted that takes most memory, then most compute.
func largest(g catalogue.Geometry, all []Multiset, want Multiset) Multiset {
	best, bestMemory, bestCompute := make(Multiset, len(want)), 0, 0
	for _, m := range all {
		if !m.Within(want) {
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

// distance is how many memory slices belong to instances that one has and the other lacks.
func distance(g catalogue.Geometry, a, b Multiset) int {
	out := 0
	for i := range a {
		out += max(a[i]-b[i], b[i]-a[i]) * g.Profiles[i].MemorySlices
	}
	return out
}

func media(g catalogue.Geometry, m Multiset) bool {
	for i, n := range m {
		if n > 0 && g.Profiles[i].Media {
			return true
		}
	}
	return false
}
