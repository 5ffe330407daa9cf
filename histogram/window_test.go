package histogram

import (
	"math"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
)

// TestWindowCoversItsAge records 1 every minute for 30 minutes and checks what a
// window of ten minutes in five steps shows, also after the last value.
func TestWindowCoversItsAge(t *testing.T) {
	l, err := NewLayout(Config{Window: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := New(l)
	start := time.Unix(1_700_000_400, 0) // a multiple of two minutes
	for minute := range 31 {
		now := start.Add(time.Duration(minute) * time.Minute)
		h.Record(uint64(minute))
		s := h.MergeAt(now)
		// The current step, and the four before it.
		want := min(minute, minute%2+8) + 1
		if got := s.Window(now); got.Count() != uint64(want) || got.Max() != float64(minute) || got.Min() != float64(minute+1-want) {
			t.Fatalf("minute %d: count %d, %v to %v, want %d values up to %d", minute, got.Count(), got.Min(), got.Max(), want, minute)
		}
		if s.Interval.Count() != 1 || s.Cumulative.Count() != uint64(minute)+1 {
			t.Fatalf("minute %d: interval %d, cumulative %d", minute, s.Interval.Count(), s.Cumulative.Count())
		}
	}
	last := start.Add(30 * time.Minute)
	for minute, want := range map[int]uint64{0: 9, 1: 9, 2: 7, 8: 1, 9: 1, 10: 0, 1000: 0} {
		now := last.Add(time.Duration(minute) * time.Minute)
		if got := h.Snapshot().Window(now).Count(); got != want {
			t.Errorf("%d minutes after the last value: count %d, want %d", minute, got, want)
		}
	}
	s := h.MergeAt(last.Add(5 * time.Minute)) // an interval without values
	if got := s.Window(last.Add(5 * time.Minute)).Count(); got != 5 {
		t.Errorf("after an empty interval: count %d, want 5", got)
	}
	if !math.IsNaN(h.Snapshot().Window(last.Add(time.Hour)).Quantile(0.5)) {
		t.Error("an empty window has a median")
	}
}

// TestWindowBeforeTheEpoch: steps are equally long on both sides of 1970.
func TestWindowBeforeTheEpoch(t *testing.T) {
	l, err := NewLayout(Config{Window: time.Minute, Steps: 3})
	if err != nil {
		t.Fatal(err)
	}
	for seconds, want := range map[int64]int64{-41: -3, -40: -2, -21: -2, -20: -1, -1: -1, 0: 0, 19: 0, 20: 1} {
		if got := l.step(time.Unix(seconds, 0)); got != want {
			t.Errorf("second %d is in step %d, want %d", seconds, got, want)
		}
	}
}

// TestMergeSnapshotsOfOneInUse: the sum is in use, and has the window, if either is.
func TestMergeSnapshotsOfOneInUse(t *testing.T) {
	l, err := NewLayout(Config{Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_400, 0)
	used, unused := New(l), New(l)
	used.Record(3)
	a, b := used.MergeAt(now), unused.MergeAt(now)
	for name, s := range map[string]*Snapshot{"first": MergeSnapshots(a, b), "second": MergeSnapshots(b, a)} {
		if !s.Used || s.Cumulative.Count() != 1 || s.Interval.Count() != 1 || s.Window(now).Count() != 1 {
			t.Errorf("%s in use: %t, %d, %d, %d in the window", name, s.Used, s.Cumulative.Count(), s.Interval.Count(), s.Window(now).Count())
		}
	}
	if s := MergeSnapshots(b, b); s.Used || s.Cumulative.Count() != 0 {
		t.Error("the sum of unused ones is in use")
	}
}

func TestWindowOfClockSetBack(t *testing.T) {
	l, err := NewLayout(Config{Window: time.Minute, Steps: 3})
	if err != nil {
		t.Fatal(err)
	}
	h := New(l)
	now := time.Unix(1_700_000_400, 0)
	for _, at := range []time.Time{now, now.Add(-time.Hour), now} {
		h.Record(1)
		h.MergeAt(at)
	}
	if got := h.Snapshot().Window(now).Count(); got != 3 {
		t.Errorf("count %d, want 3", got)
	}
	if n := len(h.Snapshot().window); n != 1 {
		t.Errorf("%d steps, want 1", n)
	}
}

// TestWindowWhenTheClockIsSet: values leave the window as time passes, whatever the time
// of day.
func TestWindowWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		l, err := NewLayout(Config{Window: time.Minute, Steps: 3})
		if err != nil {
			t.Fatal(err)
		}
		h := New(l)
		set := clocktest.Set(l.clock, by)
		h.Record(1)
		h.MergeAt(l.clock)
		for i, after := range []time.Duration{0, 39 * time.Second, time.Minute} {
			if got, want := h.MergeAt(set.Add(after)).Window(set.Add(after)).Count(), []uint64{1, 1, 0}[i]; got != want {
				t.Errorf("clock set by %v: count %d after %v, want %d", by, got, after, want)
			}
		}
	}
}

func TestMergeSnapshotsMergesWindows(t *testing.T) {
	l, err := NewLayout(Config{Window: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	a, b := New(l), New(l)
	now := time.Unix(1_700_000_400, 0)
	for minute, hs := range [][]*Histogram{{b}, {a, b}, {a}, {b}} {
		for _, h := range hs {
			h.Record(uint64(minute))
		}
		a.MergeAt(now)
		b.MergeAt(now)
		now = now.Add(time.Minute)
	}
	s := MergeSnapshots(a.Snapshot(), b.Snapshot())
	for after, want := range []uint64{4, 2, 1, 0} {
		at := now.Add(time.Duration(after+1) * time.Minute)
		if got := s.Window(at).Count(); got != want {
			t.Errorf("%d minutes later: count %d, want %d", after+1, got, want)
		}
	}
	if s.Cumulative.Count() != 5 || s.Interval.Count() != 1 || !s.Used {
		t.Errorf("cumulative %d, interval %d, used %t", s.Cumulative.Count(), s.Interval.Count(), s.Used)
	}
}

func TestWindowIsTheIntervalByDefault(t *testing.T) {
	l, err := NewLayout(Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := New(l)
	h.Record(1)
	s := h.Merge()
	if s.Window(time.Now()) != s.Interval {
		t.Error("the window of a layout without one is not the interval")
	}
}

func TestShownSettings(t *testing.T) {
	for want, c := range map[string]Config{
		"histogram: quantile 1.5 not in [0,1]":                                              {Quantiles: []float64{0.5, 1.5}},
		"histogram: quantile NaN not in [0,1]":                                              {Quantiles: []float64{math.NaN()}},
		"histogram: quantile 0.5 not greater than the one before it":                        {Quantiles: []float64{0.5, 0.5}},
		"histogram: steps 101 not in [1,100]":                                               {Steps: 101},
		"histogram: window 1ms shorter than a millisecond a step":                           {Window: time.Millisecond},
		"histogram: native histogram with factor 0.5 and 0 buckets, want at least 1 and 0":  {NativeFactor: 0.5},
		"histogram: native histogram with factor +Inf and 0 buckets, want at least 1 and 0": {NativeFactor: math.Inf(1)},
	} {
		if _, err := NewLayout(c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, factor := range []float64{0, 1} {
		l, err := NewLayout(Config{NativeFactor: factor, NativeBuckets: 100})
		if err != nil {
			t.Fatal(err)
		}
		if schema, buckets, ok := l.NativeSchema(); ok || schema != 0 || buckets != 0 {
			t.Errorf("factor %v: schema %d, %d buckets, %t", factor, schema, buckets, ok)
		}
	}
	for factor, want := range map[float64]int{1.1: 3, 2: 0, 4: -1, 1.0001: 8, 1e30: -4} {
		l, err := NewLayout(Config{NativeFactor: factor, NativeBuckets: 100})
		if err != nil {
			t.Fatal(err)
		}
		if schema, buckets, ok := l.NativeSchema(); !ok || schema != want || buckets != 100 {
			t.Errorf("factor %v: schema %d, %d buckets, %t; want schema %d", factor, schema, buckets, ok, want)
		}
	}
}
