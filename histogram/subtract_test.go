package histogram

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSubtractUndoesMerge: a summary without an earlier one is the interval between
// them, up to minimum and maximum, which stay in their bins.
func TestSubtractUndoesMerge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		l, err := NewLayout(Config{Signed: round%2 == 0, Scale: 100})
		if err != nil {
			t.Fatal(err)
		}
		h := New(l)
		record := func(n int) {
			for range n {
				v := int64(math.Exp(rnd.Float64() * 20))
				if rnd.IntN(3) == 0 {
					v = -v
				}
				h.RecordFixed(v, uint64(1+rnd.IntN(3)))
			}
		}
		record(1 + rnd.IntN(300))
		before := h.Merge().Cumulative
		record(rnd.IntN(300))
		after := h.Merge()
		got, want := SubtractStats(after.Cumulative, before), after.Interval
		if got.Count() != want.Count() || got.Sum() != want.Sum() {
			t.Fatalf("round %d: count %d, sum %v, want %d, %v", round, got.Count(), got.Sum(), want.Count(), want.Sum())
		}
		for i, n := range want.AppendCumulative(nil) {
			if m := got.AppendCumulative(nil)[i]; m != n {
				t.Fatalf("round %d: bound %d has %d, want %d", round, i, m, n)
			}
		}
		if a, b := allBinsOf(got), allBinsOf(want); len(a) != len(b) {
			t.Fatalf("round %d: %d bins, want %d", round, len(a), len(b))
		} else {
			for i := range a {
				if a[i] != b[i] {
					t.Fatalf("round %d: bin %d is %v, want %v", round, i, a[i], b[i])
				}
			}
		}
		if want.Count() == 0 {
			continue
		}
		bins := allBinsOf(want)
		first, last := bins[0], bins[len(bins)-1]
		if d := l.Divisor(); got.Min() < float64(first[0])/d || got.Min() > float64(first[1])/d || got.Max() < float64(last[0])/d || got.Max() > float64(last[1])/d {
			t.Fatalf("round %d: from %v to %v, want in %v and %v", round, got.Min(), got.Max(), first, last)
		}
	}
}

func TestSubtractNothing(t *testing.T) {
	l, err := NewLayout(Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := New(l)
	h.Record(7)
	s := h.Merge().Cumulative
	if got := SubtractStats(s, nil); got != s {
		t.Error("without nothing it is not the same")
	}
	if got := SubtractStats(s, s); got.Count() != 0 || !math.IsNaN(got.Min()) {
		t.Errorf("without itself it has %d values", got.Count())
	}
}

func allBinsOf(s *Stats) (list [][3]int64) {
	s.FixedBins(func(lowest, highest int64, n uint64) bool {
		list = append(list, [3]int64{lowest, highest, int64(n)})
		return true
	})
	return list
}
