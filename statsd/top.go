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
type topSketch struct {
	places [64]topCount
	n      int
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
	t.n = 0
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
