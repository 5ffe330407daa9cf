//go:build !race

package histogram_test

import (
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

func TestAllocations(t *testing.T) {
	l := newLayout(t, histogram.Config{Scale: 1000, Signed: true})
	warm := func(own bool) *histogram.Histogram {
		h := histogram.New(l)
		if own {
			histogram.OwnAll(h)
		}
		for range 100_000 { // more than a narrow counter holds, on any slot
			h.Record(12)
			h.Record(500)
			h.RecordFloat(-12.5, 1)
			h.RecordFloat(12.5, 1e6)
		}
		return h
	}
	cold, hot, idle := warm(false), warm(true), warm(false)
	idle.Merge()
	idle.Merge()
	s := idle.Snapshot().Cumulative
	floats, counts := make([]float64, 0, 16), make([]uint64, 0, 32)
	tests := []struct {
		name string
		want float64
		f    func()
	}{
		{"Record-cold", 0, func() { cold.Record(12) }},
		{"Record-hot", 0, func() { hot.Record(12) }},
		{"Record-bound", 0, func() { hot.Record(500) }},
		{"RecordDuration", 0, func() { hot.RecordDuration(12 * time.Millisecond) }},
		{"RecordFloat", 0, func() { hot.RecordFloat(-12.5, 1) }},
		{"RecordFloat-weight", 0, func() { hot.RecordFloat(12.5, 1e6) }},
		{"RecordFloat-fraction", 0, func() { hot.RecordFloat(12.5, 1/0.3) }},
		{"Snapshot", 0, func() { idle.Snapshot() }},
		{"Merge-idle", 0, func() { idle.Merge() }},
		{"Quantile", 0, func() { s.Quantile(0.99) }},
		{"Quantiles", 0, func() { floats = s.Quantiles(floats[:0], jsonQuantiles) }},
		{"AppendCumulative", 0, func() { counts = s.AppendCumulative(counts[:0]) }},
		{"Bins", 0, func() { s.Bins(func(_, _ float64, _ uint64) bool { return true }) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := testing.AllocsPerRun(1000, tt.f); got != tt.want {
				t.Errorf("%v allocations, want %v", got, tt.want)
			}
		})
	}
}

// TestMergeReusesItsMemory: a merge makes the summaries that it returns, and nothing that it
// needs only meanwhile.
func TestMergeReusesItsMemory(t *testing.T) {
	h := histogram.New(newLayout(t, histogram.Config{Bounds: []float64{0.5, 3, 700}}))
	n := testing.AllocsPerRun(200, func() {
		for v := range uint64(1000) {
			h.Record(v)
		}
		h.Merge()
	})
	// A snapshot, two summaries and their counts; a collection can drop more.
	if n > 8 {
		t.Errorf("%v allocations", n)
	}
}
