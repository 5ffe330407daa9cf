package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
)

// A reason says why a change is left out: no test can notice it, as the program does
// the same with it, at most at another speed.
type reason string

const (
	sameResults reason = "results that are zero already"
	capacity    reason = "a larger capacity"
	hint        reason = "a hint to the runtime or the processor"
	sign        reason = "a number of which only the sign counts"
	end         reason = "the end of a loop either way"
)

// signs are functions with an argument of which only the sign counts, if it is below
// zero or at least the given number: its place.
var signs = map[string]struct{ at, least int }{
	"math.Inf":                                    {0, 0},
	"math.IsInf":                                  {1, 1},
	"strconv.ParseFloat":                          {1, 33}, // all sizes but 32 are 64
	"strconv.FormatFloat":                         {2, never},
	"strconv.AppendFloat":                         {3, never},
	"strings.Replace":                             {3, never},
	"strings.SplitN":                              {2, never},
	"(*regexp.Regexp).FindAllString":              {1, never},
	"(*regexp.Regexp).FindAllStringSubmatch":      {1, never},
	"(*regexp.Regexp).FindAllStringIndex":         {1, never},
	"(*regexp.Regexp).FindAllStringSubmatchIndex": {1, never},
}

// never is more than any number.
const never = math.MaxInt

// hints are functions that affect only speed. Their calls can be dropped.
var hints = map[string]bool{
	"runtime.Gosched":                       true,
	"(*sync.Pool).Put":                      true, // Get makes another one
	"(*strings.Builder).Grow":               true,
	"(*bytes.Buffer).Grow":                  true,
	modulePath + "/internal/prefetch.Lines": true,
	modulePath + "/internal/schedule.Point": true, // is empty but with the tag schedule
}

// leftOut returns why the change of n, whose ancestors are in stack, is left out, or "".
func (f *finder) leftOut(kind string, n ast.Node, stack []ast.Node) reason {
	switch n := n.(type) {
	case *ast.BasicLit:
		if f.isCapacity(n, stack) {
			return capacity
		}
		if f.isSign(n, stack) {
			return sign
		}
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); ok && f.hints(c) {
			return hint
		}
	case *ast.DeferStmt:
		if f.hints(n.Call) {
			return hint
		}
	case *ast.BranchStmt:
		if kind == "break for continue" && n.Label == nil && endsLoop(stack) {
			return end
		}
	case *ast.AssignStmt:
		if kind == "assignment dropped" && f.grows(n) {
			return capacity
		}
	case *ast.ReturnStmt:
		if kind == "results zero" && f.zeroResults(n, stack) {
			return sameResults
		}
	}
	return ""
}

// hints reports whether c only affects speed, with its arguments.
func (f *finder) hints(c *ast.CallExpr) bool {
	if !hints[f.callee(c)] {
		return false
	}
	if sel, ok := c.Fun.(*ast.SelectorExpr); ok && !f.pure(sel.X) {
		return false
	}
	return !slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return !f.pure(e) })
}

// callee returns the full name of the function or method that c calls, or "".
func (f *finder) callee(c *ast.CallExpr) string {
	name, ok := c.Fun.(*ast.Ident)
	if sel, is := c.Fun.(*ast.SelectorExpr); is {
		name, ok = sel.Sel, true
	}
	if !ok {
		return ""
	}
	if fn, ok := f.info.Uses[name].(*types.Func); ok {
		return fn.FullName()
	}
	return ""
}

// isCapacity reports whether a larger n only raises a capacity: of make, or of
// a call that grows.
func (f *finder) isCapacity(n ast.Expr, stack []ast.Node) bool {
	for _, parent := range slices.Backward(stack) {
		switch p := parent.(type) {
		case *ast.ParenExpr:
		case *ast.BinaryExpr:
			// A sum or a product is not smaller with a larger operand: lengths are not negative.
			if p.Op != token.ADD && p.Op != token.MUL {
				return false
			}
		case *ast.CallExpr:
			at := slices.Index(p.Args, n)
			if id, ok := p.Fun.(*ast.Ident); ok && id.Name == "make" {
				_, isMap := f.typeOf(p).Underlying().(*types.Map)
				return at == 2 || at == 1 && isMap
			}
			switch f.callee(p) {
			case "slices.Grow":
				return at == 1
			case "(*strings.Builder).Grow", "(*bytes.Buffer).Grow":
				return at == 0
			}
			return false
		default:
			return false
		}
		n = parent.(ast.Expr)
	}
	return false
}

// isSign reports whether n is a number of whose sign alone a function depends, and has
// the same sign with a larger literal.
func (f *finder) isSign(n *ast.BasicLit, stack []ast.Node) bool {
	var arg ast.Expr = n
	for _, parent := range slices.Backward(stack) {
		if minus, ok := parent.(*ast.UnaryExpr); ok && minus.Op == token.SUB && arg == n {
			arg = minus
			continue
		}
		c, ok := parent.(*ast.CallExpr)
		if !ok {
			return false
		}
		of, ok := signs[f.callee(c)]
		if !ok || slices.Index(c.Args, arg) != of.at {
			return false
		}
		v, exact := constant.Int64Val(f.info.Types[arg].Value)
		return exact && (v < 0 || v >= int64(of.least))
	}
	return false
}

// endsLoop reports whether a break leaves a switch or select that is the last statement
// in the body of a loop, as a continue does.
func endsLoop(stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 2; i-- {
		switch stack[i].(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt:
			return false
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			body, ok := stack[i-1].(*ast.BlockStmt)
			if !ok || body.List[len(body.List)-1] != stack[i] {
				return false
			}
			switch stack[i-2].(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				return true
			}
			return false
		}
	}
	return false
}

// grows reports whether n is x = slices.Grow(x, more).
func (f *finder) grows(n *ast.AssignStmt) bool {
	if n.Tok != token.ASSIGN || len(n.Lhs) != 1 || len(n.Rhs) != 1 {
		return false
	}
	c, ok := n.Rhs[0].(*ast.CallExpr)
	return ok && f.callee(c) == "slices.Grow" && f.text(c.Args[0]) == f.text(n.Lhs[0])
}

// zeroResults reports whether n returns zero values.
func (f *finder) zeroResults(n *ast.ReturnStmt, stack []ast.Node) bool {
	for _, parent := range slices.Backward(stack) {
		var t types.Type
		switch p := parent.(type) {
		case *ast.FuncDecl:
			t = f.typeOf(p.Name)
		case *ast.FuncLit:
			t = f.typeOf(p)
		default:
			continue
		}
		s, ok := t.(*types.Signature)
		if !ok || s.Results().Len() != len(n.Results) {
			return false
		}
		for i, r := range n.Results {
			if !f.isZero(r, s.Results().At(i).Type()) {
				return false
			}
		}
		return true
	}
	return false
}

// isZero reports whether e is the zero value of t, in a form that shows it.
func (f *finder) isZero(e ast.Expr, t types.Type) bool {
	if f.info.Types[e].IsNil() {
		return true
	}
	if types.IsInterface(t) {
		return false
	}
	if v := f.info.Types[e].Value; v != nil {
		switch v.Kind() {
		case constant.Bool:
			return !constant.BoolVal(v)
		case constant.String:
			return constant.StringVal(v) == ""
		case constant.Int, constant.Float, constant.Complex:
			return constant.Compare(v, token.EQL, constant.MakeInt64(0))
		}
		return false
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok || len(lit.Elts) > 0 {
		return false
	}
	switch f.typeOf(e).Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	}
	return false
}

// pure reports whether e only reads variables, constants and lengths.
func (f *finder) pure(e ast.Expr) bool {
	pure := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			pure = pure && (ok && id.Name == "len" || f.info.Types[n.Fun].IsType())
		case *ast.UnaryExpr:
			pure = pure && n.Op != token.ARROW
		}
		return pure
	})
	return pure
}

func (f *finder) typeOf(e ast.Expr) types.Type {
	if t := f.info.TypeOf(e); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}
