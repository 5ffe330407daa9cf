package store

import (
	"math"
	"sort"
)

// chunkSums are the sums of a chunk.
type chunkSums struct {
	ids   []id
	first []byte // key
	slot  uint32
	runs  []runSums
	rates []rated
	tags  []tagSums // see addTag
	known bool      // tags are summed
}

// rated is a stat that has a rate.
type rated struct {
	index uint16
	rate  float32
}

// runLength is how many positions a runSums is about at least, except in a short chunk.
// Twice as many make two runs.
const runLength = 64

type runSums struct {
	fresh          uint16 // stats created at ranking.since or later, if it was asked then
	to             uint16 // index of the first stat behind the run
	asked          uint32
	oldest, newest int64 // creation, in Unix milliseconds; 0 is unknown
	bytes          uint64
	rate           float64
}

// chunkBits are the bits of an index within a chunk.
const chunkBits = 10

var _ [chunkSize - 1<<chunkBits]struct{}

// sum makes the sums of a chunk and notes the places of its ids. If the chunk replaces
// one with fewer ids, only the runs with others are summed.
func (r *ranking) sum(x *Explorer, ids []id) *chunkSums {
	c := &chunkSums{ids: ids, runs: make([]runSums, 0, (len(ids)+runLength-1)/runLength)}
	blocks := x.births()
	if old := r.before(ids); old != nil && !r.reused {
		if added, only := c.added(old); only {
			if old.ids[0] == ids[0] {
				c.first = old.first
			}
			c.carryTags(x, old, added)
			c.carryRuns(blocks, old, added)
		}
	}
	if c.first == nil {
		c.first = r.key(nil, ids[0])
	}
	if len(c.runs) == 0 {
		c.sumRuns(blocks, 0, len(ids))
	}
	if k := len(r.free); k > 0 {
		c.slot, r.free = r.free[k-1], r.free[:k-1]
		r.slots[c.slot] = c
	} else {
		c.slot = uint32(len(r.slots))
		r.slots = append(r.slots, c)
	}
	for i, one := range ids {
		if int(one) >= len(r.places) {
			more := make([]uint32, max(len(blocks)<<slotBits, len(r.places)+len(r.places)/4))
			copy(more, r.places)
			r.places = more
		}
		r.places[one] = c.slot<<chunkBits | uint32(i)
	}
	return c
}

// added returns the indexes of the ids that old, which c replaces, does not have. It
// reports whether these are the only difference.
func (c *chunkSums) added(old *chunkSums) (list []int, only bool) {
	have := old.ids
	for i, one := range c.ids {
		if len(have) > 0 && have[0] == one {
			have = have[1:]
		} else {
			list = append(list, i)
		}
	}
	return list, len(have) == 0
}

// carryRuns takes the runs of old to which no id was added, and sums the others.
func (c *chunkSums) carryRuns(blocks []blockBirths, old *chunkSums, added []int) {
	from, shift := 0, 0
	for k, run := range old.runs {
		to, before := int(run.to)+shift, shift
		for len(added) > 0 && (added[0] < to || k == len(old.runs)-1) {
			added = added[1:]
			to++
			shift++
		}
		if shift == before {
			run.to, run.rate = uint16(to), 0
			c.runs = append(c.runs, run)
		} else {
			c.sumRuns(blocks, from, to)
		}
		from = to
	}
}

// sumRuns sums the stats from one index to another.
func (c *chunkSums) sumRuns(blocks []blockBirths, from, to int) {
	for from < to {
		end := to
		if to-from >= 2*runLength {
			end = from + runLength
		}
		var t tally
		for _, one := range c.ids[from:end] {
			b, slot := &blocks[one>>slotBits], int(one&(1<<slotBits-1))
			at := b.oldest
			if at != b.newest && (t.series == 0 || at < t.oldest || b.newest > t.newest) {
				at = b.birth(slot).at
			}
			t.add(1, at, at, b.sizeOf(slot), 0)
		}
		c.runs = append(c.runs, runSums{to: uint16(end), oldest: t.oldest, newest: t.newest, bytes: t.bytes})
		from = end
	}
}

// run returns the indexes of a run.
func (c *chunkSums) run(k int) (from, to int) {
	if k > 0 {
		from = int(c.runs[k-1].to)
	}
	return from, int(c.runs[k].to)
}

// runAt returns the run with an index.
func (c *chunkSums) runAt(i int) int {
	return sort.Search(len(c.runs), func(k int) bool { return int(c.runs[k].to) > i })
}

// fresh returns how many of the stats of a run, from one index to another, are fresh.
func (r *ranking) fresh(x *Explorer, c *chunkSums, run *runSums, from, to int, whole bool) (n int) {
	switch {
	case run.newest < r.since:
		return 0
	case run.oldest >= r.since:
		return to - from
	case whole && run.asked == r.asked:
		return int(run.fresh)
	}
	blocks := x.births()
	for _, one := range c.ids[from:to] {
		b := &blocks[one>>slotBits]
		if b.newest >= r.since && (b.oldest >= r.since || b.birth(int(one&(1<<slotBits-1))).at >= r.since) {
			n++
		}
	}
	if whole {
		run.fresh, run.asked = uint16(n), r.asked
	}
	return n
}

// setSince makes the stats fresh that were created at since or later.
func (r *ranking) setSince(since int64) {
	r.since = since
	r.asked++
}

// refreshed is how many chunks refreshSizes measures.
const refreshed = 4

// refreshSizes measures some stats again, others at each call. It is for histograms,
// which grow.
func (r *ranking) refreshSizes(x *Explorer) {
	for range min(refreshed, len(r.sums)) {
		r.next = (r.next + 1) % len(r.sums)
		c := r.sums[r.next]
		for k := range c.runs {
			run := &c.runs[k]
			run.bytes = 0
			for i, to := c.run(k); i < to; i++ {
				b, slot := x.s.at(c.ids[i])
				run.bytes += b.sizeOf(slot)
			}
		}
	}
}

func (r *ranking) clearRates() {
	for _, c := range r.sums {
		if len(c.rates) == 0 {
			continue
		}
		c.rates = c.rates[:0]
		for i := range c.runs {
			c.runs[i].rate = 0
		}
	}
}

// setRate sets the rate of a stat, which has none yet, if it is in the ranking.
func (r *ranking) setRate(one id, rate float64) {
	if c, i := r.place(one); c != nil {
		c.rates = append(c.rates, rated{uint16(i), float32(rate)})
		c.runs[c.runAt(i)].rate += float64(float32(rate))
	}
}

// rate returns the sum of the rates of the stats from one index to another.
func (c *chunkSums) rate(from, to int) (sum float64) {
	for _, r := range c.rates {
		if from <= int(r.index) && int(r.index) < to {
			sum += float64(r.rate)
		}
	}
	return sum
}

// tally sums up stats.
type tally struct {
	series, fresh  int
	oldest, newest int64
	bytes          uint64
	rate           float64
}

func (t *tally) add(n int, oldest, newest int64, bytes uint64, rate float64) {
	if t.series == 0 {
		t.oldest, t.newest = oldest, newest
	}
	t.series += n
	t.oldest, t.newest = min(t.oldest, oldest), max(t.newest, newest)
	t.bytes += bytes
	t.rate += rate
}

// addOne adds the stat at index i of a chunk, except to t.fresh and t.rate.
func (t *tally) addOne(x *Explorer, c *chunkSums, i int) {
	b, slot := x.s.at(c.ids[i])
	at := b.birth(slot).at
	t.add(1, at, at, b.sizeOf(slot), 0)
}

// addTo adds the stats of a span to t.
func (r *ranking) addTo(x *Explorer, s span, t *tally) {
	r.eachRun(s, func(c *chunkSums, run *runSums, from, to int, whole bool) {
		t.fresh += r.fresh(x, c, run, from, to, whole)
		if whole {
			t.add(to-from, run.oldest, run.newest, run.bytes, run.rate)
			return
		}
		for i := from; i < to; i++ {
			t.addOne(x, c, i)
		}
		if run.rate != 0 {
			t.rate += c.rate(from, to)
		}
	})
}

// weigh returns the sum of what an order of groups is about, over a span.
func (r *ranking) weigh(x *Explorer, s span, by By) (sum float64) {
	r.eachRun(s, func(c *chunkSums, run *runSums, from, to int, whole bool) {
		sum += r.weighRun(x, c, run, from, to, whole, by)
	})
	return sum
}

// weighRun is weigh for some stats of a run, or the whole run.
func (r *ranking) weighRun(x *Explorer, c *chunkSums, run *runSums, from, to int, whole bool, by By) (sum float64) {
	switch {
	case by == ByNew:
		return float64(r.fresh(x, c, run, from, to, whole))
	case by == ByRate && whole:
		return run.rate
	case by == ByRate && run.rate != 0:
		return c.rate(from, to)
	case by == ByBytes && whole:
		return float64(run.bytes)
	case by == ByBytes:
		for i := from; i < to; i++ {
			b, slot := x.s.at(c.ids[i])
			sum += float64(b.sizeOf(slot))
		}
	}
	return sum
}

// eachRun calls f with the runs of a span, and the range of indexes within.
func (r *ranking) eachRun(s span, f func(c *chunkSums, run *runSums, from, to int, whole bool)) {
	r.eachChunk(s, func(c *chunkSums, from, to int) {
		for k := c.runAt(from); from < to; k++ {
			start, end := c.run(k)
			f(c, &c.runs[k], from, min(end, to), from == start && end <= to)
			from = end
		}
	})
}

// eachChunk calls f with the chunks of a span, and the range of indexes within.
func (r *ranking) eachChunk(s span, f func(c *chunkSums, from, to int)) {
	if s.len() <= 0 {
		return
	}
	for n := r.chunkAt(s.from); n < len(r.sums) && r.starts[n] < s.to; n++ {
		f(r.sums[n], max(0, s.from-r.starts[n]), min(s.to, r.starts[n+1])-r.starts[n])
	}
}

// heavyRuns returns about n runs of s: each group of neighbors with more than a part
// in n of the whole weight, which is returned as well, has a position in a run.
func (r *ranking) heavyRuns(x *Explorer, s span, n int, by By) (out []span, part float64) {
	each := func(yield func(span, float64)) {
		start := s.from
		r.eachRun(s, func(c *chunkSums, run *runSums, from, to int, whole bool) {
			yield(span{start, start + to - from}, r.weighRun(x, c, run, from, to, whole, by))
			start += to - from
		})
	}
	total := 0.0
	each(func(_ span, w float64) { total += w })
	part = total / float64(n)
	sum, next := 0.0, part
	each(func(s span, w float64) {
		if sum += w; w > 0 && sum >= next {
			out = append(out, s)
			next += part * (1 + math.Floor((sum-next)/part))
		}
	})
	return out, part
}
