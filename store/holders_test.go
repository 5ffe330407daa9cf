package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestAllHoldersLetGoOfEndedStats: a stat of two scopes that ends takes up room
// in none of them, also when its number has passed to another one.
func TestAllHoldersLetGoOfEndedStats(t *testing.T) {
	st := New(Options{})
	limit := 2 * slotsPerBlock
	maker := st.ScopeWith("", ScopeOptions{Network: true})
	sharer := st.ScopeWith("", ScopeOptions{Network: true, MaxCounters: &limit})
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
			if len(sc.stats()) != 0 || sc.counts != [kinds]int{} {
				t.Fatalf("round %d: a scope holds %d stats and counts %v", round, len(sc.stats()), sc.counts)
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

// checkHolders checks that scopes hold exactly the live stats, that counts are
// correct, and that dropped blocks are not referenced.
func checkHolders(t *testing.T, st *Store) {
	t.Helper()
	st.View().Close() // takes the dead out
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, sharers := range st.sharers {
		if !slices.IsSorted(sharers) {
			t.Fatalf("sharers %d cannot be searched", sharers)
		}
	}
	for _, sc := range st.scopes {
		var counts [kinds]int
		for _, x := range sc.stats() {
			b, i := st.at(x)
			if b == nil || !b.alive.has(i) {
				t.Fatalf("a scope with prefix %q holds a stat that ended", sc.prefix)
			}
			counts[b.variant.kind()]++
		}
		if counts != sc.counts {
			t.Fatalf("a scope with prefix %q holds %v stats and counts %v", sc.prefix, counts, sc.counts)
		}
	}
	live := 0
	for _, b := range st.eachBlock() {
		live += b.live
	}
	if live != st.stats {
		t.Fatalf("%d stats in blocks, the store counts %d", live, st.stats)
	}
	for b := range st.hot.table.Load().where {
		if st.blocks.At(int(b.index)) != b {
			t.Fatal("remembered names keep a block that was dropped")
		}
	}
}

// TestHoldersThroughAllEnds shares names between scopes of all kinds and ends
// stats in all ways, while views and snapshots delay their release.
func TestHoldersThroughAllEnds(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		now := time.Unix(1000, 0)
		st := New(Options{Now: func() time.Time { return now }})
		st.hot.most = 1 << 10
		limit := 2000
		var scopes []*Scope
		var views []*View
		ask := func(sc *Scope) {
			from := rnd.IntN(3000)
			for i := range rnd.IntN(1500) {
				name := fmt.Sprint("n.", from+i)
				switch (from + i) % 11 {
				case 0:
					sc.GaugeWithMode(name, ImportMode(rnd.IntN(3))).Set(1)
				case 1:
					sc.Histogram(name, Milliseconds)
				default:
					c, err := sc.TryCounter(name)
					if err != nil {
						continue
					}
					b, slot := c.w.home()
					enc, _ := splitRecord(b.record(slot))
					if got, want := string(st.symbols.AppendText(nil, enc)), joinName(sc.prefix, name); got != want {
						t.Fatalf("seed %d: asked for %q, got %q", seed, want, got)
					}
					c.Add(uint64(rnd.IntN(2)))
				}
			}
		}
		for step := range 300 {
			switch what := rnd.IntN(12); {
			case what == 0 || len(scopes) == 0:
				o := ScopeOptions{Network: rnd.IntN(2) == 0, Evict: rnd.IntN(3) == 0}
				if rnd.IntN(3) == 0 {
					o.TTL.Counter = 5 * time.Second
				}
				if rnd.IntN(3) == 0 {
					o.MaxCounters = &limit
				}
				scopes = append(scopes, st.ScopeWith([]string{"", "a"}[rnd.IntN(2)], o))
			case what == 1:
				i := rnd.IntN(len(scopes))
				scopes[i].Close()
				scopes = append(scopes[:i], scopes[i+1:]...)
			case what == 2:
				m := rnd.IntN(7)
				st.RemoveNetwork(func(n string) bool { return m == 0 || (len(n)+int(n[len(n)-1]))%7 == m })
			case what == 3:
				views = append(views, st.View())
			case what == 4:
				for _, v := range views {
					v.Close()
				}
				views = nil
			case what == 5:
				now = now.Add(3 * time.Second)
				st.Flush(FlushOptions{}).Close()
				st.Sweep(rnd.IntN(2) == 0)
			default:
				ask(scopes[rnd.IntN(len(scopes))])
			}
			if step%10 == 0 {
				checkHolders(t, st)
			}
		}
	}
}
