package histogram_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestNothingIsLostOrInvented records from many goroutines while merges and
// readers run, and compares the outcome with the model. Few distinct values
// make the goroutines meet in the same counters and outgrow narrow ones.
func TestNothingIsLostOrInvented(t *testing.T) {
	tests := []struct {
		name    string
		config  histogram.Config
		records int // of each goroutine
		prepare func(*histogram.Histogram)
		during  func()
	}{
		{"cold", histogram.Config{}, 20_000, nil, nil},
		{"getting-hot", histogram.Config{}, 500_000, nil, nil},
		{"hot", histogram.Config{}, 300_000, histogram.OwnAll, nil},
		{"signed", histogram.Config{Signed: true, Scale: 10, SignificantDigits: 3}, 100_000, histogram.OwnAll, nil},
		{"more-slots", histogram.Config{}, 200_000, histogram.OwnAll, func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0)))
			runtime.Gosched()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records := tt.records
			if testing.Short() {
				records /= 10
			}
			h := histogram.New(newLayout(t, tt.config))
			if tt.prepare != nil {
				tt.prepare(h)
			}
			m := hammer(t, h, tt.config, records, tt.during)
			s := h.Merge()
			m.check(t, "cumulative", s.Cumulative, m.cumulative)
			if s = h.Merge(); s.Interval.Count() != 0 {
				t.Errorf("%d values appeared after the last record", s.Interval.Count())
			}
		})
	}
}

func hammer(t *testing.T, h *histogram.Histogram, config histogram.Config, records int, during func()) *model {
	t.Helper()
	const goroutines = 6
	scale := max(config.Scale, 1)
	values := []int64{0, 1, 3, 500, 501, 1000, 1001, 1003, 30_000, 1 << 40}
	for v := int64(7); v < 1_000_000; v += v/3 + 1 {
		values = append(values, v)
	}
	if config.Signed {
		values = append(values, -5, -1000, -123_456)
	}
	expected := make([]atomic.Uint64, len(values))
	var writers, others sync.WaitGroup
	for g := range goroutines {
		writers.Go(func() {
			counts := make([]uint64, len(values))
			for i := range records {
				at := (i*7 + i/97 + g) % len(values)
				v := values[at]
				n := uint64(1)
				switch {
				case i%64 == 0:
					n = 3
					h.RecordFloat(float64(v), 3)
				case i%1024 == 1:
					n = 100_000
					h.RecordFloat(float64(v), 100_000)
				case v < 0:
					h.RecordFloat(float64(v), 1)
				default:
					h.Record(uint64(v))
				}
				counts[at] += n
			}
			for i, n := range counts {
				expected[i].Add(n)
			}
		})
	}
	var stop atomic.Bool
	others.Go(func() {
		for !stop.Load() {
			s := h.Snapshot()
			checkConsistent(t, "read interval", s.Interval)
			checkConsistent(t, "read cumulative", s.Cumulative)
			runtime.Gosched()
		}
	})
	others.Go(func() {
		var sum *histogram.Stats
		for !stop.Load() {
			s := h.Merge()
			checkConsistent(t, "interval", s.Interval)
			sum = histogram.MergeStats(sum, s.Interval)
			// A record that is halfway puts the sum of its interval off by less
			// than the width of its bin, and that of the next back.
			off := math.Abs(sum.Sum() - s.Cumulative.Sum())
			if sum.Count() != s.Cumulative.Count() || off > 0.01*math.Abs(s.Cumulative.Sum()) {
				t.Errorf("intervals have %d values, sum %v; cumulative %d, sum %v",
					sum.Count(), sum.Sum(), s.Cumulative.Count(), s.Cumulative.Sum())
			}
			if config.Scale == 0 {
				histogram.CheckPossible(t, s.Interval)
				histogram.CheckPossible(t, s.Cumulative)
			}
			if during != nil {
				during()
			}
			runtime.Gosched()
		}
	})
	writers.Wait()
	stop.Store(true)
	others.Wait()

	m := &model{config: config}
	for i, v := range values {
		m.record(v*scale, expected[i].Load())
	}
	m.merge()
	return m
}

// checkConsistent checks what must hold even for values counted halfway.
func checkConsistent(t *testing.T, what string, s *histogram.Stats) {
	t.Helper()
	if s.Count() == 0 {
		return
	}
	var below uint64
	for _, n := range s.AppendCumulative(nil) {
		if n < below || n > s.Count() {
			t.Errorf("%s: %d of %d values below a bound, %d below the one before", what, n, s.Count(), below)
		}
		below = n
	}
	last := math.Inf(-1)
	for _, v := range s.Quantiles(nil, jsonQuantiles) {
		if !(v >= last) || v < s.Min() || v > s.Max() {
			t.Errorf("%s: quantile %v after %v, in [%v,%v]", what, v, last, s.Min(), s.Max())
		}
		last = v
	}
	var n uint64
	s.Bins(func(_, _ float64, count uint64) bool {
		n += count
		return true
	})
	if n != s.Count() {
		t.Errorf("%s: bins have %d values, count is %d", what, n, s.Count())
	}
}
