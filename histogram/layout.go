package histogram

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes the histograms of a [Layout]. Its zero value means all
// defaults.
type Config struct {
	// SignificantDigits is the precision of the bins: 1 to 5 decimal digits, 0
	// means 2. With 2, a quantile is at most 1 % above the recorded value of
	// its rank.
	//
	// Memory is allocated for 64 adjacent bins, and each digit multiplies the
	// number of bins by ten: latencies between 10 and 100,000 take about 3 KB
	// of bins with two digits and 16 KB with three. In addition, every 64 bins
	// between the smallest and the largest value take 8 bytes, at most 1 KB
	// with two digits and 800 KB with five.
	SignificantDigits int

	// Scale is the fixed point: values are multiplied by Scale and rounded to the
	// nearest integer before they are counted, and all results are divided by it.
	// 0 means 1, and 1,000,000 with Seconds; 1000 keeps three decimals.
	Scale int64

	// Bounds are the upper bounds of the cumulative bucket counts, in shown
	// units (for Percent: 0 to 1). Each must be positive, finite and unique;
	// they are sorted. nil means [DefaultBounds] of the Unit.
	Bounds []float64

	Unit Unit

	// Signed counts negative values in separate bins. Without it, a negative value
	// counts as 0.
	Signed bool

	// Quantiles makes expositions show a summary of these quantiles, from 0 to 1
	// and ascending, instead of buckets. nil means buckets.
	Quantiles []float64
	// Window is the time that [Snapshot.Window] covers, in Steps steps. 0 means
	// the interval since the last Merge. Steps must be 1 to 100, 0 means 5.
	Window time.Duration
	Steps  int
	// NativeFactor is the largest growth from one bucket of a native histogram
	// to the next, and NativeBuckets how many buckets there can be before they
	// become wider. 0 means the resolution of the bins and no limit.
	NativeFactor  float64
	NativeBuckets int
}

// DefaultBounds returns the bounds of a Config of unit u that has none.
func DefaultBounds(u Unit) []float64 {
	if u == Seconds {
		return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	}
	return []float64{
		0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000,
		30000, 60000, 300000, 600000, 1800000, 3600000,
	}
}

// Layout is a checked Config, shared by many histograms.
type Layout struct {
	geometry

	scale  uint64
	signed bool

	// straddle has a bit for each bin, 64 to an element, that is set when a
	// bound lies inside the bin, so that some of its values are at or below the
	// bound and some are above. Values of such a bin that are not above all its
	// bounds are counted in a slot of splits instead of in the bin.
	straddle []uint64
	splits   []split // ascending by limit

	limits []limit // one per bound
	bounds []float64
	divide float64 // fixed point to shown units
	digits int
	unit   Unit

	quantiles     []float64
	window        time.Duration
	steps         int
	clock         time.Time // that the steps are counted with; see step
	nativeFactor  float64
	nativeBuckets int

	empty  *Stats
	unused *Snapshot

	scratch sync.Pool // of *scratch, for Merge
	made    atomic.Int64
}

// split is the part of a straddling bin that holds the values up to limit and
// above the limit of the split before it.
type split struct {
	bin   int
	limit uint64
}

// limit selects the values up to a bound: all bins below bin, and of that bin
// the splits in [firstSplit, endSplit).
type limit struct {
	bin, firstSplit, endSplit int
}

// Empty returns the summary of no values.
func (l *Layout) Empty() *Stats { return l.empty }

// NewLayout checks c and returns its layout. The error names the setting and
// its allowed values.
func NewLayout(c Config) (*Layout, error) {
	c.SignificantDigits = cmp.Or(c.SignificantDigits, 2)
	if c.SignificantDigits < 1 || c.SignificantDigits > 5 {
		return nil, fmt.Errorf("histogram: significant digits %d not in [1,5]", c.SignificantDigits)
	}
	if c.Scale == 0 {
		c.Scale = 1
		if c.Unit == Seconds {
			c.Scale = 1_000_000
		}
	}
	if c.Scale < 1 {
		return nil, fmt.Errorf("histogram: scale %d not at least 1", c.Scale)
	}
	if c.Unit > Seconds {
		return nil, fmt.Errorf("histogram: unit %d unknown", c.Unit)
	}
	bounds := slices.Clone(c.Bounds)
	if bounds == nil {
		bounds = DefaultBounds(c.Unit)
	}
	for _, b := range bounds {
		if !(b > 0) || math.IsInf(b, 1) {
			return nil, fmt.Errorf("histogram: bound %v not a positive finite number", b)
		}
	}
	slices.Sort(bounds)
	for i, b := range bounds {
		if i > 0 && bounds[i-1] == b {
			return nil, fmt.Errorf("histogram: bound %v not unique", b)
		}
	}
	if err := c.checkShown(); err != nil {
		return nil, err
	}
	l := &Layout{
		geometry: newGeometry(c.SignificantDigits),
		scale:    uint64(c.Scale),
		signed:   c.Signed,
		bounds:   bounds,
		divide:   float64(c.Scale),
		digits:   c.SignificantDigits,
		unit:     c.Unit,

		quantiles: slices.Clone(c.Quantiles), window: c.Window, steps: c.Steps, clock: time.Now(),
		nativeFactor: c.NativeFactor, nativeBuckets: c.NativeBuckets,
	}
	if c.Unit == Percent {
		l.divide *= percentUnits
	}
	l.setLimits()
	l.empty = &Stats{layout: l}
	l.unused = &Snapshot{Interval: l.empty, Cumulative: l.empty}
	l.scratch.New = func() any { return new(scratch) }
	return l, nil
}

// checkShown checks the settings that do not affect how values are counted.
func (c *Config) checkShown() error {
	for i, q := range c.Quantiles {
		if !(q >= 0 && q <= 1) {
			return fmt.Errorf("histogram: quantile %v not in [0,1]", q)
		}
		if i > 0 && c.Quantiles[i-1] >= q {
			return fmt.Errorf("histogram: quantile %v not greater than the one before it", q)
		}
	}
	c.Steps = cmp.Or(c.Steps, 5)
	if c.Steps < 1 || c.Steps > 100 {
		return fmt.Errorf("histogram: steps %d not in [1,100]", c.Steps)
	}
	if c.Window != 0 && c.Window < time.Duration(c.Steps)*time.Millisecond {
		return fmt.Errorf("histogram: window %v shorter than a millisecond a step", c.Window)
	}
	if c.NativeFactor != 0 && !(c.NativeFactor >= 1 && c.NativeFactor < math.Inf(1)) || c.NativeBuckets < 0 {
		return fmt.Errorf("histogram: native histogram with factor %v and %d buckets, want at least 1 and 0", c.NativeFactor, c.NativeBuckets)
	}
	return nil
}

// setLimits finds the bins that straddle a bound.
func (l *Layout) setLimits() {
	for _, b := range l.bounds {
		v := l.fixedBound(b)
		bin := l.bin(v)
		_, highest := l.span(bin)
		if v == highest {
			l.limits = append(l.limits, limit{bin: bin + 1})
			continue
		}
		if n := len(l.splits); n == 0 || l.splits[n-1].limit != v {
			l.splits = append(l.splits, split{bin, v})
		}
		end := len(l.splits)
		first := end
		for first > 0 && l.splits[first-1].bin == bin {
			first--
		}
		l.limits = append(l.limits, limit{bin, first, end})
		for len(l.straddle) <= bin/pageBins {
			l.straddle = append(l.straddle, 0)
		}
		l.straddle[bin/pageBins] |= 1 << (bin % pageBins)
	}
}

// fixedBound returns the largest fixed-point value at or below b.
func (l *Layout) fixedBound(b float64) uint64 {
	x := l.floor(b)
	if x >= maxValue {
		return maxValue
	}
	return uint64(x)
}

// floor returns the largest whole number of fixed-point units at or below v. A number that
// is shown as v, or within a millionth of the product, is taken for it: 0.000249 × 1,000,000
// is not exact in binary.
func (l *Layout) floor(v float64) float64 {
	x := v * l.divide
	if r := math.Round(x); l.divide != 1 && (r/l.divide == v || math.Abs(x-r) <= 1e-6) {
		return r
	}
	return math.Floor(x)
}

// splitOf is slot for a bin that straddles a bound.
func (l *Layout) splitOf(bin int, v uint64) int {
	n := uint(len(l.splits))
	lo, hi := uint(0), n
	for lo < hi {
		if mid := (lo + hi) / 2; mid < n && l.splits[mid].limit < v { // mid < n: writers hold their slot here and must not panic
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < n && l.splits[lo].bin == bin {
		return int(lo)
	}
	return -1
}

// slot returns the slot of splits that counts v, which is not negative, or -1
// if bin counts it.
func (l *Layout) slot(bin int, v uint64) int {
	if l.straddles(bin) {
		return l.splitOf(bin, v)
	}
	return -1
}

// straddles reports whether a bound lies inside bin, which is not negative.
func (l *Layout) straddles(bin int) bool {
	w := uint(bin) / pageBins
	return w < uint(len(l.straddle)) && l.straddle[w]>>(uint(bin)%pageBins)&1 != 0
}

// Bounds returns the bounds in ascending order, in shown units. The caller must
// not change them.
func (l *Layout) Bounds() []float64 { return l.bounds }

// Unit returns what the values measure.
func (l *Layout) Unit() Unit { return l.unit }

// Divisor returns how many fixed-point units make one shown unit: Scale, and for
// Percent 1,000,000 times as many.
func (l *Layout) Divisor() float64 { return l.divide }

// SignificantDigits returns the precision of the bins, 1 to 5.
func (l *Layout) SignificantDigits() int { return l.digits }
