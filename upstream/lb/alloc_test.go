//go:build !race

package lb

import "testing"

func TestPicksDoNotAllocate(t *testing.T) {
	for _, bc := range benchCases() {
		b := bc.build(10)
		if n := testing.AllocsPerRun(1000, func() { b.Pick(bc.ctx) }); n != 0 {
			t.Errorf("%s: %v allocations per pick", bc.name, n)
		}
	}
}
