package histogram_test

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
	"pgregory.net/rapid"
)

// model keeps every value, in fixed point, and knows nothing of bins but their
// widths.
type model struct {
	config     histogram.Config
	interval   []sample
	cumulative []sample
}

type sample struct {
	v int64
	n uint64
}

func (m *model) scale() int64 { return max(m.config.Scale, 1) }

// divide is how many fixed-point units make one shown unit.
func (m *model) divide() int64 {
	if m.config.Unit == histogram.Percent {
		return m.scale() * 1_000_000
	}
	return m.scale()
}

func (m *model) record(v int64, n uint64) {
	m.interval = append(m.interval, sample{v, n})
}

func (m *model) merge() {
	m.cumulative = append(m.cumulative, m.interval...)
}

// highest returns the highest value of v's bin.
func (m *model) highest(v int64) int64 {
	digits := m.config.SignificantDigits
	if digits == 0 {
		digits = 2
	}
	magnitude := uint(math.Ceil(math.Log2(2 * math.Pow10(digits))))
	a := uint64(v)
	if v < 0 {
		a = uint64(-v)
	}
	shift := max(bits.Len64(a), int(magnitude)) - int(magnitude)
	if v < 0 {
		return -int64(a >> shift << shift)
	}
	return int64(a>>shift<<shift | (1<<shift - 1))
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check compares s with the samples.
func (m *model) check(t failer, what string, s *histogram.Stats, samples []sample) {
	t.Helper()
	samples = slices.Clone(samples)
	sort.Slice(samples, func(i, j int) bool { return samples[i].v < samples[j].v })
	var count uint64
	sum := new(big.Int)
	for _, x := range samples {
		count += x.n
		sum.Add(sum, new(big.Int).Mul(big.NewInt(x.v), new(big.Int).SetUint64(x.n)))
	}
	if s.Count() != count {
		t.Fatalf("%s: count = %d, want %d", what, s.Count(), count)
	}
	div := float64(m.divide())
	f, _ := new(big.Float).SetInt(sum).Float64()
	if want := f / div; math.Abs(s.Sum()-want) > 1e-15*math.Abs(want) {
		t.Fatalf("%s: sum = %v, want %v", what, s.Sum(), want)
	}
	if count == 0 {
		for _, v := range []float64{s.Min(), s.Max(), s.Quantile(0), s.Quantile(0.5), s.Quantile(1)} {
			if v == v {
				t.Fatalf("%s: empty, but min, max or a quantile is %v, want NaN", what, v)
			}
		}
	} else {
		least, greatest := samples[0].v, samples[len(samples)-1].v
		if got, want := s.Min(), float64(least)/div; got != want {
			t.Fatalf("%s: min = %v, want %v", what, got, want)
		}
		if got, want := s.Max(), float64(greatest)/div; got != want {
			t.Fatalf("%s: max = %v, want %v", what, got, want)
		}
		qs := []float64{-1, 0, 0.001, 0.25, 0.3, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1, 2}
		got := s.Quantiles(nil, qs)
		for i, q := range qs {
			v := m.highest(ranked(samples, rankOf(q, count)))
			switch {
			case q <= 0:
				v = least
			case q >= 1:
				v = greatest
			}
			want := float64(min(max(v, least), greatest)) / div
			if got[i] != want {
				t.Fatalf("%s: quantile %v of %d = %v, want %v", what, q, count, got[i], want)
			}
			if one := s.Quantile(q); one != want {
				t.Fatalf("%s: quantile %v alone = %v, want %v", what, q, one, want)
			}
		}
	}
	m.checkBounds(t, what, s, samples)
	checkBins(t, what, s, div, samples)
}

// rankOf is the rule of hdrhistogram-go.
func rankOf(q float64, count uint64) uint64 {
	r := q*100/100*float64(count) + 0.5
	if r >= float64(count) {
		return count
	}
	return uint64(max(r, 1))
}

func ranked(sorted []sample, rank uint64) int64 {
	var below uint64
	for _, x := range sorted {
		if below += x.n; below >= rank {
			return x.v
		}
	}
	return 0
}

func (m *model) checkBounds(t failer, what string, s *histogram.Stats, samples []sample) {
	t.Helper()
	bounds := slices.Clone(m.config.Bounds)
	if bounds == nil {
		bounds = histogram.DefaultBounds(histogram.Unspecified)
	}
	slices.Sort(bounds)
	got := s.AppendCumulative(nil)
	if len(got) != len(bounds) {
		t.Fatalf("%s: %d bucket counts, want %d", what, len(got), len(bounds))
	}
	for i, b := range bounds {
		limit := new(big.Float).SetPrec(200).SetFloat64(b)
		if m.divide() != 1 {
			product := b * float64(m.divide())
			limit.SetFloat64(product)
			if r := math.Round(product); math.Abs(r-product) <= 1e-6 {
				limit.SetFloat64(r)
			}
		}
		var want uint64
		for _, x := range samples {
			if new(big.Float).SetInt64(x.v).Cmp(limit) <= 0 {
				want += x.n
			}
		}
		if got[i] != want {
			t.Fatalf("%s: %d values up to bound %v, want %d", what, got[i], b, want)
		}
	}
}

// checkBins checks that the bins ascend without overlap and hold each value.
// Their ends are whole fixed-point numbers with few bits, exact in float64.
func checkBins(t failer, what string, s *histogram.Stats, div float64, sorted []sample) {
	t.Helper()
	last := int64(math.MinInt64)
	i := 0
	s.Bins(func(lower, width float64, count uint64) bool {
		lo := int64(math.Round(lower * div))
		if lo <= last || width <= 0 {
			t.Fatalf("%s: bin at %v, width %v, begins before the end of the one below", what, lower, width)
		}
		last = lo + int64(math.Round(width*div)) - 1
		var n uint64
		for ; i < len(sorted) && sorted[i].v <= last; i++ {
			if sorted[i].v < lo {
				t.Fatalf("%s: no bin for %v", what, sorted[i].v)
			}
			n += sorted[i].n
		}
		if n != count {
			t.Fatalf("%s: bin at %v counts %d, want %d", what, lower, count, n)
		}
		return true
	})
	if i < len(sorted) {
		t.Fatalf("%s: no bin for %d", what, sorted[i].v)
	}
}

// values draws numbers of all magnitudes, and ones near the given numbers.
func values(near ...int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		if rapid.Bool().Draw(t, "near") {
			return max(0, rapid.SampledFrom(near).Draw(t, "to")+rapid.Int64Range(-3, 3).Draw(t, "off"))
		}
		return rapid.Int64Range(0, 1<<rapid.IntRange(1, 52).Draw(t, "magnitude")).Draw(t, "v")
	})
}

// TestAgainstModel runs random records and merges against the model, for all
// precisions, with shared and with owned shards.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{config: histogram.Config{
			SignificantDigits: rapid.IntRange(1, 5).Draw(t, "digits"),
			Scale:             rapid.SampledFrom([]int64{1, 10, 1000}).Draw(t, "scale"),
			Unit:              rapid.SampledFrom([]histogram.Unit{histogram.Unspecified, histogram.Percent}).Draw(t, "unit"),
			Signed:            rapid.Bool().Draw(t, "signed"),
			Bounds: rapid.SampledFrom([][]float64{nil, {0.25, 1, 0.5}, {1000, 1001, 1002.5, 1003, 1e300},
				{0.1, 0.29, 0.57, 1.1, 33.3, 777.77}, {}}).Draw(t, "bounds"),
		}}
		l, err := histogram.NewLayout(m.config)
		if err != nil {
			t.Fatalf("layout: %v", err)
		}
		h := histogram.New(l)
		if rapid.Bool().Draw(t, "owned") {
			histogram.OwnAll(h)
		}
		gen := values(0, 127, 255, 256, 512, 1000, 2047, 10_000, 60_000, 250_000, 570_000, 3_600_000, 1<<40)
		var summed *histogram.Stats
		for range rapid.IntRange(1, 5).Draw(t, "merges") {
			m.interval = nil
			for range rapid.IntRange(0, 30).Draw(t, "records") {
				v := gen.Draw(t, "v")
				switch n := rapid.SampledFrom([]uint64{0, 1, 7, 40_000, 1 << 40}).Draw(t, "n"); {
				case n == 0:
					h.Record(uint64(v / m.scale()))
					m.record(v/m.scale()*m.scale(), 1)
				case m.config.Signed && rapid.Bool().Draw(t, "negative"):
					h.RecordFloat(-float64(v)/float64(m.scale()), float64(n))
					m.record(-v, n)
				default:
					h.RecordFloat(float64(v)/float64(m.scale()), float64(n))
					m.record(v, n)
				}
			}
			m.merge()
			s := h.Merge()
			if s.Used != (len(m.cumulative) > 0) {
				t.Fatalf("used = %t after %d values", s.Used, len(m.cumulative))
			}
			m.check(t, "interval", s.Interval, m.interval)
			m.check(t, "cumulative", s.Cumulative, m.cumulative)
			summed = histogram.MergeStats(summed, s.Interval)
			m.check(t, "sum of intervals", summed, m.cumulative)
		}
	})
}

// FuzzAgainstModel reads records from the input, eight bytes each; a record
// whose last byte is 0xff is a merge.
func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{}, uint8(2))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x96\x00\x00\x00\x00\x00\x00\x00"), uint8(2))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f"), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, digits uint8) {
		m := &model{config: histogram.Config{SignificantDigits: int(digits%5) + 1}}
		h := histogram.New(newLayout(t, m.config))
		if digits >= 128 {
			histogram.OwnAll(h)
		}
		for ; len(data) >= 8; data = data[8:] {
			if data[7] == 0xff {
				m.merge()
				s := h.Merge()
				m.check(t, "interval", s.Interval, m.interval)
				m.interval = nil
				continue
			}
			var v uint64
			for i := range 8 {
				v |= uint64(data[i]) << (8 * i)
			}
			// Shift by the top bits, so that small values are as likely as large ones.
			v = v << 6 >> 6 >> (v >> 58)
			h.Record(v)
			m.record(int64(v), 1)
		}
		m.merge()
		m.check(t, "cumulative", h.Merge().Cumulative, m.cumulative)
	})
}
