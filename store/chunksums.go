package store

import (
	"bytes"
	"math"
	"sort"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

// chunkSums are the sums of a chunk.
type chunkSums struct {
	ids    []id
	first  []byte // key
	slot   uint32
	after  id       // the stat in front of the first, as of common[0]; noID: not known
	least  uint8    // none of common is less, except the first
	common []uint8  // by index: segments that the key shares with the one before
	bytes  []uint16 // by index: size, up to maxSize, and young
	runs   []runSums
	rates  []rated
	tags   []tagSums // see chunkTags
	known  bool      // tags are summed
}

// rated is a stat that has a rate.
type rated struct {
	index uint16
	rate  float32
}

// runLength is how many positions a runSums is about, more or less: twice as many at
// most, and two neighbors have more together.
const runLength = 64

type runSums struct {
	end            uint16 // index
	fresh          uint16 // stats created at ranking.since or later, if it was asked then
	asked          uint32
	oldest, newest int64 // creation, in Unix milliseconds; 0 is unknown
	bytes          uint64
	rate           float64
}

const (
	maxSize   = 1<<15 - 1     // in chunkSums.bytes; larger sizes are measured each time
	young     = 1 << 15       // likewise: the stat is possibly as new as ranking.floor
	maxShared = math.MaxUint8 // in chunkSums.common
	noID      = math.MaxUint32
)

// chunkBits are the bits of an index within a chunk.
const chunkBits = 10

var _ [chunkSize - 1<<chunkBits]struct{}

// startUpTo returns the last index up to i whose key shares at most n segments with the
// one before, -1 if there is none.
func (c *chunkSums) startUpTo(i, n int) int {
	if int(c.least) > n {
		i = min(i, 0)
	}
	for i >= 0 && int(c.common[i]) > n {
		i--
	}
	return i
}

// startFrom returns the first such index from i on, len(c.ids) if there is none.
func (c *chunkSums) startFrom(i, n int) int {
	if i == 0 && int(c.common[0]) <= n {
		return 0
	}
	if int(c.least) > n {
		return len(c.ids)
	}
	for i < len(c.ids) && int(c.common[i]) > n {
		i++
	}
	return i
}

// carried describes neighbors that the replaced chunk has as neighbors too.
type carried struct{ to, from, n int }

// end returns the index in the old chunk behind the stats.
func (c *carried) end() int { return c.from + c.n }

// carry sets r.carried to the stats that are in the old chunk as well, in order.
func (r *ranking) carry(old *chunkSums, ids []id) {
	r.carried = r.carried[:0]
	if old == nil {
		return
	}
	next := 0
	for i := 0; i < len(ids); {
		if next == len(old.ids) || old.ids[next] != ids[i] {
			c, at := r.place(ids[i])
			if c != old {
				i++
				continue
			}
			next = at
		}
		run := carried{to: i, from: next}
		for i < len(ids) && next < len(old.ids) && ids[i] == old.ids[next] && !r.renewed[ids[i]>>slotBits] {
			i, next = i+1, next+1
		}
		if run.n = i - run.to; run.n == 0 {
			i++
			continue
		}
		r.carried = append(r.carried, run)
	}
}

// sum makes the sums of a chunk and notes the places of its ids.
func (r *ranking) sum(x *Explorer, ids []id) *chunkSums {
	old := r.before(ids)
	c := &chunkSums{ids: ids, after: noID, least: maxShared, common: make([]uint8, len(ids)), bytes: make([]uint16, len(ids))}
	c.carryTags(x, old)
	r.carry(old, ids)
	if len(r.carried) > 0 && r.carried[0].to+r.carried[0].from == 0 {
		c.first = old.first
	} else {
		r.buf = r.key(r.buf[:0], ids[0])
		c.first = bytes.Clone(r.buf)
	}
	at := 0
	add := func(to int) {
		for ; at < to; at++ {
			if at%batchSteps == 0 {
				r.lookAhead(x.s, ids[at:to])
			}
			c.measure(x, at)
			c.bytes[at] |= young
			if at > 0 {
				c.common[at] = r.sharedBy(ids[at-1], ids[at])
				c.least = min(c.least, c.common[at])
			}
		}
	}
	if old != nil {
		c.least = old.least
	}
	for _, have := range r.carried {
		add(have.to)
		copy(c.bytes[at:], old.bytes[have.from:have.end()])
		copy(c.common[at:], old.common[have.from:have.end()])
		switch {
		case at > 0:
			c.common[at] = r.sharedBy(ids[at-1], ids[at])
			c.least = min(c.least, c.common[at])
		case have.from > 0:
			c.after = old.ids[have.from-1]
		default:
			c.after = old.after
		}
		at += have.n
	}
	add(len(ids))
	r.sumRuns(x, c, old)
	if k := len(r.free); k > 0 {
		c.slot, r.free = r.free[k-1], r.free[:k-1]
		r.slots[c.slot] = c
	} else {
		c.slot = uint32(len(r.slots))
		r.slots = append(r.slots, c)
	}
	for i, one := range ids {
		for int(one) >= len(r.places) {
			r.places = append(r.places, make([]uint32, max(slotsPerBlock, len(r.places)/4))...)
		}
		r.places[one] = c.slot<<chunkBits | uint32(i)
	}
	return c
}

// lookAhead prefetches the records of the next batch. Neighbors are far apart in memory.
func (r *ranking) lookAhead(s *Store, ids []id) {
	if !prefetch.Enabled {
		return
	}
	n := 0
	for _, one := range ids[:min(len(ids), batchSteps)] {
		b, slot := s.at(one)
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b.record(slot))))
		r.hints[n], r.hints[n+1] = at, at+mostRecords-1
		n += 2
	}
	prefetch.Lines(&r.hints, n)
}

// sumRuns makes the runs of a chunk. If all stats of a run of the old chunk are in the
// new one, its sums are reused; other stats are read.
func (r *ranking) sumRuns(x *Explorer, c, old *chunkSums) {
	c.runs = make([]runSums, 0, (len(c.ids)+runLength-1)/runLength+1)
	var t tally
	end := func(i int) {
		c.runs = append(c.runs, runSums{end: uint16(i), oldest: t.oldest, newest: t.newest, bytes: t.bytes})
		t = tally{}
	}
	have := r.carried // those that do not end before i
	for i := 0; i < len(c.ids); {
		next, whole, last := i+1, -1, 0
		if len(have) > 0 && have[0].to <= i {
			at := have[0].from + i - have[0].to
			k := old.runAt(at)
			stop := int(old.runs[k].end)
			for stop > have[last].end() && last+1 < len(have) && have[last+1].from == have[last].end() {
				last++
			}
			if to := have[last].to + stop - have[last].from; old.startOf(k) == at && stop <= have[last].end() && to-i <= 2*runLength {
				whole, next = k, to
			}
		}
		if t.series >= runLength || t.series > 0 && t.series+next-i > 2*runLength {
			end(i)
		}
		if whole < 0 {
			t.addOne(x, c, i)
		} else {
			run := &old.runs[whole]
			t.add(int(run.end)-old.startOf(whole), run.oldest, run.newest, run.bytes, 0)
			for ; last > 0; last-- {
				for k := have[0].to + have[0].n; k < have[1].to; k++ {
					t.addOne(x, c, k)
				}
				have = have[1:]
			}
		}
		if i = next; len(have) > 0 && have[0].to+have[0].n <= i {
			have = have[1:]
		}
	}
	end(len(c.ids))
}

// startOf returns the first index of a run.
func (c *chunkSums) startOf(run int) int {
	if run == 0 {
		return 0
	}
	return int(c.runs[run-1].end)
}

func (c *chunkSums) runAt(i int) int {
	return sort.Search(len(c.runs), func(n int) bool { return int(c.runs[n].end) > i })
}

// measure sets the size of the stat at an index.
func (c *chunkSums) measure(x *Explorer, i int) {
	b, slot := x.s.at(c.ids[i])
	c.bytes[i] = c.bytes[i]&young | uint16(min(b.sizeOf(slot), maxSize))
}

// size returns the size of the stat at an index, as it was measured last if it is below
// maxSize.
func (c *chunkSums) size(x *Explorer, i int) uint64 {
	if n := c.bytes[i] &^ young; n < maxSize {
		return uint64(n)
	}
	b, slot := x.s.at(c.ids[i])
	return uint64(b.sizeOf(slot))
}

// fresh returns how many of the stats of a run, from one index to another, are fresh.
// Each other stat is read once.
func (r *ranking) fresh(x *Explorer, c *chunkSums, run *runSums, from, to int, whole bool) (n int) {
	switch {
	case run.newest < r.since:
		return 0
	case run.oldest >= r.since:
		return to - from
	case whole && run.asked == r.asked:
		return int(run.fresh)
	}
	for i, size := range c.bytes[from:to] {
		if size < young {
			continue
		}
		if b, slot := x.s.at(c.ids[from+i]); b.birth(slot).at >= r.since {
			n++
		} else {
			c.bytes[from+i] &^= young
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
	if since == math.MaxInt64 { // none is
		return
	}
	if since < r.floor {
		for _, c := range r.sums {
			for i := range c.bytes {
				c.bytes[i] |= young
			}
		}
	}
	r.floor = since
}

// refreshed is how many chunks refreshSizes measures.
const refreshed = 4

// refreshSizes measures some stats again, others at each call. It is for histograms,
// which grow.
func (r *ranking) refreshSizes(x *Explorer) {
	for range min(refreshed, len(r.sums)) {
		r.next = (r.next + 1) % len(r.sums)
		c := r.sums[r.next]
		i := 0
		for k := range c.runs {
			run := &c.runs[k]
			for run.bytes = 0; i < int(run.end); i++ {
				c.measure(x, i)
				run.bytes += c.size(x, i)
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
	t.add(1, at, at, c.size(x, i), 0)
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
			sum += float64(c.size(x, i))
		}
	}
	return sum
}

// eachRun calls f with the runs of a span, and the range of indexes within.
func (r *ranking) eachRun(s span, f func(c *chunkSums, run *runSums, from, to int, whole bool)) {
	r.eachChunk(s, func(c *chunkSums, from, to int) {
		for k := c.runAt(from); from < to; k++ {
			run := &c.runs[k]
			end := min(int(run.end), to)
			f(c, run, from, end, end-from == int(run.end)-c.startOf(k))
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
