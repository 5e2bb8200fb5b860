package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// ErrCycle is returned for a YAML alias that stands for what contains it.
var ErrCycle = errors.New("an alias stands for a value that contains it")

// ErrDocuments is returned for a text of YAML with several documents where one is expected.
var ErrDocuments = errors.New("it has several documents of YAML: begin each with a line of three hyphens, and end lines with a line feed alone")

// CheckYAML returns an *Error when the text is larger than the bounds, or what its aliases expand to; and the error of the parser for a text that is no YAML.
// It returns ErrDocuments for a text with several: whoever decodes one reads the first, and knows nothing of the others.
//
// Without it: 64 KiB whose aliases stand for lists of aliases become gigabytes in whoever decodes them.
func CheckYAML(text []byte, b Bounds) error {
	if err := checkBytes(int64(len(text)), b); err != nil {
		return err
	}
	document, err := parseYAML(text)
	if err != nil {
		return err
	}
	x := expansion{bounds: b, sizes: map[*yaml.Node]size{}}
	s, err := x.measure(document)
	if err != nil {
		return err
	}
	_, err = x.add(size{}, s)
	return err
}

// parseYAML returns the document of a text, which is empty where the text has none, and ErrDocuments where it has several. Aliases are not expanded.
func parseYAML(text []byte) (document *yaml.Node, err error) {
	defer func() {
		// The parser has panicked on malformed text before.
		if caught := recover(); caught != nil {
			document, err = nil, fmt.Errorf("no YAML: %v", caught)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	document = &yaml.Node{}
	if err := decoder.Decode(document); errors.Is(err, io.EOF) {
		return document, nil
	} else if err != nil {
		return nil, err
	}
	switch err := decoder.Decode(&yaml.Node{}); {
	case errors.Is(err, io.EOF):
		return document, nil
	case err != nil:
		return nil, err
	}
	return nil, ErrDocuments
}

// size is what a value expands to.
type size struct {
	elements, bytes int64
	depth           int
}

// expansion measures values. Each is measured once, however many aliases stand for it.
type expansion struct {
	bounds Bounds
	sizes  map[*yaml.Node]size
}

// unfinished is the size of a value while it is measured.
const unfinished = -1

func (x *expansion) measure(n *yaml.Node) (size, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if s, isKnown := x.sizes[n]; isKnown {
		if s.depth == unfinished {
			return size{}, ErrCycle
		}
		return s, nil
	}
	x.sizes[n] = size{depth: unfinished}
	s, deepest := size{elements: 1, bytes: int64(len(n.Value))}, 0
	for _, part := range n.Content {
		inner, err := x.measure(part)
		if err != nil {
			return size{}, err
		}
		if s, err = x.add(s, inner); err != nil {
			return size{}, err
		}
		deepest = max(deepest, inner.depth)
	}
	if len(n.Content) > 0 {
		s.depth = deepest + 1
	}
	if s.depth > x.bounds.Depth {
		return size{}, &Error{Seen: int64(s.depth), Most: int64(x.bounds.Depth), Unit: "levels"}
	}
	x.sizes[n] = s
	return s, nil
}

func (x *expansion) add(to, what size) (size, error) {
	to.elements, to.bytes = to.elements+what.elements, to.bytes+what.bytes
	if to.elements > int64(x.bounds.Elements) {
		return size{}, &Error{Seen: to.elements, Most: int64(x.bounds.Elements), Unit: "elements"}
	}
	return to, checkBytes(to.bytes, x.bounds)
}
