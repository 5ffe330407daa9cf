package arch

import (
	"go/ast"
	"testing"
)

// TestProductNameStandsOnce checks that no shipped package has a default product name
// of its own, which could differ from the others.
func TestProductNameStandsOnce(t *testing.T) {
	var places []string
	for _, p := range loadTree(t) {
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Value == `"proxy"` {
					places = append(places, p.dir)
				}
				return true
			})
		}
	}
	if len(places) != 1 || places[0] != "internal/product" {
		t.Errorf("the default product name stands in %q: use product.Default", places)
	}
}
