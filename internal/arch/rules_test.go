package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// rule is one rule of the module. Its check looks at one package at a time.
type rule struct {
	name  string
	check func(*pkg) []finding
}

func rules() []rule {
	return []rule{
		{"imports", checkImports},
		{"servers", checkServers},
		{"modules", checkModules},
		{"deadcode", checkDeadCode},
		{"flags", checkFlags},
		{"environment", checkEnvironment},
		{"exit", checkExit},
		{"goroutines", checkGoroutines},
		{"panics", checkPanics},
		{"failpoints", checkFailpoints},
		{"names", checkNames},
		{"state", checkState},
		{"init", checkInit},
		{"comment", checkComment},
		{"testing", checkTesting},
		{"logkeys", checkLogKeys},
		{"size", checkSize},
		{"fused", checkFused},
	}
}

// program reports whether p is a program, or belongs to one, rather than
// library code.
func (p *pkg) program() bool {
	return under(p.dir, "cmd", "examples") ||
		under(p.dir, "bench") && len(p.files) > 0 && p.files[0].ast.Name.Name == "main"
}

func checkImports(p *pkg) []finding {
	var all []finding
	if _, ok := rowFor(p.dir); !ok {
		return []finding{{p.dir, "package", "unknown package: add it to the table in internal/arch/imports_test.go with the imports it may have, and to the page on architecture with its purpose in one sentence"}}
	}
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			to, ours := strings.CutPrefix(importPath(spec), modulePath+"/")
			if !ours {
				continue
			}
			if !mayImport(p.dir, to) {
				row, _ := rowFor(p.dir)
				may := slices.Concat(row.may, foundation())
				all = append(all, p.find(spec.Pos(), to,
					"%s may not import %s, only %s: declare the small interface you need where you need it and let server plug it in, or move the code to the package that owns it",
					p.dir, to, strings.Join(may, ", ")))
			}
		}
	}
	return all
}

// checkServers finds HTTP servers by their use, since clients are allowed.
func checkServers(p *pkg) []finding {
	if under(p.dir, "admin", "server/listeners", "examples") {
		return nil
	}
	var all []finding
	for _, f := range p.files {
		fast, std := f.localName("github.com/valyala/fasthttp"), f.localName("net/http")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			x, sel, ok := selector(n)
			if ok && (x == fast || x == std) && (sel == "Server" || sel == "Serve" || sel == "ServeTLS" || strings.HasPrefix(sel, "ListenAndServe")) {
				all = append(all, p.find(n.Pos(), x+"."+sel,
					"an HTTP server in %s: the only server is admin's; add a row to its endpoint table (health-check listeners are in server/listeners)", p.dir))
			}
			return true
		})
		for _, spec := range f.ast.Imports {
			if to := importPath(spec); to == "net/http/pprof" || to == "expvar" {
				all = append(all, p.find(spec.Pos(), to, "%s registers handlers on a server that we do not have: use runtime/pprof, or a row of admin's endpoint table", to))
			}
		}
	}
	return all
}

// confined is a set of third-party packages that only some directories may import.
type confined struct {
	prefixes []string
	dirs     []string
	hint     string
}

func confinement() []confined {
	return []confined{
		{
			[]string{"go.yaml.in/", "gopkg.in/yaml", "sigs.k8s.io/yaml", "github.com/goccy/go-yaml"},
			[]string{"bootstrap", "upstream/config/decode", "internal/conftree", "internal/convert"},
			"YAML is read in bootstrap and upstream/config/decode only: take plain values from them",
		},
		{
			[]string{"google.golang.org/protobuf", "github.com/golang/protobuf", "github.com/envoyproxy/", "github.com/cncf/xds", "go.opentelemetry.io/proto"},
			[]string{"upstream/config/decode", "upstream/config/v2form", "upstream/xds", "server/configdump", "server/tap", "internal/wire", "bootstrap"},
			"protobuf messages stay in the boundary packages (upstream/config/decode, upstream/xds, server/configdump, server/tap, internal/wire, bootstrap): take the immutable structs of upstream/config, or write the bytes by hand",
		},
	}
}

func checkModules(p *pkg) []finding {
	var all []finding
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			to := importPath(spec)
			for _, c := range confinement() {
				if slices.ContainsFunc(c.prefixes, func(prefix string) bool { return strings.HasPrefix(to, prefix) }) && !under(p.dir, c.dirs...) {
					all = append(all, p.find(spec.Pos(), to, "%s imports %s: %s", p.dir, to, c.hint))
				}
			}
		}
	}
	return all
}

// checkDeadCode finds what keeps the linker from dropping code that nothing calls.
func checkDeadCode(p *pkg) []finding {
	if p.program() || under(p.dir, "bench") {
		return nil
	}
	var all []finding
	for _, f := range p.files {
		messages := false
		for _, spec := range f.ast.Imports {
			to := importPath(spec)
			messages = messages || strings.HasPrefix(to, "github.com/envoyproxy/")
			if to == "text/template" || to == "html/template" {
				all = append(all, p.find(spec.Pos(), to, "templates call methods by name, so all exported methods stay in the program: append to a []byte"))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !messages || len(call.Args) > 0 {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Validate" || s.Sel.Name == "ValidateAll") {
				all = append(all, p.find(n.Pos(), s.Sel.Name,
					"a generated validator keeps those of all messages in the program, 10 MB of code: use decode.Decoder, which checks the same rules"))
			}
			return true
		})
	}
	return all
}

func checkFlags(p *pkg) []finding {
	if p.program() || under(p.dir, "bench") {
		return nil
	}
	var all []finding
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			if to := importPath(spec); to == "flag" || to == "github.com/spf13/pflag" {
				all = append(all, p.find(spec.Pos(), to, "flags belong in cmd: take a field of a config struct whose zero value is the default"))
			}
		}
	}
	return all
}

func checkEnvironment(p *pkg) []finding {
	if p.program() {
		return nil
	}
	names := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv", "Args"}
	return p.uses(func(importedPath, sel string) string {
		if (importedPath == "os" || importedPath == "syscall") && slices.Contains(names, sel) {
			return "the environment and the command line are read in cmd only: take a field of a config struct"
		}
		return ""
	}, "os", "syscall")
}

func checkExit(p *pkg) []finding {
	if p.program() {
		return nil
	}
	return p.uses(func(importedPath, sel string) string {
		if importedPath == "os" && sel == "Exit" || importedPath == "syscall" && sel == "Exit" ||
			importedPath == "log" && (strings.HasPrefix(sel, "Fatal") || strings.HasPrefix(sel, "Panic")) {
			return "library code does not end the process: return an error"
		}
		return ""
	}, "os", "syscall", "log")
}

// uses asks verdict about every name used of the imported packages given.
func (p *pkg) uses(verdict func(importedPath, sel string) string, importedPaths ...string) []finding {
	var all []finding
	for _, f := range p.files {
		local := map[string]string{}
		for _, to := range importedPaths {
			if name := f.localName(to); name != "" {
				local[name] = to
			}
		}
		if len(local) == 0 {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if x, sel, ok := selector(n); ok && local[x] != "" {
				if hint := verdict(local[x], sel); hint != "" {
					all = append(all, p.find(n.Pos(), x+"."+sel, "%s", hint))
				}
			}
			return true
		})
	}
	return all
}

func checkGoroutines(p *pkg) []finding {
	if !under(p.dir, "symtab", "histogram", "store", "render") {
		return nil
	}
	hint := p.dir + " starts no goroutines: do the work in the caller's, or let flush or server run it"
	var all []finding
	for _, f := range p.files {
		clock := f.localName("time")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				all = append(all, p.find(n.Pos(), "go", "%s", hint))
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if s.Sel.Name == "Go" {
					all = append(all, p.find(n.Pos(), "Go", "%s", hint))
				}
				if x, sel, ok := selector(s); ok && clock != "" && x == clock && sel == "AfterFunc" {
					all = append(all, p.find(n.Pos(), "time.AfterFunc", "%s", hint))
				}
			}
			return true
		})
	}
	return all
}

func checkNames(p *pkg) []finding {
	vague := []string{"util", "utils", "common", "type", "types", "helper", "helpers", "misc", "shared", "base", "lib"}
	hint := "the name says nothing about what is inside: put the code where it is used, or name the thing (backoff, ring, quota)"
	for _, part := range strings.Split(p.dir, "/") {
		if slices.Contains(vague, part) {
			return []finding{{p.dir, part, hint}}
		}
	}
	for _, f := range p.files {
		name := f.ast.Name.Name
		if slices.Contains(vague, name) {
			return []finding{p.find(f.ast.Name.Pos(), name, "%s", hint)}
		}
		if name != "main" && p.dir != "." && name != path.Base(p.dir) {
			return []finding{p.find(f.ast.Name.Pos(), name, "package %s lives in directory %s: give both one name", name, p.dir)}
		}
	}
	return nil
}

func checkInit(p *pkg) []finding {
	var all []finding
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				all = append(all, p.find(fn.Pos(), "init", "no init functions: write a constructor, or a function that returns the table"))
			}
		}
	}
	return all
}

func checkComment(p *pkg) []finding {
	if len(p.files) == 0 {
		return nil
	}
	var have []string
	for _, f := range p.files {
		if f.ast.Doc == nil || strings.TrimSpace(f.ast.Doc.Text()) == "" {
			continue
		}
		have = append(have, f.path)
		name := f.ast.Name.Name
		if want := "Package " + name + " "; name != "main" && !strings.HasPrefix(f.ast.Doc.Text(), want) {
			return []finding{p.find(f.ast.Doc.Pos(), "comment", "the package comment begins with %q and states its purpose in one sentence", want)}
		}
	}
	switch len(have) {
	case 1:
		return nil
	case 0:
		return []finding{{p.dir, "comment", "no package comment: state its purpose in one sentence, in doc.go or the file named after the package"}}
	}
	return []finding{{p.dir, "comment", "package comments in " + strings.Join(have, " and ") + ": keep one (an empty line between comment and package clause makes it an ordinary comment)"}}
}

// checkTesting keeps the testing package and test packages out of shipped code.
func checkTesting(p *pkg) []finding {
	if slices.Contains(testOnly(), p.dir) || under(p.dir, "bench") {
		return nil
	}
	var all []finding
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			to := importPath(spec)
			ours, _ := strings.CutPrefix(to, modulePath+"/")
			if to == "testing" || strings.HasPrefix(to, "testing/") || slices.Contains(testOnly(), ours) {
				all = append(all, p.find(spec.Pos(), to, "shipped code does not import %s: move this to a _test.go file or a package like flush/sinktest", to))
			}
		}
	}
	return all
}

// maxLines is far above what a file should have; see the median around it.
const maxLines = 900

// checkFused finds differences of a variable and itself, which are zero only if the
// compiler does not fuse them with a product: arm64 does.
func checkFused(p *pkg) []finding {
	var all []finding
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if e, ok := n.(*ast.BinaryExpr); ok && e.Op == token.SUB {
				x, isX := e.X.(*ast.Ident)
				y, isY := e.Y.(*ast.Ident)
				if isX && isY && x.Name == y.Name {
					all = append(all, p.find(e.Pos(), x.Name, "%s-%s may not be 0 for a finite product on arm64: use math.IsInf and math.IsNaN", x.Name, x.Name))
				}
			}
			return true
		})
	}
	return all
}

func checkSize(p *pkg) []finding {
	var all []finding
	for _, f := range p.files {
		if f.lines > maxLines && !ast.IsGenerated(f.ast) {
			all = append(all, finding{f.path, path.Base(f.path), "the file has more than 900 lines: find the second idea in it and give that a file of its own"})
		}
	}
	return all
}
