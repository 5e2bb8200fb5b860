package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the import path of the root module.
const module = "github.com/ingot-dev/ingot"

// file is one parsed Go source file.
type file struct {
	path      string // relative to the root of the tree
	syntax    *ast.File
	lines     int
	imports   []string
	test      bool
	generated bool
}

// pkg is the Go files of one folder.
type pkg struct {
	dir   string // relative, slash separated
	files []*file
}

// tree is every package of the root module and of the nested ones.
type tree struct {
	root string
	fset *token.FileSet
	pkgs map[string]*pkg
}

// loadTree returns every Go file below the root of the repository, parsed once for all tests. No test changes it.
func loadTree(t *testing.T) *tree {
	t.Helper()
	tr, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

var parseTree = sync.OnceValues(func() (*tree, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	tr := &tree{root: root, fset: token.NewFileSet(), pkgs: map[string]*pkg{}}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		return tr.add(path)
	})
	return tr, err
})

func (tr *tree) add(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(tr.fset, path, src, parser.ParseComments)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(tr.root, path)
	if err != nil {
		return err
	}
	f := &file{
		path:      filepath.ToSlash(rel),
		syntax:    syntax,
		lines:     strings.Count(string(src), "\n"),
		test:      strings.HasSuffix(path, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}
	for _, i := range syntax.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		f.imports = append(f.imports, p)
	}
	dir := filepath.ToSlash(filepath.Dir(rel))
	if tr.pkgs[dir] == nil {
		tr.pkgs[dir] = &pkg{dir: dir}
	}
	tr.pkgs[dir].files = append(tr.pkgs[dir].files, f)
	return nil
}

// product returns the files of a package that are neither tests nor generated.
func (p *pkg) product() []*file {
	var out []*file
	for _, f := range p.files {
		if !f.test && !f.generated {
			out = append(out, f)
		}
	}
	return out
}

// under says whether dir is prefix or below it.
func under(dir, prefix string) bool {
	return dir == prefix || strings.HasPrefix(dir, prefix+"/")
}
