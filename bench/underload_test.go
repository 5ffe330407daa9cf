package bench

import (
	"context"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// writer increments counters and records into a histogram until stop, and returns the
// duration of each pair of calls, the last ones if there are many. It rests after each
// thousand pairs.
func writer(cs []*store.Counter, h *store.Histogram, stop *atomic.Bool, rest time.Duration) []time.Duration {
	const most = 1 << 20
	took := make([]time.Duration, most)
	for n := 0; ; n++ {
		start := time.Now()
		cs[n%len(cs)].Inc()
		h.Record(uint64(n % 1024))
		took[n%most] = time.Since(start)
		if stop.Load() {
			return took[:min(n+1, most)]
		}
		if n%1000 == 999 {
			time.Sleep(rest)
		}
	}
}

// percentile returns a quantile of sorted durations in nanoseconds.
func percentile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return float64(sorted[int(q*float64(len(sorted)-1))].Nanoseconds())
}

func loadNames() int {
	if testing.Short() {
		return 10_000
	}
	return 1_000_000
}

// BenchmarkWriters measures an increment and a record together, in nanoseconds, while
// the store is idle, while all its stats are rendered in a loop, and while it is
// flushed in a loop.
func BenchmarkWriters(b *testing.B) {
	st, cs := clusters(loadNames())
	h := st.Root().Histogram("latency", store.Milliseconds)
	must(b, render.Text(io.Discard, st, render.Options{}))
	hot := cs[:1000]
	for _, c := range []struct {
		name string
		work func() error
	}{
		{"idle", func() error { time.Sleep(50 * time.Millisecond); return nil }},
		// The baseline: another goroutine that computes without touching the store.
		{"busy", func() error {
			x := 0
			for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
				for i := range 1000 {
					x += i
				}
			}
			keepAlive(x)
			return nil
		}},
		{"render", func() error { return render.Text(io.Discard, st, render.Options{}) }},
		{"flush", func() error {
			for i := 0; i < len(cs); i += 100 {
				cs[i].Inc()
			}
			st.Flush(store.FlushOptions{}).Close()
			return nil
		}},
	} {
		b.Run("during="+c.name, func(b *testing.B) {
			var stop atomic.Bool
			done := make(chan []time.Duration)
			go func() { done <- writer(hot, h, &stop, 0) }()
			for b.Loop() {
				must(b, c.work())
			}
			stop.Store(true)
			took := <-done
			slices.Sort(took)
			b.ReportMetric(percentile(took, 0.5), "p50-ns")
			b.ReportMetric(percentile(took, 0.99), "p99-ns")
			b.ReportMetric(percentile(took, 0.9999), "p9999-ns")
		})
	}
}

// BenchmarkFlushDrift measures how far from its schedule a flush starts: alone, and
// while one goroutine renders everything and others write.
func BenchmarkFlushDrift(b *testing.B) {
	st, cs := clusters(loadNames())
	must(b, render.Text(io.Discard, st, render.Options{}))
	const interval = 20 * time.Millisecond
	for _, c := range []struct {
		name string
		load bool
	}{{"idle", false}, {"render", true}} {
		b.Run("during="+c.name, func(b *testing.B) {
			var mu sync.Mutex
			var starts []time.Time
			enough := make(chan struct{})
			sched, err := flush.New(flush.Config{Store: st, Interval: interval, Before: []func(time.Time){func(time.Time) {
				mu.Lock()
				defer mu.Unlock()
				if starts = append(starts, time.Now()); len(starts) == b.N+1 {
					close(enough)
				}
			}}})
			must(b, err)
			ctx, cancel := context.WithCancel(context.Background())
			var loads sync.WaitGroup
			if c.load {
				loads.Go(func() {
					for ctx.Err() == nil && render.Text(io.Discard, st, render.Options{}) == nil {
					}
				})
				loads.Go(func() {
					for i := 0; ctx.Err() == nil; i = (i + 1) % 1000 {
						cs[i].Inc()
						if i == 0 {
							runtime.Gosched()
						}
					}
				})
			}
			ended := make(chan error)
			go func() { ended <- sched.Run(ctx) }()
			<-enough
			cancel()
			must(b, <-ended)
			loads.Wait()
			mu.Lock()
			defer mu.Unlock()
			var drifts []time.Duration
			for _, s := range starts[1 : b.N+1] {
				off := s.Sub(starts[0]) % interval
				if off > interval/2 {
					off = interval - off
				}
				drifts = append(drifts, off)
			}
			slices.Sort(drifts)
			b.ReportMetric(percentile(drifts, 0.5), "p50-ns")
			b.ReportMetric(percentile(drifts, 0.99), "p99-ns")
		})
	}
}
