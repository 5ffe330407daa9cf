package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one change of a source file.
type mutant struct {
	path     string // of the file, below the repository's root
	pkg      string // import path
	kind     string
	line     int
	col      int
	from, to int    // offsets of the replaced text
	old, new string // the text

	// The expression or statement around the change that can stand in the source
	// twice, for a switch to choose from. begin and end are equal if there is none.
	begin, end int
	truth      bool // whether it is a condition
}

func (m mutant) String() string {
	s := fmt.Sprintf("%s:%d:%d %s: %s", m.path, m.line, m.col, m.kind, oneLine(m.old))
	if m.new != "" {
		s += " -> " + oneLine(m.new)
	}
	return s
}

// oneLine shortens source text for a report.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 90 {
		s = s[:90] + "..."
	}
	return s
}

// apply returns the changed file.
func (m mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.from], []byte(m.new), src[m.to:])
}

// switched returns the text from begin to end with a switch between the original
// and the change.
func (m mutant) switched(src []byte, number int) string {
	original := string(src[m.begin:m.end])
	changed := string(src[m.begin:m.from]) + m.new + string(src[m.to:m.end])
	if m.truth {
		return fmt.Sprintf("(mutantOn(%[1]d) && (%[2]s) || !mutantOn(%[1]d) && (%[3]s))", number, changed, original)
	}
	if strings.TrimSpace(changed) == "" {
		return fmt.Sprintf("if !mutantOn(%d) { %s }", number, original)
	}
	return fmt.Sprintf("if mutantOn(%d) { %s } else { %s }", number, changed, original)
}

// inverse maps operators to their replacements.
var inverse = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "==",
}

// finder collects the mutants of one file.
type finder struct {
	path, pkg string
	fset      *token.FileSet
	info      *types.Info
	src       []byte
	stack     []ast.Node // from the file to the node at hand
	found     []mutant
	left      map[reason]int // changes that are left out
}

// find finds the possible changes of a file. Some of them do not compile.
func (f *finder) find(file *ast.File) {
	if ast.IsGenerated(file) {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		stack := f.stack
		f.stack = append(f.stack, n)
		if !f.visit(n, stack) {
			f.stack = stack
			return false
		}
		return true
	})
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// replace adds the change of n that replaces the text between from and to.
func (f *finder) replace(kind string, n ast.Node, from, to token.Pos, text string) {
	stack := f.stack
	if i := slices.Index(stack, n); i >= 0 {
		stack = stack[:i]
	}
	if why := f.leftOut(kind, n, stack); why != "" {
		f.left[why]++
		return
	}
	at := f.fset.Position(from)
	i, j := at.Offset, f.offset(to)
	m := mutant{path: f.path, pkg: f.pkg, kind: kind, line: at.Line, col: at.Column, from: i, to: j, old: string(f.src[i:j]), new: text}
	m.begin, m.end, m.truth = f.around(from, to)
	f.found = append(f.found, m)
}

// around returns the innermost condition or statement that has all between from and
// to, and that a switch can choose.
func (f *finder) around(from, to token.Pos) (begin, end int, truth bool) {
	for i, n := range slices.Backward(f.stack) {
		var parent ast.Node
		if i > 0 {
			parent = f.stack[i-1]
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if inverse[n.Op] == "" {
				continue
			}
			return f.offset(n.Pos()), f.offset(n.End()), true
		case *ast.IfStmt:
			if n.Cond.Pos() <= from && to <= n.Cond.End() {
				return f.offset(n.Cond.Pos()), f.offset(n.Cond.End()), true
			}
			return 0, 0, false
		case *ast.ForStmt:
			if n.Cond != nil && n.Cond.Pos() <= from && to <= n.Cond.End() {
				return f.offset(n.Cond.Pos()), f.offset(n.Cond.End()), true
			}
			return 0, 0, false
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE || !inList(parent) {
				return 0, 0, false
			}
			return f.offset(n.Pos()), f.offset(n.End()), false
		case *ast.ExprStmt, *ast.ReturnStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.BranchStmt, *ast.SendStmt, *ast.GoStmt:
			if !inList(parent) {
				return 0, 0, false
			}
			return f.offset(n.Pos()), f.offset(n.End()), false
		case ast.Stmt, ast.Decl, *ast.FuncLit:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

func (f *finder) drop(kind string, n ast.Node) { f.replace(kind, n, n.Pos(), n.End(), "") }

// visit adds the changes at n, whose ancestors are in stack, and reports whether
// to look inside.
func (f *finder) visit(n ast.Node, stack []ast.Node) bool {
	var parent ast.Node
	if len(stack) > 0 {
		parent = stack[len(stack)-1]
	}
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.ArrayType:
		return false
	case *ast.DeferStmt:
		f.drop("defer dropped", n)
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); ok && f.text(c.Fun) != "panic" && inList(parent) {
			f.drop("call dropped", n)
		}
	case *ast.AssignStmt:
		if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
			text := map[token.Token]string{token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+="}[n.Tok]
			f.replace("increment", n, n.TokPos, n.TokPos+2, text)
		}
		if n.Tok != token.DEFINE && inList(parent) && !blank(n) {
			f.drop("assignment dropped", n)
		}
	case *ast.IncDecStmt:
		if loop, ok := parent.(*ast.ForStmt); !ok || loop.Post != n {
			text := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
			f.replace("increment", n, n.TokPos, n.TokPos+2, text)
		}
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.BranchStmt:
		switch n.Tok {
		case token.BREAK:
			f.replace("continue for break", n, n.Pos(), n.Pos()+token.Pos(len("break")), "continue")
		case token.CONTINUE:
			f.replace("break for continue", n, n.Pos(), n.Pos()+token.Pos(len("continue")), "break")
		}
	case *ast.ReturnStmt:
		f.returns(n, stack)
	case *ast.BinaryExpr:
		f.operator(n, parent)
	case *ast.BasicLit:
		if n.Kind == token.INT {
			if v, err := strconv.ParseUint(n.Value, 0, 63); err == nil {
				f.replace("constant plus one", n, n.Pos(), n.End(), strconv.FormatUint(v+1, 10))
			}
		}
	}
	return true
}

func (f *finder) negate(cond ast.Expr) {
	f.replace("condition negated", cond, cond.Pos(), cond.End(), "!("+f.text(cond)+")")
}

// operator adds the change of a comparison or of a logical operator. An if or a
// for that compares for equality is negated already.
func (f *finder) operator(n *ast.BinaryExpr, parent ast.Node) {
	text := inverse[n.Op]
	kind := "comparison"
	switch n.Op {
	case token.LAND, token.LOR:
		kind = "and for or"
	case token.EQL, token.NEQ:
		switch parent.(type) {
		case *ast.IfStmt, *ast.ForStmt:
			return
		}
		kind = "equality"
	}
	if text != "" {
		f.replace(kind, n, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), text)
	}
}

// returns adds the changes of a return statement: it is dropped if more
// statements of the function can follow, and its results become zero.
func (f *finder) returns(n *ast.ReturnStmt, stack []ast.Node) {
	if len(stack) >= 2 {
		if branch, ok := stack[len(stack)-2].(*ast.IfStmt); ok && branch.Else == nil {
			f.drop("return dropped", n)
		}
	}
	if len(n.Results) == 0 {
		return
	}
	types := f.results(stack)
	if len(types) != len(n.Results) && len(n.Results) != 1 {
		return
	}
	zero := make([]string, len(types))
	for i, t := range types {
		zero[i] = "*new(" + t + ")"
	}
	f.replace("results zero", n, n.Pos(), n.End(), "return "+strings.Join(zero, ", "))
}

// results returns the types of the results of the innermost function.
func (f *finder) results(stack []ast.Node) (types []string) {
	for _, n := range slices.Backward(stack) {
		var t *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			t = n.Type
		case *ast.FuncLit:
			t = n.Type
		default:
			continue
		}
		if t.Results != nil {
			for _, field := range t.Results.List {
				for range max(1, len(field.Names)) {
					types = append(types, f.text(field.Type))
				}
			}
		}
		return types
	}
	return nil
}

// inList reports whether n has a list of statements.
func inList(n ast.Node) bool {
	switch n.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// blank reports whether n assigns to nothing.
func blank(n *ast.AssignStmt) bool {
	return !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

// draw returns all in a random order in which the kinds take turns, so that a
// sample has as many changes of the rare kinds as of the frequent ones.
func draw(all []mutant, seed uint64) []mutant {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := map[string][]mutant{}
	for _, m := range all {
		kinds[m.kind] = append(kinds[m.kind], m)
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, name := range names {
		list := kinds[name]
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	drawn := make([]mutant, 0, len(all))
	for len(drawn) < len(all) {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if list := kinds[name]; len(list) > 0 {
				drawn = append(drawn, list[0])
				kinds[name] = list[1:]
			}
		}
	}
	return drawn
}
