package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// Histogram counts values. Create it with [New]; it must not be copied. The
// package comment describes concurrent use.
type Histogram struct {
	_ noCopy

	layout *Layout
	shared atomic.Pointer[shard] // nil until something is recorded
	owned  owners
	epoch  atomic.Uint32 // its low bit selects shard.ends

	mu schedule.Mutex // serializes the making of shards and pages

	snapshot atomic.Pointer[Snapshot]
	merged   *merged // what Merge remembers; nil until it found something
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// New returns an empty histogram.
func New(l *Layout) *Histogram {
	h := &Histogram{layout: l}
	h.snapshot.Store(l.unused)
	return h
}

// Layout returns what New was called with.
func (h *Histogram) Layout() *Layout { return h.layout }

// Snapshot returns the result of the last Merge, or an unused, empty snapshot
// if no value was merged yet; never nil. It costs one atomic load.
func (h *Histogram) Snapshot() *Snapshot { return h.snapshot.Load() }

// Record counts v once. Values whose fixed-point form exceeds 2^63-1 count as
// that largest value.
//
// It takes no lock and allocates only for a value in a range without earlier
// values.
func (h *Histogram) Record(v uint64) {
	if h.layout.scale != 1 {
		h.record(h.layout.scaled(v))
		return
	}
	h.record(int64(min(v, maxValue)))
}

// RecordN counts v n times, at the cost of one Record.
func (h *Histogram) RecordN(v, n uint64) {
	if n != 0 {
		h.recordMany(h.layout.scaled(v), n)
	}
}

// RecordDuration counts d once, at the cost of one Record: in seconds,
// milliseconds or microseconds on a layout of that unit, and in milliseconds on any
// other. The fraction is kept as
// far as Scale allows and rounded to nearest. On a layout that is not signed, a
// negative duration counts as 0.
func (h *Histogram) RecordDuration(d time.Duration) { h.record(h.layout.duration(d)) }

// duration returns d in fixed point.
func (l *Layout) duration(d time.Duration) int64 {
	unit := uint64(time.Millisecond)
	switch l.unit {
	case Seconds:
		unit = uint64(time.Second)
	case Microseconds:
		unit = uint64(time.Microsecond)
	}
	n := uint64(d)
	if d < 0 {
		n = -n
	}
	high, low := bits.Mul64(n, l.scale)
	low, carry := bits.Add64(low, unit/2, 0)
	if high += carry; high >= unit {
		high, low = unit-1, 0 // beyond maxValue in any case
	}
	n, _ = bits.Div64(high, low, unit)
	v := int64(min(n, maxValue))
	if d < 0 {
		return l.within(-v)
	}
	return v
}

// RecordFixed counts a value that is already in fixed point n times. On a layout
// that is not signed, a negative value counts as 0.
func (h *Histogram) RecordFixed(v int64, n uint64) {
	if n != 0 {
		h.recordMany(h.layout.within(v), n)
	}
}

// within returns the countable value nearest to v.
func (l *Layout) within(v int64) int64 {
	if v >= 0 {
		return v
	}
	if !l.signed {
		return 0
	}
	return max(v, -maxValue)
}

// scaled returns v in fixed point.
func (l *Layout) scaled(v uint64) int64 {
	high, low := bits.Mul64(v, l.scale)
	if high != 0 || low > maxValue {
		return maxValue
	}
	return int64(low)
}

// RecordFloat counts v with a weight: the number of values that v stands for,
// or 1 divided by the sample rate. The cost does not depend on the weight.
//
// v × Scale is rounded to the nearest whole number. Values beyond ±(2^63-1)
// count as those; negative values count as 0 unless the layout is signed; NaN
// is ignored.
//
// The whole part of a weight counts at once. Fractions are rounded up to
// multiples of 2^-32 and summed, and the value that brings the sum to a whole
// number counts once more: three values of weight 1/0.3 count 10. Weights that
// are not positive and finite are ignored, those above 2^53 count as 2^53.
func (h *Histogram) RecordFloat(v float64, weight float64) {
	if v != v {
		return
	}
	x := fixedPoint(v, h.layout)
	if weight == 1 {
		h.record(x)
		return
	}
	if n := h.whole(weight); n == 1 {
		h.record(x)
	} else if n > 1 {
		h.recordMany(x, n)
	}
}

func fixedPoint(v float64, l *Layout) int64 {
	v = math.Round(v * float64(l.scale))
	switch {
	case v >= maxValue:
		return maxValue
	case v >= 0:
		return int64(v)
	case !l.signed:
		return 0
	case v <= -maxValue:
		return -maxValue
	default:
		return int64(v)
	}
}

// whole returns how often a value of this weight counts now.
func (h *Histogram) whole(weight float64) uint64 {
	if !(weight > 0) || math.IsInf(weight, 1) {
		return 0
	}
	weight = min(weight, 1<<53)
	n := uint64(weight)
	if f := weight - float64(n); f != 0 {
		part := uint64(math.Ceil(f * (1 << 32)))
		// In 32 bits, so that the collected fractions may wrap.
		c := h.sharedShard().carry.Add(part)
		n += uint64(uint32(c>>32) - uint32((c-part)>>32))
	}
	return n
}

// recordShared counts v, n times, in the shared shard.
func (h *Histogram) recordShared(v int64, n uint64) *shard {
	s := h.sharedShard()
	magnitude, side := uint64(v), 0
	if v < 0 {
		magnitude, side = uint64(-v), 1
	}
	i := h.layout.bin(magnitude)
	if side == 1 {
		h.countIn(s, -i, n)
	} else if slot := h.layout.slot(i, magnitude); slot >= 0 {
		s.splits[slot].Add(n)
	} else {
		h.countIn(s, i, n)
	}
	schedule.Point()
	s.sums[side].add(magnitude, n)
	schedule.Point()
	epoch := h.epoch.Load() & 1
	schedule.Point()
	s.ends[epoch].include(endKey(v))
	schedule.Point()
	s.touch()
	return s
}

// countIn adds n to bin i of s, allocating memory if necessary.
func (h *Histogram) countIn(s *shard, i int, n uint64) {
	for {
		what := s.count(i, n)
		if what == nothing {
			return
		}
		h.makePage(s, i, what)
	}
}

// sharedShard returns the shared shard, creating it if necessary.
func (h *Histogram) sharedShard() *shard {
	if s := h.shared.Load(); s != nil {
		return s
	}
	return h.makeShared()
}

func (h *Histogram) makeShared() *shard {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.shared.Load()
	if s == nil {
		s = newShard(h.layout)
		h.layout.made.Add(int64(s.bytes()))
		h.shared.Store(s)
	}
	return s
}

// makePage makes the page of s that was found missing for bin i.
func (h *Histogram) makePage(s *shard, i int, what need) {
	h.mu.Lock()
	defer h.mu.Unlock()
	grown := 0
	if what == narrowNeeded {
		grown = s.narrow.need(pageOf(i))
	} else {
		grown = s.wide.need(pageOf(i))
	}
	h.layout.made.Add(int64(grown))
}
