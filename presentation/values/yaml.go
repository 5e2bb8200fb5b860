package values

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

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
