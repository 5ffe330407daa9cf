package arch

import (
	"slices"
	"testing"
	"time"
)

// TestRules applies every rule to every package of the module.
func TestRules(t *testing.T) {
	began := time.Now()
	pkgs := loadTree(t)
	used := make([]bool, len(exceptions()))
	ran := 0 // rules; -run may select some
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			ran++
			for _, p := range pkgs {
				for _, f := range r.check(p) {
					i := slices.IndexFunc(exceptions(), func(e exception) bool {
						return e.rule == r.name && e.dir == p.dir && e.what == f.what
					})
					if i >= 0 {
						used[i] = true
						continue
					}
					t.Errorf("%s: %s\n\t(to opt out, name rule %q, package %q and %q with a reason in internal/arch/exceptions_test.go)",
						f.where, f.hint, r.name, p.dir, f.what)
				}
			}
		})
	}
	for i, e := range exceptions() {
		if e.reason == "" {
			t.Errorf("the exception %s %s %s has no reason", e.rule, e.dir, e.what)
		}
		known := slices.ContainsFunc(pkgs, func(p *pkg) bool { return p.dir == e.dir })
		if ran == len(rules()) && !used[i] && known {
			t.Errorf("the exception %s %s %s excuses nothing: remove it from internal/arch/exceptions_test.go", e.rule, e.dir, e.what)
		}
	}
	t.Logf("%d packages in %v", len(pkgs), time.Since(began).Round(time.Millisecond))
}
