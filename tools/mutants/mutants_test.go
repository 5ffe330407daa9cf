package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestEachKindOfChangeIsFoundAndParses(t *testing.T) {
	found, err := find("p.go", "p", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, strings.TrimPrefix(m.String(), "p.go:"))
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", m.apply([]byte(source)), 0); err != nil {
			t.Errorf("%v: %v", m, err)
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

// TestVerdicts judges changes of a small module: noticed by the
// test of the package, by the test of an importer, by no test, and one without a compilable result.
func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	const code = "package a\n\nfunc Own() int { return 1 }\n\nfunc Theirs() int { return 2 }\n\nfunc Untested() int { return 3 }\n"
	for name, text := range map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.26.0\n",
		"a/a.go":         code,
		"a/a_test.go":    "package a\n\nimport \"testing\"\n\nfunc TestOwn(t *testing.T) {\n\tif Own() != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
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
		pkgs: map[string]*goPackage{}, baseline: map[string]time.Duration{}, nearest: map[string][]string{}}
	all, err := r.list([]string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		r.pkgs[p.ImportPath] = p
	}
	found, err := r.find(r.pkgs["example.com/m/a"])
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]verdict{}
	for _, m := range found {
		if m.kind == "constant plus one" {
			if verdicts[m.old], err = r.try(m, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	bad := mutant{path: "a/a.go", pkg: "example.com/m/a", from: len(code), to: len(code), new: "func"}
	if verdicts["bad"], err = r.try(bad, 0); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]verdict{
		"1":   {compiled: true, noticed: true, by: "example.com/m/a TestOwn"},
		"2":   {compiled: true, noticed: true, by: "example.com/m/b TestTheirs"},
		"3":   {compiled: true, by: "example.com/m/a, example.com/m/b"},
		"bad": {},
	} {
		if got := verdicts[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if want := "example.com/m/c: its tests fail without a change: not used\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	if after, err := os.ReadFile(filepath.Join(root, "a/a.go")); err != nil || string(after) != code {
		t.Errorf("the source became %q, %v", after, err)
	}
}
