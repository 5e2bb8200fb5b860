package cloudinit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// header is the first line of every cloud-config.
const header = "#cloud-config"

// maxNodes limits a document after its aliases are expanded, because a few lines of nested aliases can mean billions of nodes.
const maxNodes = 200_000

// maxDepth limits the nesting of a document.
const maxDepth = 64

// Document is a cloud-config: a mapping of YAML nodes, without aliases and without duplicate keys.
type Document struct {
	root *yaml.Node
}

// Parse reads one layer. Blank text is an empty document. The error is an *Invalid.
func Parse(layer Layer) (Document, error) {
	if strings.TrimSpace(layer.Text) == "" {
		return Document{root: mapping()}, nil
	}
	invalid := func(path, format string, args ...any) error {
		return &Invalid{Findings: []Finding{{Layer: layer.Name, Property: layer.Property, Path: path, Message: fmt.Sprintf(format, args...)}}}
	}
	first, _, _ := strings.Cut(layer.Text, "\n")
	if strings.TrimRight(first, " \t\r") != header {
		return Document{}, invalid("", "the first line must be %s: only it and a script that begins with #! can be put together with what the node needs, and not MIME messages and templates", header)
	}
	decoder := yaml.NewDecoder(strings.NewReader(layer.Text))
	var parsed yaml.Node
	if err := decode(decoder, &parsed); err != nil && !errors.Is(err, io.EOF) {
		// The parser's message may quote the text, and the text may be secret, so that the error has only the number of the line.
		return Document{}, invalid("", "it is not YAML%s", line(err))
	}
	if len(parsed.Content) == 0 || isNull(parsed.Content[0]) {
		return Document{root: mapping()}, nil
	}
	if err := decode(decoder, &yaml.Node{}); err == nil {
		return Document{}, invalid("", "it holds more than one YAML document: cloud-init reads one")
	}
	top := parsed.Content[0]
	if top.Kind != yaml.MappingNode {
		return Document{}, invalid("", "line %d: it must be a mapping of cloud-init's keys", top.Line)
	}
	e := expander{budget: maxNodes}
	root := e.expand(top, "", 0)
	if e.problem != "" {
		return Document{}, invalid(e.path, "%s", e.problem)
	}
	return Document{root: root}, nil
}

// decode reads one document. It returns an error for malformed text on which the parser panics.
func decode(d *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the parser gave up")
		}
	}()
	return d.Decode(into)
}

// line returns the place in the text from an error of the parser.
func line(err error) string {
	_, after, ok := strings.Cut(err.Error(), "yaml: line ")
	if !ok {
		return ""
	}
	n, _, _ := strings.Cut(after, ":")
	if n == "" || strings.Trim(n, "0123456789") != "" {
		return ""
	}
	return ", see line " + n
}

// bytes renders the document.
func (d Document) bytes() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(header + "\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(d.root); err != nil {
		return nil, fmt.Errorf("render user data: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("render user data: %w", err)
	}
	return out.Bytes(), nil
}

// get returns the value of a key, or nil when there is none.
func get(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// set replaces or adds the value of a key.
func set(m *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	m.Content = append(m.Content, plainScalar(key), value)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// scalar returns a quoted string value. cloud-init reads YAML 1.1, in which unquoted words such as on, and values such as 0644 or
// 1:30, are not strings. Text of several lines becomes a block.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	if isBlockSafe(s) {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// plainScalar returns an unquoted string, for a key.
func plainScalar(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// isBlockSafe returns true when the text stays the same when it is written as a block. A block that begins with white space needs
// an indentation hint, which parsers read differently, and a carriage return would be read as a line break.
func isBlockSafe(s string) bool {
	return strings.Contains(s, "\n") && !strings.ContainsAny(s[:1], " \t\n") && !strings.Contains(s, "\r")
}

// expander copies a tree of nodes without aliases, merge keys and comments. It refuses duplicate keys, of which cloud-init would
// use the last without a message.
type expander struct {
	budget  int
	path    string
	problem string
}

func (e *expander) fail(path, format string, args ...any) *yaml.Node {
	if e.problem == "" {
		e.path, e.problem = path, fmt.Sprintf(format, args...)
	}
	return mapping()
}

func (e *expander) expand(n *yaml.Node, path string, depth int) *yaml.Node {
	if e.budget--; e.budget < 0 || depth > maxDepth {
		return e.fail(path, "line %d: it is nested too deeply, or its aliases expand to too much", n.Line)
	}
	if e.problem != "" {
		return mapping()
	}
	switch n.Kind {
	case yaml.AliasNode:
		return e.expand(n.Alias, path, depth+1)
	case yaml.SequenceNode:
		out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style}
		for i, item := range n.Content {
			out.Content = append(out.Content, e.expand(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return out
	case yaml.MappingNode:
		return e.expandMapping(n, path, depth)
	default:
		if isNull(n) {
			// Written out: left empty, it would become an empty string where a plain scalar cannot be empty.
			return &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: "null"}
		}
		return &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: style(n), Value: n.Value}
	}
}

// style returns the style in which a scalar is written again: its own, except that a block which might not stay the same becomes
// quoted.
func style(n *yaml.Node) yaml.Style {
	blocks := yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&blocks == 0 {
		return n.Style
	}
	if isBlockSafe(n.Value) {
		return n.Style&^blocks | yaml.LiteralStyle
	}
	return n.Style&^blocks | yaml.DoubleQuotedStyle
}

func (e *expander) expandMapping(n *yaml.Node, path string, depth int) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || isNull(key) {
			return e.fail(path, "line %d: a key must be a plain word", key.Line)
		}
		below := child(path, key.Value)
		if key.Tag == "!!merge" {
			merged = append(merged, e.expand(value, below, depth+1))
			continue
		}
		if get(out, key.Value) != nil {
			return e.fail(below, "line %d: the key is there twice: cloud-init would take the last one", key.Line)
		}
		out.Content = append(out.Content,
			&yaml.Node{Kind: key.Kind, Tag: key.Tag, Style: key.Style, Value: key.Value}, e.expand(value, below, depth+1))
	}
	for _, m := range merged {
		addMissing(out, m)
	}
	return out
}

// addMissing adds the keys that the mapping does not have yet, which is the meaning of a merge key.
func addMissing(into, from *yaml.Node) {
	if from.Kind == yaml.SequenceNode {
		for _, m := range from.Content {
			addMissing(into, m)
		}
		return
	}
	if from.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		if get(into, from.Content[i].Value) == nil {
			into.Content = append(into.Content, from.Content[i], from.Content[i+1])
		}
	}
}

func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Merge puts a later layer over an earlier one. Mappings merge and lists append. Of scalars, and of values of different kinds,
// the later one is taken.
func Merge(earlier, later Document) Document {
	return Document{root: merge(earlier.root, later.root)}
}

func merge(a, b *yaml.Node) *yaml.Node {
	if a.Kind != b.Kind || a.Kind == yaml.ScalarNode {
		return b
	}
	out := &yaml.Node{Kind: a.Kind, Tag: a.Tag, Style: a.Style & b.Style}
	out.Content = append(out.Content, a.Content...)
	if a.Kind == yaml.SequenceNode {
		out.Content = append(out.Content, b.Content...)
		return out
	}
	for i := 0; i+1 < len(b.Content); i += 2 {
		key, value := b.Content[i], b.Content[i+1]
		if old := get(out, key.Value); old != nil {
			value = merge(old, value)
		}
		set(out, key.Value, value)
	}
	return out
}
