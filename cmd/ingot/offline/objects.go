package offline

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline/admission"
	"github.com/ingot-dev/ingot/config"
)

// definitions are the CustomResourceDefinitions that Ingot is installed with.
var definitions = sync.OnceValues(func() (*admission.Definitions, error) {
	return admission.Load(config.Files, "crd/bases", "crd/metal3")
})

// IsKnown says whether Ingot has a definition of the object's kind. For an unknown kind of Ingot's own API group the error names the
// kinds that exist.
func IsKnown(m Manifest) (bool, error) {
	all, err := definitions()
	if err != nil {
		return false, err
	}
	if all.HasKind(m.APIVersion(), m.Kind()) {
		return true, nil
	}
	if group, _, _ := strings.Cut(m.APIVersion(), "/"); group == v1alpha1.GroupVersion.Group {
		return false, fmt.Errorf("expected %s of kind %s, seen %s %s", v1alpha1.GroupVersion, strings.Join(all.Kinds(v1alpha1.GroupVersion.String()), ", "), m.APIVersion(), m.Kind())
	}
	return false, nil
}

// Admit sets the defaults of an object of a known kind, and reports what an API server would refuse.
func Admit(m Manifest) ([]Finding, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	found, err := all.Admit(m.APIVersion(), m.Kind(), m.Object, nil)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range found {
		out = append(out, m.NewFinding(f.Field, f.Rule, "%s", f.Message))
	}
	return out, nil
}

// Files are manifests that were read together.
type Files struct {
	// Names of the files, as they were given, for messages.
	Names []string
	// Manifests in the order in which they were read.
	Manifests []Manifest
}

// Open reads manifests; see Read.
func Open(paths []string, stdin io.Reader) (Files, error) {
	all, err := Read(paths, stdin)
	out := Files{Manifests: all}
	for _, p := range paths {
		out.Names = append(out.Names, displayName(p))
	}
	return out, err
}

// MissingError says that the files do not have an object that is needed.
type MissingError struct {
	// Kind and Name of the object; an empty name stands for any.
	Kind, Name string
	// Names are those of the objects of the kind that the files have.
	Names []string
	// Files that were read.
	Files []string
	// NeededBy says what refers to the object; empty: the command line.
	NeededBy string
}

// Error says which objects the files have instead.
func (e *MissingError) Error() string {
	seen := "none"
	if len(e.Names) > 0 {
		seen = strings.Join(e.Names, ", ")
	}
	text := fmt.Sprintf("expected %s in %s, seen %s", strings.TrimSpace(e.Kind+" "+e.Name), strings.Join(e.Files, ", "), seen)
	if e.NeededBy != "" {
		return e.NeededBy + ": " + text + ": add its file with -f"
	}
	return text
}

// AmbiguousError says that the files have several objects, and that the command line chooses none of them.
type AmbiguousError struct {
	// Kind of the objects.
	Kind string
	// Names are those of the objects.
	Names []string
	// Flag chooses one of them.
	Flag string
}

// Error says how to choose.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("expected one %s, seen %s: say which with %s", e.Kind, strings.Join(e.Names, ", "), e.Flag)
}

// RefusedError says that an API server would refuse an object.
type RefusedError struct {
	// Findings in the order of importance; at least one.
	Findings []Finding
}

// Error returns the first finding and the number of others.
func (e *RefusedError) Error() string {
	text := e.Findings[0].String()
	if n := len(e.Findings) - 1; n > 0 {
		text += fmt.Sprintf("; and %d more: ingot validate tells all", n)
	}
	return text
}

// findObject decodes the object of a kind and a name, in any namespace, as an API server would store it.
func findObject(files Files, kind, name, needed string, into any) error {
	var seen []string
	for _, m := range files.Manifests {
		if m.Kind() != kind || m.APIVersion() != v1alpha1.GroupVersion.String() && kind != "BareMetalHost" {
			continue
		}
		if m.Name() != name {
			seen = append(seen, m.Name())
			continue
		}
		return decodeAdmitted(m, into)
	}
	return &MissingError{Kind: kind, Name: name, Names: seen, Files: files.Names, NeededBy: needed}
}

func decodeAdmitted(m Manifest, into any) error {
	found, err := Admit(m)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return &RefusedError{Findings: found}
	}
	if err := m.Decode(into); err != nil {
		return fmt.Errorf("%s: %s: %w", m.File, m, err)
	}
	return nil
}
