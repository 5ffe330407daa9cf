//go:build !race

package render

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/grafana/regexp/syntax"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestErrorsAreFoundInFewSteps finds the position of an error at the end of a pattern
// that is expensive to parse. Nothing else allocates.
func TestErrorsAreFoundInFewSteps(t *testing.T) {
	pattern := strings.Repeat(`\pL`, 80) + `\q`
	_, err := NewFilter(RE2, pattern, FilterLimits{})
	var e *SyntaxError
	if !errors.As(err, &e) || e.At() != len(pattern)-2 {
		t.Fatalf("error %v", err)
	}
	parse := testing.AllocsPerRun(5, func() { _, _ = syntax.Parse(pattern, syntax.Perl) })
	if n := testing.AllocsPerRun(5, func() { e.At() }); n > 12*parse {
		t.Errorf("the position takes %v allocations, to parse the pattern takes %v", n, parse)
	}
}

// TestShortAnswersNeedLittleMemory: an answer with one stat has no buffer for thousands.
func TestShortAnswersNeedLittleMemory(t *testing.T) {
	st := newStore(store.Options{})
	st.Root().Counter("c").Inc()
	for form, write := range forms() {
		const runs = 20
		var before, after runtime.MemStats
		for range 2 { // names are settled in the first
			runtime.ReadMemStats(&before)
			for range runs {
				if err := write(io.Discard, st, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > 40<<10 {
			t.Errorf("%s: %d bytes", form, n)
		}
	}
}
