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

// definitions are those that Ingot is installed with.
var definitions = sync.OnceValues(func() (*admission.Definitions, error) {
	return admission.Load(config.Files, "crd/bases", "crd/metal3")
})

// Known says whether Ingot has a definition of the object's kind. A kind that Ingot's own API group does not have is an
// error that names those it has.
func Known(m Manifest) (bool, error) {
	all, err := definitions()
	if err != nil {
		return false, err
	}
	if all.Knows(m.APIVersion(), m.Kind()) {
		return true, nil
	}
	if group, _, _ := strings.Cut(m.APIVersion(), "/"); group == v1alpha1.GroupVersion.Group {
		return false, fmt.Errorf("expected %s of kind %s, seen %s %s", v1alpha1.GroupVersion, strings.Join(all.Kinds(v1alpha1.GroupVersion.String()), ", "), m.APIVersion(), m.Kind())
	}
	return false, nil
}

// Admit fills in the defaults of an object of a known kind, and reports what an API server would refuse.
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
		out = append(out, m.Finding(f.Field, f.Rule, "%s", f.Message))
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
		out.Names = append(out.Names, called(p))
	}
	return out, err
}

// MissingError: the files do not have the object that is needed.
type MissingError struct {
	// Kind and Name of the object; an empty name stands for any.
	Kind, Name string
	// Seen are the names of those of the kind that are there.
	Seen []string
	// Files that were read.
	Files []string
	// For says what needs it; empty: whoever calls.
	For string
}

// Error says what is there instead.
func (e *MissingError) Error() string {
	seen := "none"
	if len(e.Seen) > 0 {
		seen = strings.Join(e.Seen, ", ")
	}
	text := fmt.Sprintf("expected %s in %s, seen %s", strings.TrimSpace(e.Kind+" "+e.Name), strings.Join(e.Files, ", "), seen)
	if e.For != "" {
		return e.For + ": " + text + ": add its file with -f"
	}
	return text
}

// SeveralError: the files have several objects, and which is meant was not said.
type SeveralError struct {
	// Kind of the objects.
	Kind string
	// Seen are their names.
	Seen []string
	// Flag that says which.
	Flag string
}

// Error says how to choose.
func (e *SeveralError) Error() string {
	return fmt.Sprintf("expected one %s, seen %s: say which with %s", e.Kind, strings.Join(e.Seen, ", "), e.Flag)
}

// RefusedError is an object that an API server would refuse.
type RefusedError struct {
	// Findings in the order of importance; at least one.
	Findings []Finding
}

// Error says the first finding and how many more there are.
func (e *RefusedError) Error() string {
	text := e.Findings[0].String()
	if n := len(e.Findings) - 1; n > 0 {
		text += fmt.Sprintf("; and %d more: ingot validate tells all", n)
	}
	return text
}

// find decodes the object of that kind and name, of all namespaces, as an API server would store it.
func find(files Files, kind, name, needed string, into any) error {
	var seen []string
	for _, m := range files.Manifests {
		if m.Kind() != kind || m.APIVersion() != v1alpha1.GroupVersion.String() && kind != "BareMetalHost" {
			continue
		}
		if m.Name() != name {
			seen = append(seen, m.Name())
			continue
		}
		return admitted(m, into)
	}
	return &MissingError{Kind: kind, Name: name, Seen: seen, Files: files.Names, For: needed}
}

func admitted(m Manifest, into any) error {
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
