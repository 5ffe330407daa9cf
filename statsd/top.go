package statsd

import (
	"cmp"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"slices"
	"strings"
	"time"
)

// topCount is an item of a topSketch.
type topCount struct {
	item  uint32
	count uint64
}

// topSketch finds the most frequent items (space saving, Metwally, Agrawal, El
// Abbadi 2005). Counts are too high by at most the total divided by the number
// of slots.
//
// It samples every line at the start of an interval, then one in topEvery at
// random, so that regular patterns are found.
type topSketch struct {
	places [64]topCount
	n      int

	wait   int    // lines until the next sample
	stands uint64 // lines that the next sample represents; 0 is 1
	looks  int    // samples since the last take
	random uint64
}

const (
	topEvery = 64
	topExact = 1024 // lines that are all sampled
)

// look counts item, the name of the sampled line with weight samples, and
// chooses the next line to sample.
func (t *topSketch) look(item uint32, weight uint64) {
	t.add(item, weight*max(t.stands, 1))
	t.wait, t.stands = 1, 1
	if t.looks++; t.looks >= topExact {
		t.random += 0x9e3779b97f4a7c15 // splitmix64
		t.wait, t.stands = 1+int(mix(t.random)%(2*topEvery-1)), topEvery
	}
}

// add counts item, weight times.
func (t *topSketch) add(item uint32, weight uint64) {
	least := 0
	for i := range t.places[:t.n] {
		p := &t.places[i]
		if p.item == item {
			p.count += weight
			return
		}
		if p.count < t.places[least].count {
			least = i
		}
	}
	if t.n < len(t.places) {
		t.places[t.n] = topCount{item, weight}
		t.n++
		return
	}
	p := &t.places[least]
	p.item = item
	p.count += weight
}

// take adds the counts of t to counts and empties t.
func (t *topSketch) take(counts map[uint32]uint64) {
	for _, p := range t.places[:t.n] {
		counts[p.item] += p.count
	}
	t.n, t.looks, t.wait, t.stands = 0, 0, 0, 0
}

// topWindow keeps the counts of the intervals of the last minute, at least one.
// The zero value is empty.
type topWindow struct{ intervals []topInterval }

type topInterval struct {
	counts map[string]uint64 // by name
	length time.Duration
}

const (
	topTime      = time.Minute
	topIntervals = 60 // at most
)

// add adds the latest interval, whose length is negative if an injected clock was set back.
func (w *topWindow) add(counts map[string]uint64, length time.Duration) {
	w.intervals = append(w.intervals, topInterval{counts, max(length, 0)})
	for len(w.intervals) > topIntervals || len(w.intervals) > 1 && w.length() > topTime {
		w.intervals = slices.Delete(w.intervals, 0, 1)
	}
}

func (w *topWindow) length() (d time.Duration) {
	for _, in := range w.intervals {
		d += in.length
	}
	return d
}

// rates returns the n names with the most samples, highest rate first.
func (w *topWindow) rates(n int) []report.NameRate {
	seconds := w.length().Seconds()
	if seconds <= 0 {
		return nil
	}
	counts := make(map[string]uint64)
	for _, in := range w.intervals {
		for name, c := range in.counts {
			counts[name] += c
		}
	}
	all := make([]report.NameRate, 0, len(counts))
	for name, c := range counts {
		all = append(all, report.NameRate{Name: name, PerSecond: float64(c) / seconds})
	}
	slices.SortFunc(all, func(a, b report.NameRate) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), strings.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}
