package relay

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// route is a Route with its targets.
type route struct {
	Route
	prefixes [][]byte
	targets  []*target
}

// pick returns the target of a key, the one with the highest score, and the target
// that gets its lines now: the owner if it is up, else the next by score that is up, or
// the owner if none is.
//
// This is rendezvous hashing (Thaler and Ravishankar, "A Name-Based Mapping Scheme for
// Rendezvous", 1996). A target that leaves moves only its own keys, and they spread
// evenly over the others. With the number of targets that a relay has, comparing all
// scores is faster than searching a ring.
func (rt *route) pick(key uint64) (owner, now *target) {
	var best, bestUp uint64
	for _, t := range rt.targets {
		score := mix(key ^ t.seed)
		if owner == nil || score > best {
			owner, best = t, score
		}
		if t.up.Load() && (now == nil || score > bestUp) {
			now, bestUp = t, score
		}
	}
	if now == nil {
		now = owner
	}
	return owner, now
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (rt *route) takes(l *line.Line) bool {
	if len(rt.prefixes) == 0 {
		return true
	}
	return l.Kind == line.KindMetric && rt.begins(l.Name)
}

func (rt *route) begins(name []byte) bool {
	for _, p := range rt.prefixes {
		if bytes.HasPrefix(name, p) {
			return true
		}
	}
	return len(rt.prefixes) == 0
}

// key returns the key of a line that was identified. It appends to buf, which is
// scratch memory.
func (rt *route) key(l *line.Line, buf *[]byte) uint64 {
	switch {
	case l.Kind == line.KindServiceCheck:
		// The states of a check meet: its name follows "_sc|".
		_, rest, _ := bytes.Cut(l.Text, []byte{'|'})
		name, _, _ := bytes.Cut(rest, []byte{'|'})
		return xxhash.Sum64(name)
	case l.Kind != line.KindMetric:
		return xxhash.Sum64(l.Text)
	case rt.Hash == Name || len(l.Tags) == 0:
		return xxhash.Sum64(l.Name)
	}
	b := append((*buf)[:0], l.Name...)
	for _, t := range l.Tags {
		b = append(append(append(append(b, 0), t.Key...), 0), t.Value...)
	}
	*buf = b
	return xxhash.Sum64(b)
}

// invalidKey returns the key of a line that the parser rejects.
func invalidKey(text []byte) uint64 {
	if i := bytes.IndexAny(text, ":|"); i >= 0 {
		text = text[:i]
	}
	return xxhash.Sum64(text)
}
