package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// values makes each of the values that is a bool always true, and always false.
func (f *finder) values(values []ast.Expr) {
	for _, v := range values {
		if f.isBool(v) && f.info.Types[v].Value == nil {
			f.forced(v)
		}
	}
}

func (f *finder) forced(condition ast.Expr) {
	f.forcedFalse(condition)
	f.forcedTrue(condition)
}

func (f *finder) forcedTrue(e ast.Expr) {
	f.add(e, "true", func(id int, inner string) string { return fmt.Sprintf("(isMutantOn(%d) || %s)", id, grouped(e, inner)) })
}

func (f *finder) forcedFalse(e ast.Expr) {
	f.add(e, "false", func(id int, inner string) string {
		return fmt.Sprintf("(!isMutantOn(%d) && %s)", id, grouped(e, inner))
	})
}

// grouped puts parentheses around an expression that needs them as an operand.
func grouped(e ast.Expr, inner string) string {
	if _, ok := e.(*ast.BinaryExpr); ok {
		return "(" + inner + ")"
	}
	return inner
}

// canPartsChange reports whether the parts of an expression have mutants of their own: those of a type, a constant or a panic have none.
func (f *finder) canPartsChange(e ast.Expr) bool {
	tv := f.info.Types[e]
	return !tv.IsType() && tv.Value == nil && !isPanic(e)
}

// addExpression adds the mutants of an expression, without those of its parts.
func (f *finder) addExpression(e ast.Expr) {
	tv := f.info.Types[e]
	if !tv.IsType() && tv.Value != nil {
		f.constant(e, tv)
	}
	if !f.canPartsChange(e) {
		return
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		f.values(e.Args)
		if !f.info.Types[e.Fun].IsBuiltin() {
			f.limits(e.Args)
		}
	case *ast.KeyValueExpr:
		f.values([]ast.Expr{e.Value})
	case *ast.BinaryExpr:
		f.binary(e, tv.Type)
	}
}

// limits leaves named constants as they are where they are an argument, as in truncate(text, maxLength). Such a limit is a choice, and
// a test that notices one more could only repeat it.
func (f *finder) limits(args []ast.Expr) {
	for _, a := range args {
		name, ok := a.(*ast.Ident)
		if selector, is := a.(*ast.SelectorExpr); is {
			name, ok = selector.Sel, true
		}
		if ok {
			c, isConst := f.info.Uses[name].(*types.Const)
			f.named[a] = isConst && c.Pkg() != nil // true and false belong to no package
		}
	}
}

func (f *finder) binary(binary *ast.BinaryExpr, result types.Type) {
	switch binary.Op {
	case token.LAND:
		f.forcedTrue(binary.X)
		f.forcedTrue(binary.Y)
	case token.LOR:
		f.forcedFalse(binary.X)
		f.forcedFalse(binary.Y)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.boundary(binary)
	case token.EQL, token.NEQ:
		if f.isLengthAndZero(binary) {
			f.covered[binary.Y] = -1 // no length is negative
		}
	case token.ADD, token.SUB, token.MUL, token.QUO:
		if b, ok := result.Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
			f.operator(binary, false)
		}
	}
}

// boundary finds the mutant that includes or excludes the boundary of a comparison. For an integer constant it is the same as one
// more, or one less.
func (f *finder) boundary(e *ast.BinaryExpr) {
	if e.Op == token.GTR || e.Op == token.LEQ {
		f.covered[e.Y], f.covered[e.X] = -1, 1
	} else {
		f.covered[e.Y], f.covered[e.X] = 1, -1
	}
	if !f.isLengthAndZero(e) {
		f.operator(e, true)
	}
}

// isLengthAndZero is true for len(x) > 0 and the like. Their boundary is the same as true or false.
func (f *finder) isLengthAndZero(e *ast.BinaryExpr) bool {
	call, ok := e.X.(*ast.CallExpr)
	return ok && f.text(call.Fun) == "len" && f.isZero(e.Y)
}

// exchanged is the operator that takes the place of another.
var exchanged = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

func (f *finder) operator(e *ast.BinaryExpr, comparison bool) {
	changed := fmt.Sprintf("%s %s %s", f.text(e.X), exchanged[e.Op], f.text(e.Y))
	kind := f.typeText(f.info.Types[e].Type)
	if kind == "" && !comparison {
		return
	}
	f.add(e, changed, func(id int, inner string) string {
		if comparison {
			return fmt.Sprintf("(isMutantOn(%d) && (%s) || !isMutantOn(%d) && (%s))", id, changed, id, inner)
		}
		return fmt.Sprintf("func() %s { if isMutantOn(%d) { return %s }; return %s }()", kind, id, changed, inner)
	})
}

// constant finds the mutants of a constant.
func (f *finder) constant(e ast.Expr, tv types.TypeAndValue) {
	basic, ok := tv.Type.Underlying().(*types.Basic)
	kind := f.typeText(tv.Type)
	if !ok || kind == "" || f.named[e] {
		return
	}
	switch {
	case basic.Info()&types.IsBoolean != 0:
		f.number(e, kind, fmt.Sprint(!constant.BoolVal(tv.Value)))
	case basic.Info()&types.IsInteger == 0 || f.isEnum(e, tv.Type):
	case tv.Type.String() == "time.Duration":
		if constant.Sign(tv.Value) != 0 {
			f.number(e, kind, "("+f.text(e)+")*2")
			f.number(e, kind, "("+f.text(e)+")/2")
		}
	default:
		f.integer(e, kind, constant.Sign(tv.Value), basic.Info()&types.IsUnsigned != 0)
	}
}

// integer finds the mutants of an integer. Of a negative number the sign counts, as in the result of a comparison: it is not made
// smaller.
func (f *finder) integer(e ast.Expr, kind string, sign int, unsigned bool) {
	if f.covered[e] != 1 {
		f.number(e, kind, f.text(e)+" + 1")
	}
	if f.covered[e] != -1 && (sign > 0 || sign == 0 && !unsigned) {
		f.number(e, kind, f.text(e)+" - 1")
	}
}

// isEnum is true for a declared constant of a type of its own: one more would be another name, or none.
func (f *finder) isEnum(e ast.Expr, t types.Type) bool {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		e = selector.Sel
	}
	name, ok := e.(*ast.Ident)
	if !ok || t.String() == "time.Duration" {
		return false
	}
	_, own := f.info.Uses[name].Type().(*types.Named)
	return own
}

func (f *finder) number(e ast.Expr, kind, changed string) {
	f.add(e, changed, func(id int, inner string) string {
		return fmt.Sprintf("mutantNumber[%s](%d, %s, %s)", kind, id, changed, inner)
	})
}

func (f *finder) isZero(e ast.Expr) bool {
	if literal, ok := e.(*ast.CompositeLit); ok {
		return len(literal.Elts) == 0
	}
	tv := f.info.Types[e]
	if name, ok := e.(*ast.Ident); ok && f.unset[name.Name] || tv.IsNil() {
		return true
	}
	if tv.Value == nil {
		return false
	}
	switch tv.Value.Kind() {
	case constant.String:
		return constant.StringVal(tv.Value) == ""
	case constant.Int, constant.Float:
		return constant.Sign(tv.Value) == 0
	}
	return false
}

func (f *finder) isBool(e ast.Expr) bool {
	t := f.info.Types[e].Type
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}
