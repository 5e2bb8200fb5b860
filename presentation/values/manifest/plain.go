package manifest

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Tolerations are tolerations as a chart's values have them.
func Tolerations(all []corev1.Toleration) []any {
	var out []any
	for _, t := range all {
		entry := map[string]any{"key": t.Key, "operator": string(t.Operator), "effect": string(t.Effect)}
		if t.Value != "" {
			entry["value"] = t.Value
		}
		out = append(out, entry)
	}
	return out
}

// Affinity is that to nodes whose label has one of the words, as a chart's values have it.
func Affinity(label string, oneOf []string) map[string]any {
	expression := map[string]any{"key": label, "operator": string(corev1.NodeSelectorOpIn), "values": Words(oneOf)}
	return map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{expression}}},
	}}}
}

// Words are strings as a chart's values have them.
func Words(all []string) []any {
	out := make([]any, 0, len(all))
	for _, w := range all {
		out = append(out, w)
	}
	return out
}

// Merge makes one configuration file of several: in each, the member has entries by name. The others are added to them.
func Merge(member string, files []string, others map[string]any) (string, error) {
	entries := map[string]any{}
	for i, text := range files {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			return "", fmt.Errorf("read configuration %d of %s: %w", i, member, err)
		}
		some, ok := file[member].(map[string]any)
		if !ok {
			return "", fmt.Errorf("read configuration %d: it has no %s", i, member)
		}
		maps.Copy(entries, some)
	}
	maps.Copy(entries, others)
	text, err := yaml.Marshal(map[string]any{"version": "v1", member: entries})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", member, err)
	}
	return string(text), nil
}
