package arch

import (
	"bytes"
	"go/ast"
	"go/format"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reconcilerFields are the names that a Reconciler's dependencies have in every controller, with their types. Another field may be
// added, but none of these types under another name.
var reconcilerFields = map[string]string{
	"Client":    "client.Client",
	"APIReader": "client.Reader",
	"Tenants":   "*tenantaccess.Registry",
	"Recorder":  "events.EventRecorder",
	"Clock":     "clock.PassiveClock",
	"Random":    "io.Reader",
	"Jitter":    "func() float64",
	"Workers":   "int",
}

// Files that every controller has, and files that it may have. Parts of observe.go and act.go are named observe_PART.go and act_PART.go.
var (
	requiredFiles = []string{"doc.go", "controller.go", "observe.go", "status.go"}
	optionalFiles = []string{"watches.go", "decide.go", "act.go"}
)

func TestReconcilersNameTheirDependenciesAlike(t *testing.T) {
	tr := loadTree(t)
	for _, dir := range shells {
		reconciler := tr.structType(dir, "Reconciler")
		if reconciler == nil {
			t.Errorf("%s has no struct Reconciler", dir)
			continue
		}
		for _, field := range reconciler.Fields.List {
			typ := tr.source(t, field.Type)
			for _, name := range field.Names {
				checkDependency(t, dir, name.Name, typ)
			}
		}
		for _, name := range []string{"Client", "Recorder", "Clock"} {
			if !slices.ContainsFunc(reconciler.Fields.List, func(f *ast.Field) bool { return f.Names[0].Name == name }) {
				t.Errorf("%s: Reconciler has no field %s", dir, name)
			}
		}
	}
}

// callsNoTenant are the controllers that have the registry and send no request to a tenant, each with the reason.
var callsNoTenant = map[string]string{
	"controllers/tenant":  "it gives the kubeconfigs to the registry, which probes the tenants in goroutines of its own",
	"controllers/rollout": "it reads claims, which the registry watches in goroutines of its own",
}

// TestControllersThatCallTenantsShareTheirWorkers: without tenantaccess.Shares the reconciles of one slow tenant occupy all workers.
func TestControllersThatCallTenantsShareTheirWorkers(t *testing.T) {
	tr := loadTree(t)
	for _, dir := range shells {
		reconciler := tr.structType(dir, "Reconciler")
		if reconciler == nil {
			continue
		}
		hasField := func(typ string) bool {
			return slices.ContainsFunc(reconciler.Fields.List, func(f *ast.Field) bool { return tr.source(t, f.Type) == typ })
		}
		hasTenants, hasShares := hasField("*tenantaccess.Registry"), hasField("tenantaccess.Shares")
		if callsNoTenant[dir] == "" && hasTenants != hasShares || callsNoTenant[dir] != "" && (!hasTenants || hasShares) {
			t.Errorf("%s: Reconciler has the tenants: %t, and a field of the type tenantaccess.Shares: %t", dir, hasTenants, hasShares)
		}
	}
}

func checkDependency(t *testing.T, dir, name, typ string) {
	t.Helper()
	if want := reconcilerFields[name]; want != "" && typ != want {
		t.Errorf("%s: Reconciler.%s is a %s, in the other controllers a %s", dir, name, typ, want)
	}
	for want, wantType := range reconcilerFields {
		if typ == wantType && name != want && typ != "int" {
			t.Errorf("%s: Reconciler.%s is a %s, which is called %s in the other controllers", dir, name, typ, want)
		}
	}
}

func TestControllersHaveTheSameFiles(t *testing.T) {
	tr := loadTree(t)
	for _, dir := range shells {
		var names []string
		for _, f := range tr.pkgs[dir].product() {
			names = append(names, path.Base(f.path))
		}
		for _, name := range requiredFiles {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s", dir, name)
			}
		}
		for _, name := range names {
			isPart := strings.HasPrefix(name, "observe_") || strings.HasPrefix(name, "act_")
			if !isPart && !slices.Contains(requiredFiles, name) && !slices.Contains(optionalFiles, name) {
				t.Errorf("%s/%s: a controller consists of %v, %v and parts of observe.go and act.go: move the code to the step that it is part of",
					dir, name, requiredFiles, optionalFiles)
			}
		}
	}
}

func TestWhatAControllerReadsIsAnObservation(t *testing.T) {
	tr := loadTree(t)
	for _, dir := range shells {
		observation := tr.structType(dir, "observation")
		if observation == nil {
			t.Errorf("%s has no struct observation: it is what observe returns", dir)
			continue
		}
		for _, field := range observation.Fields.List {
			if field.Doc == nil || len(field.Names) != 1 {
				t.Errorf("%s: observation.%s needs a line and a comment of its own: what it is, who sets it and when", dir, field.Names[0].Name)
			}
		}
		if !tr.returnsObservation(dir) {
			t.Errorf("%s: Reconciler has no method observe that returns an observation", dir)
		}
	}
}

// returnsObservation tells whether the Reconciler of the package has a method observe whose first result is an observation.
func (tr *tree) returnsObservation(dir string) bool {
	for _, f := range tr.pkgs[dir].product() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "observe" || fn.Type.Results == nil {
				continue
			}
			result := fn.Type.Results.List[0].Type
			if star, ok := result.(*ast.StarExpr); ok {
				result = star.X
			}
			if name, ok := result.(*ast.Ident); ok && name.Name == "observation" {
				return true
			}
		}
	}
	return false
}

// structType finds a struct of the package by its name; nil: there is none.
func (tr *tree) structType(dir, name string) *ast.StructType {
	for _, f := range tr.pkgs[dir].product() {
		for _, d := range f.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok && spec.Name.Name == name {
					if found, ok := spec.Type.(*ast.StructType); ok {
						return found
					}
				}
			}
		}
	}
	return nil
}

// source returns the Go source of an expression.
func (tr *tree) source(t *testing.T, expression ast.Expr) string {
	t.Helper()
	var text bytes.Buffer
	if err := format.Node(&text, tr.fset, expression); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// aliases are the names under which packages are imported everywhere.
var aliases = map[string]string{
	"github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1": "metal3",
}

func TestAPackageHasOneAlias(t *testing.T) {
	tr := loadTree(t)
	for _, p := range tr.pkgs {
		for _, f := range p.files {
			for _, i := range f.syntax.Imports {
				imported, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if want := aliases[imported]; want != "" && (i.Name == nil || i.Name.Name != want) {
					t.Errorf("%s imports %s under another name than %s", f.path, imported, want)
				}
			}
		}
	}
}

// onlyDeclaredIn are declarations of which there is one in product code, by the package that has it. Plans and controllers share the
// type of events, and all fields and messages are shortened by one rule.
var onlyDeclaredIn = map[string]string{
	"Event":    "controllers/plan/event",
	"Truncate": "api/input",
}

func TestEventsAndShortenedTextsAreDeclaredOnce(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if !under(dir, "controllers") && !under(dir, "api") || under(dir, "controllers/hardware") {
			continue
		}
		for _, f := range p.product() {
			for _, name := range declaredNames(f) {
				if home := onlyDeclaredIn[name]; home != "" && home != dir {
					t.Errorf("%s declares %s: use that of %s", f.path, name, home)
				}
			}
		}
	}
}

// declaredNames returns the names of a file's types and functions. A function that shortens texts counts as Truncate whatever it is
// called: it has a string and an int as parameters and one string as its result.
func declaredNames(f *file) []string {
	var names []string
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
			if shortensText(d) {
				names = append(names, "Truncate")
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					names = append(names, spec.Name.Name)
				}
			}
		}
	}
	return names
}

func shortensText(fn *ast.FuncDecl) bool {
	words := []string{"clip", "trim", "cut", "shorten", "truncate", "abbreviate"}
	name := strings.ToLower(fn.Name.Name)
	if fn.Recv != nil || fn.Type.Results == nil || len(fn.Type.Results.List) != 1 || len(fn.Type.Params.List) == 0 {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(name, w) }) &&
		isIdent(fn.Type.Results.List[0].Type, "string") && isIdent(fn.Type.Params.List[0].Type, "string")
}

func isIdent(expression ast.Expr, name string) bool {
	id, ok := expression.(*ast.Ident)
	return ok && id.Name == name
}
