package histogram_test

import (
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

func newLayout(t testing.TB, c histogram.Config) *histogram.Layout {
	t.Helper()
	l, err := histogram.NewLayout(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var textQuantiles = []float64{0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1}

func checkFloats(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s = %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("%s = %v, want %v", what, got, want)
			return
		}
	}
}

func checkCounts(t *testing.T, what string, s *histogram.Stats, want ...uint64) {
	t.Helper()
	got := s.AppendCumulative(nil)
	if len(got) != len(want) {
		t.Fatalf("%s bucket counts = %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s bucket counts = %v, want %v", what, got, want)
			return
		}
	}
}

// TestCheckValues records 0, 6, 41, 47, 415 and 2050 under the default bounds:
// 2050 lies in the bin of 2047, 47 and 41 have bins of their own.
func TestCheckValues(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{}))
	for _, v := range []uint64{0, 6, 41, 47, 415, 2050} {
		h.Record(v)
	}
	s := h.Merge().Interval
	checkFloats(t, "quantiles", s.Quantiles(nil, textQuantiles), []float64{0, 6, 41, 415, 415, 2050, 2050, 2050})
	checkCounts(t, "default", s, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6)
	if s.Sum() != 2559 || s.Min() != 0 || s.Max() != 2050 || s.Count() != 6 {
		t.Errorf("sum %v, min %v, max %v, count %d", s.Sum(), s.Min(), s.Max(), s.Count())
	}
	at := histogram.New(newLayout(t, histogram.Config{Bounds: []float64{41, 46, 47, 2000, 2049, 2050}}))
	for _, v := range []uint64{0, 6, 41, 47, 415, 2050} {
		at.Record(v)
	}
	checkCounts(t, "exact", at.Merge().Cumulative, 3, 3, 4, 5, 5, 6)
}

// TestTwoIntervals follows the request times 3, 7, 12, 12, 48 | 150, 2300.
func TestTwoIntervals(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Bounds: []float64{5, 50, 500, 5000}}))
	for _, v := range []uint64{3, 7, 12, 12, 48} {
		h.Record(v)
	}
	if s := h.Snapshot(); s.Used || s.Cumulative.Count() != 0 {
		t.Errorf("before the first merge: used %t, count %d; want unused and empty", s.Used, s.Cumulative.Count())
	}
	h.Merge()
	h.Record(150)
	h.Record(2300)
	s := h.Merge()
	if s != h.Snapshot() {
		t.Error("Merge and Snapshot return different snapshots")
	}
	if !s.Used {
		t.Error("not used after a merge with values")
	}
	checkFloats(t, "interval", s.Interval.Quantiles(nil, textQuantiles),
		[]float64{150, 150, 150, 2300, 2300, 2300, 2300, 2300})
	checkFloats(t, "cumulative", s.Cumulative.Quantiles(nil, textQuantiles),
		[]float64{3, 7, 12, 48, 150, 2300, 2300, 2300})
	checkCounts(t, "interval", s.Interval, 0, 0, 1, 2)
	checkCounts(t, "cumulative", s.Cumulative, 1, 5, 6, 7)
	if got := s.Interval.Sum(); got != 2450 {
		t.Errorf("interval sum = %v, want 2450", got)
	}
	if got := s.Cumulative.Sum(); got != 2532 {
		t.Errorf("cumulative sum = %v, want 2532", got)
	}
}

// TestBoundsInFixedPoint checks that 1.001 × 1000, which is slightly below 1001
// in binary, means 1001, and that a bound that is really below 1001 does not.
func TestBoundsInFixedPoint(t *testing.T) {
	for _, tt := range []struct {
		name   string
		c      histogram.Config
		values []float64
		want   []uint64
	}{
		{"not-exact", histogram.Config{Scale: 1000, Bounds: []float64{1.001, 2.002}}, []float64{1, 1.001, 1.002, 2.002}, []uint64{2, 4}},
		{"between", histogram.Config{Scale: 1000, Bounds: []float64{1.0009995, 1.0015}}, []float64{1, 1.001, 1.002}, []uint64{1, 2}},
		{"percent", histogram.Config{Unit: histogram.Percent, Bounds: []float64{0.2899999995, 0.29}}, []float64{289_999, 290_000}, []uint64{1, 2}},
		{"whole", histogram.Config{Bounds: []float64{1.9999999, 2}}, []float64{1, 2}, []uint64{1, 2}},
	} {
		h := histogram.New(newLayout(t, tt.c))
		for _, v := range tt.values {
			h.RecordFloat(v, 1)
		}
		checkCounts(t, tt.name, h.Merge().Cumulative, tt.want...)
	}
}

func TestPercent(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Unit: histogram.Percent, Bounds: []float64{1, 0.25, 0.5}}))
	for _, v := range []uint64{125000, 500000, 990000} {
		h.Record(v)
	}
	s := h.Merge().Cumulative
	checkCounts(t, "percent", s, 1, 2, 3)
	checkFloats(t, "ends and sum", []float64{s.Min(), s.Max(), s.Sum()}, []float64{0.125, 0.99, 1.615})
}

// TestSummariesOfDifferentLayouts cannot be merged or subtracted, unless one is empty.
func TestSummariesOfDifferentLayouts(t *testing.T) {
	record := func(values ...uint64) *histogram.Stats {
		l, err := histogram.NewLayout(histogram.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := histogram.New(l)
		for _, v := range values {
			h.Record(v)
		}
		if h.Layout() != l || h.Snapshot().Interval.Layout() != l || h.Merge().Cumulative.Layout() != l {
			t.Error("a histogram or its summary has another layout")
		}
		return h.Snapshot().Cumulative
	}
	a, b, empty := record(1, 2), record(5), record()
	for name, f := range map[string]func(){
		"merge":    func() { histogram.MergeStats(a, b) },
		"subtract": func() { histogram.SubtractStats(a, b) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	for name, got := range map[string]*histogram.Stats{
		"nil and a": histogram.MergeStats(nil, a), "a and nil": histogram.MergeStats(a, nil), "empty and a": histogram.MergeStats(empty, a),
		"a and empty": histogram.MergeStats(a, empty), "a less nil": histogram.SubtractStats(a, nil), "a less empty": histogram.SubtractStats(a, empty),
	} {
		if got != a {
			t.Errorf("%s is not a", name)
		}
	}
	if got := histogram.MergeStats(empty, nil); got != empty {
		t.Errorf("empty and nil is %v", got)
	}
	if histogram.MergeStats(nil, nil) != nil {
		t.Error("nothing and nothing is a summary")
	}
	if small, large := empty.Bytes(), record(1, 1<<20, 1<<40).Bytes(); small <= 0 || large <= small {
		t.Errorf("%d bytes without values, %d with some", small, large)
	}
}
