package offline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Manifest is an object and the place where it was read.
type Manifest struct {
	// File as it was given.
	File string
	// Object is decoded as the API server does.
	Object map[string]any

	// firstLine and text are those of the document; path leads to the object within it.
	firstLine int
	text      []byte
	path      string
}

// APIVersion returns the apiVersion of the object; empty: it has none.
func (m Manifest) APIVersion() string { return m.StringField("apiVersion") }

// Kind returns the kind of the object; empty: it has none.
func (m Manifest) Kind() string { return m.StringField("kind") }

// Name returns the name of the object.
func (m Manifest) Name() string { return m.StringField("metadata", "name") }

// Namespace returns the namespace of the object; empty: the object is applied to the namespace of the caller.
func (m Manifest) Namespace() string { return m.StringField("metadata", "namespace") }

// StringField returns the value of a field; empty: the field is not there or is not a string.
func (m Manifest) StringField(field ...string) string {
	var at any = m.Object
	for _, step := range field {
		inner, _ := at.(map[string]any)
		at = inner[step]
	}
	text, _ := at.(string)
	return text
}

// String is the kind and the name, with the namespace where it is said.
func (m Manifest) String() string {
	name := m.Name()
	if name == "" {
		name = "without a name"
	}
	if ns := m.Namespace(); ns != "" {
		name = ns + "/" + name
	}
	return m.Kind() + " " + name
}

// Decode decodes the object into its type. A field that the type does not have is an error.
func (m Manifest) Decode(into any) error {
	text, err := json.Marshal(m.Object)
	if err != nil {
		return err
	}
	return sigsyaml.UnmarshalStrict(text, into)
}

// Line returns the line of a field in the file, from 1. When the field is not there, it is the line of the nearest parent that is.
func (m Manifest) Line(field string) int {
	root := m.parseLines()
	if root == nil {
		return m.firstLine
	}
	at := root
	for _, step := range append(pathElements(m.path), pathElements(field)...) {
		next := child(at, step)
		if next == nil {
			break
		}
		at = next
	}
	return m.firstLine + at.Line - 1
}

// parseLines parses the document with its line numbers. It returns nil when this parser fails on what the other one has accepted.
func (m Manifest) parseLines() (root *yaml.Node) {
	defer func() {
		// The parser has panicked on malformed text before. A finding then has the line of the document.
		if recover() != nil {
			root = nil
		}
	}()
	var parsed yaml.Node
	if yaml.Unmarshal(m.text, &parsed) != nil || len(parsed.Content) == 0 {
		return nil
	}
	return parsed.Content[0]
}

// pathElements splits a path: spec.layout[0].profiles[1g.10gb] is spec, layout, 0, profiles, 1g.10gb.
func pathElements(path string) []string {
	var out []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			step, after, _ := strings.Cut(rest, "]")
			out, path = append(out, strings.Trim(step, `"`)), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(out, path)
		}
		out, path = append(out, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return out
}

// child returns the value of a key or the item of a list; nil: there is none. The line of a value is the line of its key.
func child(at *yaml.Node, step string) *yaml.Node {
	if at.Kind == yaml.AliasNode {
		at = at.Alias
	}
	switch at.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				value := *at.Content[i+1]
				value.Line = at.Content[i].Line
				return &value
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i]
		}
	}
	return nil
}

// Finding is one fault of an object.
type Finding struct {
	// File and Line where it is.
	File string `json:"file"`
	Line int    `json:"line"`
	// Object is its kind and name: NodeType h100.
	Object string `json:"object"`
	// Field is the path within the object; empty: the whole object.
	Field string `json:"field,omitempty"`
	// Rule that is broken: schema/required, reference/missing, mig/placement.
	Rule string `json:"rule"`
	// Message says what was expected and seen.
	Message string `json:"message"`
}

// NewFinding returns a finding about the object.
func (m Manifest) NewFinding(field, rule, format string, args ...any) Finding {
	return Finding{File: m.File, Line: m.Line(field), Object: m.String(), Field: field, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// String is the finding in one line: FILE:LINE: OBJECT: FIELD: MESSAGE (RULE).
func (f Finding) String() string {
	parts := []string{fmt.Sprintf("%s:%d", f.File, f.Line), f.Object}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	message := strings.Join(strings.Fields(f.Message), " ")
	return strings.Join(append(parts, message), ": ") + " (" + f.Rule + ")"
}
