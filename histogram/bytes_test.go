//go:build !race

package histogram_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestBytesFollowTheHeap compares the estimate with what the heap keeps, for
// histograms of one value and for the widest possible.
func TestBytesFollowTheHeap(t *testing.T) {
	layout, err := histogram.NewLayout(histogram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(*histogram.Histogram){
		"one": func(h *histogram.Histogram) { h.Record(1) },
		"wide": func(h *histogram.Histogram) {
			for e := range 40 {
				h.RecordFloat(math.Ldexp(1, e), 1e6)
				h.RecordFloat(-math.Ldexp(1, e), 1)
			}
		},
	} {
		heap := func() uint64 {
			var m runtime.MemStats
			for range 3 { // finalizers and pools keep garbage of other tests for a while
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		const n = 200
		all := make([]*histogram.Histogram, n)
		before := heap()
		for i := range all {
			all[i] = histogram.New(layout)
			fill(all[i])
			all[i].Merge()
		}
		held := float64(heap()-before) / n
		got := float64(all[0].Bytes())
		t.Logf("%s: %.0f bytes, estimated %.0f", name, held, got)
		if got < 0.7*held || got > 1.5*held+300 {
			t.Errorf("%s: %.0f bytes are held, the estimate is %.0f", name, held, got)
		}
		runtime.KeepAlive(all)
	}
}
