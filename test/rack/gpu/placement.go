package gpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// errLayout is the error of a layout that the driver cannot create.
var errLayout = errors.New("insufficient resources")

// Place returns instances for the wanted number of each profile, ordered by their start. It returns an error when they do
// not fit.
func (m Model) Place(wanted map[string]int) ([]Instance, error) {
	var profiles []Profile
	compute, media := 0, 0
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		profile, ok := m.Profile(name)
		if !ok {
			return nil, fmt.Errorf("%w: %s has no profile %s: it has %s", errLayout, m.Product, name, m.profileNames())
		}
		if wanted[name] > profile.Max {
			return nil, fmt.Errorf("%w: %d instances of %s, at most %d fit", errLayout, wanted[name], name, profile.Max)
		}
		profiles = append(profiles, slices.Repeat([]Profile{profile}, wanted[name])...)
		compute += profile.Compute * wanted[name]
		if profile.Media {
			media += wanted[name]
		}
	}
	if compute > computeSlices || media > 1 {
		return nil, fmt.Errorf("%w: %d of %d compute slices, %d of 1 set of media engines", errLayout, compute, computeSlices, media)
	}
	// The large ones first: they have the fewest places.
	slices.SortStableFunc(profiles, func(a, b Profile) int { return b.Slots - a.Slots })
	placed, ok := placeInstances(profiles, 0)
	if !ok {
		return nil, fmt.Errorf("%w: no placement of %v", errLayout, wanted)
	}
	slices.SortFunc(placed, func(a, b Instance) int { return a.Start - b.Start })
	return placed, nil
}

// placeInstances places the profiles in memory slots that are free. taken has a bit for each slot.
func placeInstances(profiles []Profile, taken uint) ([]Instance, bool) {
	if len(profiles) == 0 {
		return nil, true
	}
	first := profiles[0]
	for _, start := range first.Starts {
		slots := (uint(1)<<first.Slots - 1) << start
		if taken&slots != 0 {
			continue
		}
		if rest, ok := placeInstances(profiles[1:], taken|slots); ok {
			return append(rest, Instance{Profile: first, Start: start}), true
		}
	}
	return nil, false
}

func (m Model) profileNames() string {
	var out []string
	for _, profile := range m.Profiles {
		out = append(out, profile.Name)
	}
	return strings.Join(out, ", ")
}
