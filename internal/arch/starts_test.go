package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
)

// checkPanics finds goroutines whose panic would end the process. A goroutine must
// run its work in a guard, either where it starts or in the function that it runs.
//
// A finding is about a file and a function in it, and has a number from the
// second one in that function on.
func checkPanics(p *pkg) []finding {
	if under(p.dir, "bench", "examples") || slices.Contains(testOnly(), p.dir) {
		return nil
	}
	var all []finding
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			name, n := "variables", 0
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			ast.Inspect(d, func(at ast.Node) bool {
				body := started(at)
				if body == nil || p.guarded(body) {
					return true
				}
				n++
				what := path.Base(f.path) + " " + name
				if n > 1 {
					what = fmt.Sprint(what, " ", n)
				}
				all = append(all, p.find(at.Pos(), what,
					"a panic of this goroutine ends the process: hand what it runs to Run of a guard made from the Logger of the component (in statsd: keep of the server), and let only what ends it stand beside that"))
				return true
			})
		}
	}
	return all
}

// started returns the function that n starts in a goroutine, or hands to a library
// that will call it in a goroutine. It is nil if there is none.
func started(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call.Fun
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if ok && len(n.Args) > 0 && slices.Contains([]string{"Go", "AfterFunc", "WithContextDialer"}, s.Sel.Name) {
			return n.Args[len(n.Args)-1]
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "DialContext" {
			return n.Value
		}
	}
	return nil
}

// guarded reports whether panics of body, a function, are recovered from.
func (p *pkg) guarded(body ast.Expr) bool {
	switch body := body.(type) {
	case *ast.FuncLit:
		if p.recovers(body.Body) {
			return true
		}
		guards, others := 0, 0
		p.calls(body.Body, func(c *ast.CallExpr) {
			switch {
			case isGuard(c):
				guards++
			case p.guardedFunc(c.Fun):
				guards++
			case !harmless(c):
				others++
			}
		})
		return guards > 0 && others == 0
	default:
		return p.guardedFunc(body)
	}
}

// guardedFunc reports whether fun names functions of p, all of which guard what
// they run.
func (p *pkg) guardedFunc(fun ast.Expr) bool {
	decls := p.named(fun)
	return len(decls) > 0 && !slices.ContainsFunc(decls, func(d *ast.FuncDecl) bool {
		if p.recovers(d.Body) {
			return false
		}
		guards := 0
		p.calls(d.Body, func(c *ast.CallExpr) {
			if isGuard(c) {
				guards++
			}
		})
		return guards == 0
	})
}

// named returns the functions and methods of p that fun may mean by its name.
func (p *pkg) named(fun ast.Expr) (decls []*ast.FuncDecl) {
	name, method := "", false
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name, method = fun.Sel.Name, true
	}
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name == name && (fn.Recv != nil) == method {
				decls = append(decls, fn)
			}
		}
	}
	return decls
}

// recovers reports whether a call that b defers recovers from panics.
func (p *pkg) recovers(b *ast.BlockStmt) bool {
	return slices.ContainsFunc(b.List, func(s ast.Stmt) bool {
		d, ok := s.(*ast.DeferStmt)
		if !ok {
			return false
		}
		if lit, ok := d.Call.Fun.(*ast.FuncLit); ok {
			return callsRecover(lit.Body)
		}
		return slices.ContainsFunc(p.named(d.Call.Fun), func(fn *ast.FuncDecl) bool { return callsRecover(fn.Body) })
	})
}

func callsRecover(b *ast.BlockStmt) (yes bool) {
	ast.Inspect(b, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if ok {
			id, ok := c.Fun.(*ast.Ident)
			yes = yes || ok && id.Name == "recover"
		}
		return true
	})
	return yes
}

// calls yields each call in b, except in the arguments of guards and in functions
// that are not called at once.
func (p *pkg) calls(b *ast.BlockStmt, yield func(*ast.CallExpr)) {
	ast.Inspect(b, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			if lit, ok := n.Call.Fun.(*ast.FuncLit); ok {
				p.calls(lit.Body, yield)
			}
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			yield(n)
			return !isGuard(n)
		}
		return true
	})
}

// isGuard reports whether c looks like a call of Run of a guard, or of keep of a
// server: its arguments are the name of a place and a function.
func isGuard(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) != 2 || !slices.Contains([]string{"Run", "keep"}, s.Sel.Name) {
		return false
	}
	switch where := c.Args[0].(type) {
	case *ast.BasicLit:
		return where.Kind == token.STRING
	case *ast.Ident:
		return where.Name == "where"
	}
	return false
}

// harmless reports whether c only closes, counts or waits.
func harmless(c *ast.CallExpr) bool {
	names := []string{"Add", "After", "Broadcast", "Close", "Dec", "Done", "Inc", "Lock", "Stop", "Unlock", "close", "cancel", "delete", "stop"}
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return slices.Contains(names, fun.Name)
	case *ast.SelectorExpr:
		x, sel, _ := selector(fun)
		return slices.Contains(names, fun.Sel.Name) || x == "errors" && sel == "New"
	}
	return false
}
