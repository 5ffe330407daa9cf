package histogram

import (
	"fmt"
	"math"
	"testing"
)

// The tests of this file stop a record halfway and merge there.

func testLayout(t *testing.T) *Layout {
	t.Helper()
	l, err := NewLayout(Config{Bounds: []float64{10, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// recordSteps returns the steps of a record in the shared shard.
func recordSteps(h *Histogram, v int64) []func() {
	s := h.sharedShard()
	var epoch uint32
	return []func(){
		func() { h.countIn(s, h.layout.bin(uint64(v)), 1) },
		func() { s.sums[0].add(uint64(v), 1) },
		func() { epoch = h.epoch.Load() },
		func() { s.ends[epoch&1].include(endKey(v)) },
		func() { s.touch() },
	}
}

func TestMergeDuringARecord(t *testing.T) {
	for _, v := range []int64{5, 2002, 70_003} { // below, within the bin of, and above the other value
		for first := range 6 {
			for second := first; second < 6; second++ {
				t.Run(fmt.Sprintf("value=%d/at=%d,%d", v, first, second), func(t *testing.T) {
					h := New(testLayout(t))
					steps := recordSteps(h, v)
					run := func(from, to int) {
						for _, step := range steps[from:to] {
							step()
						}
					}
					var count uint64
					merge := func() {
						h.Record(2001)
						s := h.Merge()
						count += s.Interval.Count()
						if got := s.Cumulative.Count(); got != count {
							t.Errorf("cumulative count = %d, intervals have %d", got, count)
						}
						checkEnds(t, s.Interval)
						checkEnds(t, s.Cumulative)
					}
					run(0, first)
					merge()
					run(first, second)
					merge()
					run(second, 5)
					merge()
					s := h.Merge().Cumulative
					if s.Count() != 4 || s.Sum() != 3*2001+float64(v) || s.least != min(v, 2001) || s.greatest != max(v, 2001) {
						t.Errorf("count %d, sum %v, %d to %d", s.Count(), s.Sum(), s.least, s.greatest)
					}
				})
			}
		}
	}
}

// TestRecordThatIsHalfwayInAQuietHistogram stops the only other record at each
// of its steps. Once it has finished, one merge makes everything exact.
func TestRecordThatIsHalfwayInAQuietHistogram(t *testing.T) {
	for _, v := range []int64{5, 1013, 70_003} {
		for stop := range 6 {
			t.Run(fmt.Sprintf("value=%d/at=%d", v, stop), func(t *testing.T) {
				h := New(testLayout(t))
				h.Record(10)
				steps := recordSteps(h, v)
				for _, step := range steps[:stop] {
					step()
				}
				s := h.Merge()
				CheckPossible(t, s.Interval)
				CheckPossible(t, s.Cumulative)
				for _, step := range steps[stop:] {
					step()
				}
				s = h.Merge()
				CheckPossible(t, s.Interval)
				if c := s.Cumulative; c.Count() != 2 || c.Sum() != float64(10+v) || c.least != min(v, 10) || c.greatest != max(v, 10) {
					t.Errorf("count %d, sum %v, %d to %d; want 10 and %d", c.Count(), c.Sum(), c.least, c.greatest, v)
				}
				for _, v := range []uint64{2001, 2003, 2005} {
					h.Record(v)
				}
				if got := h.Merge().Interval; got.Count() != 3 || got.Sum() != 6009 || got.Min() != 2001 || got.Max() != 2005 {
					t.Errorf("next interval: count %d, sum %v, %v to %v; want 2001, 2003, 2005", got.Count(), got.Sum(), got.Min(), got.Max())
				}
			})
		}
	}
}

// CheckPossible fails t if no values can have the summary s. The scale of its
// layout must be 1.
func CheckPossible(t testing.TB, s *Stats) {
	t.Helper()
	if err := possible(s); err != nil {
		t.Error(err)
	}
}

// possible returns an error if no values have the count, the bins, the sum and
// the extremes of s.
func possible(s *Stats) error {
	if s.Count() == 0 {
		if s.Sum() != 0 {
			return fmt.Errorf("no values have the sum %v", s.Sum())
		}
		return nil
	}
	var low, high float64
	var count uint64
	s.Bins(func(lower, width float64, n uint64) bool {
		low, high, count = low+lower*float64(n), high+(lower+width-1)*float64(n), count+n
		return true
	})
	n := float64(s.Count())
	// The sums of large values are rounded.
	slack := 1e-12 * max(math.Abs(low), math.Abs(high))
	low, high = max(low, s.Min()*n)-slack, min(high, s.Max()*n)+slack
	if sum := s.Sum(); count != s.Count() || s.Min() > s.Max() || sum < low || sum > high {
		return fmt.Errorf("%d values from %v to %v have the sum %v; %d in bins, sums %v to %v are possible", s.Count(), s.Min(), s.Max(), sum, count, low, high)
	}
	return nil
}

func checkEnds(t *testing.T, s *Stats) {
	t.Helper()
	CheckPossible(t, s)
	first, last := int64(math.MaxInt64), int64(0)
	s.Bins(func(lower, width float64, _ uint64) bool {
		first, last = min(first, int64(lower)), int64(lower+width)-1
		return true
	})
	if s.count > 0 && (s.least < first || s.greatest > last || s.least > s.greatest) {
		t.Errorf("%d to %d, but the bins reach from %d to %d", s.least, s.greatest, first, last)
	}
}

// TestMergeDuringASpill stops where a full narrow counter was emptied and its
// content has not reached the wide one.
func TestMergeDuringASpill(t *testing.T) {
	h := New(testLayout(t))
	for range laneLimit - 1 {
		h.Record(7)
	}
	h.Record(2001)
	if got := h.Merge().Cumulative.Count(); got != laneLimit {
		t.Fatalf("count = %d, want %d", got, laneLimit)
	}
	s := h.shared.Load()
	s.wide.need(0)
	s.narrow.page(0)[7/4].Store(0) // 32767 + 1 - 32768 in the lane of 7
	h.Record(2001)
	snap := h.Merge()
	if snap.Interval.Count() != 1 || snap.Cumulative.Count() != laneLimit+1 {
		t.Errorf("halfway: interval %d, cumulative %d; want 1, %d", snap.Interval.Count(), snap.Cumulative.Count(), laneLimit+1)
	}
	if got := snap.Cumulative.AppendCumulative(nil); got[0] != laneLimit-1 {
		t.Errorf("halfway: %d values up to 10, want %d", got[0], laneLimit-1)
	}
	s.wide.page(0)[7].Add(laneLimit)
	s.sums[0].add(7, 1)
	s.touch()
	snap = h.Merge()
	if snap.Interval.Count() != 1 || snap.Cumulative.Count() != laneLimit+2 {
		t.Errorf("at the end: interval %d, cumulative %d; want 1, %d", snap.Interval.Count(), snap.Cumulative.Count(), laneLimit+2)
	}
}

// TestExtremesDuringASpill stops there, too, when a value of the interval is
// among the content: its interval is the next one, and so are its extremes.
func TestExtremesDuringASpill(t *testing.T) {
	for _, tt := range []struct{ early, late, other uint64 }{
		{9020, 8961, 2001},   // of one bin, above the other value
		{8961, 9020, 70_003}, // below it
	} {
		h := New(testLayout(t))
		for range laneLimit - 2 {
			h.Record(9000)
		}
		h.Merge()
		h.Record(tt.early)
		h.Record(tt.other)
		s, bin := h.shared.Load(), h.layout.bin(9000)
		s.wide.need(pageOf(bin))
		s.narrow.page(pageOf(bin))[bin&(pageBins-1)/4].Store(0)
		got := h.Merge().Interval
		if checkEnds(t, got); got.Count() != 1 {
			t.Errorf("halfway: %d values, want %d alone", got.Count(), tt.other)
		}
		s.wide.page(pageOf(bin))[bin&(pageBins-1)].Add(laneLimit)
		s.sums[0].add(tt.late, 1)
		s.ends[h.epoch.Load()&1].include(endKey(int64(tt.late)))
		s.touch()
		got = h.Merge().Interval
		if got.Count() != 2 || got.Min() != 8961 || got.Max() != 9020 {
			t.Errorf("at the end: %d values from %v to %v, want 8961 and 9020", got.Count(), got.Min(), got.Max())
		}
	}
}

// TestMergeDuringACarry stops between the low and the high word of a sum.
func TestMergeDuringACarry(t *testing.T) {
	h := New(testLayout(t))
	h.Record(math.MaxInt64)
	h.Record(math.MaxInt64)
	h.Merge()
	s := h.shared.Load()
	h.countIn(s, h.layout.bin(2000), 1)
	s.sums[0].low.Add(2000)
	h.Record(7)
	if got := h.Merge().Interval.Sum(); got != 2007 {
		t.Errorf("halfway: interval sum = %v, want 2007", got)
	}
	s.sums[0].high.Add(1)
	h.Record(7)
	if got := h.Merge().Interval.Sum(); got != 7 {
		t.Errorf("afterwards: interval sum = %v, want 7", got)
	}
}
