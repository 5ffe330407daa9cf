package store

import (
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// Snapshot is what a flush found. It is immutable and may be read by any
// number of goroutines at a time, each with cursors of its own.
type Snapshot struct {
	Seq      uint64        // number of the flush, from 1
	Time     time.Time     // of the flush
	Interval time.Duration // since the flush before

	view       *View
	totals     bool
	counters   []counterChange // ascending ids
	gauges     []id
	histograms []id
	texts      []id
	kept       map[uint32]*keptBlock
}

type counterChange struct {
	x     id
	delta uint64
}

// keptBlock holds the values of a block's stats as of the flush.
type keptBlock struct {
	words []uint64
	hists []*histogram.Snapshot
}

// CounterChanges calls yield for each counter that was added to in the
// interval, with what was added. The cursor stands on the counter; its values
// are live, not those of the flush.
func (snap *Snapshot) CounterChanges(yield func(c *Cursor, delta uint64) bool) {
	c := snap.view.cursor(nil)
	for _, ch := range snap.counters {
		if c.stand(ch.x) && !yield(&c, ch.delta) {
			return
		}
	}
}

// GaugeChanges calls yield for each gauge that was written in the interval and
// is not hidden.
func (snap *Snapshot) GaugeChanges(yield func(c *Cursor) bool) {
	snap.visit(snap.gauges, func(c *Cursor) bool { return c.Hidden() || yield(c) })
}

// HiddenGaugeChanges calls yield for each hidden gauge that was written in the
// interval: for sinks that are told to send them, too.
func (snap *Snapshot) HiddenGaugeChanges(yield func(c *Cursor) bool) {
	snap.visit(snap.gauges, func(c *Cursor) bool { return !c.Hidden() || yield(c) })
}

// Texts calls yield for each text readout that was ever set. Its value is live,
// not that of the flush.
func (snap *Snapshot) Texts(yield func(c *Cursor) bool) {
	snap.visit(snap.texts, func(c *Cursor) bool { return !c.Used() || yield(c) })
}

// HistogramChanges calls yield for each histogram that recorded a value in the
// interval.
func (snap *Snapshot) HistogramChanges(yield func(c *Cursor) bool) {
	snap.visit(snap.histograms, yield)
}

// Changed returns how many counters, gauges and histograms changed.
func (snap *Snapshot) Changed() (counters, gauges, histograms int) {
	return len(snap.counters), len(snap.gauges), len(snap.histograms)
}

func (snap *Snapshot) visit(ids []id, yield func(c *Cursor) bool) {
	c := snap.view.cursor(nil)
	for _, x := range ids {
		if c.stand(x) && !yield(&c) {
			return
		}
	}
}

// keep copies the values of b, of which n slots were handed out before the
// flush. Store.flushMu must be held.
func (snap *Snapshot) keep(b *block, n int) {
	k := &keptBlock{}
	if b.pg != nil {
		// The marks of eight words are taken at a time, so a change of a
		// younger one can be in the snapshot too.
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
	if snap.kept == nil {
		snap.kept = make(map[uint32]*keptBlock)
	}
	snap.kept[b.index] = k
}

// Total returns the value as of the flush of the counter or gauge that c
// stands on: for counters all that was ever added. ok is false if the stat is
// younger than the snapshot or the flush was not asked for totals.
func (snap *Snapshot) Total(c *Cursor) (word uint64, ok bool) {
	if k := snap.kept[c.b.index]; k != nil && c.i < len(k.words) {
		return k.words[c.i], true
	}
	return 0, false
}

// Histogram returns the histogram that c stands on as of the flush; see
// [Snapshot.Total] for ok.
func (snap *Snapshot) Histogram(c *Cursor) (h *histogram.Snapshot, ok bool) {
	if k := snap.kept[c.b.index]; k != nil && c.i < len(k.hists) {
		return k.hists[c.i], true
	}
	return nil, false
}

// View returns the view of the names as of the flush. It must not be closed,
// and since a view is for one goroutine, use [Store.View] where several read.
func (snap *Snapshot) View() *View { return snap.view }

// Close gives back what the snapshot holds. It must not be used afterwards.
func (snap *Snapshot) Close() { snap.view.Close() }
