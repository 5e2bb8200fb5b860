package cloudinit

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// expander copies a tree of nodes without aliases, merge keys and comments, and refuses duplicate keys, of which
// cloud-init would silently take the last.
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

// style keeps the spelling of a scalar, except that blocks which may not survive being written again become quoted.
func style(n *yaml.Node) yaml.Style {
	blocks := yaml.LiteralStyle | yaml.FoldedStyle
	if n.Style&blocks == 0 {
		return n.Style
	}
	if blockSafe(n.Value) {
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

// addMissing does what a merge key means: what is there already wins.
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

// Merge puts a later layer over an earlier one: mappings merge, lists append, and of scalars, and of values of different
// kinds, the later wins.
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
