package conversion

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Rules of findings.
const (
	// RuleAdd: Ingot needs a value that the other system does not have.
	RuleAdd = "convert/add"
	// RuleCheck: the value was carried over, and its meaning in Ingot is different.
	RuleCheck = "convert/check"
	// RuleLost: Ingot has no field for the value.
	RuleLost = "convert/not-carried-over"
)

// Converted is one of Ingot's objects with the findings about it.
type Converted struct {
	// Object as it is applied.
	cli.Object
	// Findings about the manifests that it was converted from.
	Findings []offline.Finding
}

// Report is the outcome of a conversion.
type Report struct {
	// Objects in the order in which they are applied.
	Objects []Converted
	// Findings in the order in which they were made.
	Findings []offline.Finding

	// begun is the first finding that belongs to the next object.
	begun int
}

// Begin ends the findings of the object before: those that follow belong to the next object.
func (r *Report) Begin() { r.begun = len(r.Findings) }

// AddFinding adds a finding about a field of a manifest.
func (r *Report) AddFinding(m offline.Manifest, field, rule, format string, args ...any) {
	r.Findings = append(r.Findings, m.NewFinding(field, rule, format, args...))
}

// AddConverted adds one of Ingot's objects, with the findings since the object before it.
func (r *Report) AddConverted(kind string, metadata, spec map[string]any) {
	r.AddObject(cli.Object{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec})
}

// AddObject adds an object, with the findings since the object before it.
func (r *Report) AddObject(o cli.Object) {
	r.Objects = append(r.Objects, Converted{o, r.Findings[r.begun:]})
	r.Begin()
}

// ReportDroppedFields adds a finding for each field that is not in read. why has the reasons for fields that Ingot does not have.
func (r *Report) ReportDroppedFields(m offline.Manifest, object map[string]any, within string, why map[string]string, read ...string) {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch {
		case why[field] != "":
			r.AddFinding(m, within+"."+field, RuleLost, "%s", why[field])
		case !slices.Contains(read, field):
			r.AddFinding(m, within+"."+field, RuleLost, "this version does not know what to make of it")
		}
	}
}

// Write prints the objects as YAML, each with its findings as comments above it.
func (r *Report) Write(w io.Writer) error {
	for i, o := range r.Objects {
		if i > 0 {
			if _, err := fmt.Fprintln(w, "---"); err != nil {
				return err
			}
		}
		for _, f := range o.Findings {
			if _, err := fmt.Fprintf(w, "# %s\n", strings.TrimPrefix(f.String(), fmt.Sprintf("%s:%d: %s: ", f.File, f.Line, f.Object))); err != nil {
				return err
			}
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("print %v: %w", o.Object["kind"], err)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// ValueAt returns a part of an object; the zero value: it is not there or has another type.
func ValueAt[T any](object map[string]any, path ...string) T {
	var here any = object
	for _, step := range path {
		inner, _ := here.(map[string]any)
		here = inner[step]
	}
	value, _ := here.(T)
	return value
}

// CopyField sets a field when the value is not empty.
func CopyField(into map[string]any, key string, value any) {
	switch v := value.(type) {
	case nil:
	case string:
		if v != "" {
			into[key] = v
		}
	case map[string]any:
		if len(v) > 0 {
			into[key] = v
		}
	case []any:
		if len(v) > 0 {
			into[key] = v
		}
	default:
		into[key] = fmt.Sprint(v)
	}
}

// NewMetadata returns the metadata of an object that is converted from a manifest.
func NewMetadata(m offline.Manifest) map[string]any {
	out := map[string]any{"name": m.Name()}
	CopyField(out, "labels", ValueAt[map[string]any](m.Object, "metadata", "labels"))
	return out
}
