package pages

import (
	"math"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// axis maps values to percent of the width of a plot.
type axis struct {
	low, high float64
	log       bool
}

// newAxis returns an axis that holds all values of s.
func newAxis(s *histogram.Stats, log bool) axis {
	low, high := s.Min(), s.Max()
	a := axis{low, high, log && low > 0}
	if a.low == a.high { // one value stands in the middle
		pad := math.Max(math.Abs(low)*0.1, 0.5)
		a.low, a.high = low-pad, high+pad
		a.log = a.log && a.low > 0
	}
	return a
}

// at returns the place of x in percent, from 0 to 100.
func (a axis) at(x float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, x = math.Log(low), math.Log(high), math.Log(math.Max(x, a.low))
	}
	return min(max((x-low)/(high-low), 0), 1) * 100
}

// value is the inverse of at for a share from 0 to 1.
func (a axis) value(share float64) float64 {
	if a.log {
		return math.Exp(math.Log(a.low) + share*(math.Log(a.high)-math.Log(a.low)))
	}
	return a.low + share*(a.high-a.low)
}

// ticks returns round values on the axis: 1, 2 and 5 times powers of ten.
func (a axis) ticks() (out []float64) {
	if a.log {
		for exp := math.Floor(math.Log10(a.low)); exp <= math.Ceil(math.Log10(a.high)); exp++ {
			for _, m := range [...]float64{1, 2, 5} {
				if x := m * math.Pow(10, exp); x >= a.low && x <= a.high {
					out = append(out, x)
				}
			}
		}
		if len(out) >= 3 {
			return thinned(out)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	switch parts := (a.high - a.low) / step; { // at most eight
	case parts <= 1.6:
		step *= 0.2
	case parts <= 4:
		step *= 0.5
	}
	out = out[:0]
	for x := math.Ceil(a.low/step) * step; x <= a.high+step/1e6 && len(out) < 20; x += step {
		out = append(out, x)
	}
	return out
}

// thinned keeps at most ten ticks.
func thinned(ticks []float64) []float64 {
	for len(ticks) > 10 {
		kept := ticks[:0]
		for i, x := range ticks {
			if i%3 == 0 {
				kept = append(kept, x)
			}
		}
		ticks = kept
	}
	return ticks
}

// bin is a part of the axis with the counts of the values in it.
type bin struct {
	low, high            float64
	interval, cumulative uint64
}

// bins merges the bins of a histogram to about n of equal width on the axis. Bins at
// the ends without values are left out.
func bins(snapshot *histogram.Snapshot, a axis, n int) []bin {
	out := make([]bin, n)
	for i := range out {
		out[i].low, out[i].high = a.value(float64(i)/float64(n)), a.value(float64(i+1)/float64(n))
	}
	add := func(s *histogram.Stats, to func(*bin) *uint64) {
		s.Bins(func(lower, width float64, count uint64) bool {
			middle := min(max(lower+width/2, s.Min()), s.Max())
			i := int(a.at(middle) / 100 * float64(n))
			*to(&out[min(max(i, 0), n-1)]) += count
			return true
		})
	}
	add(snapshot.Interval, func(b *bin) *uint64 { return &b.interval })
	add(snapshot.Cumulative, func(b *bin) *uint64 { return &b.cumulative })
	return out
}

// binCount is how many bins of equal width the values deserve: up to most, but none
// narrower than the bins of the histogram.
func binCount(s *histogram.Stats, a axis, most int) int {
	n := most
	if narrow := narrowest(s, a); narrow > 0 {
		n = int(min(float64(most), math.Ceil(100/narrow)))
	}
	return max(n, 1)
}

// narrowest returns the greatest width of a bin of the histogram on the axis, in
// percent, so that every part of the axis can get a value.
func narrowest(s *histogram.Stats, a axis) (wide float64) {
	s.Bins(func(lower, width float64, _ uint64) bool {
		wide = max(wide, a.at(lower+width)-a.at(lower))
		return true
	})
	return wide
}

// miniHistogram appends a small picture of a distribution.
func (v *view) miniHistogram(s *histogram.Stats) {
	const n, width, height = 18, 96.0, 20.0
	a := newAxis(s, true)
	list := bins(&histogram.Snapshot{Interval: s, Cumulative: s}, a, n)
	most := uint64(1)
	for _, b := range list {
		most = max(most, b.cumulative)
	}
	v.Put(h("<svg class='s' viewBox='0 0 96 20' aria-hidden='true'>"))
	pitch := width / n
	for i, b := range list {
		if b.cumulative == 0 {
			continue
		}
		tall := max(height*float64(b.cumulative)/float64(most), 1)
		v.Put(h("<rect class='f' x='"), float64(i)*pitch, h("' y='"), height-tall, h("' width='"), pitch-1, h("' height='"), tall, h("'/>"))
	}
	v.Put(h("<path class='base' d='M0 19.75h96'/></svg>"))
}
