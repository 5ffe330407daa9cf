package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
)

// checkLogKeys finds keys of log attributes that a query for key=value cannot name.
func checkLogKeys(p *pkg) []finding {
	var all []finding
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, key := range logKeys(n) {
				if text, err := strconv.Unquote(key.Value); err == nil && !logKey.MatchString(text) {
					all = append(all, p.find(key.Pos(), text, "the key of a log attribute is one word in lower case, with underscores between its parts"))
				}
			}
			return true
		})
	}
	return all
}

var logKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// logKeys returns the constant keys that n passes to a logger, directly or in a list of
// arguments.
func logKeys(n ast.Node) []*ast.BasicLit {
	var pairs []ast.Expr
	switch n := n.(type) {
	case *ast.CompositeLit: // []any{"key", value}
		if list, ok := n.Type.(*ast.ArrayType); ok {
			if elem, ok := list.Elt.(*ast.Ident); ok && elem.Name == "any" {
				pairs = n.Elts
			}
		}
	case *ast.CallExpr:
		name, first := "", 0
		switch fun := n.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		switch name {
		case "Debug", "Info", "Warn", "Error":
			first = 1
		case "Log": // of a context and a level
			first = 3
		case "append":
			if list, ok := n.Args[0].(*ast.Ident); !ok || list.Name != "args" {
				return nil
			}
			first = 1
		case "With":
		default:
			return nil
		}
		pairs = n.Args[min(first, len(n.Args)):]
	}
	var keys []*ast.BasicLit
	for i := 0; i < len(pairs); i += 2 {
		if key, ok := pairs[i].(*ast.BasicLit); ok && key.Kind == token.STRING && len(pairs) > 1 {
			keys = append(keys, key)
		}
	}
	return keys
}
