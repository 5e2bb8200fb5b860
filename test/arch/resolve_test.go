package arch

import (
	"go/ast"
	"maps"
	"slices"
	"testing"
)

// resolvers are the product packages that name presentation.Resolve, and what for. A revision that exists has a rendering, which is
// what nodes are made from and judged by: whoever resolved it again would judge by the promise of another version of Ingot.
var resolvers = map[string]string{
	"cmd/ingot-manager/operator":   "gives it to the NodeType controller, which resolves a new revision once and compares later",
	"controllers/plan/feasibility": "judges a NodeType that has no rendering yet",
	"cmd/ingot/render":             "reads manifests, of which there is no revision",
}

func TestOnlyNewRevisionsAreResolved(t *testing.T) {
	found := map[string]bool{}
	for dir, p := range loadTree(t).pkgs {
		if under(dir, "test") || under(dir, "presentation") {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "presentation" && sel.Sel.Name == "Resolve" {
					found[dir] = true
				}
				return true
			})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		if resolvers[dir] == "" {
			t.Errorf("%s calls presentation.Resolve: use the NodeTypeRendering of the revision, or list the package with its reason", dir)
		}
	}
	for dir := range resolvers {
		if !found[dir] {
			t.Errorf("%s calls presentation.Resolve no more: take it off the list", dir)
		}
	}
}
