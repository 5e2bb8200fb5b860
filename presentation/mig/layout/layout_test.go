package layout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// others are geometries that no GPU has, so that nothing here is right for real ones only.
var others = []catalogue.Geometry{
	{Name: "one whose slices suffice and whose starts do not", MemorySlices: 4, ComputeSlices: 4, Profiles: []catalogue.Profile{
		{ID: 0, ComputeSlices: 1, MemorySlices: 2, Starts: []int{1}, Max: 1},
		{ID: 1, ComputeSlices: 1, MemorySlices: 2, Starts: []int{0, 2}, Max: 2},
	}},
}

// geometry of the catalogue.
func geometry(t *testing.T, name string) catalogue.Geometry {
	t.Helper()
	for _, g := range catalogue.Geometries() {
		if g.Name == name {
			return g
		}
	}
	t.Fatalf("the catalogue has no geometry of %s", name)
	return catalogue.Geometry{}
}

func geometries() []catalogue.Geometry { return append(catalogue.Geometries(), others...) }

// bruteForce tries every set of places, one place after the other in or out, and nothing cleverer.
func bruteForce(g catalogue.Geometry) map[string]bool {
	type placeRemaining struct{ profile, start int }
	var places []placeRemaining
	for i, p := range g.Profiles {
		for _, s := range p.Starts {
			places = append(places, placeRemaining{i, s})
		}
	}
	found := map[string]bool{}
	owner := make([]bool, g.MemorySlices)
	counts := make(Counts, len(g.Profiles))
	var try func(next, compute, media int)
	try = func(next, compute, media int) {
		if next == len(places) {
			if mediaSuffice(g, counts) {
				found[counts.key()] = true
			}
			return
		}
		try(next+1, compute, media)
		p, s := g.Profiles[places[next].profile], places[next].start
		if p.Media {
			media++
		}
		if compute+p.ComputeSlices > g.ComputeSlices || media > 1 || counts[places[next].profile] == p.Max || slices.Contains(owner[s:s+p.MemorySlices], true) {
			return
		}
		for i := range p.MemorySlices {
			owner[s+i] = true
		}
		counts[places[next].profile]++
		try(next+1, compute+p.ComputeSlices, media)
		counts[places[next].profile]--
		for i := range p.MemorySlices {
			owner[s+i] = false
		}
	}
	try(0, 0, 0)
	return found
}

// mediaSuffice: whoever has all media engines has them alone.
func mediaSuffice(g catalogue.Geometry, m Counts) bool {
	with, all := 0, false
	for i, n := range m {
		if !g.Profiles[i].NoMedia {
			with += n
		}
		all = all || n > 0 && g.Profiles[i].AllMedia
	}
	return !all || with == 1
}

// everyMultiset visits all multisets with up to one instance more than a profile's maximum.
func everyMultiset(g catalogue.Geometry, visit func(Counts)) {
	m := make(Counts, len(g.Profiles))
	for {
		visit(m)
		i := 0
		for ; i < len(m); i++ {
			if m[i] <= g.Profiles[i].Max {
				m[i]++
				break
			}
			m[i] = 0
		}
		if i == len(m) {
			return
		}
	}
}

func TestForEveryGeometryExactlyTheLayoutsThatBruteForceFindsAreAccepted(t *testing.T) {
	for _, g := range geometries() {
		counts, accepted := bruteForce(g), 0
		everyMultiset(g, func(m Counts) {
			rule, _ := brokenRule(g, m)
			ok := false
			if rule == "" {
				_, ok = placeRemaining(g, slices.Clone(m), 0, make([]Placement, 0, m.Total()))
			}
			if ok != counts[m.key()] {
				t.Fatalf("%s: %v is accepted: %v, and brute force finds it: %v", g.Name, m, ok, counts[m.key()])
			}
			if ok {
				accepted++
			}
		})
		if accepted != len(counts) {
			t.Errorf("%s: %d layouts were accepted, brute force finds %d", g.Name, accepted, len(counts))
		}
		all := All(g)
		for _, m := range all {
			if !counts[m.key()] {
				t.Errorf("%s: %v is listed, and brute force does not find it", g.Name, m)
			}
		}
		if len(all) != len(counts) {
			t.Errorf("%s: %d layouts are listed, brute force finds %d", g.Name, len(all), len(counts))
		}
	}
}

func TestInstancesCanBeCreatedInTheOrderGivenEachAtItsLowestFreeStart(t *testing.T) {
	for _, g := range geometries() {
		for _, m := range All(g) {
			placed, err := Place(g, m)
			if err != nil {
				t.Fatal(err)
			}
			created := make(Counts, len(m))
			takenSlices := make([]bool, g.MemorySlices)
			for _, at := range placed {
				p := g.Profiles[at.Profile]
				free := slices.IndexFunc(p.Starts, func(s int) bool { return !slices.Contains(takenSlices[s:s+p.MemorySlices], true) })
				if free < 0 || p.Starts[free] != at.Start {
					t.Fatalf("%s: %v: the lowest free start of profile %d is not %d: %v", g.Name, m, p.ID, at.Start, placed)
				}
				for i := range p.MemorySlices {
					takenSlices[at.Start+i] = true
				}
				created[at.Profile]++
			}
			if !slices.Equal(created, m) {
				t.Fatalf("%s: %v was created for %v", g.Name, created, m)
			}
		}
	}
}

func TestTheLayoutsOfTheVendorsGuideAreValidAndItsCounterexamplesAreNot(t *testing.T) {
	g := geometry(t, "7 slices")
	index := map[string]int{"7": 0, "4": 1, "3": 2, "2": 3, "D": 4, "1": 5, "m": 6}
	read := func(s string) Counts {
		m := make(Counts, len(g.Profiles))
		for _, c := range s {
			m[index[string(c)]]++
		}
		return m
	}
	for _, s := range strings.Fields("43 33 421 4111 322 3211 31111 2221 1111111 DDDD DDD1 4DD 3DD m111111 7") {
		if _, err := Place(g, read(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for s, rule := range map[string]string{
		"331": RuleMemory, "341": RuleCompute, "422": RuleCompute, "71": RuleCompute, "DDDD1": RuleMemory, "11111111": RuleInstances, "mm": RuleInstances, "44": RuleInstances,
	} {
		_, err := Place(g, read(s))
		var impossible *ImpossibleError
		if !errors.As(err, &impossible) || impossible.Rule != rule {
			t.Errorf("%s: %v, want rule %s", s, err, rule)
		}
	}
	// Without the media extension and the instances of double memory.
	classic := g
	classic.Profiles = []catalogue.Profile{g.Profiles[0], g.Profiles[1], g.Profiles[2], g.Profiles[3], g.Profiles[5]}
	if n := len(Maximal(classic)); n != 12 {
		t.Errorf("there are %d full layouts of whole slices, want 12: %v", n, Maximal(classic))
	}
}

func TestOneInstanceHasTheMediaEnginesOfAGPUWhateverItsSize(t *testing.T) {
	var impossible *ImpossibleError
	if _, err := Place(geometry(t, "4 slices"), Counts{0, 0, 1, 0, 1}); !errors.As(err, &impossible) || impossible.Rule != RuleMedia {
		t.Errorf("2g.12gb+me beside 1g.6gb+me: %v", err)
	}
	pro := geometry(t, "12 slices")
	all, plain, without := Counts{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}, Counts{0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0}, Counts{0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0}
	if _, err := Place(pro, all); !errors.As(err, &impossible) || impossible.Rule != RuleMedia {
		t.Errorf("2g.48gb+me.all beside 1g.24gb: %v", err)
	}
	for _, fits := range []Counts{plain, without} {
		if _, err := Place(pro, fits); err != nil {
			t.Errorf("%v: %v", fits, err)
		}
	}
	if _, err := Place(others[0], Counts{1, 1}); !errors.As(err, &impossible) || impossible.Rule != RulePlacement {
		t.Errorf("slices that suffice and starts that do not: %v", err)
	}
}

func TestARefusalSaysWhatFits(t *testing.T) {
	g := geometry(t, "7 slices")
	names := []string{"7g", "4g", "3g", "2g", "1gD", "1g", "1g+me"}
	for _, tt := range []struct {
		counts           Counts
		largestPart      string
		nearby1, nearby2 string
	}{
		{Counts{0, 0, 2, 0, 0, 1, 0}, "{3g: 2}", "{3g: 1, 2g: 1, 1g: 2}", "{3g: 1, 1gD: 1, 1g: 2}"},
		{Counts{0, 0, 0, 0, 0, 8, 0}, "{1g: 7}", "{1gD: 1, 1g: 6}", "{2g: 1, 1g: 5}"},
		{Counts{1, 0, 0, 0, 0, 1, 0}, "{7g: 1}", "{4g: 1, 2g: 1, 1g: 1}", "{4g: 1, 1g: 3}"},
		{Counts{0, 0, 0, 0, 0, 0, 2}, "{1g+me: 1}", "{4g: 1, 2g: 1, 1g+me: 1}", "{4g: 1, 1g: 2, 1g+me: 1}"},
	} {
		_, err := Place(g, tt.counts)
		var impossible *ImpossibleError
		if !errors.As(err, &impossible) {
			t.Fatalf("%v: %v", tt.counts, err)
		}
		got := []string{impossible.Largest.Format(names)}
		for _, m := range impossible.Nearby {
			got = append(got, m.Format(names))
		}
		if diff := cmp.Diff([]string{tt.largestPart, tt.nearby1, tt.nearby2}, got); diff != "" {
			t.Errorf("%s: %s", tt.counts.Format(names), diff)
		}
	}
}

func TestWhatARefusalOffersFits(t *testing.T) {
	for _, g := range geometries() {
		full := Maximal(g)
		everyMultiset(g, func(m Counts) {
			if m.Total() > 3 { // Those that are far off say nothing more, and there are many.
				return
			}
			_, err := Place(g, m)
			var impossible *ImpossibleError
			if !errors.As(err, &impossible) {
				return
			}
			if _, err := Place(g, impossible.Largest); err != nil || !impossible.Largest.IsWithin(m) {
				t.Fatalf("%s: of %v is said to fit %v: %v", g.Name, m, impossible.Largest, err)
			}
			for _, near := range impossible.Nearby {
				if !slices.ContainsFunc(full, func(f Counts) bool { return slices.Equal(f, near) }) {
					t.Fatalf("%s: near %v is %v, which is no full layout", g.Name, m, near)
				}
			}
		})
	}
}

func BenchmarkPlace(b *testing.B) {
	g := catalogue.Geometries()[0]
	for b.Loop() {
		if _, err := Place(g, Counts{0, 0, 1, 0, 0, 4, 0}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefusal(b *testing.B) {
	g := catalogue.Geometries()[0]
	for b.Loop() {
		if _, err := Place(g, Counts{0, 0, 2, 0, 0, 1, 0}); err == nil {
			b.Fatal("an impossible layout was accepted")
		}
	}
}
