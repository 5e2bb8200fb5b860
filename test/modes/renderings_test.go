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

// renderings is the directory of the golden NodeTypeRenderings of every encoding.
const renderings = "../../controllers/plan/rendering/testdata"

func goldenPath(encoding int, mode string) string {
	return filepath.Join(renderings, "encoding-"+strconv.Itoa(encoding), mode+".yaml")
}

// TestEveryModeHasAGoldenRenderingOfThisEncoding keeps what this version writes, so that later versions are tested against
// it.
func TestEveryModeHasAGoldenRenderingOfThisEncoding(t *testing.T) {
	for _, m := range readModes(t) {
		path := goldenPath(int(v1alpha1.RenderingEncoding), m.name)
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
		current, err := rendering.New(m.name+"-873a28a16f", plan)
		if err != nil {
			t.Fatal(err)
		}
		current.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeTypeRendering"}
		text, err := yaml.Marshal(current)
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

// withGoldenRendering returns the mode with the plan of its golden rendering in an encoding; nothing is resolved. change
// edits the text of the file.
func (m mode) withGoldenRendering(t *testing.T, encoding int, change func(string) string) mode {
	t.Helper()
	text, err := os.ReadFile(goldenPath(encoding, m.name))
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
	m.cache = &cache{plan: &plan, tenant: map[string]string{}}
	return m
}

func unchanged(text string) string { return text }

// TestRenderingsOfEveryEncodingMakeAndJudgeNodes installs nodes from the golden files and judges them by these files.
func TestRenderingsOfEveryEncodingMakeAndJudgeNodes(t *testing.T) {
	for encoding := 1; encoding <= int(v1alpha1.RenderingEncoding); encoding++ {
		for _, m := range readModes(t) {
			t.Run(strconv.Itoa(encoding)+"/"+m.name, func(t *testing.T) {
				old := m.withGoldenRendering(t, encoding, unchanged)
				observed := old.runAndJudge(t, old.installMethods()[0], change{})
				if failed := observed.failedChecks(); observed.joinError != "" || failed != "" || len(observed.verdict.Checks) == 0 {
					t.Errorf("fails %q, %q", observed.joinError, failed)
				}
				// The same rendering must still hold a node that is not as promised.
				for _, c := range m.Changes {
					if c.Of != "image" || strings.HasPrefix(c.Fails, "no node: ") || c.Fails == "" || c.How != "" {
						continue
					}
					if got := old.runAndJudge(t, old.installMethods()[0], c).failedChecks(); got != c.Fails {
						t.Errorf("%s: fails %q, want %q", c.Why, got, c.Fails)
					}
				}
			})
		}
	}
}

// TestWhatARenderingDoesNotHaveIsNotPromised removes a member from a golden file and judges a node that does not match this
// member.
func TestWhatARenderingDoesNotHaveIsNotPromised(t *testing.T) {
	const member, check = "      kernel: ", "software/kernel"
	without := func(text string) string {
		lines := strings.Split(text, "\n")
		shorter := slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, member) })
		return strings.Join(shorter, "\n")
	}
	for encoding := 1; encoding <= int(v1alpha1.RenderingEncoding); encoding++ {
		tried := 0
		for _, m := range readModes(t) {
			for _, c := range m.Changes {
				if c.Fails != check {
					continue
				}
				tried++
				whole, less := m.withGoldenRendering(t, encoding, unchanged), m.withGoldenRendering(t, encoding, without)
				how := m.installMethods()[0]
				if got := whole.runAndJudge(t, how, c).failedChecks(); got != check {
					t.Errorf("%s: the whole rendering fails %q, want %q", m.name, got, check)
				}
				observed := less.runAndJudge(t, how, c)
				if failed := observed.failedChecks(); observed.joinError != "" || failed != "" {
					t.Errorf("%s: without the member it fails %q, %q", m.name, observed.joinError, failed)
				}
				for _, judged := range observed.verdict.Checks {
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
