package bench

import (
	"io"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// heap returns the live bytes and objects.
func heap() (bytes, objects uint64) {
	runtime.GC()
	runtime.GC() // frees what the first made unreachable, pools above all
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapObjects
}

// BenchmarkMemory reports the heap memory per stat, including names, lookup, order by
// name and flush state, after a view and a flush. The names of the workload are not
// counted, because a program need not keep them.
func BenchmarkMemory(b *testing.B) {
	kinds := []struct {
		name string
		make func(sc *store.Scope, name string, i int)
	}{
		{"counter", func(sc *store.Scope, name string, i int) { sc.Counter(name).Add(uint64(i)) }},
		{"gauge", func(sc *store.Scope, name string, i int) { sc.Gauge(name).Set(uint64(i)) }},
		{"histogram-idle", func(sc *store.Scope, name string, i int) { sc.Histogram(name, store.Milliseconds) }},
		{"histogram-used", func(sc *store.Scope, name string, i int) {
			h := sc.Histogram(name, store.Milliseconds)
			for _, v := range workload.Lognormal(1000, uint64(i)) {
				h.Record(v)
			}
		}},
	}
	for _, k := range kinds {
		b.Run("kind="+k.name, func(b *testing.B) {
			sizes(b, func(b *testing.B, n int) {
				if k.name == "histogram-used" && n > 10_000 {
					b.Skip("takes gigabytes")
				}
				var bytes, objects float64
				for range b.N {
					names := workload.Clusters(n)
					before, objectsBefore := heap()
					st := store.New(store.Options{})
					for i, name := range names {
						k.make(st.Root(), name, i)
					}
					if err := render.Text(io.Discard, st, render.Options{}); err != nil {
						b.Fatal(err)
					}
					st.Flush(store.FlushOptions{}).Close()
					after, objectsAfter := heap()
					bytes = float64(int64(after - before))
					objects = float64(int64(objectsAfter - objectsBefore))
					keepAlive(st, names)
				}
				b.ReportMetric(bytes/float64(n), "B/stat")
				b.ReportMetric(objects/float64(n), "objects/stat")
			})
		})
	}
}

// BenchmarkCollect is one garbage collection with that many live stats. impl=nothing
// is the cost of the rest of the process.
func BenchmarkCollect(b *testing.B) {
	counts := []int{10_000, 1_000_000, 10_000_000}
	run := func(b *testing.B, make func() any) {
		alive := make()
		runtime.GC()
		b.ResetTimer()
		for b.Loop() {
			runtime.GC()
		}
		b.StopTimer()
		runtime.KeepAlive(alive)
	}
	b.Run("impl=nothing", func(b *testing.B) { run(b, func() any { return nil }) })
	for _, n := range counts {
		if n > 10_000 && testing.Short() {
			break
		}
		b.Run("names="+strconv.Itoa(n), func(b *testing.B) {
			b.Run("impl=ours", func(b *testing.B) {
				run(b, func() any {
					st := store.New(store.Options{})
					buf := make([]byte, 0, 128)
					for i := range n {
						buf = append(buf[:0], "cluster.service_"...)
						buf = strconv.AppendInt(buf, int64(i/100), 10)
						buf = append(buf, ".upstream_rq_"...)
						buf = strconv.AppendInt(buf, int64(i%100), 10)
						st.Root().Counter(string(buf))
					}
					return st
				})
			})
			b.Run("impl=map", func(b *testing.B) {
				if n > 1_000_000 {
					b.Skip("takes gigabytes")
				}
				run(b, func() any {
					m := map[string]*atomic.Uint64{}
					for i := range n {
						m["cluster.service_"+strconv.Itoa(i/100)+".upstream_rq_"+strconv.Itoa(i%100)] = new(atomic.Uint64)
					}
					return m
				})
			})
		})
	}
}
