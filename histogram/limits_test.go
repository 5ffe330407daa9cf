package histogram

import (
	"math"
	"testing"
	"time"
)

// TestSettingsAtTheirLimitsAreAccepted has the last legal value of each setting. TestLayoutErrors
// and TestShownSettings have illegal ones.
func TestSettingsAtTheirLimitsAreAccepted(t *testing.T) {
	for _, c := range []Config{
		{SignificantDigits: 1}, {SignificantDigits: 5}, {Scale: 1}, {Scale: math.MaxInt64}, {Unit: Percent},
		{Bounds: []float64{math.SmallestNonzeroFloat64, math.MaxFloat64}}, {Quantiles: []float64{0, 1}}, {Steps: 1, Window: time.Millisecond},
		{Steps: 100, Window: 100 * time.Millisecond}, {Window: 5 * time.Millisecond}, {NativeFactor: 1}, {NativeFactor: math.MaxFloat64},
	} {
		if _, err := NewLayout(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []Config{
		{Steps: -1}, {Window: 5*time.Millisecond - 1}, {Steps: 1, Window: time.Millisecond - 1}, {Quantiles: []float64{-0.1}}, {Quantiles: []float64{0.5, 0.9, 0.9}},
		{NativeFactor: math.Nextafter(1, 0)}, {NativeBuckets: -1}, {Unit: Seconds + 1}, {Bounds: []float64{1, 2, 3, 3}},
	} {
		if _, err := NewLayout(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestNarrowCountersAtTheirLimit fills a narrow counter to its limit, below and beyond, by
// one value and by many, in shared and in owned memory.
func TestNarrowCountersAtTheirLimit(t *testing.T) {
	l, err := NewLayout(Config{Bounds: []float64{10}})
	if err != nil {
		t.Fatal(err)
	}
	steps := []uint64{1, 2, laneLimit - 2, laneLimit - 1, laneLimit, laneLimit + 1, 2*laneLimit - 1, 2 * laneLimit}
	for _, owned := range []bool{false, true} {
		for _, first := range steps {
			for _, second := range steps {
				h := New(l)
				if owned {
					OwnAll(h)
				}
				h.RecordN(10, 1)
				h.RecordN(9, first)
				h.RecordN(9, second)
				h.RecordN(9, 1)
				h.RecordN(11, 3) // the counter beside it
				want := first + second + 1
				s := h.Merge().Cumulative
				if got := s.AppendCumulative(nil)[0]; got != want+1 || s.Count() != want+4 || s.Sum() != float64(9*want+10+33) {
					t.Fatalf("owned %t, %d and %d: %d up to 10, count %d, sum %v; want %d, %d", owned, first, second, got, s.Count(), s.Sum(), want+1, want+4)
				}
			}
		}
	}
}

// TestBoundsAtTheirValue has values at each bound and next to it, in a scale in which the
// product with the bound is not exact.
func TestBoundsAtTheirValue(t *testing.T) {
	for scale, bounds := range map[float64][]float64{
		100:       {0.01, 0.29, 0.57, 1, 1.13, 2.03, 4.35, 100.07},
		1_000_000: {0.000249, 131072.3, 273309.1, 525873.2}, // whose products lack more than a millionth
	} {
		l, err := NewLayout(Config{Bounds: bounds, Scale: int64(scale)})
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range bounds {
			for steps, want := range map[float64]uint64{-1: 1, 0: 1, 1: 0} {
				h := New(l)
				h.RecordFloat((math.Round(b*scale)+steps)/scale, 1)
				if got := h.Merge().Cumulative.AppendCumulative(nil)[i]; got != want {
					t.Errorf("%v and %v steps of 1/%v: %d values up to it, want %d", b, steps, scale, got, want)
				}
			}
		}
	}
}

// TestValuesAtTheLargest has values around the largest countable one.
func TestValuesAtTheLargest(t *testing.T) {
	l, err := NewLayout(Config{Scale: 10, Signed: true})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[uint64]int64{0: 0, 1: 10, maxValue / 10: maxValue / 10 * 10, maxValue/10 + 1: maxValue, math.MaxUint64: maxValue, math.MaxUint64/10 + 1: maxValue} {
		if got := l.scaled(v); got != want {
			t.Errorf("%d: %d, want %d", v, got, want)
		}
	}
	for v, want := range map[int64]int64{5: 5, 0: 0, -5: -5, -maxValue: -maxValue, math.MinInt64: -maxValue} {
		if got := l.within(v); got != want {
			t.Errorf("%d: %d, want %d", v, got, want)
		}
	}
	for v, want := range map[float64]int64{1e300: maxValue, -1e300: -maxValue, math.Inf(1): maxValue, math.Inf(-1): -maxValue, 0.04: 0, 0.05: 1, -0.05: -1, -0.04: 0} {
		if got := fixedPoint(v, l); got != want {
			t.Errorf("%v: %d, want %d", v, got, want)
		}
	}
}
