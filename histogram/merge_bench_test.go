package histogram_test

import (
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
)

var jsonQuantiles = []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// BenchmarkQuantiles computes the nine quantiles of 100,000 lognormal values.
func BenchmarkQuantiles(b *testing.B) {
	values := lognormal(100_000, 1000, 3)
	b.Run("impl=ours", func(b *testing.B) {
		h := histogram.New(newLayout(b, histogram.Config{}))
		for _, v := range values {
			h.Record(v)
		}
		s := h.Merge().Cumulative
		var dst [9]float64
		b.ReportAllocs()
		for b.Loop() {
			s.Quantiles(dst[:0], jsonQuantiles)
		}
	})
	b.Run("impl=hdr", func(b *testing.B) {
		h := hdr.New(1, 500_000, 2)
		for _, v := range values {
			_ = h.RecordValue(int64(v))
		}
		percents := make([]float64, len(jsonQuantiles))
		for i, q := range jsonQuantiles {
			percents[i] = q * 100
		}
		b.ReportAllocs()
		for b.Loop() {
			h.ValueAtPercentilesSlice(percents)
		}
	})
}

// BenchmarkMerge measures one flush of a histogram in three situations.
func BenchmarkMerge(b *testing.B) {
	l := newLayout(b, histogram.Config{})
	values := lognormal(5000, 1000, 4)
	fill := func(h *histogram.Histogram) {
		for _, v := range values {
			h.Record(v)
		}
	}
	b.Run("new=none", func(b *testing.B) {
		h := histogram.New(l)
		fill(h)
		h.Merge()
		b.ReportAllocs()
		for b.Loop() {
			h.Merge()
		}
	})
	b.Run("new=1", func(b *testing.B) {
		h := histogram.New(l)
		fill(h)
		b.ReportAllocs()
		for b.Loop() {
			h.Record(1000)
			h.Merge()
		}
	})
	b.Run("new=5000", func(b *testing.B) {
		h := histogram.New(l)
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			fill(h)
			b.StartTimer()
			h.Merge()
		}
	})
}

// BenchmarkAppendCumulative reads the counts at the 19 default bounds.
func BenchmarkAppendCumulative(b *testing.B) {
	h := histogram.New(newLayout(b, histogram.Config{}))
	for _, v := range lognormal(100_000, 1000, 3) {
		h.Record(v)
	}
	s := h.Merge().Cumulative
	dst := make([]uint64, 0, 19)
	b.ReportAllocs()
	for b.Loop() {
		dst = s.AppendCumulative(dst[:0])
	}
}

func BenchmarkRecordFloat(b *testing.B) {
	l := newLayout(b, histogram.Config{Scale: 1000, Signed: true})
	for _, bb := range []struct {
		name   string
		weight float64
	}{{"weight=1", 1}, {"weight=10", 10}, {"weight=1e6", 1e6}} {
		b.Run(bb.name, func(b *testing.B) {
			h := histogram.New(l)
			b.ReportAllocs()
			for b.Loop() {
				h.RecordFloat(12.5, bb.weight)
			}
		})
	}
}
