package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutantVariable and traceVariable are the environment variables that the test programs read.
const (
	mutantVariable = "INGOT_MUTANT"
	traceVariable  = "INGOT_MUTANT_TRACE"
)

// switchSource is added to every mutated package. A test program that records writes the name of every mutant it reaches to a
// file, once, and behaves as the product does. The numbers are those within the package, so that a package is compiled anew only
// when its own code changes.
const switchSource = `package %s

import (
	mutantos "os"
	mutantstrconv "strconv"
	mutantstrings "strings"
	mutantsync "sync"
)

const mutantPackage = %q

var mutantActive, _ = mutantstrconv.Atoi(mutantstrings.TrimPrefix(mutantos.Getenv("` + mutantVariable + `"), mutantPackage + ":"))

var mutantTrace, _ = mutantos.OpenFile(mutantos.Getenv("` + traceVariable + `"), mutantos.O_APPEND|mutantos.O_WRONLY, 0)

var mutantReached mutantsync.Map

func mutantRecord(id int) {
	if _, known := mutantReached.LoadOrStore(id, true); !known {
		_, _ = mutantTrace.WriteString(mutantPackage + ":" + mutantstrconv.Itoa(id) + "\n")
	}
}

func isMutantOn(id int) bool {
	if mutantTrace != nil {
		mutantRecord(id)
	}
	return id == mutantActive
}

func mutantNumber[T any](id int, changed, original T) T {
	if isMutantOn(id) {
		return changed
	}
	return original
}
`

// switchImports are the packages that switchSource imports.
var switchImports = []string{"os", "strconv", "strings", "sync"}

// edit puts the code of a mutant in place of the text between two offsets.
type edit struct {
	start, end int
	mutant     *mutant
	// wrap returns the new text. inner is the present text, which holds the edits of what stands within.
	wrap func(id int, inner string) string
}

// overlay is the file that tells the go command which files to read in place of others.
type overlay struct {
	Replace map[string]string
}

// instrumentAll finds the mutants of all packages, numbers them, and writes the changed files and the overlay to the folder.
func instrumentAll(packages []*goPackage, work string) ([]*mutant, error) {
	var all []*mutant
	over := overlay{Replace: map[string]string{}}
	for n, p := range packages {
		found, err := p.findMutants()
		if err != nil {
			return nil, err
		}
		texts, found, err := p.instrument(found)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		for path, text := range texts {
			changed := filepath.Join(work, fmt.Sprintf("%d-%s", n, filepath.Base(path)))
			if err := os.WriteFile(changed, text, 0o600); err != nil {
				return nil, err
			}
			over.Replace[path] = changed
		}
	}
	data, err := json.Marshal(over)
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(overlayFile(work), data, 0o600)
}

func (p *goPackage) switchFile() string { return filepath.Join(p.dir, "mutantswitch.go") }

func (p *goPackage) switchText() []byte {
	return fmt.Appendf(nil, switchSource, p.files[0].syntax.Name.Name, p.path)
}

func overlayFile(work string) string { return filepath.Join(work, "overlay.json") }

// maxAttempts bounds how often a package is checked again without the mutants that the compiler refuses.
const maxAttempts = 50

// instrument returns the files of the package with all mutants in them, and the mutants. It leaves out those that do not compile.
func (p *goPackage) instrument(found []*mutant) (map[string][]byte, []*mutant, error) {
	var problem error
	for range maxAttempts {
		texts := map[string][]byte{}
		for _, f := range p.files {
			texts[f.path] = []byte(render(string(f.text), 0, len(f.text), f.edits))
		}
		texts[p.switchFile()] = p.switchText()
		fset, files, _, errs, err := p.check(texts)
		if err != nil {
			return nil, nil, fmt.Errorf("%s with its mutants: %w", p.path, err)
		}
		if len(errs) == 0 {
			return texts, found, nil
		}
		problem = errs[0]
		refused := map[int]bool{}
		for _, e := range errs {
			if id, ok := mutantAt(files[fset.Position(e.Pos).Filename], e.Pos); ok {
				refused[id] = true
			}
		}
		if len(refused) == 0 {
			break
		}
		found = slices.DeleteFunc(found, func(m *mutant) bool { return refused[m.id] })
		for _, f := range p.files {
			f.edits = slices.DeleteFunc(f.edits, func(e edit) bool { return refused[e.mutant.id] })
		}
	}
	return nil, nil, fmt.Errorf("%s with its mutants does not compile: %w", p.path, problem)
}

// render returns the text between two offsets with its edits, which are sorted and nested.
func render(text string, start, end int, edits []edit) string {
	var b strings.Builder
	for len(edits) > 0 {
		e := edits[0]
		within := 1
		for within < len(edits) && edits[within].start < e.end {
			within++
		}
		b.WriteString(text[start:e.start])
		b.WriteString(e.wrap(e.mutant.id, render(text, e.start, e.end, edits[1:within])))
		start, edits = e.end, edits[within:]
	}
	b.WriteString(text[start:end])
	return b.String()
}

// mutantAt returns the mutant whose code is the smallest around a position.
func mutantAt(f *ast.File, pos token.Pos) (id int, ok bool) {
	if f == nil {
		return 0, false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || pos > n.End() {
			return false
		}
		if i, found := firstMutant(n); found {
			id, ok = i, true
		}
		return true
	})
	return id, ok
}

// firstMutant returns the number in the first call of the switch within a node.
func firstMutant(n ast.Node) (id int, ok bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if ok || !isCall || len(call.Args) == 0 {
			return !ok
		}
		fun := call.Fun
		if i, generic := fun.(*ast.IndexExpr); generic {
			fun = i.X
		}
		name, isName := fun.(*ast.Ident)
		if number, isNumber := call.Args[0].(*ast.BasicLit); isName && isNumber && (name.Name == "isMutantOn" || name.Name == "mutantNumber") {
			id, _ = strconv.Atoi(number.Value)
			ok = true
		}
		return !ok
	})
	return id, ok
}
