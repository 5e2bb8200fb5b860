package tenantsoftware_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/test/requests"
)

var update = flag.Bool("update", false, "write the golden files")

// nodeTypes are the requests that resolve, as NodeTypes of those names.
func nodeTypes(t testing.TB) map[string]software.NodeType {
	t.Helper()
	out := map[string]software.NodeType{}
	for name, r := range requests.All() {
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = software.NodeType{
			Name: name, GPU: r.GPU, Image: r.Image, Plan: plan, Gate: corev1.Taint{Key: "ingot.dev/unvalidated", Effect: corev1.TaintEffectNoSchedule},
			Taints: []corev1.Taint{{Key: "example.com/team", Value: "research", Effect: corev1.TaintEffectNoSchedule}},
		}
	}
	return out
}

// renderSoftware is everything that is said for the NodeTypes, as text.
func renderSoftware(t testing.TB, all ...software.NodeType) (charts, parts string) {
	t.Helper()
	var a, b bytes.Buffer
	made, err := tenantsoftware.Charts(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range made {
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&a, "##### %s %s\n%s", c.Name, c.Version, text)
		objects, err := manifest.YAML("with:", c.Objects)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Objects) > 0 {
			a.Write(objects)
		}
	}
	objects, err := tenantsoftware.Components(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range objects {
		text, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "##### %s\n%s", p.Name, text)
	}
	for _, n := range tenantsoftware.Notes(all) {
		fmt.Fprintf(&b, "##### %s\n", n)
	}
	return a.String(), b.String()
}

func TestChartsAndManifestsAreAsInTheGoldenFiles(t *testing.T) {
	for name, n := range nodeTypes(t) {
		charts, parts := renderSoftware(t, n)
		for file, got := range map[string]string{name + ".charts": charts, name + ".manifests": parts} {
			path := filepath.Join("testdata", file+".yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
}
