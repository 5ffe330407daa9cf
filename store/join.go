package store

import "github.com/statsd-admin/statsd-admin/histogram"

// Join returns the changes of two snapshots of one store as one interval: counters
// with the sum of their increments, gauges with their last value,
// histograms with the sum of their intervals. next is the snapshot of a flush after
// the last one in snap.
//
// Join closes neither snapshot, and the result need not be closed. It is valid while
// the first and the last of the snapshots in it are open: those between can be closed.
func (snap *Snapshot) Join(next *Snapshot) *Snapshot {
	j := *next
	j.Interval += snap.Interval
	j.merged = new(merged)
	j.counters = joinChanges(snap.counters, next.counters, func(c *counterChange) id { return c.x },
		func(a, b counterChange) counterChange { return counterChange{b.x, b.total, a.delta + b.delta} })
	j.gauges = joinChanges(snap.gauges, next.gauges, func(c *gaugeChange) id { return c.x },
		func(_, b gaugeChange) gaugeChange { return b })
	j.histograms = joinChanges(snap.histograms, next.histograms, func(c *histogramChange) id { return c.x },
		func(a, b histogramChange) histogramChange {
			return histogramChange{b.x, &histogram.Snapshot{
				Used: b.h.Used, Interval: histogram.MergeStats(a.h.Interval, b.h.Interval), Cumulative: b.h.Cumulative,
			}}
		})
	j.ended = append(snap.ended[:len(snap.ended):len(snap.ended)], next.ended...)
	return &j
}

// joinChanges merges two lists of changes, whose ids are unique in each. A flush
// lists the changes of each kind in ascending order of ids.
func joinChanges[C any](a, b []C, key func(*C) id, both func(a, b C) C) []C {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	all := make([]C, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := key(&a[0]), key(&b[0]); {
		case x < y:
			all, a = append(all, a[0]), a[1:]
		case x > y:
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, both(a[0], b[0])), a[1:], b[1:]
		}
	}
	return append(append(all, a...), b...)
}
