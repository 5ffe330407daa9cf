//go:build !race

package histogram_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestMemory measures the bytes that the heap keeps for one histogram,
// interval and cumulative summaries included. The limits have some slack: the
// runtime rounds sizes up, and goroutines move between scheduler slots.
func TestMemory(t *testing.T) {
	lognormalIn := func(merges, each int, median float64) func(*histogram.Histogram, uint64) {
		return func(h *histogram.Histogram, seed uint64) {
			for m := range merges {
				for _, v := range lognormal(each, median, seed<<8|uint64(m)) {
					h.Record(v)
				}
				h.Merge()
			}
		}
	}
	tests := []struct {
		name  string
		limit int
		fill  func(*histogram.Histogram, uint64)
	}{
		{"idle", 400, func(h *histogram.Histogram, _ uint64) { h.Merge() }},
		{"one-value", 1000, func(h *histogram.Histogram, _ uint64) { h.Record(12); h.Merge() }},
		{"lognormal-5k", 6000, lognormalIn(1, 5_000, 1000)},
		{"lognormal-100k", 6000, lognormalIn(1, 100_000, 1000)},
		{"lognormal-20x5k", 6000, lognormalIn(20, 5_000, 1000)},
		{"lognormal-20x5k-median-50", 6000, lognormalIn(20, 5_000, 50)},
		{"lognormal-20x5k-median-30k", 6500, lognormalIn(20, 5_000, 30_000)},
		{"uniform-sampled", 4000, func(h *histogram.Histogram, seed uint64) {
			r := rand.New(rand.NewPCG(seed, 2))
			for range 10_000 {
				h.RecordFloat(r.Float64()*1000, 10)
			}
			h.Merge()
		}},
	}
	l := newLayout(t, histogram.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const n = 50
			hs := make([]*histogram.Histogram, n)
			warm := histogram.New(l) // fills the scratch memory that Merge reuses
			tt.fill(warm, 0)
			before := heapInUse()
			for i := range hs {
				hs[i] = histogram.New(l)
				tt.fill(hs[i], uint64(i))
			}
			got := int(heapInUse()-before) / n
			runtime.KeepAlive(hs)
			runtime.KeepAlive(warm)
			t.Logf("%d bytes per histogram", got)
			if got > tt.limit {
				t.Errorf("%d bytes per histogram, want at most %d", got, tt.limit)
			}
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
