package main

import (
	"fmt"
	"regexp"
	"strings"
)

const preamble = `# API reference

This is the reference of group ` + "`ingot.dev`, version `v1alpha1`" + `, made by ` + "`make generate`" + ` from [api/v1alpha1](../../api/v1alpha1): do not edit it.
` + "`kubectl explain machine.spec`" + ` prints the same descriptions. [GLOSSARY.md](../../api/v1alpha1/GLOSSARY.md) defines the terms. Every kind also has
` + "`metadata`" + `, and the fields of ` + "`status`" + ` are written by Ingot alone. BareMetalHost is a kind of Metal3 and is described in [its documentation](https://book.metal3.io/bmo/introduction).
`

// markdown returns the document: a table of the kinds, then each kind with the types that no kind before it has used.
func (r *apiReference) markdown() string {
	var b strings.Builder
	b.WriteString(preamble)
	b.WriteString("\n| kind | short name | scope | meaning |\n|---|---|---|---|\n")
	for _, k := range r.kinds {
		short, _ := k.resource("shortName")
		scope, ok := k.resource("scope")
		if !ok {
			scope = "Namespaced"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", k.name, anchor(k.name), short, scope, cell(k.doc.text))
	}
	written := map[string]bool{}
	for _, k := range r.kinds {
		r.writeType(&b, k, "##", written)
	}
	return b.String()
}

// writeType writes a type, and then the types of its fields in their order.
func (r *apiReference) writeType(b *strings.Builder, t *apiType, heading string, written map[string]bool) {
	if written[t.name] {
		return
	}
	written[t.name] = true
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", heading, t.name, t.doc.text)
	if rules := t.doc.rules(); len(rules) > 0 {
		b.WriteString("\nRules:\n")
		for _, rule := range rules {
			fmt.Fprintf(b, "- %s\n", rule)
		}
	}
	b.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	for _, f := range t.fields {
		words := f.typ.words
		if f.typ.link != "" {
			words = strings.TrimSuffix(words, f.typ.link) + fmt.Sprintf("[%s](#%s)", f.typ.link, anchor(f.typ.link))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.name, words, f.meaning())
	}
	for _, f := range t.fields {
		if next := r.types[f.typ.link]; next != nil {
			r.writeType(b, next, "###", written)
		}
	}
}

// meaning is the description of a field with what its markers say: required, default, limits and rules.
func (f apiField) meaning() string {
	parts := []string{cell(f.doc.text)}
	if f.doc.has("required") {
		parts = append(parts, "**Required.**")
	}
	if value, ok := f.doc.value("default"); ok && value != "{}" && value != "0" {
		parts = append(parts, "Default: `"+strings.Trim(value, `"`)+"`.")
	}
	if limits := f.limits(); len(limits) > 0 {
		parts = append(parts, "Limits: "+strings.Join(limits, ", ")+".")
	}
	for _, rule := range f.doc.rules() {
		parts = append(parts, "Rule: "+cell(rule)+".")
	}
	text := strings.TrimSpace(strings.Join(parts, " "))
	return strings.ReplaceAll(text, "</ul> ", "</ul>")
}

// limitWords are the markers that limit a value, in words.
var limitWords = []struct{ marker, words string }{
	{"Minimum", "at least %s"}, {"Maximum", "at most %s"},
	{"MinLength", "at least %s characters"}, {"MaxLength", "at most %s characters"},
	{"MinItems", "at least %s items"}, {"MaxItems", "at most %s items"},
	{"MinProperties", "at least %s entries"}, {"MaxProperties", "at most %s entries"},
	{"Pattern", "matches %s"},
	{"items:Minimum", "each item at least %s"}, {"items:Maximum", "each item at most %s"},
	{"items:MinLength", "each item of at least %s characters"}, {"items:MaxLength", "each item of at most %s characters"},
	{"items:Pattern", "each item matches %s"},
}

func (f apiField) limits() []string {
	var out []string
	for _, l := range limitWords {
		if value, ok := f.doc.value("kubebuilder:validation:" + l.marker); ok {
			limit := strings.ReplaceAll(fmt.Sprintf(l.words, value), "|", `\|`)
			if value == "1" {
				limit = strings.NewReplacer("characters", "character", "items", "item", "entries", "entry").Replace(limit)
			}
			out = append(out, limit)
		}
	}
	return out
}

// resource returns a value of the marker kubebuilder:resource: scope, shortName.
func (t *apiType) resource(key string) (string, bool) {
	for _, m := range t.doc.markers {
		list, ok := strings.CutPrefix(m, "kubebuilder:resource:")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(list, ",") {
			if k, value, _ := strings.Cut(pair, "="); k == key {
				return value, true
			}
		}
	}
	return "", false
}

var listItem = regexp.MustCompile(`^\s+- (.*)$`)

// continuation is a line of a list item after its first, which gofmt indents as far as the item's text.
var continuation = regexp.MustCompile(`(?m)(^\s+- .*)\n\s{4,}([^-\s])`)

// cell writes a comment for a cell of a table: one line, with the list of enum values as HTML.
func cell(text string) string {
	for continuation.MatchString(text) {
		text = continuation.ReplaceAllString(text, "$1 $2")
	}
	var b strings.Builder
	inList := false
	for line := range strings.SplitSeq(text, "\n") {
		if item := listItem.FindStringSubmatch(line); item != nil {
			if !inList {
				b.WriteString("<ul>")
			}
			inList = true
			value, meaning, _ := strings.Cut(item[1], ": ")
			fmt.Fprintf(&b, "<li>`%s`: %s</li>", value, escape(meaning))
			continue
		}
		if inList {
			b.WriteString("</ul>")
			inList = false
		} else if b.Len() > 0 {
			b.WriteString(" ")
		}
		b.WriteString(escape(strings.TrimSpace(line)))
	}
	if inList {
		b.WriteString("</ul>")
	}
	return b.String()
}

// escape keeps Markdown and HTML from reading characters of a comment as markup.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`).Replace(text)
}

func anchor(name string) string { return strings.ToLower(name) }
