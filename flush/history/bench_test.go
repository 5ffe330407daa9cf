package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkSeries reads the history of a counter among a million.
func BenchmarkSeries(b *testing.B) {
	const stats = 1_000_000
	st := store.New(store.Options{})
	counters := make([]*store.Counter, stats)
	for i := range counters {
		counters[i] = st.Root().Counter(fmt.Sprintf("c%d", i))
	}
	h := history.New(history.Config{Store: st})
	next := 0
	for range history.Flushes {
		for range stats / 100 {
			counters[next%stats].Inc()
			next += 101
		}
		snap := st.Flush(store.FlushOptions{})
		h.Add(snap)
		snap.Close()
	}
	v := st.View()
	defer v.Close()
	c, _ := v.Find("c777777")
	b.Run("series", func(b *testing.B) {
		for b.Loop() {
			h.Series(&c, time.Time{})
		}
	})
	b.Run("moment", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.At(time.Now().Add(-time.Hour)); err != nil {
				_, _ = h.At(h.Since())
			}
		}
	})
}
