package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestSnapshotListsEndWhenAsked: each list of a snapshot has all of its stats, and ends with
// the call that returns false. Hidden gauges stand first among the gauges.
func TestSnapshotListsEndWhenAsked(t *testing.T) {
	const n = 70 // more than a batch and more than a word of bits
	st := store.New(store.Options{})
	st.KeepNames()
	sc, root := st.Scope("ending"), st.Root()
	for i := range n {
		root.GaugeWithMode(fmt.Sprint("a.hidden", i), store.HiddenAccumulate).Set(uint64(i) + 1)
	}
	for i := range n {
		root.Counter(fmt.Sprint("c", i)).Add(uint64(i) + 1)
		root.Gauge(fmt.Sprint("g", i)).Set(uint64(i) + 1)
		root.Text(fmt.Sprint("t", i)).Set(fmt.Sprint(i + 1))
		root.Histogram(fmt.Sprint("h", i), store.Unspecified).Record(uint64(i) + 1)
		sc.Text(fmt.Sprint(i))
	}
	sc.Close()
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	count := func(h *histogram.Snapshot) uint64 { return uint64(h.Cumulative.Max()) }
	for name, list := range map[string]struct {
		all int
		do  func(yield func(value uint64) bool)
	}{
		"CounterChanges": {n, func(yield func(uint64) bool) {
			snap.CounterChanges(func(c *store.Cursor, d uint64) bool { return yield(d) })
		}},
		"CounterDeltas": {n, func(yield func(uint64) bool) {
			snap.CounterDeltas(func(_, total, d uint64) bool { return yield((total + d) / 2) })
		}},
		"GaugeChanges": {n, func(yield func(uint64) bool) {
			snap.GaugeChanges(func(c *store.Cursor) bool { return yield(c.Uint()) })
		}},
		"HiddenGaugeChanges": {n, func(yield func(uint64) bool) {
			snap.HiddenGaugeChanges(func(c *store.Cursor) bool { return yield(c.Uint()) })
		}},
		"GaugeValues": {2 * n, func(yield func(uint64) bool) {
			snap.GaugeValues(func(_, raw uint64) bool { return yield(raw) })
		}},
		"Texts": {n, func(yield func(uint64) bool) {
			snap.Texts(func(c *store.Cursor, text string) bool {
				var v uint64
				if _, err := fmt.Sscan(text, &v); err != nil {
					t.Error(err)
				}
				return yield(v)
			})
		}},
		"HistogramChanges": {n, func(yield func(uint64) bool) {
			snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool { return yield(count(h)) })
		}},
		"HistogramIntervals": {n, func(yield func(uint64) bool) {
			snap.HistogramIntervals(func(_ uint64, h *histogram.Snapshot) bool { return yield(count(h)) })
		}},
		"Ended": {n, func(yield func(uint64) bool) {
			snap.Ended(func(c *store.Cursor) bool {
				var v uint64
				if _, err := fmt.Sscanf(c.Name(), "ending.%d", &v); err != nil {
					t.Error(err)
				}
				return yield(v + 1)
			})
		}},
	} {
		for _, stop := range []int{1, 2, list.all, list.all + 1} {
			calls, sum := 0, uint64(0)
			list.do(func(v uint64) bool { calls++; sum += v; return calls < stop })
			if want := min(stop, list.all); calls != want {
				t.Errorf("%s: %d calls, want %d", name, calls, want)
			}
			if want := uint64(list.all / n * n * (n + 1) / 2); stop > list.all && sum != want {
				t.Errorf("%s: the values add up to %d, want %d", name, sum, want)
			}
		}
	}
	if c, g, h := snap.Changed(); c != n || g != 2*n || h != n {
		t.Errorf("%d counters, %d gauges and %d histograms changed", c, g, h)
	}
}

// TestTotalsOfASnapshot: a snapshot with totals has the values of all stats as of the flush, but
// of no younger stat. Without totals it has no values of stats.
func TestTotalsOfASnapshot(t *testing.T) {
	st := store.New(store.Options{})
	root := st.Root()
	c, idle, g := root.Counter("c"), root.Counter("idle"), root.Gauge("g")
	f, h := root.FloatGauge("f"), root.Histogram("h", store.Unspecified)
	write := func() {
		c.Add(3)
		g.Sub(2)
		_ = f.Set(-1.5)
		h.Record(4)
	}
	idle.Add(9)
	write()
	st.Flush(store.FlushOptions{}).Close()
	write()
	for _, totals := range []bool{true, false} {
		snap := st.Flush(store.FlushOptions{Totals: totals})
		before := c.Total()
		write()
		_ = f.Set(7)
		for i := range 20 { // beyond the words that a flush reads at once
			root.Counter(fmt.Sprint("young", totals, i)).Inc()
		}
		root.Histogram(fmt.Sprint("young_h", totals), store.Unspecified).Record(1)
		v := st.View()
		for name, want := range map[string]float64{
			"c": float64(before), "idle": 9, "g": -float64(before) / 3 * 2, "f": -1.5, fmt.Sprint("young", totals, 19): -1,
		} {
			cur, ok := v.Find(name)
			if !ok {
				t.Fatal(name)
			}
			exists := totals && want != -1
			if x, ok := snap.Value(&cur); ok != exists || ok && x != want {
				t.Errorf("totals %t: %s is %v, %t; want %v", totals, name, x, ok, want)
			}
		}
		for name, exists := range map[string]bool{"h": totals, fmt.Sprint("young_h", totals): false} {
			cur, _ := v.Find(name)
			if x, ok := snap.Histogram(&cur); ok != exists || ok && x.Cumulative.Count() != before/3 {
				t.Errorf("totals %t: histogram %s is there: %t", totals, name, ok)
			}
		}
		v.Close()
		snap.Close()
		st.Flush(store.FlushOptions{}).Close()
		_ = f.Set(-1.5)
	}
}

// TestReferences: references lead to their stats and to the totals of the last flush, and
// to nothing once the stats have ended.
func TestReferences(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Scope("x")
	var counters []*store.Counter
	for i := range 1500 { // two blocks
		counters = append(counters, sc.Counter(fmt.Sprint("c", i)))
		counters[i].Add(uint64(i) + 1)
	}
	sc.Gauge("g").Set(5)
	st.Flush(store.FlushOptions{}).Close()
	var refs []uint64
	var gauge uint64
	v := st.View()
	for i := range counters {
		counters[i].Inc() // not flushed
		c, ok := v.Find(fmt.Sprint("x.c", i))
		if !ok {
			t.Fatal(i)
		}
		if got := c.Flushed(); got != uint64(i)+1 {
			t.Errorf("counter %d had %d at the flush, want %d", i, got, i+1)
		}
		refs = append(refs, c.Ref())
	}
	c, _ := v.Find("x.g")
	if gauge = c.Ref(); c.Flushed() != 0 {
		t.Errorf("a gauge had a total of %d", c.Flushed())
	}
	v.Close()
	var totals [1024]uint64
	for i, ref := range refs {
		if i%100 != 0 && i < 1490 {
			continue
		}
		if !st.HasRefs(ref) || st.HasRefs(ref+1<<32) || st.HasRefs(1<<20) {
			t.Errorf("reference %d of counter %d leads nowhere, or others lead somewhere", ref, i)
		}
		if st.FlushedTotals(ref, &totals); totals[ref&1023] != uint64(i)+1 {
			t.Errorf("counter %d had %d, want %d", i, totals[ref&1023], i+1)
		}
		if st.FlushedTotals(ref+1<<32, &totals); totals != [1024]uint64{} {
			t.Errorf("another reference than that of counter %d has totals", i)
		}
	}
	if st.FlushedTotals(gauge, &totals); totals != [1024]uint64{} {
		t.Error("gauges have totals")
	}
	sc.Close()
	st.Flush(store.FlushOptions{}).Close()
	st.View().Close()
	if st.HasRefs(refs[0]) {
		t.Error("a full block of ended counters is still there")
	}
}

// TestTTLOfEachKind: whole seconds, rounded up, for each kind by itself.
func TestTTLOfEachKind(t *testing.T) {
	for kind, ttl := range []store.TTL{{Counter: 1500 * time.Millisecond}, {Gauge: 1500 * time.Millisecond}, {Text: 1500 * time.Millisecond}, {Histogram: 1500 * time.Millisecond}} {
		now := time.Unix(1000, 0)
		st := store.New(store.Options{Now: func() time.Time { return now }})
		sc := st.ScopeWith("", store.ScopeOptions{TTL: ttl})
		sc.Counter("0").Inc()
		sc.Gauge("1").Set(1)
		sc.Text("2").Set("x")
		sc.Histogram("3", store.Unspecified).Record(1)
		there := func() (s string) {
			for k := range 4 {
				if st.Has(false, fmt.Sprint(k)) {
					s += fmt.Sprint(k)
				}
			}
			return s
		}
		for second := range 4 {
			st.Flush(store.FlushOptions{}).Close()
			st.Sweep(false)
			if got := there(); second < 2 && got != "0123" {
				t.Errorf("kind %d: only %q is there after %d seconds", kind, got, second)
			}
			now = now.Add(time.Second)
		}
		if got, want := there(), "0123"[:kind]+"0123"[kind+1:]; got != want {
			t.Errorf("kind %d: %q is there in the end, want %q", kind, got, want)
		}
	}
}

// TestWhole: counters and gauges of whole numbers are whole, and nothing else.
func TestWhole(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("c")
	st.Root().Gauge("g")
	st.Root().FloatGauge("f")
	st.Root().Text("t")
	st.Root().Histogram("h", store.Unspecified)
	v := st.View()
	defer v.Close()
	for name, want := range map[string]bool{"c": true, "g": true, "f": false, "t": false, "h": false} {
		if c, _ := v.Find(name); c.Whole() != want {
			t.Errorf("%s is whole: %t", name, c.Whole())
		}
	}
}
