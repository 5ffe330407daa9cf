package store

import (
	"math"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// Snapshot is the result of a flush: the changes of an interval. It is immutable
// and includes the changes of stats that ended in the interval or have ended
// since. Any number of goroutines can read it at the same time.
type Snapshot struct {
	Seq      uint64        // number of the flush, from 1
	Time     time.Time     // of the flush
	Interval time.Duration // since the flush before
	Last     bool          // FlushOptions.Last was set

	view       *View
	totals     bool
	counters   []counterChange
	settled    []counterChange // whose totals grew by what a parent process had flushed
	gauges     []gaugeChange
	histograms []histogramChange
	texts      []textValue
	kept       []*keptBlock // by block index; see FlushOptions.Totals
	ended      []id         // since the flush before; see KeepNames
	merged     *merged
}

type counterChange struct {
	x            id
	total, delta uint64
}

type gaugeChange struct {
	x   id
	raw uint64
}

type histogramChange struct {
	x id
	h *histogram.Snapshot
}

type textValue struct {
	x id
	v *string
}

// keptBlock holds the values of a block's stats as of the flush.
type keptBlock struct {
	b     *block // its index can have another one later
	words []uint64
	hists []*histogram.Snapshot
}

// CounterChanges calls yield with each counter that grew in the interval, and
// with its growth, until yield returns false. The cursor has the value as of the
// flush. The growth of a counter that ended is part of that of a counter with the
// same name and tags that grew too.
func (snap *Snapshot) CounterChanges(yield func(c *Cursor, delta uint64) bool) {
	c := snap.cursor()
	c.flushed = true
	list := snap.changes().counters
	ahead := aheadOf(c, list)
	for n, ch := range list {
		ahead.before(n)
		if !yield(c.read(ch.x, ch.total), ch.delta) {
			return
		}
	}
}

// GaugeChanges calls yield with each gauge that was written in the interval and
// is not hidden, until yield returns false. The cursor has the value as of the
// flush. A gauge that ended is left out if one with the same name and tags was
// written too.
func (snap *Snapshot) GaugeChanges(yield func(c *Cursor) bool) {
	snap.changedGauges(false, yield)
}

// HiddenGaugeChanges is [Snapshot.GaugeChanges] for hidden gauges.
func (snap *Snapshot) HiddenGaugeChanges(yield func(c *Cursor) bool) {
	snap.changedGauges(true, yield)
}

func (snap *Snapshot) changedGauges(hidden bool, yield func(c *Cursor) bool) {
	c := snap.cursor()
	c.flushed = true
	list := snap.changes().gauges
	ahead := aheadOf(c, list)
	for n, ch := range list {
		ahead.before(n)
		if c.read(ch.x, ch.raw); c.Hidden() == hidden && !yield(c) {
			return
		}
	}
}

// Texts calls yield with each text readout that was ever set, and with its
// value as of the flush, until yield returns false.
func (snap *Snapshot) Texts(yield func(c *Cursor, value string) bool) {
	c := snap.cursor()
	for _, t := range snap.texts {
		if !yield(c.read(t.x, 0), *t.v) {
			return
		}
	}
}

// HistogramChanges calls yield with each histogram that recorded values in the
// interval, and with its state as of the flush, until yield returns false. The
// interval includes that of one with the same name and tags that ended.
func (snap *Snapshot) HistogramChanges(yield func(c *Cursor, h *histogram.Snapshot) bool) {
	c := snap.cursor()
	for _, ch := range snap.changes().histograms {
		if !yield(c.read(ch.x, 0), ch.h) {
			return
		}
	}
}

// Ended calls yield with each stat that ended since the flush before, until yield
// returns false. Without [Store.KeepNames] there are none. Only methods of the cursor
// that concern the name or the times of the stat are useful.
func (snap *Snapshot) Ended(yield func(c *Cursor) bool) {
	c := snap.cursor()
	for _, x := range snap.ended {
		if !yield(c.read(x, 0)) {
			return
		}
	}
}

// Changed returns how many counters, gauges and histograms changed.
func (snap *Snapshot) Changed() (counters, gauges, histograms int) {
	return len(snap.counters), len(snap.gauges), len(snap.histograms)
}

// Recorded returns the sum of all increments and the number of values that histograms got.
func (snap *Snapshot) Recorded() (increments, values uint64) {
	for _, ch := range snap.counters {
		increments += ch.delta
	}
	for _, ch := range snap.histograms {
		values += ch.h.Interval.Count()
	}
	return increments, values
}

// Bytes estimates the memory of the snapshot, without that of the stats themselves.
func (snap *Snapshot) Bytes() int {
	n := 24*(cap(snap.counters)+cap(snap.settled)) + 16*(cap(snap.gauges)+cap(snap.histograms)+cap(snap.texts)) + 4*cap(snap.ended)
	for _, ch := range snap.histograms {
		n += ch.h.Interval.Bytes() + ch.h.Cumulative.Bytes()
	}
	for _, k := range snap.kept {
		if k != nil {
			n += 8 * (len(k.words) + len(k.hists))
		}
	}
	return n
}

// cursor returns a cursor for [Cursor.read].
func (snap *Snapshot) cursor() *Cursor {
	c := snap.view.cursor(nil)
	c.step = &c.next[0]
	return &c
}

// read moves c to x, which can have ended, with the given value.
func (c *Cursor) read(x id, raw uint64) *Cursor {
	b, i := c.block(x), int(x&(1<<slotBits-1))
	rec := b.record(i)
	n, w := uvarint(rec)
	s := c.step // its fields are read soon, and wider stores would have to end before
	s.b, s.rec, s.cut, s.x, s.i, s.raw = b, rec, uint32(w)+uint32(n), x, i, raw
	return c
}

// keep copies the values of b, of which n slots were handed out before the
// flush. Store.flushMu must be held.
func (snap *Snapshot) keep(b *block, n int) {
	k := &keptBlock{b: b}
	if b.pg != nil {
		// Marks are taken for eight words at once, so the snapshot can have
		// changes of younger stats.
		n = min((n+7)&^7, slotsPerBlock)
	}
	switch b.variant {
	case variantCounter:
		k.words = append(k.words, b.latch[:n]...)
	case variantGauge, variantFloat:
		k.words = make([]uint64, n)
		for i := range k.words {
			k.words[i] = b.gauge(i)
		}
	case variantHistogram:
		k.hists = make([]*histogram.Snapshot, n)
		for i, h := range (*b.hists.Load())[:n] {
			k.hists[i] = h.Snapshot()
		}
	default:
		return
	}
	if n := int(b.index) + 1 - len(snap.kept); n > 0 {
		snap.kept = append(snap.kept, make([]*keptBlock, n)...)
	}
	snap.kept[b.index] = k
}

// keptOf returns the values of b as of the flush, nil if there are none.
func (snap *Snapshot) keptOf(b *block) *keptBlock {
	if int(b.index) < len(snap.kept) {
		if k := snap.kept[b.index]; k != nil && k.b == b {
			return k
		}
	}
	return nil
}

// Total returns the value as of the flush of the counter or gauge at c; for a
// counter it is the sum of all increments. ok is false if the stat is younger
// than the snapshot or FlushOptions.Totals was not set.
func (snap *Snapshot) Total(c *Cursor) (word uint64, ok bool) {
	if c.flushed {
		return c.raw, snap.totals
	}
	if k := snap.keptOf(c.b); k != nil && c.i < len(k.words) {
		return k.words[c.i], true
	}
	return 0, false
}

// Value returns the value as of the flush of the counter or gauge at c as a number:
// for a counter the sum of all increments. See [Snapshot.Total] for ok.
func (snap *Snapshot) Value(c *Cursor) (x float64, ok bool) {
	word, ok := snap.Total(c)
	switch {
	case !ok:
		return 0, false
	case c.b.variant == variantFloat:
		return math.Float64frombits(word), true
	case c.b.variant == variantGauge && int64(word) < 0:
		return float64(int64(word)), true
	}
	return float64(word), true
}

// Histogram returns the histogram at c as of the flush; see [Snapshot.Total] for
// ok.
func (snap *Snapshot) Histogram(c *Cursor) (h *histogram.Snapshot, ok bool) {
	if k := snap.keptOf(c.b); k != nil && c.i < len(k.hists) {
		return k.hists[c.i], true
	}
	return nil, false
}

// View returns the view of the names as of the flush. It must not be closed, and
// only one goroutine can use it at a time; use [Store.View] where several read.
func (snap *Snapshot) View() *View { return snap.view }

// Close releases the snapshot. It must not be used afterwards.
func (snap *Snapshot) Close() { snap.view.Close() }
