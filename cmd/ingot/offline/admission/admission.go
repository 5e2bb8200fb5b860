// Package admission does without a server what an API server with Ingot's definitions does when an object is created or changed: it
// finds unknown fields, sets defaults, and validates by schema and rules.
package admission

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// Definitions are CustomResourceDefinitions by apiVersion and kind. They are safe for use by several goroutines.
type Definitions struct {
	byKind map[string]*definition
}

// definition is one version of a CustomResourceDefinition. It is compiled for the first object of its kind.
type definition struct {
	namespaced bool
	kind       string
	once       sync.Once
	props      *apiextensions.JSONSchemaProps
	err        error
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// Load reads the CustomResourceDefinitions in the folders.
func Load(files fs.FS, folders ...string) (*Definitions, error) {
	out := &Definitions{byKind: map[string]*definition{}}
	for _, folder := range folders {
		paths, err := fs.Glob(files, path.Join(folder, "*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("list the definitions: %w", err)
		}
		for _, p := range paths {
			if path.Base(p) == "kustomization.yaml" {
				continue
			}
			if err := out.read(files, p); err != nil {
				return nil, fmt.Errorf("read the definition %s: %w", p, err)
			}
		}
	}
	return out, nil
}

func (d *Definitions) read(files fs.FS, path string) error {
	text, err := fs.ReadFile(files, path)
	if err != nil {
		return err
	}
	all, err := Read(text)
	if err != nil {
		return err
	}
	for _, v := range all.Spec.Versions {
		props := Schema(all, v)
		out := &definition{namespaced: all.Spec.Scope == apiextensions.NamespaceScoped, kind: all.Spec.Names.Kind, props: props}
		d.byKind[all.Spec.Group+"/"+v.Name+" "+out.kind] = out
	}
	return nil
}

// Read reads a CustomResourceDefinition as an API server does, with its defaults.
func Read(text []byte) (*apiextensions.CustomResourceDefinition, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &v1); err != nil {
		return nil, err
	}
	scheme.Default(&v1)
	out := &apiextensions.CustomResourceDefinition{}
	return out, scheme.Convert(&v1, out, nil)
}

// Schema returns the schema of one version. The conversion to the internal type moves a schema that all versions share to the spec.
func Schema(all *apiextensions.CustomResourceDefinition, version apiextensions.CustomResourceDefinitionVersion) *apiextensions.JSONSchemaProps {
	if all.Spec.Validation != nil {
		return all.Spec.Validation.OpenAPIV3Schema
	}
	return version.Schema.OpenAPIV3Schema
}

// HasKind says whether there is a definition of the kind.
func (d *Definitions) HasKind(apiVersion, kind string) bool {
	return d.byKind[apiVersion+" "+kind] != nil
}

// Kinds returns the kinds of an apiVersion, sorted.
func (d *Definitions) Kinds(apiVersion string) []string {
	var out []string
	for key, definition := range d.byKind {
		if key == apiVersion+" "+definition.kind {
			out = append(out, definition.kind)
		}
	}
	slices.Sort(out)
	return out
}

// Finding is one fault for which the API server would refuse the object.
type Finding struct {
	// Field is its path in the object, such as spec.gpu.count; empty: the whole object.
	Field string
	// Rule that is broken: schema/unknown-field, schema/required, schema/invalid and the like, metadata/invalid, or rule
	// for one of the definition's own rules.
	Rule string
	// Message says what was expected.
	Message string
}

// Admit sets the object's defaults and returns all that the API server would refuse. old is the object before the change; nil: it is
// created. Numbers in the objects must be int64 or float64. The error says that the definition is missing or does not compile.
func (d *Definitions) Admit(apiVersion, kind string, object, old map[string]any) ([]Finding, error) {
	c := d.byKind[apiVersion+" "+kind]
	if c == nil {
		return nil, fmt.Errorf("there is no definition of %s %s", apiVersion, kind)
	}
	c.once.Do(c.compile)
	if c.err != nil {
		return nil, fmt.Errorf("compile the definition of %s: %w", kind, c.err)
	}
	out := c.validateMetadata(object)
	unknown := pruning.PruneWithOptions(object, c.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, p := range unknown {
		out = append(out, Finding{Field: p, Rule: "schema/unknown-field", Message: "there is no such field: correct or remove it"})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	defaulting.Default(object, c.structural)
	var schemaErrors field.ErrorList
	var before any
	var unchanged *common.CorrelatedObject
	if old == nil {
		schemaErrors = validation.ValidateCustomResource(nil, object, c.schema)
	} else {
		defaulting.Default(old, c.structural)
		// The API server accepts in an update what an earlier version of the definition accepted, while it stays as it is.
		unchanged = common.NewCorrelatedObject(object, old, &model.Structural{Structural: c.structural})
		schemaErrors = validation.ValidateCustomResourceUpdate(nil, object, old, c.schema, validation.WithRatcheting(unchanged))
		before = old
	}
	schemaErrors = append(schemaErrors, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	for _, err := range schemaErrors {
		out = append(out, Finding{Field: fieldOf(err), Rule: ruleOf("schema", err), Message: err.ErrorBody()})
	}
	if len(schemaErrors) > 0 || c.rules == nil {
		return out, nil // like the API server, which evaluates rules only for objects that match the schema
	}
	ruleErrors, _ := c.rules.Validate(context.Background(), nil, c.structural, object, before, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(unchanged))
	for _, err := range ruleErrors {
		out = append(out, Finding{Field: fieldOf(err), Rule: "rule", Message: err.Detail})
	}
	return out, nil
}

func (c *definition) compile() {
	if c.structural, c.err = schema.NewStructural(c.props); c.err != nil {
		return
	}
	if c.schema, _, c.err = validation.NewSchemaValidator(c.props); c.err != nil {
		return
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
}

// validateMetadata validates the metadata, which the API server does by its own types and not by the definition.
func (c *definition) validateMetadata(object map[string]any) []Finding {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return []Finding{{Field: "metadata", Rule: "metadata/invalid", Message: err.Error()}}
	}
	if !found {
		meta = &metav1.ObjectMeta{}
	}
	var out []Finding
	for _, p := range unknown {
		out = append(out, Finding{Field: p, Rule: "metadata/unknown-field", Message: "there is no such field: correct or remove it"})
	}
	if meta.Namespace == "" && c.namespaced {
		meta.Namespace = metav1.NamespaceDefault
	}
	for _, err := range apivalidation.ValidateObjectMeta(meta, c.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")) {
		out = append(out, Finding{Field: fieldOf(err), Rule: ruleOf("metadata", err), Message: err.ErrorBody()})
	}
	return out
}

func fieldOf(err *field.Error) string {
	if err.Field == "<nil>" {
		return ""
	}
	return err.Field
}

// errorRules are the short names of the kinds of errors.
var errorRules = map[field.ErrorType]string{
	field.ErrorTypeRequired: "required", field.ErrorTypeDuplicate: "duplicate", field.ErrorTypeNotSupported: "not-supported",
	field.ErrorTypeForbidden: "forbidden", field.ErrorTypeTooLong: "too-long", field.ErrorTypeTooMany: "too-many",
	field.ErrorTypeTooFew: "too-few", field.ErrorTypeTooShort: "too-short", field.ErrorTypeTypeInvalid: "type",
}

func ruleOf(domain string, err *field.Error) string {
	if name := errorRules[err.Type]; name != "" {
		return domain + "/" + name
	}
	return domain + "/invalid"
}

// Decode decodes JSON as the API server does: an integer becomes an int64.
func Decode(text []byte) (map[string]any, error) {
	var out map[string]any
	if err := utiljson.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	return out, nil
}
