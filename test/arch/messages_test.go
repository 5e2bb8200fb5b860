package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"testing"
)

// typeVerb is a verb of package fmt that writes the name of a Go type, with its flags.
var typeVerb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*T|%[-+ 0-9.*\[\]]*#[-+ 0-9.*\[\]]*v`)

func TestNoMessageNamesAGoType(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if under(dir, "test") {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				if ok && text.Kind == token.STRING && typeVerb.MatchString(text.Value) {
					t.Errorf("%s: %s writes the name of a Go type: name the kind, as step.Kind does", tr.fset.Position(text.Pos()), text.Value)
				}
				return true
			})
		}
	}
}
