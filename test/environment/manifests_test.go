package environment

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write config/samples/tenant")

const samples = "../../config/samples"

// made is the last line of a sample's comment.
const made = "\nMade from the NodeTypes beside it: ingot render -f config/samples --output operator-manifests"

func TestTheSamplesForTenantsAreWhatTheNodeTypesNeed(t *testing.T) {
	management, tenants, err := ReadSamples(os.DirFS(samples))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := VendorParts(management)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, p := range parts {
		p.About += made
		want, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(samples, "tenant", p.Name+".yaml")
		files = append(files, file)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale: go test ./test/environment -update: %s", file, diff)
		}
	}
	if got, err := filepath.Glob(filepath.Join(samples, "tenant", "*")); err != nil || cmp.Diff(files, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(files, got))
	}
	if len(tenants) == 0 {
		t.Error("nothing is applied to tenants")
	}
}

func TestWithoutAFolderForTenantsTheirSoftwareIsMade(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"nodetype.yaml", "osimage.yaml"} {
		text, err := os.ReadFile(filepath.Join(samples, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	_, got, err := ReadSamples(files)
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := ReadSamples(os.DirFS(samples))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
