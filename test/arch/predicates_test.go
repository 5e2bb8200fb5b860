package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// foreignMethods are methods that return a bool and have their name from an interface of another module.
var foreignMethods = []string{"NeedLeaderElection"}

// decidingTypes are the types, by their package, whose methods change a decision. None of their methods may return only a bool.
var decidingTypes = map[string]string{"controllers/plan/lifecycle": "planner", "controllers/plan/host": "planner"}

// predicateName matches the name of a predicate.
var predicateName = regexp.MustCompile(`^([iI]s|[hH]as|[cC]an|[mM]ust|[nN]eeds)[A-Z]`)

func TestFunctionsThatReturnABoolAreNamedAsPredicates(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if under(dir, "test") {
			continue
		}
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !returnsBool(fn) || slices.Contains(foreignMethods, fn.Name.Name) {
					continue
				}
				if !predicateName.MatchString(fn.Name.Name) {
					t.Errorf("%s: %s returns a bool: begin its name with is, has, can, must or needs", f.path, fn.Name.Name)
				}
				if typ := decidingTypes[dir]; typ != "" && receiver(fn) == typ {
					t.Errorf("%s: %s can change what is decided and returns a bool: return what was found instead", f.path, fn.Name.Name)
				}
			}
		}
	}
}

// returnsBool reports whether a bool is the only result of the function.
func returnsBool(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
		return false
	}
	name, ok := fn.Type.Results.List[0].Type.(*ast.Ident)
	return ok && name.Name == "bool"
}

// receiver returns the name of the type that has the method by its pointer, and an empty string for any other function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	name, ok := star.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}
