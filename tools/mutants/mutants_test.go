package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const source = `package p

import "sync"

const limit = 5

func f(mu *sync.Mutex, list []int) (int, error) {
	mu.Lock()
	defer mu.Unlock()
	n := 0
	for i := 0; i < len(list); i++ {
		if list[i] == limit && n > 0 {
			continue
		}
		if list[i] > 8 {
			break
		}
		n++
	}
	if n < 0 {
		return 0, nil
	}
	_ = n
	n = n - 1
	n += n
	return n, nil
}

var buffer = make([]byte, 0, 64)
var sizes [3]int
`

// imports returns a runner that knows the packages that code in tests imports.
var imports = sync.OnceValues(func() (*runner, error) {
	r := &runner{root: "../.."}
	return r, r.export([]string{"./internal/prefetch", "./internal/schedule", "math", "regexp", "slices", "strconv", "strings"})
})

// findIn finds the changes of a file.
func findIn(t *testing.T, src string) *finder {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	r, err := imports()
	if err != nil {
		t.Fatal(err)
	}
	info, err := r.check(fset, "p", []*ast.File{file})
	if err != nil {
		t.Fatal(err)
	}
	f := &finder{path: "p.go", pkg: "p", fset: fset, info: info, src: []byte(src), left: map[reason]int{}}
	f.find(file)
	return f
}

func TestEachKindOfChangeIsFoundAndParses(t *testing.T) {
	f := findIn(t, source)
	var got, alone []string
	for _, m := range f.found {
		got = append(got, strings.TrimPrefix(m.String(), "p.go:"))
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", m.apply([]byte(source)), 0); err != nil {
			t.Errorf("%v: %v", m, err)
		}
		if m.begin == m.end {
			alone = append(alone, m.kind)
			continue
		}
		switched := source[:m.begin] + m.switched([]byte(source), 7) + source[m.end:]
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", switched, 0); err != nil {
			t.Errorf("%v: %v\n%s", m, err, switched)
		}
	}
	want := []string{
		"5:15 constant plus one: 5 -> 6",
		"8:2 call dropped: mu.Lock()",
		"9:2 defer dropped: defer mu.Unlock()",
		"10:7 constant plus one: 0 -> 1",
		"11:14 condition negated: i < len(list) -> !(i < len(list))",
		"11:11 constant plus one: 0 -> 1",
		"11:16 comparison: < -> <=",
		"12:6 condition negated: list[i] == limit && n > 0 -> !(list[i] == limit && n > 0)",
		"12:23 and for or: && -> ||",
		"12:14 equality: == -> !=",
		"12:28 comparison: > -> >=",
		"12:30 constant plus one: 0 -> 1",
		"13:4 break for continue: continue -> break",
		"15:6 condition negated: list[i] > 8 -> !(list[i] > 8)",
		"15:14 comparison: > -> >=",
		"15:16 constant plus one: 8 -> 9",
		"16:4 continue for break: break -> continue",
		"18:4 increment: ++ -> --",
		"20:5 condition negated: n < 0 -> !(n < 0)",
		"20:7 comparison: < -> <=",
		"20:9 constant plus one: 0 -> 1",
		"21:3 return dropped: return 0, nil",
		"21:10 constant plus one: 0 -> 1",
		"24:2 assignment dropped: n = n - 1",
		"24:10 constant plus one: 1 -> 2",
		"25:4 increment: += -> -=",
		"25:2 assignment dropped: n += n",
		"26:2 results zero: return n, nil -> return *new(int), *new(error)",
		"29:27 constant plus one: 0 -> 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Constants of declarations and of statements that declare variables.
	if len(alone) != 4 {
		t.Errorf("no switch chooses %d changes: %q", len(alone), alone)
	}
}

// TestSwitchKeepsTheOriginal compares the values of a condition with and without its change.
func TestSwitchKeepsTheOriginal(t *testing.T) {
	src := []byte("a < b")
	m := mutant{begin: 0, end: 5, from: 2, to: 3, old: "<", new: "<=", truth: true}
	if got, want := m.switched(src, 3), "(mutantOn(3) && (a <= b) || !mutantOn(3) && (a < b))"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.truth = false
	if got, want := m.switched(src, 3), "if mutantOn(3) { a <= b } else { a < b }"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m = mutant{begin: 0, end: 5, from: 0, to: 5}
	if got, want := m.switched(src, 3), "if !mutantOn(3) { a < b }"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKindsTakeTurnsInASample(t *testing.T) {
	var all []mutant
	for i := range 40 {
		all = append(all, mutant{kind: "frequent", line: i})
	}
	all = append(all, mutant{kind: "rare", line: 1}, mutant{kind: "rare", line: 2})
	drawn := draw(slices.Clone(all), 3)
	kinds := map[string]int{}
	for _, m := range drawn[:4] {
		kinds[m.kind]++
	}
	if len(drawn) != len(all) || kinds["rare"] != 2 {
		t.Errorf("%d changes, the first four: %v", len(drawn), kinds)
	}
	if !slices.Equal(drawn, draw(slices.Clone(all), 3)) || slices.Equal(drawn, draw(slices.Clone(all), 4)) {
		t.Error("the sample does not depend on the seed alone")
	}
}

// TestVerdicts judges changes of a small module: noticed by the test of the package, by
// the test of an importer, by no test, constants that no switch can choose, and a change that
// does not compile.
func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	const code = "package a\n\nfunc Own() int { return 1 }\n\nfunc Theirs() int { return 2 }\n\nfunc Untested() int { return 3 }\n\nconst Four, Five = 4, 5\n"
	for name, text := range map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.26.0\n",
		"a/a.go":         code,
		"a/a_test.go":    "package a\n\nimport \"testing\"\n\nfunc TestOwn(t *testing.T) {\n\tif Own() != 1 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestConst(t *testing.T) {\n\tif Four != 4 {\n\t\tt.Fatal()\n\t}\n}\n",
		"b/b.go":         "package b\n",
		"b/b_test.go":    "package b\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/a\"\n)\n\nfunc TestTheirs(t *testing.T) {\n\tif a.Theirs() != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
		"c/c_test.go":    "package c\n\nimport (\n\t\"testing\"\n\n\t_ \"example.com/m/a\"\n)\n\nfunc TestFails(t *testing.T) { t.Fatal() }\n",
		"c/c.go":         "package c\n",
		"d/unrelated.go": "package d\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	r := &runner{root: root, dir: t.TempDir(), slack: time.Minute, tried: 2, out: &out,
		pkgs: map[string]*goPackage{}, plain: map[string]usual{}}
	all, err := r.list([]string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		r.pkgs[p.ImportPath] = p
	}
	found, err := r.find(r.pkgs["example.com/m/a"], map[reason]int{})
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(m mutant) bool { return m.kind != "constant plus one" })
	found = append(found, mutant{path: "a/a.go", pkg: "example.com/m/a", line: 11, begin: len(code), end: len(code), from: len(code), to: len(code), old: "", new: "func"})
	want := map[string]verdict{
		"1": {compiled: true, noticed: true, by: "example.com/m/a TestOwn"},
		"2": {compiled: true, noticed: true, by: "example.com/m/b TestTheirs"},
		"3": {compiled: true, by: "example.com/m/a, example.com/m/b, example.com/m/c"},
		"4": {compiled: true, noticed: true, by: "example.com/m/a TestConst"},
		"5": {compiled: true, by: "example.com/m/a, example.com/m/b, example.com/m/c"},
		"":  {},
	}
	got := map[string]verdict{}
	if err := r.judge(t.Context(), "example.com/m/a", found, func(m mutant, v verdict) { got[m.old] = v }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if want := "example.com/m/c: TestFails fails without a change: not used\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%q lacks %q", &out, want)
	}
	if after, err := os.ReadFile(filepath.Join(root, "a/a.go")); err != nil || string(after) != code {
		t.Errorf("the source became %q, %v", after, err)
	}
}
