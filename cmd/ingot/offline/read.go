package offline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/cmd/ingot/offline/admission"
)

// standardInput is the path that stands for standard input.
const standardInput = "-"

// bounds are far above those of an object that an API server stores.
var bounds = input.Bounds{Bytes: 16 << 20, Depth: 100, Elements: 500_000}

// maxFile is how many bytes of a file are read: a thousand documents of a large object.
const maxFile = 256 << 20

// extensions are the extensions of the files that are read in a folder, as kubectl does.
var extensions = []string{".json", ".yaml", ".yml"}

// ReadError says that a file cannot be read as manifests.
type ReadError struct {
	// File as it was given.
	File string
	// Line at which the document begins; 0: it is about the whole file.
	Line int
	Err  error
}

// Error names the place.
func (e *ReadError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Read reads the objects of files, of the manifests directly in folders, and of standard input for "-", in that order. The items of a
// list are returned as objects. The error is a *ReadError.
func Read(paths []string, stdin io.Reader) ([]Manifest, error) {
	var out []Manifest
	for _, path := range paths {
		files, err := listManifestFiles(path)
		if err != nil {
			return nil, &ReadError{File: path, Err: err}
		}
		for _, file := range files {
			found, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// listManifestFiles lists the manifests in a folder. For a file it returns the file.
func listManifestFiles(path string) ([]string, error) {
	if path == standardInput {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("expected files that end in %s, seen none in this folder; folders below it are not read", strings.Join(extensions, ", "))
	}
	return out, nil
}

// withoutPath returns the error without the path, which the caller adds.
func withoutPath(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}

// displayName is the name of a file in messages.
func displayName(path string) string {
	if path == standardInput {
		return "standard input"
	}
	return path
}

func readFile(path string, stdin io.Reader) ([]Manifest, error) {
	name, text, err := displayName(path), []byte(nil), error(nil)
	if path == standardInput {
		text, err = input.ReadAll(stdin, maxFile)
	} else {
		text, err = readAll(path)
	}
	if err != nil {
		return nil, &ReadError{File: name, Err: withoutPath(err)}
	}
	var out []Manifest
	for _, d := range input.SplitDocuments(text) {
		found, err := decodeDocument(d.Text)
		if err != nil {
			return nil, &ReadError{File: name, Line: d.Line, Err: err}
		}
		for i := range found {
			found[i].File, found[i].firstLine, found[i].text = name, d.Line, d.Text
		}
		out = append(out, found...)
	}
	return out, nil
}

func readAll(path string) (text []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return input.ReadAll(file, maxFile)
}

// decodeDocument decodes a document into an object, or into the items of a list.
func decodeDocument(text []byte) ([]Manifest, error) {
	if err := input.CheckYAML(text, bounds); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	object, err := admission.Decode(asJSON)
	if err != nil {
		return nil, fmt.Errorf("expected an object with apiVersion and kind: %w", err)
	}
	m := Manifest{Object: object}
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(m.Kind(), "List") {
		return []Manifest{m}, checkTypeMeta(m)
	}
	var out []Manifest
	for i, item := range items {
		inner, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: expected an object", i)
		}
		m := Manifest{Object: inner, path: fmt.Sprintf("items[%d]", i)}
		// The items of typed lists may have no apiVersion and kind.
		for key, value := range map[string]any{"apiVersion": object["apiVersion"], "kind": strings.TrimSuffix(Manifest{Object: object}.Kind(), "List")} {
			if _, said := inner[key]; !said && value != "" {
				inner[key] = value
			}
		}
		if err := checkTypeMeta(m); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func checkTypeMeta(m Manifest) error {
	if m.APIVersion() == "" || m.Kind() == "" {
		return fmt.Errorf("expected an object with apiVersion and kind, seen apiVersion %q and kind %q", m.APIVersion(), m.Kind())
	}
	return nil
}
