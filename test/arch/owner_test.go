package arch

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// use is what a package does with a type.
type use string

const (
	writes use = "writes"
	reads  use = "reads"
)

// owned are the types that hold the state of attempts, each with the product packages that name it. One package makes values of
// each, and nobody else: an Installer's kept state has one writer, and what is wanted of a host has one. The package of the type
// itself is not listed.
var owned = []struct {
	pkg, name string
	users     map[string]use
}{
	{"v1alpha1", "HostAttempt", map[string]use{
		"controllers/host/sessions":  writes,
		"controllers/plan/lifecycle": reads,
		"cmd/ingot/fleet":            reads,
	}},
	{"v1alpha1", "WantedAttempt", map[string]use{
		"controllers/plan/host":      writes,
		"controllers/plan/lifecycle": reads,
		"controllers/plan/queue":     reads, // which hosts an installer works on
		"controllers/host":           reads,
		"cmd/ingot/fleet":            reads,
	}},
	{"hardware", "AttemptStatus", map[string]use{
		"controllers/hardware/netboot": reads,
		"controllers/hardware/direct":  writes,
		"controllers/hardware/ironic":  writes,
		"controllers/host/sessions":    writes, // what it reads of the Installer's kept state
		"controllers/plan/host":        reads,
		"test/conformance":             reads,
	}},
	{"netboot", "Session", map[string]use{
		"controllers/host/sessions":   writes,
		"controllers/hardware/direct": writes,
		"cmd/ingot-manager/operator":  reads,
		"test/metal3rack":             writes, // those of another site's installer
	}},
}

func TestTheStateOfAnAttemptHasOneOwner(t *testing.T) {
	tr := loadTree(t)
	for _, o := range owned {
		found := map[string]use{}
		for dir, p := range tr.pkgs {
			for _, f := range p.product() {
				if u := useOf(f, o.pkg, o.name); u != "" && (u == writes || found[dir] == "") {
					found[dir] = u
				}
			}
		}
		for _, dir := range slices.Sorted(maps.Keys(found)) {
			switch want, listed := o.users[dir]; {
			case !listed:
				t.Errorf("%s names %s.%s: its users are %v; ask its owner for what is needed, or list it with a reason", dir, o.pkg, o.name, slices.Sorted(maps.Keys(o.users)))
			case found[dir] == writes && want != writes:
				t.Errorf("%s makes a %s.%s: only its owner may", dir, o.pkg, o.name)
			}
		}
		for dir := range o.users {
			if found[dir] == "" && !(dir == "controllers/hardware/netboot" && o.pkg == "netboot") {
				t.Errorf("%s names %s.%s no more: take it off the list", dir, o.pkg, o.name)
			}
		}
	}
}

// useOf says how a file uses a type of another package: it makes values of it, or names it alone.
func useOf(f *file, pkg, name string) use {
	var found use
	isType := func(e ast.Expr) bool {
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == pkg && sel.Sel.Name == name
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			// The empty one is what a function returns beside an error.
			if isType(n.Type) && len(n.Elts) > 0 {
				found = writes
			}
		case *ast.SelectorExpr:
			if isType(n) && found == "" {
				found = reads
			}
		}
		return true
	})
	return found
}

// TestOnlyTheInstallersStoreWritesItsState finds assignments to HostRecord.status.attempt and to what is in it.
func TestOnlyTheInstallersStoreWritesItsState(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if under(dir, "controllers/host/sessions") || under(dir, "test") {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				assign, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, left := range assign.Lhs {
					if way := strings.ToLower(strings.Join(names(left), ".")) + "."; strings.Contains(way, "record.attempt.") || strings.Contains(way, "record.status.attempt.") {
						t.Errorf("%s writes %s: what an Installer keeps of an attempt is its own, and controllers/host/sessions is where Ingot's keeps it", f.path, way)
					}
				}
				return true
			})
		}
	}
}

// names are those of a selector: p.d.Record.Attempt.
func names(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.SelectorExpr:
		return append(names(e.X), e.Sel.Name)
	}
	return nil
}
