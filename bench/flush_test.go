package bench

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkFlush flushes after 1 % of the counters changed, spread over all memory
// (worst) or within the same services (usual). impl=scan compares all words with
// copies, the minimum for a store that does not track changes.
func BenchmarkFlush(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, cs := clusters(n)
		st.Flush(store.FlushOptions{}).Close()
		flush := func(b *testing.B, write func(), totals bool) {
			b.ReportAllocs()
			m := budget.StartMeter(b)
			for b.Loop() {
				b.StopTimer()
				m.Stop()
				write()
				m.Start()
				b.StartTimer()
				snap := st.Flush(store.FlushOptions{Totals: totals})
				b.StopTimer()
				m.Stop()
				snap.Close()
				m.Start()
				b.StartTimer()
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		}
		spread := func() {
			for i := 0; i < n; i += 100 {
				cs[i].Inc()
			}
		}
		b.Run("changed=1%-spread/impl=ours", func(b *testing.B) { flush(b, spread, false) })
		b.Run("changed=1%-spread/totals=true/impl=ours", func(b *testing.B) { flush(b, spread, true) })
		b.Run("changed=1%-together/impl=ours", func(b *testing.B) {
			flush(b, func() {
				for i := range n / 100 {
					cs[i].Inc()
				}
			}, false)
		})
		b.Run("changed=0/impl=ours", func(b *testing.B) { flush(b, func() {}, false) })
		b.Run("changed=100%/impl=ours", func(b *testing.B) {
			flush(b, func() {
				for _, c := range cs {
					c.Inc()
				}
			}, false)
		})
		b.Run("changed=1%-spread/impl=scan", func(b *testing.B) {
			words, latched := make([]atomic.Uint64, n), make([]uint64, n)
			var changed []uint32
			m := budget.StartMeter(b)
			for b.Loop() {
				for i := 0; i < n; i += 100 {
					words[i].Add(1)
				}
				changed = changed[:0]
				for i := range words {
					if v := words[i].Load(); v != latched[i] {
						latched[i] = v
						changed = append(changed, uint32(i))
					}
				}
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
	})
}

// BenchmarkFlushHistory flushes with and without a history. part=add is the time that
// the history takes, for each counter that did not change.
func BenchmarkFlushHistory(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, cs := clusters(n)
		st.Flush(store.FlushOptions{}).Close()
		h := history.New(history.Config{Store: st})
		for i := 0; i < n; i += 100 {
			cs[i].Inc()
		}
		snap := st.Flush(store.FlushOptions{})
		h.Add(snap) // it now has the values of all blocks as of the last flush
		snap.Close()
		for _, c := range []struct {
			name string
			step int // 0: none changes
			end  int
		}{{"0", 0, 0}, {"1%-together", 1, n / 100}, {"1%-spread", 100, n}} {
			change := func() (changed int) {
				for i := 0; i < c.end; i += c.step {
					cs[i].Inc()
					changed++
				}
				return changed
			}
			for _, on := range []bool{false, true} {
				b.Run("changed="+c.name+"/history="+strconv.FormatBool(on), func(b *testing.B) {
					b.ReportAllocs()
					m := budget.StartMeter(b)
					for b.Loop() {
						b.StopTimer()
						m.Stop()
						change()
						m.Start()
						b.StartTimer()
						snap := st.Flush(store.FlushOptions{})
						if on {
							h.Add(snap)
						}
						snap.Close()
					}
					perName(b, n)
					m.Report("cpu-ns/name", n)
				})
			}
			b.Run("changed="+c.name+"/part=add", func(b *testing.B) {
				m := budget.StartMeter(b)
				m.Stop()
				changed := 0
				for b.Loop() {
					b.StopTimer()
					changed = change()
					snap := st.Flush(store.FlushOptions{})
					b.StartTimer()
					m.Start()
					h.Add(snap)
					m.Stop()
					snap.Close()
				}
				m.Report("cpu-ns/name", n)
				m.Report("cpu-ns/unchanged", n-changed)
			})
		}
	})
}

// BenchmarkFlushHistograms merges 10,000 histograms after all, or 1 %, of them
// recorded values.
func BenchmarkFlushHistograms(b *testing.B) {
	const n = 10_000
	st := store.New(store.Options{})
	hs := make([]*store.Histogram, n)
	for i := range hs {
		hs[i] = st.Root().Histogram("h"+string(rune('a'+i%26))+string(rune(0x4e00+i)), store.Milliseconds)
	}
	for _, c := range []struct {
		name string
		step int
	}{{"1%", 100}, {"100%", 1}} {
		b.Run("changed="+c.name+"/impl=ours", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				b.StopTimer()
				m.Stop()
				for i := 0; i < n; i += c.step {
					for v := range uint64(10) {
						hs[i].Record(v * v * 10)
					}
				}
				m.Start()
				b.StartTimer()
				st.Flush(store.FlushOptions{}).Close()
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
	}
}
