package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// smallPackageLines is the size below which a package needs a second importer or a reason to exist.
const smallPackageLines = 100

// smallPackages are the small packages with one importer that stay, each with its reason.
var smallPackages = map[string]string{
	"controllers/hardware/netboot/routers": "each protocol of a server that boots is one package",
	"presentation/tenantsoftware/kubevirt": "the software of each vendor in tenant clusters is one package",
	"test/controlplane/internal/bootstrap": "it holds what kubeadm writes into a cluster, apart from what starts the processes of the control plane",
}

// packageFigures are the figures of one package.
type packageFigures struct {
	dir             string
	lines, exported int
	importers       []string
}

func TestSmallPackagesHaveASecondImporterOrAReason(t *testing.T) {
	small := map[string]bool{}
	tr := loadTree(t)
	for _, f := range tr.figures() {
		if f.lines >= smallPackageLines || len(f.importers) > 1 || tr.isProgram(f.dir) {
			continue
		}
		small[f.dir] = true
		if smallPackages[f.dir] == "" {
			t.Errorf("%s has %d lines and %d importers %v: make it a part of its importer, or list it in smallPackages with a reason", f.dir, f.lines, len(f.importers), f.importers)
		}
	}
	for dir := range smallPackages {
		if !small[dir] {
			t.Errorf("%s is no longer a small package with one importer: remove it from smallPackages", dir)
		}
	}
}

// TestPackagesInFigures prints a table with -v. make lint prints its last line.
func TestPackagesInFigures(t *testing.T) {
	tr := loadTree(t)
	var table strings.Builder
	var product packageFigures
	packages := 0
	for _, f := range tr.figures() {
		fmt.Fprintf(&table, "%6d lines %4d exported  %-40s %2d importers: %s\n", f.lines, f.exported, f.dir, len(f.importers), strings.Join(f.importers, " "))
		if !under(f.dir, "test") {
			packages++
			product.lines += f.lines
			product.exported += f.exported
		}
	}
	t.Logf("packages that hold more than tests\n%stotal: the product has %d packages with %d lines and %d exported names", table.String(), packages, product.lines, product.exported)
}

// figures returns the figures of every package that holds more than tests, sorted by directory. Packages without code, which
// consist of a package comment, are left out. Generated code counts neither as lines nor as names.
func (tr *tree) figures() []packageFigures {
	importers := map[string]map[string]bool{}
	for dir, p := range tr.pkgs {
		for _, f := range p.files {
			for _, imp := range f.imports {
				target, ours := strings.CutPrefix(imp, module+"/")
				if !ours || target == dir {
					continue
				}
				if importers[target] == nil {
					importers[target] = map[string]bool{}
				}
				importers[target][dir] = true
			}
		}
	}
	var out []packageFigures
	for _, dir := range slices.Sorted(maps.Keys(tr.pkgs)) {
		figures := packageFigures{dir: dir, importers: slices.Sorted(maps.Keys(importers[dir]))}
		code := false
		for _, f := range tr.pkgs[dir].product() {
			figures.lines += f.lines
			figures.exported += exportedNames(f.syntax)
			code = code || path.Base(f.path) != "doc.go"
		}
		if code {
			out = append(out, figures)
		}
	}
	return out
}

// isProgram says whether the package is a command, which nobody imports.
func (tr *tree) isProgram(dir string) bool {
	return slices.ContainsFunc(tr.pkgs[dir].product(), func(f *file) bool { return f.syntax.Name.Name == "main" })
}

// exportedNames counts the exported types, functions, methods of exported types, constants and variables of a file.
func exportedNames(syntax *ast.File) int {
	n := 0
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				n += exportedNamesOf(spec)
			}
		}
	}
	return n
}

func exportedNamesOf(spec ast.Spec) int {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			return 1
		}
	case *ast.ValueSpec:
		n := 0
		for _, name := range spec.Names {
			if name.IsExported() {
				n++
			}
		}
		return n
	}
	return 0
}
