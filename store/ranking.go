package store

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"unsafe"
)

// ranking knows the positions of an order: which stat is at a position, at which
// positions the keys with a prefix are, and sums over positions.
//
// A count over a prefix is a difference of two positions, which are found by binary
// search, so it needs no state. Other sums are kept for each run of about 64 positions
// of a chunk. Chunks are immutable, so only new ones are summed.
type ranking struct {
	key func(dst []byte, x id) []byte

	chunks [][]id
	starts []int // position of the first id of each chunk, and the number of positions
	sums   []*chunkSums

	byFirst map[*id]*chunkSums
	slots   []*chunkSums // by chunkSums.slot
	free    []uint32
	places  []uint32 // by id: slot and index of the chunk, if they have the id there
	next    int      // chunk whose sizes are measured next; see refreshSizes
	since   int64    // when the oldest stat was created that is fresh
	asked   uint32   // questions
	buf     []byte
	found   int // length of the last span found: neighbors often have as many stats

	recycled uint64 // Store.recycled as of the last update
	reused   bool   // before the last update, an id can have become that of another stat
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
	from := within.from
	if within.len() > 0 && side(r.keyAt(from), prefix) < 0 {
		from = r.search(within, math.MaxInt, func(key []byte) bool { return side(key, prefix) >= 0 })
	}
	to := r.search(span{from, within.to}, r.found, func(key []byte) bool { return side(key, prefix) > 0 })
	r.found = to - from
	return span{from, to}
}

// search returns the first position in s whose key is behind something, s.to if none is.
// It reads two keys if that is so many positions from the beginning of s as guessed.
func (r *ranking) search(s span, guess int, behind func(key []byte) bool) int {
	if s.len() <= 0 {
		return s.to
	}
	n, last := r.chunkAt(s.from), r.chunkAt(s.to-1)
	n += sort.Search(last-n, func(k int) bool { return behind(r.sums[n+1+k].first) })
	from, to := max(s.from, r.starts[n]), min(s.to, r.starts[n+1])
	for step, next := max(guess, 1), 1; step <= to-from; step, next = next, 4*next {
		if behind(r.keyAt(from + step - 1)) {
			to = from + step - 1
			break
		}
		from += step
	}
	return from + sort.Search(to-from, func(i int) bool { return behind(r.keyAt(from + i)) })
}

// update makes chunks the chunks of r.
func (r *ranking) update(x *Explorer, chunks [][]id) {
	recycled := x.s.recycled.Load() // after the order was read, whose ids the open view keeps
	r.reused, r.recycled = recycled != r.recycled, recycled
	if len(chunks) == len(r.chunks) && (len(chunks) == 0 || &chunks[0] == &r.chunks[0]) {
		return // they are
	}
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
	r.chunks, r.sums = chunks, sums
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
	n := 4*cap(r.places) + 16*cap(r.starts)
	for _, c := range r.sums {
		n += int(unsafe.Sizeof(*c)) + 96 + cap(c.first) + int(unsafe.Sizeof(runSums{}))*cap(c.runs) + 8*cap(c.rates)
		for i := range c.tags {
			n += int(unsafe.Sizeof(tagSums{})) + 4*cap(c.tags[i].hashes)
		}
	}
	return n
}
