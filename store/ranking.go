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
// search, so it needs no state. Other sums are kept for each run of 64 positions of a
// chunk. Chunks are immutable, so only new ones are summed.
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

	buf []byte
}

// chunkSums are the sums of a chunk.
type chunkSums struct {
	ids   []id
	slot  uint32
	runs  []runSums
	rates []float32 // by index; nil: all are 0
	tags  []tagSums // see chunkTags
	known bool      // tags are summed
}

// runLength is how many positions a runSums is about.
const runLength = 64

type runSums struct {
	oldest, newest int64 // creation, in Unix milliseconds; 0 is unknown
	bytes          uint64
	rate           float64
}

// chunkBits are the bits of an index within a chunk.
const chunkBits = 10

var _ [chunkSize - 1<<chunkBits]struct{}

// size returns the number of positions.
func (r *ranking) size() int {
	if len(r.starts) == 0 {
		return 0
	}
	return r.starts[len(r.starts)-1]
}

// keyAt returns the key at a position. It is valid until the next call.
func (r *ranking) keyAt(pos int) []byte {
	n := sort.SearchInts(r.starts, pos+1) - 1
	r.buf = r.key(r.buf[:0], r.chunks[n][pos-r.starts[n]])
	return r.buf
}

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

// startOf returns the first position from from on with the prefix of the key at pos.
func (r *ranking) startOf(prefix []byte, from, pos int) int {
	step := 1
	for pos-step >= from && side(r.keyAt(pos-step), prefix) >= 0 {
		pos -= step
		step *= 2
	}
	low := max(from, pos-step)
	return low + sort.Search(pos-low, func(i int) bool { return side(r.keyAt(low+i), prefix) >= 0 })
}

// update makes chunks the chunks of r.
func (r *ranking) update(x *Explorer, chunks [][]id) {
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
			sums[i] = &chunkSums{ids: ids}
			sums[i].carryTags(x, r.before(ids))
			r.byFirst[&ids[0]] = sums[i]
		}
	}
	for _, gone := range old {
		r.slots[gone.slot] = nil
		r.free = append(r.free, gone.slot)
	}
	for _, c := range sums {
		if c.runs != nil {
			continue
		}
		if k := len(r.free); k > 0 {
			c.slot, r.free = r.free[k-1], r.free[:k-1]
		} else {
			c.slot = uint32(len(r.slots))
			r.slots = append(r.slots, nil)
		}
		r.slots[c.slot] = c
		r.sum(x, c)
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

// sum makes the sums of a chunk and notes the places of its ids.
func (r *ranking) sum(x *Explorer, c *chunkSums) {
	c.runs = make([]runSums, (len(c.ids)+runLength-1)/runLength)
	for i, one := range c.ids {
		for int(one) >= len(r.places) {
			r.places = append(r.places, make([]uint32, max(slotsPerBlock, len(r.places)/4))...)
		}
		r.places[one] = c.slot<<chunkBits | uint32(i)
		b, slot := x.s.at(one)
		at := b.birth(slot)
		run := &c.runs[i/runLength]
		if i%runLength == 0 {
			run.oldest, run.newest = at, at
		}
		run.oldest, run.newest = min(run.oldest, at), max(run.newest, at)
		run.bytes += uint64(x.size(b, slot))
	}
}

// refreshed is how many runs refreshSizes measures.
const refreshed = 64

// refreshSizes measures some stats again, others at each call. It is for histograms,
// which grow.
func (r *ranking) refreshSizes(x *Explorer) {
	for left := min(refreshed/(chunkSize/runLength), len(r.sums)); left > 0; left-- {
		r.next = (r.next + 1) % len(r.sums)
		c := r.sums[r.next]
		for i := range c.runs {
			c.runs[i].bytes = 0
		}
		for i, one := range c.ids {
			b, slot := x.s.at(one)
			x.measure(b, slot)
			c.runs[i/runLength].bytes += uint64(x.size(b, slot))
		}
	}
}

// clearRates sets all rates to 0.
func (r *ranking) clearRates() {
	for _, c := range r.sums {
		if c.rates == nil {
			continue
		}
		clear(c.rates)
		for i := range c.runs {
			c.runs[i].rate = 0
		}
	}
}

// setRate sets the rate of a stat that is in the ranking.
func (r *ranking) setRate(one id, rate float64) {
	c, i := r.place(one)
	if c == nil {
		return
	}
	if c.rates == nil {
		c.rates = make([]float32, len(c.ids))
	}
	f := float32(rate)
	c.runs[i/runLength].rate += float64(f - c.rates[i])
	c.rates[i] = f
}

// tally sums up stats.
type tally struct {
	series, fresh  int
	oldest, newest int64
	bytes          uint64
	rate           float64
}

// add adds n stats.
func (t *tally) add(n int, oldest, newest int64, bytes uint64, rate float64) {
	if t.series == 0 {
		t.oldest, t.newest = oldest, newest
	}
	t.series += n
	t.oldest, t.newest = min(t.oldest, oldest), max(t.newest, newest)
	t.bytes += bytes
	t.rate += rate
}

// addOne adds the stat at index i of a chunk.
func (t *tally) addOne(x *Explorer, c *chunkSums, i int, since int64) {
	b, slot := x.s.at(c.ids[i])
	at := b.birth(slot)
	rate := 0.0
	if c.rates != nil {
		rate = float64(c.rates[i])
	}
	if at >= since {
		t.fresh++
	}
	t.add(1, at, at, uint64(x.size(b, slot)), rate)
}

// addTo adds the stats of a span to t. A stat created at since or later is fresh.
func (r *ranking) addTo(x *Explorer, s span, since int64, t *tally) {
	r.eachChunk(s, func(c *chunkSums, from, to int) {
		for i := from; i < to; {
			run, first := &c.runs[i/runLength], i
			last := min((i/runLength+1)*runLength, len(c.ids))
			if i%runLength != 0 || last > to {
				for last = min(last, to); i < last; i++ {
					t.addOne(x, c, i, since)
				}
				continue
			}
			i = last
			t.add(last-first, run.oldest, run.newest, run.bytes, run.rate)
			switch {
			case run.newest < since:
			case run.oldest >= since:
				t.fresh += last - first
			default:
				for _, one := range c.ids[first:last] {
					if b, slot := x.s.at(one); b.birth(slot) >= since {
						t.fresh++
					}
				}
			}
		}
	})
}

// eachChunk calls f with the chunks of a span, and the range of indexes within.
func (r *ranking) eachChunk(s span, f func(c *chunkSums, from, to int)) {
	if s.len() <= 0 {
		return
	}
	for n := sort.SearchInts(r.starts, s.from+1) - 1; n < len(r.sums) && r.starts[n] < s.to; n++ {
		f(r.sums[n], max(0, s.from-r.starts[n]), min(s.to, r.starts[n+1])-r.starts[n])
	}
}

// weigh returns the weight of a run of n stats for an order of groups.
func (run *runSums) weigh(by By, n int, since int64) float64 {
	switch by {
	case ByBytes:
		return float64(run.bytes)
	case ByRate:
		return run.rate
	default: // ByNew
		if run.newest < since {
			return 0
		}
		return float64(n) // at most
	}
}

// heavyRuns returns about n runs of s: each group of neighbors with more than a part
// in n of the whole weight has a position in a run.
func (r *ranking) heavyRuns(s span, n int, by By, since int64) (out []span) {
	each := func(yield func(span, float64)) {
		start := s.from
		r.eachChunk(s, func(c *chunkSums, from, to int) {
			for i := from; i < to; {
				last := min((i/runLength+1)*runLength, to)
				yield(span{start, start + last - i}, c.runs[i/runLength].weigh(by, last-i, since))
				start, i = start+last-i, last
			}
		})
	}
	total := 0.0
	each(func(_ span, w float64) { total += w })
	step := total / float64(n)
	sum, next := 0.0, step
	each(func(s span, w float64) {
		if sum += w; w > 0 && sum >= next {
			out = append(out, s)
			next += step * (1 + math.Floor((sum-next)/step))
		}
	})
	return out
}

// bytes estimates the memory of r without the ids.
func (r *ranking) bytes() int {
	n := 4*cap(r.places) + 16*cap(r.starts)
	for _, c := range r.sums {
		n += int(unsafe.Sizeof(*c)) + 96 + int(unsafe.Sizeof(runSums{}))*cap(c.runs) + 4*cap(c.rates)
		for i := range c.tags {
			n += int(unsafe.Sizeof(tagSums{})) + 4*cap(c.tags[i].hashes)
		}
	}
	return n
}
