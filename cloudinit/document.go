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

// maxNodes bounds a document after its aliases are expanded: a few lines of nested aliases can mean billions of nodes.
const maxNodes = 200_000

// maxDepth bounds nesting.
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
		// The parser's message may quote the text, and the text may be secret: only the line is told.
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

// decode reads one document. The parser has panicked on malformed text before; such text is an error like any other.
func decode(d *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the parser gave up")
		}
	}()
	return d.Decode(into)
}

// line extracts the place from an error of the parser.
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

// get returns the value of a key, nil when there is none.
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
	m.Content = append(m.Content, word(key), value)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// scalar is a string value, quoted: cloud-init reads YAML 1.1, in which words such as on and values such as 0644 or 1:30
// are no strings when they stand plain. Text of several lines is a block.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	if blockSafe(s) {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// word is a key.
func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// blockSafe says whether the text survives being written as a block. Blocks that begin with white space need an
// indentation hint, on which parsers disagree, and a carriage return would be read as a line break.
func blockSafe(s string) bool {
	return strings.Contains(s, "\n") && !strings.ContainsAny(s[:1], " \t\n") && !strings.Contains(s, "\r")
}
