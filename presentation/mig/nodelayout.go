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

// cutting is how each GPU of a node is partitioned.
type cutting struct {
	// names of the geometry's profiles, in its order, as the NodeType spells them.
	names []string
	// variants are all names that drivers give them.
	variants [][]string
	// written are the names in the NodeType.
	written []string
	// gpus by index; nil: the GPU is whole.
	gpus []layout.Multiset
}

// cut reads the layout and refuses what no GPU of the model can be, or what the strategy does not allow.
func cut(r spec.Request, migSpec v1alpha1.MIGSpec, model catalogue.Model) (cutting, error) {
	out := cutting{gpus: make([]layout.Multiset, r.GPU.Count)}
	if model.Geometry == nil {
		return out, nil
	}
	for _, p := range model.Geometry.Profiles {
		variants := model.ProfileNames(p)
		out.names, out.variants = append(out.names, variants[0]), append(out.variants, variants)
	}
	for i, entry := range migSpec.Layout {
		field := fmt.Sprintf("%s.layout[%d]", member(r), i)
		want, err := out.read(field, entry.Profiles, model)
		if err != nil {
			return cutting{}, err
		}
		if err := out.judge(field, want, model, nvidia.DriverVersion(r)); err != nil {
			return cutting{}, err
		}
		if err := out.assign(field, entry.GPUs, want); err != nil {
			return cutting{}, err
		}
	}
	if err := out.judgeNames(member(r), model); err != nil {
		return cutting{}, err
	}
	if out.instances() == 0 && migSpec.Strategy != wellknown.MIGStrategyNone {
		return cutting{}, spec.Invalid(spec.PresentationField("mig.strategy"), "mig/layout", "it is %s, and mig.layout has no profiles: say how the GPUs are partitioned", migSpec.Strategy)
	}
	if migSpec.Strategy == wellknown.MIGStrategySingle && migSpec.Advertise != v1alpha1.AdvertiseDRA {
		return out, out.uniform()
	}
	return out, nil
}

// member of the presentation that has the layout.
func member(r spec.Request) string { return strings.ToLower(string(r.GPU.Presentation.Mode)) }

// read counts the profiles of an entry. Names that drivers give the same profile are accepted.
func (c *cutting) read(field string, profiles map[string]int32, model catalogue.Model) (layout.Multiset, error) {
	want := make(layout.Multiset, len(c.names))
	for _, written := range slices.Sorted(maps.Keys(profiles)) {
		name, err := layout.ParseName(written)
		if err != nil {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-name", "%v; %s has %s", err, model.Name, strings.Join(c.names, ", "))
		}
		if !name.Whole() {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/compute-instance", "%s is a part of a GPU instance, which is never advertised: ask for %dg.%dgb", written, name.Slices, name.GiB)
		}
		at := slices.IndexFunc(c.variants, func(variants []string) bool { return slices.Contains(variants, name.String()) })
		if at < 0 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile", "%s has no profile %s; it has %s", model.Name, written, strings.Join(c.names, ", "))
		}
		if profiles[written] < 1 {
			return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/profile-count", "%s is %d: say how many of them each GPU has, or remove it", written, profiles[written])
		}
		c.names[at], c.written = name.String(), append(c.written, name.String())
		want[at] += int(profiles[written])
	}
	if want.Instances() == 0 {
		return nil, spec.Invalid(spec.PresentationField(field+".profiles"), "mig/layout", "it is empty: a GPU in MIG mode without instances is advertised by nobody")
	}
	return want, nil
}

// judge refuses what one GPU cannot be, or its driver cannot make.
func (c *cutting) judge(field string, want layout.Multiset, model catalogue.Model, driver string) error {
	if err := c.judgePlaces(field, want, model); err != nil {
		return err
	}
	if err := c.judgeGraphics(field, want, model); err != nil {
		return err
	}
	return c.judgeDriver(field, want, model, driver)
}

// judgePlaces refuses what does not fit on one GPU.
func (c *cutting) judgePlaces(field string, want layout.Multiset, model catalogue.Model) error {
	_, err := layout.Place(*model.Geometry, want)
	var impossible *layout.Impossible
	if errors.As(err, &impossible) {
		message := fmt.Sprintf("%s does not fit on one %s: %s. Of these fits %s", want.Format(c.names), model.Name, impossible.Message, impossible.Largest.Format(c.names))
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

// judgeGraphics refuses instances with and without graphics on one GPU: whether that works is not documented.
func (c *cutting) judgeGraphics(field string, want layout.Multiset, model catalogue.Model) error {
	with, without := "", ""
	for i, p := range model.Geometry.Profiles {
		switch {
		case want[i] == 0:
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

// judgeDriver refuses what the driver cannot make.
func (c *cutting) judgeDriver(field string, want layout.Multiset, model catalogue.Model, driver string) error {
	for i, p := range model.Geometry.Profiles {
		if older, _ := spec.IsOlderVersion(driver, p.MinimumDriver); want[i] > 0 && older {
			return tooOld(field, c.names[i], p.MinimumDriver, driver)
		}
	}
	for _, together := range model.Geometry.Together {
		has, names := true, []string(nil)
		for i, p := range model.Geometry.Profiles {
			if slices.Contains(together.IDs, p.ID) {
				has, names = has && want[i] > 0, append(names, c.names[i])
			}
		}
		if older, _ := spec.IsOlderVersion(driver, together.MinimumDriver); has && older {
			return tooOld(field, strings.Join(names, " beside "), together.MinimumDriver, driver)
		}
	}
	return nil
}

func tooOld(field, what, minimum, driver string) error {
	return spec.Refuse(spec.PresentationField(field+".profiles"), v1alpha1.ReasonDriverTooOld, "mig/profile-driver", "%s needs driver %s or newer, and the OSImage's is %s", what, minimum, driver)
}

// assign gives the layout to the GPUs named, or to all.
func (c *cutting) assign(field string, gpus []int32, want layout.Multiset) error {
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
		c.gpus[g] = want
	}
	return nil
}

// uniform says whether the strategy single allows it: every GPU is partitioned, and all instances are of one profile.
func (c *cutting) uniform() error {
	profile := -1
	for g, want := range c.gpus {
		if want == nil {
			return spec.Invalid(spec.PresentationField("mig.strategy"), "mig/single", "it is single, and GPU %d has no layout: the device plugin then advertises no GPU at all; partition it too, or choose mixed", g)
		}
		for i, n := range want {
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

func (c *cutting) instances() int {
	out := 0
	for _, want := range c.gpus {
		out += want.Instances()
	}
	return out
}

// judgeNames refuses names of profiles that no driver uses side by side: nvidia-mig-parted finds some of them on no GPU.
func (c *cutting) judgeNames(member string, model catalogue.Model) error {
	together := model.NamesTogether()
	if len(c.written) == 0 || len(c.spoken(together)) > 0 {
		return nil
	}
	var all []string
	for _, names := range together {
		all = append(all, strings.Join(names, ", "))
	}
	return spec.Invalid(spec.PresentationField(member+".layout"), "mig/profile-names", "it has %s, and no driver of %s has all of these profiles: they are %s; take the names of one driver, as nvidia-smi mig -lgip lists them",
		c.list(), model.Name, strings.Join(all, " or "))
}

// spoken are the drivers, by the names that they use, that know every name in the NodeType.
func (c *cutting) spoken(together [][]string) [][]string {
	var out [][]string
	for _, names := range together {
		if !slices.ContainsFunc(c.written, func(name string) bool { return !slices.Contains(names, name) }) {
			out = append(out, names)
		}
	}
	return out
}

// warnings tell of names that only some drivers give the profiles.
func (c *cutting) warnings(model catalogue.Model) []v1alpha1.PlanWarning {
	together := model.NamesTogether()
	if len(c.spoken(together)) == len(together) {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unverified/mig-names", Message: "drivers disagree about the memory of " + model.Name + ", and so about the names of its profiles, of which the NodeType has " +
		c.list() + ": compare with nvidia-smi mig -lgip on the first node, which cannot be partitioned when its driver has other names"}}
}

// list is the names in the NodeType, each once.
func (c *cutting) list() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(c.written))), ", ")
}
