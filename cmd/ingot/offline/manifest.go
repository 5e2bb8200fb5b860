package offline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Manifest is an object and where it was read.
type Manifest struct {
	// File as it was given.
	File string
	// Object decoded as the API server does.
	Object map[string]any

	// first line of the document, its text, and the path of the object within it.
	first  int
	text   []byte
	within string
}

// APIVersion of the object; empty: it says none.
func (m Manifest) APIVersion() string { return m.Word("apiVersion") }

// Kind of the object; empty: it says none.
func (m Manifest) Kind() string { return m.Word("kind") }

// Name of the object.
func (m Manifest) Name() string { return m.Word("metadata", "name") }

// Namespace of the object; empty: that of whoever applies it.
func (m Manifest) Namespace() string { return m.Word("metadata", "namespace") }

// Word is the text of a field; empty: it is not there, or no text.
func (m Manifest) Word(field ...string) string {
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

// Line of a field in the file, from 1: that of its nearest part that is there.
func (m Manifest) Line(field string) int {
	root := m.tree()
	if root == nil {
		return m.first
	}
	at := root
	for _, step := range append(steps(m.within), steps(field)...) {
		next := below(at, step)
		if next == nil {
			break
		}
		at = next
	}
	return m.first + at.Line - 1
}

// tree parses the document for its lines; nil: this parser cannot, though the other could.
func (m Manifest) tree() (root *yaml.Node) {
	defer func() {
		// The parser has panicked on malformed text before. Without it a finding only has the document's line.
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

// steps of a path: spec.layout[0].profiles[1g.10gb] is spec, layout, 0, profiles, 1g.10gb.
func steps(path string) []string {
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

// below is the key or the value that a step leads to; nil: there is none. A key's line is where its value is said.
func below(at *yaml.Node, step string) *yaml.Node {
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

// Finding is one thing that is wrong with an object.
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

// Finding makes a finding of the object.
func (m Manifest) Finding(field, rule, format string, args ...any) Finding {
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
