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

// mode is a case: the content of one file in testdata.
type mode struct {
	name  string
	cache *cache
	// Server is the hardware.
	Server server `json:"server"`
	// NodeType and OSImage are the specs that users write.
	NodeType v1alpha1.NodeTypeSpec `json:"nodeType"`
	OSImage  v1alpha1.OSImageSpec  `json:"osImage"`
	// Secrets holds the contents of Secrets by name and key.
	Secrets map[string]map[string]string `json:"secrets"`
	// Install lists the ways in which the tenant's software is installed: manifests, charts. Changes use the first one.
	Install []string `json:"install"`
	// Own are the tenant's own objects.
	Own []map[string]any `json:"own"`
	// Shows lists facts that the node must have, as name=value: resources, labels, devices of drivers.
	Shows []string `json:"shows"`
	// Unseen lists texts of document lines whose removal the verdict does not notice although the node differs.
	Unseen []string `json:"unseen"`
	// Changes are edits that each break one thing.
	Changes []change `json:"changes"`
}

// server describes hardware in the terms of package rack.
type server struct {
	CPU          string          `json:"cpu"`
	Architecture string          `json:"architecture"`
	PCI          []rack.PCIGroup `json:"pci"`
	// PersistedMIG means that an earlier system left the GPUs in MIG mode, which some models keep.
	PersistedMIG bool `json:"persistedMIG"`
}

// change is an edit of one line, and the checks that fail because of it.
type change struct {
	// Why describes the change.
	Why string `json:"why"`
	// How is the way in which the software is installed; empty means the mode's first one.
	How string `json:"how"`
	// Of is what is edited: documents, tenant, image or server.
	Of string `json:"of"`
	// Line is text of the line to edit, and To its replacement; an empty To removes the line.
	Line string `json:"line"`
	To   string `json:"to"`
	// Nth says which of the lines that have the text is edited, from 1; 0 means the first.
	Nth int `json:"nth"`
	// Fails lists the checks that then fail, in order, separated by blanks; or is "no node: " and text of the reason; or is
	// empty where the mode still passes.
	Fails string `json:"fails"`
	// Reboots means that the machine boots a second time before the node is observed.
	Reboots bool `json:"reboots"`
	// number is the line's number from 1; 0 means the first line that has the text.
	number int
}

// readModes reads all files of testdata.
func readModes(t *testing.T) []mode {
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
		m := mode{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), cache: &cache{tenant: map[string]string{}}}
		if err := yaml.UnmarshalStrict(text, &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, m)
	}
	return out
}

// apply returns the text with the change. It fails the test when no line has the change's text.
func (c change) apply(t *testing.T, of, text string) string {
	t.Helper()
	if c.Of != of {
		return text
	}
	lines, nth := strings.Split(text, "\n"), 0
	for i, line := range lines {
		if c.number > 0 && c.number != i+1 || !strings.Contains(line, c.Line) {
			continue
		}
		if nth++; nth < c.Nth {
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

// applyTo returns a value with the change applied to its YAML. It returns an error when the result is not YAML or not of
// this type.
func applyTo[T any](t *testing.T, c change, of string, value T) (T, error) {
	t.Helper()
	if c.Of != of {
		return value, nil
	}
	var out T
	if err := yaml.Unmarshal([]byte(c.apply(t, of, asYAML(t, value))), &out); err != nil {
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

// convertJSON copies a value into another type by way of JSON.
func convertJSON(t *testing.T, value, into any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func toUnstructured(all []map[string]any) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range all {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}
