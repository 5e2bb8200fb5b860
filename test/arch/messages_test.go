package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
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

// formatVerb finds the verbs of a format of package fmt, with the letter that follows.
var formatVerb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*([a-zA-Z])([a-zA-Z]?)`)

// Verbs that formats need, and those of them that a unit or an ending may follow, as in %ds. Anything else is a slip, such as %obs where
// a variable was renamed; go vet does not see it where the value is an interface.
const verbs, verbsBeforeLetters = "cdfgopqstTUvwxX", "dfsvx"

func TestFormatsUseTheVerbsThatMessagesNeed(t *testing.T) {
	tr := loadTree(t)
	for _, p := range tr.pkgs {
		for _, f := range p.files {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					checkVerbs(t, tr, call)
				}
				return true
			})
		}
	}
}

// checkVerbs reads the first text among the arguments of a function whose name ends in f, or that makes a Refusal.
func checkVerbs(t *testing.T, tr *tree, call *ast.CallExpr) {
	t.Helper()
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(selector.Sel.Name, "f") && selector.Sel.Name != "Invalid" && selector.Sel.Name != "Refuse" {
		return
	}
	for _, argument := range call.Args {
		text, ok := argument.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		for _, verb := range formatVerb.FindAllStringSubmatch(strings.ReplaceAll(text.Value, "%%", ""), -1) {
			if !strings.Contains(verbs, verb[1]) || verb[2] != "" && !strings.Contains(verbsBeforeLetters, verb[1]) {
				t.Errorf("%s: the format has the verb %%%s: %s", tr.fset.Position(text.Pos()), verb[1], text.Value)
			}
		}
	}
}

// deletionAdvice are the files whose messages tell to delete a Machine, each with the reason why the one that its NodePool makes instead does not
// end in the same state. Messages about a Machine without a host use lifecycle.Machine.RemovalAdvice.
var deletionAdvice = map[string]string{
	"controllers/plan/lifecycle/facts.go":     "it is RemovalAdvice, which tells to scale the NodePool where the Machine has no host",
	"controllers/plan/lifecycle/install.go":   "the next Machine claims another host than the one that was taken from this one",
	"controllers/plan/lifecycle/join.go":      "the next Machine is another try, with another bootstrap token",
	"controllers/plan/lifecycle/nodeowner.go": "the Node has the name of this Machine, and the next Machine has another name",
	"controllers/plan/lifecycle/orphan.go":    "the earlier Machine has the name of this one, and the next Machine has another name",
	"controllers/plan/lifecycle/restore.go":   "the next Machine claims another host than the one that does not fit this one",
	"controllers/machine/observe.go":          "the next Machine is installed by this version, which keeps the rendering",
	"controllers/validation/observe.go":       "the next Machine is installed by this version, which keeps the rendering",
	"cmd/ingot/explain/installed.go":          "the next Machine is installed by this version, which keeps the rendering",
	"cmd/ingot/fleet/why.go":                  "the reasons are HostLost, NodeConflict and HostOrphaned: the next Machine has another host or another name",
	"cmd/ingot/simulate/report.go":            "the Machines are broken and have hosts: the next ones get the NodeType's stable revision",
	"controllers/plan/rollout/broken.go":      "the Machines are broken and have hosts: the next ones get the NodeType's stable revision",
}

// deletesMachine finds advice to delete a Machine.
var deletesMachine = regexp.MustCompile(`delete (this|the|those|that) Machines?\b|or this Machine\b|mend or delete`)

// TestAdviceToDeleteAMachineLeadsElsewhere: without it a message tells to delete a Machine of a NodePool, which makes another one, whose message tells
// to delete it.
func TestAdviceToDeleteAMachineLeadsElsewhere(t *testing.T) {
	tr := loadTree(t)
	found := map[string]bool{}
	for dir, p := range tr.pkgs {
		if !under(dir, "controllers") && !under(dir, "cmd") {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				if ok && text.Kind == token.STRING && deletesMachine.MatchString(text.Value) {
					if found[f.path] = true; deletionAdvice[f.path] == "" {
						t.Errorf("%s: %s: say what to do where a NodePool makes the Machine again, as lifecycle.Machine.RemovalAdvice does", tr.fset.Position(text.Pos()), text.Value)
					}
				}
				return true
			})
		}
	}
	for path := range deletionAdvice {
		if !found[path] {
			t.Errorf("%s does not tell to delete a Machine any more: take it from the list", path)
		}
	}
}
