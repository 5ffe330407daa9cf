package statsd

import "slices"

// topCount is an item of a topSketch.
type topCount struct {
	item  uint32
	count uint64
}

// topSketch finds the items that occur most often (space saving, Metwally,
// Agrawal, El Abbadi 2005): counts are too high by at most the total divided
// by the number of places.
//
// It looks at the first lines of an interval all, then at one in topEvery on
// average, at random: what comes in a regular order must not hide.
type topSketch struct {
	places [64]topCount
	n      int

	wait   int    // lines until the next look
	stands uint64 // lines that the next look stands for; 0 is 1
	looks  int    // since the last take
	random uint64
}

const (
	topEvery = 64
	topExact = 1024 // lines that are all looked at
)

// look counts item, which the line is about that it is time to look at and that
// has weight samples, and says when to look again.
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

// take adds what t found to counts and empties t.
func (t *topSketch) take(counts map[uint32]uint64) {
	for _, p := range t.places[:t.n] {
		counts[p.item] += p.count
	}
	t.n, t.looks, t.wait, t.stands = 0, 0, 0, 0
}

// largest returns the items with the highest counts, highest first.
func largest(counts map[uint32]uint64, n int) []topCount {
	all := make([]topCount, 0, len(counts))
	for item, c := range counts {
		all = append(all, topCount{item, c})
	}
	slices.SortFunc(all, func(a, b topCount) int {
		switch {
		case a.count > b.count:
			return -1
		case a.count < b.count:
			return 1
		}
		return int(a.item) - int(b.item)
	})
	return all[:min(n, len(all))]
}
