package v1alpha1_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/ingot-dev/ingot/cmd/ingot/offline/admission"
)

// TestEachEnumValueIsExplainedByItsField reads the descriptions of the CRDs, which kubectl explain prints: a field with an enum has one
// list item for each value, "- Value: meaning.".
func TestEachEnumValueIsExplainedByItsField(t *testing.T) {
	enums := 0
	for _, path := range definitionPaths(t) {
		definition := read(t, path)
		for _, version := range definition.Spec.Versions {
			for _, f := range enumFields(definition.Spec.Names.Kind, admission.Schema(definition, version)) {
				enums++
				for _, value := range f.unexplained() {
					t.Errorf("%s: the description does not explain the value %s: add the line %q to the doc comment of the field and run make generate",
						f.path, value, "  - "+value+": MEANING.")
				}
			}
		}
	}
	if enums < 20 {
		t.Errorf("%d fields with an enum were found: the test no longer finds them", enums)
	}
}

// enumField is a field of a CRD whose values are enumerated.
type enumField struct {
	path, description string
	values            []string
}

// unexplained returns the values that have no list item.
func (f enumField) unexplained() []string {
	var out []string
	for _, value := range f.values {
		item := regexp.MustCompile(`(?m)^\s*- ` + regexp.QuoteMeta(value) + `: \S`)
		if !item.MatchString(f.description) {
			out = append(out, value)
		}
	}
	return out
}

// enumFields returns the fields below a schema that have an enum. metav1.Condition is left out: Kubernetes describes it.
func enumFields(path string, s *apiextensions.JSONSchemaProps) []enumField {
	if s == nil || strings.HasSuffix(path, ".conditions") {
		return nil
	}
	var out []enumField
	if len(s.Enum) > 0 {
		f := enumField{path: path, description: s.Description}
		for _, value := range s.Enum {
			f.values = append(f.values, value.(string))
		}
		out = append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		out = append(out, enumFields(path+"."+name, &child)...)
	}
	if s.Items != nil {
		out = append(out, enumFields(path+"[]", s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil {
		out = append(out, enumFields(path+"[]", s.AdditionalProperties.Schema)...)
	}
	return out
}
