package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMarkupIsConstant expects every conversion to markup.HTML, also under the name
// "h", to have a literal, so that no text from elsewhere can be markup.
func TestMarkupIsConstant(t *testing.T) {
	found := 0
	for _, dir := range []string{"admin", "admin/pages"} {
		dir = filepath.Join("../..", filepath.FromSlash(dir))
		names, err := fs.Glob(os.DirFS(dir), "*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isMarkup(call.Fun) {
					return true
				}
				found++
				ast.Inspect(call.Args[0], func(n ast.Node) bool {
					switch n.(type) {
					case nil, *ast.BasicLit, *ast.BinaryExpr:
					default:
						t.Errorf("%s: markup of something that is no literal: %T", name, n)
					}
					return true
				})
				return true
			})
		}
	}
	if found < 100 {
		t.Errorf("%d conversions", found)
	}
}

// isMarkup reports whether f is the type of markup, as the function of a conversion.
func isMarkup(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name == "h"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && x.Name == "markup" && f.Sel.Name == "HTML"
	}
	return false
}
