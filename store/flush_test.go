package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/store"
)

// deltas flushes and returns what the counters got.
func deltas(st *store.Store) map[string]uint64 {
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	got := map[string]uint64{}
	snap.CounterChanges(func(c *store.Cursor, d uint64) bool {
		got[c.Name()] += d
		return true
	})
	return got
}

func TestFlushReportsDeltas(t *testing.T) {
	st := store.New(store.Options{})
	a, b := st.Root().Counter("a"), st.Root().Counter("b")
	a.Add(3)
	b.Add(0)
	if got, want := deltas(st), (map[string]uint64{"a": 3}); !maps.Equal(got, want) {
		t.Errorf("first flush %v, want %v", got, want)
	}
	if got := deltas(st); len(got) != 0 {
		t.Errorf("flush without changes %v", got)
	}
	a.Inc()
	b.Inc()
	if got, want := deltas(st), (map[string]uint64{"a": 1, "b": 1}); !maps.Equal(got, want) {
		t.Errorf("third flush %v, want %v", got, want)
	}
}

// TestSkippedHistograms: a flush that skips histograms leaves their values for the next one,
// except for histograms that have ended, which get no other.
func TestSkippedHistograms(t *testing.T) {
	st := store.New(store.Options{})
	st.KeepEnded()
	sc := st.Scope("x")
	ending, stays := sc.Histogram("ending", store.Unspecified), st.Root().Histogram("stays", store.Unspecified)
	sc.Histogram("empty", store.Unspecified)
	merged := func(skip bool) map[string]uint64 {
		snap := st.Flush(store.FlushOptions{SkipHistograms: skip})
		defer snap.Close()
		got := map[string]uint64{}
		snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool {
			got[c.Name()] = h.Interval.Count()
			return true
		})
		return got
	}
	ending.Record(1)
	stays.Record(1)
	if got := merged(true); len(got) != 0 || stays.Snapshot().Used {
		t.Errorf("a flush that skips histograms reports %v", got)
	}
	sc.Close()
	stays.Record(2)
	if got, want := merged(true), (map[string]uint64{"x.ending": 1}); !maps.Equal(got, want) {
		t.Errorf("after the end: %v, want %v", got, want)
	}
	if got, want := merged(false), (map[string]uint64{"stays": 2}); !maps.Equal(got, want) {
		t.Errorf("the next flush: %v, want %v", got, want)
	}
}

// TestFlushOfHistogramsBehindOthers flushes only histograms, which were made before,
// between and behind other stats.
func TestFlushOfHistogramsBehindOthers(t *testing.T) {
	st := store.New(store.Options{})
	var all []*store.Histogram
	for i := range 3 {
		c := st.Root().Counter(fmt.Sprint("c", i))
		c.Inc()
		h := st.Root().Histogram(fmt.Sprint("h", i), store.Unspecified)
		h.Record(1)
		all = append(all, h)
	}
	st.Flush(store.FlushOptions{HistogramsOnly: true}).Close()
	for i, h := range all {
		if n := h.Snapshot().Interval.Count(); n != 1 {
			t.Errorf("histogram %d has %d values, want 1", i, n)
		}
	}
	if got := deltas(st); got["c0"] != 1 || got["c2"] != 1 {
		t.Errorf("increments of counters are gone: %v", got)
	}
}

func TestResetKeepsPendingDelta(t *testing.T) {
	st := store.New(store.Options{})
	a := st.Root().Counter("a")
	a.Add(3)
	st.ResetCounters()
	if a.Value() != 0 || a.Total() != 3 {
		t.Errorf("after reset: value %d, total %d, want 0 and 3", a.Value(), a.Total())
	}
	a.Add(2)
	if got, want := deltas(st), (map[string]uint64{"a": 5}); !maps.Equal(got, want) {
		t.Errorf("flush after reset %v, want %v", got, want)
	}
	if a.Value() != 2 {
		t.Errorf("value %d, want 2", a.Value())
	}
}

func TestResetClearsRecentLookups(t *testing.T) {
	st := store.New(store.Options{})
	st.Symbols().EnableRecent()
	st.Root().Counter("a")
	st.ResetCounters()
	if n, rows := st.Symbols().RecentTotal(), st.Symbols().Recent(); n != 0 || len(rows) != 0 {
		t.Errorf("after a reset: total %d, rows %v", n, rows)
	}
}

func TestSnapshotTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	for i, d := range []time.Duration{5 * time.Second, 7 * time.Second, 0} {
		now = now.Add(d)
		snap := st.Flush(store.FlushOptions{})
		if snap.Last {
			t.Errorf("flush %d is the last one", i+1)
		}
		if snap.Seq != uint64(i+1) || !snap.Time.Equal(now) || snap.Interval != d || !st.LastFlush().Equal(now) {
			t.Errorf("flush %d at %v after %v, want %d at %v after %v", snap.Seq, snap.Time, snap.Interval, i+1, now, d)
		}
		snap.Close()
	}
	snap := st.Flush(store.FlushOptions{Last: true})
	defer snap.Close()
	if !snap.Last {
		t.Error("the last flush is not marked")
	}
}

// TestSnapshotHolds follows what a sink gets, flush by flush.
func TestSnapshotHolds(t *testing.T) {
	st := store.New(store.Options{})
	r := st.Root()
	shown, hidden, idle := r.Gauge("shown"), r.GaugeWithMode("hidden", store.HiddenAccumulate), r.Gauge("idle")
	float, hist, text := r.FloatGauge("float"), r.Histogram("hist", store.Bytes), r.Text("text")
	r.Text("unset")
	check := func(want ...string) {
		t.Helper()
		snap := st.Flush(store.FlushOptions{})
		defer snap.Close()
		var got []string
		note := func(kind string) func(c *store.Cursor) bool {
			return func(c *store.Cursor) bool { got = append(got, kind+" "+c.Name()); return true }
		}
		snap.GaugeChanges(note("gauge"))
		snap.HiddenGaugeChanges(note("hidden"))
		histogramNote, textNote := note("histogram"), note("text")
		snap.HistogramChanges(func(c *store.Cursor, _ *histogram.Snapshot) bool { return histogramNote(c) })
		snap.Texts(func(c *store.Cursor, _ string) bool { return textNote(c) })
		equal(t, got, want)
	}
	check()
	shown.Set(0)
	hidden.Inc()
	float.Set(-1)
	hist.Record(3)
	text.Set("")
	check("gauge shown", "gauge float", "hidden hidden", "histogram hist", "text text")
	check("text text")
	shown.Set(0) // as it was, but written
	float.Add(0)
	check("gauge shown", "gauge float", "text text")
	idle.Sub(0)
	st.ResetCounters()
	check("gauge idle", "text text")
	if hist.Snapshot().Cumulative.Count() != 1 || text.Value() != "" || hidden.Value() != 1 || float.Value() != -1 {
		t.Error("a reset of the counters changes other stats")
	}
}

// TestHotCounters adds so often that slots get their own pages.
func TestHotCounters(t *testing.T) {
	st := store.New(store.Options{})
	var cs []*store.Counter
	for i := range 2000 {
		cs = append(cs, st.Root().Counter(fmt.Sprintf("c%d", i)))
	}
	for range 100 {
		for i, c := range cs {
			c.Add(uint64(i))
		}
	}
	got := deltas(st)
	for i, c := range cs {
		if want := uint64(i) * 100; c.Value() != want || got[fmt.Sprintf("c%d", i)] != want {
			t.Fatalf("counter %d: value %d, delta %d, want %d", i, c.Value(), got[fmt.Sprintf("c%d", i)], want)
		}
	}
	cs[7].Inc()
	if got, want := deltas(st), (map[string]uint64{"c7": 1}); !maps.Equal(got, want) {
		t.Errorf("flush after one more %v, want %v", got, want)
	}
}

// TestSweepBehindEndedStats: stats that have ended, before, between and behind others, keep a
// sweep from none of the others.
func TestSweepBehindEndedStats(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	net := st.ScopeWith("", store.ScopeOptions{Network: true, TTL: store.TTL{Counter: time.Second, Gauge: time.Second}})
	for i := range 6 {
		net.Counter(fmt.Sprint("c", i)).Inc()
		net.Gauge(fmt.Sprint("g", i)).Set(1)
	}
	st.Flush(store.FlushOptions{}).Close()
	st.RemoveNetwork(func(name string) bool { return strings.ContainsAny(name, "035") })
	st.Sweep(false) // lets lookups pass
	now = now.Add(time.Hour)
	st.Flush(store.FlushOptions{}).Close()
	network, own := st.Sweep(false)
	if network[store.KindCounter] != 3 || network[store.KindGauge] != 3 || own != 0 || len(allNames(st)) != 0 {
		t.Errorf("%v and %d ended, %q are left", network, own, allNames(st))
	}
}

// TestSweepCountsWhatEnds: by kind for network input, and all of the program together.
func TestSweepCountsWhatEnds(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	ttl := store.TTL{Counter: time.Second, Gauge: time.Second, Text: time.Second, Histogram: time.Second}
	for _, network := range []bool{false, true} {
		sc := st.ScopeWith("", store.ScopeOptions{Network: network, TTL: ttl})
		for i := range 4 {
			sc.Counter(fmt.Sprint("c", i))
		}
		for i := range 3 {
			sc.Text(fmt.Sprint("t", i))
		}
		sc.Gauge("g0")
		sc.FloatGauge("g1")
		sc.Histogram("h", store.Unspecified)
	}
	var none [4]int
	if network, own := st.Sweep(false); network != none || own != 0 { // only lets lookups pass
		t.Errorf("%v and %d ended at once", network, own)
	}
	now = now.Add(time.Minute)
	network, own := st.Sweep(false)
	if want := [4]int{store.KindCounter: 4, store.KindGauge: 2, store.KindText: 3, store.KindHistogram: 1}; network != want || own != 10 {
		t.Errorf("%v and %d ended, want %v and 10", network, own, want)
	}
	if network, own := st.Sweep(true); network != none || own != 0 {
		t.Errorf("%v and %d ended twice", network, own)
	}
}

// TestOtherSweepsDoNotCount: a sweep without eviction between two with it changes nothing.
func TestOtherSweepsDoNotCount(t *testing.T) {
	st := store.New(store.Options{})
	update := updater(st.ScopeWith("e", store.ScopeOptions{Evict: true}), "c", "g", "h", "t")
	update()
	for i, want := range []int{4, 0} {
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(false)
		st.Sweep(false)
		st.Sweep(true)
		if got := len(allNames(st)); got != want {
			t.Errorf("after %d sweeps with eviction %d stats are left, want %d", i+1, got, want)
		}
	}
}

// TestSweepSparesUnflushedChanges of every kind, though a watch has reported them.
func TestSweepSparesUnflushedChanges(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("e", store.ScopeOptions{Evict: true})
	c, g, f, h, text := sc.Counter("c"), sc.Gauge("g"), sc.FloatGauge("f"), sc.Histogram("h", store.Unspecified), sc.Text("t")
	st.Sweep(true)
	w := st.Watch()
	defer w.Close()
	c.Inc()
	g.Set(1)
	_ = f.Set(1)
	h.Record(1)
	text.Set("1")
	w.Poll()
	st.Sweep(true)
	equal(t, allNames(st), []string{"e.c", "e.f", "e.g", "e.h", "e.t"})
	st.Flush(store.FlushOptions{}).Close()
	st.Sweep(true)
	equal(t, allNames(st), []string{"e.c", "e.f", "e.g", "e.h", "e.t"})
	st.Sweep(true)
	equal(t, allNames(st), nil)
}

func TestEvictionTakesTwoSweeps(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("e", store.ScopeOptions{Evict: true})
	st.Root().Counter("kept")
	c := sc.Counter("c")
	g := sc.Gauge("g")
	g.Set(4)
	c.Inc()
	round := func() {
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(true)
	}
	round()
	equal(t, names(st, store.Scalars), []string{"e.c", "e.g", "kept"})
	g.Set(4) // the same value again counts as an update
	round()
	equal(t, names(st, store.Scalars), []string{"e.g", "kept"})
	round()
	equal(t, names(st, store.Scalars), []string{"kept"})
	if v := sc.Counter("c").Value(); v != 0 {
		t.Errorf("a stat that came back has value %d, want 0", v)
	}
}

func TestTTL(t *testing.T) {
	const ttl = 9500 * time.Millisecond // as good as 10 s
	for _, tt := range []struct {
		name string
		ttl  store.TTL
	}{
		{"counter", store.TTL{Counter: ttl}},
		{"gauge", store.TTL{Gauge: ttl}},
		{"histogram", store.TTL{Histogram: ttl}},
		{"text", store.TTL{Text: ttl}},
		{"none", store.TTL{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			st := store.New(store.Options{Now: func() time.Time { return now }})
			st.Root().Counter("own") // never expires, before the others
			sc := st.ScopeWith("", store.ScopeOptions{Network: true, TTL: tt.ttl})
			update := updater(sc, "counter", "gauge", "histogram", "text")
			step := func(d time.Duration) {
				now = now.Add(d)
				st.Flush(store.FlushOptions{}).Close()
				st.Sweep(false)
			}
			update()
			step(8 * time.Second)
			update()
			step(8 * time.Second)
			step(10 * time.Second)
			equal(t, allNames(st), []string{"counter", "gauge", "histogram", "own", "text"})
			now = now.Add(-time.Hour)
			st.Sweep(false) // a clock that was set back ends nothing
			now = now.Add(time.Hour)
			equal(t, allNames(st), []string{"counter", "gauge", "histogram", "own", "text"})
			step(time.Second)
			equal(t, allNames(st), slices.DeleteFunc([]string{"counter", "gauge", "histogram", "own", "text"},
				func(n string) bool { return n == tt.name }))
		})
	}
}

// TestTTLWhenTheClockIsSet sets the clock of the system by a day, in both directions:
// stats expire when their time has really passed, neither at once nor a day later.
func TestTTLWhenTheClockIsSet(t *testing.T) {
	now := time.Now()
	st := store.New(store.Options{Now: func() time.Time { return now }})
	sc := st.ScopeWith("", store.ScopeOptions{TTL: store.TTL{Counter: 10 * time.Second}})
	step := func(d time.Duration) {
		now = now.Add(d)
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(false)
	}
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		sc.Counter("c").Inc()
		step(time.Second)
		now = clocktest.Set(now, by)
		step(9 * time.Second)
		if !st.Has(false, "c") {
			t.Errorf("clock set by %v: the counter ended before its time", by)
		}
		step(3 * time.Second)
		step(3 * time.Second)
		if st.Has(false, "c") {
			t.Errorf("clock set by %v: the counter stays longer than its time", by)
		}
	}
}

// TestIntervalWhenTheClockIsSet: a clock without a monotonic reading that is set back makes
// no interval negative, which would make the sum of several too short.
func TestIntervalWhenTheClockIsSet(t *testing.T) {
	now := time.Unix(100_000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	w := st.Watch()
	defer w.Close()
	var joined *store.Snapshot
	var changes []*store.Changes
	for _, d := range []time.Duration{time.Second, -time.Hour, time.Second} {
		now = now.Add(d)
		changes = append(changes, w.Poll())
		snap := st.Flush(store.FlushOptions{})
		defer snap.Close()
		if joined == nil {
			joined = snap
		} else {
			joined = joined.Join(snap)
		}
		if want := max(d, 0); snap.Interval != want || changes[len(changes)-1].Interval != want {
			t.Errorf("%v passed: intervals of %v and %v, want %v", d, snap.Interval, changes[len(changes)-1].Interval, want)
		}
	}
	if got := store.MergeChanges(changes).Interval; got != 2*time.Second || joined.Interval != got {
		t.Errorf("together %v and %v, want 2s", joined.Interval, got)
	}
}

// updater makes a stat of each kind in sc and returns what updates them all.
func updater(sc *store.Scope, counter, gauge, histogram, text string) func() {
	c, g := sc.Counter(counter), sc.Gauge(gauge)
	h, r := sc.Histogram(histogram, store.Bytes), sc.Text(text)
	return func() {
		c.Inc()
		g.Set(1)
		h.Record(1)
		r.Set("as before")
	}
}

// allNames lists the stats of all kinds by name.
func allNames(st *store.Store) (all []string) {
	for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
		all = append(all, names(st, set)...)
	}
	slices.Sort(all)
	return all
}

// TestSweepSparesWhatWasJustWritten writes between a flush and a sweep.
func TestSweepSparesWhatWasJustWritten(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.ScopeWith("e", store.ScopeOptions{Evict: true})
	update := updater(sc, "c", "g", "h", "t")
	st.Flush(store.FlushOptions{}).Close()
	update()
	st.Sweep(true)
	equal(t, allNames(st), []string{"e.c", "e.g", "e.h", "e.t"})
	if got := deltas(st); got["e.c"] != 1 {
		t.Errorf("the increment is lost: %v", got)
	}
	if n := sc.Histogram("h", store.Bytes).Snapshot().Interval.Count(); n != 1 {
		t.Errorf("the histogram has %d values, want 1", n)
	}
	st.Sweep(true)
	equal(t, allNames(st), []string{"e.c", "e.g", "e.h", "e.t"})
	st.Sweep(true)
	equal(t, allNames(st), nil)
}

// TestOnlyEvictingScopesLoseStats: what other scopes hold stays, also inside of
// an evicting one, unless they inherit that.
func TestOnlyEvictingScopesLoseStats(t *testing.T) {
	st := store.New(store.Options{})
	e := st.ScopeWith("e", store.ScopeOptions{Evict: true})
	updater(e.Scope("in"), "c", "g", "h", "t")()
	updater(e.ScopeWith("out", store.ScopeOptions{}), "c", "g", "h", "t")()
	// Stats with a time to live record their updates like evicting ones.
	updater(st.ScopeWith("ttl", store.ScopeOptions{TTL: store.TTL{Counter: time.Hour, Gauge: time.Hour, Histogram: time.Hour, Text: time.Hour}}), "c", "g", "h", "t")()
	for range 3 {
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(true)
	}
	equal(t, allNames(st), []string{"e.out.c", "e.out.g", "e.out.h", "e.out.t", "ttl.c", "ttl.g", "ttl.h", "ttl.t"})
}

// TestChurnGivesMemoryBack makes and ends stats over and over.
func TestChurnGivesMemoryBack(t *testing.T) {
	st := store.New(store.Options{})
	var symbols int
	for round := range 50 {
		sc := st.Scope("churn")
		for i := range 2000 {
			sc.Counter(fmt.Sprintf("r%d.n%d", round, i)).Inc()
		}
		names(st, store.Scalars)
		sc.Close()
		st.Flush(store.FlushOptions{}).Close()
		st.Sweep(false)
		if round == 0 {
			symbols = st.Symbols().NumSymbols()
		}
	}
	if got := st.Symbols().NumSymbols(); got != symbols {
		t.Errorf("%d symbols after 50 rounds, %d after the first", got, symbols)
	}
	if got := st.BlocksInUse(); got > 2 {
		t.Errorf("%d blocks in use after all stats ended", got)
	}
}

func TestViewOutlivesItsStats(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Scope("s")
	for i := range 3000 {
		sc.Counter(fmt.Sprintf("n%04d", i))
	}
	v := st.View()
	c := v.ByName(store.Scalars)
	for range 10 {
		c.Next()
	}
	sc.Close()
	for i := range 3000 {
		st.Scope("t").Counter(fmt.Sprintf("m%d", i))
	}
	if got := c.Name(); got != "s.n0009" {
		t.Errorf("the stat under the cursor is now called %q", got)
	}
	rest := 0
	for c.Next() {
		rest++
		if want := fmt.Sprintf("s.n%04d", 9+rest); c.Name() != want {
			t.Fatalf("a stat that ended is now called %q, want %q", c.Name(), want)
		}
	}
	if rest > 32 {
		t.Errorf("the cursor went over %d stats that ended", rest)
	}
	v.Close()
	v.Close()
}
