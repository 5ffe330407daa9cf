package arch

import (
	"strings"
	"testing"
)

// TestRulesFindWhatTheyShould gives each rule code that breaks it and code that
// looks alike but keeps it.
func TestRulesFindWhatTheyShould(t *testing.T) {
	const head = "// Package x is a sample.\npackage x\n"
	tests := []struct {
		rule, dir, code string
		want            string // what of the findings, joined by spaces
	}{
		{"imports", "store", head + `import "` + modulePath + `/symtab"`, ""},
		{"imports", "symtab", head + `import "` + modulePath + `/store"`, "store"},
		{"imports", "admin", head + `import ("` + modulePath + `/upstream"; "` + modulePath + `/server/certs")`, "upstream server/certs"},
		{"imports", "server/certs", head + `import "` + modulePath + `/admin"`, "admin"},
		{"imports", "attic", head, "package"},
		{"imports", "internal/attic", head, "package"},

		{"servers", "statsd", head + `import "github.com/valyala/fasthttp"; var _ = fasthttp.Server{}`, "fasthttp.Server"},
		{"servers", "upstream/health", head + `import "github.com/valyala/fasthttp"; var c fasthttp.Client`, ""},
		{"servers", "admin", head + `import "github.com/valyala/fasthttp"; var _ = fasthttp.Server{}`, ""},
		{"servers", "server/listeners", head + `import "github.com/valyala/fasthttp"; var _ = fasthttp.ListenAndServe`, ""},
		{"servers", "server/certs", head + `import web "net/http"; var _ = web.ListenAndServe`, "web.ListenAndServe"},
		{"servers", "cmd/x", head + `import _ "net/http/pprof"`, "net/http/pprof"},

		{"modules", "store", head + `import "go.yaml.in/yaml/v4"`, "go.yaml.in/yaml/v4"},
		{"modules", "bootstrap", head + `import "go.yaml.in/yaml/v4"`, ""},
		{"modules", "upstream/lb", head + `import "google.golang.org/protobuf/proto"`, "google.golang.org/protobuf/proto"},
		{"modules", "upstream/config", head + `import "google.golang.org/protobuf/proto"`, "google.golang.org/protobuf/proto"},
		{"modules", "upstream/config/decode", head + `import "google.golang.org/protobuf/proto"`, ""},

		{"deadcode", "server/tap", head + `import v3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"; func f(m *v3.TapRequest) { m.Validate() }`, "Validate"},
		{"deadcode", "server/tap", head + `func f(m interface{ Validate() }) { m.Validate() }`, ""},
		{"deadcode", "admin", head + `import "text/template"`, "text/template"},

		{"flags", "store", head + `import "flag"`, "flag"},
		{"flags", "server", head + `import "github.com/spf13/pflag"`, "github.com/spf13/pflag"},
		{"flags", "cmd/statsd-admin", head + `import "flag"`, ""},

		{"environment", "bootstrap", head + `import "os"; var _ = os.Getenv("A")`, "os.Getenv"},
		{"environment", "bootstrap", head + `import "os"; var _ = os.Args`, "os.Args"},
		{"environment", "bootstrap", head + `import "os"; var _ = os.ReadFile`, ""},
		{"environment", "cmd/statsd-admin", head + `import "os"; var _ = os.Getenv("A")`, ""},

		{"exit", "server", head + `import ("os"; "log"); func f() { os.Exit(1); log.Fatalf("x") }`, "os.Exit log.Fatalf"},
		{"exit", "server", head + `import "log/slog"; func f() { slog.Error("x") }`, ""},
		{"exit", "cmd/statsd-admin", head + `import "os"; func f() { os.Exit(1) }`, ""},

		{"exit", "bench/budget", head + `import "os"; func f() { os.Exit(1) }`, "os.Exit"},
		{"exit", "bench/compare", "// Command compare compares.\npackage main\n" + `import "os"; func f() { os.Exit(1) }`, ""},

		{"goroutines", "store", head + `func f() { go f() }`, "go"},
		{"goroutines", "store/tags", head + `import "sync"; func f() { var wg sync.WaitGroup; wg.Go(f) }`, "Go"},
		{"goroutines", "render", head + `import "time"; func f() { time.AfterFunc(1, f) }`, "time.AfterFunc"},
		{"goroutines", "flush", head + `func f() { go f() }`, ""},

		{"panics", "statsd", head + `func f() { go f() }`, "x.go f"},
		{"panics", "statsd", head + `import "sync"; func f(wg *sync.WaitGroup) { wg.Go(func() { f(wg) }); wg.Go(func() {}) }`, "x.go f|x.go f 2"},
		{"panics", "statsd", head + `import "time"; func f() { time.AfterFunc(1, f) }`, "x.go f"},
		{"panics", "statsd", head + `import "context"; func f(ctx context.Context) { defer context.AfterFunc(ctx, func() {})() }`, "x.go f"},
		{"panics", "statsd", head + `func f(g guard.Guard, end chan int) { go func() { defer close(end); g.Run("f", func() { f(g, end) }) }() }`, ""},
		{"panics", "statsd", head + `func f(g guard.Guard) { go func() { f(g); g.Run("f", func() {}) }() }`, "x.go f"},
		{"panics", "statsd", head + `func f(g guard.Guard) { go func() { defer f(g); g.Run("f", func() {}) }() }`, "x.go f"},
		{"panics", "statsd", head + `type r struct{}; func (r) Run(x, y int) {}; func f() { go func() { r{}.Run(1, 2) }() }`, "x.go f"},
		{"panics", "statsd", head + `func f() { go func() { defer func() { _ = recover() }(); f() }() }`, ""},
		{"panics", "statsd", head + `type t int; func (s t) f() { go s.run() }; func (s t) run() { s.keep("f", s.f) }`, ""},
		{"panics", "statsd", head + `type t int; func (s t) f() { go s.run() }; func (s t) run() { s.f() }`, "x.go f"},
		{"panics", "statsd", head + `type t int; func (s t) f() { go s.run() }; func (s t) run() { defer s.end(); s.f() }; func (t) end() { _ = recover() }`, ""},
		{"panics", "statsd", head + `func f() { x := http.Transport{DialContext: f}; y := grpc.WithContextDialer(f) }`, "x.go f|x.go f 2"},
		{"panics", "statsd", head + `func f() { x := http.Transport{DialContext: func() { g.Run("f", f) }} }`, ""},

		{"panics", "bench/compare", head + `func f() { go f() }`, ""},

		{"failpoints", "statsd", head + `func f() { g.Run("a", f) }`, "a"},

		{"names", "store/util", "package util", "util"},
		{"names", "store/x", "package helpers", "helpers"},
		{"names", "store/x", "package y", "y"},
		{"names", "store/x", "package x", ""},
		{"names", "cmd/x", "package main", ""},

		{"state", "store", head + `var count int`, "count"},
		{"state", "store", head + `import "sync"; var mu sync.Mutex`, "mu"},
		{"state", "store", head + `import "sync"; var mu = sync.Mutex{}`, "mu"},
		{"state", "store", head + `var cache = map[string]int{}; func f() { cache["a"] = 1 }`, "cache"},
		{"state", "store", head + `var cache = map[string]int{}; func f() { delete(cache, "a") }`, "cache"},
		{"state", "store", head + `var total = 0; func f() { total++ }`, "total"},
		{"state", "store", head + `var total = 0; func f() *int { return &total }`, "total"},
		{"state", "store", head + `var list = []int{1}; func f() { list = append(list, 2) }`, "list"},
		{"state", "store", head + `var s = struct{ a [2]int }{}; func f() { s.a[1] = 2 }`, "s"},
		{"state", "store", head + `var def = &struct{}{}`, "def"},
		{"state", "store", head + `var def = newThing(); func newThing() *int { return nil }`, "def"},
		{"state", "store", head + `var c = make(chan int)`, "c"},
		{"state", "store", head + `import "errors"; var ErrClosed = errors.New("x: closed")`, ""},
		{"state", "store", head + `import "regexp"; var re = regexp.MustCompile("a")`, ""},
		{"state", "store", head + `import "x/lazyregexp"; var re = lazyregexp.New("a")`, ""},
		{"state", "store", head + `type T int; var _ interface{} = (*T)(nil)`, ""},
		{"state", "store", head + `var names = [...]string{"a", "b"}; var half = 1.0 / 2; var raw = []byte("x")`, ""},
		{"state", "store", head + `var table = func() [256]bool { var t [256]bool; t[1] = true; return t }()`, ""},
		{"state", "store", head + `var table = build(3); func build(n int) []int { return nil }`, ""},
		{"state", "store", head + `var n = 1; func f() { n := 2; n++ }`, ""},
		{"state", "store", head + `import _ "embed"
//go:embed a.yaml
var text string`, ""},

		{"init", "store", head + `func init() {}`, "init"},
		{"init", "store", head + `type t int; func (t) init() {}`, ""},

		{"comment", "store", "package x", "comment"},
		{"comment", "store", "// X is a thing.\npackage x", "comment"},
		{"comment", "store", head, ""},
		{"comment", "cmd/y", "// Command y does things.\npackage main", ""},

		{"testing", "store", head + `import "testing"`, "testing"},
		{"testing", "store", head + `import "` + modulePath + `/internal/golden"`, "internal/golden"},
		{"testing", "flush/sinktest", head + `import "testing"`, ""},

		{"logkeys", "server", head + `func f(l *slog.Logger) { l.Info("a b", "c d", 1, "e", "f g") }`, "c d"},
		{"logkeys", "server", head + `func f(l *slog.Logger) { l.With("C", 1).Log(ctx, level, "a b", "d-e", 2) }`, "d-e C"},
		{"logkeys", "server", head + `func f(l *slog.Logger) { args := []any{"a b", 1}; args = append(args, "c d", 2); l.Info("e", append(args, "f g", 3)...) }`, "a b c d f g"},
		{"logkeys", "server", head + `func f(l *slog.Logger) { l.Info("a b", "c_2", 1); x = []any{"a b"}; y = append(y, "a b", "c d") }`, ""},

		{"fused", "store", head + `func finite(x float64) bool { return x-x == 0 }`, "x"},
		{"fused", "store", head + `func f(x, y float64) bool { return x-y == 0 }`, ""},

		{"size", "store", head + strings.Repeat("\n", 899), "x.go"},
		{"size", "store", head + strings.Repeat("\n", 898), ""},
		{"size", "store", "// Code generated by x. DO NOT EDIT.\n\n" + head + strings.Repeat("\n", 1000), ""},
	}
	tested := map[string]bool{}
	for _, tt := range tests {
		for _, r := range rules() {
			if r.name != tt.rule {
				continue
			}
			tested[r.name] = true
			var got []string
			for _, f := range r.check(parseSource(t, tt.dir, tt.code)) {
				what, _ := strings.CutPrefix(f.what, modulePath+"/")
				got = append(got, what)
			}
			sep := " "
			if strings.Contains(tt.want, "|") { // the finding has spaces in it
				sep = "|"
			}
			if strings.Join(got, sep) != tt.want {
				t.Errorf("rule %s in %s finds %q, want %q in\n%.300s", tt.rule, tt.dir, got, tt.want, tt.code)
			}
		}
	}
	for _, r := range rules() {
		if !tested[r.name] {
			t.Errorf("rule %s is not tested", r.name)
		}
	}
}

func TestTwoPackageCommentsAreFound(t *testing.T) {
	p := parseSource(t, "store", "// Package x is one.\npackage x")
	if err := p.add("store/y.go", []byte("// Package x is another.\npackage x")); err != nil {
		t.Fatal(err)
	}
	if got := checkComment(p); len(got) != 1 || !strings.Contains(got[0].hint, "store/x.go and store/y.go") {
		t.Errorf("findings = %v, want one that names both files", got)
	}
}

func TestWritesInOtherFilesAreFound(t *testing.T) {
	p := parseSource(t, "store", "package x\nvar list = []int{1}")
	if err := p.add("store/y.go", []byte("package x\nfunc f() { list[0] = 2 }")); err != nil {
		t.Fatal(err)
	}
	if got := checkState(p); len(got) != 1 || got[0].what != "list" {
		t.Errorf("findings = %v, want one about list", got)
	}
}
