//go:build !race

package histogram_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestBinsAreThoseOfHDR compares the bin of single values, at all powers of two
// and random ones between, with hdrhistogram-go.
func TestBinsAreThoseOfHDR(t *testing.T) {
	for digits := 1; digits <= 5; digits++ {
		t.Run(fmt.Sprintf("digits=%d", digits), func(t *testing.T) {
			l := newLayout(t, histogram.Config{SignificantDigits: digits})
			reference := hdr.New(1, math.MaxInt64, digits)
			r := rand.New(rand.NewPCG(5, uint64(digits)))
			for e := range 63 {
				p := uint64(1) << e
				for _, v := range []uint64{p - 1, p, p + 1, p + r.Uint64N(p), p + p/2} {
					h := histogram.New(l)
					h.Record(v)
					h.Merge().Cumulative.Bins(func(lower, width float64, _ uint64) bool {
						lo, hi := int64(lower), int64(lower)+(int64(width)-1)
						if lo < 0 || hi < lo {
							t.Fatalf("bin of %d is [%d,%d]", v, lo, hi)
						}
						// All of the bin and nothing around it is equivalent there.
						if !reference.ValuesAreEquivalent(lo, hi) || !reference.ValuesAreEquivalent(lo, int64(v)) ||
							lo > 0 && reference.ValuesAreEquivalent(lo-1, lo) ||
							hi < math.MaxInt64 && reference.ValuesAreEquivalent(hi, hi+1) {
							t.Errorf("bin of %d is [%d,%d], not so in hdrhistogram-go", v, lo, hi)
						}
						return true
					})
				}
			}
		})
	}
}

// dataset is a list of values that hdrhistogram-go can hold with a highest
// trackable value of 2^40.
type dataset struct {
	name   string
	values []uint64
}

func datasets() []dataset {
	r := rand.New(rand.NewPCG(11, 12))
	uniform := make([]uint64, 10_000)
	for i := range uniform {
		uniform[i] = r.Uint64N(1_000_000)
	}
	var edges []uint64
	for e := range 40 {
		edges = append(edges, 1<<e-1, 1<<e, 1<<e+1)
	}
	twoPeaks := append(lognormal(5000, 20, 1), lognormal(500, 2_000_000, 2)...)
	return []dataset{
		{"one", []uint64{42}},
		{"zeros", make([]uint64, 77)},
		{"two", []uint64{150, 2300}},
		{"seven", []uint64{3, 7, 12, 12, 48, 150, 2300}},
		{"same", slices.Repeat([]uint64{1_234_567}, 1001)},
		{"edges", edges},
		{"uniform", uniform},
		{"lognormal", lognormal(100_000, 1000, 9)},
		{"two-peaks", twoPeaks},
	}
}

// TestQuantilesAreThoseOfHDR compares quantiles with hdrhistogram-go, whose
// answers are brought into the exact minimum and maximum as ours are.
func TestQuantilesAreThoseOfHDR(t *testing.T) {
	var qs []float64
	for i := range 1001 {
		qs = append(qs, float64(i)/1000)
	}
	for digits := 1; digits <= 5; digits++ {
		l := newLayout(t, histogram.Config{SignificantDigits: digits})
		for _, d := range datasets() {
			t.Run(fmt.Sprintf("digits=%d/%s", digits, d.name), func(t *testing.T) {
				h := histogram.New(l)
				reference := hdr.New(1, 1<<41, digits)
				for _, v := range d.values {
					h.Record(v)
					if err := reference.RecordValue(int64(v)); err != nil {
						t.Fatal(err)
					}
				}
				s := h.Merge().Cumulative
				percents := make([]float64, len(qs))
				for i, q := range qs {
					percents[i] = q * 100
				}
				answers := reference.ValueAtPercentiles(percents)
				least, greatest := slices.Min(d.values), slices.Max(d.values)
				for i, got := range s.Quantiles(nil, qs) {
					want := uint64(answers[percents[i]])
					want = min(max(want, least), greatest)
					switch qs[i] {
					case 0:
						want = least
					case 1:
						want = greatest
					}
					if got != float64(want) {
						t.Errorf("quantile %v = %v, want %d", qs[i], got, want)
					}
				}
			})
		}
	}
}

// TestQuantileErrors checks quantiles against the sorted values: an answer is
// at least the value of its rank, and above it by no more than one part in
// 10^digits; so its own rank is off by no more than the values between.
func TestQuantileErrors(t *testing.T) {
	for digits := 1; digits <= 5; digits++ {
		l := newLayout(t, histogram.Config{SignificantDigits: digits})
		part := math.Pow10(-digits)
		worst := 0.0
		for _, d := range datasets() {
			h := histogram.New(l)
			for _, v := range d.values {
				h.Record(v)
			}
			s := h.Merge().Cumulative
			sorted := slices.Sorted(slices.Values(d.values))
			n := uint64(len(sorted))
			for i := range 10_001 {
				q := float64(i) / 10_000
				exact := float64(sorted[rankOf(q, n)-1])
				got := s.Quantile(q)
				if got < exact || got > exact*(1+part) {
					t.Errorf("digits %d, %s: quantile %v = %v, sorted values have %v", digits, d.name, q, got, exact)
				}
				if exact > 0 {
					worst = max(worst, (got-exact)/exact)
				}
			}
		}
		t.Logf("digits %d: worst error %.5f %%", digits, worst*100)
	}
}

// TestWorstCaseError records, for two digits, the lowest value of each bin and
// something far above it: no other input has a larger error.
func TestWorstCaseError(t *testing.T) {
	l := newLayout(t, histogram.Config{})
	worst := 0.0
	for v := uint64(1); v < 1<<62; v += max(1, uint64(1)<<math.Ilogb(float64(v))>>7) {
		h := histogram.New(l)
		h.Record(v)
		h.Record(math.MaxInt64)
		got := h.Merge().Cumulative.Quantile(0.5)
		worst = max(worst, (got-float64(v))/float64(v))
	}
	t.Logf("worst error %.4f %%", worst*100)
	if worst > 0.01 || worst < 0.005 {
		t.Errorf("worst error %v, want at most 0.01 (and, if this test tests anything, at least 0.005)", worst)
	}
}
