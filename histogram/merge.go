package histogram

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// merged is the state that Merge keeps between calls, besides the snapshot.
type merged struct {
	sums [2]wide128 // as last read
	span span       // of the cumulative bins

	// owed is the growth of the sums beyond the sums of the intervals. It is not 0
	// while a record is unfinished: its count is in one interval and its sum
	// arrives for the next. A quiet interval resets it.
	owed wide128

	least, greatest uint64    // extremes since the start
	late            [2]uint64 // extremes whose counts have not arrived
}

// scratch is temporary memory of Merge.
type scratch struct {
	interval, cumulative packer
	splits               []uint64
	split                int // the next of splits to add to a page
	bounds, deltas       []uint64
}

// Merge turns the values recorded since the last call into a new interval, adds
// it to the cumulative summary and returns the new snapshot, which
// [Histogram.Snapshot] returns from then on. Without new values the interval is
// empty. A histogram that never had a value keeps its unused snapshot.
//
// Calls must not overlap. Calling it for an idle histogram costs a few loads.
func (h *Histogram) Merge() *Snapshot { return h.MergeAt(time.Time{}) }

// MergeAt is [Histogram.Merge] for a histogram with a window, at the time now.
func (h *Histogram) MergeAt(now time.Time) *Snapshot {
	prev := h.snapshot.Load()
	shared := h.shared.Load()
	if shared == nil {
		return prev
	}
	shared.cool()
	var room [8]*shard
	shards := h.owned.appendTo(append(room[:0], shared))
	touched := false
	for _, s := range shards {
		schedule.Point()
		if s.touched.Load() != 0 && s.touched.Swap(0) != 0 {
			touched = true
		}
	}
	next := prev
	if touched {
		next = h.mergeTouched(prev, shards)
	} else if prev.Interval.count != 0 {
		h.merged.owed = wide128{}
		next = &Snapshot{Used: prev.Used, Interval: h.layout.empty, Cumulative: prev.Cumulative}
	}
	if next != prev {
		if h.layout.window != 0 {
			next.window = h.layout.slide(prev.window, next.Interval, now)
		}
		schedule.Point()
		h.snapshot.Store(next)
	}
	return next
}

// Pending reports whether a value was recorded since the last Merge. It can
// miss a value that is being recorded.
func (h *Histogram) Pending() bool {
	shared := h.shared.Load()
	if shared == nil {
		return false
	}
	var room [8]*shard
	for _, s := range h.owned.appendTo(append(room[:0], shared)) {
		if s.touched.Load() != 0 {
			return true
		}
	}
	return false
}

func (h *Histogram) mergeTouched(prev *Snapshot, shards []*shard) *Snapshot {
	l := h.layout
	if h.merged == nil {
		h.merged = new(merged)
	}
	m := h.merged
	sc := l.scratch.Get().(*scratch)
	defer l.scratch.Put(sc)
	// A record counts first and adds to the sum and the extremes later. Reading
	// in the opposite order finds the count of every value that is in the others.
	least, greatest := h.takeEnds(shards)
	m.least, m.greatest = max(m.least, least), max(m.greatest, greatest)
	m.owed = m.owed.plus(m.readSums(shards))
	sc.readBins(l, shards, &prev.Cumulative.packed)

	interval, cumulative := l.empty, &Stats{layout: l}
	if sc.interval.count == 0 {
		// The records that touched the histogram were counted before, or their
		// counts have not arrived and will touch it again.
		m.late = [2]uint64{max(m.late[0], least), max(m.late[1], greatest)}
		m.owed = wide128{}
		*cumulative = *prev.Cumulative
	} else {
		grown := sc.interval.span(&l.geometry)
		m.span = m.span.plus(grown)
		interval = &Stats{layout: l}
		interval.packed, interval.count = sc.interval.finish(sc.deltas), sc.interval.count
		interval.setEnds(sc.interval.first, sc.interval.last, [2]uint64{least, m.late[0]}, [2]uint64{greatest, m.late[1]})
		interval.setSum(m.owed, grown, sc.interval.first, sc.interval.last)
		m.owed = m.owed.minus(interval.sum)
		m.late = [2]uint64{}
		if least != 0 && endValue(-least) < interval.least {
			m.late[0] = least
		}
		if greatest != 0 && endValue(greatest) > interval.greatest {
			m.late[1] = greatest
		}
		cumulative.packed, cumulative.count = sc.cumulative.finish(sc.bounds), sc.cumulative.count
	}
	if cumulative.count != 0 {
		cumulative.setEnds(sc.cumulative.first, sc.cumulative.last, [2]uint64{m.least}, [2]uint64{m.greatest})
		cumulative.setSum(m.sums[0].minus(m.sums[1]), m.span, sc.cumulative.first, sc.cumulative.last)
		if c := prev.Cumulative; !l.signed && cumulative.sum.less(c.sum) {
			cumulative.sum = c.sum // scrapers take a sum that falls for a restart
		}
	}
	if c := prev.Cumulative; interval.count == 0 && c.sum == cumulative.sum && c.least == cumulative.least && c.greatest == cumulative.greatest {
		if prev.Interval.count == 0 {
			return prev
		}
		cumulative = c
	} else if !prev.Used {
		interval = cumulative
	}
	return &Snapshot{Used: prev.Used || cumulative.count != 0, Interval: interval, Cumulative: cumulative}
}

// takeEnds takes the extremes of the running interval from the shards and
// begins the next one.
func (h *Histogram) takeEnds(shards []*shard) (least, greatest uint64) {
	take := func(slot uint32) {
		for _, s := range shards {
			schedule.Point()
			a, b := s.ends[slot&1].take()
			least, greatest = max(least, a), max(greatest, b)
		}
	}
	e := h.epoch.Load()
	take(e + 1) // from recorders that were late for the interval before
	schedule.Point()
	h.epoch.Store(e + 1)
	take(e)
	return least, greatest
}

// readBins reads all bins and splits of the shards into sc.cumulative, and what
// they grew since prev into sc.interval, and the counts at the bounds likewise.
func (sc *scratch) readBins(l *Layout, shards []*shard, prev *packed) {
	sc.interval.reset()
	sc.cumulative.reset()
	sc.bounds, sc.deltas = sc.bounds[:0], sc.deltas[:0]
	sc.readSplits(l, shards)

	var counts, before, grown [pageBins]uint64
	old := prev.reader()
	more := old.next()
	first, end := sc.pages(l, shards)
	for n := first; n < end; n++ {
		counts = [pageBins]uint64{}
		if !sc.readPage(l, shards, n, &counts) {
			continue
		}
		switch {
		case !more || old.number != n:
			sc.addBounds(l, n, &counts)
			sc.cumulative.page(n, &counts)
			sc.interval.page(n, &counts)
			continue
		case total(&counts) == old.sum:
			// Counts only grow: if their sum did not, none of them did.
			sc.addBounds(l, n, &counts)
			sc.cumulative.takeOver(&old)
		default:
			before = [pageBins]uint64{}
			old.addTo(&before)
			for i, was := range before {
				counts[i] = max(counts[i], was)
				grown[i] = counts[i] - was
			}
			sc.addBounds(l, n, &counts)
			sc.cumulative.page(n, &counts)
			sc.interval.page(n, &grown)
		}
		more = old.next()
	}
	for len(sc.bounds) < len(l.limits) {
		sc.bounds = append(sc.bounds, sc.cumulative.count)
	}
	sc.setDeltas(prev)
}

func (sc *scratch) readSplits(l *Layout, shards []*shard) {
	sc.splits = slices.Grow(sc.splits[:0], len(l.splits))[:len(l.splits)]
	clear(sc.splits)
	sc.split = 0
	for _, s := range shards {
		for i := range s.splits {
			schedule.Point()
			sc.splits[i] += s.splits[i].Load()
		}
	}
}

// pages returns the numbers of the first page that may have counts and of the
// one after the last.
func (sc *scratch) pages(l *Layout, shards []*shard) (first, end int) {
	include := func(a, b int) {
		if first == end {
			first, end = a, b
		} else if a != b {
			first, end = min(first, a), max(end, b)
		}
	}
	for _, s := range shards {
		include(s.narrow.span())
		include(s.wide.span())
	}
	for i, n := range sc.splits {
		if n != 0 {
			page := pageOf(l.splits[i].bin)
			include(page, page+1)
		}
	}
	return first, end
}

// readPage adds the counts of page n to counts and reports whether it exists.
// Pages must be read in ascending order.
func (sc *scratch) readPage(l *Layout, shards []*shard, n int, counts *[pageBins]uint64) (exists bool) {
	for _, s := range shards {
		schedule.Point()
		if s.addPage(n, counts) {
			exists = true
		}
	}
	for ; sc.split < len(l.splits); sc.split++ {
		at := l.splits[sc.split].bin
		if pageOf(at) > n {
			break
		}
		if pageOf(at) == n {
			counts[at&(pageBins-1)] += sc.splits[sc.split]
			exists = true
		}
	}
	return exists
}

// setDeltas sets the counts at the bounds for the interval.
func (sc *scratch) setDeltas(prev *packed) {
	// A bin that was not read completely, because a count was on its way to its
	// wide counter, must not make a bound count more than there is.
	var below uint64
	for i, n := range sc.bounds {
		var was uint64
		if prev.pages > 0 {
			was = prev.bound(i)
		}
		below = max(below, min(max(n, was)-was, sc.interval.count))
		sc.deltas = append(sc.deltas, below)
	}
}

func total(counts *[pageBins]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// addBounds appends the counts at the bounds up to page n, which has counts.
func (sc *scratch) addBounds(l *Layout, n int, counts *[pageBins]uint64) {
	for len(sc.bounds) < len(l.limits) {
		lim := l.limits[len(sc.bounds)]
		if pageOf(lim.bin) > n {
			return
		}
		c := sc.cumulative.count
		if pageOf(lim.bin) == n {
			for _, k := range counts[:lim.bin&(pageBins-1)] {
				c += k
			}
			var split uint64
			for _, k := range sc.splits[lim.firstSplit:lim.endSplit] {
				split += k
			}
			c += min(split, counts[lim.bin&(pageBins-1)])
		}
		sc.bounds = append(sc.bounds, c)
	}
}

// readSums returns how much the sums of the shards grew since the last call.
func (m *merged) readSums(shards []*shard) wide128 {
	var now [2]wide128
	for _, s := range shards {
		for side := range now {
			schedule.Point()
			high := s.sums[side].high.Load()
			schedule.Point()
			now[side] = now[side].plus(wide128{high, s.sums[side].low.Load()})
		}
	}
	for side := range now {
		if now[side].less(m.sums[side]) { // a carry is under way
			now[side].high++
		}
	}
	grown := now[0].minus(m.sums[0]).minus(now[1].minus(m.sums[1]))
	m.sums = now
	return grown
}

// setEnds sets the extremes of s, whose count is set, from keys, 0 for none. The
// first and the last bin that have counts overrule a key, which may belong to a
// value whose count has not arrived. Without a fitting key, the low end of the
// bin is the answer.
func (s *Stats) setEnds(first, last int, least, greatest [2]uint64) {
	lo, hi := s.layout.signedSpan(first)
	s.least = hi
	known := false
	for _, k := range least {
		if v := endValue(-k); k != 0 && v >= lo && v <= s.least {
			s.least, known = v, true
		}
	}
	if !known {
		s.least = lo
	}
	lo, hi = s.layout.signedSpan(last)
	s.greatest = lo
	known = false
	for _, k := range greatest {
		if v := endValue(k); k != 0 && v <= hi && v >= s.greatest {
			s.greatest, known = v, true
		}
	}
	if s.count == 1 && known {
		s.least = s.greatest
	}
	s.greatest = max(s.greatest, s.least)
	if s.count == 1 {
		s.greatest = s.least
	}
}

// setSum sets the sum of s, whose count and extremes are set, to the possible
// sum nearest to v. v is impossible if it lacks the value of an unfinished
// record or includes a value of an earlier interval.
func (s *Stats) setSum(v wide128, bins span, first, last int) {
	if s.count == 1 {
		s.sum = times(s.least, 1)
		return
	}
	// One value is the least, one the greatest, and all lie in their bins and
	// between the two.
	ends, others := times(s.least, 1).plus(times(s.greatest, 1)), s.count-2
	loFirst, hiFirst := s.layout.signedSpan(first)
	loLast, hiLast := s.layout.signedSpan(last)
	low := bins.low.minus(times(loFirst, 1)).minus(times(loLast, 1)).plus(ends)
	high := bins.high.minus(times(hiFirst, 1)).minus(times(hiLast, 1)).plus(ends)
	if least := times(s.least, others).plus(ends); low.less(least) {
		low = least
	}
	if greatest := times(s.greatest, others).plus(ends); greatest.less(high) {
		high = greatest
	}
	switch {
	case v.less(low):
		v = low
	case high.less(v):
		v = high
	}
	s.sum = v
}
