package history_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// world is a store with a history and a clock.
type world struct {
	store *store.Store
	h     *history.History
	now   time.Time
}

func newWorld(bytes int) *world {
	w := &world{now: time.Unix(1_700_000_000, 0)}
	w.store = store.New(store.Options{Now: func() time.Time { return w.now }})
	w.h = history.New(history.Config{Store: w.store, Bytes: bytes})
	return w
}

// flush lets time pass and flushes.
func (w *world) flush(d time.Duration) {
	w.now = w.now.Add(d)
	snap := w.store.Flush(store.FlushOptions{})
	w.h.Add(snap)
	snap.Close()
}

// TestTotalsOfAParent: a counter has what a parent process had flushed of it from the next
// flush on, whether it grows here or not.
func TestTotalsOfAParent(t *testing.T) {
	w := newWorld(0)
	root := w.store.Root()
	root.Counter("busy").Inc()
	root.Counter("idle")
	w.flush(time.Second)
	im := w.store.NewImport(nil)
	defer im.Close()
	for _, name := range []string{"busy", "idle"} {
		if err := im.Add(&store.ExportedStat{Name: name, Kind: store.KindCounter, Settled: 100}); err != nil {
			t.Fatal(err)
		}
	}
	root.Counter("busy").Inc()
	w.flush(time.Second)
	m, err := w.h.At(w.now)
	if err != nil {
		t.Fatal(err)
	}
	if busy, idle := w.value(t, m, "busy"), w.value(t, m, "idle"); busy != "102" || idle != "100" {
		t.Errorf("busy %s, idle %s; want 102 and 100", busy, idle)
	}
	w.find(t, "idle", func(c *store.Cursor) {
		points, _ := w.h.Series(c, time.Time{})
		if last := points[len(points)-1]; last.Raw != 100 || last.Delta != 0 {
			t.Errorf("the last point is %+v", last)
		}
	})
}

// find calls f with a cursor at a stat.
func (w *world) find(t *testing.T, name string, f func(c *store.Cursor)) {
	t.Helper()
	v := w.store.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		t.Fatalf("%s is not there", name)
	}
	f(&c)
}

// value returns a counter or gauge at a moment.
func (w *world) value(t *testing.T, m *history.Moment, name string) (text string) {
	t.Helper()
	w.find(t, name, func(c *store.Cursor) {
		c.SetRaw(m.Raw(c))
		text = string(c.AppendValue(nil))
	})
	return text
}

func (w *world) at(t *testing.T, at time.Time) *history.Moment {
	t.Helper()
	m, err := w.h.At(at)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEveryMomentIsKept compares the history with a log of values, over more than a
// day, in all steps: counters, gauges of both kinds, histograms.
func TestEveryMomentIsKept(t *testing.T) {
	w := newWorld(0)
	root := w.store.Root()
	early := root.Counter("early")
	early.Add(1 << 40) // before the history begins
	w.store.Flush(store.FlushOptions{}).Close()
	w.h = history.New(history.Config{Store: w.store})
	rnd := rand.New(rand.NewPCG(3, 4))
	c, g, f, h := root.Counter("c"), root.Gauge("g"), root.FloatGauge("f"), root.Histogram("h", store.Unspecified)
	var many []*store.Counter
	for i := range 3000 {
		many = append(many, root.Counter(fmt.Sprint("many", i)))
	}
	type entry struct {
		at                    time.Time
		c, g, f, early, other string
		count                 uint64
	}
	var log []entry
	var value entry
	for range 100_000 / 30 {
		if rnd.IntN(3) > 0 {
			c.Add(rnd.Uint64N(1000))
			g.Set(rnd.Uint64N(100))
			_ = f.Set(rnd.NormFloat64())
			h.Record(rnd.Uint64N(500))
		}
		many[rnd.IntN(len(many))].Inc()
		if rnd.IntN(100) == 0 {
			early.Inc()
		}
		w.flush(30 * time.Second)
		value = entry{at: w.now, count: h.Snapshot().Cumulative.Count()}
		for name, to := range map[string]*string{"c": &value.c, "g": &value.g, "f": &value.f, "early": &value.early, "many7": &value.other} {
			w.find(t, name, func(c *store.Cursor) { *to = string(c.AppendValue(nil)) })
		}
		log = append(log, value)
	}
	since := w.h.Since()
	if d := w.now.Sub(since); d < 24*time.Hour || d > 24*time.Hour+20*time.Minute {
		t.Errorf("complete since %v, want a day", d)
	}
	moments := 0
	var last time.Time
	for _, want := range log {
		if want.at.Before(since) {
			if _, err := w.h.At(want.at); !errors.Is(err, history.ErrTooOld) {
				t.Fatalf("%v: %v", want.at, err)
			}
			continue
		}
		m := w.at(t, want.at)
		if m.Time().After(want.at) || m.Time().Before(last) {
			t.Fatalf("the moment for %v is %v, the one before %v", want.at, m.Time(), last)
		}
		last = m.Time()
		if !m.Time().Equal(want.at) {
			continue // inside of a coarser step
		}
		moments++
		got := entry{at: m.Time(), c: w.value(t, m, "c"), g: w.value(t, m, "g"), f: w.value(t, m, "f"), early: w.value(t, m, "early"), other: w.value(t, m, "many7")}
		w.find(t, "h", func(c *store.Cursor) { got.count = m.Histogram(c).Cumulative.Count() })
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	// 60 flushes of half a minute, 30 minutes, and the rest of a day by ten minutes.
	if moments < 60+25+130 || moments > 60+60+146 {
		t.Errorf("%d moments", moments)
	}
	w.find(t, "c", func(cur *store.Cursor) {
		points, complete := w.h.Series(cur, time.Time{})
		if !complete.Equal(since) || len(points) < 200 {
			t.Errorf("%d points, complete since %v", len(points), complete)
		}
		for i, p := range points {
			if i > 0 && (!p.Start.Equal(points[i-1].End) || p.Raw != points[i-1].Raw+p.Delta) {
				t.Fatalf("point %d is %+v after %+v", i, p, points[i-1])
			}
		}
		if n := points[len(points)-1].Raw; n != cur.Raw() {
			t.Errorf("the last point is %d, want %d", n, cur.Raw())
		}
	})
	w.find(t, "h", func(cur *store.Cursor) {
		points, _ := w.h.Series(cur, w.now.Add(-10*time.Minute))
		var n uint64
		for _, p := range points {
			if p.Stats != nil {
				n += p.Stats.Count()
			}
		}
		before := w.at(t, w.now.Add(-10*time.Minute)).Histogram(cur).Cumulative.Count()
		if len(points) != 20 || n+before != cur.Histogram().Snapshot().Cumulative.Count() {
			t.Errorf("%d points with %d values after %d", len(points), n, before)
		}
	})
}

// TestFrequentFlushes: with 60 flushes in less than a minute nothing is missing
// between the flushes and the last whole minute.
func TestFrequentFlushes(t *testing.T) {
	w := newWorld(0)
	c := w.store.Root().Counter("c")
	start := w.now
	for range 5000 {
		c.Inc()
		w.flush(100 * time.Millisecond)
	}
	if since := w.h.Since(); !since.Equal(start) {
		t.Errorf("complete since %v, want %v", since, start)
	}
	for d := time.Duration(0); d < 8*time.Minute; d += time.Second {
		m := w.at(t, w.now.Add(-d))
		if want := fmt.Sprint(m.Time().Sub(start).Milliseconds() / 100); w.value(t, m, "c") != want {
			t.Errorf("%v ago, at %v: %s, want %s", d, m.Time(), w.value(t, m, "c"), want)
		}
		if off := w.now.Add(-d).Sub(m.Time()); off < 0 || off > 10*time.Minute {
			t.Errorf("%v ago is off by %v", d, off)
		} else if d < 6*time.Second && off > 0 {
			t.Errorf("%v ago is off by %v, although there are 60 flushes", d, off)
		}
	}
}

// TestMomentIsImmutable: flushes after At do not change its answers.
func TestMomentIsImmutable(t *testing.T) {
	w := newWorld(0)
	c, fresh := w.store.Root().Counter("c"), w.store.ScopeWith("x", store.ScopeOptions{}).Gauge("fresh")
	c.Add(5)
	w.flush(time.Second)
	m := w.at(t, w.now)
	c.Add(7)
	fresh.Set(3)
	w.flush(time.Second)
	if got, want := w.value(t, m, "c")+" "+w.value(t, m, "x.fresh"), "5 0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTinyBudget: without room for the values of the last flush, the history says
// that it has nothing.
func TestTinyBudget(t *testing.T) {
	w := newWorld(10_000)
	a := w.store.Root().Counter("a")
	for range 100 {
		a.Inc()
		w.flush(time.Second)
	}
	if used, most := w.h.Bytes(); used > most {
		t.Errorf("%d bytes of %d", used, most)
	}
	if !w.h.Since().Equal(w.now) {
		t.Errorf("complete since %v, want %v", w.h.Since(), w.now)
	}
	if _, err := w.h.At(w.now.Add(-time.Second)); !errors.Is(err, history.ErrTooOld) {
		t.Error(err)
	}
}

func TestReset(t *testing.T) {
	w := newWorld(0)
	a := w.store.Root().Counter("a")
	a.Add(10)
	w.flush(time.Second)
	w.store.ResetCounters()
	a.Add(3)
	w.flush(time.Second)
	w.find(t, "a", func(c *store.Cursor) {
		points, _ := w.h.Series(c, time.Time{})
		if len(points) != 2 || points[0].Delta != 10 || points[1].Delta != 3 {
			t.Errorf("%+v", points)
		}
	})
}

func TestHistogramAtAMoment(t *testing.T) {
	w := newWorld(0)
	h := w.store.Root().Histogram("h", store.Unspecified)
	h.Record(1)
	w.flush(time.Second)
	first := w.now
	h.Record(100)
	h.Record(200)
	w.flush(time.Second)
	h.Record(1000)
	w.flush(time.Second)
	w.find(t, "h", func(c *store.Cursor) {
		s := w.at(t, first.Add(time.Second)).Histogram(c)
		if s.Cumulative.Count() != 3 || s.Interval.Count() != 2 || s.Interval.Max() != 200 || math.Abs(s.Cumulative.Max()-200) > 2 {
			t.Errorf("%d values up to %v, %d in the interval", s.Cumulative.Count(), s.Cumulative.Max(), s.Interval.Count())
		}
		if s := w.at(t, first.Add(-time.Second)).Histogram(c); s.Used || s.Cumulative.Count() != 0 {
			t.Errorf("before the first flush there are %d values", s.Cumulative.Count())
		}
	})
}

// TestConcurrentUse reads while flushes add, for the race detector.
func TestConcurrentUse(t *testing.T) {
	st := store.New(store.Options{})
	h := history.New(history.Config{Store: st, Bytes: 1 << 20})
	a, hist := st.Root().Counter("a"), st.Root().Histogram("h", store.Unspecified)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				m, err := h.At(time.Now())
				if err != nil {
					continue
				}
				v := st.View()
				for _, name := range []string{"a", "h"} {
					c, _ := v.Find(name)
					h.Series(&c, time.Time{})
					if name == "a" {
						m.Raw(&c)
					} else {
						m.Histogram(&c)
					}
				}
				v.Close()
			}
		})
	}
	for range 300 {
		a.Inc()
		hist.Record(5)
		snap := st.Flush(store.FlushOptions{})
		h.Add(snap)
		snap.Close()
	}
	close(done)
	wg.Wait()
}

// TestPerSecond has a step of ten seconds for each kind, and a counter that grew before
// the history began.
func TestPerSecond(t *testing.T) {
	w := newWorld(0)
	sc := w.store.Root()
	before, c, g, f := sc.Counter("before"), sc.Counter("c"), sc.Gauge("g"), sc.FloatGauge("f")
	hist := sc.Histogram("h", store.Unspecified)
	before.Add(7)
	w.store.Flush(store.FlushOptions{}).Close()
	w.h = history.New(history.Config{Store: w.store})
	w.flush(10 * time.Second)
	w.find(t, "before", func(c *store.Cursor) {
		if points, _ := w.h.Series(c, time.Time{}); len(points) != 1 || points[0].Raw != 7 {
			t.Errorf("before any change: %+v, want a total of 7", points)
		}
	})
	c.Add(1 << 63)
	g.Set(100)
	_ = f.Set(2.5)
	w.flush(10 * time.Second)
	g.Set(50)
	_ = f.Set(-2.5)
	hist.Record(1)
	hist.Record(2)
	w.flush(10 * time.Second)
	for name, want := range map[string][2]float64{"before": {0, 0}, "c": {1 << 63 / 10.0, 0}, "g": {10, -5}, "f": {0.25, -0.5}, "h": {0, 0.2}} {
		w.find(t, name, func(c *store.Cursor) {
			points, _ := w.h.Series(c, time.Time{})
			if len(points) < 2 {
				t.Fatalf("%s: %d steps", name, len(points))
			}
			points = points[len(points)-2:]
			if got := [2]float64{points[0].PerSecond(c), points[1].PerSecond(c)}; got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			if name == "before" && points[1].Raw != 7 {
				t.Errorf("a counter that did not change was %d, want 7", points[1].Raw)
			}
		})
	}
}

// TestLatest compares the last step of every stat, and its last change, with its
// series.
func TestLatest(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	h := history.New(history.Config{Store: st})
	check := func() {
		t.Helper()
		latest, rates := h.Latest(), maps.Collect(h.LastRates)
		changes := map[time.Time]*history.Changes{{}: h.Changes(time.Time{}), now.Add(-5 * time.Second): h.Changes(now.Add(-5 * time.Second))}
		v := st.View()
		defer v.Close()
		for _, kinds := range []store.NameSet{store.Scalars, store.Histograms} {
			for c := v.ByName(kinds); c.Next(); {
				want := 0.0
				if points, _ := h.Series(&c, time.Time{}); len(points) > 0 && c.Kind() != store.KindGauge {
					want = points[len(points)-1].PerSecond(&c)
				}
				if got := latest.PerSecond(&c); got != want {
					t.Errorf("%s: %v, want %v", c.Name(), got, want)
				}
				for since, changes := range changes {
					var last time.Time
					points, _ := h.Series(&c, since)
					for _, p := range points {
						if p.Delta != 0 || p.Stats != nil {
							last = p.End
						}
					}
					if got := changes.Last(&c); !got.Equal(last) {
						t.Errorf("%s: changed at %v, want %v", c.Name(), got, last)
					}
				}
				if got := rates[c.Ref()]; got != want {
					t.Errorf("%s: a rate of %v, want %v", c.Name(), got, want)
				}
			}
		}
	}
	var counters []*store.Counter
	for i := range 3000 { // blocks with and without changes
		counters = append(counters, st.Root().Counter(fmt.Sprint("c", i)))
	}
	hist, gauge := st.Root().Histogram("h", store.Milliseconds), st.Root().Gauge("g")
	check()
	for i := range 5 {
		counters[i].Add(uint64(i))
		counters[2500-i].Add(7)
		hist.Record(3)
		gauge.Set(uint64(i))
		now = now.Add(2 * time.Second)
		snap := st.Flush(store.FlushOptions{})
		h.Add(snap)
		snap.Close()
		check()
	}
}

func TestDefaultBytes(t *testing.T) {
	for bytes, want := range map[int]int{0: 64 << 20, -1: 64 << 20, 1: 1} {
		if used, limit := newWorld(bytes).h.Bytes(); used != 0 || limit != want {
			t.Errorf("%d bytes: %d of %d are in use, want 0 of %d", bytes, used, limit, want)
		}
	}
}
