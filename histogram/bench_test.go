package histogram_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
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

type recorder interface{ Record(uint64) }

// BenchmarkRecord compares the three cases of contention. The loops are
// written out for each type, so that no call goes through an interface.
func BenchmarkRecord(b *testing.B) {
	l := newLayout(b, histogram.Config{})
	benchRecord(b, "ours", func() *histogram.Histogram {
		h := histogram.New(l)
		for range 1 << 19 { // warm, as after the first seconds of load
			h.Record(100)
		}
		return h
	})
	benchRecord(b, "atomic", func() *logLinear { return new(logLinear) })
	benchRecord(b, "hdr+mutex", func() *locked { return &locked{h: hdr.New(1, 3_600_000, 2)} })
}

func benchRecord[H interface {
	*histogram.Histogram | *logLinear | *locked
	recorder
}](b *testing.B, impl string, make func() H) {
	values := lognormal(4096, 1000, 7)
	b.Run("case=alone/impl="+impl, func(b *testing.B) {
		h := make()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			h.Record(values[i&4095])
			i++
		}
	})
	b.Run("case=same/impl="+impl, func(b *testing.B) {
		h := make()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			i := rand.IntN(4096)
			for pb.Next() {
				h.Record(values[i&4095])
				i++
			}
		})
	})
	b.Run("case=distinct/impl="+impl, func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			h := make()
			i := rand.IntN(4096)
			for pb.Next() {
				h.Record(values[i&4095])
				i++
			}
		})
	})
}
