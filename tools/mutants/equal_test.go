package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyEqualChangesAreLeftOut pairs each form of a change without effect with its
// closest form that has one.
func TestOnlyEqualChangesAreLeftOut(t *testing.T) {
	const types = `
type pair struct{ a, b int }
type list []int
func (p pair) Error() string { return "" }
func now() int { return 7 }
`
	for _, tt := range []struct {
		name, code string
		kind       string
		want       reason // "" if the change is tried
	}{
		{"struct", "func f() (pair, bool) { return pair{}, false }", "results zero", sameResults},
		{"array", "func f() [2]int { return [2]int{} }", "results zero", sameResults},
		{"constant", "const none = 0; func f() (int, error) { return none, nil }", "results zero", sameResults},
		{"literal", "func f() { g := func() string { return `` }; g() }", "results zero", sameResults},
		{"field", "func f() pair { return pair{a: 0} }", "results zero", ""},
		{"slice", "func f() list { return list{} }", "results zero", ""},
		{"map", "func f() map[int]int { return map[int]int{} }", "results zero", ""},
		{"interface-struct", "func f() error { return pair{} }", "results zero", ""},
		{"interface-number", "func f() any { return 0 }", "results zero", ""},
		{"one-of-two", "func f() (pair, bool) { return pair{}, true }", "results zero", ""},
		{"call", "func f() int { return now() }", "results zero", ""},

		{"make-capacity", "var x = make([]int, now(), 64)", "constant plus one", capacity},
		{"make-sum", "var x = make([]int, now(), (now()+1))", "constant plus one", capacity},
		{"make-product", "var x = make([]int, now(), 2*now())", "constant plus one", capacity},
		{"make-map", "var x = make(map[int]int, 64)", "constant plus one", capacity},
		{"grow", "func f(x []int) []int { return slices.Grow(x, 8) }", "constant plus one", capacity},
		{"builder", "func f(b *strings.Builder) { b.Grow(8) }", "constant plus one", capacity},
		{"make-difference", "var x = make([]int, now(), now()-1)", "constant plus one", ""},
		{"make-length", "var x = make([]int, 1, now())", "constant plus one", ""},
		{"make-slice", "var x = make([]int, 64)", "constant plus one", ""},
		{"make-channel", "var x = make(chan int, 64)", "constant plus one", ""},
		{"grow-part", "func f(x []int) []int { return slices.Grow(x[1:], now()) }", "constant plus one", ""},
		{"grown", "func f(x []int) { x = slices.Grow(x, 8) }", "assignment dropped", capacity},
		{"grown-other", "func f(x, y []int) { x = slices.Grow(y, now()) }", "assignment dropped", ""},
		{"appended", "func f(x []int) { x = append(x, 8) }", "assignment dropped", ""},

		{"last-switch", "func f() { for range 3 { switch now() { case 1: continue; case 2: now() } } }", "break for continue", end},
		{"last-select", "func f(c chan int) { for { now(); select { case <-c: if now() > 1 { continue }; now() } } }", "break for continue", end},
		{"switch-before-more", "func f() { for range 3 { switch now() { case 1: continue }; now() } }", "break for continue", ""},
		{"switch-in-a-block", "func f() { for range 3 { if now() > 1 { switch now() { case 1: continue } }; now() } }", "break for continue", ""},
		{"loop-in-a-switch", "func f() { switch now() { case 1: for range 3 { continue } } }", "break for continue", ""},
		{"label", "func f() { a: for { for range 3 { switch now() { case 1: continue a } } } }", "break for continue", ""},

		{"infinity", "var x = math.Inf(1)", "constant plus one", sign},
		{"infinity-of-zero", "var x = math.Inf(0)", "constant plus one", sign},
		{"negative-infinity", "var x = math.Inf(-1)", "constant plus one", sign},
		{"is-infinite", "func f(x float64) bool { return math.IsInf(x, 1) }", "constant plus one", sign},
		{"all-digits", "func f(x float64) string { return strconv.FormatFloat(x, 'g', -1, now()) }", "constant plus one", sign},
		{"all-matches", "func f(x *regexp.Regexp) []string { return x.FindAllString(``, -1) }", "constant plus one", sign},
		{"bits-of-a-double", "func f(s string) (float64, error) { return strconv.ParseFloat(s[now():], 64) }", "constant plus one", sign},
		{"bits-of-a-single", "func f(s string) (float64, error) { return strconv.ParseFloat(s[now():], 32) }", "constant plus one", ""},
		{"is-any-infinity", "func f(x float64) bool { return math.IsInf(x, 0) }", "constant plus one", ""},
		{"infinity-of-difference", "var x = math.Inf(now() - 1)", "constant plus one", ""},
		{"digits", "func f(x float64) string { return strconv.FormatFloat(x, 'g', 3, now()) }", "constant plus one", ""},
		{"bits", "func f(x float64) string { return strconv.FormatFloat(x, 'g', now(), 64) }", "constant plus one", ""},
		{"matches", "func f(x *regexp.Regexp) []string { return x.FindAllString(``, 1) }", "constant plus one", ""},
		{"fraction", "var x = math.Floor(1)", "constant plus one", ""},
		{"own-function", "func g(int) int { return now() }; var x = g(-1)", "constant plus one", ""},

		{"gosched", "func f() { runtime.Gosched() }", "call dropped", hint},
		{"pool", "func f(p *sync.Pool, x any) { p.Put(x) }", "call dropped", hint},
		{"pool-defer", "func f(p *sync.Pool, x any) { defer p.Put(x) }", "defer dropped", hint},
		{"builder-grows", "func f(b *strings.Builder) { b.Grow(len(`x`)) }", "call dropped", hint},
		{"prefetch", "func f(b prefetch.Batch, n int) { prefetch.Lines(&b, n) }", "call dropped", hint},
		{"schedule", "func f() { schedule.Point() }", "call dropped", hint},
		{"pool-argument", "func f(p *sync.Pool) { p.Put(now()) }", "call dropped", ""},
		{"pool-receiver", "func f(p func() *sync.Pool, x any) { p().Put(x) }", "call dropped", ""},
		{"garbage", "func f() { runtime.GC() }", "call dropped", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var imports strings.Builder
			for _, path := range []string{"math", "regexp", "runtime", "slices", "strconv", "strings", "sync", modulePath + "/internal/prefetch", modulePath + "/internal/schedule"} {
				if strings.Contains(tt.code, filepath.Base(path)+".") {
					fmt.Fprintf(&imports, "import %q\n", path)
				}
			}
			f := findIn(t, "package p\n"+imports.String()+tt.code+types)
			base := findIn(t, "package p\n"+types)
			tried := 0
			for _, m := range f.found {
				if m.kind == tt.kind {
					tried++
				}
			}
			for _, m := range base.found {
				if m.kind == tt.kind {
					tried--
				}
			}
			for why, n := range base.left {
				if f.left[why] -= n; f.left[why] == 0 {
					delete(f.left, why)
				}
			}
			switch {
			case tt.want == "" && (tried == 0 || len(f.left) > 0):
				t.Errorf("%d changes tried, left out %v; want it tried", tried, f.left)
			case tt.want != "" && (tried > 0 || f.left[tt.want] == 0):
				t.Errorf("left out %v, %d changes tried; want %q", f.left, tried, tt.want)
			}
		})
	}
}
