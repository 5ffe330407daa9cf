package lb

import (
	"math"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// bounded keeps hosts of a table from exceeding their share of the active requests
// (Mirrokni et al., "Consistent Hashing with Bounded Loads", 2016). Instead of an
// overloaded host it tries others, in an order that depends on the hash alone.
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

// load returns the load of e: above 1 it is overloaded. slots is the number of requests
// that all hosts together can have.
func (e *entry) load(slots uint64) float64 {
	own := max(math.Ceil(float64(slots)*e.weight), 1)
	return float64(e.host.Stats.RqActive.Value()) / own
}

// choose returns h, or the first host that is not overloaded. If all are, it returns
// the least loaded one.
func (b *bounded) choose(h *host.Host, hash uint64) *host.Host {
	slots := ((b.active()+1)*b.percent + 99) / 100
	least := b.entries[b.index[h]].load(slots)
	if least <= 1 {
		return h
	}
	// Steps without a common divisor with the number of hosts reach every host once.
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
