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

// nodeLayout is how each GPU of a node is partitioned.
type nodeLayout struct {
	// names of the geometry's profiles, in its order, as the NodeType spells them.
	names []string
	// driverNames are all names that drivers give them.
	driverNames [][]string
	// writtenNames are the names in the NodeType.
	writtenNames []string
	// gpus by index; nil: the GPU is whole.
	gpus []layout.Counts
}

// newNodeLayout reads the layout and refuses what no GPU of the model can be, or what the strategy does not allow.
func newNodeLayout(r spec.Request, migSpec v1alpha1.MIGSpec, model catalogue.Model) (nodeLayout, error) {
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
		if err := out.check(field, counts, model, nvidia.DriverVersion(r)); err != nil {
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

// layoutParent of the presentation that has the layout.
func layoutParent(r spec.Request) string { return strings.ToLower(string(r.GPU.Presentation.Mode)) }

// readProfiles counts the profiles of an entry. Names that drivers give the same profile are accepted.
func (c *nodeLayout) readProfiles(field string, profiles map[string]int32, model catalogue.Model) (layout.Counts, error) {
	counts := make(layout.Counts, len(c.names))
	for _, writtenNames := range slices.Sorted(maps.Keys(profiles)) {
		name, err := layout.ParseProfileName(writtenNames)
		if err != nil {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-name", "%v; %s has %s", err, model.Name, strings.Join(c.names, ", "))
		}
		if !name.IsGPUInstance() {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/compute-instance", "%s is a part of a GPU instance, which is never advertised: ask for %dg.%dgb", writtenNames, name.Slices, name.GiB)
		}
		at := slices.IndexFunc(c.driverNames, func(driverNames []string) bool { return slices.Contains(driverNames, name.String()) })
		if at < 0 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile", "%s has no profile %s; it has %s", model.Name, writtenNames, strings.Join(c.names, ", "))
		}
		if profiles[writtenNames] < 1 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-count", "%s is %d: say how many of them each GPU has, or remove it", writtenNames, profiles[writtenNames])
		}
		c.names[at], c.writtenNames = name.String(), append(c.writtenNames, name.String())
		counts[at] += int(profiles[writtenNames])
	}
	if counts.Total() == 0 {
		return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/layout", "it is empty: a GPU in MIG mode without instances is advertised by nobody")
	}
	return counts, nil
}

// check refuses what one GPU cannot be, or its driver cannot make.
func (c *nodeLayout) check(field string, counts layout.Counts, model catalogue.Model, driver string) error {
	if err := c.checkPlacement(field, counts, model); err != nil {
		return err
	}
	if err := c.checkGraphics(field, counts, model); err != nil {
		return err
	}
	return c.checkDriver(field, counts, model, driver)
}

// checkPlacement refuses what does not fit on one GPU.
func (c *nodeLayout) checkPlacement(field string, counts layout.Counts, model catalogue.Model) error {
	_, err := layout.Place(*model.Geometry, counts)
	var impossible *layout.ImpossibleError
	if errors.As(err, &impossible) {
		message := fmt.Sprintf("%s does not fit on one %s: %s. Of these fits %s", counts.Format(c.names), model.Name, impossible.Message, impossible.Largest.Format(c.names))
		for i, near := range impossible.Nearby {
			message += []string{"; near it are ", " and "}[min(i, 1)] + near.Format(c.names)
		}
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/"+impossible.Rule, "%s", message)
	}
	if err != nil {
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/layout", "%v", err)
	}
	return nil
}

// checkGraphics refuses instances with and without graphics on one GPU: whether that works is not documented.
func (c *nodeLayout) checkGraphics(field string, counts layout.Counts, model catalogue.Model) error {
	with, without := "", ""
	for i, p := range model.Geometry.Profiles {
		switch {
		case counts[i] == 0:
		case p.Graphics:
			with = c.names[i]
		default:
			without = c.names[i]
		}
	}
	if with != "" && without != "" {
		return spec.Invalid(spec.PresentationField(field+".profiles"), "mig/graphics", "it has %s and %s: whether instances with and without graphics share a GPU is not documented; use one kind on each GPU", with, without)
	}
	return nil
}

// checkDriver refuses what the driver cannot make.
func (c *nodeLayout) checkDriver(field string, counts layout.Counts, model catalogue.Model, driver string) error {
	for i, p := range model.Geometry.Profiles {
		if older, _ := spec.IsOlderVersion(driver, p.MinimumDriver); counts[i] > 0 && older {
			return driverTooOld(field, c.names[i], p.MinimumDriver, driver)
		}
	}
	for _, nameSets := range model.Geometry.Combinations {
		has, names := true, []string(nil)
		for i, p := range model.Geometry.Profiles {
			if slices.Contains(nameSets.IDs, p.ID) {
				has, names = has && counts[i] > 0, append(names, c.names[i])
			}
		}
		if older, _ := spec.IsOlderVersion(driver, nameSets.MinimumDriver); has && older {
			return driverTooOld(field, strings.Join(names, " beside "), nameSets.MinimumDriver, driver)
		}
	}
	return nil
}

func driverTooOld(field, what, minimum, driver string) error {
	return spec.Refuse(spec.PresentationField(field+".profiles"), v1alpha1.ReasonDriverTooOld, "mig/profile-driver", "%s needs driver %s or newer, and the OSImage's is %s", what, minimum, driver)
}

// assign gives the layout to the GPUs named, or to all.
func (c *nodeLayout) assign(field string, gpus []int32, counts layout.Counts) error {
	if len(gpus) == 0 {
		for i := range c.gpus {
			gpus = append(gpus, int32(i))
		}
	}
	for _, g := range gpus {
		if g < 0 || int(g) >= len(c.gpus) {
			return spec.Invalid(spec.PresentationField(field+".gpus"), "mig/gpu-index", "it names GPU %d: gpus go from 0 to %d", g, len(c.gpus)-1)
		}
		if c.gpus[g] != nil {
			return spec.Invalid(spec.PresentationField(field), "mig/gpu-twice", "it gives GPU %d a layout, and that GPU has one already: name each GPU once, and leave gpus out only in the sole entry", g)
		}
		c.gpus[g] = counts
	}
	return nil
}

// checkSingleStrategy says whether the strategy single allows it: every GPU is partitioned, and all instances are of one profile.
func (c *nodeLayout) checkSingleStrategy() error {
	profile := -1
	for g, counts := range c.gpus {
		if counts == nil {
			return spec.Invalid(spec.PresentationField("mig.strategy"), "mig/single", "it is single, and GPU %d has no layout: the device plugin then advertises no GPU at all; partition it too, or choose mixed", g)
		}
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if profile >= 0 && profile != i {
				return spec.Invalid(spec.PresentationField("mig.strategy"), "mig/single", "it is single, and mig.layout has %s and %s: the device plugin then advertises no GPU at all; use one profile on every GPU, or choose mixed", c.names[profile], c.names[i])
			}
			profile = i
		}
	}
	return nil
}

func (c *nodeLayout) instanceCount() int {
	out := 0
	for _, counts := range c.gpus {
		out += counts.Total()
	}
	return out
}

// checkProfileNames refuses names of profiles that no driver uses side by side: nvidia-mig-parted finds some of them on no GPU.
func (c *nodeLayout) checkProfileNames(layoutParent string, model catalogue.Model) error {
	nameSets := model.ProfileNameSets()
	if len(c.writtenNames) == 0 || len(c.matchingNameSets(nameSets)) > 0 {
		return nil
	}
	var all []string
	for _, names := range nameSets {
		all = append(all, strings.Join(names, ", "))
	}
	return spec.Invalid(spec.PresentationField(layoutParent+".layout"), "mig/profile-names", "it has %s, and no driver of %s has all of these profiles: they are %s; take the names of one driver, as nvidia-smi mig -lgip lists them",
		c.profileList(), model.Name, strings.Join(all, " or "))
}

// matchingNameSets are the drivers, by the names that they use, that know every name in the NodeType.
func (c *nodeLayout) matchingNameSets(nameSets [][]string) [][]string {
	var out [][]string
	for _, names := range nameSets {
		if !slices.ContainsFunc(c.writtenNames, func(name string) bool { return !slices.Contains(names, name) }) {
			out = append(out, names)
		}
	}
	return out
}

// nameWarnings tell of names that only some drivers give the profiles.
func (c *nodeLayout) nameWarnings(model catalogue.Model) []v1alpha1.PlanWarning {
	nameSets := model.ProfileNameSets()
	if len(c.matchingNameSets(nameSets)) == len(nameSets) {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unverified/mig-names", Message: "drivers disagree about the memory of " + model.Name + ", and so about the names of its profiles, of which the NodeType has " +
		c.profileList() + ": compare with nvidia-smi mig -lgip on the first node, which cannot be partitioned when its driver has other names"}}
}

// profileList is the names in the NodeType, each once.
func (c *nodeLayout) profileList() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(c.writtenNames))), ", ")
}
