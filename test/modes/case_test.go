package modes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/rack"
)

// mode is a file of testdata.
type mode struct {
	name string
	made *made
	// Server is the hardware.
	Server server `json:"server"`
	// NodeType and OSImage are the specs that people write.
	NodeType v1alpha1.NodeTypeSpec `json:"nodeType"`
	OSImage  v1alpha1.OSImageSpec  `json:"osImage"`
	// Secrets by name and key.
	Secrets map[string]map[string]string `json:"secrets"`
	// Install is how the tenant's software gets there: manifests, charts; the first is that of the changes.
	Install []string `json:"install"`
	// Own is software of the tenant's own.
	Own []map[string]any `json:"own"`
	// Shows are facts of the settled node, name=value: resources, labels, devices of drivers.
	Shows []string `json:"shows"`
	// Unseen is text of lines of the documents without which the verdict passes for another node.
	Unseen []string `json:"unseen"`
	// Changes each break one thing.
	Changes []change `json:"changes"`
}

// server is hardware, in the rack's own words.
type server struct {
	CPU          string          `json:"cpu"`
	Architecture string          `json:"architecture"`
	PCI          []rack.PCIGroup `json:"pci"`
	// PersistedMIG: an earlier system left the GPUs in MIG mode, which some keep.
	PersistedMIG bool `json:"persistedMIG"`
}

// change changes one line.
type change struct {
	// Why in words.
	Why string `json:"why"`
	// How the software is installed; empty: the mode's first way.
	How string `json:"how"`
	// Of is what is changed: documents, tenant, image, server.
	Of string `json:"of"`
	// Line is text of the line that is changed, and To what it becomes; empty: it goes.
	Line string `json:"line"`
	To   string `json:"to"`
	// Fails are the checks that fail then, in order, separated by blanks; or "no node: " and text of the reason; or nothing where
	// the mode stands it.
	Fails string `json:"fails"`
	// Reboots: the machine boots once more before it is looked at.
	Reboots bool `json:"reboots"`
	// number of the line, from 1; 0: the first that has the text.
	number int
}

// cases are all files of testdata.
func cases(t *testing.T) []mode {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var out []mode
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := mode{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), made: &made{tenant: map[string]string{}}}
		if err := yaml.UnmarshalStrict(text, &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, m)
	}
	return out
}

// edited is the text with the change. A line that is not there is the test's own mistake.
func (c change) edited(t *testing.T, of, text string) string {
	t.Helper()
	if c.Of != of {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if c.number > 0 && c.number != i+1 || !strings.Contains(line, c.Line) {
			continue
		}
		if c.To == "" {
			return strings.Join(append(lines[:i:i], lines[i+1:]...), "\n")
		}
		lines[i] = strings.Replace(line, c.Line, c.To, 1)
		return strings.Join(lines, "\n")
	}
	t.Fatalf("no line of %s has %q:\n%s", of, c.Line, text)
	return ""
}

// rewritten is a value with the change of its YAML. The error is that of what is no YAML any more, or of another shape.
func rewritten[T any](t *testing.T, c change, of string, value T) (T, error) {
	t.Helper()
	if c.Of != of {
		return value, nil
	}
	var out T
	if err := yaml.Unmarshal([]byte(c.edited(t, of, asYAML(t, value))), &out); err != nil {
		return value, fmt.Errorf("after the change of %q: %w", c.Line, err)
	}
	return out, nil
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plainly is a value as JSON has it.
func plainly(t *testing.T, value, into any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func objects(all []map[string]any) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range all {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}
