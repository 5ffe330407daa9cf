package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// handOver moves what changed in parent to child and returns how many stats
// that were.
func handOver(t *testing.T, e *Export, im *Import) (n int) {
	t.Helper()
	e.Next(func(h *ExportedStat) bool {
		n++
		if err := im.Add(h); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
		return true
	})
	if open := e.s.OpenViews(); open != 0 {
		t.Errorf("%d views are open", open)
	}
	return n
}

// shown returns name: value of all counters and gauges.
func shown(s *Store) string {
	v := s.View()
	defer v.Close()
	var b strings.Builder
	for c := v.ByName(Scalars); c.Next(); {
		fmt.Fprintf(&b, "%s: %s", c.Name(), c.AppendValue(nil))
		if !c.Used() {
			b.WriteString(" unused")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// deltas flushes s and returns what its counters give to the sinks.
func deltas(s *Store) string {
	snap := s.Flush(FlushOptions{})
	defer snap.Close()
	var b strings.Builder
	snap.CounterChanges(func(c *Cursor, d uint64) bool {
		fmt.Fprintf(&b, "%s+%d ", c.Name(), d)
		return true
	})
	return b.String()
}

func TestCountersGoOn(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	total := parent.Root().Counter("rq")
	parent.Root().Counter("unused")
	total.Add(100)
	parent.Flush(FlushOptions{}).Close() // the parent's sinks got 100
	total.Add(7)
	own := child.Root().Counter("rq")
	own.Add(1)

	e, im := parent.NewExport(), child.NewImport(nil)
	e.Cut()
	handOver(t, e, im)
	if got := own.Value(); got != 108 {
		t.Errorf("value %d, want 108", got)
	}
	if got := deltas(child); got != "rq+8 " {
		t.Errorf("the child's sinks get %q, want what the parent's did not get", got)
	}
	total.Add(5)
	if n := handOver(t, e, im); n != 1 {
		t.Errorf("%d stats in the second export, want the one that changed", n)
	}
	if n := handOver(t, e, im); n != 0 {
		t.Errorf("%d stats although nothing changed", n)
	}
	if got := deltas(child); got != "rq+5 " || own.Value() != 113 {
		t.Errorf("second: %q, value %d", got, own.Value())
	}
	im.Close()
	im.Close()
	if got := shown(child); got != "rq: 113\n" {
		t.Errorf("in the end %q", got)
	}
	if err := im.Add(&ExportedStat{Name: "rq", Delta: 1}); !errors.Is(err, ErrClosed) || own.Value() != 113 {
		t.Errorf("after the end: %v, value %d", err, own.Value())
	}
}

func TestCounterThatWasReset(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	c := parent.Root().Counter("rq")
	c.Add(100)
	parent.Flush(FlushOptions{}).Close()
	parent.ResetCounters()
	c.Add(3)
	e, im := parent.NewExport(), child.NewImport(nil)
	handOver(t, e, im)
	if got := shown(child); got != "rq: 3\n" {
		t.Errorf("the child shows %q", got)
	}
	parent.ResetCounters() // between two exports
	c.Add(2)
	handOver(t, e, im)
	if got := shown(child); got != "rq: 2\n" {
		t.Errorf("after another reset the child shows %q", got)
	}
}

// TestCounterThatBothReset: a reset of the parent hides nothing that a later reset of the
// child has hidden before.
func TestCounterThatBothReset(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	parent.Root().Counter("rq").Add(100)
	e, im := parent.NewExport(), child.NewImport(nil)
	handOver(t, e, im)
	parent.ResetCounters()
	child.ResetCounters()
	handOver(t, e, im)
	c := child.Root().Counter("rq")
	if got := c.Value(); got != 0 {
		t.Errorf("value %d after both resets", got)
	}
	c.Add(3)
	if got, list := c.Value(), shown(child); got != 3 || list != "rq: 3\n" {
		t.Errorf("value %d, and the child shows %q", got, list)
	}
}

// TestFractionalGaugeThatExpired: a gauge that expired in the child starts from the
// parent's value again when that changes.
func TestFractionalGaugeThatExpired(t *testing.T) {
	now := time.Unix(1000, 0)
	parent, child := New(Options{}), New(Options{Now: func() time.Time { return now }})
	level := parent.ScopeWith("", ScopeOptions{Network: true}).FloatGauge("level")
	_ = level.Set(100)
	to := child.ScopeWith("", ScopeOptions{Network: true, TTL: TTL{Gauge: time.Second}})
	e, im := parent.NewExport(), child.NewImport(func(h *ExportedStat) any { return to.FloatGauge(h.Name) })
	handOver(t, e, im)
	for range 3 {
		now = now.Add(10 * time.Second)
		child.Flush(FlushOptions{}).Close()
		child.Sweep(false)
	}
	if n := child.Len(KindGauge); n != 0 {
		t.Fatalf("%d gauges have not expired", n)
	}
	_ = level.Set(110)
	handOver(t, e, im)
	if got := to.FloatGauge("level").Value(); got != 110 {
		t.Errorf("the child has %v, want the parent's 110", got)
	}
}

// TestEndedCountersAreHandedOver: after the cut nothing else reports the last
// increments of counters that end.
func TestEndedCountersAreHandedOver(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	child.KeepEnded()
	sc := parent.Scope("a")
	known, fresh := sc.Counter("known"), sc.Counter("fresh")
	known.Add(1)
	if got := deltas(parent); got != "a.known+1 " {
		t.Fatalf("the sinks of the parent get %q", got)
	}
	e, im := parent.NewExport(), child.NewImport(nil)
	handOver(t, e, im)
	e.Cut()
	other := parent.Scope("b")
	other.Counter("before").Add(2) // ends before the first export after the cut
	other.Close()
	handOver(t, e, im)
	known.Add(3)
	fresh.Add(4)
	sc.Close()
	handOver(t, e, im)
	if n := handOver(t, e, im); n != 0 {
		t.Errorf("%d ended counters are handed over twice", n)
	}
	if got := sorted(deltas(child)); got != "a.fresh+4 a.known+3 b.before+2" {
		t.Errorf("the sinks of the child get %q", got)
	}
	e.Ack()
	if got := deltas(parent); got != "" {
		t.Errorf("the sinks of the parent get %q again", got)
	}
}

// TestAcknowledgedCountersAreReleased creates and ends counters while a successor
// flushes: they are released when it has acknowledged their increments, and not
// before.
func TestAcknowledgedCountersAreReleased(t *testing.T) {
	parent := New(Options{})
	parent.KeepEnded()
	e, im := parent.NewExport(), New(Options{}).NewImport(nil)
	e.Cut()
	handOver(t, e, im)
	e.Ack()
	for i := range 10 * slotsPerBlock {
		sc := parent.Scope("a")
		sc.Counter(fmt.Sprint("c", i)).Inc()
		if i%2 == 0 {
			sc.Histogram("h", Unspecified).Record(1)
		}
		sc.Close()
		if i%100 == 99 {
			handOver(t, e, im)
		}
	}
	handOver(t, e, im)
	if n := len(parent.unsent); n != 15*slotsPerBlock {
		t.Fatalf("%d ended stats wait, want %d", n, 15*slotsPerBlock)
	}
	e.Ack()
	if n := len(parent.unsent); n != 5*slotsPerBlock {
		t.Errorf("%d ended stats wait after the acknowledgement, want the %d histograms", n, 5*slotsPerBlock)
	}
	snap := parent.Flush(FlushOptions{HistogramsOnly: true})
	if c, g, h := snap.Changed(); c != 0 || g != 0 || h != 5*slotsPerBlock {
		t.Errorf("%d counters, %d gauges, %d histograms", c, g, h)
	}
	snap.Close()
	parent.Root().Counter("last").Inc()
	parent.Root().Gauge("g").Set(1)
	snap = parent.Flush(FlushOptions{HistogramsOnly: true, Totals: true})
	if c, g, h := snap.Changed(); c+g+h != 0 {
		t.Errorf("%d counters, %d gauges, %d histograms", c, g, h)
	}
	v := snap.View()
	for cur := v.ByName(Scalars); cur.Next(); {
		if n, ok := snap.Total(&cur); ok {
			t.Errorf("the total of %s is %d in a snapshot of histograms", cur.Name(), n)
		}
	}
	snap.Close()
	if got := deltas(parent); got != "last+1 " {
		t.Errorf("the sinks of the parent get %q", got)
	}
	if n := parent.BlocksInUse(); n > 6 {
		t.Errorf("%d blocks are in use", n)
	}
}

// TestEndedNamesWhileASuccessorFlushes: a counter that ends is listed by a snapshot
// when the successor has its increments, once.
func TestEndedNamesWhileASuccessorFlushes(t *testing.T) {
	parent := New(Options{})
	parent.KeepNames()
	parent.KeepEnded()
	e, im := parent.NewExport(), New(Options{}).NewImport(nil)
	e.Cut()
	sc := parent.Scope("a")
	sc.Counter("c").Inc()
	sc.Histogram("h", Unspecified).Record(1)
	sc.Close()
	for i, want := range []string{"a.h", "", "a.c", ""} {
		if i == 2 {
			handOver(t, e, im)
			e.Ack()
		}
		snap := parent.Flush(FlushOptions{HistogramsOnly: true})
		var got []string
		snap.Ended(func(c *Cursor) bool { got = append(got, c.Name()); return true })
		if strings.Join(got, " ") != want {
			t.Errorf("snapshot %d lists %q, want %q", i, got, want)
		}
		snap.Close()
	}
}

// sorted sorts the words of text.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestExportThatIsDropped: a successor that fails at any time before it has
// acknowledged leaves no trace, whatever was exported to it.
func TestExportThatIsDropped(t *testing.T) {
	parent := New(Options{})
	c := parent.Root().Counter("rq")
	c.Add(5)
	dropped := func(rounds int, cut bool) {
		e, im := parent.NewExport(), New(Options{}).NewImport(nil)
		defer im.Close()
		for range rounds {
			handOver(t, e, im)
			c.Add(1)
		}
		if cut {
			e.Cut()
			handOver(t, e, im)
		}
	}
	dropped(3, false)
	dropped(0, true)
	dropped(2, true)
	if got := deltas(parent); got != "rq+10 " {
		t.Errorf("the sinks of the parent get %q", got)
	}
	dropped(2, true)
	child := New(Options{})
	e, im := parent.NewExport(), child.NewImport(nil)
	handOver(t, e, im)
	c.Add(1)
	if got := deltas(parent); got != "rq+3 " {
		t.Errorf("before the cut the sinks of the parent get %q", got)
	}
	c.Add(4)
	e.Cut()
	handOver(t, e, im)
	e.Ack()
	c.Add(7)
	handOver(t, e, im) // is not acknowledged
	if got := deltas(child); got != "rq+11 " {
		t.Errorf("the sinks of the child get %q", got)
	}
	if got := deltas(parent); got != "rq+7 " {
		t.Errorf("without the child the sinks of the parent get %q", got)
	}
	if got := shown(child); got != "rq: 24\n" || c.Value() != 24 {
		t.Errorf("the child shows %q, the parent %d", got, c.Value())
	}
}

// TestExportAheadOfTheFlush exports an increment that the last flush missed: it
// is taken out of the flushed part again, and the successor's sinks get it.
func TestExportAheadOfTheFlush(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	c := parent.Root().Counter("rq")
	e, im := parent.NewExport(), child.NewImport(nil)
	c.Add(3)
	handOver(t, e, im) // and no flush comes
	e.Cut()
	handOver(t, e, im)
	if got := deltas(child); got != "rq+3 " {
		t.Errorf("the sinks of the child get %q", got)
	}
	if got := shown(child); got != "rq: 3\n" {
		t.Errorf("the child shows %q", got)
	}
}

// TestGaugesAreExportedOnce: a gauge is handed over when it is first used, even if it is 0, and
// then at each change only.
func TestGaugesAreExportedOnce(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	zero, other := parent.Root().Gauge("zero"), parent.Root().Gauge("other")
	parent.Root().Gauge("unused")
	e, im := parent.NewExport(), child.NewImport(nil)
	zero.Set(0)
	other.Set(3)
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() {}, 2},
		{func() {}, 0},
		{func() { other.Set(3) }, 0},
		{func() { other.Set(0) }, 1},
		{func() {}, 0},
		{func() { zero.Set(1) }, 1},
		{func() { zero.Set(0); other.Set(7) }, 2},
	} {
		if step.do(); handOver(t, e, im) != step.want {
			t.Errorf("step %d: not %d gauges", i, step.want)
		}
	}
	if got, want := shown(child), "other: 7\nzero: 0\n"; got != want {
		t.Errorf("the child shows %q, want %q", got, want)
	}
}

func TestGaugeModes(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	set := func(s *Store, name string, mode ImportMode, n uint64) *Gauge {
		g := s.Root().GaugeWithMode(name, mode)
		g.Set(n)
		return g
	}
	sum, never := set(parent, "sum", Accumulate, 5), set(parent, "never", NeverImport, 6)
	set(parent, "later.sum", Accumulate, 7)
	set(parent, "later.never", Accumulate, 8) // the parent did not know better
	set(parent, "unknown", Accumulate, 9)
	set(parent, "hidden", HiddenAccumulate, 10)
	set(parent, "zero", Accumulate, 0)
	own := set(child, "sum", Accumulate, 50)
	set(child, "never", NeverImport, 60)
	set(parent, "mine", Accumulate, 11) // and the child does not want it
	set(child, "mine", NeverImport, 110)

	e, im := parent.NewExport(), child.NewImport(nil)
	handOver(t, e, im)
	want := "hidden: 10\nlater.never: 8\nlater.sum: 7\nmine: 110\nnever: 60\nsum: 55\nunknown: 9\nzero: 0\n"
	if got := shown(child); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	own.Set(51) // a gauge that is set does not forget the parent
	late := child.Root().Gauge("later.sum")
	late.Add(70)
	child.Root().GaugeWithMode("later.never", NeverImport)
	child.Root().GaugeWithMode("hidden", HiddenAccumulate)
	sum.Set(4)
	never.Set(7)
	handOver(t, e, im)
	if own.Value() != 55 || late.Value() != 77 {
		t.Errorf("sum %d and later.sum %d, want 55 and 77", own.Value(), late.Value())
	}
	want = "hidden: 10\nlater.never: 0 unused\nlater.sum: 77\nmine: 110\nnever: 60\nsum: 55\nunknown: 9\nzero: 0\n"
	if got := shown(child); got != want {
		t.Errorf("second: got\n%swant\n%s", got, want)
	}
	child.Flush(FlushOptions{}).Close()
	im.Close()
	want = "hidden: 0\nlater.never: 0 unused\nlater.sum: 70\nmine: 110\nnever: 60\nsum: 51\n"
	if got := shown(child); got != want {
		t.Errorf("without the parent: got\n%swant\n%s", got, want)
	}
	snap := child.Flush(FlushOptions{})
	defer snap.Close()
	var changed []string
	snap.GaugeChanges(func(c *Cursor) bool { changed = append(changed, c.Name()); return true })
	snap.HiddenGaugeChanges(func(c *Cursor) bool { changed = append(changed, c.Name()+" hidden"); return true })
	slices.Sort(changed)
	if want := []string{"hidden hidden", "later.sum", "sum"}; !slices.Equal(changed, want) {
		t.Errorf("the sinks hear of %q when the parent goes, want %q", changed, want)
	}
}

// TestGaugesThatOnlyTheParentChanges checks that sinks get the sum of both processes
// when the own value stays.
func TestGaugesThatOnlyTheParentChanges(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	set := func(s *Store, name string, n uint64) *Gauge {
		g := s.Root().GaugeWithMode(name, Accumulate)
		g.Set(n)
		return g
	}
	from := set(parent, "connections", 5)
	set(parent, "idle", 6)
	set(child, "connections", 50)
	set(child, "idle", 60)
	e, im := parent.NewExport(), child.NewImport(nil)
	defer im.Close()
	changed := func() (list []string) {
		handOver(t, e, im)
		snap := child.Flush(FlushOptions{})
		defer snap.Close()
		snap.GaugeChanges(func(c *Cursor) bool { list = append(list, fmt.Sprint(c.Name(), " ", c.Uint())); return true })
		slices.Sort(list)
		return list
	}
	if got, want := changed(), []string{"connections 55", "idle 66"}; !slices.Equal(got, want) {
		t.Errorf("first: %q, want %q", got, want)
	}
	if got := changed(); len(got) > 0 {
		t.Errorf("nothing changed: %q", got)
	}
	from.Set(4)
	if got, want := changed(), []string{"connections 54"}; !slices.Equal(got, want) {
		t.Errorf("the parent's changed: %q, want %q", got, want)
	}
}

// TestNetworkStats carries what StatsD input made: it stays when the parent is
// gone, in the hands of who owns such stats.
func TestNetworkStats(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	net := ScopeOptions{Network: true}
	tag := []tags.Tag{{Name: "env", Value: "a.b"}, {Name: "bare"}}
	from := parent.ScopeWith("", net)
	from.Counter("hits", tag...).Add(3)
	temp, level := from.FloatGauge("temp"), from.FloatGauge("level", tag...)
	_ = temp.Set(-1.5)
	_ = level.Set(0.1)

	to := child.ScopeWith("", net)
	var asked []string
	find := func(h *ExportedStat) any {
		asked = append(asked, fmt.Sprint(h.Name, h.Tags, h.Fractional))
		switch {
		case h.Name == "lost":
			return nil
		case h.Kind == KindCounter:
			return to.Counter(h.Name, h.Tags...)
		}
		return to.FloatGauge(h.Name, h.Tags...)
	}
	from.Counter("lost").Inc()
	e, im := parent.NewExport(), child.NewImport(find)
	handOver(t, e, im)
	if len(asked) != 4 {
		t.Errorf("asked for %q", asked)
	}
	_ = temp.Set(2)                             // the parent alone
	_ = to.FloatGauge("level", tag...).Add(0.5) // the child
	_ = level.Add(0.25)                         // and the parent
	handOver(t, e, im)
	im.Close()
	want := "hits.env.a.b.bare: 3\nlevel.env.a.b.bare: 0.85\ntemp: 2\n"
	if got := shown(child); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	v := child.View()
	defer v.Close()
	c, _ := v.Find("hits.env.a.b.bare")
	if got := fmt.Sprint(c.AppendTags(nil)); got != fmt.Sprint(tag) || !c.Network() {
		t.Errorf("labels %s, network %t", got, c.Network())
	}
}

func TestImportRefuses(t *testing.T) {
	child := New(Options{Reject: func(name string) bool { return name == "no" }})
	child.Root().Gauge("g")
	child.Root().Counter("c")
	im := child.NewImport(nil)
	for _, tt := range []struct {
		h    ExportedStat
		want error
	}{
		{ExportedStat{Name: "no", Delta: 1}, ErrRejected},
		{ExportedStat{Name: "g", Delta: 1}, ErrKind},
		{ExportedStat{Name: "h", Kind: KindHistogram}, ErrKind},
		{ExportedStat{Name: "t", Kind: KindText}, ErrKind},
		{ExportedStat{Name: "f", Kind: KindGauge, Fractional: true, Value: math.Float64bits(math.NaN())}, ErrNotFinite},
		{ExportedStat{Name: "g", Kind: KindGauge, Fractional: true}, ErrKind},
		{ExportedStat{Name: "k", Kind: 99}, ErrKind},
		{ExportedStat{Name: "c", Kind: KindGauge, Value: 3}, ErrKind},
		{ExportedStat{Name: "no", Kind: KindGauge, Value: 3}, ErrRejected},
	} {
		if err := im.Add(&tt.h); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.h, err, tt.want)
		}
	}
	if got := shown(child); got != "c: 0 unused\ng: 0 unused\n" {
		t.Errorf("something was taken in all the same: %q", got)
	}
}

// TestImportIntoNullStats: what the owner of stats refuses is lost, and nothing else.
func TestImportIntoNullStats(t *testing.T) {
	child := New(Options{Reject: func(string) bool { return true }})
	im := child.NewImport(func(h *ExportedStat) any {
		if h.Kind == KindCounter {
			return child.Root().Counter(h.Name)
		}
		return child.Root().FloatGauge(h.Name)
	})
	defer im.Close()
	for _, h := range []ExportedStat{
		{Name: "c", Network: true, Settled: 3, Delta: 2, Reset: 1},
		{Name: "f", Network: true, Kind: KindGauge, Fractional: true, Value: math.Float64bits(2.5)},
	} {
		if err := im.Add(&h); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
	if got := shown(child); got != "" || deltas(child) != "" {
		t.Errorf("the child shows %q", got)
	}
	if resets := child.resets.Load(); resets != 0 {
		t.Errorf("%d resets of a null counter", resets)
	}
}

// TestImportedStatsAreWhereTheyWere: in the name space of the network or of the program, and
// what hides a part of their totals is a reset.
func TestImportedStatsAreWhereTheyWere(t *testing.T) {
	child := New(Options{})
	w := child.Watch()
	defer w.Close()
	im := child.NewImport(func(*ExportedStat) any { return nil })
	defer im.Close()
	for _, network := range []bool{false, true} {
		name := map[bool]string{false: "own", true: "received"}[network]
		for _, h := range []ExportedStat{
			{Name: name + ".c", Network: network, Settled: 3},
			{Name: name + ".g", Network: network, Kind: KindGauge, Value: 2},
			{Name: name + ".f", Network: network, Kind: KindGauge, Fractional: true, Value: math.Float64bits(2.5)},
		} {
			if err := im.Add(&h); err != nil {
				t.Errorf("%s: %v", h.Name, err)
			}
			if !child.Has(network, h.Name) || child.Has(!network, h.Name) {
				t.Errorf("%s: from the network %t, of the program %t", h.Name, child.Has(true, h.Name), child.Has(false, h.Name))
			}
		}
	}
	for _, h := range []ExportedStat{ // one name in both
		{Name: "same", Kind: KindGauge, Fractional: true, Value: math.Float64bits(1)},
		{Name: "same", Network: true, Kind: KindGauge, Fractional: true, Value: math.Float64bits(2.5)},
		{Name: "same", Kind: KindGauge, Fractional: true, Value: math.Float64bits(4)},
	} {
		if err := im.Add(&h); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
	own, received := child.Root().FloatGauge("same").Value(), im.network.FloatGauge("same").Value()
	if own != 4 || received != 2.5 {
		t.Errorf("gauges of one name are %v and %v, want 4 and 2.5", own, received)
	}
	if w.Poll().Reset {
		t.Error("a watch sees a reset")
	}
	if err := im.Add(&ExportedStat{Name: "own.c", Reset: 2}); err != nil || !w.Poll().Reset {
		t.Errorf("a watch sees no reset; error %v", err)
	}
	if got := child.Root().Counter("own.c").Value(); got != 1 {
		t.Errorf("the counter shows %d, want 1", got)
	}
}

// TestExportEndsWhenAsked: Next ends with the call that returns false, and closes its view.
func TestExportEndsWhenAsked(t *testing.T) {
	for stop := 1; stop <= 7; stop++ {
		parent := New(Options{})
		for i := range 3 {
			parent.Root().Counter(fmt.Sprint("c", i)).Inc()
			parent.Root().Gauge(fmt.Sprint("g", i)).Inc()
			parent.Root().GaugeWithMode(fmt.Sprint("never", i), NeverImport).Inc()
		}
		n := 0
		parent.NewExport().Next(func(*ExportedStat) bool { n++; return n < stop })
		if want := min(stop, 6); n != want || parent.OpenViews() != 0 {
			t.Errorf("%d calls, want %d; %d views are open", n, want, parent.OpenViews())
		}
	}
}

// TestImportedGaugesAreNotEvicted before a flush has reported what the parent process changed.
func TestImportedGaugesAreNotEvicted(t *testing.T) {
	child := New(Options{})
	im := child.NewImport(nil)
	defer im.Close()
	child.ScopeWith("", ScopeOptions{Evict: true}).Gauge("g")
	child.Sweep(true)
	add := func() {
		t.Helper()
		if err := im.Add(&ExportedStat{Name: "g", Kind: KindGauge, Value: 3}); err != nil {
			t.Fatal(err)
		}
		child.Sweep(false) // forgets the lookup
		if child.Sweep(true); child.Len(KindGauge) != 1 {
			t.Fatal("a gauge ended with a change of the parent process that no flush reported")
		}
	}
	add()
	add()
	child.Flush(FlushOptions{}).Close()
	child.Sweep(true)
	if child.Sweep(true); child.Len(KindGauge) != 0 {
		t.Error("a gauge that did not change was spared")
	}
}

// TestHandOverUnderLoad counts in both processes while one hands over to the
// other: in the end nothing is missing, neither on the page nor in the sinks.
func TestHandOverUnderLoad(t *testing.T) {
	parent, child := New(Options{}), New(Options{})
	var flushed uint64 // by the parent before
	pc, cc := parent.Root().Counter("c"), child.Root().Counter("c")
	gauge := parent.Root().Gauge("g")
	const each = 20_000
	var writers sync.WaitGroup
	for _, c := range []*Counter{pc, pc, cc} {
		writers.Go(func() {
			for range each {
				c.Inc()
				gauge.Inc()
			}
		})
	}
	take := func(s *Store) (sum uint64) {
		snap := s.Flush(FlushOptions{})
		defer snap.Close()
		snap.CounterChanges(func(_ *Cursor, d uint64) bool { sum += d; return true })
		return sum
	}
	e, im := parent.NewExport(), child.NewImport(nil)
	for range 100 { // the child does not flush yet
		handOver(t, e, im)
		flushed += take(parent)
	}
	e.Cut()
	for range 100 {
		handOver(t, e, im)
		e.Ack()
		flushed += take(child)
	}
	writers.Wait()
	handOver(t, e, im)
	e.Ack()
	if rest := take(parent); rest != 0 {
		t.Errorf("%d are left for the sinks of the parent", rest)
	}
	if got := child.Root().Gauge("g").Value(); got != 3*each {
		t.Errorf("gauge %d, want %d", got, 3*each)
	}
	im.Close()
	flushed += take(child)
	if got := cc.Value(); got != 3*each || flushed != 3*each {
		t.Errorf("shown %d, given to sinks %d, want %d", got, flushed, 3*each)
	}
}

// BenchmarkHandOver hands 100,000 counters over, the first time all of them
// and then a hundredth.
func BenchmarkHandOver(b *testing.B) {
	parent := New(Options{})
	var all []*Counter
	for i := range 100_000 {
		c := parent.Root().Counter(fmt.Sprintf("cluster.c%d.rq_%d", i/100, i%100))
		c.Add(3)
		all = append(all, c)
	}
	move := func(b *testing.B, e *Export, im *Import) {
		e.Next(func(h *ExportedStat) bool {
			if err := im.Add(h); err != nil {
				b.Error(err)
			}
			return true
		})
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			move(b, parent.NewExport(), New(Options{}).NewImport(nil))
		}
	})
	e, im := parent.NewExport(), New(Options{}).NewImport(nil)
	move(b, e, im)
	b.Run("changes", func(b *testing.B) {
		for b.Loop() {
			for i := 0; i < len(all); i += 100 {
				all[i].Inc()
			}
			move(b, e, im)
		}
	})
}
