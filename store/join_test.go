package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// contents lists the changes of a snapshot.
func contents(snap *store.Snapshot) (lines []string) {
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		lines = append(lines, fmt.Sprintf("%s +%d", c.Name(), delta))
		return true
	})
	snap.GaugeChanges(func(c *store.Cursor) bool {
		lines = append(lines, fmt.Sprintf("%s =%v", c.Name(), c.Float()))
		return true
	})
	snap.HistogramChanges(func(c *store.Cursor, h *histogram.Snapshot) bool {
		lines = append(lines, fmt.Sprintf("%s %d %v", c.Name(), h.Interval.Count(), h.Interval.Sum()))
		return true
	})
	snap.Ended(func(c *store.Cursor) bool {
		lines = append(lines, c.Name()+" ended")
		return true
	})
	slices.Sort(lines)
	return lines
}

// TestJoinIsOneFlush writes the same to two stores and flushes the first more often.
func TestJoinIsOneFlush(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	often, once := store.New(store.Options{}), store.New(store.Options{})
	often.KeepNames()
	often.KeepEnded()
	once.KeepNames()
	once.KeepEnded()
	for round := range 20 {
		var first, last, joined *store.Snapshot
		for flush := range 5 {
			scopes := [2]*store.Scope{often.Scope("s"), once.Scope("s")}
			for range r.IntN(50) {
				name, v := fmt.Sprint("x", r.IntN(30)), uint64(r.IntN(9)+1)
				for i, st := range []*store.Store{often, once} {
					st.Root().Counter("c" + name).Add(v)
					st.Root().Gauge("g" + name).Set(v)
					st.Root().Histogram("h"+name, store.Bytes).Record(v)
					scopes[i].Counter(fmt.Sprint("gone", flush, name)).Add(v)
				}
			}
			scopes[0].Close()
			scopes[1].Close()
			snap := often.Flush(store.FlushOptions{})
			if joined == nil {
				first, joined = snap, snap
				continue
			}
			if joined = joined.Join(snap); last != nil {
				last.Close()
			}
			last = snap
		}
		single := once.Flush(store.FlushOptions{})
		if got, want := contents(joined), contents(single); !slices.Equal(got, want) || len(want) == 0 {
			t.Fatalf("round %d:\n%q, want\n%q", round, got, want)
		}
		single.Close()
		first.Close()
		last.Close()
	}
	if n := often.OpenViews(); n != 0 {
		t.Errorf("%d views are open", n)
	}
}

// TestSuccessorsAreOneChange: stats of the same name and tags that follow each other are one
// change, whether they are in one flush or in joined ones, and wherever they are in memory.
func TestSuccessorsAreOneChange(t *testing.T) {
	for _, oneFlush := range []bool{true, false} {
		st := store.New(store.Options{})
		st.KeepEnded()
		other := st.ScopeWith("", store.ScopeOptions{Evict: true})
		for _, name := range []string{"a", "b"} { // opens the blocks of a class
			other.Counter(name)
			other.Gauge(name + "g")
			other.Histogram(name+"h", store.Bytes)
		}
		var first, last, joined *store.Snapshot
		flush := func() {
			snap := st.Flush(store.FlushOptions{})
			if joined == nil {
				first, joined = snap, snap
				return
			}
			if joined = joined.Join(snap); last != nil {
				last.Close()
			}
			last = snap
		}
		for n := range uint64(4) {
			sc := st.ScopeWith("s", store.ScopeOptions{Evict: n%2 != 0})
			sc.Counter("c").Add(n + 1)
			sc.Gauge("g").Set(10 * (n + 1))
			sc.Histogram("h", store.Bytes).Record(n)
			if n == 0 {
				sc.Counter("only").Inc()
			}
			if n < 2 {
				sc.Histogram("unit", []store.Unit{store.Bytes, store.Milliseconds}[n]).Record(n)
			}
			if n%2 == 0 {
				sc.Counter("tagged", tags.Tag{Name: "x", Value: "y"}).Inc()
			} else {
				sc.Counter("tagged.x.y").Inc()
			}
			if !oneFlush {
				flush()
			}
			if n < 3 {
				sc.Close()
			}
		}
		flush()
		want := []string{
			"s.c +10", "s.g =40", "s.h 4 6", "s.only +1", "s.tagged.x.y +2", "s.tagged.x.y +2",
			"s.unit 1 0", "s.unit 1 1",
		}
		for range 2 {
			if got := contents(joined); !slices.Equal(got, want) {
				t.Errorf("one flush %t: %q, want\n%q", oneFlush, got, want)
			}
		}
		first.Close()
		if last != nil {
			last.Close()
		}
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%d views are open", n)
		}
	}
}

// TestEndedStatsAreListedOnce ends stats with and without unflushed changes.
func TestEndedStatsAreListedOnce(t *testing.T) {
	st := store.New(store.Options{})
	st.KeepNames()
	symbols := st.Symbols().NumSymbols()
	sc := st.Scope("s")
	sc.Counter("flushed").Inc()
	sc.Gauge("g").Set(1)
	st.Flush(store.FlushOptions{}).Close()
	sc.Counter("unflushed").Inc()
	sc.Close()
	snap := st.Flush(store.FlushOptions{})
	if got, want := contents(snap), []string{"s.flushed ended", "s.g ended", "s.unflushed +1", "s.unflushed ended"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	snap.Close()
	snap = st.Flush(store.FlushOptions{})
	if got := contents(snap); len(got) != 0 {
		t.Errorf("%q after the end", got)
	}
	snap.Close()
	if n := st.Symbols().NumSymbols(); n != symbols {
		t.Errorf("%d symbols, %d before", n, symbols)
	}
}

// TestCreatedWhenTheClockIsSet: after a flush no time is ahead of the clock, whether that has
// a monotonic reading or not. When the clock is set forward, times stay.
func TestCreatedWhenTheClockIsSet(t *testing.T) {
	for _, begin := range []time.Time{time.Now().Truncate(time.Millisecond), time.Now()} {
		now := begin
		st := store.New(store.Options{Now: func() time.Time { return now }})
		check := func(what, name string, created, since time.Duration) {
			t.Helper()
			v := st.View()
			defer v.Close()
			c, _ := v.Find(name)
			for _, x := range []struct {
				is   time.Time
				want time.Duration
			}{{c.Created(), created}, {c.Since(), since}} {
				if d := x.is.Sub(begin.Round(0)) - x.want; d > time.Millisecond || d < -time.Millisecond {
					t.Errorf("%s, %s: created %v and counted since %v after the begin, want %v and %v",
						what, name, c.Created().Sub(begin.Round(0)), c.Since().Sub(begin.Round(0)), created, since)
				}
			}
		}
		set := func(by time.Duration) {
			if now = now.Add(by); begin != begin.Round(0) {
				now = clocktest.Set(now.Add(-by), by)
			}
			st.Flush(store.FlushOptions{}).Close()
		}
		st.Root().Counter("early")
		now = now.Add(10 * time.Minute)
		st.Root().Counter("late")
		st.Root().Gauge("gauge")
		st.ResetCounters()
		set(time.Hour)
		check("set forward", "early", 0, 10*time.Minute)
		check("set forward", "late", 10*time.Minute, 10*time.Minute)
		set(-time.Hour)
		check("set back", "late", 10*time.Minute, 10*time.Minute)
		set(-5 * time.Minute)
		check("set back more", "early", 0, 5*time.Minute)
		check("set back more", "late", 5*time.Minute, 5*time.Minute)
		check("set back more", "gauge", 5*time.Minute, 5*time.Minute)
	}
}

// TestFlushesBefore: the snapshots that can have a stat are known also when the clock is set
// back, and however early in a tenth of a second a flush is.
func TestFlushesBefore(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		st.Root().Counter(name)
		st.Root().Gauge(name + "_gauge")
		snap := st.Flush(store.FlushOptions{})
		if snap.Seq != uint64(i+1) || st.Flushes() != snap.Seq {
			t.Errorf("flush %d is %d of %d", i+1, snap.Seq, st.Flushes())
		}
		snap.Close()
		if i == 1 {
			now = now.Add(-time.Hour)
		}
	}
	if err := st.NewImport(nil).Add(&store.ExportedStat{Name: "d", Settled: 7}); err != nil {
		t.Fatal(err)
	}
	v := st.View()
	defer v.Close()
	for i, name := range names {
		c, _ := v.Find(name)
		g, _ := v.Find(name + "_gauge")
		if c, want := c.FlushesBefore(), uint64(i%3); c != want || g.FlushesBefore() != uint64(i) {
			t.Errorf("%s: created after %d flushes, and its gauge after %d", name, c, g.FlushesBefore())
		}
	}
}

func TestCreated(t *testing.T) {
	now := time.Unix(1000, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	times := func(name string) (created, since float64) {
		v := st.View()
		defer v.Close()
		c, ok := v.Find(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return float64(c.Created().UnixMilli()) / 1000, float64(c.Since().UnixMilli()) / 1000
	}
	check := func(name string, created, since float64) {
		t.Helper()
		if c, s := times(name); c != created || s != since {
			t.Errorf("%s: created %v, since %v; want %v and %v", name, c, s, created, since)
		}
	}
	st.Root().Counter("a")
	now = now.Add(99 * time.Millisecond)
	st.Root().Counter("b")
	now = now.Add(time.Millisecond)
	st.Root().Counter("c")
	now = now.Add(time.Millisecond)
	st.Flush(store.FlushOptions{}).Close()
	st.Root().Counter("e")
	check("e", 1000.101, 1000.101)
	sc := st.Scope("")
	now = time.Unix(2000, 0)
	sc.Gauge("g")
	sc.Histogram("h", store.Bytes)
	check("a", 1000, 1000)
	check("b", 1000, 1000)
	check("c", 1000.1, 1000.1)
	check("g", 2000, 2000)
	check("h", 2000, 2000)
	now = time.Unix(3000, 0)
	st.ResetCounters()
	check("c", 1000.1, 3000)
	check("g", 2000, 2000)
	now = time.Unix(4000, 0)
	st.Root().Counter("d")
	check("d", 4000, 4000)
	v := st.View()
	c, _ := v.Find("a")
	now = time.Unix(5000, 0)
	c.ResetCounter()
	v.Close()
	check("a", 1000, 5000)
	check("b", 1000, 3000)
	now = time.Unix(500, 0) // the clock was set back
	st.ResetCounters()
	check("b", 1000, 500)
	check("g", 2000, 2000)
	sc.Close()
	now = time.Unix(6000, 0)
	st.Root().Gauge("g")
	check("g", 6000, 6000)

	im := st.NewImport(nil)
	if err := im.Add(&store.ExportedStat{Name: "a", Settled: 7}); err != nil {
		t.Fatal(err)
	}
	v = st.View()
	defer v.Close()
	if c, _ := v.Find("a"); !c.Created().IsZero() {
		t.Errorf("a counter of the parent process was created at %v", c.Created())
	}
	if c, _ := v.Find("b"); c.Created().IsZero() {
		t.Error("its neighbor lost its time")
	}
}
