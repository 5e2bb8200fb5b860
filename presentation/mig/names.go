package mig

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

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
