//go:build !race

package statsd

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestHeapAfterExpiry creates series of all kinds, with and without tags, flushes
// and lists them, lets them expire, and compares the heap with the start.
func TestHeapAfterExpiry(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 8_000
	}
	ttl := time.Minute
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first lets pools keep what they have
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, tt := range map[string]struct {
		n    int
		line func(int) string
	}{
		"counters": {n, func(i int) string { return fmt.Sprintf("app.%d.requests:1|c", i) }},
		"segments": {n, func(i int) string { return fmt.Sprintf("n%d:1|c", i) }},
		"tags":     {n, func(i int) string { return fmt.Sprintf("app.requests:1|c|#host:web%d,zone:%d", i, i%7) }},
		"tagged":   {n, func(i int) string { return fmt.Sprintf("app.requests%d:1|c|#host:web%d", i, i) }},
		"tag-keys": {n / 4, func(i int) string { return fmt.Sprintf("app:1|c|#k%d:v", i) }},
		"long-tags": {2_000, func(i int) string {
			return fmt.Sprintf("app:1|c|#host:web%d,note:%s", i, strings.Repeat("x", 900))
		}},
		"gauges":     {n, func(i int) string { return fmt.Sprintf("app.%d.level:1|g", i) }},
		"histograms": {2_000, func(i int) string { return fmt.Sprintf("app.%d.time:1|ms", i) }},
		"sets":       {n / 20, func(i int) string { return fmt.Sprintf("app.%d.users:%d|s", i, i) }},
		"orders": {n, func(i int) string {
			return fmt.Sprintf("app:1|c|#a%d:v,b%d:v,c%d:v", i%40, i/40%40, i/1600)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{
				Limits: Limits{TagValueBytes: 4_000, FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1},
				TTL:    TTL{Counter: ttl, Gauge: ttl, Histogram: ttl, Set: ttl},
			})
			read := func() {
				r.flush()
				v := r.store.View()
				defer v.Close()
				for k := range store.Kind(4) {
					for c := v.ByFamily(k); c.Next(); {
					}
				}
				for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
					for c := v.ByName(set); c.Next(); {
					}
				}
			}
			send := func(name func(int) string, n int) {
				for i := range n {
					r.send(name(i))
				}
				read()
				for range 3 {
					r.now = r.now.Add(ttl + time.Second)
					r.flush()
					r.Sweep(false)
					read()
				}
				if r.registry.live != 0 {
					t.Fatalf("%d series did not expire", r.registry.live)
				}
			}
			send(func(i int) string {
				return fmt.Sprintf("warm.%d:1|c\nwarm.%d:1|ms\nwarm.%d:1|s\nwarm.%d:1|g", i, i, i, i)
			}, 50)
			before := heap()
			send(tt.line, tt.n)
			after := heap()
			t.Logf("%.1f MB, at the start %.1f", float64(after)/1e6, float64(before)/1e6)
			if after > before+before/5 {
				t.Errorf("the heap takes %d bytes, at the start %d: more than a fifth more", after, before)
			}
			runtime.KeepAlive(r)
		})
	}
}
