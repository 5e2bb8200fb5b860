package cloudinit

import (
	"fmt"
	"strings"
)

// Finding is one place of people's user data that cannot stand.
type Finding struct {
	// Layer that it is in: NodeProvider hall-1.
	Layer string
	// Property of that object which has the layer; empty: its userData.
	Property string
	// Path within the layer: write_files[2].path; empty: the whole layer.
	Path string
	// Message says why, and what to do instead. It never quotes a value of the user data, which may be secret.
	Message string
}

// String is the layer, the path and the message.
func (f Finding) String() string {
	text := Layer{Name: f.Layer, Property: f.Property}.String() + ": "
	if f.Path != "" {
		text += f.Path + ": "
	}
	return text + f.Message
}

// Conflict is user data that fights what Ingot needs.
type Conflict struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error names every finding.
func (c *Conflict) Error() string { return "user data fights what the node needs: " + join(c.Findings) }

// Invalid is user data that is no #cloud-config document.
type Invalid struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error names every finding.
func (i *Invalid) Error() string { return "user data is invalid: " + join(i.Findings) }

func join(findings []Finding) string {
	parts := make([]string, len(findings))
	for i, f := range findings {
		parts[i] = f.String()
	}
	return strings.Join(parts, "; ")
}

// TooLarge is a node whose documents exceed Limit.
type TooLarge struct {
	// Bytes of all documents together.
	Bytes int
}

// Error says both sizes.
func (t *TooLarge) Error() string {
	return fmt.Sprintf("the node's documents have %d bytes, the limit is %d: fetch large files at the first boot, or bake them into the image", t.Bytes, Limit)
}

// Unsupported is what the image's kind of user data lacks and the node needs.
type Unsupported struct {
	// Kind of user data.
	Kind string
	// What is lacking, and what to do instead; empty: this version does not render the kind at all.
	What string
}

// Error says what is lacking.
func (u *Unsupported) Error() string {
	if u.What != "" {
		return u.What
	}
	return fmt.Sprintf("this version does not render user data of kind %s; it renders CloudInit and Ignition", u.Kind)
}
