package histogram_test

import (
	"math"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// statsd is a layout as network timers use it.
func statsd(t testing.TB) *histogram.Layout {
	return newLayout(t, histogram.Config{Scale: 1000, Signed: true, Bounds: []float64{0.29, 12.5, 12.501}})
}

func TestFractions(t *testing.T) {
	h := histogram.New(statsd(t))
	for _, v := range []float64{12.5, 0.29, 0.2904, 12.5006} {
		h.RecordFloat(v, 1)
	}
	s := h.Merge().Cumulative
	checkCounts(t, "fractions", s, 2, 3, 4)
	checkFloats(t, "min, max, sum", []float64{s.Min(), s.Max(), s.Sum()}, []float64{0.29, 12.501, 25.581})
}

func TestNegatives(t *testing.T) {
	h := histogram.New(statsd(t))
	for _, v := range []float64{-1000, -12.5, -0.001, 0, 3} {
		h.RecordFloat(v, 1)
	}
	s := h.Merge().Cumulative
	checkFloats(t, "min, max, sum", []float64{s.Min(), s.Max(), s.Sum()}, []float64{-1000, 3, -1009.501})
	checkCounts(t, "negatives", s, 4, 5, 5)
	// The highest value of the bin of -12.5 is nearer to 0: 12500 is in
	// [12480,12543], so its mirror image is in [-12543,-12480].
	checkFloats(t, "quantiles", s.Quantiles(nil, []float64{0, 0.4, 0.6, 0.8, 1}), []float64{-1000, -12.48, -0.001, 0, 3})
	var lowers []float64
	s.Bins(func(lower, _ float64, _ uint64) bool {
		lowers = append(lowers, lower)
		return len(lowers) < 4
	})
	checkFloats(t, "first four bins", lowers, []float64{-1003.519, -12.543, -0.001, 0})
}

func TestNegativesCountAsZeroUnlessSigned(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{}))
	h.RecordFloat(-7, 1)
	s := h.Merge().Cumulative
	checkFloats(t, "min, max, sum", []float64{s.Min(), s.Max(), s.Sum()}, []float64{0, 0, 0})
	if s.Count() != 1 {
		t.Errorf("count = %d, want 1", s.Count())
	}
}

// TestFractionalWeightsAddUp checks that weights with a whole sum count a whole
// number of values, although 1/0.3 is not exact in binary.
func TestFractionalWeightsAddUp(t *testing.T) {
	tests := []struct {
		name   string
		times  int
		weight float64
		want   uint64
	}{
		{"rate-0.3", 3, 1 / 0.3, 10},
		{"rate-0.1", 7, 1 / 0.1, 70},
		{"seven-tenths", 1, 0.7 / 0.1, 7},
		{"four-tenths", 5, 0.4, 2},
		{"thirds-long", 3000, 1.0 / 3, 1000},
		{"rate-1e-6", 2, 1e6, 2_000_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := histogram.New(statsd(t))
			for range tt.times {
				h.RecordFloat(12.5, tt.weight)
				h.Merge() // the rest survives
			}
			s := h.Merge().Cumulative
			if got := s.Count(); got != tt.want {
				t.Errorf("%d × weight %v: count = %d, want %d", tt.times, tt.weight, got, tt.want)
			}
			if got, want := s.Sum(), 12.5*float64(tt.want); got != want {
				t.Errorf("sum = %v, want %v", got, want)
			}
		})
	}
}

// TestWholeRatesAreExact checks that n samples at a rate that divides n count
// exactly n / rate values.
func TestWholeRatesAreExact(t *testing.T) {
	l := newLayout(t, histogram.Config{})
	for milli := 1; milli <= 1000; milli++ {
		rate := float64(milli) / 1000
		h := histogram.New(l)
		for range milli {
			h.RecordFloat(1, 1/rate)
		}
		if got := h.Merge().Cumulative.Count(); got != 1000 {
			t.Errorf("%d samples at rate %v count %d, want 1000", milli, rate, got)
		}
	}
}

func TestOddInputIsIgnoredOrSaturates(t *testing.T) {
	l := statsd(t)
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		h := histogram.New(l)
		h.RecordFloat(5, w)
		if s := h.Merge(); s.Used || s.Cumulative.Count() != 0 {
			t.Errorf("weight %v counts %d", w, s.Cumulative.Count())
		}
	}
	h := histogram.New(l)
	h.RecordFloat(math.NaN(), 1)
	if s := h.Merge(); s.Used {
		t.Error("NaN is counted")
	}
	h.RecordFloat(math.Inf(1), 1)
	h.RecordFloat(math.Inf(-1), 1)
	h.RecordFloat(1e300, 1)
	h.Record(math.MaxUint64)
	s := h.Merge().Cumulative
	most := float64(math.MaxInt64) / 1000
	checkFloats(t, "min, max, sum", []float64{s.Min(), s.Max(), s.Sum()}, []float64{-most, most, 2 * most})
	h.RecordFloat(1, 1e300)
	if got, want := h.Merge().Interval.Count(), uint64(1<<53); got != want {
		t.Errorf("weight 1e300 counts %d, want %d", got, want)
	}
}

// TestSumsBeyond64Bits adds up to about 2^75.
func TestSumsBeyond64Bits(t *testing.T) {
	for _, owned := range []bool{false, true} {
		h := histogram.New(newLayout(t, histogram.Config{Signed: true}))
		if owned {
			histogram.OwnAll(h)
		}
		for range 4096 {
			h.Record(math.MaxInt64)
		}
		s := h.Merge()
		if got := s.Cumulative.Sum(); got != 1<<75 {
			t.Errorf("owned %t: sum = %v, want 2^75", owned, got)
		}
		h.RecordFloat(math.Inf(-1), 8192)
		h.Record(5)
		s = h.Merge()
		if got := s.Interval.Sum(); got != -(1 << 76) {
			t.Errorf("owned %t: interval sum = %v, want -2^76", owned, got)
		}
		if got := s.Cumulative.Sum(); got != -(1 << 75) {
			t.Errorf("owned %t: sum = %v, want -2^75", owned, got)
		}
	}
}

func TestRecordN(t *testing.T) {
	for _, owned := range []bool{false, true} {
		h := histogram.New(newLayout(t, histogram.Config{Scale: 10, Bounds: []float64{10}}))
		if owned {
			histogram.OwnAll(h)
		}
		h.RecordN(5, 0)
		if s := h.Merge(); s.Used {
			t.Errorf("owned %t: no values make the histogram used", owned)
		}
		h.RecordN(10, 100_000)
		h.RecordN(2000, 3)
		s := h.Merge().Interval
		checkCounts(t, "RecordN", s, 100_000)
		if s.Count() != 100_003 || s.Sum() != 1_006_000 || s.Min() != 10 || s.Max() != 2000 {
			t.Errorf("owned %t: count %d, sum %v, %v to %v", owned, s.Count(), s.Sum(), s.Min(), s.Max())
		}
	}
}

func TestRecordDuration(t *testing.T) {
	for _, tt := range []struct {
		config histogram.Config
		d      time.Duration
		want   float64
	}{
		{histogram.Config{Unit: histogram.Milliseconds}, 12 * time.Millisecond, 12},
		{histogram.Config{Unit: histogram.Milliseconds}, 12_499_999, 12},
		{histogram.Config{Unit: histogram.Milliseconds}, 12_500_000, 13},
		{histogram.Config{Unit: histogram.Milliseconds, Scale: 1000}, 12_345_678, 12.346},
		{histogram.Config{Unit: histogram.Microseconds}, 12 * time.Millisecond, 12_000},
		{histogram.Config{Unit: histogram.Microseconds, Scale: 1000}, 1, 0.001},
		{histogram.Config{Unit: histogram.Seconds}, 12_345_678_999, 12.345679},
		{histogram.Config{Unit: histogram.Seconds, Scale: 1}, 1500 * time.Millisecond, 2},
		{histogram.Config{}, time.Second, 1000},
		{histogram.Config{Unit: histogram.Percent}, time.Second, 0.001},
		{histogram.Config{}, -time.Second, 0},
		{histogram.Config{Signed: true}, -1_500_000, -2},
		{histogram.Config{Signed: true, Scale: 10}, -1_500_000, -1.5},
		{histogram.Config{}, math.MaxInt64, 9223372036855},
		{histogram.Config{Signed: true}, math.MinInt64, -9223372036855},
		{histogram.Config{Scale: math.MaxInt64}, math.MaxInt64, 1},
		{histogram.Config{Scale: math.MaxInt64, Signed: true}, math.MinInt64, -1},
	} {
		h := histogram.New(newLayout(t, tt.config))
		h.RecordDuration(tt.d)
		if got := h.Merge().Cumulative; got.Count() != 1 || got.Max() != tt.want {
			t.Errorf("%+v: %d ns counts as %v, want %v", tt.config, tt.d, got.Max(), tt.want)
		}
	}
}

func TestBinsOutgrowNarrowCounters(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Bounds: []float64{10}}))
	const n = 200_000
	for range n {
		h.Record(10)
		h.Record(11)
	}
	s := h.Merge().Cumulative
	checkCounts(t, "many", s, n)
	if s.Count() != 2*n || s.Sum() != 21*n {
		t.Errorf("count %d, sum %v; want %d, %d", s.Count(), s.Sum(), 2*n, 21*n)
	}
}

func TestEmptyIntervalKeepsTheCumulative(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{}))
	if s := h.Merge(); s.Used || s != h.Snapshot() {
		t.Errorf("merge of an untouched histogram: %+v", s)
	}
	h.Record(910)
	first := h.Merge()
	second := h.Merge()
	if second.Interval.Count() != 0 || !math.IsNaN(second.Interval.Quantile(0.5)) || second.Interval.Sum() != 0 {
		t.Errorf("second interval has %d values", second.Interval.Count())
	}
	if second.Cumulative != first.Cumulative || !second.Used {
		t.Error("an empty interval changed the cumulative figures or the used flag")
	}
	if third := h.Merge(); third != second {
		t.Error("a second empty merge made a new snapshot")
	}
	if first.Interval.Count() != 1 || first.Interval.Quantile(0.5) != 910 {
		t.Error("a later merge changed an earlier snapshot")
	}
	checkCounts(t, "empty", second.Interval, make([]uint64, 19)...)
}

func TestIntervalExtremesStartAfresh(t *testing.T) {
	for _, owned := range []bool{false, true} {
		h := histogram.New(newLayout(t, histogram.Config{}))
		if owned {
			histogram.OwnAll(h)
		}
		for _, in := range [][]uint64{{1_000_001, 5}, {70_003}, {70_005, 70_004}, {2}} {
			least, greatest := uint64(math.MaxUint64), uint64(0)
			for _, v := range in {
				h.Record(v)
				least, greatest = min(least, v), max(greatest, v)
			}
			s := h.Merge().Interval
			if s.Min() != float64(least) || s.Max() != float64(greatest) {
				t.Errorf("owned %t, %v: min %v, max %v", owned, in, s.Min(), s.Max())
			}
		}
		s := h.Snapshot().Cumulative
		if s.Min() != 2 || s.Max() != 1_000_001 {
			t.Errorf("owned %t, cumulative: min %v, max %v; want 2, 1000001", owned, s.Min(), s.Max())
		}
	}
}

func TestPending(t *testing.T) {
	for _, owned := range []bool{false, true} {
		h := histogram.New(newLayout(t, histogram.Config{}))
		if h.Pending() {
			t.Error("a new histogram has something pending")
		}
		if owned {
			histogram.OwnAll(h)
		}
		for range 2 {
			h.Record(3)
			if !h.Pending() {
				t.Errorf("owned %t: a recorded value is not pending", owned)
			}
			h.Merge()
			if h.Pending() {
				t.Errorf("owned %t: pending after a merge", owned)
			}
		}
	}
}

func TestMergeStats(t *testing.T) {
	l := newLayout(t, histogram.Config{})
	empty := histogram.New(l).Snapshot().Cumulative
	h := histogram.New(l)
	h.Record(3)
	s := h.Merge().Cumulative
	for _, got := range []*histogram.Stats{
		histogram.MergeStats(s, nil), histogram.MergeStats(nil, s),
		histogram.MergeStats(s, empty), histogram.MergeStats(empty, s),
	} {
		if got.Count() != 1 || got.Sum() != 3 {
			t.Errorf("with nothing: count %d, sum %v; want 1, 3", got.Count(), got.Sum())
		}
	}
	if got := histogram.MergeStats(empty, nil); got != empty {
		t.Errorf("MergeStats(empty, nil) = %v, want empty", got)
	}
	twice := histogram.MergeStats(s, s)
	if twice.Count() != 2 || twice.Sum() != 6 || twice.Min() != 3 || twice.Max() != 3 {
		t.Errorf("twice: %d values, sum %v, %v to %v", twice.Count(), twice.Sum(), twice.Min(), twice.Max())
	}
}
