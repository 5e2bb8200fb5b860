package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// WriteTable writes lines of cells with every column but the last aligned.
func WriteTable(w io.Writer, table [][]string) error {
	var widths []int
	for _, line := range table {
		for i, cell := range line {
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
