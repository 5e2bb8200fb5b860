package vgpu

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// want is so many virtual GPUs of a type on every GPU.
type want struct {
	catalogue.VGPUType
	count int
}

// read finds the types that are ordered, sorted by name, and refuses what does not fit on one GPU.
func read(ordered map[string]int32, model catalogue.Model) ([]want, error) {
	all := model.VGPUTypes()
	var out []want
	for _, name := range slices.Sorted(maps.Keys(ordered)) {
		at := slices.IndexFunc(all, func(t catalogue.VGPUType) bool { return t.Name == name })
		if at < 0 {
			return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/type", "it has %s, and %s has %s", name, model.Name, listed(all))
		}
		if n := int(ordered[name]); n < 1 || n > all[at].Max {
			return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/count", "%s is %d, and one %s can have 1 to %d of them", name, n, model.Name, all[at].Max)
		}
		out = append(out, want{all[at], int(ordered[name])})
	}
	if len(out) == 0 {
		return nil, spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/type", "it is empty: say which and how many on each GPU; %s has %s", model.Name, listed(all))
	}
	return out, judgeTypes(out, model)
}

func listed(types []catalogue.VGPUType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return "no vGPU type that is known"
	}
	return strings.Join(names, ", ")
}

func judgeTypes(types []want, model catalogue.Model) error {
	first, total := types[0], 0
	instances := make(layout.Multiset, 0)
	if model.Geometry != nil {
		instances = make(layout.Multiset, len(model.Geometry.Profiles))
	}
	for _, t := range types {
		if (t.Slices > 0) != (first.Slices > 0) {
			return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/mixed-kinds", "it has %s and %s: a GPU is shared in time or by MIG instances, not both", first.Name, t.Name)
		}
		if t.Slices == 0 && (t.GiB != first.GiB || t.Series != first.Series) {
			return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/equal-size", "it has %s and %s: virtual GPUs that share a GPU in time must be of one size and series", first.Name, t.Name)
		}
		total += t.count
		if t.Slices > 0 {
			instances[model.ProfileOf(t.VGPUType)] += t.count
		}
	}
	if first.Slices == 0 {
		return nil
	}
	_, err := layout.Place(*model.Geometry, instances)
	var impossible *layout.Impossible
	if errors.As(err, &impossible) {
		return spec.Invalid(spec.PresentationField("vgpu.types"), "vgpu/"+impossible.Rule, "the MIG instances behind them do not fit on one %s: %s", model.Name, impossible.Message)
	}
	return err
}
