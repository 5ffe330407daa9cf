package histogram

import (
	"math"
	"math/bits"
)

// maxValue is the largest value, in fixed point, that a bin can hold.
const maxValue = math.MaxInt64

// geometry maps values to bins as HdrHistogram does with unit magnitude 0: the
// first 2^(half+1) bins are one unit wide, and every further 2^half bins are
// twice as wide as those before. Bins are numbered from 0 in ascending order.
// The mirrored bin of negative values is numbered -bin(|v|).
type geometry struct {
	half uint   // log2 of the bins per octave
	mask uint64 // 2^(half+1) - 1
}

// newGeometry returns the bins for 1 to 5 significant decimal digits: single
// units are kept up to 2 × 10^digits, rounded up to a power of two.
func newGeometry(digits int) geometry {
	units := uint64(2)
	for range digits {
		units *= 10
	}
	magnitude := uint(bits.Len64(units - 1))
	return geometry{half: magnitude - 1, mask: 1<<magnitude - 1}
}

// bin returns the number of the bin that holds v, which must not exceed maxValue.
func (g *geometry) bin(v uint64) int {
	half := g.half & 63
	e := uint(bits.Len64(v|g.mask)) - half - 1
	return int(e<<half + uint(v>>(e&63)))
}

// span returns the lowest and the highest value of bin i. i must not be negative.
func (g *geometry) span(i int) (lowest, highest uint64) {
	if uint64(i) <= g.mask {
		return uint64(i), uint64(i)
	}
	e := uint(i)>>g.half - 1
	lowest = (uint64(i) - uint64(e)<<g.half) << e
	return lowest, lowest + 1<<e - 1
}

// signedSpan is span for any bin number.
func (g *geometry) signedSpan(i int) (lowest, highest int64) {
	if i < 0 {
		lo, hi := g.span(-i)
		return -int64(hi), -int64(lo)
	}
	lo, hi := g.span(i)
	return int64(lo), int64(hi)
}
