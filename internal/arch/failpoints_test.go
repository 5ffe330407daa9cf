package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checkFailpoints finds guards that no test of their package causes to catch a panic.
// The names of the places are read from the calls of the guards, and what tests
// make panic from their calls of guardtest.Panics.Caught, which fails unless it
// happens. The tests of a package that starts goroutines also look for leaked ones.
//
// A finding is about a place by its name; about a function in a file that
// recovers from panics without a guard, or has one at a place without a name in
// the source; or about goleak.
func checkFailpoints(p *pkg) []finding {
	if under(p.dir, "bench", "examples", "cmd", "internal/guard") || slices.Contains(testOnly(), p.dir) {
		return nil
	}
	var all []finding
	caught := p.caught()
	seen := map[string]int{}
	for _, at := range p.places() {
		seen[at.name]++
		if n := seen[at.name]; n > 1 {
			all = append(all, p.find(at.pos, fmt.Sprint(at.name, " ", n),
				"a place of this name is there already: give each its own, so that a log tells which it is and a test can wait for it"))
			continue
		}
		if !caught[at.name] {
			all = append(all, p.find(at.pos, at.name,
				"no test of this package makes the guard at %q catch a panic: write one that waits for it by Caught(%q) of internal/guard/guardtest and sees that all else goes on", at.name, at.name))
		}
	}
	for _, at := range p.nameless() {
		all = append(all, p.find(at.pos, at.name, "the place of this guard has no name in the source: give it one, or a parameter called where for those who call the function"))
	}
	starts := token.NoPos
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if starts == token.NoPos && started(n) != nil {
					starts = n.Pos()
				}
				return true
			})
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && callsRecover(fn.Body) {
				all = append(all, p.find(fn.Pos(), path.Base(f.path)+" "+fn.Name.Name,
					"it recovers from panics on its own: let guard.Guard.Run do it, so that they are counted and logged, and a test is asked for"))
			}
		}
	}
	if starts != token.NoPos && !p.leaksAreFound() {
		all = append(all, p.find(starts, "goleak", "a package that starts goroutines has a TestMain that calls goleak.VerifyTestMain"))
	}
	return all
}

// place is where a guard is.
type place struct {
	name string
	pos  token.Pos
}

// places returns the places of all guards of p: the names that are given to Run
// and Report of a guard, or to a function that hands its parameter where to them.
func (p *pkg) places() (all []place) {
	takers := p.takers()
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || !guards(c) && !slices.Contains(takers, calledName(c)) || len(c.Args) == 0 {
				return true
			}
			if lit, ok := c.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, err := strconv.Unquote(lit.Value); err == nil {
					all = append(all, place{name, lit.Pos()})
				}
			}
			return true
		})
	}
	return all
}

// nameless returns the functions with a guard whose place has no name, neither
// there nor at their callers.
func (p *pkg) nameless() (all []place) {
	takers, named := p.takers(), map[string]bool{}
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && len(c.Args) > 0 && slices.Contains(takers, calledName(c)) {
				if lit, ok := c.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					named[calledName(c)] = true
				}
				if id, ok := c.Args[0].(*ast.Ident); ok && id.Name == "where" {
					named[calledName(c)] = true // by those who call that function
				}
			}
			return true
		})
	}
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			bad := slices.Contains(takers, fn.Name.Name) && !named[fn.Name.Name]
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok || !guards(c) {
					return true
				}
				_, runs := c.Args[1].(*ast.FuncLit)
				_, literal := c.Args[0].(*ast.BasicLit)
				id, _ := c.Args[0].(*ast.Ident)
				bad = bad || runs && !literal && (id == nil || id.Name != "where")
				return true
			})
			if bad {
				all = append(all, place{path.Base(f.path) + " " + fn.Name.Name, fn.Pos()})
			}
		}
	}
	return all
}

// guards reports whether c looks like a call of Run or Report of a guard.
func guards(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && len(c.Args) == 2 && (s.Sel.Name == "Run" || s.Sel.Name == "Report")
}

// takers returns the names of functions whose parameter where names the place of
// a guard.
func (p *pkg) takers() (names []string) {
	bodies := map[string]*ast.BlockStmt{} // of functions with such a parameter
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if takesWhere(n.Type) && n.Body != nil {
					bodies[n.Name.Name] = n.Body
				}
			case *ast.AssignStmt:
				for i, x := range n.Rhs {
					lit, ok := x.(*ast.FuncLit)
					if id, named := n.Lhs[i].(*ast.Ident); ok && named && takesWhere(lit.Type) {
						bodies[id.Name] = lit.Body
					}
				}
			}
			return true
		})
	}
	for grown := true; grown; {
		grown = false
		for name, body := range bodies {
			if slices.Contains(names, name) {
				continue
			}
			ast.Inspect(body, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok || len(c.Args) == 0 || !guards(c) && !slices.Contains(names, calledName(c)) {
					return true
				}
				if id, ok := c.Args[0].(*ast.Ident); ok && id.Name == "where" && !slices.Contains(names, name) {
					names, grown = append(names, name), true
				}
				return true
			})
		}
	}
	return names
}

// takesWhere reports whether the first parameter of a function is called where.
func takesWhere(t *ast.FuncType) bool {
	list := t.Params.List
	return len(list) > 0 && len(list[0].Names) > 0 && list[0].Names[0].Name == "where"
}

// calledName returns the name by which c calls a function or method.
func calledName(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// caught returns the places that tests of p wait for a panic at.
func (p *pkg) caught() map[string]bool {
	places := map[string]bool{}
	for _, f := range p.tests {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || calledName(c) != "Caught" || len(c.Args) != 1 {
				return true
			}
			if lit, ok := c.Args[0].(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(lit.Value); err == nil {
					places[name] = true
				}
			}
			return true
		})
	}
	return places
}

// leaksAreFound reports whether the tests of p end with a look for goroutines
// that are left behind.
func (p *pkg) leaksAreFound() (yes bool) {
	for _, f := range p.tests {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			x, sel, ok := selector(n)
			yes = yes || ok && x == "goleak" && sel == "VerifyTestMain"
			return true
		})
	}
	return yes
}

// TestFailpoints has guards with and without tests.
func TestFailpoints(t *testing.T) {
	const head = "// Package x is one.\npackage x\n"
	const leaks = `func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }; `
	for name, tt := range map[string]struct{ code, test, want string }{
		"tested":      {`func f() { g.Run("a", f) }`, `func T() { p.Caught("a") }`, ""},
		"untested":    {`func f() { g.Run("a", f); h.Report("b", 1) }`, `func T() { p.Caught("b") }`, "a"},
		"not-waited":  {`func f() { g.Run("a", f) }`, `func T() { p.Seen("a") }`, "a"},
		"one-name":    {`func f() { g.Run("a", f); g.Run("a", f) }`, `func T() { p.Caught("a") }`, "a 2"},
		"other-run":   {`func f() { x.Run(ctx, f); x.Run("a") }`, "", ""},
		"handed-on":   {`func keep(where string, f func()) { g.Run(where, f) }; func f() { s.keep("a", f); s.keep("b", f) }`, `func T() { p.Caught("b") }`, "a"},
		"twice-on":    {`func g(where string) { h(where, 1) }; func h(where string, n int) { x.Run(where, f) }; func f() { g("a"); h("b", 1) }`, "", "a b"},
		"variable":    {`func f() { start := func(where string) { x.Run(where, f) }; start("a") }`, "", "a"},
		"no-place":    {`func f() { check := func(where string) { y(where) }; check("a") }`, "", ""},
		"by-path":     {`func f() { g.Run(e.Path, func() {}) }`, "", "x.go f"},
		"nobody-says": {`func f(where string) { g.Run(where, func() {}) }; func h(name string) { f(name) }`, "", "x.go f"},
		"somebody":    {`func f(where string) { g.Run(where, func() {}) }; func h(where string) { f(where) }; func i() { h("a") }`, "", "a"},
		"recovers":    {`func f() { defer func() { _ = recover() }() }`, "", "x.go f"},
		"leaks":       {`func f() { go f() }`, "", "goleak"},
		"leaks-found": {`func f() { go f() }`, leaks, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := parseSource(t, "statsd", head+tt.code)
			if err := p.add("statsd/x_test.go", []byte("package x\n"+tt.test)); err != nil {
				t.Fatal(err)
			}
			var got string
			for i, f := range checkFailpoints(p) {
				if i > 0 {
					got += " "
				}
				got += f.what
			}
			if got != tt.want {
				t.Errorf("finds %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPanicsAreLogged finds parts that are made without a logger, though they have
// the field Logger: their panics would be neither logged nor counted.
func TestPanicsAreLogged(t *testing.T) {
	pkgs := loadTree(t)
	told := map[string]bool{} // dir.Type of structs with the field
	for _, p := range pkgs {
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok && hasLogger(s) {
					told[p.dir+"."+spec.Name.Name] = true
				}
				return true
			})
		}
	}
	made := 0
	for _, p := range pkgs {
		if under(p.dir, "bench", "examples", "cmd", "bootstrap") || slices.Contains(testOnly(), p.dir) {
			continue // the server completes the configurations that bootstrap makes
		}
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				for _, at := range madeWithout(f, d, told, &made) {
					t.Errorf("%s: its panics are not logged: set Logger", p.fset.Position(at))
				}
			}
		}
	}
	if made < 8 {
		t.Errorf("found only %d parts that are made", made)
	}
}

// hasLogger reports whether s has a field for a logger of that name.
func hasLogger(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		_, pointer := f.Type.(*ast.StarExpr)
		return pointer && slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == "Logger" })
	})
}

// madeWithout returns where d makes a struct of another package without
// setting Logger in it, or in a variable.
func madeWithout(f file, d ast.Decl, told map[string]bool, made *int) (all []token.Pos) {
	assigned := false
	ast.Inspect(d, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		assigned = assigned || ok && slices.ContainsFunc(a.Lhs, func(x ast.Expr) bool {
			s, ok := x.(*ast.SelectorExpr)
			return ok && s.Sel.Name == "Logger"
		})
		return true
	})
	ast.Inspect(d, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		x, sel, ok := selector(lit.Type)
		if !ok {
			return true
		}
		for _, spec := range f.ast.Imports {
			dir, ours := strings.CutPrefix(importPath(spec), modulePath+"/")
			if !ours || f.localName(importPath(spec)) != x || !told[dir+"."+sel] {
				continue
			}
			*made++
			set := slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					return false
				}
				key, ok := kv.Key.(*ast.Ident)
				return ok && key.Name == "Logger"
			})
			if !set && !assigned {
				all = append(all, lit.Pos())
			}
		}
		return true
	})
	return all
}
