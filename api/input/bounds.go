package input

import (
	"fmt"
	"io"
)

// Bounds say how large a text may be, and what may be made of it.
type Bounds struct {
	// Bytes of the text and, for YAML, of what its aliases expand to.
	Bytes int64
	// Depth of lists and objects within each other.
	Depth int
	// Elements are values: of lists, of objects and alone. What an alias stands for counts where the alias is.
	Elements int
}

// Error says which bound an input exceeds. It quotes nothing of the input, which may be secret.
type Error struct {
	// Seen and Most are what was counted, at least, and what is allowed.
	Seen, Most int64
	// Unit is what was counted: bytes, elements, levels.
	Unit string
}

// Error returns what is expected and seen.
func (e *Error) Error() string {
	return fmt.Sprintf("too large: expected at most %d %s, seen %d or more", e.Most, e.Unit, e.Seen)
}

func checkBytes(n int64, b Bounds) error {
	if n > b.Bytes {
		return &Error{Seen: n, Most: b.Bytes, Unit: "bytes"}
	}
	return nil
}

// ReadAll reads at most so many bytes. A reader that has more is an *Error.
func ReadAll(r io.Reader, bytes int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, bytes+1))
	if err != nil {
		return nil, err
	}
	if err := checkBytes(int64(len(text)), Bounds{Bytes: bytes}); err != nil {
		return nil, err
	}
	return text, nil
}

// counter counts elements and depth.
type counter struct {
	bounds   Bounds
	elements int
	depth    int
}

func (c *counter) add(elements int) error {
	c.elements += elements
	if c.elements > c.bounds.Elements {
		return &Error{Seen: int64(c.elements), Most: int64(c.bounds.Elements), Unit: "elements"}
	}
	return nil
}

func (c *counter) enter() error {
	c.depth++
	if c.depth > c.bounds.Depth {
		return &Error{Seen: int64(c.depth), Most: int64(c.bounds.Depth), Unit: "levels"}
	}
	return nil
}
