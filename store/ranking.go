package store

import (
	"bytes"
	"slices"
	"sort"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

// ranking knows the positions of an order: which stat is at a position, at which
// positions the keys with a prefix are, and sums over positions.
//
// A count over a prefix is a difference of two positions, which are found by binary
// search, so it needs no state. Other sums are kept for each run of about 64 positions
// of a chunk. Chunks are immutable, so only new ones are summed, and of these only the
// stats that the chunk before did not have are read.
type ranking struct {
	key func(dst []byte, x id) []byte
	// shared returns the number of segments at the beginning of two keys that are equal,
	// and one more if all are.
	shared func(a, b []byte) int

	chunks [][]id
	starts []int // position of the first id of each chunk, and the number of positions
	sums   []*chunkSums

	byFirst map[*id]*chunkSums
	slots   []*chunkSums // by chunkSums.slot
	free    []uint32
	places  []uint32 // by id: slot and index of the chunk, if they have the id there
	blocks  []uint32 // by block: 1 + reuse at the last update, 0: there was none
	renewed []bool   // by block: since the last update, its ids are those of other stats
	next    int      // chunk whose sizes are measured next; see refreshSizes
	since   int64    // when the oldest stat was created that is fresh
	asked   uint32   // questions
	floor   int64    // stats without the flag young are older

	buf     []byte
	last    []byte // key of stat
	stat    id
	carried []carried // see carry
	heads   []int     // see group
	hints   prefetch.Batch
}

// size returns the number of positions.
func (r *ranking) size() int {
	if len(r.starts) == 0 {
		return 0
	}
	return r.starts[len(r.starts)-1]
}

// keyAt returns the key at a position. It is valid until the next call.
func (r *ranking) keyAt(pos int) []byte {
	n := r.chunkAt(pos)
	if pos == r.starts[n] {
		return r.sums[n].first
	}
	r.buf = r.key(r.buf[:0], r.chunks[n][pos-r.starts[n]])
	return r.buf
}

// chunkAt returns the index of the chunk with a position.
func (r *ranking) chunkAt(pos int) int { return sort.SearchInts(r.starts, pos+1) - 1 }

// side reports where a key is: before the keys with prefix (-1), among them (0) or
// behind them (1).
func side(key, prefix []byte) int {
	return bytes.Compare(key[:min(len(key), len(prefix))], prefix)
}

// span is a range of positions.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// find returns the positions in within whose keys begin with prefix.
func (r *ranking) find(prefix []byte, within span) span {
	if len(prefix) == 0 {
		return within
	}
	from := within.from + sort.Search(within.len(), func(i int) bool { return side(r.keyAt(within.from+i), prefix) >= 0 })
	return span{from, r.endOf(prefix, from, within.to)}
}

// group returns the positions of the group whose keys begin with key; see groupAt.
func (r *ranking) group(key []byte, n int, within span) span {
	if within.len() == 0 {
		return within
	}
	low, last := r.chunkAt(within.from), r.chunkAt(within.to-1)
	low += sort.Search(last-low, func(k int) bool { return side(r.sums[low+1+k].first, key) >= 0 })
	r.heads = r.heads[:0]
	for i, common := range r.sums[low].common {
		if i == 0 || int(common) <= n {
			r.heads = append(r.heads, r.starts[low]+i)
		}
	}
	pos := r.starts[low+1]
	if k := sort.Search(len(r.heads), func(k int) bool { return side(r.keyAt(r.heads[k]), key) >= 0 }); k < len(r.heads) {
		pos = r.heads[k]
	}
	if pos = max(pos, within.from); pos >= within.to || side(r.keyAt(pos), key) != 0 {
		return span{pos, pos}
	}
	return r.groupAt(pos, n, within)
}

// endOf returns the end of the keys with prefix, the first of which is at from or
// ends there.
func (r *ranking) endOf(prefix []byte, from, to int) int {
	step := 1
	for from+step-1 < to && side(r.keyAt(from+step-1), prefix) <= 0 {
		from += step
		step *= 2
	}
	return from + sort.Search(min(to, from+step-1)-from, func(i int) bool { return side(r.keyAt(from+i), prefix) > 0 })
}

// groupAt returns the positions around pos, in within, whose keys share more than n
// segments. n must be below maxShared.
func (r *ranking) groupAt(pos, n int, within span) span {
	s, k := within, r.chunkAt(pos)
	for j := k; j >= 0 && r.starts[j+1] > within.from; j-- {
		if i := r.sums[j].startUpTo(min(pos, r.starts[j+1]-1)-r.starts[j], n); i >= 0 {
			s.from = max(within.from, r.starts[j]+i)
			break
		}
	}
	for j := k; j < len(r.sums) && r.starts[j] < within.to; j++ {
		if i := r.sums[j].startFrom(max(pos+1-r.starts[j], 0), n); i < len(r.sums[j].ids) {
			s.to = min(within.to, r.starts[j]+i)
			break
		}
	}
	return s
}

// update makes chunks the chunks of r.
func (r *ranking) update(x *Explorer, chunks [][]id) {
	if len(chunks) == len(r.chunks) && (len(chunks) == 0 || &chunks[0] == &r.chunks[0]) {
		return // they are
	}
	r.renew(x.s)
	old := r.byFirst
	r.byFirst = make(map[*id]*chunkSums, len(chunks))
	sums := make([]*chunkSums, len(chunks))
	r.starts = slices.Grow(r.starts[:0], len(chunks)+1)
	n := 0
	for i, ids := range chunks {
		r.starts = append(r.starts, n)
		n += len(ids)
		if have := old[&ids[0]]; have != nil && len(have.ids) == len(ids) {
			sums[i] = have
			r.byFirst[&ids[0]] = have
			delete(old, &ids[0])
		}
	}
	r.starts = append(r.starts, n)
	for i, ids := range chunks {
		if sums[i] == nil {
			sums[i] = r.sum(x, ids)
			r.byFirst[&ids[0]] = sums[i]
		}
	}
	for _, gone := range old {
		r.slots[gone.slot] = nil
		r.free = append(r.free, gone.slot)
	}
	for i, c := range sums {
		if i == 0 {
			c.after = noID
			continue
		}
		before := chunks[i-1]
		if one := before[len(before)-1]; c.after != one || r.renewed[one>>slotBits] {
			c.common[0], c.after = r.sharedBy(one, c.ids[0]), one
		}
	}
	r.chunks, r.sums = chunks, sums
}

// renew finds the blocks whose stats are others than at the last update.
func (r *ranking) renew(s *Store) {
	list := s.blocks.All()
	r.renewed = append(r.renewed[:0], make([]bool, len(list))...)
	r.blocks = append(r.blocks, make([]uint32, len(list)-len(r.blocks))...)
	for i := range list {
		now := uint32(0)
		if b := list[i].Load(); b != nil {
			now = 1 + b.reuse
		}
		r.renewed[i] = now != r.blocks[i]
		r.blocks[i] = now
	}
	r.stat = noID
}

// sharedBy returns the number of segments that the keys of two stats share.
func (r *ranking) sharedBy(one, next id) uint8 {
	if r.stat != one {
		r.last = r.key(r.last[:0], one)
	}
	r.buf = r.key(r.buf[:0], next)
	n := r.shared(r.last, r.buf)
	r.last, r.buf, r.stat = r.buf, r.last, next
	return uint8(min(n, maxShared))
}

// before returns the chunk that was replaced by one with ids, or nil.
func (r *ranking) before(ids []id) *chunkSums {
	for _, one := range [...]id{ids[0], ids[len(ids)/2], ids[len(ids)-1]} {
		if c, _ := r.place(one); c != nil {
			return c
		}
	}
	return nil
}

// place returns the chunk of a stat and the index there, nil if there is none.
func (r *ranking) place(one id) (*chunkSums, int) {
	if uint(one) >= uint(len(r.places)) {
		return nil, 0
	}
	p := r.places[one]
	slot, i := int(p>>chunkBits), int(p&(1<<chunkBits-1))
	if slot >= len(r.slots) || r.slots[slot] == nil {
		return nil, 0
	}
	c := r.slots[slot]
	if i >= len(c.ids) || c.ids[i] != one {
		return nil, 0
	}
	return c, i
}

// bytes estimates the memory of r without the ids.
func (r *ranking) bytes() int {
	n := 4*cap(r.places) + 16*cap(r.starts) + 5*cap(r.blocks)
	for _, c := range r.sums {
		n += int(unsafe.Sizeof(*c)) + 96 + cap(c.first) + cap(c.common) + 2*cap(c.bytes) + int(unsafe.Sizeof(runSums{}))*cap(c.runs) + 8*cap(c.rates)
		for i := range c.tags {
			n += int(unsafe.Sizeof(tagSums{})) + 4*cap(c.tags[i].hashes)
		}
	}
	return n
}
