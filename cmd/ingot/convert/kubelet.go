package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// convertKubelet sets spec.kubelet from kubeReserved. What kubelet would not start with is told.
func (c *converter) convertKubelet(m offline.Manifest, field string, spec, one map[string]any) {
	reserved := valueAt[map[string]any](one, "kubeReserved")
	if one["kubeReserved"] != nil && reserved == nil {
		c.addFinding(m, field+".kubeReserved", RuleLost, "it is no map of resources: add spec.kubelet.kubeReserved")
	}
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		text := fmt.Sprint(reserved[name])
		if problem := refusedMember(map[string]any{"kubeReserved": map[string]any{name: text}}); problem != "" {
			c.addFinding(m, field+".kubeReserved."+name, RuleLost, "%s: correct it, and add it to spec.kubelet.kubeReserved", problem)
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
	switch said := valueAt[any](m.Object, "spec", "kubeletArgs").(type) {
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
		name, value := memberOf(flag, flags[flag])
		if problem := refusedMember(map[string]any{name: value}); problem != "" {
			c.addFinding(m, "spec.kubeletArgs."+flag, RuleLost, "as the member %s of spec.kubelet of the NodeType: %s", name, problem)
			continue
		}
		members[name] = value
	}
	if text, err := json.Marshal(members); err == nil && len(members) > 0 {
		c.addFinding(m, "spec.kubeletArgs", RuleLost, "add to the NodeType, for all of its nodes: spec.kubelet: %s", text)
	}
}

// memberOf returns the member of KubeletConfiguration that a flag of kubelet is: --max-pods=64 is maxPods: 64.
func memberOf(flag, value string) (string, any) {
	first, rest, _ := strings.Cut(flag, "-")
	for word := range strings.SplitSeq(rest, "-") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	if number, err := strconv.ParseInt(value, 10, 64); err == nil {
		return first, number
	}
	if truth, err := strconv.ParseBool(value); err == nil {
		return first, truth
	}
	if !strings.Contains(value, "=") {
		return first, value
	}
	pairs := map[string]any{}
	for pair := range strings.SplitSeq(value, ",") {
		key, of, _ := strings.Cut(pair, "=")
		if truth, err := strconv.ParseBool(of); err == nil && first == "featureGates" {
			pairs[key] = truth
			continue
		}
		pairs[key] = of
	}
	return first, pairs
}

// refusedMember returns why the newest known kubelet or Ingot refuses members; empty: neither does.
func refusedMember(members map[string]any) string {
	text, err := json.Marshal(members)
	if err != nil {
		return err.Error()
	}
	for _, f := range fragment.Check(text, "") {
		return f.Message
	}
	return ""
}
