package bench

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// padded is an atomic that shares its cache lines with nothing.
type padded struct {
	_ [64]byte
	atomic.Uint64
	_ [64]byte
}

// BenchmarkCounter increments held counters: from one goroutine, the same counter
// from all cores, and a separate counter per core, created one after the other.
func BenchmarkCounter(b *testing.B) {
	st := store.New(store.Options{})
	run := func(core, n int, c *store.Counter) {
		for range n {
			c.Inc()
		}
	}
	runAtomic := func(core, n int, c *atomic.Uint64) {
		for range n {
			c.Add(1)
		}
	}
	b.Run("case=one/impl=ours", func(b *testing.B) {
		c := st.Root().Counter("one")
		run(0, warmUp, c)
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			c.Inc()
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=one/impl=atomic", func(b *testing.B) {
		c := new(padded)
		m := budget.StartMeter(b)
		for b.Loop() {
			c.Add(1)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl=ours", func(b *testing.B) {
		c := st.Root().Counter("same")
		onAllCores(warmUp, func(core, n int) { run(core, n, c) })
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { run(core, n, c) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl=atomic", func(b *testing.B) {
		c := new(padded)
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { runAtomic(core, n, &c.Uint64) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl=ours", func(b *testing.B) {
		cs := make([]*store.Counter, 256)
		for i := range cs {
			cs[i] = st.Root().Counter(fmt.Sprint("distinct", i))
		}
		onAllCores(warmUp, func(core, n int) { run(core, n, cs[core]) })
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { run(core, n, cs[core]) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl=atomic", func(b *testing.B) {
		cs := make([]padded, 256)
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { runAtomic(core, n, &cs[core].Uint64) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl=adjacent-atomic", func(b *testing.B) {
		cs := make([]atomic.Uint64, 256)
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { runAtomic(core, n, &cs[core]) })
		m.Report("cpu-ns/op", 1)
	})
	// As after startup, and for counters that are rarely written: each flush finds
	// too few increments of a page to make it hot.
	b.Run("case=cold/impl=ours", func(b *testing.B) {
		st := store.New(store.Options{})
		cs := make([]*store.Counter, 1<<20)
		for i := range cs {
			cs[i] = st.Root().Counter(fmt.Sprint("cold", i))
		}
		i := 0
		b.ResetTimer()
		m := budget.StartMeter(b)
		for b.Loop() {
			cs[i].Inc()
			i = (i + 8191) & (1<<20 - 1)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=cold/impl=atomic", func(b *testing.B) {
		cs := make([]atomic.Uint64, 1<<20)
		i := 0
		m := budget.StartMeter(b)
		for b.Loop() {
			cs[i].Add(1)
			i = (i + 8191) & (1<<20 - 1)
		}
		m.Report("cpu-ns/op", 1)
	})
}

// BenchmarkGauge writes held gauges.
func BenchmarkGauge(b *testing.B) {
	st := store.New(store.Options{})
	g := st.Root().Gauge("g")
	f := st.Root().FloatGauge("f")
	a := new(padded)
	b.Run("op=set/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for i := uint64(0); b.Loop(); i++ {
			g.Set(i)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=set/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		for i := uint64(0); b.Loop(); i++ {
			a.Store(i)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=set-float/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for i := 0.5; b.Loop(); i++ {
			if f.Set(i) != nil {
				b.Fatal("refused")
			}
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=add/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			g.Add(1)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=add/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		for b.Loop() {
			a.Add(1)
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=add-float/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			if f.Add(0.5) != nil {
				b.Fatal("refused")
			}
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=set-all-cores/impl=ours", func(b *testing.B) {
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) {
			for i := range n {
				g.Set(uint64(i))
			}
		})
		m.Report("cpu-ns/op", 1)
	})
	b.Run("op=set-all-cores/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) {
			for i := range n {
				a.Store(uint64(i))
			}
		})
		m.Report("cpu-ns/op", 1)
	})
}

// BenchmarkHost counts one request to an upstream host: active, total, success,
// inactive.
func BenchmarkHost(b *testing.B) {
	h := host.New(host.Spec{})
	request := func() {
		h.Stats.RqActive.Inc()
		h.Stats.RqTotal.Inc()
		h.Stats.RqSuccess.Inc()
		h.Stats.RqActive.Dec()
	}
	b.Run("case=one/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			request()
		}
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl=ours", func(b *testing.B) {
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) {
			for range n {
				request()
			}
		})
		m.Report("cpu-ns/op", 1)
	})
}

// BenchmarkText sets a held text readout.
func BenchmarkText(b *testing.B) {
	t := store.New(store.Options{}).Root().Text("version")
	m := budget.StartMeter(b)
	for b.Loop() {
		t.Set("1.2.3")
	}
	m.Report("cpu-ns/op", 1)
}
