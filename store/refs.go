package store

import "github.com/statsd-admin/statsd-admin/histogram"

// CounterDeltas is [Snapshot.CounterChanges] by reference, for readers that need no
// names: it visits a counter in a few nanoseconds. The order is that of the low 32
// bits of the references. Afterwards it visits, with a delta of 0, counters whose totals
// include what a parent process has flushed since.
func (snap *Snapshot) CounterDeltas(yield func(ref, total, delta uint64) bool) {
	refs := refsOf{c: snap.view.cursor(nil)}
	for _, list := range [][]counterChange{snap.counters, snap.settled} {
		for _, ch := range list {
			if !yield(refs.of(ch.x), ch.total, ch.delta) {
				return
			}
		}
	}
}

// GaugeValues is [Snapshot.GaugeChanges] by reference, hidden gauges included. The
// values are in the form of [Cursor.SetRaw].
func (snap *Snapshot) GaugeValues(yield func(ref, raw uint64) bool) {
	refs := refsOf{c: snap.view.cursor(nil)}
	for _, ch := range snap.gauges {
		if !yield(refs.of(ch.x), ch.raw) {
			return
		}
	}
}

// HistogramIntervals is [Snapshot.HistogramChanges] by reference.
func (snap *Snapshot) HistogramIntervals(yield func(ref uint64, h *histogram.Snapshot) bool) {
	refs := refsOf{c: snap.view.cursor(nil)}
	for _, ch := range snap.histograms {
		if !yield(refs.of(ch.x), ch.h) {
			return
		}
	}
}

// refsOf finds references of ids, many of one block after each other.
type refsOf struct {
	c    Cursor
	b    *block
	last id
}

func (r *refsOf) of(x id) uint64 {
	if r.b == nil || r.last>>slotBits != x>>slotBits {
		r.b = r.c.block(x)
	}
	r.last = x
	return r.b.ref(int(x & (1<<slotBits - 1)))
}

// HasRef reports whether the stat with a reference lives.
func (s *Store) HasRef(ref uint64) bool {
	b, i := s.at(id(ref))
	return b != nil && i < slotsPerBlock && b.ref(i) == ref && b.alive.has(i)
}

// HasRefs reports whether stats with the references that share all but the low ten
// bits with ref can still exist.
func (s *Store) HasRefs(ref uint64) bool {
	b, _ := s.at(id(ref))
	return b != nil && b.ref(0) == ref&^(1<<slotBits-1)
}

// Raw returns the value of a counter, regardless of resets, or gauge in a form that
// SetRaw takes. The difference of two raw values of a counter or of a whole-number
// gauge, modulo 2^64, is that of the values.
func (c *Cursor) Raw() uint64 { return c.raw }

// SetRaw makes c show another value, such as an earlier one, until it moves.
func (c *Cursor) SetRaw(raw uint64) { c.raw = raw }

// Whole reports whether the stat is a counter or a whole-number gauge.
func (c *Cursor) Whole() bool { return c.b.variant == variantCounter || c.b.variant == variantGauge }

// GaugeBlocks calls yield with the present values of gauges whose references share all but
// the low ten bits of ref, in the form of [Cursor.SetRaw], until yield returns false.
func (s *Store) GaugeBlocks(yield func(ref uint64, values *[1 << slotBits]uint64) bool) {
	blocks, ns := s.blocksInUse()
	for k, b := range blocks {
		if b.variant != variantGauge && b.variant != variantFloat {
			continue
		}
		var values [1 << slotBits]uint64
		for i := range ns[k] {
			values[i] = b.gauge(i)
		}
		if !yield(b.ref(0), &values) {
			return
		}
	}
}

// FlushedTotals sets dst to the totals as of the last flush of the counters that share
// all but the low ten bits of ref, and to 0 elsewhere. Gauges count as 0.
func (s *Store) FlushedTotals(ref uint64, dst *[1 << slotBits]uint64) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	*dst = [1 << slotBits]uint64{}
	if b, _ := s.at(id(ref)); b != nil && b.latch != nil && s.HasRefs(ref) {
		copy(dst[:], b.latch[:])
	}
}

// Flushed returns the total of a counter as of the last flush. It waits for a flush
// in progress.
func (c *Cursor) Flushed() uint64 {
	if c.b.variant != variantCounter {
		return 0
	}
	c.s.flushMu.Lock()
	defer c.s.flushMu.Unlock()
	return c.b.latch[c.i]
}
