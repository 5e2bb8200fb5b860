package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// withZone matches the layouts that print the zone, and those without an hour.
var withZone = regexp.MustCompile(`^time\.(RFC\d+.*|UnixDate|RubyDate|Layout|DateOnly)$|Z07|-07|MST|Z$|^[^:.]*$`)

// zoneless are the packages that print times without a zone, and why they may.
var zoneless = map[string]string{"controllers/plan/rollout/simulation": "its clock is simulated and begins at 00:00"}

// TestATimeIsPrintedWithItsZone: people in other zones than the manager's read its messages, and compare them with the clocks of servers.
func TestATimeIsPrintedWithItsZone(t *testing.T) {
	tr := loadTree(t)
	printed, used := 0, map[string]bool{}
	for dir, p := range tr.pkgs {
		for _, f := range p.product() {
			if under(dir, "test") {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				layout := timeLayout(n)
				if layout == "" {
					return true
				}
				printed++
				if zoneless[dir] != "" {
					used[dir] = true
				} else if !withZone.MatchString(layout) {
					t.Errorf("%s: the layout %q prints no zone: use time.RFC3339, or a layout that ends in Z for a time in UTC", tr.fset.Position(n.Pos()), layout)
				}
				return true
			})
		}
	}
	if printed == 0 || len(used) != len(zoneless) {
		t.Errorf("%d times are printed; without a zone in %v, expected %v", printed, used, zoneless)
	}
}

// timeLayout returns the layout with which the call prints a time, or the name of the one of package time; empty: it prints none.
func timeLayout(n ast.Node) string {
	call, isCall := n.(*ast.CallExpr)
	if !isCall {
		return ""
	}
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod || len(call.Args) == 0 || method.Sel.Name != "Format" && method.Sel.Name != "AppendFormat" {
		return ""
	}
	return layoutText(call.Args[len(call.Args)-1])
}

// layoutText joins the parts of a layout.
func layoutText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.SelectorExpr:
		if of, isName := e.X.(*ast.Ident); isName && of.Name == "time" {
			return "time." + e.Sel.Name
		}
	case *ast.BinaryExpr:
		if left, right := layoutText(e.X), layoutText(e.Y); left != "" && right != "" {
			return left + right
		}
	}
	return ""
}
