package offline

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// Flags are the flags of a command that reads manifests.
type Flags struct {
	// Paths of the manifests.
	Paths []string
	// NodeType by name; empty: the only one.
	NodeType string
}

// AddFileFlag adds the flag -f to a command.
func AddFileFlag(c *cobra.Command, f *Flags) {
	c.Flags().StringArrayVarP(&f.Paths, "filename", "f", nil, "file or folder with manifests, or - for standard input; may be repeated")
}

// AddNodeTypeFlag adds the flag --nodetype to a command.
func AddNodeTypeFlag(c *cobra.Command, f *Flags) {
	c.Flags().StringVar(&f.NodeType, "nodetype", "", "name of the NodeType, where the files have several")
}

// Open reads the manifests. Without any file it is a usage error.
func (f Flags) Open(cmd *cobra.Command) (Files, error) {
	if len(f.Paths) == 0 {
		return Files{}, cli.Usagef(cmd, "expected -f, a file or folder with manifests")
	}
	return Open(f.Paths, cmd.InOrStdin())
}

// Output is the flag -o of a command that writes text or JSON.
type Output string

// AddOutputFlag adds the flag -o to a command.
func AddOutputFlag(c *cobra.Command, o *Output) {
	c.Flags().StringVarP((*string)(o), "output", "o", "text", "text or json")
}

// IsJSON says whether the output is JSON. A value other than text and json is a usage error.
func (o Output) IsJSON(cmd *cobra.Command) (bool, error) {
	switch o {
	case "text":
		return false, nil
	case "json":
		return true, nil
	default:
		return false, cli.Usagef(cmd, "-o %s: expected text or json", o)
	}
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
