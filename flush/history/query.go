package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Point is one step of a series: from a flush to a later one.
type Point struct {
	Start, End time.Time
	// Exists reports whether the stat existed at the end.
	Exists bool
	// Raw is the value at the end of a counter or gauge, in the form of
	// [store.Cursor.SetRaw], and Delta its growth modulo 2^64.
	Raw, Delta uint64
	// Stats summarizes the values recorded to a histogram, or is nil if there
	// are none.
	Stats *histogram.Stats
}

// PerSecond returns the change per second of the stat at c in the step, and the number
// of values per second of a histogram.
func (p *Point) PerSecond(c *store.Cursor) float64 {
	seconds := secondsOf(p.Start, p.End)
	switch {
	case c.Kind() == store.KindHistogram:
		if p.Stats == nil {
			return 0
		}
		return float64(p.Stats.Count()) / seconds
	case c.Kind() == store.KindCounter:
		return float64(p.Delta) / seconds
	case c.Whole():
		return float64(int64(p.Delta)) / seconds
	default:
		return (math.Float64frombits(p.Raw) - math.Float64frombits(p.Raw-p.Delta)) / seconds
	}
}

// secondsOf returns the length of a step for rates, which are 0 if it is unknown because the
// clock was set back.
func secondsOf(start, end time.Time) float64 {
	if end.Before(start) {
		return math.Inf(1)
	}
	return max(end.Sub(start).Seconds(), 1e-3)
}

// Series returns the steps of the stat at c that end after since, oldest first,
// and the time from which on they are complete. The latest steps are flushes;
// earlier ones are of a minute, and before that of ten minutes. A step in which
// nothing changed has no delta.
func (h *History) Series(c *store.Cursor, since time.Time) (points []Point, complete time.Time) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := h.timeline()
	complete = h.sinceLocked(list)
	list = list[firstAfter(list, since):]
	ref, kind := c.Ref(), c.Kind()
	if kind == store.KindText {
		return nil, h.last
	}
	points = make([]Point, len(list))
	raw, born := h.rawLocked(c), c.FlushesBefore()
	for i := len(list) - 1; i >= 0; i-- {
		f, p := list[i], &points[i]
		p.Start, p.End, p.Exists = f.start, f.end, born < f.to
		if kind == store.KindHistogram {
			p.Stats = f.histogram(ref)
			continue
		}
		p.Delta = f.change(kind, ref)
		p.Raw = raw
		raw -= p.Delta
	}
	return points, complete
}

// firstAfter returns the index of the frame in which t lies, the newest if the clock was set
// back and there are several. Without any, t is before or after all frames.
func firstAfter(list []*frame, t time.Time) int {
	for n := len(list) - 1; n > 0; n-- {
		from, f := list[n-1].end, list[n]
		// By the clock before it was set, f ended when its length had passed.
		if !from.After(t) && (f.end.After(t) || from.Add(f.end.Sub(f.start)).After(t)) {
			return n
		}
	}
	if len(list) > 0 && list[len(list)-1].end.After(t) {
		return 0
	}
	return len(list)
}

// rawLocked returns the value of a counter or gauge as of the last flush. History.mu
// must be held.
func (h *History) rawLocked(c *store.Cursor) uint64 {
	block, slot := split(c.Ref())
	if b := h.base[block]; b != nil {
		return b[slot]
	}
	return c.Flushed() // nothing in the block has changed since the history began
}

// change returns the growth of a counter or gauge in f, modulo 2^64.
func (f *frame) change(k store.Kind, ref uint64) uint64 {
	if k == store.KindCounter {
		return f.counters.find(ref)
	}
	return f.gauges.find(ref)
}

// histogram returns the values recorded to a histogram in f, nil if there are none.
func (f *frame) histogram(ref uint64) *histogram.Stats {
	n, ok := slices.BinarySearchFunc(f.hists, ref, func(x interval, ref uint64) int { return cmp.Compare(x.ref, ref) })
	if !ok {
		return nil
	}
	return f.hists[n].stats
}

// Latest is the last step of all counters and histograms. It is immutable.
type Latest struct {
	step     *frame
	counters map[blockOf]*sums
}

// Latest returns the last step, which is empty before the first flush. Unlike
// [History.Series], it is meant for the stats of a whole store: the cost
// depends on how many changed.
func (h *History) Latest() *Latest {
	l := &Latest{step: h.lastStep(), counters: make(map[blockOf]*sums)}
	for r := l.step.counters.reader(); r.next(); {
		s := new(sums)
		s.add(&r)
		l.counters[r.block] = s
	}
	return l
}

// PerSecond returns the increments per second of the counter at c, or the values per
// second of the histogram, and 0 for other kinds.
func (l *Latest) PerSecond(c *store.Cursor) float64 {
	p := Point{Start: l.step.start, End: l.step.end}
	switch c.Kind() {
	case store.KindCounter:
		block, slot := split(c.Ref())
		if s := l.counters[block]; s != nil {
			p.Delta = s.diff[slot]
		}
	case store.KindHistogram:
		p.Stats = l.step.histogram(c.Ref())
	default:
		return 0
	}
	return p.PerSecond(c)
}

// lastStep returns the last step, an empty one before the first flush.
func (h *History) lastStep() *frame {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if n := len(h.levels[0]); n > 0 {
		return h.levels[0][n-1]
	}
	return new(frame)
}

// LastRates yields the stats that changed in the last step, by [store.Cursor.Ref]:
// counters with their increments per second and histograms with their values per
// second.
func (h *History) LastRates(yield func(ref uint64, perSecond float64) bool) {
	step := h.lastStep()
	seconds, more := secondsOf(step.start, step.end), true
	for r := step.counters.reader(); more && r.next(); {
		r.each(func(slot int, diff uint64) bool {
			more = yield(r.block.ref(slot), float64(diff)/seconds)
			return more
		})
	}
	for _, x := range step.hists {
		if !more {
			return
		}
		more = yield(x.ref, float64(x.stats.Count())/seconds)
	}
}

// Changes are the steps in which stats last changed. They are immutable.
type Changes struct {
	steps  []*frame                 // newest first
	values map[blockOf]*[1024]uint8 // counters and gauges: index in steps plus 1
	hists  map[uint64]uint8
}

// Changes returns the steps that end after since, at most 255 of them. Like
// [History.Latest], it is meant for the stats of a whole store.
func (h *History) Changes(since time.Time) *Changes {
	h.mu.RLock()
	list := h.timeline()
	h.mu.RUnlock()
	list = list[firstAfter(list, since):]
	out := &Changes{values: make(map[blockOf]*[1024]uint8), hists: make(map[uint64]uint8)}
	for len(list) > 0 && len(out.steps) < math.MaxUint8 {
		f := list[len(list)-1]
		list = list[:len(list)-1]
		out.steps = append(out.steps, f)
		n := uint8(len(out.steps))
		for _, s := range []section{f.counters, f.gauges} {
			for r := s.reader(); r.next(); {
				b := out.values[r.block]
				if b == nil {
					b = new([1024]uint8)
					out.values[r.block] = b
				}
				r.each(func(slot int, _ uint64) bool {
					if b[slot] == 0 {
						b[slot] = n
					}
					return true
				})
			}
		}
		for _, x := range f.hists {
			if out.hists[x.ref] == 0 {
				out.hists[x.ref] = n
			}
		}
	}
	return out
}

// Last returns the end of the last step in which the stat at c changed, the zero time
// if there is none.
func (l *Changes) Last(c *store.Cursor) time.Time {
	var n uint8
	if c.Kind() == store.KindHistogram {
		n = l.hists[c.Ref()]
	} else if block, slot := split(c.Ref()); l.values[block] != nil {
		n = l.values[block][slot]
	}
	if n == 0 {
		return time.Time{}
	}
	return l.steps[n-1].end
}

// Moment is the state of a store at a flush in the past. It is immutable.
type Moment struct {
	h       *History
	last    uint64 // flush when the moment was made
	time    time.Time
	seq     uint64    // of the flush at time
	start   time.Time // of the step that ends at time
	changes map[blockOf]*sums
	after   []*frame // newest last
	step    *frame   // nil: the moment is the beginning of the history
	values  map[blockOf]*[1024]uint64
	totals  map[uint64]*histogram.Stats
}

// At returns the state at the last flush, or end of a coarser step, that is not after
// t. The error wraps [ErrTooOld].
func (h *History) At(t time.Time) (*Moment, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := h.timeline()
	since := h.sinceLocked(list)
	n := firstAfter(list, t)
	missing := n < len(list) && (h.lost != 0 || list[n].from < h.complete)
	if t.Before(since) && (n == 0 || missing) { // otherwise the clock was set back
		return nil, fmt.Errorf("%w: %s is before %s", ErrTooOld, t.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	}
	m := &Moment{h: h, last: h.seq, time: since, seq: h.seq, start: since, after: list[n:], changes: make(map[blockOf]*sums)}
	switch {
	case n > 0:
		m.step = list[n-1]
		m.time, m.start, m.seq = m.step.end, m.step.start, m.step.to
	case len(list) > 0:
		m.seq = list[0].from
	}
	for _, f := range m.after {
		for _, s := range []section{f.counters, f.gauges} {
			for r := s.reader(); r.next(); {
				b := m.changes[r.block]
				if b == nil {
					b = new(sums)
					m.changes[r.block] = b
				}
				b.add(&r)
			}
		}
	}
	m.values = make(map[blockOf]*[1024]uint64, len(h.base))
	for block, b := range h.base {
		values := *b
		m.values[block] = &values
	}
	m.totals = make(map[uint64]*histogram.Stats)
	for _, f := range m.after {
		for _, x := range f.hists {
			m.totals[x.ref] = h.hists[x.ref]
		}
	}
	return m, nil
}

// Time returns the time of the moment, and Start that of the step before.
func (m *Moment) Time() time.Time { return m.time }

// Start returns the beginning of the step that ends at the moment.
func (m *Moment) Start() time.Time { return m.start }

// Has reports whether the stat existed at the moment.
func (m *Moment) Has(c *store.Cursor) bool { return c.FlushesBefore() < m.seq }

// Raw returns the value of a counter or gauge at the moment, in the form of
// [store.Cursor.SetRaw].
func (m *Moment) Raw(c *store.Cursor) uint64 {
	ref := c.Ref()
	block, slot := split(ref)
	if v := m.values[block]; v != nil {
		if s := m.changes[block]; s != nil {
			return v[slot] - s.diff[slot]
		}
		return v[slot]
	}
	// Nothing in the block had changed when the moment was made.
	m.h.mu.RLock()
	defer m.h.mu.RUnlock()
	raw := m.h.rawLocked(c)
	for _, f := range m.h.levels[0] {
		if f.from >= m.last {
			raw -= f.change(c.Kind(), ref)
		}
	}
	return raw
}

// Histogram returns the summaries of a histogram at the moment: the values of the
// step before it, and all until then.
func (m *Moment) Histogram(c *store.Cursor) *histogram.Snapshot {
	ref := c.Ref()
	now := c.Histogram().Snapshot()
	total := m.totals[ref]
	if total == nil {
		total = now.Cumulative // it has not changed since
	}
	var later *histogram.Stats
	for _, f := range m.after {
		later = histogram.MergeStats(later, f.histogram(ref))
	}
	out := &histogram.Snapshot{Interval: c.Histogram().Layout().Empty(), Cumulative: histogram.SubtractStats(total, later)}
	if m.step != nil {
		if s := m.step.histogram(ref); s != nil {
			out.Interval = s
		}
	}
	out.Used = out.Cumulative.Count() != 0
	return out
}
