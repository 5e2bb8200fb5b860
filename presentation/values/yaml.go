package values

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// YAML is the part as a file to apply, with About on top.
func (p Part) YAML() ([]byte, error) { return manifest.YAML(p.About, p.Objects) }

// YAML is the chart as a values file, with how to install it on top. Objects are not in it.
func (c Chart) YAML() ([]byte, error) {
	about := "Chart " + c.Name
	if c.Repository != "" {
		about = fmt.Sprintf("helm upgrade --install %s %s --repo %s --version %s --namespace %s --create-namespace --values FILE", c.Release, c.Name, c.Repository, c.Version, c.Namespace)
	}
	about += strings.Join(append([]string{""}, c.Warnings...), "\nNote: ")
	if c.Values == nil {
		return manifest.Comment(about), nil
	}
	text, err := yaml.Marshal(c.Values)
	if err != nil {
		return nil, fmt.Errorf("write values of %s: %w", c.Name, err)
	}
	return append(manifest.Comment(about), text...), nil
}

// listed are tolerations as a chart's values have them.
func listed(all []corev1.Toleration) []any {
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

// affinity is nodesOf as a chart's values have it.
func affinity(nodeTypes []NodeType) map[string]any {
	expression := map[string]any{"key": v1alpha1.LabelNodeType, "operator": string(corev1.NodeSelectorOpIn), "values": words(names(nodeTypes))}
	return map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{expression}}},
	}}}
}
