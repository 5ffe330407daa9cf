//go:build !race

package match

import "testing"

// TestMatchDoesNotAllocate is not run under the race detector, which drops pooled objects
// at random, and so memory of regular expressions.
func TestMatchDoesNotAllocate(t *testing.T) {
	l := List{
		mustNew(t, KindExact, "x", true), mustNew(t, KindPrefix, "x", true), mustNew(t, KindSuffix, "x", true),
		mustNew(t, KindContains, "xy", true), mustNew(t, KindRegex, `.*_rq_(x+)`, false),
	}
	if n := testing.AllocsPerRun(100, func() { l.Match("cluster.checkout.upstream_rq_404") }); n != 0 {
		t.Errorf("Match allocates %v times, want none", n)
	}
}
