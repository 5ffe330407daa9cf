//go:build !race

package statsd

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestOnlyTheHistoryGrows sends new names for half an hour of the server's clock. Series
// expire as fast as they come, so once the history has filled its budget, here a small
// one, the heap stays as it is.
func TestOnlyTheHistoryGrows(t *testing.T) {
	const ttl, interval, most = 20 * time.Second, 500 * time.Millisecond, 1 << 20
	r := newRig(t, Config{
		Limits: Limits{Series: 500, SeriesPerName: 50, ValuesPerTagKey: 200},
		TTL:    TTL{Counter: ttl, Gauge: ttl, Histogram: ttl, Set: ttl},
	})
	h := history.New(history.Config{Store: r.store, Bytes: most})
	rnd := rand.New(rand.NewPCG(1, 2))
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	minutes := 30
	if testing.Short() {
		minutes = 12
	}
	full := 0 // heap once the budget is used
	for minute := range minutes {
		for range time.Minute / interval {
			var b strings.Builder
			for range 10 {
				fmt.Fprintf(&b, "n%d:%d|%s|#k%d:%d\n", rnd.IntN(20_000), rnd.IntN(100), []string{"c", "g", "ms", "s"}[rnd.IntN(4)], rnd.IntN(3), rnd.IntN(5000))
			}
			r.send(b.String())
			r.now = r.now.Add(interval)
			r.Flush(r.now)
			snap := r.store.Flush(store.FlushOptions{})
			h.Add(snap)
			snap.Close()
			r.Sweep(false)
		}
		used, _ := h.Bytes()
		if used > most {
			t.Fatalf("minute %d: the history has %d bytes of %d", minute, used, most)
		}
		if full == 0 && used > most*9/10 {
			full = heap()
		}
	}
	if full == 0 {
		t.Fatal("the history did not fill its budget")
	}
	if grown := heap() - full; grown > most*3/4 {
		t.Errorf("%d bytes more than when the history was full", grown)
	} else {
		t.Logf("%d bytes more than when the history was full, %d series", grown, r.registry.live)
	}
	runtime.KeepAlive(h)
}
