package store_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// changed returns the names and values in ch, as "name=value+delta".
func changed(ch *store.Changes) string {
	var list []string
	ch.Each(func(c *store.Cursor, delta uint64) bool {
		var value string
		switch c.Kind() {
		case store.KindText:
			value = c.Text()
		case store.KindHistogram:
			value = fmt.Sprint(c.Histogram().Snapshot().Cumulative.Count())
		default:
			value = string(c.AppendValue(nil))
		}
		c.Locate()
		list = append(list, fmt.Sprintf("%s=%s+%d", c.Name(), value, delta))
		return true
	})
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestWatchSkipsEndedStats ends stats between a poll and its walk: those before and
// behind them are reported.
func TestWatchSkipsEndedStats(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	w := st.Watch()
	defer w.Close()
	for i := range 6 {
		net.Counter(fmt.Sprint("n", i)).Add(uint64(i))
	}
	ch := w.Poll()
	st.RemoveNetwork(func(name string) bool { return name == "n0" || name == "n3" })
	if got, want := changed(ch), "n1=1+1 n2=2+2 n4=4+4 n5=5+5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWatchReportsEachChangeOnce(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Root()
	a, idle := sc.Counter("a"), sc.Counter("idle")
	g, f, h, text := sc.Gauge("g"), sc.FloatGauge("f"), sc.Histogram("h", store.Unspecified), sc.Text("t")
	a.Add(5)
	idle.Inc()
	w := st.Watch()
	defer w.Close()
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"nothing", func() {}, ""},
		{"counter", func() { a.Add(2) }, "a=7+2"},
		{"not again", func() {}, ""},
		{"flush takes the marks", func() { a.Inc(); st.Flush(store.FlushOptions{}).Close() }, "a=8+1"},
		{"nor after a flush", func() { st.Flush(store.FlushOptions{}).Close() }, ""},
		{"gauges", func() { g.Set(3); _ = f.Set(-1.5) }, "f=-1.5+0 g=3+0"},
		{"the same value", func() { g.Set(3) }, ""},
		{"there and back", func() { g.Set(4); g.Set(3) }, ""},
		{"text", func() { text.Set("x") }, "t=x+0"},
		{"histogram before the flush", func() { h.Record(1) }, ""},
		{"histogram", func() { st.Flush(store.FlushOptions{}).Close() }, "h=1+1"},
		{"new stats", func() { sc.Counter("new"); sc.Gauge("unset") }, "new=0+0 unset=0+0"},
	}
	for _, s := range steps {
		s.do()
		if got := changed(w.Poll()); got != s.want {
			t.Errorf("%s: changed %q, want %q", s.name, got, s.want)
		}
	}
}

// TestWatchLeavesChangesToFlush: the marks that a watch takes are reported by
// the next flush all the same, also of stats that end in between.
func TestWatchLeavesChangesToFlush(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Scope("x")
	a, g := st.Root().Counter("a"), st.Root().Gauge("g")
	ending := sc.Counter("ending")
	st.Flush(store.FlushOptions{}).Close()
	first, second := st.Watch(), st.Watch()
	defer first.Close()
	defer second.Close()
	a.Inc()
	g.Set(1)
	ending.Add(3)
	for _, w := range []*store.Watch{first, second} {
		if got, want := changed(w.Poll()), "a=1+1 g=1+0 x.ending=3+3"; got != want {
			t.Errorf("changed %q, want %q", got, want)
		}
	}
	sc.Close()
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	var got []string
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		got = append(got, fmt.Sprintf("%s+%d", c.Name(), delta))
		return true
	})
	snap.GaugeChanges(func(c *store.Cursor) bool {
		got = append(got, c.Name())
		return true
	})
	slices.Sort(got)
	if want := []string{"a+1", "g", "x.ending+3"}; !slices.Equal(got, want) {
		t.Errorf("the flush reports %q, want %q", got, want)
	}
}

func TestWatchReportsEndedStats(t *testing.T) {
	st := store.New(store.Options{})
	sc := st.Scope("x")
	sc.Counter("a")
	v := st.View()
	c, ok := v.Find("x.a")
	if !ok {
		t.Fatal("x.a is not there")
	}
	ref := c.Ref()
	if found, ok := v.FindRef(ref); !ok || found.Name() != "x.a" {
		t.Errorf("FindRef(%d) finds nothing", ref)
	}
	v.Close()
	w := st.Watch()
	defer w.Close()
	sc.Close()
	ch := w.Poll()
	if !slices.Equal(ch.Ended, []uint64{ref}) || ch.Lost {
		t.Errorf("ended %v, lost %t, want %d", ch.Ended, ch.Lost, ref)
	}
	v = st.View()
	defer v.Close()
	if _, ok := v.FindRef(ref); ok {
		t.Errorf("FindRef(%d) finds a stat that ended", ref)
	}
	for _, wrong := range []uint64{1 << 40, ref + 1<<32, 896, 1023, 1 << 60} {
		if _, ok := v.FindRef(wrong); ok {
			t.Errorf("FindRef(%d) finds a stat", wrong)
		}
	}
}

// TestRefsAreNotReused makes blocks end and be used again.
func TestRefsAreNotReused(t *testing.T) {
	st := store.New(store.Options{})
	seen := make(map[uint64]string)
	for round := range 3 {
		sc := st.Scope("x")
		v := st.View()
		for i := range 2000 {
			name := fmt.Sprintf("r%d.n%d", round, i)
			sc.Counter(name)
			c, ok := v.Find("x." + name)
			if !ok {
				t.Fatalf("%s is not there", name)
			}
			if old, ok := seen[c.Ref()]; ok {
				t.Fatalf("%s has the reference of %s", name, old)
			}
			seen[c.Ref()] = name
		}
		v.Close()
		sc.Close()
		st.View().Close()
	}
}

func TestWatchNoticesResets(t *testing.T) {
	st := store.New(store.Options{})
	a := st.Root().Counter("a")
	a.Inc()
	st.Root().Gauge("g").Set(3)
	w := st.Watch()
	defer w.Close()
	if w.Poll().Reset {
		t.Error("reset before any")
	}
	st.ResetCounters()
	if !w.Poll().Reset || w.Poll().Reset {
		t.Error("a reset must be in one poll")
	}
	v := st.View()
	c, _ := v.Find("a")
	c.ResetCounter()
	v.Close()
	if !w.Poll().Reset {
		t.Error("the reset of one counter is not noticed")
	}
	v = st.View()
	defer v.Close()
	c, _ = v.Find("g")
	c.ResetCounter()
	if w.Poll().Reset || shown(t, st, "g") != 3 {
		t.Error("a gauge was reset")
	}
}

// TestBytesOfChanges grow with the changes and the ends.
func TestBytesOfChanges(t *testing.T) {
	st := store.New(store.Options{})
	w := st.Watch()
	defer w.Close()
	none := w.Poll().Bytes()
	if none < 100 || none > 300 {
		t.Errorf("no changes have %d bytes", none)
	}
	const n = 5000
	sc := st.Scope("x")
	for i := range n {
		sc.Counter(strconv.Itoa(i)).Inc()
	}
	if got := w.Poll().Bytes() - none; got < 18*n || got > 2*18*n {
		t.Errorf("%d changes have %d bytes", n, got)
	}
	sc.Close()
	if got := w.Poll().Bytes() - none; got < 8*n || got > 2*8*n {
		t.Errorf("%d ends have %d bytes", n, got)
	}
}

// TestOpenViewsAreCounted, also the views of snapshots.
func TestOpenViewsAreCounted(t *testing.T) {
	st := store.New(store.Options{})
	a, b := st.View(), st.View()
	st.Root().Counter("c")
	st.SetReject(func(string) bool { return true }) // begins another epoch
	snap := st.Flush(store.FlushOptions{})
	for i, closes := range []func(){func() {}, a.Close, a.Close, snap.Close, b.Close} {
		closes()
		if got, want := st.OpenViews(), []int{3, 2, 2, 1, 0}[i]; got != want {
			t.Errorf("step %d: %d views are open, want %d", i, got, want)
		}
	}
}

func TestMergedChangesAddUp(t *testing.T) {
	now := time.Unix(0, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	a, b := st.Root().Counter("a"), st.Root().Gauge("b")
	w := st.Watch()
	defer w.Close()
	var list []*store.Changes
	for i := range 3 {
		now = now.Add(time.Second)
		a.Add(2)
		if i == 1 {
			b.Set(9)
		}
		list = append(list, w.Poll())
	}
	m := store.MergeChanges(list)
	if got, want := changed(m), "a=6+6 b=9+0"; got != want {
		t.Errorf("merged %q, want %q", got, want)
	}
	if m.Interval != 3*time.Second || !m.Time.Equal(now) || m.Len() != 2 {
		t.Errorf("merged interval %v, time %v, len %d", m.Interval, m.Time, m.Len())
	}
}

// TestWatchLosesNothing: writers, flushes and polls at the same time; the growth
// that polls report, and that flushes report, is all there is.
func TestWatchLosesNothing(t *testing.T) {
	st := store.New(store.Options{})
	const stats, rounds = 50, 3000
	counters := make([]*store.Counter, stats)
	for i := range counters {
		counters[i] = st.Root().Counter(fmt.Sprint("c", i))
	}
	w := st.Watch()
	defer w.Close()
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	var polled, flushed uint64
	poll := func() {
		w.Poll().Each(func(_ *store.Cursor, delta uint64) bool { polled += delta; return true })
	}
	take := func() {
		snap := st.Flush(store.FlushOptions{})
		defer snap.Close()
		snap.CounterChanges(func(_ *store.Cursor, delta uint64) bool { flushed += delta; return true })
	}
	for _, f := range []func(){poll, take} {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
				}
			}
		})
	}
	for g := range 4 {
		writers.Go(func() {
			for i := range rounds {
				counters[(i*7+g)%stats].Inc()
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	poll()
	take()
	if want := uint64(4 * rounds); polled != want || flushed != want {
		t.Errorf("polls report %d, flushes %d, want %d", polled, flushed, want)
	}
}

// TestWatchesAreIndependent: a watch that is closed, also twice, takes nothing from the
// others, wherever it stands among them.
func TestWatchesAreIndependent(t *testing.T) {
	for closed := range 3 {
		st := store.New(store.Options{})
		sc := st.Scope("x")
		a := st.Root().Counter("a")
		sc.Counter("ending")
		watches := []*store.Watch{st.Watch(), st.Watch(), st.Watch()}
		watches[closed].Close()
		watches[closed].Close()
		a.Add(3)
		st.Flush(store.FlushOptions{}).Close()
		a.Add(4)
		sc.Close()
		for i, w := range watches {
			if i == closed {
				continue
			}
			ch := w.Poll()
			if got, want := changed(ch), "a=7+7"; got != want || len(ch.Ended) != 1 {
				t.Errorf("%d of three is closed: %d reports %q and the end of %d, want %q and 1", closed, i, got, len(ch.Ended), want)
			}
			w.Close()
		}
	}
}

// TestWatchTimes: a poll covers the time since the one before.
func TestWatchTimes(t *testing.T) {
	now := time.Unix(100, 0)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	w := st.Watch()
	defer w.Close()
	for i := range 3 {
		if !w.Time().Equal(now) {
			t.Errorf("poll %d was at %v, want %v", i, w.Time(), now)
		}
		now = now.Add(time.Duration(i+1) * time.Second)
		if ch := w.Poll(); !ch.Time.Equal(now) || ch.Interval != time.Duration(i+1)*time.Second {
			t.Errorf("poll %d is at %v and covers %v", i, ch.Time, ch.Interval)
		}
	}
}

// TestWatchLosesTooManyEnds: a watch that is not polled keeps no more than 131,072 ended
// stats, and says that it has lost some, once.
func TestWatchLosesTooManyEnds(t *testing.T) {
	const most = 1 << 17
	for _, tt := range []struct {
		n    []int
		lost bool
		kept int
	}{
		{[]int{most}, false, most},
		{[]int{most, 1}, true, 0},
		{[]int{most + 1}, true, 0},
		{[]int{most, 1, 2}, true, 2},
	} {
		st := store.New(store.Options{})
		w := st.Watch()
		st.Root().Gauge("g")
		for _, n := range tt.n {
			w.NoteEnds(n)
		}
		if ch := w.Poll(); ch.Lost != tt.lost || len(ch.Ended) != tt.kept {
			t.Errorf("%v ended: %d are reported, lost %t; want %d, %t", tt.n, len(ch.Ended), ch.Lost, tt.kept, tt.lost)
		}
		if ch := w.Poll(); ch.Lost || len(ch.Ended) != 0 {
			t.Errorf("%v ended: the next poll has %d, lost %t", tt.n, len(ch.Ended), ch.Lost)
		}
		w.Close()
	}
}

// TestMergedChangesKeepWhatOneHas: ends, losses and resets of each poll are in the sum, in
// whichever poll they are, and the values are the last ones.
func TestMergedChangesKeepWhatOneHas(t *testing.T) {
	for with := range 3 {
		st := store.New(store.Options{})
		sc := st.Scope("x")
		sc.Counter("ending")
		a, g := st.Root().Counter("a"), st.Root().Gauge("g")
		w := st.Watch()
		var list []*store.Changes
		for i := range 3 {
			if i == with {
				sc.Close()
				st.ResetCounters()
			}
			a.Inc()
			g.Set(uint64(i + 1))
			list = append(list, w.Poll())
		}
		m := store.MergeChanges(list)
		if !m.Reset || m.Lost || len(m.Ended) != 1 {
			t.Errorf("in poll %d: reset %t, lost %t, %d ended", with, m.Reset, m.Lost, len(m.Ended))
		}
		list[with].Lost = true
		if m = store.MergeChanges(list); !m.Lost {
			t.Errorf("lost in poll %d: not in the sum", with)
		}
		if got, want := changed(m), fmt.Sprintf("a=%d+3 g=3+0", 3-with); got != want {
			t.Errorf("reset in poll %d: %q, want %q", with, got, want)
		}
		if one := store.MergeChanges(list[:1]); one != list[0] {
			t.Error("the sum of one is another one")
		}
		w.Close()
	}
}

// TestChangesEndWhenAsked: Each ends with the call that returns false, and closes its view.
func TestChangesEndWhenAsked(t *testing.T) {
	st := store.New(store.Options{})
	w := st.Watch()
	defer w.Close()
	for i := range 3 {
		st.Root().Counter(fmt.Sprint("c", i)).Inc()
		st.Root().Gauge(fmt.Sprint("g", i)).Set(1)
	}
	ch := w.Poll()
	for stop := 1; stop <= 7; stop++ {
		n := 0
		ch.Each(func(*store.Cursor, uint64) bool { n++; return n < stop })
		if want := min(stop, 6); n != want || st.OpenViews() != 0 {
			t.Errorf("%d calls, want %d; %d views are open", n, want, st.OpenViews())
		}
	}
}

// TestStatsAtTheEndsOfBlocks: a watch and flushes see stats wherever they are in blocks.
func TestStatsAtTheEndsOfBlocks(t *testing.T) {
	st := store.New(store.Options{})
	var counters []*store.Counter
	var gauges []*store.Gauge
	for i := range 2100 {
		counters = append(counters, st.Root().Counter(fmt.Sprintf("c%04d", i)))
		gauges = append(gauges, st.Root().Gauge(fmt.Sprintf("g%04d", i)))
	}
	w := st.Watch()
	defer w.Close()
	st.Flush(store.FlushOptions{}).Close()
	for _, i := range []int{0, 1, 63, 64, 1022, 1023, 1024, 2047, 2048, 2099} {
		counters[i].Add(uint64(i) + 1)
		gauges[i].Set(uint64(i) + 2)
		want := fmt.Sprintf("c%04d=%d+%d g%04d=%d+0", i, i+1, i+1, i, i+2)
		if got := changed(w.Poll()); got != want {
			t.Errorf("the watch reports %q, want %q", got, want)
		}
		snap := st.Flush(store.FlushOptions{})
		var flushed []string
		snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
			flushed = append(flushed, fmt.Sprint(c.Name(), "+", delta))
			return true
		})
		snap.GaugeChanges(func(c *store.Cursor) bool {
			flushed = append(flushed, c.Name())
			return true
		})
		snap.Close()
		if want := []string{fmt.Sprintf("c%04d+%d", i, i+1), fmt.Sprintf("g%04d", i)}; !slices.Equal(flushed, want) {
			t.Errorf("the flush reports %q, want %q", flushed, want)
		}
	}
}
