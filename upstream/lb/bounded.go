package lb

import (
	"math"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// bounded keeps the hosts of a table from getting more than their share of the
// active requests (Mirrokni et al., "Consistent Hashing with Bounded Loads",
// 2016). Where a host has more, others are tried in an order that depends on
// the hash alone.
type bounded struct {
	percent uint64 // of the average load that a host may have
	active  func() uint64
	entries []entry
	index   map[*host.Host]int // of entries
}

// bound returns the bounds of a table, nil if there are none.
func (c *Config) bound(entries []entry) *bounded {
	if c.HashBalanceFactor == 0 || len(entries) < 2 {
		return nil
	}
	b := &bounded{percent: uint64(c.HashBalanceFactor), active: c.ActiveRequests, entries: entries, index: make(map[*host.Host]int, len(entries))}
	for i, e := range entries {
		b.index[e.host] = i
	}
	return b
}

// load returns how full e is: above 1 it has too much. slots is the number of
// requests that all hosts together may have.
func (e *entry) load(slots uint64) float64 {
	own := max(math.Ceil(float64(slots)*e.weight), 1)
	return float64(e.host.Stats.RqActive.Value()) / own
}

// choose returns h, or if that has too much the first host that has not. If all
// have, it is the one that has the least.
func (b *bounded) choose(h *host.Host, hash uint64) *host.Host {
	slots := ((b.active()+1)*b.percent + 99) / 100
	least := b.entries[b.index[h]].load(slots)
	if least <= 1 {
		return h
	}
	// Steps that have no divisor in common with the number of hosts come to
	// every host once.
	n := uint64(len(b.entries))
	hash = mix(hash)
	at, step := hash%n, hash>>32%n
	for gcd(step, n) != 1 {
		step = (step + 1) % n
	}
	for range n {
		e := &b.entries[at]
		if e.host != h {
			load := e.load(slots)
			if load <= 1 {
				return e.host
			}
			if load < least {
				least, h = load, e.host
			}
		}
		at = (at + step) % n
	}
	return h
}

// mix spreads the bits of x (the finalizer of SplitMix64, Steele et al., 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
