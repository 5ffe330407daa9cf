package histogram

import (
	"math"
	"math/bits"
)

// Snapshot is the immutable result of a Merge.
type Snapshot struct {
	Used       bool   // a value was merged, now or earlier
	Interval   *Stats // since the Merge before; empty if nothing was recorded
	Cumulative *Stats // since the start

	window []windowStep // ascending; empty without a window
}

// Stats is an immutable summary of recorded values. All values are in shown
// units: the fixed-point value divided by the scale, and for Percent by
// 1,000,000 on top.
type Stats struct {
	layout   *Layout
	packed   packed
	count    uint64
	sum      wide128
	least    int64 // fixed point, as are all below; valid if count > 0
	greatest int64
}

// Layout returns the layout of the histogram that s is a summary of.
func (s *Stats) Layout() *Layout { return s.layout }

// Count returns the number of recorded values, counted by weight.
func (s *Stats) Count() uint64 { return s.count }

// Sum returns the sum of the values, weighted. It is computed in 128-bit fixed
// point and rounded to float64 once.
func (s *Stats) Sum() float64 { return s.sum.float() / s.layout.divide }

// Min returns the smallest value, or NaN if s is empty.
func (s *Stats) Min() float64 { return s.end(s.least) }

// Max returns the largest value, or NaN if s is empty.
func (s *Stats) Max() float64 { return s.end(s.greatest) }

func (s *Stats) end(v int64) float64 {
	if s.count == 0 {
		return math.NaN()
	}
	return float64(v) / s.layout.divide
}

// Quantile returns the value at quantile q, from 0 to 1; NaN if s is empty.
// See [Stats.Quantiles].
func (s *Stats) Quantile(q float64) float64 {
	var dst [1]float64
	return s.Quantiles(dst[:0], []float64{q})[0]
}

// Quantiles appends the values at the quantiles qs, which must be ascending, to
// dst. It walks the counts once.
//
// As hdrhistogram-go's ValueAtQuantile does, it takes the value of rank q ×
// count, rounded to the nearest whole number and at least 1, in ascending
// order, and returns the highest value of its bin. Unlike there, the result is
// clamped to the exact minimum and maximum; q at or below 0 is the minimum, q
// at or above 1 the maximum. If s is empty, each result is NaN.
func (s *Stats) Quantiles(dst []float64, qs []float64) []float64 {
	w := walker{page: s.packed.reader()}
	for _, q := range qs {
		switch {
		case s.count == 0 || q != q:
			dst = append(dst, math.NaN())
		case q <= 0:
			dst = append(dst, s.Min())
		case q >= 1:
			dst = append(dst, s.Max())
		default:
			_, v := s.layout.signedSpan(w.seek(rank(q, s.count)))
			dst = append(dst, s.end(min(max(v, s.least), s.greatest)))
		}
	}
	return dst
}

// rank computes in percent, as hdrhistogram-go does, to round alike.
func rank(q float64, count uint64) uint64 {
	r := q*100/100*float64(count) + 0.5
	switch {
	case r < 1:
		return 1
	case r >= float64(count):
		return count
	default:
		return uint64(r)
	}
}

// walker finds the bins of ascending ranks.
type walker struct {
	page    pageReader
	through uint64 // sum of the counts up to the end of page

	rest uint64 // of page.used: the bins not yet passed
	at   uint   // bit number of the first count in rest
	seen uint64 // sum of the counts passed
}

// seek returns the bin of the value of that rank, counted from 1 and at most
// the count of all values. Ranks must not descend from call to call; a lower
// one gives the current bin.
func (w *walker) seek(rank uint64) int {
	for w.through < rank && w.page.next() {
		w.rest, w.at, w.seen = w.page.used, w.page.at, w.through
		w.through += w.page.sum
	}
	// The call of field is written out: this loop is most of what quantiles cost.
	words, width, least := w.page.words, w.page.width, w.page.least
	mask := uint64(1)<<width - 1
	rest, at, seen := w.rest, w.at, w.seen
	for {
		c := least
		if width > 0 {
			i, shift := at/64, at%64
			v := words[i] >> shift
			if shift+width > 64 {
				v |= words[i+1] << (-shift & 63)
			}
			c += v & mask
		}
		if seen+c >= rank || rest&(rest-1) == 0 {
			break
		}
		seen += c
		at += width
		rest &= rest - 1
	}
	w.rest, w.at, w.seen = rest, at, seen
	return w.page.number*pageBins + bits.TrailingZeros64(rest)
}

// AppendCumulative appends, for each bound of the layout, how many of the
// values are at or below it. The counts are exact.
func (s *Stats) AppendCumulative(dst []uint64) []uint64 {
	for i := range s.layout.limits {
		dst = append(dst, s.packed.bound(i))
	}
	return dst
}

// Bins calls yield for each nonempty bin, in ascending order, until it returns
// false. The bin holds the values in [lower, lower+width).
func (s *Stats) Bins(yield func(lower, width float64, count uint64) bool) {
	divide := s.layout.divide
	s.FixedBins(func(lowest, highest int64, n uint64) bool {
		return yield(float64(lowest)/divide, float64(uint64(highest-lowest)+1)/divide, n)
	})
}

// FixedBins is like [Stats.Bins] but yields the lowest and the highest value of
// each bin in fixed point. [Layout.Divisor] converts them to shown units.
func (s *Stats) FixedBins(yield func(lowest, highest int64, count uint64) bool) {
	for r := s.packed.reader(); r.next(); {
		at := r.at
		for u := r.used; u != 0; u &= u - 1 {
			lo, hi := s.layout.signedSpan(r.number*pageBins + bits.TrailingZeros64(u))
			n := r.least + field(r.words, at, r.width)
			at += r.width
			if !yield(lo, hi, n) {
				return
			}
		}
	}
}

// wide128 is a signed number of 128 bits in two's complement.
type wide128 struct{ high, low uint64 }

func (a wide128) plus(b wide128) wide128 {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return wide128{high, low}
}

func (a wide128) minus(b wide128) wide128 {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	high, _ := bits.Sub64(a.high, b.high, borrow)
	return wide128{high, low}
}

func (a wide128) less(b wide128) bool {
	return int64(a.high) < int64(b.high) || a.high == b.high && a.low < b.low
}

func times(v int64, n uint64) wide128 {
	if v < 0 {
		high, low := bits.Mul64(uint64(-v), n)
		return wide128{}.minus(wide128{high, low})
	}
	high, low := bits.Mul64(uint64(v), n)
	return wide128{high, low}
}

func (a wide128) float() float64 {
	if int64(a.high) < 0 {
		return -wide128{}.minus(a).float()
	}
	return float64(a.high)*(1<<64) + float64(a.low)
}
