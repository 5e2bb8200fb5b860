package definitions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// minRows is how many rows the table of what is in use must have.
const minRows = 30

// withoutServer at the end of a row says that its test needs no API server, because the rule is not that of a server.
const withoutServer = " (no API server)"

// TestEveryRowOfTheTableOfWhatIsInUseHasItsTest: the last column of config/policy/README.md names a file and a test in it, which go test runs and which
// talks to an API server.
func TestEveryRowOfTheTableOfWhatIsInUseHasItsTest(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "config/policy/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("^`([^`]+_test\\.go)` (\\w+)$")
	rows, packages := 0, map[string]testPackage{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.TrimSpace(cells[0]) == "kind" {
			continue
		}
		rows++
		cell, isWithout := strings.CutSuffix(strings.TrimSpace(cells[3]), withoutServer)
		last := named.FindStringSubmatch(cell)
		if last == nil {
			t.Errorf("the row names no test: %s", line)
			continue
		}
		dir := filepath.Dir(last[1])
		if _, isParsed := packages[dir]; !isParsed {
			packages[dir] = parseTests(t, filepath.Join(root, dir))
		}
		if why := packages[dir].problem(filepath.Base(last[1]), last[2], isWithout); why != "" {
			t.Errorf("%s %s %s", last[1], last[2], why)
		}
	}
	if rows < minRows {
		t.Errorf("%d rows, want at least %d", rows, minRows)
	}
}

// TestARowThatNamesNoTestThatRunsIsNoticed shows the faults that the check above finds.
func TestARowThatNamesNoTestThatRunsIsNoticed(t *testing.T) {
	dir := t.TempDir()
	source := "package p\nimport \"testing\"\n" +
		"func TestRuns(t *testing.T) { t.Run(\"part\", part) }\nfunc part(t *testing.T) { deeper(t) }\nfunc deeper(*testing.T) {}\n" +
		"func forgotten(t *testing.T) { forgotten(t) }\nfunc TestSkipped(t *testing.T) { t.Skip() }\nfunc helper() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	p := parseTests(t, dir)
	for name, want := range map[string]string{"TestRuns": "", "part": "", "deeper": "", "forgotten": "no test calls it", "TestSkipped": "is skipped", "helper": "no test calls it", "TestNothing": "is not there"} {
		if got := p.problem("p_test.go", name, true); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := p.problem("p_test.go", "TestRuns", false); !strings.Contains(got, "starts no API server") {
		t.Errorf("a package without an API server: %q", got)
	}
}

// testPackage is what is known of the tests of one folder.
type testPackage struct {
	// functions are those of its test files, by name, and files the file of each.
	functions map[string]*ast.FuncDecl
	files     map[string]string
	// hasServer is true if its tests import a package that starts a real API server.
	hasServer bool
}

// serverPackages start a real API server.
var serverPackages = []string{"test/management", "test/cluster", "test/environment"}

func parseTests(t *testing.T, dir string) testPackage {
	t.Helper()
	p := testPackage{map[string]*ast.FuncDecl{}, map[string]string{}, false}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			p.hasServer = p.hasServer || slices.Contains(serverPackages, strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), "github.com/ingot-dev/ingot/"))
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				p.functions[f.Name.Name], p.files[f.Name.Name] = f, filepath.Base(path)
			}
		}
	}
	return p
}

// problem returns why the function of that name is no test that shows a row; empty: it is one.
func (p testPackage) problem(file, name string, isWithoutServer bool) string {
	f := p.functions[name]
	switch {
	case f == nil || p.files[name] != file:
		return "is not there"
	case mentions(f.Body, "Skip") || mentions(f.Body, "SkipNow"):
		return "is skipped"
	case !p.isRun(name):
		return "no test calls it"
	case !p.hasServer && !isWithoutServer:
		return "starts no API server: name another test, or end the row with" + withoutServer
	}
	return ""
}

// isRun tells whether the function is a test, or a test mentions it directly or through other functions.
func (p testPackage) isRun(name string) bool {
	seen := map[string]bool{}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		if strings.HasPrefix(next[0], "Test") {
			return true
		}
		for caller, f := range p.functions {
			if !seen[caller] && f.Body != nil && mentions(f.Body, next[0]) {
				seen[caller] = true
				next = append(next, caller)
			}
		}
	}
	return false
}

// mentions tells whether the identifier stands somewhere in the code.
func mentions(code ast.Node, name string) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}
