package lb

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// maglev is the lookup table of Maglev hashing (Eisenbud et al., "Maglev: A Fast and
// Reliable Software Network Load Balancer", 2016), with weights.
type maglev struct {
	owners []*host.Host
	table  []uint32 // slot to index in owners
}

// buildMaglev fills a table of size slots, which must be a prime.
func buildMaglev(entries []entry, size uint64, stats *Stats) *maglev {
	type walker struct {
		at, skip       uint64 // at is the next slot of the host's sequence
		weight, target float64
		count          uint64
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	m := &maglev{owners: make([]*host.Host, len(sorted)), table: make([]uint32, size)}
	walkers := make([]walker, len(sorted))
	var heaviest float64
	for i, e := range sorted {
		m.owners[i] = e.host
		walkers[i] = walker{
			at:     xxhash.Sum64String(e.key) % size,
			skip:   seededHash(e.key, 1)%(size-1) + 1,
			weight: e.weight,
		}
		heaviest = max(heaviest, e.weight)
	}
	const free = ^uint32(0)
	for i := range m.table {
		m.table[i] = free
	}
	filled := uint64(0)
	for iteration := 1.0; filled < size; iteration++ {
		for i := range walkers {
			w := &walkers[i]
			if filled == size || iteration*w.weight < w.target {
				continue
			}
			w.target += heaviest
			for taken := false; !taken; {
				if m.table[w.at] == free {
					m.table[w.at] = uint32(i)
					taken = true
				}
				if w.at += w.skip; w.at >= size {
					w.at -= size
				}
			}
			w.count++
			filled++
		}
	}
	fewest, most := size, uint64(0)
	for i := range walkers {
		fewest, most = min(fewest, walkers[i].count), max(most, walkers[i].count)
	}
	stats.MaglevMinEntries.Set(fewest)
	stats.MaglevMaxEntries.Set(most)
	return m
}

// seededHash returns the 64-bit xxHash of s with a seed.
func seededHash(s string, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.WriteString(s) // never fails
	return d.Sum64()
}

// place implements placer. A further attempt inverts the bits of the hash.
func (m *maglev) place(hash uint64, attempt int) *host.Host {
	if attempt > 0 {
		hash ^= -uint64(attempt)
	}
	return m.owners[m.table[hash%uint64(len(m.table))]]
}
