package offline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const several = `# a comment before the first document
---
# another
--- # and a separator that says something
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
data:
  text: |
    --- no separator, as it is indented
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: two, namespace: team}
  data:
    a: b
- metadata:
    name: three
---

`

func TestEveryObjectIsFoundWithItsPlace(t *testing.T) {
	all, err := Read([]string{"-"}, strings.NewReader(several))
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Name      string
		Text, Map int
	}
	var got []seen
	for _, m := range all {
		got = append(got, seen{m.String(), m.Line(""), m.Line("metadata.name")})
	}
	if diff := cmp.Diff([]seen{{"ConfigMap one", 5, 8}, {"ConfigMap team/two", 16, 16}, {"ConfigMap three", 19, 20}}, got); diff != "" {
		t.Error(diff)
	}
	if line := all[1].Line("data.a.nothing.below"); line != 18 {
		t.Errorf("a field that is not there has line %d, want that of its nearest part, 18", line)
	}
}

func TestEveryDocumentOfAStreamIsRead(t *testing.T) {
	const stream = "--- {apiVersion: v1, kind: A, metadata: {name: one}}\n--- {apiVersion: v1, kind: A, metadata: {name: two}}\n...\napiVersion: v1\nkind: A\nmetadata: {name: three}\n... # end\n# nothing\n"
	all, err := Read([]string{"-"}, strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, fmt.Sprintf("%s at %d", m, m.Line("kind")))
	}
	if diff := cmp.Diff([]string{"A one at 1", "A two at 2", "A three at 5"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPathsAreReadAsTheAPIServerWritesThem(t *testing.T) {
	for path, want := range map[string][]string{
		"": nil, "spec": {"spec"}, "spec.gpu.layout[0].profiles[1g.10gb]": {"spec", "gpu", "layout", "0", "profiles", "1g.10gb"},
		`resources["nvidia.com/gpu"]`: {"resources", "nvidia.com/gpu"}, "a[0][1].b": {"a", "0", "1", "b"},
	} {
		if diff := cmp.Diff(want, pathElements(path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestAFolderIsItsOwnManifests(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"b.yml": "{apiVersion: v1, kind: B}", "a.json": `{"apiVersion": "v1", "kind": "A"}`, "notes.txt": ":", "below/c.yaml": ":",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read([]string{dir}, nil)
	if err != nil || len(all) != 2 || all[0].Kind() != "A" || all[1].Kind() != "B" {
		t.Errorf("%v: %v", all, err)
	}
	var place *ReadError
	if _, err := Read([]string{filepath.Join(dir, "below", "..", "below")}, nil); !errors.As(err, &place) {
		t.Errorf("a file that is no manifest: %v", err)
	}
}

func TestWhatIsNoManifestHasAPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n":                                    "standard input:1: expected an object with apiVersion and kind",
		"{apiVersion: v1, kind: A}\n---\n- a\n":     "standard input:3:",
		"a: [\n":                                    "standard input:1:",
		"apiVersion: v1\nkind: A\nkind: B\n":        `key "kind" already set`,
		"{apiVersion: v1, kind: List, items: [1]}":  "items[0]: expected an object",
		"{apiVersion: v1, kind: List, items: [{}]}": "items[0]: expected an object with apiVersion and kind",
		"text": "standard input:1:",
	} {
		if _, err := Read([]string{"-"}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add(several)
	f.Add("apiVersion: ingot.dev/v1alpha1\nkind: NodeType\nmetadata: {name: x}\nspec: {gpu: {count: eight}}\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Read([]string{"-"}, strings.NewReader(text))
		if err != nil {
			return
		}
		for _, m := range all {
			if line := m.Line("metadata.name"); line < 1 || line > strings.Count(text, "\n")+2 {
				t.Errorf("line %d is not in the text", line)
			}
			if known, err := IsKnown(m); err == nil && known {
				if _, err := Admit(m); err != nil {
					t.Errorf("%v of a known kind: %v", m, err)
				}
			}
		}
	})
}

func TestDefaultsAreThoseOfTheServer(t *testing.T) {
	files, err := Open([]string{"../../../config/samples"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := files.FindNodeInputs("h100-mig")
	if err != nil {
		t.Fatal(err)
	}
	if s.NodeType.Spec.GPU.Driver.Source != "Image" || s.NodeType.Spec.Gate.TaintKey != "ingot.dev/unvalidated" || s.Image.Spec.UserData != "CloudInit" {
		t.Errorf("defaults are missing: %+v %+v", s.NodeType.Spec, s.Image.Spec)
	}
	if s.Provider == nil || s.Provider.Name != "hall-1" {
		t.Errorf("provider %v", s.Provider)
	}
}
