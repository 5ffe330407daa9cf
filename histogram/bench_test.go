package histogram_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
)

// lognormal returns n values around median, mostly within three octaves.
func lognormal(n int, median float64, seed uint64) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(median * math.Exp(r.NormFloat64()))
	}
	return v
}

// logLinear is what the hardware allows for a histogram without ownership: bins
// in one array, one atomic add for the bin and one for the sum. It has no
// minimum, maximum or exact bounds.
type logLinear struct {
	bins [57 << 7]atomic.Uint64
	sum  atomic.Uint64
}

func (l *logLinear) Record(v uint64) {
	e := uint(bits.Len64(v|255)) - 8
	l.bins[e<<7+uint(v>>(e&63))].Add(1)
	l.sum.Add(v)
}

// locked is hdrhistogram-go behind a mutex.
type locked struct {
	mu sync.Mutex
	h  *hdr.Histogram
}

func (l *locked) Record(v uint64) {
	l.mu.Lock()
	_ = l.h.RecordValue(int64(v))
	l.mu.Unlock()
}

const benchValues = 4096

// recordLoop records n of the values. There is one for each implementation, so
// that the calls are direct and may be inlined.
type recordLoop func(values *[benchValues]uint64, from, n int)

// newLoops returns, for each implementation, what makes a new histogram.
func newLoops(b *testing.B) []struct {
	impl string
	make func() recordLoop
} {
	l := newLayout(b, histogram.Config{})
	return []struct {
		impl string
		make func() recordLoop
	}{
		{"ours", func() recordLoop {
			h := histogram.New(l)
			return func(values *[benchValues]uint64, from, n int) {
				for i := range n {
					h.Record(values[(from+i)%benchValues])
				}
			}
		}},
		{"atomic", func() recordLoop {
			h := new(logLinear)
			return func(values *[benchValues]uint64, from, n int) {
				for i := range n {
					h.Record(values[(from+i)%benchValues])
				}
			}
		}},
		{"hdr+mutex", func() recordLoop {
			h := &locked{h: hdr.New(1, 3_600_000, 2)}
			return func(values *[benchValues]uint64, from, n int) {
				for i := range n {
					h.Record(values[(from+i)%benchValues])
				}
			}
		}},
	}
}

// BenchmarkRecord compares the three cases of contention: one goroutine, all
// cores on the same histogram, and all cores on histograms of their own. Each
// is warm, as after the first second of load; the tag purego shows what a
// histogram costs before. In case=bound all
// values are in a bin that straddles a bound.
func BenchmarkRecord(b *testing.B) {
	var values, bound [benchValues]uint64
	copy(values[:], lognormal(benchValues, 1000, 7))
	for i := range bound {
		bound[i] = 1000
	}
	const warmUp = 1 << 20
	for _, impl := range newLoops(b) {
		b.Run("case=alone/impl="+impl.impl, func(b *testing.B) {
			loop := impl.make()
			loop(&values, 0, warmUp)
			b.ReportAllocs()
			b.ResetTimer()
			loop(&values, 0, b.N)
		})
		b.Run("case=bound/impl="+impl.impl, func(b *testing.B) {
			loop := impl.make()
			loop(&bound, 0, warmUp)
			b.ReportAllocs()
			b.ResetTimer()
			loop(&bound, 0, b.N)
		})
		b.Run("case=same/impl="+impl.impl, func(b *testing.B) {
			loop := impl.make()
			onAllCores(warmUp, func(core, n int) { loop(&values, core*997, n) })
			b.ReportAllocs()
			b.ResetTimer()
			onAllCores(b.N, func(core, n int) { loop(&values, core*997, n) })
		})
		b.Run("case=distinct/impl="+impl.impl, func(b *testing.B) {
			loops := make([]recordLoop, runtime.GOMAXPROCS(0))
			for i := range loops {
				loops[i] = impl.make()
			}
			onAllCores(warmUp, func(core, n int) { loops[core](&values, 0, n) })
			b.ReportAllocs()
			b.ResetTimer()
			onAllCores(b.N, func(core, n int) { loops[core](&values, 0, n) })
		})
	}
}

// onAllCores shares n calls among one goroutine for each core.
func onAllCores(n int, f func(core, n int)) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for core := range cores {
		wg.Go(func() { f(core, (n+core)/cores) })
	}
	wg.Wait()
}
