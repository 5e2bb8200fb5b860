package rendering

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// kept are the golden files of every encoding, by encoding and name.
func kept(t *testing.T) map[string]*v1alpha1.NodeTypeRendering {
	t.Helper()
	files, err := filepath.Glob("testdata/encoding-*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	out := map[string]*v1alpha1.NodeTypeRendering{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r v1alpha1.NodeTypeRendering
		if err := yaml.UnmarshalStrict(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")] = &r
	}
	return out
}

func mig(t *testing.T) v1alpha1.NodePlan {
	t.Helper()
	r := kept(t)["encoding-1/h100-mig-mixed"]
	if r == nil {
		t.Fatal("the golden file of a MIG NodeType is gone")
	}
	return r.Spec.Plan
}

func TestEveryEncodingIsReadAndKeepsItsName(t *testing.T) {
	for name, r := range kept(t) {
		plan, err := Plan(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := New(r.Spec.RevisionRef.Name, plan)
		if err != nil || again.Name != r.Name {
			t.Errorf("%s: the name is %s, it was %s (%v): NodeTypes would say that their rendering is not current", name, again.Name, r.Name, err)
		}
		if told, err := Differences(plan, again.Spec.Plan); err != nil || len(told) > 0 {
			t.Errorf("%s: differs from itself: %v, %v", name, told, err)
		}
	}
}

func TestAnEncodingThatIsNotKnownIsRefused(t *testing.T) {
	for _, encoding := range []int32{0, v1alpha1.RenderingEncoding + 1} {
		r := &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: "h100-1"}, Spec: v1alpha1.NodeTypeRenderingSpec{Encoding: encoding}}
		var unreadable *UnreadableError
		if _, err := Plan(r); !errors.As(err, &unreadable) || !strings.Contains(err.Error(), "h100-1") {
			t.Errorf("encoding %d: %v", encoding, err)
		}
	}
}

func TestWhatOnlyPeopleReadIsNoOtherRendering(t *testing.T) {
	before := mig(t)
	after := *before.DeepCopy()
	after.Warnings = append(after.Warnings, v1alpha1.PlanWarning{Rule: "new/rule", Message: "new"})
	after.Expectation.Resources[0].Hint = "a better hint"
	a, errA := New("h100-1", before)
	b, errB := New("h100-1", after)
	if errA != nil || errB != nil || a.Name != b.Name || b.Spec.Plan.Expectation.Resources[0].Hint != "a better hint" {
		t.Errorf("names %s and %s (%v, %v)", a.Name, b.Name, errA, errB)
	}
	if told, err := Differences(before, after); err != nil || len(told) > 0 {
		t.Errorf("told %v (%v)", told, err)
	}
}

// TestNothingThatShapesANodeIsLeftOut takes every member away from every golden file, one at a time.
func TestNothingThatShapesANodeIsLeftOut(t *testing.T) {
	for name, r := range kept(t) {
		whole := r.Spec.Plan
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		without(t, text, func(path string, left []byte) {
			var plan v1alpha1.NodePlan
			if err := json.Unmarshal(left, &plan); err != nil {
				t.Fatalf("%s without %s: %v", name, path, err)
			}
			if strings.Contains(path, ".hint") || strings.HasPrefix(path, ".warnings") || reflect.DeepEqual(plan, whole) {
				return
			}
			told, err := Differences(whole, plan)
			if err != nil || len(told) == 0 || strings.TrimSpace(told[0]) == "" {
				t.Errorf("%s without %s: told %q (%v)", name, path, told, err)
			}
		})
	}
}

// without calls with the document that lacks one member or item, for each of them.
func without(t *testing.T, document []byte, call func(path string, left []byte)) {
	t.Helper()
	var root any
	if err := json.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, value any, put func(any))
	walk = func(path string, value any, put func(any)) {
		report := func(path string) {
			left, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			call(path, left)
		}
		switch v := value.(type) {
		case map[string]any:
			for key, item := range v {
				delete(v, key)
				report(path + "." + key)
				v[key] = item
				walk(path+"."+key, item, func(n any) { v[key] = n })
			}
		case []any:
			for i, item := range v {
				shorter := append(append([]any{}, v[:i]...), v[i+1:]...)
				put(shorter)
				report(path + "[]")
				put(v)
				walk(path+"[]", item, func(n any) { v[i] = n })
			}
		}
	}
	walk("", root, func(n any) { root = n })
}

func TestDifferencesAreToldInWords(t *testing.T) {
	plan := func(change func(*v1alpha1.NodePlan)) v1alpha1.NodePlan {
		p := mig(t)
		change(&p)
		return p
	}
	name := mig(t).Expectation.Resources[0].Name
	for want, after := range map[string]v1alpha1.NodePlan{
		"expectation.resources[" + string(name) + "].quantity is 56 and would be 16": plan(func(p *v1alpha1.NodePlan) { p.Expectation.Resources[0].Quantity.Set(16) }),
		"kernelArguments[iommu=pt] would be added":                                   plan(func(p *v1alpha1.NodePlan) { p.KernelArguments = append(p.KernelArguments, "iommu=pt") }),
		"files[/usr/local/sbin/ingot-gpu-mode].content would have another content":   plan(func(p *v1alpha1.NodePlan) { p.Files[0].Content += "# more\n" }),
		"expectation.kubelet is 1.37.0 and would be 1.38.0":                          plan(func(p *v1alpha1.NodePlan) { p.Expectation.Kubelet = "1.38.0" }),
		"modules.load would be in another order":                                     plan(func(p *v1alpha1.NodePlan) { p.Modules.Load = []string{"b", "a"} }),
	} {
		before := plan(func(p *v1alpha1.NodePlan) {
			p.Expectation.Resources[0].Quantity.Set(56)
			p.Expectation.Kubelet = "1.37.0"
			if strings.HasPrefix(want, "modules") {
				p.Modules.Load = []string{"a", "b"}
			}
		})
		if !strings.Contains(want, "quantity") {
			after.Expectation.Resources[0].Quantity.Set(56)
		}
		if !strings.Contains(want, "kubelet") {
			after.Expectation.Kubelet = "1.37.0"
		}
		told, err := Differences(before, after)
		if err != nil || len(told) != 1 || told[0] != want {
			t.Errorf("told %q (%v), want %q", told, err, want)
		}
	}
}

func TestARevisionKeepsTheRenderingThatItHas(t *testing.T) {
	at := func(name, revision string, seconds int64) v1alpha1.NodeTypeRendering {
		return v1alpha1.NodeTypeRendering{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(seconds, 0))},
			Spec:       v1alpha1.NodeTypeRenderingSpec{RevisionRef: v1alpha1.LocalReference{Name: revision}},
		}
	}
	kept := []v1alpha1.NodeTypeRendering{at("a-new", "a", 9), at("a-old", "a", 1), at("a-mid", "a", 5), at("b-one", "b", 7)}
	for _, c := range []struct {
		name, revision string
		status         v1alpha1.NodeTypeStatus
		want           string
	}{
		{"the stable one", "a", v1alpha1.NodeTypeStatus{StableRevision: "a", StableRendering: "a-old", TargetRevision: "a", TargetRendering: "a-mid"}, "a-old"},
		{"the target's", "a", v1alpha1.NodeTypeStatus{StableRevision: "b", StableRendering: "b-one", TargetRevision: "a", TargetRendering: "a-mid"}, "a-mid"},
		{"the newest of an earlier revision", "a", v1alpha1.NodeTypeStatus{StableRevision: "b", StableRendering: "b-one"}, "a-new"},
		{"the newest when the stable one is gone", "a", v1alpha1.NodeTypeStatus{StableRevision: "a", StableRendering: "a-lost"}, "a-new"},
		{"none of a new revision", "c", v1alpha1.NodeTypeStatus{}, ""},
	} {
		if got := NameForRevision(c.revision, c.status, kept); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
