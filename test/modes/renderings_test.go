package modes

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

var update = flag.Bool("update", false, "write the golden NodeTypeRenderings that are missing; those that are there are never written again")

// renderings is where the golden NodeTypeRenderings of every encoding are kept.
const renderings = "../../controllers/plan/rendering/testdata"

func golden(encoding int, mode string) string {
	return filepath.Join(renderings, "encoding-"+strconv.Itoa(encoding), mode+".yaml")
}

// TestEveryModeHasAGoldenRenderingOfThisEncoding keeps what this version writes, so that every later one is held to it.
func TestEveryModeHasAGoldenRenderingOfThisEncoding(t *testing.T) {
	for _, m := range cases(t) {
		path := golden(int(v1alpha1.RenderingEncoding), m.name)
		if _, err := os.Stat(path); err == nil {
			continue
		} else if !*update {
			t.Errorf("%v: write it with -update", err)
			continue
		}
		plan, err := presentation.Resolve(spec.Request{GPU: m.NodeType.GPU, Image: m.OSImage})
		if err != nil {
			t.Fatal(err)
		}
		made, err := rendering.New(m.name+"-873a28a16f", plan)
		if err != nil {
			t.Fatal(err)
		}
		made.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeTypeRendering"}
		text, err := yaml.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// from is the mode as the golden rendering of an encoding has it: nothing of it is resolved. change edits the text of the file.
func (m mode) from(t *testing.T, encoding int, change func(string) string) mode {
	t.Helper()
	text, err := os.ReadFile(golden(encoding, m.name))
	if err != nil {
		t.Fatal(err)
	}
	var kept v1alpha1.NodeTypeRendering
	if err := yaml.UnmarshalStrict([]byte(change(string(text))), &kept); err != nil {
		t.Fatal(err)
	}
	plan, err := rendering.Plan(&kept)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Expectation, err = presentation.WithDeclaredResources(plan.Expectation, m.NodeType.Resources); err != nil {
		t.Fatal(err)
	}
	m.made = &made{plan: &plan, tenant: map[string]string{}}
	return m
}

func same(text string) string { return text }

// TestRenderingsOfEveryEncodingMakeAndJudgeNodes installs from the golden files and judges by them.
func TestRenderingsOfEveryEncodingMakeAndJudgeNodes(t *testing.T) {
	for encoding := 1; encoding <= int(v1alpha1.RenderingEncoding); encoding++ {
		for _, m := range cases(t) {
			t.Run(strconv.Itoa(encoding)+"/"+m.name, func(t *testing.T) {
				old := m.from(t, encoding, same)
				seen := old.live(t, old.installs()[0], change{})
				if failed := seen.failed(); seen.broken != "" || failed != "" || len(seen.verdict.Checks) == 0 {
					t.Errorf("fails %q, %q", seen.broken, failed)
				}
				// The same rendering must still hold a node that is not as promised.
				for _, c := range m.Changes {
					if c.Of != "image" || strings.HasPrefix(c.Fails, "no node: ") || c.Fails == "" || c.How != "" {
						continue
					}
					if got := old.live(t, old.installs()[0], c).failed(); got != c.Fails {
						t.Errorf("%s: fails %q, want %q", c.Why, got, c.Fails)
					}
				}
			})
		}
	}
}

// TestWhatARenderingDoesNotHaveIsNotPromised takes a member out of a golden file and judges a node that is not as the member says.
func TestWhatARenderingDoesNotHaveIsNotPromised(t *testing.T) {
	const member, check = "      kernel: ", "software/kernel"
	without := func(text string) string {
		lines := strings.Split(text, "\n")
		shorter := slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, member) })
		return strings.Join(shorter, "\n")
	}
	for encoding := 1; encoding <= int(v1alpha1.RenderingEncoding); encoding++ {
		tried := 0
		for _, m := range cases(t) {
			for _, c := range m.Changes {
				if c.Fails != check {
					continue
				}
				tried++
				whole, less := m.from(t, encoding, same), m.from(t, encoding, without)
				how := m.installs()[0]
				if got := whole.live(t, how, c).failed(); got != check {
					t.Errorf("%s: the whole rendering fails %q, want %q", m.name, got, check)
				}
				seen := less.live(t, how, c)
				if failed := seen.failed(); seen.broken != "" || failed != "" {
					t.Errorf("%s: without the member it fails %q, %q", m.name, seen.broken, failed)
				}
				for _, judged := range seen.verdict.Checks {
					if judged.Name == check {
						t.Errorf("%s: the verdict has %s, which is not promised", m.name, check)
					}
				}
			}
		}
		if tried == 0 {
			t.Errorf("encoding %d: no mode has a change that fails %s", encoding, check)
		}
	}
}
