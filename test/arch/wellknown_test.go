package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ambiguous are constants of package wellknown that are also ordinary words, so that other packages write them with another meaning.
var ambiguous = []string{"none", "single", "mixed", "container", "gpu", "mig", "vfio", "GPU", "memory"}

// mayRepeat are trees that play a tenant or a server, and so write the vendors' names independently.
var mayRepeat = []string{"test", "cmd/ingot-demo"}

// TestVendorNamesStandInOneFile fails when a product file writes a name of the vendors' software that package wellknown has. Two
// copies can drift apart: a mode would set a label that the software of the tenant does not read, and the node would never be
// admitted.
func TestVendorNamesStandInOneFile(t *testing.T) {
	tr := loadTree(t)
	names := map[string]bool{}
	for _, f := range tr.pkgs["presentation/wellknown"].product() {
		for _, text := range literals(f) {
			if !slices.Contains(ambiguous, text) {
				if names[text] {
					t.Errorf("%s has %q twice: derive one constant from the other", f.path, text)
				}
				names[text] = true
			}
		}
	}
	if len(names) < 50 {
		t.Fatalf("expected at least 50 names in package wellknown, and found %d", len(names))
	}
	for dir, p := range tr.pkgs {
		if dir == "presentation/wellknown" || slices.ContainsFunc(mayRepeat, func(prefix string) bool { return under(dir, prefix) }) {
			continue
		}
		for _, f := range p.product() {
			for _, text := range literals(f) {
				if name := nameIn(text, names); name != "" {
					t.Errorf("%s writes %q: use the constant of package wellknown", f.path, name)
				}
			}
		}
	}
}

// nameIn returns the name that a string literal repeats: it is the literal, or a quoted part of it. Messages may mention names.
func nameIn(text string, names map[string]bool) string {
	if names[text] {
		return text
	}
	for name := range names {
		if strings.Contains(text, "'"+name+"'") || !strings.Contains(text, " ") && strings.HasSuffix(text, "/"+name) {
			return name
		}
	}
	return ""
}

// literals returns the values of the string literals of a file, without those of its imports.
func literals(f *file) []string {
	var out []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if _, isImport := n.(*ast.ImportSpec); isImport {
			return false
		}
		if lit, isLiteral := n.(*ast.BasicLit); isLiteral && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}
