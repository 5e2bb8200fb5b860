package arch

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fzipp/gocyclo"
)

// The budgets. A limit is never raised to fit the code: split the code.
const (
	maxFunctionLines = 60
	maxComplexity    = 12
	maxFileLines     = 400
	shellP90Lines    = 45
)

// shells are the packages whose functions must be short: observe, plan, act.
var shells = []string{
	"controllers/osimage", "controllers/nodeprovider", "controllers/nodetype", "controllers/nodepool", "controllers/machine", "controllers/host",
	"controllers/rollout", "controllers/validation", "controllers/tenant", "controllers/inuse", "controllers/remainingnode", "controllers/servingcert",
}

func TestFunctionsAndFilesStayWithinTheirBudgets(t *testing.T) {
	tr := loadTree(t)
	for _, p := range tr.pkgs {
		for _, f := range p.product() {
			if f.lines > maxFileLines {
				t.Errorf("%s has %d lines, the limit is %d: split it by what it does", f.path, f.lines, maxFileLines)
			}
			checkFunctions(t, tr, f)
		}
	}
}

func checkFunctions(t *testing.T, tr *tree, f *file) {
	t.Helper()
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if n := tr.length(fn); n > maxFunctionLines {
			t.Errorf("%s: %s has %d lines, the limit is %d", f.path, fn.Name.Name, n, maxFunctionLines)
		}
	}
	for _, s := range gocyclo.AnalyzeASTFile(f.syntax, tr.fset, nil) {
		if s.Complexity > maxComplexity {
			t.Errorf("%s: %s has cyclomatic complexity %d, the limit is %d", f.path, s.FuncName, s.Complexity, maxComplexity)
		}
	}
}

func (tr *tree) length(fn *ast.FuncDecl) int {
	return tr.fset.Position(fn.End()).Line - tr.fset.Position(fn.Pos()).Line + 1
}

func TestNineOfTenFunctionsOfAShellAreShort(t *testing.T) {
	tr := loadTree(t)
	for _, dir := range shells {
		p := tr.pkgs[dir]
		if p == nil {
			continue
		}
		var lengths []int
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					lengths = append(lengths, tr.length(fn))
				}
			}
		}
		if len(lengths) == 0 {
			continue
		}
		slices.Sort(lengths)
		if p90 := lengths[len(lengths)*9/10]; p90 > shellP90Lines {
			t.Errorf("%s: the 90th percentile of function lengths is %d lines, the limit is %d", dir, p90, shellP90Lines)
		}
	}
}

// badNames say nothing about what a package is for.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "manager", "misc", "shared"}

func TestPackagesAreNamedAndDescribed(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		described := false
		for _, f := range p.files {
			name := f.syntax.Name.Name
			if slices.Contains(badNames, name) {
				t.Errorf("%s: package %s: the name says nothing; name it after what it does", f.path, name)
			}
			described = described || !f.test && f.syntax.Doc != nil
		}
		if len(p.product()) > 0 && !described {
			t.Errorf("%s: no package comment: say in one sentence what it is for", dir)
		}
	}
}

func TestEverythingExportedIsDocumented(t *testing.T) {
	tr := loadTree(t)
	for _, p := range tr.pkgs {
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				for _, name := range undocumented(d) {
					t.Errorf("%s: exported %s has no comment: say what it means, its unit, its errors", f.path, name)
				}
			}
		}
	}
}

func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && receiverExported(d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var out []string
		for _, s := range d.Specs {
			out = append(out, undocumentedSpec(d, s)...)
		}
		return out
	}
	return nil
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	expr := d.Recv.List[0].Type
	if s, ok := expr.(*ast.StarExpr); ok {
		expr = s.X
	}
	if i, ok := expr.(*ast.IndexExpr); ok {
		expr = i.X
	}
	id, ok := expr.(*ast.Ident)
	return ok && id.IsExported()
}

// undocumentedSpec lets the comment of a group of constants or variables stand for its members.
func undocumentedSpec(d *ast.GenDecl, s ast.Spec) []string {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
			return []string{s.Name.Name}
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				return []string{n.Name}
			}
		}
	}
	return nil
}

// topLevel is the fixed list, beside dotfiles.
var topLevel = []string{
	"cmd", "controllers", "imagebuilder", "cloudinit", "presentation", "api", "config", "test",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
}

func TestTheTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && name != "bin" && !slices.Contains(topLevel, name) {
			t.Errorf("%s: the top level is fixed; put it in one of %v", name, topLevel)
		}
	}
}

// clockCalls are what a pure package may not call: time is an argument.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick"}

func TestPurePackagesAreToldTheTime(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if !isPure(dir) {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := sel.X.(*ast.Ident)
				if ok && (x.Name == "time" || x.Name == "metav1") && slices.Contains(clockCalls, sel.Sel.Name) {
					t.Errorf("%s calls %s.%s: take the time as an argument", f.path, x.Name, sel.Sel.Name)
				}
				return true
			})
		}
	}
}
