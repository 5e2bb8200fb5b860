package entitlement

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// selector returns the CEL expression that selects the devices. It reads an attribute only where the device has it: an expression that fails on one
// device makes the scheduler give up on the whole claim.
func selector(offered []offer) string {
	var alternatives []string
	for _, o := range offered {
		alternatives = append(alternatives, strings.Join(o.terms(), " && "))
	}
	slices.Sort(alternatives)
	alternatives = slices.Compact(alternatives)
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return "(" + strings.Join(alternatives, ") || (") + ")"
}

func (o offer) terms() []string {
	out := []string{"device.driver == " + literal(o.driver)}
	if o.devices.Type != "" {
		out = append(out, o.isOneOf("type", []string{o.devices.Type}))
	}
	if len(o.devices.Profiles) > 0 {
		out = append(out, o.isOneOf("profile", o.devices.Profiles))
	}
	for _, name := range slices.Sorted(maps.Keys(o.devices.Attributes)) {
		if isVersion(name) {
			continue
		}
		term := o.isOneOf(name, o.devices.Attributes[name])
		if slices.Contains(o.devices.Optional, name) {
			term = "(!" + o.has("attributes", name) + " || " + term + ")"
		}
		out = append(out, term)
	}
	for _, name := range slices.Sorted(maps.Keys(o.devices.Products)) {
		out = append(out, o.isProduct(name, o.devices.Products[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(o.devices.Capacities)) {
		r, value := o.devices.Capacities[name], o.value("capacity", name)
		out = append(out, fmt.Sprintf("(!%s || %s.compareTo(quantity(%s)) >= 0 && %s.compareTo(quantity(%s)) <= 0)",
			o.has("capacity", name), value, literal(r.Minimum.String()), value, literal(r.Maximum.String())))
	}
	return out
}

// isVersion reports whether an attribute is a version of software. The next rollout changes it, and the devices stay the same.
func isVersion(name string) bool { return strings.HasSuffix(name, "ersion") }

func (o offer) isOneOf(name string, values []string) string {
	return o.has("attributes", name) + " && " + o.text(name) + " in " + list(values)
}

// isProduct returns the terms that compare the words of a name, as a verdict does.
func (o offer) isProduct(name string, p v1alpha1.ExpectedProduct) []string {
	out := []string{o.has("attributes", name)}
	for _, word := range p.Words {
		out = append(out, o.text(name)+hasWord(word))
	}
	for _, word := range p.AbsentWords {
		out = append(out, "!"+o.text(name)+hasWord(word))
	}
	var ends []string
	for _, suffix := range p.Suffixes {
		ends = append(ends, o.text(name)+".endsWith("+literal(suffix)+")")
	}
	if len(ends) > 0 {
		out = append(out, "("+strings.Join(ends, " || ")+")")
	}
	return out
}

func hasWord(word string) string {
	return ".matches(" + literal("(?i)(^|[^0-9a-z])"+regexp.QuoteMeta(word)+"([^0-9a-z]|$)") + ")"
}

// value returns the expression of an attribute or a capacity. A name without a domain is of the driver's.
func (o offer) value(member, name string) string {
	domain, short := o.split(name)
	return fmt.Sprintf("device.%s[%s][%s]", member, literal(domain), literal(short))
}

// text returns the expression of an attribute as text: a promise has the texts of numbers and of booleans.
func (o offer) text(name string) string { return "string(" + o.value("attributes", name) + ")" }

func (o offer) has(member, name string) string {
	domain, short := o.split(name)
	return fmt.Sprintf("(%s in device.%s[%s])", literal(short), member, literal(domain))
}

func (o offer) split(name string) (domain, short string) {
	if domain, short, found := strings.Cut(name, "/"); found {
		return domain, short
	}
	return o.driver, name
}

// literal returns a text as a CEL literal.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = literal(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
