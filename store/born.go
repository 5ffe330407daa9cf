package store

import (
	"slices"
	"sort"
	"time"
)

// birth is the start of a run of slots whose stats were created at about the same
// time, with no flush in between. A block hands out its slots in order, so a few runs describe all of them.
type birth struct {
	slot    uint32 // first of the run
	at      int64  // creation of its stat, Unix time in milliseconds
	flushes uint64 // before it
}

// birthRun is how much younger than its first stat the stats of a run can be, in
// milliseconds.
const birthRun = 100

// noteBirth records that the stat in slot i, the highest so far, was created now, in
// Unix milliseconds, after some flushes. Store.mu must be held.
func (b *block) noteBirth(i int, now int64, flushes uint64) {
	var runs []birth
	if p := b.born.Load(); p != nil {
		runs = *p
	}
	if n := len(runs); n == 0 || now-runs[n-1].at >= birthRun || now < runs[n-1].at || runs[n-1].flushes != flushes {
		longer := append(runs, birth{uint32(i), now, flushes}) // readers of runs do not see it
		b.born.Store(&longer)
	}
}

// inherit records that counter i is older than this process.
func (b *block) inherit(i int) {
	for b.older.Load() == nil {
		b.older.CompareAndSwap(nil, new(atomicBits))
	}
	b.older.Load().set(i)
}

// Created returns when the stat was created, up to a tenth of a second too early, but
// not before a flush that preceded it. It returns the zero time for a counter that continues that of a parent process.
func (c *Cursor) Created() time.Time {
	return moment(c.b.birth(c.i).at)
}

// FlushesBefore returns how many flushes the store had when the stat was created: only
// snapshots with a higher [Snapshot.Seq] can have it. Unlike times, it is right when the
// clock of the system is set. It is 0 where [Cursor.Created] is unknown.
func (c *Cursor) FlushesBefore() uint64 { return c.b.birth(c.i).flushes }

// birth returns when stat i was created, and zeros if that is unknown; see
// [Cursor.Created].
func (b *block) birth(i int) birth {
	if older := b.older.Load(); older != nil && older.has(i) {
		return birth{}
	}
	runs := *b.born.Load()
	n := len(runs)
	if n > 1 {
		n = sort.Search(n, func(n int) bool { return int(runs[n].slot) > i })
	}
	return runs[n-1]
}

// clockSlack is how many milliseconds the clock can lose or gain between two flushes
// without being set: clocks are corrected a little all the time.
const clockSlack = 100

// leap is when and how far the clock was last set forward.
type leap struct {
	flushes uint64 // before it
	to, by  int64  // Unix milliseconds, milliseconds
}

// followClock returns the time since the last flush. If the clock was set back since, it
// corrects the times that are after now: they would come to pass once more, and readers of
// counters would take that for a reset. They would do so too if times were corrected after
// the clock was set forward, which is only noted. Store.flushMu must be held.
func (s *Store) followClock(now time.Time) (passed time.Duration) {
	passed = max(now.Sub(s.flushed), 0) // a clock of Options can go back
	ahead := now.UnixMilli() - s.flushed.UnixMilli() - passed.Milliseconds()
	if ahead < -clockSlack {
		s.leap = leap{}
		s.setBack(now.UnixMilli(), -ahead)
	} else if ahead > clockSlack && (s.leap.by == 0 || s.leap.flushes != s.flushes) {
		s.leap = leap{s.flushes, now.UnixMilli(), ahead}
	}
	return passed
}

// clock follows the clock and returns how often times of creation were corrected, and when
// it was last set forward.
func (s *Store) clock() (rebirths uint64, last leap) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	s.followClock(s.opts.Now())
	return s.rebirths, s.leap
}

// before returns the least time of creation, as noted then, of stats that were created at
// a time of the present clock or later. Both are in Unix milliseconds.
func (l leap) before(at int64) int64 {
	if at < l.to {
		return at - l.by
	}
	return at
}

// setBack lowers the times that are after now, in Unix milliseconds.
func (s *Store) setBack(now, by int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.eachBlock() {
		if p := b.born.Load(); p != nil && slices.ContainsFunc(*p, func(run birth) bool { return run.at > now }) {
			runs := slices.Clone(*p)
			for i := range runs {
				if runs[i].at > now {
					runs[i].at -= by
				}
			}
			b.born.Store(&runs)
			s.rebirths++
		}
		if base := b.base.Load(); base != nil {
			for i := range base {
				if at := base[i].at.Load(); at > now {
					base[i].at.Store(at - by)
				}
			}
		}
	}
}

func moment(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at)
}

// Since returns when the stat was created or, if it is a counter that was reset, when that
// was: the time from which [Cursor.Uint] counts. The zero time means that it is unknown, as
// in [Cursor.Created].
func (c *Cursor) Since() time.Time {
	if base := c.b.base.Load(); base != nil {
		if at := base[c.i].at.Load(); at != 0 { // before Created if the clock was set back
			return time.UnixMilli(at)
		}
	}
	return c.Created()
}
