package histogram

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRankBoundsTheTruth compares ranks with counted values, and quantiles with their
// error bound.
func TestRankBoundsTheTruth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for round := range 100 {
		l, err := NewLayout(Config{SignificantDigits: 1 + round%3, Signed: round%2 == 0, Scale: []int64{1, 1_000_000}[round%2]})
		if err != nil {
			t.Fatal(err)
		}
		h := New(l)
		var values []int64
		for range 1 + rnd.IntN(500) {
			v := int64(math.Exp(rnd.Float64() * 15))
			if round%2 == 0 && rnd.IntN(4) == 0 {
				v = -v
			}
			values = append(values, v)
			h.RecordFixed(v, 1)
		}
		s := h.Merge().Cumulative
		for range 50 {
			at := float64(values[rnd.IntN(len(values))]) / l.Divisor()
			if rnd.IntN(2) == 0 {
				at += rnd.NormFloat64()
			}
			var want uint64
			for _, v := range values {
				if float64(v)/l.Divisor() <= at {
					want++
				}
			}
			below, upTo := s.Rank(at)
			if want < below || want > upTo {
				t.Fatalf("round %d: %d values are up to %v, want from %d to %d", round, want, at, below, upTo)
			}
		}
		if below, upTo := s.Rank(s.Max()); below != s.Count() || upTo != s.Count() {
			t.Errorf("up to the maximum there are %d to %d of %d", below, upTo, s.Count())
		}
		if round%2 != 0 {
			continue
		}
		q := rnd.Float64()
		got := s.Quantile(q)
		found := false
		for _, v := range values {
			if d := got - float64(v); d >= 0 && d <= math.Abs(float64(v))*l.RelativeError() || v < 0 && math.Abs(d) <= math.Abs(float64(v))*l.RelativeError() {
				found = true
			}
		}
		if !found {
			t.Errorf("round %d: quantile %v is %v, further than %v from all values", round, q, got, l.RelativeError())
		}
	}
}

func TestRankOfNothing(t *testing.T) {
	l, err := NewLayout(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := l.Empty().Rank(1); a != 0 || b != 0 {
		t.Errorf("%d to %d", a, b)
	}
	if a, b := l.Empty().Rank(math.NaN()); a != 0 || b != 0 {
		t.Errorf("NaN: %d to %d", a, b)
	}
	// 100,001 stands in the middle of its bin.
	wide := New(l)
	wide.Record(100_001)
	wide.Record(100_001)
	for v, want := range map[float64]uint64{100_000.9: 0, 100_001: 2, math.NaN(): 0} {
		if a, b := wide.Merge().Cumulative.Rank(v); a != want || b != want {
			t.Errorf("up to %v there are %d to %d, want %d", v, a, b, want)
		}
	}
	h := New(l)
	h.Record(5)
	s := h.Merge().Cumulative
	for v, want := range map[float64]uint64{4: 0, 5: 1, 6: 1, math.Inf(1): 1, math.Inf(-1): 0} {
		if a, b := s.Rank(v); a != want || b != want {
			t.Errorf("up to %v there are %d to %d, want %d", v, a, b, want)
		}
	}
}
