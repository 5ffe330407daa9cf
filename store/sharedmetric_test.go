package store

import (
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

// TestNamesThatShareAMetricCostTheSameEach counts allocations: senders choose how
// many names differ only in replaced bytes, so the cost of a new one must not grow
// with their number.
func TestNamesThatShareAMetricCostTheSameEach(t *testing.T) {
	const names, most = 1 << 11, 100 // allocations for each; thousands if it looks at all
	for _, unique := range []bool{false, true} {
		st := New(Options{Naming: naming.Rules{Unique: unique}})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for i := range names {
			var name []byte
			for bit := range 11 {
				name = append(name, 'a', "._"[i>>bit&1])
			}
			sc.Counter(string(append(name, 'a')))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = st.View().ByFamily(KindCounter)
		runtime.ReadMemStats(&after)
		if got := (after.Mallocs - before.Mallocs) / names; got > most {
			t.Errorf("unique %t: %d allocations for each name, want %d at most", unique, got, most)
		}
		if got := st.Collisions(); got != names-1 {
			t.Errorf("unique %t: %d collisions of %d names", unique, got, names)
		}
	}
}

// TestSharedMetricsEnd: nothing is kept of names that shared a metric name once their stats
// have ended.
func TestSharedMetricsEnd(t *testing.T) {
	for _, unique := range []bool{false, true} {
		st := New(Options{Naming: naming.Rules{Unique: unique}})
		sc := st.ScopeWith("", ScopeOptions{Network: true})
		for round := range 3 {
			for _, name := range []string{"a.b", "a-b", "a+b", "c.d", "c-d", "alone"} {
				sc.Counter(name).Inc()
			}
			v := st.View()
			for c := v.ByFamily(KindCounter); c.Next(); {
				c.Series()
			}
			v.Close()
			st.RemoveNetwork(func(string) bool { return true })
			st.View().Close()
			if n, m := len(st.series.shared), st.series.specials.Load(); n != 0 || m != 0 {
				t.Errorf("unique %t, round %d: %d shared names and %d special families are left", unique, round, n, m)
			}
		}
	}
}
