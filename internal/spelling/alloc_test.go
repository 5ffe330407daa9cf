//go:build !race

package spelling

import (
	"slices"
	"strings"
	"testing"
)

// TestFarNamesAreNotCompared looks up a word much longer than all names. Only
// comparisons allocate.
func TestFarNamesAreNotCompared(t *testing.T) {
	word, names := strings.Repeat("f", 1000), slices.Values([]string{"format", "filter"})
	if n := testing.AllocsPerRun(10, func() { Nearest(word, names, len(word)/3) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
