package mig

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
)

// Layouts is what `-o json` prints.
type Layouts struct {
	GPU string `json:"gpu"`
	// ComputeSlices and MemorySlices of the whole GPU.
	ComputeSlices int `json:"computeSlices"`
	MemorySlices  int `json:"memorySlices"`
	// Profiles of the model, from the largest.
	Profiles []Profile `json:"profiles"`
	// Layouts to which no instance can be added.
	Layouts []Layout `json:"layouts"`
}

// Profile is a size of instance.
type Profile struct {
	Name string `json:"name"`
	// OtherNames are names of the profile in other drivers.
	OtherNames    []string `json:"otherNames,omitempty"`
	ComputeSlices int      `json:"computeSlices"`
	MemorySlices  int      `json:"memorySlices"`
	// Starts are the memory slices at which an instance can start.
	Starts []int `json:"starts"`
	// Max instances on one GPU.
	Max int `json:"max"`
	// MinimumDriver that knows it; absent: as old as the model's.
	MinimumDriver string `json:"minimumDriver,omitempty"`
}

// Layout is one way to partition a GPU.
type Layout struct {
	// Profiles and how many of each.
	Profiles map[string]int `json:"profiles"`
	// Placements in an order in which the instances can be created.
	Placements []Placement `json:"placements"`

	text string
}

// Placement is an instance and its position on the GPU.
type Placement struct {
	Profile string `json:"profile"`
	// Start and Size in memory slices.
	Start int `json:"start"`
	Size  int `json:"size"`
}

// FindLayouts returns the layouts of a model that have at least the wanted instances. It returns an error that names the possible values
// for an unknown model, a model that cannot be partitioned, an unknown profile, and instances that do not fit together.
func FindLayouts(name string, wanted []instanceCount) (Layouts, error) {
	model, err := catalogue.Lookup(v1alpha1.VendorNVIDIA, name)
	if err != nil {
		return Layouts{}, err
	}
	if model.Geometry == nil {
		return Layouts{}, fmt.Errorf("%s cannot be partitioned; these can: %s", name, strings.Join(partitionableModels(), ", "))
	}
	g := *model.Geometry
	out := Layouts{GPU: model.Name, ComputeSlices: g.ComputeSlices, MemorySlices: g.MemorySlices, Layouts: []Layout{}}
	var names []string
	for _, p := range g.Profiles {
		variants := model.ProfileNames(p)
		names = append(names, variants[0])
		out.Profiles = append(out.Profiles, Profile{
			Name: variants[0], OtherNames: variants[1:], ComputeSlices: p.ComputeSlices, MemorySlices: p.MemorySlices,
			Starts: p.Starts, Max: p.Max, MinimumDriver: p.MinimumDriver,
		})
	}
	least, err := out.countInstances(wanted)
	if err != nil {
		return Layouts{}, err
	}
	if err := refusal(g, least, names, name); err != nil {
		return Layouts{}, err
	}
	for _, m := range layout.Maximal(g) {
		if !least.IsWithin(m) {
			continue
		}
		placed, err := layout.Place(g, m)
		if err != nil {
			return Layouts{}, fmt.Errorf("place %s on %s: %w", m.Format(names), name, err)
		}
		out.Layouts = append(out.Layouts, out.newLayout(g, m, placed, names))
	}
	return out, nil
}

func partitionableModels() []string {
	var out []string
	for _, m := range catalogue.Models() {
		if m.Geometry != nil {
			out = append(out, m.Name)
		}
	}
	return out
}

// countInstances counts the wanted instances by profile. It accepts every name that drivers use for a profile.
func (l Layouts) countInstances(wanted []instanceCount) (layout.Counts, error) {
	out := make(layout.Counts, len(l.Profiles))
	for _, w := range wanted {
		at := slices.IndexFunc(l.Profiles, func(p Profile) bool {
			return p.Name == w.profile || slices.Contains(p.OtherNames, w.profile)
		})
		if at < 0 {
			var known []string
			for _, p := range l.Profiles {
				known = append(known, p.Name)
			}
			return nil, fmt.Errorf("%s has no MIG profile %q; it has %s", l.GPU, w.profile, strings.Join(known, ", "))
		}
		out[at] += w.count
	}
	return out, nil
}

// refusal returns an error that explains why no layout has the instances; nil: a layout has them.
func refusal(g catalogue.Geometry, least layout.Counts, names []string, model string) error {
	_, err := layout.Place(g, least)
	var impossible *layout.ImpossibleError
	if !errors.As(err, &impossible) {
		return err
	}
	text := fmt.Sprintf("%s does not fit on one %s: %s (rule mig/%s); of these fits %s", least.Format(names), model, impossible.Message, impossible.Rule, impossible.Largest.Format(names))
	for i, near := range impossible.Nearby {
		text += []string{"; near it are ", " and "}[min(i, 1)] + near.Format(names)
	}
	return errors.New(text)
}

func (l Layouts) newLayout(g catalogue.Geometry, m layout.Counts, placed []layout.Placement, names []string) Layout {
	out := Layout{Profiles: map[string]int{}, text: strings.Trim(m.Format(names), "{}")}
	for i, n := range m {
		if n > 0 {
			out.Profiles[names[i]] = n
		}
	}
	for _, p := range placed {
		out.Placements = append(out.Placements, Placement{Profile: names[p.Profile], Start: p.Start, Size: g.Profiles[p.Profile].MemorySlices})
	}
	return out
}

func (l Layouts) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %d compute slices, %d memory slices; %d layouts\n\n", l.GPU, l.ComputeSlices, l.MemorySlices, len(l.Layouts)); err != nil {
		return err
	}
	table := [][]string{{"LAYOUT", "PLACEMENTS"}}
	for _, one := range l.Layouts {
		var placed []string
		for _, p := range one.Placements {
			placed = append(placed, fmt.Sprintf("%s@%d", p.Profile, p.Start))
		}
		table = append(table, []string{one.text, strings.Join(placed, " ")})
	}
	if err := cli.WriteTable(w, table); err != nil {
		return err
	}
	return l.writeNotes(w)
}

// writeNotes writes which profiles need a newer driver, and which have several names.
func (l Layouts) writeNotes(w io.Writer) error {
	for _, p := range l.Profiles {
		if p.MinimumDriver != "" {
			if _, err := fmt.Fprintf(w, "\n%s needs driver %s or newer.", p.Name, p.MinimumDriver); err != nil {
				return err
			}
		}
		if len(p.OtherNames) > 0 {
			if _, err := fmt.Fprintf(w, "\n%s is called %s by some drivers.", p.Name, strings.Join(p.OtherNames, " or ")); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
