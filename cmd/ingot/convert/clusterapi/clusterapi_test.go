package clusterapi

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/cmd/ingot/validate"
)

var update = flag.Bool("update", false, "write the golden files")

// convertFile returns the objects as they are printed, and the findings.
func convertFile(t *testing.T, path string) (objects, findings string) {
	t.Helper()
	all, err := offline.Read([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := Convert(all)
	var printed, found bytes.Buffer
	if err := report.Write(&printed); err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		found.WriteString(f.String() + "\n")
	}
	return printed.String(), found.String()
}

func TestASiteBecomesWhatIsWritten(t *testing.T) {
	objects, findings := convertFile(t, "testdata/site.yaml")
	for file, got := range map[string]string{"ingot.yaml": objects, "findings.txt": findings} {
		file = filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is stale: write it with -update and read it: %s", file, diff)
		}
	}
}

// TestWhatIsLeftToDoIsWhatValidateAsksFor: the result is refused only for what the comments ask to add, and nothing is wrong once that is there.
func TestWhatIsLeftToDoIsWhatValidateAsksFor(t *testing.T) {
	objects, _ := convertFile(t, "testdata/site.yaml")
	if diff := cmp.Diff([]string{
		"OSImage ubuntu-24.04-node-image-k8s-v1.34.2 spec.os schema/required",
		"NodeType plain spec.hostSelector schema/required",
	}, findingsOf(t, objects)); diff != "" {
		t.Error(diff)
	}
	completed := strings.NewReplacer(
		"  software:\n    kubelet:", "  os: {id: ubuntu, version: \"24.04\"}\n  software:\n    kubelet:",
		"  name: plain\nspec:\n", "  name: plain\nspec:\n  hostSelector: {matchLabels: {rack: r3}}\n",
	).Replace(objects)
	if got := findingsOf(t, completed); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func findingsOf(t *testing.T, objects string) []string {
	t.Helper()
	files, err := offline.Open([]string{"-"}, strings.NewReader(objects))
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Validate(files, validate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range report.Findings {
		out = append(out, f.Object+" "+f.Field+" "+f.Rule)
	}
	return out
}

// FuzzConvert: whatever is in a manifest, the conversion ends and what it prints is YAML.
func FuzzConvert(f *testing.F) {
	site, err := os.ReadFile("testdata/site.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(site))
	f.Add("apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {template: 1, replicas: {}}\n")
	f.Add("apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: 1}\nspec: []\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := offline.Read([]string{"-"}, strings.NewReader(text))
		if err != nil {
			t.Skip()
		}
		report := Convert(all)
		var out bytes.Buffer
		if err := report.Write(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := offline.Read([]string{"-"}, &out); len(report.Objects) > 0 && err != nil {
			t.Errorf("%v", err)
		}
	})
}
