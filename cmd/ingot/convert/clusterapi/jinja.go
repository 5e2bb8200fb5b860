package clusterapi

import (
	"regexp"
	"strings"
)

// jinja matches the expressions of cloud-init's Jinja templates, and groups what they name.
var jinja = regexp.MustCompile(`\{\{-?\s*([^{}]*?)\s*-?\}\}`)

// metadataOf matches the names of one key of the meta-data: ds.meta_data.KEY, ds['meta_data']['KEY'], v1.local_hostname.
var metadataOf = regexp.MustCompile(`^(?:ds\.meta_data\.|ds\.meta_data\[|v1\.)['"]?([A-Za-z0-9_.-]+?)['"]?\]?$`)

// translation is user data whose Jinja expressions become those of Ingot's templates.
type translation struct {
	// values are fixed, expressions are those of templates, by the key of the meta-data.
	values, expressions map[string]string
	// unknown are the expressions that have no counterpart.
	unknown map[string]bool
}

// metadataKey returns the key of the meta-data that an expression reads, as Jinja names it; empty: it reads something else.
func metadataKey(match string) string {
	named := metadataOf.FindStringSubmatch(jinja.FindStringSubmatch(match)[1])
	if named == nil {
		return ""
	}
	return strings.ReplaceAll(named[1], "-", "_")
}

// replaceValues replaces the expressions whose value is fixed, and notes those that have no counterpart.
func (t *translation) replaceValues(s string) string {
	return jinja.ReplaceAllStringFunc(s, func(match string) string {
		key := metadataKey(match)
		value, isFixed := t.values[key]
		switch {
		case isFixed:
			return value
		case key != "" && t.expressions[key] == "":
			t.unknown[jinja.FindStringSubmatch(match)[1]] = true
		}
		return match
	})
}

// template returns a document as a template, and whether it is one. Braces that are no expression of Ingot's mean themselves there.
func (t *translation) template(document string) (text string, isTemplate bool) {
	var out strings.Builder
	at := 0
	for _, found := range jinja.FindAllStringIndex(document, -1) {
		expression := t.expressions[metadataKey(document[found[0]:found[1]])]
		if expression == "" {
			continue
		}
		isTemplate = true
		out.WriteString(literal(document[at:found[0]]) + expression)
		at = found[1]
	}
	out.WriteString(literal(document[at:]))
	if !isTemplate {
		return document, false
	}
	return out.String(), true
}

// literal makes the braces of a text mean themselves in a template.
func literal(s string) string {
	return strings.ReplaceAll(s, "{{", `{{ "{{" }}`)
}
