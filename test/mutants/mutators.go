package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of the product's code.
type mutant struct {
	id       int // unique in its package
	pkg      *goPackage
	position token.Position
	function string
	// change says what is replaced by what.
	change string
	// reached are the tests that execute the changed code.
	reached []*testFunction
	fate    fate
	reason  string // why no test can kill it, from the list of equivalent mutants
}

// finder collects the mutants of one file.
type finder struct {
	pkg      *goPackage
	file     *sourceFile
	fset     *token.FileSet
	info     *types.Info
	function string
	results  []string          // the types of what the innermost function returns, as written
	unset    map[string]bool   // variables of the package that have the zero value
	named    map[ast.Expr]bool // constants that are left as they are
	covered  map[ast.Expr]int  // the change of a constant that the changed boundary of its comparison amounts to
	next     int
	mutants  []*mutant
}

// findMutants returns the mutants of a package and keeps their edits in its files.
func (p *goPackage) findMutants() ([]*mutant, error) {
	texts := map[string][]byte{}
	for _, f := range p.files {
		texts[f.path] = f.text
	}
	fset, files, info, errs, err := p.check(texts)
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", p.path, errs[0])
	}
	var all []*mutant
	for _, f := range p.files {
		f.syntax = files[f.path]
		if ast.IsGenerated(f.syntax) {
			continue
		}
		found := &finder{unset: unsetVariables(files), pkg: p, file: f, fset: fset, info: info, next: 1 + len(all), covered: map[ast.Expr]int{}, named: map[ast.Expr]bool{}}
		for _, d := range f.syntax.Decls {
			found.declaration(d)
		}
		slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
		all = append(all, found.mutants...)
	}
	return all, nil
}

// unsetVariables returns the package's variables that have the zero value. To return one is to return the zero value.
func unsetVariables(files map[string]*ast.File) map[string]bool {
	unset := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			if group, ok := d.(*ast.GenDecl); ok && group.Tok == token.VAR {
				for _, s := range group.Specs {
					addUnset(unset, s.(*ast.ValueSpec))
				}
			}
		}
	}
	return unset
}

func addUnset(unset map[string]bool, s *ast.ValueSpec) {
	for i, name := range s.Names {
		if len(s.Values) == 0 {
			unset[name.Name] = true
		} else if i < len(s.Values) {
			literal, ok := s.Values[i].(*ast.CompositeLit)
			unset[name.Name] = ok && len(literal.Elts) == 0
		}
	}
}

func (f *finder) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body == nil {
			return
		}
		f.function = d.Name.Name
		if d.Recv != nil {
			f.function = strings.TrimLeft(f.text(d.Recv.List[0].Type), "*") + "." + d.Name.Name
		}
		f.body(d.Type, d.Body)
	case *ast.GenDecl:
		if d.Tok == token.VAR {
			f.function = "var"
			f.walk(d)
		}
	}
}

// body finds the mutants of a function's body.
func (f *finder) body(signature *ast.FuncType, body *ast.BlockStmt) {
	before := f.results
	f.results = nil
	if signature.Results != nil {
		for _, r := range signature.Results.List {
			for range max(1, len(r.Names)) {
				f.results = append(f.results, f.text(r.Type))
			}
		}
	}
	f.walk(body)
	f.results = before
}

// walk finds the mutants within a node.
func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.body(n.Type, n.Body)
			return false
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case ast.Expr:
			f.addExpression(n)
			return f.canPartsChange(n)
		case ast.Stmt:
			f.statement(n)
		}
		return true
	})
}

// statement finds the mutants of a statement's parts.
func (f *finder) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		f.list(s.List)
	case *ast.CommClause:
		f.list(s.Body)
	case *ast.CaseClause:
		f.list(s.Body)
	case *ast.SwitchStmt:
		if s.Tag == nil {
			f.caseConditions(s)
		}
	case *ast.IfStmt:
		f.forced(s.Cond)
	case *ast.ForStmt:
		if s.Cond != nil {
			f.forcedFalse(s.Cond)
		}
	case *ast.RangeStmt:
		f.skipped(s)
	case *ast.AssignStmt:
		f.values(s.Rhs)
	case *ast.ReturnStmt:
		f.values(s.Results)
	}
}

func isPanic(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

// skipped leaves a range before its first element.
func (f *finder) skipped(n *ast.RangeStmt) {
	f.addChange(n.Body, "range "+f.text(n.X), "no elements", func(id int, inner string) string {
		return fmt.Sprintf("{ if isMutantOn(%d) { break }; %s", id, strings.TrimPrefix(inner, "{"))
	})
}

func (f *finder) caseConditions(n *ast.SwitchStmt) {
	for _, c := range n.Body.List {
		for _, condition := range c.(*ast.CaseClause).List {
			f.forced(condition)
		}
	}
}

// list finds the mutants that remove a statement of a list, or change what it returns.
func (f *finder) list(statements []ast.Stmt) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if !isPanic(s.X) {
				f.removed(s)
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !isBlank(s.Lhs) {
				f.removed(s)
			}
		case *ast.IncDecStmt, *ast.SendStmt:
			f.removed(s)
		case *ast.BranchStmt:
			if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
				f.removed(s)
			}
		case *ast.ReturnStmt:
			f.returned(s)
		}
	}
}

func isBlank(left []ast.Expr) bool {
	return !slices.ContainsFunc(left, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}

func (f *finder) removed(s ast.Stmt) {
	f.add(s, "(nothing)", func(id int, inner string) string { return fmt.Sprintf("if !isMutantOn(%d) { %s }", id, inner) })
}

// returned finds the mutants that return the zero value in place of one result.
func (f *finder) returned(s *ast.ReturnStmt) {
	if len(s.Results) == 0 {
		return
	}
	for i, r := range s.Results {
		if f.isZero(r) || f.isBool(r) {
			continue
		}
		values := make([]string, len(s.Results))
		for j, other := range s.Results {
			values[j] = f.text(other)
		}
		values[i] = "*new(" + f.results[i] + ")"
		if len(s.Results) < len(f.results) { // return f()
			values = nil
			for _, t := range f.results {
				values = append(values, "*new("+t+")")
			}
		}
		f.addChange(s, f.text(r), "zero value", func(id int, inner string) string {
			return fmt.Sprintf("if isMutantOn(%d) { return %s }; %s", id, strings.Join(values, ", "), inner)
		})
	}
}

// typeText returns a type as the file writes it; empty: the file cannot name it.
func (f *finder) typeText(t types.Type) string {
	ok := true
	text := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p.Path() == f.pkg.path {
			return ""
		}
		for _, i := range f.file.syntax.Imports {
			if strings.Trim(i.Path.Value, `"`) == p.Path() {
				if i.Name != nil {
					return i.Name.Name
				}
				return p.Name()
			}
		}
		ok = false
		return ""
	})
	if !ok {
		return ""
	}
	return text
}

func (f *finder) add(n ast.Node, changed string, wrap func(int, string) string) {
	f.addChange(n, f.text(n), changed, wrap)
}

func (f *finder) addChange(n ast.Node, original, changed string, wrap func(int, string) string) {
	m := &mutant{
		id: f.next, pkg: f.pkg, function: f.function, change: oneLine(original) + " -> " + oneLine(changed),
		position: f.fset.Position(n.Pos()),
	}
	f.next++
	f.mutants = append(f.mutants, m)
	f.file.edits = append(f.file.edits, edit{f.offset(n.Pos()), f.offset(n.End()), m, wrap})
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.file.text[f.offset(n.Pos()):f.offset(n.End())])
}

// longest bounds how much of a statement is printed, in bytes.
const longest = 100

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}

// String returns where the mutant is and what it changes.
func (m *mutant) String() string {
	name := filepath.Base(m.position.Filename)
	return fmt.Sprintf("%s/%s:%d:%d: %s: %s", m.pkg.shortPath(), name, m.position.Line, m.position.Column, m.function, m.change)
}
