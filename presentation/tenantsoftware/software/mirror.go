package software

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mirrors are the registries from which nodes pull instead of the vendors' own: nvcr.io/nvidia to registry.example.com/nvidia.
type Mirrors map[string]string

// ParseMirrors reads mirrors in the form FROM=TO.
func ParseMirrors(texts []string) (Mirrors, error) {
	out := Mirrors{}
	for _, text := range texts {
		from, to, found := strings.Cut(text, "=")
		from, to = strings.TrimRight(from, "/"), strings.TrimRight(to, "/")
		if !found || from == "" || to == "" || strings.Contains(text, "://") || strings.ContainsAny(text, " \t") {
			return nil, fmt.Errorf("%q is not FROM=TO, such as nvcr.io=registry.example.com/nvcr", text)
		}
		if _, twice := out[from]; twice {
			return nil, fmt.Errorf("%s has two mirrors", from)
		}
		out[from] = to
	}
	return out, nil
}

// Replace returns the image or repository at its mirror. Of several mirrors that fit, the one of the longest path counts.
func (m Mirrors) Replace(image string) string {
	best := ""
	for _, from := range slices.Sorted(maps.Keys(m)) {
		rest, fits := strings.CutPrefix(image, from)
		if fits && (rest == "" || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "@")) && len(from) > len(best) {
			best = from
		}
	}
	if best == "" {
		return image
	}
	return m[best] + strings.TrimPrefix(image, best)
}

// imageMembers are the members of objects and of charts' values that name an image or a repository.
var imageMembers = []string{"image", "repository"}

// imageVariable is the environment variable by which NVIDIA's DRA driver knows the image of the pods that it makes.
const imageVariable = "IMAGE_NAME"

// Apply changes every image in an object, or in the values of a chart, to its mirror.
func (m Mirrors) Apply(content any) {
	switch v := content.(type) {
	case map[string]any:
		for key, member := range v {
			text, isText := member.(string)
			if isText && (slices.Contains(imageMembers, key) || key == "value" && v["name"] == imageVariable) {
				v[key] = m.Replace(text)
			}
			m.Apply(member)
		}
	case []any:
		for _, each := range v {
			m.Apply(each)
		}
	}
}

// ApplyToChart changes the images in the chart's values and objects, and sets the repositories that its values have by default and that have a
// mirror.
func (m Mirrors) ApplyToChart(c *Chart) {
	if len(m) == 0 {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(c.Repositories)) {
		if to := m.Replace(c.Repositories[path]); to != c.Repositories[path] {
			setValue(c.Values, strings.Split(path, "."), to)
		}
	}
	if c.Repository != "" && len(c.Repositories) == 0 {
		c.Warnings = append(c.Warnings, "which images the chart "+c.Name+" has follows from its own values: name their mirrors there")
	}
	for _, o := range c.Objects {
		m.Apply(o.Object)
	}
}

// setValue sets a member of a chart's values.
func setValue(values map[string]any, path []string, to string) {
	for len(path) > 1 {
		inner, is := values[path[0]].(map[string]any)
		if !is {
			inner = map[string]any{}
			values[path[0]] = inner
		}
		values, path = inner, path[1:]
	}
	values[path[0]] = to
}
