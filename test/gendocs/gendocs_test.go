package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

const apiSource = `package v1

// Colour of a lamp.
// +kubebuilder:validation:Enum=Red;Green
type Colour string

// LampSpec is a lamp.
// +kubebuilder:validation:XValidation:rule="self.a",message="a \"rule\" of the type"
type LampSpec struct {
	// colour that it shows:
	//   - Red: stop, and
	//     wait until
	//     it is green.
	//   - Green: go.
	//
	// +optional
	// +default="Red"
	Colour Colour ` + "`json:\"colour,omitempty\"`" + `
	// bulbs of the lamp.
	// +required
	// +kubebuilder:validation:MinItems=1
	Bulbs []Bulb ` + "`json:\"bulbs\"`" + `
}

// Bulb has a <limit> | two.
type Bulb struct {
	// since when.
	Since *metav1.MicroTime ` + "`json:\"since\"`" + `
}

// Lamp is a kind.
// +kubebuilder:resource:scope=Cluster,shortName=la
type Lamp struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	Spec LampSpec ` + "`json:\"spec\"`" + `
}

func addKnownTypes(s *runtime.Scheme) { s.AddKnownTypes(GroupVersion, &Lamp{}, &LampList{}) }
`

func parsed(t *testing.T, source string) []*ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "lamp.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return []*ast.File{file}
}

func TestTheReferenceSaysWhatSourceAndMarkersSay(t *testing.T) {
	reference, err := newReference(parsed(t, apiSource))
	if err != nil {
		t.Fatal(err)
	}
	text := reference.markdown()
	for _, want := range []string{
		"| [Lamp](#lamp) | la | Cluster | Lamp is a kind. |\n",
		"## Lamp\n", "### LampSpec\n", "### Bulb\n",
		"\n- a \"rule\" of the type\n",
		"| `colour` | string | colour that it shows:<ul><li>`Red`: stop, and wait until it is green.</li><li>`Green`: go.</li></ul>Default: `Red`. |\n",
		"| `bulbs` | list of [Bulb](#bulb) | bulbs of the lamp. **Required.** Limits: at least 1 item. |\n",
		"| `since` | time | since when. |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the reference lacks %q:\n%s", want, text)
		}
	}
}

func TestATypeThatTheReferenceHasNoWordsForIsAnError(t *testing.T) {
	source := strings.Replace(apiSource, "*metav1.MicroTime", "net.IP", 1)
	if _, err := newReference(parsed(t, source)); err == nil || !strings.Contains(err.Error(), "net.IP") {
		t.Errorf("error %v; want one that names net.IP", err)
	}
}

func TestTheDrawingLeavesOutArrowsThatFollowFromOthers(t *testing.T) {
	imports := graph{
		"cmd/ingot":                  {"controllers/machine": true, "api/v1alpha1": true},
		"controllers/machine":        {"controllers/plan/lifecycle": true, "controllers/plan/placement": true, "controllers/step": true, "api/v1alpha1": true},
		"controllers/plan/lifecycle": {"controllers/plan/placement": true, "api/v1alpha1": true},
		"controllers/plan/placement": {"api/v1alpha1": true},
		"controllers/step":           {"api/v1alpha1": true},
		"cloudinit/network":          {"cloudinit": true},
		"cloudinit":                  {},
		"api/v1alpha1":               {},
	}
	drawing, err := drawArchitecture(imports)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  machine --> plan_lifecycle\n", "  plan_lifecycle --> plan_placement\n", // and not machine --> plan_placement
		"  programs --> shells\n", "  shells --> kit\n", "  kit --> types\n", "  decisions --> types\n",
		"cloudinit[\"cloudinit/...\"]\n",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("the drawing lacks %q:\n%s", want, drawing)
		}
	}
	if _, err := drawArchitecture(graph{"elsewhere": {}}); err == nil {
		t.Error("a package of no layer was drawn")
	}
}

func TestTheDrawingIsReplacedBetweenItsMarks(t *testing.T) {
	const before = "// Package x.\n//\n//\t" + drawingBegins + "\n//\told\n//\t" + drawingEnds + "\n//\n// End.\npackage x\n"
	got, err := replaceDrawing(before, "new 1\nnew 2\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(before, "//\told\n", "//\tnew 1\n//\tnew 2\n", 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, mark := range []string{drawingBegins, drawingEnds} {
		if _, err := replaceDrawing(strings.Replace(before, mark, "", 1), "new\n"); err == nil {
			t.Errorf("without %q: no error", mark)
		}
	}
}
