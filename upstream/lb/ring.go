package lb

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// ring is a consistent hash ring: each host owns points in proportion to its
// weight, and a hash belongs to the next point.
type ring struct {
	hashes []uint64
	owners []*host.Host
	// starts[h>>shift] is the first point not below h with the low bits cut
	// off: hashes are spread evenly, so the search is a step or two from there.
	starts []uint32
	shift  uint
}

type point struct {
	hash  uint64
	owner *host.Host
}

// buildRing places the entries, whose weights sum up to 1. It returns nil if done is
// closed before the ring is complete.
func buildRing(entries []entry, c config.RingHash, stats *Stats, done <-chan struct{}) placer {
	least := 1.0
	for _, e := range entries {
		least = min(least, e.weight)
	}
	scale := min(math.Ceil(least*float64(c.MinimumSize))/least, float64(c.MaximumSize))
	points := make([]point, 0, int(math.Ceil(scale)))
	hash := xxhash.Sum64
	if c.Function == config.MurmurHash2 {
		hash = func(b []byte) uint64 { return murmur2(b, murmurSeed) }
	}
	var current, target float64
	fewest, most := uint64(math.MaxUint64), uint64(0)
	var buf []byte
	for _, e := range entries {
		target += scale * e.weight
		buf = append(append(buf[:0], e.key...), '_')
		stem := len(buf)
		n := uint64(0)
		for current < target {
			if n%stopPoints == 0 && closed(done) {
				return nil
			}
			buf = strconv.AppendUint(buf[:stem], n, 10)
			points = append(points, point{hash(buf), e.host})
			n++
			current++
		}
		fewest, most = min(fewest, n), max(most, n)
	}
	if !sortPoints(points, done) {
		return nil
	}
	stats.RingSize.Set(uint64(len(points)))
	stats.RingMinHashes.Set(fewest)
	stats.RingMaxHashes.Set(most)
	return newRing(points)
}

// stopPoints is how many points of a host are placed between two looks at whether the
// ring is still needed.
const stopPoints = 1 << 14

// sortPoints sorts points by hash and leaves equal ones in order. It stops and returns
// false if done is closed. Hashes are spread evenly, so the parts of some points that
// share the highest bits are sorted one by one.
func sortPoints(points []point, done <-chan struct{}) bool {
	const part = 16
	shift := uint(64 - bits.Len(uint(len(points)/part)))
	ends := make([]int, 1<<(64-shift))
	for _, p := range points {
		ends[p.hash>>shift]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	parts := make([]point, len(points))
	for _, p := range slices.Backward(points) {
		ends[p.hash>>shift]--
		parts[ends[p.hash>>shift]] = p
	}
	for i, start := range ends { // which begin the parts now
		if closed(done) {
			return false
		}
		end := len(parts)
		if i+1 < len(ends) {
			end = ends[i+1]
		}
		slices.SortStableFunc(parts[start:end], func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	}
	copy(points, parts)
	return true
}

// closed reports whether done is closed; nil never is.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// newRing returns the ring of sorted points.
func newRing(points []point) *ring {
	r := &ring{hashes: make([]uint64, len(points)), owners: make([]*host.Host, len(points))}
	for i, p := range points {
		r.hashes[i], r.owners[i] = p.hash, p.owner
	}
	width := bits.Len(uint(len(points)))
	r.shift = uint(64 - width)
	r.starts = make([]uint32, 1<<width)
	i := 0
	for b := range r.starts {
		for i < len(points) && points[i].hash < uint64(b)<<r.shift {
			i++
		}
		r.starts[b] = uint32(i)
	}
	return r
}

// place implements placer: the first point not below the hash, and for each
// further attempt the next one.
func (r *ring) place(hash uint64, attempt int) *host.Host {
	i := int(r.starts[hash>>r.shift])
	for i < len(r.hashes) && r.hashes[i] < hash {
		i++
	}
	if i == len(r.hashes) {
		i = 0
	}
	if attempt > 0 {
		i = (i + attempt) % len(r.hashes)
	}
	return r.owners[i]
}
