package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/input"
)

// visible writes to a terminal what can be seen of a text. A document that goes into a file stays as it is.
type visible struct{ to io.Writer }

// visibleOn returns the writer, with visible before it where it is a terminal.
func visibleOn(to io.Writer) io.Writer {
	if file, isFile := to.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		return visible{to}
	}
	return to
}

// Write implements io.Writer. Commands write whole texts: no character is in two of them.
func (v visible) Write(text []byte) (int, error) {
	if _, err := io.WriteString(v.to, input.Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxCell is far above the longest cell, in bytes.
const maxCell = 8192

// WriteTable writes lines of cells with every column but the last aligned. A cell is one line of characters that can be seen.
func WriteTable(w io.Writer, table [][]string) error {
	var widths []int
	for _, line := range table {
		for i := range line {
			line[i] = input.Line(line[i], maxCell)
			cell := line[i]
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range table {
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteResult writes the outcome of a command that changed something: as one line, or as the member result of a JSON object.
func WriteResult(w io.Writer, asJSON bool, text string) error {
	if asJSON {
		quoted, err := json.Marshal(map[string]string{"result": text})
		if err != nil {
			return fmt.Errorf("print as JSON: %w", err)
		}
		text = string(quoted)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// Object is a Kubernetes object as it is applied, without the fields that only the server sets.
type Object map[string]any

// PrintObjects writes objects as one stream of YAML documents, as `kubectl apply -f -` reads it.
func PrintObjects(w io.Writer, objects ...Object) error {
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("print %v: %w", o["kind"], err)
		}
		separator := "---\n"
		if i == 0 {
			separator = ""
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, text); err != nil {
			return err
		}
	}
	return nil
}

// InNamespace says where something was looked for; an empty name is every namespace.
func InNamespace(name string) string {
	if name == "" {
		return "in any namespace"
	}
	return "in namespace " + name
}
