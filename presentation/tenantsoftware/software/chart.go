package software

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
)

// Chart is a Helm chart with those of its values that differ from the defaults.
type Chart struct {
	// Name of the chart: gpu-operator. Software without a chart has its name here, and Objects only.
	Name string
	// Repository that has the chart; empty: there is none.
	Repository string
	// Version of the chart.
	Version string
	// Release is the name to install it under.
	Release string
	// Namespace to install it in.
	Namespace string
	// Values for helm install --values.
	Values map[string]any
	// Repositories of images by the path of the value that names them, as the chart has them by default; empty: they are not known.
	Repositories map[string]string
	// Objects to apply after the chart is installed, because the chart may bring their kinds.
	Objects []*unstructured.Unstructured
	// Warnings say what is not certain, and what users must add.
	Warnings []string
}

// YAML writes the values as a file with the helm command as a comment on top. Objects are not in it.
func (c Chart) YAML() ([]byte, error) {
	comment := "Chart " + c.Name
	if c.Repository != "" {
		comment = fmt.Sprintf("helm upgrade --install %s %s --repo %s --version %s --namespace %s --create-namespace --values FILE", c.Release, c.Name, c.Repository, c.Version, c.Namespace)
	}
	comment += strings.Join(append([]string{""}, c.Warnings...), "\nNote: ")
	if c.Values == nil {
		return manifest.Comment(comment), nil
	}
	text, err := yaml.Marshal(c.Values)
	if err != nil {
		return nil, fmt.Errorf("write values of %s: %w", c.Name, err)
	}
	return append(manifest.Comment(comment), text...), nil
}

// Component is one vendor's software as plain objects, without Helm.
type Component struct {
	// Name of the software: nvidia-device-plugin.
	Name string
	// About says what the software is for, and what users must add.
	About string
	// Objects to apply, in this order.
	Objects []*unstructured.Unstructured
}

// YAML writes the objects as one file with About as a comment on top.
func (c Component) YAML() ([]byte, error) { return manifest.YAML(c.About, c.Objects) }

// Conflict says that the software of one cluster cannot serve two NodeTypes together.
type Conflict struct {
	// NodeTypes are the two names in alphabetical order.
	NodeTypes [2]string
	// Software that can have only one of the two settings.
	Software string
	// Message says what each NodeType needs, and what to change.
	Message string
}

// NewConflict returns a *Conflict between the NodeTypes a and b.
func NewConflict(a, b, software, message string) *Conflict {
	return &Conflict{NodeTypes: [2]string{min(a, b), max(a, b)}, Software: software, Message: message}
}

// Error names both NodeTypes and says what to change.
func (c *Conflict) Error() string {
	return fmt.Sprintf("NodeTypes %s and %s: %s: %s", c.NodeTypes[0], c.NodeTypes[1], c.Software, c.Message)
}
