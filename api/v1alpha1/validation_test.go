package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cmd/ingot/offline/admission"
)

const apiVersion = "ingot.dev/v1alpha1"

// crd is one of our definitions as the API server uses it, in this process.
type crd struct {
	kind       string
	structural *schema.Structural
	all        *admission.Definitions
}

func read(t *testing.T, path string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	definition, err := admission.Read(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return definition
}

const definitionFolder = "../../config/crd"

// definitionPaths returns the files of Ingot's CRDs.
func definitionPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(definitionFolder + "/bases/ingot.dev_*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	return paths
}

// definitions are our own, by kind.
func definitions(t *testing.T) map[string]*crd {
	t.Helper()
	all, err := admission.Load(os.DirFS(definitionFolder), "bases")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*crd{}
	for _, p := range definitionPaths(t) {
		definition := read(t, p)
		structural, err := schema.NewStructural(admission.Schema(definition, definition.Spec.Versions[0]))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		kind := definition.Spec.Names.Kind
		out[kind] = &crd{kind: kind, structural: structural, all: all}
	}
	return out
}

// admit does with an object what the API server does. old is nil for a creation.
func (c *crd) admit(t *testing.T, obj, old map[string]any) []admission.Finding {
	t.Helper()
	found, err := c.all.Admit(apiVersion, c.kind, obj, old)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rule is one of the x-kubernetes-validations of a definition.
type rule struct {
	kind, path, message string
	transition          bool
	names               []string // what a message may call the field
}

func (r rule) key() string { return r.kind + " " + r.path + ": " + r.message }

// rules lists every rule of a definition with the path that it stands at; [] is an item of a list or a value of a map.
func (c *crd) allRules() []rule {
	var out []rule
	var walk func(path string, s *schema.Structural)
	walk = func(path string, s *schema.Structural) {
		names := append(slices.Sorted(maps.Keys(s.Properties)), strings.TrimSuffix(path[strings.LastIndexByte(path, '.')+1:], "[]"))
		for _, v := range s.XValidations {
			out = append(out, rule{
				kind: c.kind, path: path, message: v.Message,
				transition: strings.Contains(v.Rule, "oldSelf"), names: names,
			})
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			child := s.Properties[name]
			walk(strings.TrimPrefix(path+"."+name, "."), &child)
		}
		if s.Items != nil {
			walk(path+"[]", s.Items)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			walk(path+"[]", s.AdditionalProperties.Structural)
		}
	}
	walk("", c.structural)
	return out
}

// object is base with a merge patch (RFC 7386) over it.
func object(t *testing.T, base, patch string) map[string]any {
	t.Helper()
	var b, p map[string]any
	if err := yaml.Unmarshal([]byte(base), &b); err != nil {
		t.Fatalf("%v in %s", err, base)
	}
	if err := yaml.Unmarshal([]byte(patch), &p); err != nil {
		t.Fatalf("%v in %s", err, patch)
	}
	if b == nil {
		b = map[string]any{} // a document of comments
	}
	merge(b, p)
	return integers(b).(map[string]any)
}

func merge(into, patch map[string]any) {
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		if v == nil {
			delete(into, k)
			continue
		}
		if !isMap {
			into[k] = v
			continue
		}
		target, ok := into[k].(map[string]any)
		if !ok {
			target = map[string]any{}
			into[k] = target
		}
		merge(target, inner)
	}
}

// integers makes int64 of whole numbers, as the API server's decoder does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func TestTheAPIServerTakesTheDefinitions(t *testing.T) {
	paths, err := filepath.Glob("../../config/crd/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if strings.HasSuffix(p, "kustomization.yaml") {
			continue
		}
		definition := read(t, p)
		// The server records the version that it stores, before it validates.
		definition.Status.StoredVersions = []string{definition.Spec.Versions[0].Name}
		// Among others: do the rules compile, and is their estimated cost below the server's limits?
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), definition) {
			t.Errorf("%s: %v", filepath.Base(p), err)
		}
	}
}

func TestEveryKindsExampleIsAdmitted(t *testing.T) {
	crds := definitions(t)
	for kind, c := range crds {
		if examples[kind] == "" {
			t.Errorf("%s has no example", kind)
			continue
		}
		for _, err := range c.admit(t, object(t, examples[kind], "{}"), nil) {
			t.Errorf("%s: %v", kind, err)
		}
		for _, err := range c.admit(t, object(t, examples[kind], "{}"), object(t, examples[kind], "{}")) {
			t.Errorf("%s, written again as it is: %v", kind, err)
		}
	}
}

func TestEveryRuleHasAnObjectThatItRefusesAndOneThatItLetsPass(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range ruleCases() {
		covered[c.rule] = true
	}
	for _, c := range definitions(t) {
		for _, r := range c.allRules() {
			if !covered[r.key()] {
				t.Errorf("no case for the rule %q", r.key())
			}
			delete(covered, r.key())
		}
	}
	for key := range covered {
		t.Errorf("the case %q is of no rule", key)
	}
}

func TestEveryMessageNamesTheFieldAndTheFix(t *testing.T) {
	for _, c := range definitions(t) {
		for _, r := range c.allRules() {
			if !slices.ContainsFunc(r.names, func(n string) bool { return n != "" && strings.Contains(r.message, n) }) {
				t.Errorf("%s: the message names none of %v", r.key(), r.names)
			}
			if len(r.message) < 20 {
				t.Errorf("%s: too short to say what to do", r.key())
			}
		}
	}
}

func TestRules(t *testing.T) {
	crds := definitions(t)
	for _, c := range ruleCases() {
		kind, rest, _ := strings.Cut(c.rule, " ")
		path, message, _ := strings.Cut(rest, ": ")
		t.Run(fmt.Sprintf("%s %s %.40s", kind, path, message), func(t *testing.T) {
			def := crds[kind]
			if def == nil {
				t.Fatalf("no definition of %s", kind)
			}
			base := examples[kind]
			old := func() map[string]any {
				if c.old == "" {
					return nil
				}
				o := object(t, base, c.old)
				for _, err := range def.admit(t, object(t, base, c.old), nil) {
					t.Errorf("the object before the change is refused: %v", err)
				}
				return o
			}
			errs := def.admit(t, object(t, base, c.bad), old())
			if len(errs) != 1 || !strings.Contains(errs[0].Message, message) || !samePath(errs[0].Field, path) {
				t.Errorf("%s: got %v, want one error at %q: %s", c.bad, errs, path, message)
			}
			for _, err := range def.admit(t, object(t, base, c.good), old()) {
				t.Errorf("%s: %v, want it admitted", c.good, err)
			}
		})
	}
}

// samePath compares an error's path with that of a schema, in which all items and keys are [].
func samePath(seen, schema string) bool {
	var b strings.Builder
	inside := false
	for _, r := range seen {
		switch {
		case r == '[':
			inside = true
			b.WriteString("[")
		case r == ']':
			inside = false
			b.WriteString("]")
		case !inside:
			b.WriteRune(r)
		}
	}
	got := b.String()
	return got == schema
}

func TestTheSamplesAreAdmitted(t *testing.T) {
	crds := definitions(t)
	paths, err := filepath.Glob("../../config/samples/*.yaml")
	others, otherErr := filepath.Glob("../../config/samples/[ijm]*/*.yaml") // ironic, join and metal3
	if err := errors.Join(err, otherErr); err != nil || len(paths) == 0 || len(others) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, p := range append(paths, others...) {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split("\n"+string(raw), "\n---") {
			obj := object(t, doc, "{}")
			if obj["apiVersion"] != apiVersion {
				continue
			}
			for _, err := range crds[fmt.Sprint(obj["kind"])].admit(t, obj, nil) {
				t.Errorf("%s: %v", filepath.Base(p), err)
			}
		}
	}
}

func TestWhatTheSchemaAloneRefuses(t *testing.T) {
	crds := definitions(t)
	for _, c := range schemaCases {
		errs := crds[c.kind].admit(t, object(t, examples[c.kind], c.bad), nil)
		if !strings.Contains(fmt.Sprint(errs), c.want) {
			t.Errorf("%s %s: got %v, want an error that says %q", c.kind, c.bad, errs, c.want)
		}
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	crds := definitions(t)
	for _, c := range []struct{ kind, patch, path, want string }{
		{"OSImage", "{}", "spec.architecture", "amd64"},
		{"OSImage", "{}", "spec.userData", "CloudInit"},
		{"NodeType", "{}", "spec.gate.taintKey", "ingot.dev/unvalidated"},
		{"NodeType", "{}", "spec.validation.timeout", "15m"},
		{"NodeType", "{}", "spec.validation.settle", "30s"},
		{"NodeType", "{}", "spec.validation.onFailure", "Hold"},
		{"NodeType", "{}", "spec.gpu.driver.source", "Image"},
		{"NodeType", "{spec: {gpu: {presentation: {passthrough: {}}}}}", "spec.gpu.presentation.passthrough.workload", "Container"},
		{"NodeType", "{spec: {gpu: {presentation: {passthrough: {}}}}}", "spec.gpu.presentation.passthrough.advertise", "DevicePlugin"},
		{"NodeProvider", "{}", "spec.erase.onRelease", "Metadata"},
		{"NodePool", "{}", "spec.replicas", "0"},
	} {
		obj := object(t, examples[c.kind], c.patch)
		if errs := crds[c.kind].admit(t, obj, nil); len(errs) > 0 {
			t.Fatal(errs)
		}
		var v any = obj
		for _, name := range strings.Split(c.path, ".") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		if got := fmt.Sprint(v); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.path, got, c.want)
		}
	}
}
