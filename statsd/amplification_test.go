//go:build !race

package statsd

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// TestAmplification sends the kinds of lines that keep the most memory per byte
// and measures what the heap keeps, per byte sent and per byte charged to the
// memory budget.
func TestAmplification(t *testing.T) {
	digits := func(i int) string { return fmt.Sprintf("%05x", i) }
	tags := func(n int, tag func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, tag(i))
		}
		return strings.Join(all, ",")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for name, tt := range map[string]struct {
		n    int
		line func(i int) string
		sent float64 // most bytes kept per byte sent
	}{
		"short-counters": {40_000, func(i int) string { return digits(i) + ":1|c" }, 60},
		"short-sets":     {2_000, func(i int) string { return digits(i) + ":1|s" }, 100},
		"short-timers":   {10_000, func(i int) string { return digits(i) + ":1|ms" }, 200},
		"unique-segments": {4_000, func(i int) string {
			return strings.ReplaceAll(tags(8, func(j int) string { return digits(i*8 + j) }), ",", ".") + ":1|c"
		}, 40},
		"unique-tags": {2_000, func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return digits(i*15+j) + ":" + digits(i*31+j) })
		}, 30},
		"unique-values": {2_000, func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return fmt.Sprintf("k%d:%s", j, digits(i*15+j)) })
		}, 30},
		"long-tags": {1_000, func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return fmt.Sprintf("k%d:%s%d-%d", j, strings.Repeat("v", 400), i, j) })
		}, 3},
		"tags-in-random-order": {20_000, func(int) string {
			return "a:1|c|#" + tags(15, func(int) string { return fmt.Sprintf("k%d:v", rnd.IntN(100)) })
		}, 10},
		"rejected-names": {20_000, func(i int) string { return digits(i) + strings.Repeat(".x", 40) + ":1|c" }, 3},
		"wide-timers": {20_000, func(i int) string {
			return fmt.Sprintf("t%d:%d|ms|@0.00001", i/40%100, uint64(1)<<(i%40))
		}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			heap := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc)
			}
			r := newRig(t, Config{Limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1, MemoryBytes: 1 << 30}})
			r.send("warm:1|c\nup:1|ms\ns:1|s")
			r.flush()
			before, charged, sent := heap(), r.registry.memory.total(), 0
			for i := range tt.n {
				text := tt.line(i)
				sent += len(text) + 1
				r.send(text)
			}
			r.flush()
			kept := heap() - before
			cost := float64(r.registry.memory.total() - charged)
			t.Logf("%.1f bytes kept per byte sent, %.2f per byte charged", kept/float64(sent), kept/cost)
			if kept > tt.sent*float64(sent) {
				t.Errorf("%.0f bytes are kept of %d sent, at most %.0f per byte are allowed", kept, sent, tt.sent)
			}
			if kept > 1.5*cost+1<<20 {
				t.Errorf("%.0f bytes are kept, only %.0f are charged", kept, cost)
			}
			runtime.KeepAlive(r)
		})
	}
}
