// Package totals visits the stats that a sink of totals must send at a flush:
// changed stats at each flush, all of them from time to time, and ended ones a
// last time.
package totals

import (
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Visitor is called with stats. Times are in Unix milliseconds. The cursor is valid
// during the call.
type Visitor interface {
	// Write sends the value that the stat has in the snapshot.
	Write(snap *store.Snapshot, c *store.Cursor, k store.Kind, at int64)
	// End reports that the stat has ended, or ends with the program.
	End(c *store.Cursor, k store.Kind, at int64)
}

// Walk visits the stats of consecutive flushes. Only one goroutine can use it.
type Walk struct {
	// Filter selects the stats.
	Filter sinkqueue.Filter
	// Refresh is how often stats without changes are visited; negative means at
	// each flush.
	Refresh time.Duration

	at        int64 // of the flush
	before    int64 // of the flush before
	refreshed time.Time
}

// Before returns the time of the last flush, 0 before the first.
func (w *Walk) Before() int64 { return w.before }

// Again makes the next flush visit all stats.
func (w *Walk) Again() { w.refreshed = time.Time{} }

// mostAhead is how far ahead of the clock points can be, in milliseconds. Receivers refuse
// points of the future, Prometheus after ten minutes.
const mostAhead = 10 * 60 * 1000

// After returns the time of a flush at now, in Unix milliseconds: at least step after the
// one before. If the clock was set back by more than ten minutes, it is now, so that a
// clock that was far ahead once does not determine the times for ever.
func After(before, step, now int64) int64 {
	if before-now > mostAhead {
		return now
	}
	return max(now, before+step)
}

// Start returns when the stat at c was 0, or 0 if that is unknown or not before at.
func Start(c *store.Cursor, at int64) int64 {
	if t := c.Created(); !t.IsZero() {
		if start := t.UnixMilli(); start < at {
			return start
		}
	}
	return 0
}

// Flush visits the stats of snap, which must have totals. Metric names are settled.
func (w *Walk) Flush(snap *store.Snapshot, to Visitor) {
	before := w.at
	if w.at = After(before, 2, snap.Time.UnixMilli()); w.at < before { // 2: behind the ends of the flush before
		w.before = 0
		w.Again() // receivers can have refused everything
	}
	v := snap.View().Store().View()
	defer v.Close()
	for k := range store.KindHistogram + 1 {
		v.ByFamily(k) // so that all metric names are settled
	}
	replaced := w.replacements(snap, v, to)
	// Half of an interval is for a clock that is not exact.
	full := w.Refresh < 0 || w.refreshed.IsZero() || snap.Last || snap.Time.Sub(w.refreshed)+snap.Interval/2 >= w.Refresh
	if full {
		w.refreshed = snap.Time
		w.all(v, func(c *store.Cursor, k store.Kind) { to.Write(snap, c, k, w.at) })
	} else {
		w.changes(snap, func(c *store.Cursor, k store.Kind) {
			if len(replaced) == 0 || !replaced[c.ID()] {
				to.Write(snap, c, k, w.at)
			}
		})
	}
	w.ended(snap, func(c *store.Cursor) {
		if replaced[c.ID()] {
			return
		}
		if full {
			to.Write(snap, c, c.Kind(), w.at)
		}
		to.End(c, c.Kind(), w.at+1)
	})
	if snap.Last {
		w.all(v, func(c *store.Cursor, k store.Kind) { to.End(c, k, w.at+1) })
	}
	w.before = w.at
}

// sends reports whether the sink sends the stat under c.
func (w *Walk) sends(c *store.Cursor, k store.Kind) bool {
	return k != store.KindText && !c.Hidden() && c.Used() && w.Filter.AllowsStat(k, c)
}

// series identifies the stats that follow each other under a name.
type series struct {
	name    string
	kind    store.Kind
	network bool
}

func seriesOf(c *store.Cursor) series { return series{c.Name(), c.Kind(), c.Network()} }

// ends are the stats of a series that ended in an interval.
type ends struct {
	created []int64 // the times of those that are not visited yet, Unix milliseconds
	written int64   // time of the last value before a successor
}

// replacements returns the stats that ended and have a successor of their name. It
// writes their last values at the time before the successor, whose series continues
// theirs.
func (w *Walk) replacements(snap *store.Snapshot, v *store.View, to Visitor) map[uint32]bool {
	var replaced map[uint32]bool
	ended := make(map[series]*ends)
	w.ended(snap, func(c *store.Cursor) {
		s := seriesOf(c)
		e := ended[s]
		if e == nil {
			e = &ends{written: w.before}
			ended[s] = e
		}
		e.created = append(e.created, c.Created().UnixMilli())
	})
	w.ended(snap, func(c *store.Cursor) {
		s := seriesOf(c)
		e := ended[s]
		e.created = e.created[1:]
		var created int64 // of the successor
		if len(e.created) > 0 {
			created = e.created[0]
		} else if next, ok := v.Find(s.name); ok && seriesOf(&next) == s {
			created = next.Created().UnixMilli()
		} else {
			return
		}
		if e.written < created-1 && created <= w.at {
			e.written = created - 1
			to.Write(snap, c, s.kind, e.written)
		}
		if replaced == nil {
			replaced = map[uint32]bool{}
		}
		replaced[c.ID()] = true
	})
	return replaced
}

// ended calls f for each stat that ended and that the sink sends.
func (w *Walk) ended(snap *store.Snapshot, f func(c *store.Cursor)) {
	snap.Ended(func(c *store.Cursor) bool {
		if w.sends(c, c.Kind()) {
			f(c)
		}
		return true
	})
}

// all calls f for each used stat that the sink sends.
func (w *Walk) all(v *store.View, f func(*store.Cursor, store.Kind)) {
	for _, k := range []store.Kind{store.KindCounter, store.KindGauge, store.KindHistogram} {
		w.Filter.Used(v, k, func(c *store.Cursor) { f(c, k) })
	}
}

// changes calls f for each stat that changed and that the sink sends.
func (w *Walk) changes(snap *store.Snapshot, f func(*store.Cursor, store.Kind)) {
	w.Filter.Counters(snap, func(c *store.Cursor, _ uint64) { f(c, store.KindCounter) })
	w.Filter.ChangedGauges(snap, func(c *store.Cursor) { f(c, store.KindGauge) })
	w.Filter.Histograms(snap, func(c *store.Cursor, _ *histogram.Snapshot) { f(c, store.KindHistogram) })
}
