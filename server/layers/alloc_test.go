//go:build !race

package layers

import (
	"runtime"
	"strconv"
	"testing"
)

// TestOneOverrideCopiesFew checks that a change of one override allocates about the same
// with many overrides as with few: not all entries, nor the overrides, nor the keys.
func TestOneOverrideCopiesFew(t *testing.T) {
	const changes = 4 * maxRecent
	for what, change := range map[string]func(keys []string, i int) map[string]string{
		"change": func(keys []string, i int) map[string]string {
			return map[string]string{keys[i*7%len(keys)]: strconv.Itoa(i)}
		},
		"set and remove": func(_ []string, i int) map[string]string {
			return map[string]string{"new." + strconv.Itoa(i/2): "x"[i%2:]}
		},
	} {
		perChange := func(n int) uint64 {
			l, keys := manyOverrides(t, n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range changes {
				if err := l.Modify(change(keys, i)); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			return (after.TotalAlloc - before.TotalAlloc) / changes
		}
		if few, many := perChange(10), perChange(9990); many > 16<<10 {
			t.Errorf("%s: one override allocates %d bytes with 10 others, %d with 9,990; want at most 16 KiB", what, few, many)
		}
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"i": 5.0, "b": true}}}})
	n := testing.AllocsPerRun(100, func() {
		s := l.Snapshot()
		if !s.Bool("b", false) || s.Uint("i", 0) != 5 || s.Float("none", 1) != 1 || s.FractionalPercent("i", FractionalPercent{}).Enabled(7) {
			t.Error("wrong values")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
