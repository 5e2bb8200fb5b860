package cli

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Object is a Kubernetes object as it is applied: what only the server fills in is not there.
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
