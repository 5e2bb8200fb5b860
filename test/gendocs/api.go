package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// apiReference is the API as its Go source describes it.
type apiReference struct {
	kinds []*apiType // in the order in which they are registered
	types map[string]*apiType
}

// apiType is a struct of the API.
type apiType struct {
	name   string
	doc    comment
	fields []apiField
}

// apiField is a field of a struct of the API.
type apiField struct {
	name string // as in JSON
	typ  fieldType
	doc  comment
}

// fieldType is the type of a field: the words that a reader sees, and the struct of the API that it holds, if any.
type fieldType struct {
	words, link string
}

// comment is a doc comment: the text for readers, and the markers of controller-gen.
type comment struct {
	text    string
	markers []string // without the leading +
}

// readAPI parses the Go files of the API's directory.
func readAPI(directory string) (*apiReference, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no Go files", directory)
	}
	return newReference(files)
}

// declaredType is a type of the API as it is declared.
type declaredType struct {
	expr ast.Expr
	doc  comment
}

func declaredTypes(files []*ast.File) map[string]declaredType {
	out := map[string]declaredType{}
	for _, file := range files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				t := spec.(*ast.TypeSpec)
				out[t.Name.Name] = declaredType{t.Type, newComment(t.Doc, group.Doc)}
			}
		}
	}
	return out
}

func newReference(files []*ast.File) (*apiReference, error) {
	declared := declaredTypes(files)
	r := &apiReference{types: map[string]*apiType{}}
	for name, d := range declared {
		s, ok := d.expr.(*ast.StructType)
		if !ok {
			continue
		}
		t := &apiType{name: name, doc: d.doc}
		for _, field := range s.Fields.List {
			f, ok, err := newField(field, declared)
			if err != nil {
				return nil, fmt.Errorf("type %s: %w", name, err)
			}
			if ok {
				t.fields = append(t.fields, f)
			}
		}
		r.types[name] = t
	}
	for _, file := range files {
		for _, name := range registeredTypes(file) {
			if t := r.types[name]; t != nil && !strings.HasSuffix(name, "List") {
				r.kinds = append(r.kinds, t)
			}
		}
	}
	if len(r.kinds) == 0 {
		return nil, errors.New("no call of AddKnownTypes registers a kind")
	}
	return r, nil
}

// registeredTypes returns the types that a file hands to AddKnownTypes: &Machine{} is Machine.
func registeredTypes(file *ast.File) []string {
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "AddKnownTypes" {
			return true
		}
		for _, arg := range call.Args {
			if pointer, ok := arg.(*ast.UnaryExpr); ok {
				if literal, ok := pointer.X.(*ast.CompositeLit); ok {
					out = append(out, fmt.Sprint(literal.Type))
				}
			}
		}
		return true
	})
	return out
}

// newField reads a field; false means that it has no name in JSON of its own, as the embedded TypeMeta and ObjectMeta.
func newField(field *ast.Field, declared map[string]declaredType) (apiField, bool, error) {
	if len(field.Names) == 0 || field.Tag == nil {
		return apiField{}, false, nil
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return apiField{}, false, err
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "" || name == "-" {
		return apiField{}, false, nil
	}
	typ, err := newFieldType(field.Type, declared)
	if err != nil {
		return apiField{}, false, fmt.Errorf("field %s: %w", name, err)
	}
	return apiField{name: name, typ: typ, doc: newComment(field.Doc)}, true, nil
}

// outside are the types of other packages in the words of the Kubernetes API reference.
var outside = map[string]string{
	"metav1.Duration": "duration", "metav1.Time": "time", "metav1.MicroTime": "time", "metav1.Condition": "Condition (meta/v1)",
	"metav1.LabelSelector": "LabelSelector (meta/v1)", "corev1.Taint": "Taint (core/v1)", "corev1.ResourceList": "map of quantities",
	"corev1.ResourceName": "string", "resource.Quantity": "quantity", "types.UID": "string", "intstr.IntOrString": "integer or string",
	"runtime.RawExtension": "object",
}

// basic are Go's own types in the words of OpenAPI.
var basic = map[string]string{
	"string": "string", "bool": "boolean", "int": "integer", "int32": "integer", "int64": "integer", "float64": "number", "byte": "byte",
}

func newFieldType(expr ast.Expr, declared map[string]declaredType) (fieldType, error) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return newFieldType(e.X, declared)
	case *ast.ArrayType:
		item, err := newFieldType(e.Elt, declared)
		return fieldType{"list of " + item.words, item.link}, err
	case *ast.MapType:
		item, err := newFieldType(e.Value, declared)
		return fieldType{"map of " + item.words, item.link}, err
	case *ast.SelectorExpr:
		name := fmt.Sprintf("%v.%s", e.X, e.Sel.Name)
		if words, ok := outside[name]; ok {
			return fieldType{words: words}, nil
		}
		return fieldType{}, fmt.Errorf("gendocs has no words for the type %s: add it to the table outside", name)
	case *ast.Ident:
		if words, ok := basic[e.Name]; ok {
			return fieldType{words: words}, nil
		}
		underlying, ok := declared[e.Name]
		if !ok {
			return fieldType{}, fmt.Errorf("type %s is not declared", e.Name)
		}
		if _, ok := underlying.expr.(*ast.StructType); ok {
			return fieldType{e.Name, e.Name}, nil
		}
		return newFieldType(underlying.expr, declared)
	default:
		return fieldType{}, fmt.Errorf("type expression %T is not supported", expr)
	}
}

// newComment takes the first comment group that is not empty apart.
func newComment(groups ...*ast.CommentGroup) comment {
	var c comment
	for _, group := range groups {
		if group.Text() == "" {
			continue
		}
		var lines []string
		for line := range strings.Lines(group.Text()) {
			line = strings.TrimRight(line, "\n")
			if marker, ok := strings.CutPrefix(line, "+"); ok {
				c.markers = append(c.markers, marker)
			} else {
				lines = append(lines, line)
			}
		}
		c.text = strings.TrimSpace(strings.Join(lines, "\n"))
		return c
	}
	return c
}

func (c comment) has(marker string) bool { return slices.Contains(c.markers, marker) }

// value returns what follows the name of a marker and its =.
func (c comment) value(name string) (string, bool) {
	for _, m := range c.markers {
		if value, ok := strings.CutPrefix(m, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

var ruleMessage = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)

// rules returns the messages of the CEL rules.
func (c comment) rules() []string {
	var out []string
	for _, m := range c.markers {
		if !strings.HasPrefix(m, "kubebuilder:validation:XValidation:") {
			continue
		}
		if found := ruleMessage.FindStringSubmatch(m); found != nil {
			out = append(out, strings.ReplaceAll(found[1], `\"`, `"`))
		}
	}
	return out
}
