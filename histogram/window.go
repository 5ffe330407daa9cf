package histogram

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// windowStep holds the values of one step of a window.
type windowStep struct {
	number int64 // of the step, counted from the Unix epoch
	stats  *Stats
}

// step returns the number of the step that a time lies in. Times of the system's clock
// count by the time that has passed since l was made, whatever the clock is set to.
func (l *Layout) step(now time.Time) int64 {
	size := int64(l.window) / int64(l.steps)
	ns := l.clock.Add(now.Sub(l.clock)).UnixNano()
	n := ns / size
	if ns%size < 0 {
		n--
	}
	return n
}

// slide returns the window after an interval that ended at a time.
func (l *Layout) slide(w []windowStep, interval *Stats, now time.Time) []windowStep {
	number := l.step(now)
	first := slices.IndexFunc(w, func(s windowStep) bool { return s.number > number-int64(l.steps) })
	if first < 0 {
		first = len(w)
	}
	next := slices.Clone(w[first:])
	if interval.count == 0 {
		return next
	}
	// A clock that was set back adds to the newest step.
	if n := len(next); n > 0 && next[n-1].number >= number {
		next[n-1].stats = MergeStats(next[n-1].stats, interval)
		return next
	}
	return append(next, windowStep{number, interval})
}

// Window returns the values of the window of the layout that ends at now, in
// whole steps: of a window of ten minutes in five steps, the last eight to ten
// minutes. Without a window it returns Interval.
func (s *Snapshot) Window(now time.Time) *Stats {
	l := s.Interval.layout
	if l.window == 0 {
		return s.Interval
	}
	sum, oldest := l.empty, l.step(now)-int64(l.steps)
	for _, w := range s.window {
		if w.number > oldest {
			sum = MergeStats(sum, w.stats)
		}
	}
	return sum
}

// MergeSnapshots returns the sum of the snapshots of two histograms of one
// layout. It panics if the layouts differ.
func MergeSnapshots(a, b *Snapshot) *Snapshot {
	sum := &Snapshot{
		Used:       a.Used || b.Used,
		Interval:   MergeStats(a.Interval, b.Interval),
		Cumulative: MergeStats(a.Cumulative, b.Cumulative),
		window:     slices.Clone(a.window),
	}
	for _, w := range b.window {
		i, same := slices.BinarySearchFunc(sum.window, w.number, func(s windowStep, n int64) int { return cmp.Compare(s.number, n) })
		if same {
			sum.window[i].stats = MergeStats(sum.window[i].stats, w.stats)
		} else {
			sum.window = slices.Insert(sum.window, i, w)
		}
	}
	return sum
}

// Quantiles returns the quantiles that expositions show in place of the
// buckets, or nil. The caller must not change them.
func (l *Layout) Quantiles() []float64 { return l.quantiles }

// NativeSchema returns the schema of native histograms that satisfies
// [Config.NativeFactor], and the largest number of buckets; ok is false without
// that setting. In schema n, bounds grow by the factor 2^(2^-n).
func (l *Layout) NativeSchema() (schema, buckets int, ok bool) {
	if l.nativeFactor <= 1 {
		return 0, 0, false
	}
	n := -math.Floor(math.Log2(math.Log2(l.nativeFactor)))
	return int(min(max(n, -4), 8)), l.nativeBuckets, true
}
