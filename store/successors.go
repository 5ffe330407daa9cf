package store

import (
	"cmp"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// merged are the changes of a snapshot in which each series has at most one. A stat that
// ended and its successor of the same name and tags can both have changed, but receivers
// keep a single point of a series for a time.
type merged struct {
	once       sync.Once
	counters   []counterChange
	gauges     []gaugeChange
	histograms []histogramChange
}

// changes returns the changes by series.
func (snap *Snapshot) changes() *merged {
	m := snap.merged
	m.once.Do(func() {
		m.counters = mergeSuccessors(snap, snap.counters, counterChange.id, addCounters)
		m.gauges = mergeSuccessors(snap, snap.gauges, gaugeChange.id, lastGauge)
		m.histograms = mergeSuccessors(snap, snap.histograms, histogramChange.id, addHistograms)
	})
	return m
}

func (ch counterChange) id() id   { return ch.x }
func (ch gaugeChange) id() id     { return ch.x }
func (ch histogramChange) id() id { return ch.x }

// The functions below join a change and a later one, if that is possible.

func addCounters(a, b counterChange) (counterChange, bool) {
	return counterChange{b.x, b.total, a.delta + b.delta}, true
}

func lastGauge(_, b gaugeChange) (gaugeChange, bool) { return b, true }

func addHistograms(a, b histogramChange) (histogramChange, bool) {
	if a.h.Interval.Layout() != b.h.Interval.Layout() {
		return b, false
	}
	return histogramChange{b.x, &histogram.Snapshot{
		Used: b.h.Used, Interval: histogram.MergeStats(a.h.Interval, b.h.Interval), Cumulative: b.h.Cumulative,
	}}, true
}

// mergeSuccessors joins each change of a stat that has ended with that of its successor, if
// both are in list, which is in ascending order of ids.
func mergeSuccessors[C any](snap *Snapshot, list []C, key func(C) id, join func(a, b C) (C, bool)) []C {
	c := snap.cursor()
	var gone []int
	for n, ch := range list {
		x := key(ch)
		if !c.block(x).alive.has(int(x & (1<<slotBits - 1))) {
			gone = append(gone, n)
		}
	}
	if len(gone) == 0 {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(gone, func(a, b int) int {
		x, y := key(list[a]), key(list[b])
		p, q := c.block(x).birth(int(x&(1<<slotBits-1))), c.block(y).birth(int(y&(1<<slotBits-1)))
		return cmp.Or(cmp.Compare(p.flushes, q.flushes), cmp.Compare(p.at, q.at))
	})
	joined := make(map[int]bool) // with a later change
	follow := func(n, next int) {
		if ch, ok := join(list[n], list[next]); ok {
			list[next], joined[n] = ch, true
		}
	}
	type series struct {
		network bool
		record  string
	}
	last := make(map[series]int)
	for _, n := range gone {
		c.read(key(list[n]), 0)
		s := series{c.Network(), string(c.record())}
		if before, ok := last[s]; ok {
			follow(before, n)
		}
		last[s] = n
	}
	for s, n := range last {
		c.read(key(list[n]), 0)
		next, ok := snap.view.successor(c, s.record)
		if !ok {
			continue
		}
		if at, ok := slices.BinarySearchFunc(list, next, func(ch C, x id) int { return cmp.Compare(key(ch), x) }); ok {
			follow(n, at)
		}
	}
	kept := list[:0]
	for n, ch := range list {
		if !joined[n] {
			kept = append(kept, ch)
		}
	}
	return kept
}

// record returns the record of the stat.
func (s *step) record() []byte {
	return s.rec[:s.b.offset[s.i+1]-s.b.offset[s.i]]
}

// successor returns the live stat with the name and tags of the ended one under c, which has
// that record, and of its kind.
func (v *View) successor(c *Cursor, record string) (id, bool) {
	name := c.Name()
	b, i, ok := v.s.find(v.s.lookup.hash(c.Network(), name), c.Network(), name)
	if !ok || b.variant.kind() != c.Kind() {
		return 0, false
	}
	next := step{b: b, rec: b.record(i), i: i}
	return makeID(b.index, i), string(next.record()) == record && b.alive.has(i)
}
