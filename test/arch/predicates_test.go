package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// asked are the packages in which every function that returns a bool is a question, and is named as one. The list may only grow.
var asked = []string{
	"controllers/plan/feasibility", "controllers/plan/host", "controllers/plan/inventory", "controllers/plan/lifecycle", "controllers/plan/placement", "controllers/plan/scaling",
	"controllers/hardware", "imagebuilder", "cmd/ingot-agent",
}

// actors are the types whose methods change a decision.
var actors = []string{"planner"}

var question = regexp.MustCompile(`^([iI]s|[hH]as|[cC]an|[mM]ust|[nN]eeds)[A-Z]`)

func TestQuestionsAreNamedAsQuestionsAndChangeNothing(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if !slices.ContainsFunc(asked, func(a string) bool { return under(dir, a) }) {
			continue
		}
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !returnsBool(fn) {
					continue
				}
				if !question.MatchString(fn.Name.Name) {
					t.Errorf("%s: %s returns a bool: begin its name with is, has, can, must or needs", f.path, fn.Name.Name)
				}
				if slices.Contains(actors, receiver(fn)) {
					t.Errorf("%s: %s can change what is decided and returns a bool: return what was found instead", f.path, fn.Name.Name)
				}
			}
		}
	}
}

func returnsBool(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
		return false
	}
	name, ok := fn.Type.Results.List[0].Type.(*ast.Ident)
	return ok && name.Name == "bool"
}

// receiver names the type that has the method by its pointer; empty: none.
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
