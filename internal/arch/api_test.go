package arch

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// TestAPI compares the exported API of each public package with the record in
// testdata/api.golden. CONTRIBUTING.md has the rule for changing it.
func TestAPI(t *testing.T) {
	var b bytes.Buffer
	for _, pkg := range loadTree(t) {
		dir := pkg.dir
		if under(dir, "bench") || !slices.ContainsFunc(public(), func(pattern string) bool { return fits(pattern, dir) }) {
			continue
		}
		lines, err := exported(filepath.Join("..", "..", dir))
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, line := range lines {
			b.WriteString(dir + ": " + line + "\n")
		}
	}
	golden.Check(t, "api", b.Bytes())
}

// exported returns the exported declarations of a package on Linux, each on one line.
func exported(dir string) ([]string, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled, context.BuildTags = "linux", "amd64", false, nil
	pkg, err := context.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0) // without comments
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, pkg.Name)
	if err != nil {
		return nil, err
	}
	var lines []string
	add := func(prefix string, node ast.Node) error {
		var b bytes.Buffer
		if err := format.Node(&b, fset, node); err != nil {
			return err
		}
		lines = append(lines, prefix+strings.Join(strings.Fields(b.String()), " "))
		return nil
	}
	addValues := func(values []*doc.Value) error {
		for _, v := range values {
			for _, spec := range v.Decl.Specs {
				if err := add(v.Decl.Tok.String()+" ", spec); err != nil {
					return err
				}
			}
		}
		return nil
	}
	addFuncs := func(funcs []*doc.Func) error {
		for _, f := range funcs {
			f.Decl.Body = nil
			if err := add("", f.Decl); err != nil {
				return err
			}
		}
		return nil
	}
	for _, values := range [][]*doc.Value{p.Consts, p.Vars} {
		if err := addValues(values); err != nil {
			return nil, err
		}
	}
	if err := addFuncs(p.Funcs); err != nil {
		return nil, err
	}
	for _, typ := range p.Types {
		for _, spec := range typ.Decl.Specs {
			if err := add("type ", spec); err != nil {
				return nil, err
			}
		}
		for _, values := range [][]*doc.Value{typ.Consts, typ.Vars} {
			if err := addValues(values); err != nil {
				return nil, err
			}
		}
		for _, funcs := range [][]*doc.Func{typ.Funcs, typ.Methods} {
			if err := addFuncs(funcs); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(lines)
	return lines, nil
}
