//go:build !race

package hdr_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/hdr"
)

func newHistogram(t testing.TB, c histogram.Config) *histogram.Histogram {
	t.Helper()
	l, err := histogram.NewLayout(c)
	if err != nil {
		t.Fatal(err)
	}
	return histogram.New(l)
}

// checkSame compares count, bins and quantiles.
func checkSame(t *testing.T, s *histogram.Stats, h *hdrhistogram.Histogram) {
	t.Helper()
	if got := h.TotalCount(); uint64(got) != s.Count() {
		t.Fatalf("HdrHistogram has %d values, want %d", got, s.Count())
	}
	counts := map[int64]int64{}
	for _, b := range h.Distribution() {
		if b.Count != 0 {
			counts[b.From] = b.Count
		}
	}
	s.FixedBins(func(lowest, highest int64, n uint64) bool {
		if counts[lowest] != int64(n) || !h.ValuesAreEquivalent(lowest, highest) {
			t.Errorf("bin [%d,%d] has %d values in HdrHistogram, want %d", lowest, highest, counts[lowest], n)
		}
		delete(counts, lowest)
		return true
	})
	if len(counts) != 0 {
		t.Errorf("HdrHistogram has further bins: %v", counts)
	}
	for q := 0.001; q < 1; q += 0.01 {
		d := s.Layout().Divisor()
		got := float64(h.ValueAtQuantile(q*100)) / d
		if got = min(max(got, s.Min()), s.Max()); got != s.Quantile(q) {
			t.Errorf("quantile %v is %v in HdrHistogram, want %v", q, got, s.Quantile(q))
		}
	}
}

// TestRoundTrip goes to HdrHistogram, through the encoded form and back, and
// expects the same bins.
func TestRoundTrip(t *testing.T) {
	for digits := 1; digits <= 5; digits++ {
		for _, c := range []histogram.Config{{}, {Scale: 1000}, {Unit: histogram.Percent}, {Unit: histogram.Percent, Scale: 7, Signed: true}} {
			c.SignificantDigits = digits
			t.Run(fmt.Sprintf("digits=%d/scale=%d/%v", digits, c.Scale, c.Unit), func(t *testing.T) {
				h := newHistogram(t, c)
				r := rand.New(rand.NewPCG(1, uint64(digits)))
				for range 3000 {
					h.RecordFixed(r.Int64N(1<<(1+r.IntN(45-4*digits))), 1+r.Uint64N(9))
				}
				s := h.Merge().Cumulative
				checkSame(t, s, hdr.From(s))
				text, err := hdr.Append([]byte("x"), s)
				if err != nil || text[0] != 'x' {
					t.Fatalf("Append = %q, %v", text, err)
				}
				decoded, err := hdrhistogram.Decode(text[1:])
				if err != nil {
					t.Fatal(err)
				}
				checkSame(t, s, decoded)
				if got := decoded.Export().IntegerToDoubleConversionRatio; got != 1/h.Layout().Divisor() {
					t.Errorf("ratio = %v", got)
				}

				again := histogram.New(h.Layout())
				hdr.Record(again, decoded)
				back := again.Merge().Cumulative
				checkSame(t, back, decoded)
				if part := math.Pow10(-digits); math.Abs(back.Sum()-s.Sum()) > s.Sum()*part/2 ||
					math.Abs(back.Max()-s.Max()) > s.Max()*part {
					t.Errorf("sum %v, maximum %v; were %v, %v", back.Sum(), back.Max(), s.Sum(), s.Max())
				}
			})
		}
	}
}

func TestExtremes(t *testing.T) {
	h := newHistogram(t, histogram.Config{Signed: true})
	if got := hdr.From(h.Snapshot().Interval).TotalCount(); got != 0 {
		t.Errorf("an empty histogram became one of %d values", got)
	}
	h.RecordFixed(-5, 2)
	h.RecordFixed(math.MinInt64, 1)
	h.RecordFixed(0, 3)
	h.RecordFixed(math.MaxInt64, 4)
	got := hdr.From(h.Merge().Cumulative)
	if got.TotalCount() != 10 || got.ValueAtQuantile(60) != 0 || got.ValueAtQuantile(70) != math.MaxInt64 {
		t.Errorf("total %d, values at 60 and 70 %%: %d, %d", got.TotalCount(), got.ValueAtQuantile(60), got.ValueAtQuantile(70))
	}
	h.RecordFixed(7, math.MaxUint64/2)
	if got := hdr.From(h.Merge().Cumulative).TotalCount(); got != math.MaxInt64 {
		t.Errorf("total %d, want the largest", got)
	}
}

// TestImportOfOtherGeometry records a histogram with more digits, another unit
// magnitude and the ratio 1.
func TestImportOfOtherGeometry(t *testing.T) {
	from := hdrhistogram.New(1000, 1<<40, 3)
	exact := []int64{0, 4000, 17_000, 123_456, 99_999_999, 1 << 39}
	for _, v := range exact {
		if err := from.RecordValues(v, 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, scale := range []int64{1, 1000} {
		h := newHistogram(t, histogram.Config{Scale: scale})
		hdr.Record(h, from)
		s := h.Merge().Cumulative
		if s.Count() != 12 {
			t.Fatalf("count %d, want 12", s.Count())
		}
		for i, v := range exact {
			got := s.Quantile((float64(i) + 0.5) / float64(len(exact)))
			// Half a bin of 512 units or one part in 1000, and one part in 100.
			if math.Abs(got-float64(v)) > 256+float64(v)*0.0105 {
				t.Errorf("scale %d: value %d became %v", scale, v, got)
			}
		}
	}
	h := newHistogram(t, histogram.Config{Scale: math.MaxInt64})
	hdr.Record(h, from)
	if got := h.Merge().Cumulative; got.Count() != 12 || got.Max() != 1 {
		t.Errorf("count %d, maximum %v, want 12 and 1", got.Count(), got.Max())
	}
}

func TestEncoder(t *testing.T) {
	var e hdr.Encoder
	for _, c := range []histogram.Config{{}, {SignificantDigits: 3}, {Scale: 10}} {
		h := newHistogram(t, c)
		for range 3 {
			s := h.Merge().Interval
			got, err := e.Append(nil, s)
			want, _ := hdr.Append(nil, s)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v: %q, %v, want %q", c, got, err, want)
			}
			h.Record(5)
		}
	}
}

// TestStoreDoesNotLinkIt keeps the dependency out of programs that only count.
func TestStoreDoesNotLinkIt(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	for _, p := range []string{"store", "histogram", "render"} {
		out, err := exec.Command("go", "list", "-deps", "../../"+p).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "hdrhistogram-go") {
			t.Errorf("%s imports hdrhistogram-go", p)
		}
	}
}
