package mig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// nodeLayout says how each GPU of a node is partitioned.
type nodeLayout struct {
	// names of the geometry's profiles, in its order, as the NodeType spells them.
	names []string
	// driverNames are, for each profile, all names that drivers give it.
	driverNames [][]string
	// writtenNames are the names that the NodeType uses.
	writtenNames []string
	// gpus has the layout of each GPU by its index; nil: the GPU is not partitioned.
	gpus []layout.Counts
}

// parseNodeLayout reads the layout of the NodeType. It refuses a layout that no GPU of the model can have, or that the strategy
// does not allow.
func parseNodeLayout(r spec.Request, migSpec v1alpha1.MIGSpec, model catalogue.Model) (nodeLayout, error) {
	out := nodeLayout{gpus: make([]layout.Counts, r.GPU.Count)}
	if model.Geometry == nil {
		return out, nil
	}
	for _, p := range model.Geometry.Profiles {
		driverNames := model.ProfileNames(p)
		out.names, out.driverNames = append(out.names, driverNames[0]), append(out.driverNames, driverNames)
	}
	for i, entry := range migSpec.Layout {
		field := fmt.Sprintf("%s.layout[%d]", layoutParent(r), i)
		counts, err := out.readProfiles(field, entry.Profiles, model)
		if err != nil {
			return nodeLayout{}, err
		}
		if err := out.checkLayout(field, counts, model, nvidia.DriverVersion(r)); err != nil {
			return nodeLayout{}, err
		}
		if err := out.assign(field, entry.GPUs, counts); err != nil {
			return nodeLayout{}, err
		}
	}
	if err := out.checkProfileNames(layoutParent(r), model); err != nil {
		return nodeLayout{}, err
	}
	if out.instanceCount() == 0 && migSpec.Strategy != wellknown.MIGStrategyNone {
		return nodeLayout{}, spec.Invalid(spec.PresentationField("mig.strategy"), "mig/layout", "it is %s, and mig.layout has no profiles: say how the GPUs are partitioned", migSpec.Strategy)
	}
	if migSpec.Strategy == wellknown.MIGStrategySingle && migSpec.Advertise != v1alpha1.AdvertiseDRA {
		return out, out.checkSingleStrategy()
	}
	return out, nil
}

// layoutParent returns the field of the presentation that has the layout: mig or dra.
func layoutParent(r spec.Request) string { return strings.ToLower(string(r.GPU.Presentation.Mode)) }

// readProfiles counts the profiles of an entry. It accepts every name that a driver gives a profile.
func (l *nodeLayout) readProfiles(field string, profiles map[string]int32, model catalogue.Model) (layout.Counts, error) {
	counts := make(layout.Counts, len(l.names))
	for _, writtenName := range slices.Sorted(maps.Keys(profiles)) {
		name, err := layout.ParseProfileName(writtenName)
		if err != nil {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-name", "%v; %s has %s", err, model.Name, strings.Join(l.names, ", "))
		}
		if !name.IsGPUInstance() {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/compute-instance", "%s is a part of a GPU instance, which is never advertised: ask for %dg.%dgb", writtenName, name.Slices, name.GiB)
		}
		at := slices.IndexFunc(l.driverNames, func(driverNames []string) bool { return slices.Contains(driverNames, name.String()) })
		if at < 0 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile", "%s has no profile %s; it has %s", model.Name, writtenName, strings.Join(l.names, ", "))
		}
		if profiles[writtenName] < 1 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-count", "%s is %d: say how many of them each GPU has, or remove it", writtenName, profiles[writtenName])
		}
		l.names[at], l.writtenNames = name.String(), append(l.writtenNames, name.String())
		counts[at] += int(profiles[writtenName])
	}
	if counts.Total() == 0 {
		return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/layout", "it is empty: a GPU in MIG mode without instances is advertised by nobody")
	}
	return counts, nil
}

// checkLayout refuses a layout that one GPU cannot have, or that its driver cannot create.
func (l *nodeLayout) checkLayout(field string, counts layout.Counts, model catalogue.Model, driver string) error {
	if err := l.checkPlacement(field, counts, model); err != nil {
		return err
	}
	if err := l.checkGraphics(field, counts, model); err != nil {
		return err
	}
	return l.checkDriver(field, counts, model, driver)
}

// checkPlacement refuses a layout that does not fit on one GPU.
func (l *nodeLayout) checkPlacement(field string, counts layout.Counts, model catalogue.Model) error {
	_, err := layout.Place(*model.Geometry, counts)
	var impossible *layout.ImpossibleError
	if errors.As(err, &impossible) {
		message := fmt.Sprintf("%s does not fit on one %s: %s. Of these fits %s", counts.Format(l.names), model.Name, impossible.Message, impossible.Largest.Format(l.names))
		for i, near := range impossible.Nearby {
			message += []string{"; near it are ", " and "}[min(i, 1)] + near.Format(l.names)
		}
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/"+impossible.Rule, "%s", message)
	}
	if err != nil {
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/layout", "%v", err)
	}
	return nil
}

// checkGraphics refuses instances with and without graphics on one GPU, because no document says whether that works.
func (l *nodeLayout) checkGraphics(field string, counts layout.Counts, model catalogue.Model) error {
	with, without := "", ""
	for i, p := range model.Geometry.Profiles {
		switch {
		case counts[i] == 0:
		case p.Graphics:
			with = l.names[i]
		default:
			without = l.names[i]
		}
	}
	if with != "" && without != "" {
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/graphics", "it has %s and %s: whether instances with and without graphics share a GPU is not documented; use one kind on each GPU", with, without)
	}
	return nil
}

// checkDriver refuses profiles, and combinations of profiles, that need a newer driver.
func (l *nodeLayout) checkDriver(field string, counts layout.Counts, model catalogue.Model, driver string) error {
	for i, p := range model.Geometry.Profiles {
		if older, _ := spec.IsOlderVersion(driver, p.MinimumDriver); counts[i] > 0 && older {
			return driverTooOld(field, l.names[i], p.MinimumDriver, driver)
		}
	}
	for _, combination := range model.Geometry.Combinations {
		has, names := true, []string(nil)
		for i, p := range model.Geometry.Profiles {
			if slices.Contains(combination.IDs, p.ID) {
				has, names = has && counts[i] > 0, append(names, l.names[i])
			}
		}
		if older, _ := spec.IsOlderVersion(driver, combination.MinimumDriver); has && older {
			return driverTooOld(field, strings.Join(names, " beside "), combination.MinimumDriver, driver)
		}
	}
	return nil
}

func driverTooOld(field, what, minimum, driver string) error {
	return spec.Refuse(spec.PresentationField(field+".profiles"), v1alpha1.ReasonDriverTooOld, "mig/profile-driver", "%s needs driver %s or newer, and the OSImage's is %s", what, minimum, driver)
}

// assign gives the layout to the GPUs with these indexes, or to all GPUs when there are none.
func (l *nodeLayout) assign(field string, gpus []int32, counts layout.Counts) error {
	if len(gpus) == 0 {
		for i := range l.gpus {
			gpus = append(gpus, int32(i))
		}
	}
	for _, g := range gpus {
		if g < 0 || int(g) >= len(l.gpus) {
			return spec.Invalid(spec.PresentationField(field+".gpus"), "mig/gpu-index", "it names GPU %d: gpus go from 0 to %d", g, len(l.gpus)-1)
		}
		if l.gpus[g] != nil {
			return spec.Invalid(spec.PresentationField(field), "mig/gpu-twice", "it gives GPU %d a layout, and that GPU has one already: name each GPU once, and leave gpus out only in the sole entry", g)
		}
		l.gpus[g] = counts
	}
	return nil
}

// checkSingleStrategy refuses a layout with which the device plugin of MIG strategy single advertises nothing: a GPU that is not
// partitioned, or instances of different profiles.
func (l *nodeLayout) checkSingleStrategy() error {
	profile := -1
	for g, counts := range l.gpus {
		if counts == nil {
			return spec.Invalid(spec.PresentationField("mig.strategy"), "mig/single", "it is single, and GPU %d has no layout: the device plugin then advertises no GPU at all; partition it too, or choose mixed", g)
		}
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if profile >= 0 && profile != i {
				return spec.Invalid(spec.PresentationField("mig.strategy"), "mig/single", "it is single, and mig.layout has %s and %s: the device plugin then advertises no GPU at all; use one profile on every GPU, or choose mixed", l.names[profile], l.names[i])
			}
			profile = i
		}
	}
	return nil
}

func (l *nodeLayout) instanceCount() int {
	out := 0
	for _, counts := range l.gpus {
		out += counts.Total()
	}
	return out
}

// checkProfileNames refuses names of profiles that no single driver uses. nvidia-mig-parted would not find some of them on any
// GPU.
func (l *nodeLayout) checkProfileNames(layoutParent string, model catalogue.Model) error {
	nameSets := model.ProfileNameSets()
	if len(l.writtenNames) == 0 || len(l.matchingNameSets(nameSets)) > 0 {
		return nil
	}
	var all []string
	for _, names := range nameSets {
		all = append(all, strings.Join(names, ", "))
	}
	return spec.Invalid(spec.PresentationField(layoutParent+".layout"), "mig/profile-names", "it has %s, and no driver of %s has all of these profiles: they are %s; take the names of one driver, as nvidia-smi mig -lgip lists them",
		l.profileList(), model.Name, strings.Join(all, " or "))
}

// matchingNameSets returns those of the sets of profile names, one for each driver, that have every name in the NodeType.
func (l *nodeLayout) matchingNameSets(nameSets [][]string) [][]string {
	var out [][]string
	for _, names := range nameSets {
		if !slices.ContainsFunc(l.writtenNames, func(name string) bool { return !slices.Contains(names, name) }) {
			out = append(out, names)
		}
	}
	return out
}

// nameWarnings returns a warning when only some drivers know the names in the NodeType.
func (l *nodeLayout) nameWarnings(model catalogue.Model) []v1alpha1.PlanWarning {
	nameSets := model.ProfileNameSets()
	if len(l.matchingNameSets(nameSets)) == len(nameSets) {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unverified/mig-names", Message: "drivers disagree about the memory of " + model.Name + ", and so about the names of its profiles, of which the NodeType has " +
		l.profileList() + ": compare with nvidia-smi mig -lgip on the first node, which cannot be partitioned when its driver has other names"}}
}

// profileList returns the names in the NodeType, each once, as a list for messages.
func (l *nodeLayout) profileList() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(l.writtenNames))), ", ")
}
