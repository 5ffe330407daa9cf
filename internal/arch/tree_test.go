package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/statsd-admin/statsd-admin"

// pkg is the Go code of one directory.
type pkg struct {
	dir   string // below the module's root, with slashes
	fset  *token.FileSet
	files []file // without tests
	tests []file // without comments
}

type file struct {
	path  string // below the module's root
	lines int
	ast   *ast.File
}

// finding is one place where a rule is broken.
type finding struct {
	where string // path, or path:line
	what  string // what an exception names: an import, a variable, a call
	hint  string // the error and what to do instead
}

func (p *pkg) find(at token.Pos, what, format string, args ...any) finding {
	pos := p.fset.Position(at)
	return finding{where: fmt.Sprintf("%s:%d", pos.Filename, pos.Line), what: what, hint: fmt.Sprintf(format, args...)}
}

// loadTree parses the module that this test belongs to, nested modules left
// out. Unlike the go command it reads files of all platforms and build tags.
func loadTree(t *testing.T) []*pkg {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []*pkg
	err = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if dir != root {
			if name == "testdata" || name == "vendor" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				return filepath.SkipDir
			}
		}
		below, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		p, err := loadDir(dir, filepath.ToSlash(below))
		if err != nil {
			return err
		}
		if len(p.files)+len(p.tests) > 0 {
			pkgs = append(pkgs, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("found only %d packages below %s", len(pkgs), root)
	}
	return pkgs
}

func loadDir(dir, below string) (*pkg, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &pkg{dir: below, fset: token.NewFileSet()}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if err := p.add(path.Join(below, e.Name()), src); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pkg) add(name string, src []byte) error {
	mode := parser.ParseComments | parser.SkipObjectResolution
	isTest := strings.HasSuffix(name, "_test.go")
	if isTest {
		mode = parser.SkipObjectResolution
	}
	parsed, err := parser.ParseFile(p.fset, name, src, mode)
	if err != nil {
		return err
	}
	f := file{path: name, lines: bytes.Count(src, []byte("\n")), ast: parsed}
	if isTest {
		p.tests = append(p.tests, f)
	} else {
		p.files = append(p.files, f)
	}
	return nil
}

// parseSource makes a package of one file, for testing the rules themselves.
func parseSource(t *testing.T, dir, src string) *pkg {
	t.Helper()
	p := &pkg{dir: dir, fset: token.NewFileSet()}
	if err := p.add(dir+"/x.go", []byte(src)); err != nil {
		t.Fatal(err)
	}
	return p
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	s, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return s
}

// localName returns the name by which f refers to the package imported as
// path, "" if it does not import it.
func (f file) localName(importedPath string) string {
	for _, spec := range f.ast.Imports {
		if importPath(spec) != importedPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importedPath)
	}
	return ""
}

// selector returns x and sel of an expression x.sel whose x is a plain name.
// Callers compare x with the name of an import; that a local variable may hide
// the import is left out of account.
func selector(n ast.Node) (x, sel string, ok bool) {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := s.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	return id.Name, s.Sel.Name, true
}
