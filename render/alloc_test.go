//go:build !race

package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/grafana/regexp/syntax"
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
