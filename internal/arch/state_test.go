package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// checkState finds package variables that are, or could become, mutable state.
// A variable is fine when it is made of constants (literals, compiled
// expressions, error sentinels, embedded files) and nothing in the package
// writes to it or takes its address.
func checkState(p *pkg) []finding {
	written := p.writtenVariables()
	var all []finding
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if name.Name == "_" {
						continue
					}
					if how, ok := written[name.Name]; ok {
						all = append(all, p.find(name.Pos(), name.Name,
							"package variable %s is changed (%s): keep state in a value that is constructed and passed", name.Name, how))
						continue
					}
					if embedded(decl, spec) || len(spec.Values) == len(spec.Names) && p.constant(spec.Values[i]) {
						continue
					}
					all = append(all, p.find(name.Pos(), name.Name,
						"package variable %s may hold state: make it a constant, a literal, a function that returns the table, or a field of what uses it", name.Name))
				}
			}
		}
	}
	return all
}

// embedded reports whether the declaration carries a go:embed directive.
func embedded(decl *ast.GenDecl, spec *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{decl.Doc, spec.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	return false
}

// pureCalls lists constructors of immutable values.
func pureCalls() []string {
	return []string{
		"errors.New", "fmt.Errorf", "regexp.MustCompile", "lazyregexp.New", "strings.NewReplacer",
		"netip.MustParseAddr", "netip.MustParsePrefix", "netip.IPv6Unspecified", "math.Inf", "math.NaN", "crc32.MakeTable",
		"reflect.TypeFor", "time.Duration", "unsafe.Sizeof", "len", "cap", "min", "max",
	}
}

// constant reports whether e is made of constants only.
func (p *pkg) constant(e ast.Expr) bool {
	switch e := e.(type) {
	case nil:
		return true
	case *ast.BasicLit, *ast.Ident, *ast.FuncLit, *ast.SelectorExpr:
		return true
	case *ast.ParenExpr:
		return p.constant(e.X)
	case *ast.UnaryExpr:
		return e.Op != token.AND && e.Op != token.ARROW && p.constant(e.X)
	case *ast.BinaryExpr:
		return p.constant(e.X) && p.constant(e.Y)
	case *ast.KeyValueExpr:
		return p.constant(e.Key) && p.constant(e.Value)
	case *ast.IndexExpr:
		return p.constant(e.X) && p.constant(e.Index)
	case *ast.CompositeLit:
		return !stateful(e.Type) && !slices.ContainsFunc(e.Elts, func(e ast.Expr) bool { return !p.constant(e) })
	case *ast.CallExpr:
		return p.pureCall(e.Fun) && (isFuncLit(e.Fun) || !slices.ContainsFunc(e.Args, func(e ast.Expr) bool { return !p.constant(e) }))
	}
	return false
}

func isFuncLit(e ast.Expr) bool {
	_, ok := e.(*ast.FuncLit)
	return ok
}

// stateful reports whether a type is made to be changed.
func stateful(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name == "sync" || x.Name == "atomic"
		}
	}
	return false
}

// pureCall reports whether a call of fun makes a constant: a known
// constructor, a conversion, or a function that computes a table.
func (p *pkg) pureCall(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.ArrayType: // []byte("...")
		return true
	case *ast.FuncLit:
		return isTable(fun.Type)
	case *ast.SelectorExpr:
		x, ok := fun.X.(*ast.Ident)
		return ok && slices.Contains(pureCalls(), x.Name+"."+fun.Sel.Name)
	case *ast.IndexExpr: // reflect.TypeFor[T]()
		return p.pureCall(fun.X)
	case *ast.Ident:
		if slices.Contains(pureCalls(), fun.Name) {
			return true
		}
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == fun.Name {
						return isTable(d.Type)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.Name == fun.Name {
							return true
						}
					}
				}
			}
		}
		return ast.IsExported(fun.Name) || builtinType(fun.Name)
	}
	return false
}

func builtinType(name string) bool {
	return slices.Contains([]string{"string", "byte", "rune", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr", "float32", "float64", "bool"}, name)
}

// isTable reports whether a function returns one array, slice or map.
func isTable(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) != 1 {
		return false
	}
	switch t.Results.List[0].Type.(type) {
	case *ast.ArrayType, *ast.MapType:
		return true
	}
	return false
}

// writtenVariables returns the package variables that code of the package
// assigns to, in whole or in part, or takes the address of.
func (p *pkg) writtenVariables() map[string]string {
	global := map[string]bool{}
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.VAR {
				for _, s := range decl.Specs {
					for _, name := range s.(*ast.ValueSpec).Names {
						global[name.Name] = true
					}
				}
			}
		}
	}
	written := map[string]string{}
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			p.noteWrites(d, global, written)
		}
	}
	return written
}

// noteWrites adds the variables of global that d, a declaration on the top
// level, changes. A name that d declares itself is taken to be its own.
func (p *pkg) noteWrites(d ast.Decl, global map[string]bool, written map[string]string) {
	own := map[string]bool{}
	if fn, ok := d.(*ast.FuncDecl); ok {
		own = declaredIn(fn)
	}
	note := func(e ast.Expr, how string) {
		if id := root(e); id != nil && global[id.Name] && !own[id.Name] && written[id.Name] == "" {
			written[id.Name] = how + " at " + p.fset.Position(e.Pos()).String()
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					note(e, "assigned")
				}
			}
		case *ast.IncDecStmt:
			note(n.X, "counted")
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				note(n.Key, "assigned")
				note(n.Value, "assigned")
			}
		case *ast.SendStmt:
			note(n.Chan, "sent to")
		case *ast.UnaryExpr:
			if _, literal := n.X.(*ast.CompositeLit); n.Op == token.AND && !literal {
				note(n.X, "address taken")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") && len(n.Args) > 0 {
				note(n.Args[0], id.Name)
			}
		}
		return true
	})
}

// declaredIn returns the names that fn declares: its receiver, parameters,
// results and variables.
func declaredIn(fn *ast.FuncDecl) map[string]bool {
	own := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						own[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
				}
			}
		}
		return true
	})
	return own
}

// root returns the variable that e is a part of.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}
