//go:build !race

package statsd

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMemoryPerSeries creates many series with three tags and measures the heap
// of each in the store, the registry and one worker together.
func TestMemoryPerSeries(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 50_000
	}
	r := newRig(t, Config{Limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1}})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var buf []byte
	for i := range n {
		buf = fmt.Appendf(buf[:0], "app.requests%d:1|c|#region:eu-west-%d,service:checkout%d,status:%d", i%100, i%3, i/100%1000, 200+i/100_000)
		r.streamWorkers[0].chunk(r.l, buf, source{})
	}
	if got := r.registry.live; got != n {
		t.Fatalf("%d series, want %d", got, n)
	}
	each := (heap() - before) / uint64(n)
	runtime.KeepAlive(r)
	t.Logf("%d bytes a series", each)
	if each > 400 {
		t.Errorf("%d bytes a series, at most 400 are allowed", each)
	}
}
