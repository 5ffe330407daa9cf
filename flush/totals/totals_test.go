package totals_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/totals"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// world is a store with a walk and a clock that starts at 1,000,000 ms.
type world struct {
	st   *store.Store
	now  time.Time
	walk totals.Walk
	rows []string
}

func newWorld() *world {
	w := &world{now: time.UnixMilli(1_000_000), walk: totals.Walk{Refresh: time.Minute}}
	w.st = store.New(store.Options{Now: func() time.Time { return w.now }})
	w.st.KeepNames()
	return w
}

func (w *world) Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, at int64) {
	value, _ := snap.Value(c)
	w.rows = append(w.rows, fmt.Sprint(c.Name(), " ", value, " at ", at-1_000_000))
}

func (w *world) End(c *store.Cursor, _ store.Kind, at int64) {
	w.rows = append(w.rows, fmt.Sprint(c.Name(), " ends at ", at-1_000_000))
}

// flush flushes after a time and compares the visits, in any order.
func (w *world) flush(t *testing.T, after time.Duration, last bool, want ...string) {
	t.Helper()
	w.now = w.now.Add(after)
	w.rows = nil
	snap := w.st.Flush(store.FlushOptions{Totals: true, Last: last})
	w.walk.Flush(snap, w)
	snap.Close()
	slices.Sort(w.rows)
	slices.Sort(want)
	if !slices.Equal(w.rows, want) {
		t.Errorf("at %v:\n got %q\nwant %q", w.now.Sub(time.UnixMilli(1_000_000)), w.rows, want)
	}
	if n := w.st.OpenViews(); n != 0 {
		t.Errorf("%d views are open", n)
	}
}

// TestWhichStats: at first all used stats with a value are visited, then the changed
// ones, and all again after the refresh time or when asked for.
func TestWhichStats(t *testing.T) {
	w := newWorld()
	root := w.st.Root()
	root.Counter("a.unused")
	root.Gauge("a.unused_gauge")
	root.GaugeWithMode("a.hidden", store.HiddenAccumulate).Set(1)
	root.Text("a.text").Set("x")
	c, idle := root.Counter("c"), root.Counter("d.idle")
	g, still := root.Gauge("g"), root.Gauge("h.still")
	h, calm := root.Histogram("m", store.Unspecified), root.Histogram("n.calm", store.Unspecified)
	change := func() { c.Inc(); g.Add(2); h.Record(1) }
	change()
	idle.Add(5)
	still.Set(6)
	calm.Record(7)
	w.flush(t, 0, false, "c 1 at 0", "g 2 at 0", "d.idle 5 at 0", "h.still 6 at 0", "m 0 at 0", "n.calm 0 at 0")
	if got := w.walk.Before(); got != 1_000_000 {
		t.Errorf("the flush before was at %d", got)
	}
	change()
	w.flush(t, 30*time.Second, false, "c 2 at 30000", "g 4 at 30000", "m 0 at 30000")
	w.flush(t, 14*time.Second, false)
	change() // half an interval of 16 seconds is missing to the minute
	w.flush(t, 8*time.Second, false, "c 3 at 52000", "g 6 at 52000", "m 0 at 52000")
	w.flush(t, 8*time.Second, false, "c 3 at 60000", "g 6 at 60000", "d.idle 5 at 60000", "h.still 6 at 60000", "m 0 at 60000", "n.calm 0 at 60000")
	w.flush(t, 10*time.Second, false)
	w.walk.Again()
	w.flush(t, 10*time.Second, false, "c 3 at 80000", "g 6 at 80000", "d.idle 5 at 80000", "h.still 6 at 80000", "m 0 at 80000", "n.calm 0 at 80000")
	w.flush(t, time.Second, false)
	w.walk.Refresh = -1
	w.flush(t, time.Second, false, "c 3 at 82000", "g 6 at 82000", "d.idle 5 at 82000", "h.still 6 at 82000", "m 0 at 82000", "n.calm 0 at 82000")
	w.walk.Filter = sinkqueue.Filter{Exclude: match.List{match.Exact("c")}, Kinds: []store.Kind{store.KindCounter}}
	w.flush(t, time.Second, false, "d.idle 5 at 83000")
}

// TestTimesGrow: the flushes of a clock that stands still or goes back have different
// times, with room for the ends between them.
func TestTimesGrow(t *testing.T) {
	w := newWorld()
	w.walk.Refresh = -1
	w.st.Root().Counter("a").Inc()
	w.flush(t, 0, false, "a 1 at 0")
	w.flush(t, 0, false, "a 1 at 2")
	w.flush(t, -time.Second, false, "a 1 at 4")
	w.flush(t, 2*time.Second, false, "a 1 at 1000")
}

// TestClockSetBack: points are at most ten minutes ahead of the clock. When it is set back
// by more, times start again, and all stats are visited.
func TestClockSetBack(t *testing.T) {
	w := newWorld()
	w.st.Root().Counter("a").Inc()
	w.flush(t, 20*time.Minute, false, "a 1 at 1200000")
	w.st.Root().Counter("b").Inc()
	w.flush(t, -10*time.Minute, false, "b 1 at 1200002")
	w.flush(t, -time.Second, false, "a 1 at 599000", "b 1 at 599000")
	if got := w.walk.Before(); got != 1_599_000 {
		t.Errorf("the flush before was at %d", got)
	}
	w.st.Root().Counter("b").Inc()
	w.flush(t, time.Second, false, "b 2 at 600000")
}

// TestEndedAndReplaced: a stat that ended gets its last value and an end, unless a stat
// of its name continues its series. Unused, filtered and hidden ones come first.
func TestEndedAndReplaced(t *testing.T) {
	for _, refresh := range []time.Duration{time.Hour, -1} {
		w := newWorld()
		w.walk.Refresh = refresh
		w.walk.Filter.Exclude = match.List{match.Exact("s.b.filtered")}
		open := func(values ...uint64) *store.Scope {
			sc := w.st.Scope("s")
			sc.Counter("a.unused")
			sc.GaugeWithMode("a.hidden", store.HiddenAccumulate).Set(1)
			sc.Text("a.text").Set("x")
			sc.Counter("b.filtered").Inc()
			for i, v := range values {
				sc.Counter(fmt.Sprint("c", i)).Add(v)
				sc.Gauge(fmt.Sprint("g", i)).Set(v)
			}
			return sc
		}
		first := open(3, 4, 5)
		w.flush(t, 0, false, "s.c0 3 at 0", "s.c1 4 at 0", "s.c2 5 at 0", "s.g0 3 at 0", "s.g1 4 at 0", "s.g2 5 at 0")
		first.Counter("c0").Add(10)
		w.now = w.now.Add(4 * time.Second)
		first.Close()
		second := open(7, 8)
		second.Gauge("c2").Set(1) // another kind: does not replace
		var full []string
		if refresh < 0 {
			full = []string{"s.c2 5 at 10000", "s.g2 5 at 10000"}
		}
		w.flush(t, 6*time.Second, false, append(full,
			"s.c0 13 at 3999", "s.c1 4 at 3999", "s.g0 3 at 3999", "s.g1 4 at 3999", "s.c2 ends at 10001", "s.g2 ends at 10001",
			"s.c0 7 at 10000", "s.c1 8 at 10000", "s.g0 7 at 10000", "s.g1 8 at 10000", "s.c2 1 at 10000")...)
		w.flush(t, 10*time.Second, true, "s.c0 7 at 20000", "s.c1 8 at 20000", "s.g0 7 at 20000", "s.g1 8 at 20000", "s.c2 1 at 20000",
			"s.c0 ends at 20001", "s.c1 ends at 20001", "s.g0 ends at 20001", "s.g1 ends at 20001", "s.c2 ends at 20001")
	}
}

// TestSuccessorsOfSuccessors: of several stats that ended under a name each has a time of its
// own, and only the last one ends the series, at a flush and in joined ones.
func TestSuccessorsOfSuccessors(t *testing.T) {
	for _, refresh := range []time.Duration{time.Hour, -1} {
		for _, joined := range []bool{false, true} {
			w := newWorld()
			w.walk.Refresh = refresh
			var open []*store.Snapshot
			generation := func(v uint64) *store.Scope {
				w.now = w.now.Add(time.Second)
				sc := w.st.Scope("s")
				sc.Counter("c").Add(v)
				sc.Gauge("g").Set(v)
				return sc
			}
			check := func(want ...string) {
				t.Helper()
				snap := open[0]
				for _, next := range open[1:] {
					snap = snap.Join(next)
				}
				w.rows = nil
				w.walk.Flush(snap, w)
				slices.Sort(w.rows)
				if !slices.Equal(w.rows, want) {
					t.Errorf("refresh %v, joined %t:\n got %q\nwant %q", refresh, joined, w.rows, want)
				}
				for _, snap := range open {
					snap.Close()
				}
				open = nil
			}
			flush := func() { open = append(open, w.st.Flush(store.FlushOptions{Totals: true})) }
			w.flush(t, 0, false)
			for v := range uint64(3) {
				generation(v + 1).Close()
				if joined {
					flush()
				}
			}
			live := generation(4)
			w.now = w.now.Add(time.Second)
			flush()
			check("s.c 1 at 1999", "s.c 2 at 2999", "s.c 3 at 3999", "s.c 4 at 5000",
				"s.g 1 at 1999", "s.g 2 at 2999", "s.g 3 at 3999", "s.g 4 at 5000")
			live.Close()
			generation(5).Close()
			flush()
			want := []string{"s.c 4 at 5999", "s.c 5 at 6000", "s.c ends at 6001", "s.g 4 at 5999", "s.g ends at 6001"}
			if refresh < 0 {
				want = slices.Insert(want, 4, "s.g 5 at 6000")
			}
			slices.Sort(want)
			check(want...)
		}
	}
}

// TestStart: a series starts with its stat, if that is before its value.
func TestStart(t *testing.T) {
	w := newWorld()
	w.st.Root().Counter("a").Inc()
	v := w.st.View()
	defer v.Close()
	c, ok := v.Find("a")
	if !ok {
		t.Fatal("no counter")
	}
	created := c.Created().UnixMilli()
	for at, want := range map[int64]int64{created - 1: 0, created: 0, created + 1: created} {
		if got := totals.Start(&c, at); got != want {
			t.Errorf("a value at %d starts at %d, want %d", at, got, want)
		}
	}
}
