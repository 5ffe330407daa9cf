package store_test

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

func BenchmarkCounter(b *testing.B) {
	st := store.New(store.Options{})
	c := st.Root().Counter("c")
	b.Run("impl=ours/one", func(b *testing.B) {
		for b.Loop() {
			c.Inc()
		}
	})
	var a atomic.Uint64
	b.Run("impl=atomic/one", func(b *testing.B) {
		for b.Loop() {
			a.Add(1)
		}
	})
	b.Run("impl=ours/same", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Inc()
			}
		})
	})
	b.Run("impl=atomic/same", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				a.Add(1)
			}
		})
	})
	var n atomic.Uint64
	b.Run("impl=ours/distinct", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			c := st.Root().Counter(fmt.Sprint("d", n.Add(1)))
			for pb.Next() {
				c.Inc()
			}
		})
	})
	b.Run("impl=atomic/distinct", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			a := new(struct {
				_ [64]byte
				n atomic.Uint64
				_ [64]byte
			})
			for pb.Next() {
				a.n.Add(1)
			}
		})
	})
	g := st.Root().Gauge("g", store.Accumulate)
	b.Run("impl=ours/gauge-set", func(b *testing.B) {
		i := uint64(0)
		for b.Loop() {
			i++
			g.Set(i)
		}
	})
	b.Run("impl=atomic/gauge-set", func(b *testing.B) {
		i := uint64(0)
		for b.Loop() {
			i++
			a.Store(i)
		}
	})
}

func BenchmarkMillion(b *testing.B) {
	const services, each = 10_000, 100
	var names []string
	for s := range services {
		for c := range each {
			names = append(names, fmt.Sprintf("cluster.service_%d.upstream_rq_some_longer_name_%d", s, c))
		}
	}
	var st *store.Store
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			st = store.New(store.Options{})
			for _, n := range names {
				st.Root().Counter(n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/name")
	})
	b.Logf("bytes per counter %.1f", float64(heap()-before)/float64(len(names)))
	cs := make([]*store.Counter, len(names))
	for i, n := range names {
		cs[i] = st.Root().Counter(n)
	}
	b.Run("lookup", func(b *testing.B) {
		i := 0
		for b.Loop() {
			st.Root().Counter(names[i*7919%10000]).Inc()
			i++
		}
	})
	for i := range cs {
		cs[i].Add(uint64(i))
	}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			v := st.View()
			v.ByName(store.Scalars)
			v.Close()
		}
	})
	b.Logf("bytes per counter, ordered %.1f", float64(heap()-before-uint64(8*len(cs)))/float64(len(names)))
	for name, f := range map[string]func() error{
		"text":       func() error { return render.Text(io.Discard, st, render.Options{}) },
		"json":       func() error { return render.JSON(io.Discard, st, render.Options{}) },
		"exposition": func() error { return render.Exposition(io.Discard, st, render.Options{}) },
	} {
		f()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/series")
		})
	}
	b.Run("flush", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			for i := 0; i < len(cs); i += 100 {
				cs[i].Inc()
			}
			b.StartTimer()
			st.Flush(store.FlushOptions{}).Close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/counter")
	})
	b.Logf("bytes per counter %.1f", float64(heap()-before-uint64(8*len(cs)))/float64(len(names)))
}

func BenchmarkLookup(b *testing.B) {
	st := store.New(store.Options{})
	m := map[string]*atomic.Uint64{}
	var names []string
	for i := range 10_000 {
		n := fmt.Sprintf("cluster.service_%05d.upstream_rq_some_longer_name_number_%03d", i/100, i%100)
		names = append(names, n)
		st.Root().Counter(n)
		m[n] = new(atomic.Uint64)
	}
	b.Run("impl=ours/one", func(b *testing.B) {
		i := 0
		for b.Loop() {
			st.Root().Counter(names[i]).Inc()
			if i += 7919; i >= len(names) {
				i -= len(names)
			}
		}
	})
	b.Run("impl=map/one", func(b *testing.B) {
		i := 0
		for b.Loop() {
			m[names[i]].Add(1)
			if i += 7919; i >= len(names) {
				i -= len(names)
			}
		}
	})
	b.Run("impl=ours/all", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			i := 0
			for pb.Next() {
				st.Root().Counter(names[i]).Inc()
				if i += 7919; i >= len(names) {
					i -= len(names)
				}
			}
		})
	})
}
