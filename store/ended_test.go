package store_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// received sums what snapshots report by name.
type received struct {
	counters, values map[string]uint64
	gauges           map[string]uint64
}

func newReceived() *received {
	return &received{make(map[string]uint64), make(map[string]uint64), make(map[string]uint64)}
}

func (r *received) take(snap *store.Snapshot) {
	snap.CounterChanges(func(c *store.Cursor, d uint64) bool { r.counters[c.Name()] += d; return true })
	snap.GaugeChanges(func(c *store.Cursor) bool { r.gauges[c.Name()] = c.Uint(); return true })
	snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool {
		r.values[c.Name()] += h.Interval.Count()
		return true
	})
}

func TestSnapshotKeepsChangesOfStatsThatEndLater(t *testing.T) {
	for _, end := range []struct {
		name string
		f    func(*store.Store, *store.Scope)
	}{
		{"close", func(_ *store.Store, sc *store.Scope) { sc.Close() }},
		{"reject", func(st *store.Store, _ *store.Scope) { st.SetReject(func(string) bool { return true }) }},
		{"remove", func(st *store.Store, _ *store.Scope) { st.RemoveNetwork(func(string) bool { return true }) }},
		{"evict", func(st *store.Store, _ *store.Scope) { st.Sweep(true); st.Sweep(true); st.Sweep(true) }},
	} {
		for _, before := range []bool{false, true} {
			if before && end.name == "evict" {
				continue // stats with changes are not evicted
			}
			t.Run(fmt.Sprintf("%s/before=%t", end.name, before), func(t *testing.T) {
				st := store.New(store.Options{})
				st.KeepEnded()
				symbols := st.Symbols().NumSymbols()
				sc := st.ScopeWith("s", store.ScopeOptions{Network: true, Evict: true})
				sc.Counter("c").Add(42)
				sc.Gauge("g").Set(7)
				h := sc.Histogram("h", store.Unspecified)
				h.Record(3)
				if before {
					end.f(st, sc)
				}
				snap := st.Flush(store.FlushOptions{})
				if !before {
					end.f(st, sc)
				}
				if n := st.Len(store.KindCounter) + st.Len(store.KindGauge) + st.Len(store.KindHistogram); n != 0 {
					t.Fatalf("%d stats are left", n)
				}
				for range 2 { // two sinks
					got := newReceived()
					got.take(snap)
					if got.counters["s.c"] != 42 || !before && got.gauges["s.g"] != 7 || got.values["s.h"] != 1 {
						t.Errorf("the snapshot has %v", got)
					}
				}
				snap.Close()
				snap = st.Flush(store.FlushOptions{})
				if c, g, h := snap.Changed(); c+g+h != 0 {
					t.Errorf("the next snapshot has %d, %d and %d changes, want none", c, g, h)
				}
				snap.Close()
				if n := st.Symbols().NumSymbols(); n != symbols {
					t.Errorf("%d symbols, %d before", n, symbols)
				}
			})
		}
	}
}

func TestSnapshotDoesNotChange(t *testing.T) {
	st := store.New(store.Options{})
	c, g, f := st.Root().Counter("c"), st.Root().Gauge("g"), st.Root().FloatGauge("f")
	h, s := st.Root().Histogram("h", store.Unspecified), st.Root().Text("s")
	write := func(n uint64) {
		c.Add(n)
		g.Set(n)
		_ = f.Set(float64(n))
		h.Record(n)
		s.Set(fmt.Sprint(n))
	}
	write(1)
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	write(20)
	st.Flush(store.FlushOptions{}).Close()
	var got []string
	snap.CounterChanges(func(c *store.Cursor, d uint64) bool {
		got = append(got, fmt.Sprint(c.Name(), d, c.Uint()))
		return true
	})
	snap.GaugeChanges(func(c *store.Cursor) bool { got = append(got, fmt.Sprint(c.Name(), c.Float())); return true })
	snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool {
		got = append(got, fmt.Sprint(c.Name(), h.Interval.Sum(), h.Cumulative.Count()))
		return true
	})
	snap.Texts(func(c *store.Cursor, v string) bool { got = append(got, c.Name()+v); return true })
	equal(t, got, []string{"c1 1", "g1", "f1", "h1 1", "s1"})
}

// TestRandomEndsLoseNothing runs random operations on stats that end in all
// ways, and compares the sums of all snapshots with the sums of the writes.
func TestRandomEndsLoseNothing(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1e9, 0)
		st := store.New(store.Options{Now: func() time.Time { return now }})
		st.KeepEnded()
		options := []store.ScopeOptions{
			{}, {Evict: true}, {Network: true}, {TTL: store.TTL{Counter: 2 * time.Second, Histogram: time.Second}},
		}
		scopes := make([]*store.Scope, len(options))
		for i, o := range options {
			scopes[i] = st.ScopeWith(fmt.Sprint("s", i), o)
		}
		var open []*store.Snapshot
		got, want := newReceived(), newReceived()
		flush := func() { open = append(open, st.Flush(store.FlushOptions{SkipHistograms: rnd.IntN(4) == 0})) }
		drain := func() {
			for _, snap := range open {
				got.take(snap)
				snap.Close()
			}
			open = nil
		}
		for range 400 {
			i := rnd.IntN(len(scopes))
			name := fmt.Sprint("n", rnd.IntN(5))
			full := fmt.Sprintf("s%d.%s", i, name)
			switch rnd.IntN(12) {
			case 0:
				scopes[i].Close()
				scopes[i] = st.ScopeWith(fmt.Sprint("s", i), options[i])
			case 1:
				st.Sweep(rnd.IntN(2) == 0)
				now = now.Add(time.Duration(rnd.IntN(3)) * time.Second)
			case 2:
				flush()
			case 3:
				drain()
			case 4:
				st.RemoveNetwork(func(string) bool { return rnd.IntN(2) == 0 })
			case 5:
				st.View().Close()
			case 6, 7:
				scopes[i].Histogram(name+"h", store.Unspecified).Record(1)
				want.values[full+"h"]++
			default:
				scopes[i].Counter(name).Add(2)
				want.counters[full] += 2
			}
		}
		open = append(open, st.Flush(store.FlushOptions{}))
		drain()
		if fmt.Sprint(got.counters) != fmt.Sprint(want.counters) || fmt.Sprint(got.values) != fmt.Sprint(want.values) {
			t.Fatalf("seed %d: snapshots report\n%v %v, want\n%v %v", seed, got.counters, got.values, want.counters, want.values)
		}
	}
}

// TestAddByNameIsNotLost asks for a counter by name before each increment while
// flushes and sweeps run. No sweep may begin twice between a lookup and the
// increment that follows, as in a program whose sweeps are seconds apart.
func TestAddByNameIsNotLost(t *testing.T) {
	const callers, each = 4, 4000
	st := store.New(store.Options{})
	sc := st.ScopeWith("", store.ScopeOptions{Evict: true})
	var stepping sync.RWMutex // held for reading from a lookup to its increment
	got := newReceived()
	flush := func() {
		snap := st.Flush(store.FlushOptions{})
		got.take(snap)
		snap.Close()
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				stepping.RLock()
				sc.Counter(fmt.Sprint("c", i%7)).Inc()
				stepping.RUnlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		st.Sweep(true)
		flush()
		stepping.Lock()
		//lint:ignore SA2001 waits for the lookups that began before the sweep
		stepping.Unlock()
	}
	flush()
	var sum uint64
	for _, n := range got.counters {
		sum += n
	}
	if sum != callers*each {
		t.Errorf("%d increments were reported, want %d", sum, callers*each)
	}
}

func TestSweepSparesStatsLookedUpSinceTheLast(t *testing.T) {
	now := time.Unix(1e9, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	for name, o := range map[string]store.ScopeOptions{"evict": {Evict: true}, "ttl": {TTL: store.TTL{Counter: time.Second}}} {
		sc := st.ScopeWith(name, o)
		for range 2 { // the second time, lookups are remembered
			sc.Counter("c").Inc()
			sc.Counter("c")
			deltas(st)
			st.Sweep(true)
			now = now.Add(time.Minute)
			c := sc.Counter("c")
			st.Sweep(true)
			c.Inc()
			if got := deltas(st)[name+".c"]; got != 1 {
				t.Errorf("%s: %d increments after a lookup and a sweep were reported, want 1", name, got)
			}
		}
		for range 2 {
			now = now.Add(time.Minute)
			st.Sweep(true)
		}
		if n := st.Len(store.KindCounter); n != 0 {
			t.Errorf("%s: %d counters are left", name, n)
		}
	}
}

// TestEndedValuesAreFreed: a block stays as long as one of its stats lives, but the large
// values of the others do not.
func TestEndedValuesAreFreed(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	sc := st.ScopeWith("", store.ScopeOptions{TTL: store.TTL{Histogram: time.Minute, Text: time.Minute}})
	const n = 10
	var hists [n]weak.Pointer[store.Histogram]
	var texts [n]weak.Pointer[store.TextReadout]
	for i := range n {
		h, x := sc.Histogram(fmt.Sprint("h", i), store.Milliseconds), sc.Text(fmt.Sprint("t", i))
		h.Record(1)
		x.Set("a")
		hists[i], texts[i] = weak.Make(h), weak.Make(x)
	}
	v := st.View()
	for range 2 {
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(false)
		now = now.Add(2 * time.Minute)
		sc.Histogram("h3", store.Milliseconds).Record(2)
		sc.Text("t3").Set("b")
	}
	left := func() (n int) {
		runtime.GC()
		for i := range hists {
			if hists[i].Value() != nil {
				n++
			}
			if texts[i].Value() != nil {
				n++
			}
		}
		return n
	}
	if got := left(); got != 2*n {
		t.Errorf("%d values are left while a view is open, want %d", got, 2*n)
	}
	v.Close()
	if got := left(); got != 2 {
		t.Errorf("%d values are left, want those of the two stats that live", got)
	}
	st.Flush(store.FlushOptions{}).Close()
	c, _ := st.View().Find("h3")
	if got := c.Histogram().Snapshot().Cumulative.Count(); got != 3 || sc.Text("t3").Value() != "b" {
		t.Errorf("the stat that lives has %d values", got)
	}
}

// TestRemainsOfStatsInAView: received stats that ended take memory as long as a view that
// can have them is open, such as that of a sink that does not return.
func TestRemainsOfStatsInAView(t *testing.T) {
	st := store.New(store.Options{})
	received, own := st.ScopeWith("r", store.ScopeOptions{Network: true}), st.Scope("own")
	v := st.View()
	for i := range 100 {
		received.Counter(fmt.Sprint("c", i)).Inc()
		own.Counter(fmt.Sprint("c", i)).Inc()
	}
	h := received.Histogram("h", store.Unspecified)
	h.Record(1)
	size := int64(h.Bytes())
	received.Close()
	own.Close()
	late := st.View()
	if got := st.NetworkRemains(); got < 100*50+size || got > 100*100+2*size {
		t.Errorf("%d bytes remain of 100 counters and a histogram of %d bytes", got, size)
	}
	v.Close()
	if got := st.NetworkRemains(); got != 0 {
		t.Errorf("%d bytes remain after the view was closed", got)
	}
	late.Close()
}
