package logctl

import (
	"strings"
	"testing"
)

func TestRuleMatches(t *testing.T) {
	const file = "/src/server/admin/admin_filter.go"
	tests := []struct {
		pattern string
		want    bool
	}{
		{file, true}, {"admin_filter", true}, {"admin_filter.go", false}, {"admin", false}, {"admin*", true}, {"*filter", true}, {"*", true},
		{"admin?filter", true}, {"admin??filter", false}, {"a*n*r", true}, {"a*n*x", false}, {"", false},
		{"*/admin/*", true}, {"*/server/*", true}, {"/src/*/admin_filter.go", true}, {"admin/*", false}, {"*/other/*", false},
		{"/src/server/admin/admin_filter.g?", true}, {"*/", false}, {"**/admin_filter.go", true},
	}
	for _, tt := range tests {
		if got := (rule{pattern: tt.pattern}).match(file); got != tt.want {
			t.Errorf("pattern %q: %v, want %v", tt.pattern, got, tt.want)
		}
	}
	for _, pattern := range []string{file + "*", file + "**", "*" + file} { // a star for nothing
		if !(rule{pattern: pattern}).match(file) {
			t.Errorf("pattern %q does not match", pattern)
		}
	}
	// Many stars stay cheap.
	if glob(strings.Repeat("a*", 200)+"b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
}

func TestFineGrained(t *testing.T) {
	r, out := mustNew(t, Config{FineGrain: true, Level: Info, Format: "%l %s %v", Names: []string{"main"}})
	if len(r.List()) != 0 {
		t.Errorf("files before anything was logged: %v", r.List())
	}
	here, there := r.Logger("here"), r.Logger("there")
	both := func() {
		here.Debug("h")
		here.Warn("h")
		logElsewhere(there)
	}
	lines := func() string {
		defer out.Reset()
		return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", ", ")
	}
	both()
	if got, want := lines(), "warning finegrain_test.go h, warning elsewhere_test.go t"; got != want {
		t.Errorf("at first: %s", got)
	}
	list := r.List()
	if len(list) != 2 || !strings.HasSuffix(list[0].Name, "/logctl/elsewhere_test.go") || !strings.HasSuffix(list[1].Name, "/logctl/finegrain_test.go") {
		t.Fatalf("list %v", list)
	}
	steps := []struct {
		name   string
		change func() error
		want   string
	}{
		{"rule", func() error { return r.Set("finegrain_test", "debug") }, "debug finegrain_test.go h, warning finegrain_test.go h, warning elsewhere_test.go t"},
		{"replaced", func() error { return r.SetPaths("elsewhere*:trace") }, "warning finegrain_test.go h, debug elsewhere_test.go t, warning elsewhere_test.go t"},
		{"first-wins", func() error { return r.SetPaths("*/logctl/*:off,finegrain_test:trace") }, ""},
		{"all", func() error { return r.SetAll("debug") }, "debug finegrain_test.go h, warning finegrain_test.go h, debug elsewhere_test.go t, warning elsewhere_test.go t"},
		{"unknown", func() error { return r.Set("nobody", "trace") }, "debug finegrain_test.go h, warning finegrain_test.go h, debug elsewhere_test.go t, warning elsewhere_test.go t"},
	}
	for _, s := range steps {
		if err := s.change(); err != nil {
			t.Fatal(err)
		}
		out.Reset() // discard the message about the change
		both()
		if got := lines(); got != s.want {
			t.Errorf("%s: got %s; want %s", s.name, got, s.want)
		}
	}
	if err := r.Set("x", "loud"); err != ErrUnknownLevel {
		t.Errorf("err = %v", err)
	}
}
