//go:build !race

package pages

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestStatsReadNoOtherRates compares the memory for a page of one stat after a flush in
// which nothing changed and after one in which 100,000 others did.
func TestStatsReadNoOtherRates(t *testing.T) {
	now := testNow
	st := store.New(store.Options{Now: func() time.Time { return now }})
	var counters []*store.Counter
	for i := range 100_000 {
		counters = append(counters, st.Root().Counter(fmt.Sprint("c", i)))
	}
	past := history.New(history.Config{Store: st})
	srv, err := admin.New(admin.Config{Store: st, Now: func() time.Time { return now }, Sources: admin.Sources{History: past}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(srv); err != nil {
		t.Fatal(err)
	}
	flush := func() {
		now = now.Add(5 * time.Second)
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	ask := func() int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if r := srv.Request("GET", Prefix+"stats?filter=^c7$", nil); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	flush()
	ask() // the first question puts the names in order
	still := ask()
	for _, c := range counters {
		c.Inc()
	}
	flush()
	if changed := ask(); changed > still+100_000 {
		t.Errorf("a page takes %d bytes, and %d if all stats have changed", still, changed)
	}
}
