package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// convertKubelet sets spec.kubelet from kubeReserved. What kubelet would not start with is told.
func (c *converter) convertKubelet(m offline.Manifest, field string, spec, one map[string]any) {
	reserved := conversion.ValueAt[map[string]any](one, "kubeReserved")
	if one["kubeReserved"] != nil && reserved == nil {
		c.AddFinding(m, field+".kubeReserved", conversion.RuleLost, "it is no map of resources: add spec.kubelet.kubeReserved")
	}
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		text := fmt.Sprint(reserved[name])
		if problem := conversion.RefusedMember(map[string]any{"kubeReserved": map[string]any{name: text}}); problem != "" {
			c.AddFinding(m, field+".kubeReserved."+name, conversion.RuleLost, "%s: correct it, and add it to spec.kubelet.kubeReserved", problem)
			continue
		}
		kept[name] = text
	}
	if len(kept) > 0 {
		spec["kubelet"] = map[string]any{"kubeReserved": kept}
	}
}

// reportKubeletArgs says which members of NodeType.spec.kubelet the flags of a NodeClaim are.
func (c *converter) reportKubeletArgs(m offline.Manifest) {
	flags := map[string]string{}
	switch said := conversion.ValueAt[any](m.Object, "spec", "kubeletArgs").(type) {
	case map[string]any:
		for name, value := range said {
			flags[strings.TrimLeft(name, "-")] = fmt.Sprint(value)
		}
	case []any:
		for _, item := range said {
			name, value, _ := strings.Cut(strings.TrimLeft(fmt.Sprint(item), "-"), "=")
			flags[name] = value
		}
	}
	members := map[string]any{}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		name, value := conversion.KubeletMember(flag, flags[flag])
		if problem := conversion.RefusedMember(map[string]any{name: value}); problem != "" {
			c.AddFinding(m, "spec.kubeletArgs."+flag, conversion.RuleLost, "as the member %s of spec.kubelet of the NodeType: %s", name, problem)
			continue
		}
		members[name] = value
	}
	if text, err := json.Marshal(members); err == nil && len(members) > 0 {
		c.AddFinding(m, "spec.kubeletArgs", conversion.RuleLost, "add to the NodeType, for all of its nodes: spec.kubelet: %s", text)
	}
}
