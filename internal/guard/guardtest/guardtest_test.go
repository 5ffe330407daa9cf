package guardtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// fake is a test that fails without consequences.
type fake struct {
	testing.TB
	ends   []func()
	errors []string
}

func (f *fake) Helper()                   {}
func (f *fake) Cleanup(end func())        { f.ends = append(f.ends, end) }
func (f *fake) Error(args ...any)         { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *fake) Errorf(s string, a ...any) { f.Error(fmt.Sprintf(s, a...)) }
func (f *fake) Fatalf(s string, a ...any) {
	f.Errorf(s, a...)
	panic(f) // ends what called it
}

// TestPanics has tests that use a collection well and badly.
func TestPanics(t *testing.T) {
	wild := func() { panic(Canary) }
	for name, tt := range map[string]struct {
		use  func(*Panics)
		want []string
	}{
		"none": {func(*Panics) {}, nil},
		"caught": {func(p *Panics) {
			p.Guard().Run("a", wild)
			go p.Guard().Run("b", wild)
			p.Caught("b")
			p.Caught("a")
		}, nil},
		"logged": {func(p *Panics) {
			guard.New(p.Logger().With("component", "x").WithGroup("y")).Run("a", wild)
			p.Caught("a")
		}, nil},
		"not-asked-for": {func(p *Panics) { p.Guard().Run("a", wild) }, []string{`there was a panic at "a"`}},
		"twice": {func(p *Panics) {
			p.Guard().Run("a", wild)
			p.Caught("a")
			p.Caught("a")
		}, []string{`there was no panic at "a"`}},
		"value": {func(p *Panics) { p.Logger().Info("a line", "value", "the "+Canary) }, []string{"the log shows the value of a panic: a line value=the " + Canary}},
		"without-stack": {func(p *Panics) {
			p.Logger().Error("recovered from a panic", "where", "a", "panic", "string")
			p.Caught("a")
		}, []string{"a panic is logged in another way: recovered from a panic where=a panic=string"}},
		"with-warning": {func(p *Panics) {
			p.Logger().Warn("recovered from a panic", "where", "a", "panic", "string", "stack", "panic(x)")
			p.Caught("a")
		}, []string{"a panic is logged in another way: recovered from a panic where=a panic=string stack=panic(x)"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{TB: t}
				p := New(f)
				func() {
					defer func() {
						if v := recover(); v != nil && v != any(f) {
							t.Errorf("panic: %v", v)
						}
					}()
					tt.use(p)
				}()
				for _, end := range f.ends {
					end()
				}
				if !slices.Equal(f.errors, tt.want) {
					t.Errorf("fails with\n%s\nwant\n%s", strings.Join(f.errors, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
}
