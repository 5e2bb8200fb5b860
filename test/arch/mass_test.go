package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var writeMass = flag.Bool("write-mass", false, "write the table of mass instead of comparing with it")

// massFile is the checked-in table: what people must read, set, know and carry.
const massFile = "mass.txt"

// amount is one line of the table.
type amount struct {
	what string
	n    int
}

// TestWhatGrowsIsInTheTable fails when there is more of something than the table says. Whoever adds to it writes the table anew, and so shows in the commit
// what it costs those who run and carry the product.
func TestWhatGrowsIsInTheTable(t *testing.T) {
	have, err := weigh(loadTree(t))
	if err != nil {
		t.Fatal(err)
	}
	if *writeMass {
		var table strings.Builder
		for _, a := range have {
			fmt.Fprintf(&table, "%7d %s\n", a.n, a.what)
		}
		if err := os.WriteFile(massFile, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	table, err := os.ReadFile(massFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range compareMass(string(table), have) {
		t.Error(finding)
	}
	if t.Failed() {
		t.Log("take something away, or run make mass and say in the commit what the growth is worth")
	}
}

// compareMass returns one finding for each amount that has grown beyond the table.
func compareMass(table string, have []amount) []string {
	var out []string
	limits := map[string]int{}
	for line := range strings.Lines(table) {
		number, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %q is not a number and what it counts", massFile, line))
		}
		limits[what] = n
	}
	for _, a := range have {
		if limit, isKnown := limits[a.what]; !isKnown || a.n > limit {
			out = append(out, fmt.Sprintf("%s: %d, and %d in the table", a.what, a.n, limit))
		}
	}
	return out
}

func TestOnlyGrowthIsFound(t *testing.T) {
	for have, want := range map[int]int{9: 0, 10: 0, 11: 1} {
		if got := compareMass("     10 kinds\n", []amount{{"kinds", have}}); len(got) != want {
			t.Errorf("%d of 10: %v", have, got)
		}
	}
	if got := compareMass("     10 kinds\n", []amount{{"flags", 1}}); len(got) != 1 {
		t.Errorf("what is not in the table: %v", got)
	}
}

// weigh counts everything that the table has.
func weigh(tr *tree) ([]amount, error) {
	out := tr.countLines()
	kinds, fields, err := countFields(filepath.Join(tr.root, "config/crd/bases"))
	if err != nil {
		return nil, err
	}
	words, err := countWords(tr.root)
	if err != nil {
		return nil, err
	}
	constants := func(prefix string) int {
		return tr.count(func(dir string) bool { return !under(dir, "test") }, func(n ast.Node) int { return constantsNamed(n, prefix) })
	}
	inCommands := func(dir string) bool { return under(dir, "cmd") }
	return append(out,
		amount{"kinds", kinds}, amount{"fields of kinds", fields},
		amount{"annotations", constants("Annotation")}, amount{"conditions", constants("Condition")}, amount{"reasons", constants("Reason")},
		amount{"settings of the manager", tr.count(func(dir string) bool { return dir == "cmd/ingot-manager/settings" }, settingsIn)},
		amount{"commands", tr.count(inCommands, commandsIn)}, amount{"flags", tr.count(inCommands, flagsIn)},
		amount{"words of documents", words},
	), nil
}

// count sums what a function counts in each node of the product's files in some directories.
func (tr *tree) count(isIn func(dir string) bool, of func(ast.Node) int) int {
	sum := 0
	for dir, p := range tr.pkgs {
		if !isIn(dir) {
			continue
		}
		for _, f := range p.product() {
			ast.Inspect(f.syntax, func(n ast.Node) bool { sum += of(n); return true })
		}
	}
	return sum
}

// countLines returns the lines of code by folder of the top level, those of tests apart.
func (tr *tree) countLines() []amount {
	sums := map[string]int{}
	for dir, p := range tr.pkgs {
		top, _, _ := strings.Cut(dir, "/")
		for _, f := range p.files {
			switch {
			case f.generated:
				sums["lines of generated code"] += f.lines
			case f.test:
				sums["lines of tests in "+top] += f.lines
			case top == "test":
				sums["lines of test support"] += f.lines
			default:
				sums["lines of "+top] += f.lines
			}
		}
	}
	var out []amount
	for what, n := range sums {
		out = append(out, amount{what, n})
	}
	slices.SortFunc(out, func(a, b amount) int { return strings.Compare(a.what, b.what) })
	return out
}

// countFields counts the kinds and the fields of their schemas.
func countFields(dir string) (kinds, fields int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		var definition any
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", file, err)
		}
		kinds++
		fields += propertiesIn(definition)
	}
	return kinds, fields, nil
}

func propertiesIn(value any) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if properties, isSchema := inner.(map[string]any); isSchema && key == "properties" {
				n += len(properties)
			}
			n += propertiesIn(inner)
		}
	case []any:
		for _, inner := range value {
			n += propertiesIn(inner)
		}
	}
	return n
}

// measurements are the folders of pages that commands fill with what they measure.
var measurements = []string{"bench", "costs"}

// countWords counts the words of all other documents, generated ones included: they are read too.
func countWords(root string) (int, error) {
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" || slices.Contains(measurements, filepath.Base(filepath.Dir(path))) {
			return nil
		}
		text, err := os.ReadFile(path)
		n += len(strings.Fields(string(text)))
		return err
	})
	return n, err
}

// constantsNamed counts the exported constants that a declaration has with names that begin so.
func constantsNamed(n ast.Node, prefix string) int {
	d, isDeclaration := n.(*ast.GenDecl)
	if !isDeclaration || d.Tok != token.CONST {
		return 0
	}
	sum := 0
	for _, spec := range d.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			if strings.HasPrefix(name.Name, prefix) {
				sum++
			}
		}
	}
	return sum
}

// settingsIn counts the fields of a struct that a configuration file has.
func settingsIn(n ast.Node) int {
	s, isStruct := n.(*ast.StructType)
	if !isStruct {
		return 0
	}
	sum := 0
	for _, f := range s.Fields.List {
		if f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) {
			sum += max(len(f.Names), 1)
		}
	}
	return sum
}

// commandsIn counts a command of cobra, or a call that makes one of a text.
func commandsIn(n ast.Node) int {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, isName := n.Key.(*ast.Ident); isName && key.Name == "Use" && isText(n.Value) {
			return 1
		}
	case *ast.CallExpr:
		if name := calledName(n); (name == "newCommand" || name == "NewGroup") && len(n.Args) > 0 && isText(n.Args[0]) {
			return 1
		}
	}
	return 0
}

// flagDefinitions are the methods and functions of packages flag and pflag that define a flag.
var flagDefinitions = regexp.MustCompile(`^(String|Bool|Int|Int32|Int64|Uint|Uint16|Float64|Duration|StringSlice|StringArray|StringToString|Text|Func)?(Var)?P?$`)

// flagsIn counts a call that defines a flag: one of those methods with the name of a flag and its description.
func flagsIn(n ast.Node) int {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) < 3 || !flagDefinitions.MatchString(calledName(call)) {
		return 0
	}
	if isText(call.Args[0]) || isText(call.Args[1]) {
		return 1
	}
	return 0
}

// calledName returns the name of the function or method of a call; empty: it has none.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func isText(e ast.Expr) bool {
	literal, isLiteral := e.(*ast.BasicLit)
	return isLiteral && literal.Kind == token.STRING
}
