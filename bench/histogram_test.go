package bench

import (
	"math/bits"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/store"
)

// logLinear is the limit for recording into shared memory: one atomic add to a bin
// and one to the sum. It has no minimum, maximum or exact bounds.
type logLinear struct {
	bins [57 << 7]atomic.Uint64
	sum  atomic.Uint64
}

func (l *logLinear) Record(v uint64) {
	e := uint(bits.Len64(v|255)) - 8
	l.bins[e<<7+uint(v>>(e&63))].Add(1)
	l.sum.Add(v)
}

// BenchmarkHistogram records lognormal values: from one goroutine, into one histogram
// from all cores, and into a separate histogram per core.
func BenchmarkHistogram(b *testing.B) {
	const mask = 4095
	values := [mask + 1]uint64(workload.Lognormal(mask+1, 7))
	const warmUp = 1 << 20
	sc := store.New(store.Options{}).Scope("h")
	hs := make([]*store.Histogram, 256)
	ls := make([]logLinear, 256)
	for i := range hs {
		hs[i] = sc.Histogram(string(rune(0x4e00+i)), store.Milliseconds)
	}
	ours := func(h *store.Histogram, n int) {
		for i := range n {
			h.Record(values[i&mask])
		}
	}
	limit := func(h *logLinear, n int) {
		for i := range n {
			h.Record(values[i&mask])
		}
	}
	b.Run("case=one/impl=ours", func(b *testing.B) {
		ours(hs[0], warmUp)
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		ours(hs[0], b.N)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=one/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		limit(&ls[0], b.N)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl=ours", func(b *testing.B) {
		run := func(core, n int) { ours(hs[1], n) }
		onAllCores(warmUp, run)
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, run)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { limit(&ls[1], n) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl=ours", func(b *testing.B) {
		run := func(core, n int) { ours(hs[2+core], n) }
		onAllCores(warmUp, run)
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, run)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl=atomic", func(b *testing.B) {
		m := budget.StartMeter(b)
		onAllCores(b.N, func(core, n int) { limit(&ls[2+core], n) })
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=weighted/impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		m := budget.StartMeter(b)
		for b.Loop() {
			hs[200].RecordFloat(12.5, 10)
		}
		m.Report("cpu-ns/op", 1)
	})
}

// BenchmarkQuantiles computes the nine quantiles of a histogram.
func BenchmarkQuantiles(b *testing.B) {
	st := store.New(store.Options{})
	h := st.Root().Histogram("h", store.Milliseconds)
	for _, v := range workload.Lognormal(100_000, 7) {
		h.Record(v)
	}
	st.Flush(store.FlushOptions{}).Close()
	qs := []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}
	dst := make([]float64, 0, len(qs))
	b.ReportAllocs()
	m := budget.StartMeter(b)
	for b.Loop() {
		dst = h.Snapshot().Cumulative.Quantiles(dst[:0], qs)
	}
	m.Report("cpu-ns/op", 1)
	keepAlive(dst)
}
