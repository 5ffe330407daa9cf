package store

import (
	"fmt"
	"testing"
)

// TestAllHoldersLetGoOfEndedStats: a stat of two scopes that ends takes up room
// in none of them, also when its number has passed to another one.
func TestAllHoldersLetGoOfEndedStats(t *testing.T) {
	st := New(Options{})
	limit := 2 * slotsPerBlock
	maker := st.Scope("", ScopeOptions{Network: true})
	sharer := st.Scope("", ScopeOptions{Network: true, MaxCounters: &limit})
	for round := range 3 {
		for i := range limit {
			c := maker.Counter(fmt.Sprint(i))
			if shared, err := sharer.TryCounter(fmt.Sprint(i)); err != nil || shared != c {
				t.Fatalf("round %d: the scopes do not share counter %d: %v", round, i, err)
			}
		}
		if n := st.RemoveNetwork(func(string) bool { return true }); n != limit {
			t.Fatalf("round %d: %d counters ended, want %d", round, n, limit)
		}
		for _, sc := range []*Scope{maker, sharer} {
			if len(sc.held) != 0 || sc.counts != [kinds]int{} {
				t.Fatalf("round %d: a scope holds %d stats and counts %v", round, len(sc.held), sc.counts)
			}
		}
		sharer.Counter(fmt.Sprint("own", round))
		st.RemoveNetwork(func(string) bool { return true })
	}
	last := maker.Counter("last")
	last.Add(2)
	if len(st.sharers) != 0 {
		t.Errorf("%d stats have sharers", len(st.sharers))
	}
	sharer.Close()
	if n := st.Len(KindCounter); n != 1 || maker.Counter("last") != last {
		t.Errorf("%d counters after the end of a scope that held none", n)
	}
}
