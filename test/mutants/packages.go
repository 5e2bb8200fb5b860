package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// goPackage is a package whose code is mutated.
type goPackage struct {
	path    string // import path
	module  string // path of its module
	dir     string
	files   []*sourceFile
	imports types.Importer
	tests   bool     // it has tests of its own
	judges  []string // the packages whose tests judge its mutants
}

// sourceFile is a file of the product.
type sourceFile struct {
	path   string // absolute
	text   []byte
	syntax *ast.File
	edits  []edit
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export   string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	DepOnly                   bool
	Module                    *struct{ Path string }
	Error                     *struct{ Err string }
}

// loadPackages returns the packages that the patterns name, with their source.
func loadPackages(ctx context.Context, root string, patterns []string) ([]*goPackage, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly,Module,Error"}, patterns...)
	args = append(args, switchImports...)
	out, err := goCommand(ctx, root, args...)
	if err != nil {
		return nil, err
	}
	found, exports, err := parseList(out)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var packages []*goPackage
	for _, l := range found {
		p := &goPackage{path: l.ImportPath, module: l.Module.Path, dir: l.Dir, imports: imports, tests: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0}
		for _, name := range l.GoFiles {
			path := filepath.Join(l.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, &sourceFile{path: path, text: text})
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package with Go files matches %v", patterns)
	}
	return packages, nil
}

// parseList returns the packages that the output of `go list` names first, and the files with the exported names of all.
func parseList(out []byte) (found []listed, exports map[string]string, err error) {
	exports = map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF):
			return found, exports, nil
		case err != nil:
			return nil, nil, err
		case l.Error != nil:
			return nil, nil, errors.New(l.Error.Err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && l.Module != nil && len(l.GoFiles) > 0 {
			found = append(found, l)
		}
	}
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return out, nil
}

// check parses and type-checks the texts of the package's files. It returns every type error.
func (p *goPackage) check(texts map[string][]byte) (*token.FileSet, map[string]*ast.File, *types.Info, []types.Error, error) {
	fset := token.NewFileSet()
	files := map[string]*ast.File{}
	var list []*ast.File
	for path, text := range texts {
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		files[path] = f
		list = append(list, f)
	}
	var errs []types.Error
	config := types.Config{Importer: p.imports, Error: func(err error) {
		if e := (types.Error{}); errors.As(err, &e) && !e.Soft {
			errs = append(errs, e)
		}
	}}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, _ = config.Check(p.path, fset, list, info) // its error is the first of errs
	return fset, files, info, errs, nil
}
