package store

import (
	"math/bits"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// FlushOptions are the settings of one flush.
type FlushOptions struct {
	// SkipHistograms leaves histograms unmerged, for servers that are not
	// fully initialized.
	SkipHistograms bool
	// HistogramsOnly leaves all other stats to the successor that an [Export]
	// hands them over to.
	HistogramsOnly bool
	// Totals adds the values of all stats, changed or not, to the snapshot. It
	// costs a copy of them.
	Totals bool
	// Last reports that no flush follows this snapshot and that the stats
	// end with the process.
	Last bool
}

// Flush ends an interval: it merges histograms and returns the increments of
// counters and the values of histograms since the last flush as a snapshot. An
// increment that races with a flush is reported in exactly one interval, this
// one or the next. The cost grows with the number of changed stats; for each of
// the others, Flush reads one byte.
//
// The caller must close the snapshot.
func (s *Store) Flush(o FlushOptions) *Snapshot {
	s.refresh()
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	now := s.opts.Now()
	snap := &Snapshot{
		Seq:      s.flushes + 1,
		Time:     now,
		Interval: s.followClock(now),
		Last:     o.Last,
		totals:   o.Totals,
		merged:   new(merged),
	}
	var ended []id
	snap.view, ended, snap.ended = s.viewOfFlush(o.HistogramsOnly)
	endedOf := bitsByBlock(ended)
	s.flushed = now
	seconds := s.age(now)

	s.mu.Lock()
	s.flushes++ // the stats created from here on are not in this flush
	blocks := s.eachBlock()
	ns := make([]int, len(blocks))
	for i, b := range blocks {
		ns[i] = b.n
	}
	s.mu.Unlock()
	var changed []*block // maybe
	counters := 0        // of them changed, at most
	for i, b := range blocks {
		if o.HistogramsOnly && b.variant != variantHistogram {
			continue
		}
		ended := endedOf[b.index]
		if b.pg != nil && ended == nil && b.unchanged(ns[i]) {
			continue
		}
		// Final is read before marks are taken: see keepUnsent.
		final := b.final.copy()
		b.changed = bitset{}
		switch b.variant {
		case variantCounter:
			b.pg.takeTouched(&b.changed, ns[i])
			b.takeCarried(&b.changed)
			b.changed.setAll(ended)
			b.changed.clearAll(&final)
			counters += b.changed.count()
		case variantGauge, variantFloat:
			b.takeGauges(&b.changed, &final, ns[i])
			snap.addGauges(b, &b.changed)
		case variantHistogram:
			b.mergeHistograms(snap, &b.changed, &final, ended, ns[i], o.SkipHistograms)
		case variantText:
			b.takeTexts(&b.changed, ns[i]) // first: a text set in between is in this snapshot and the next
			snap.addTexts(b, ns[i])
		}
		b.final.setAll(ended)
		changed = append(changed, b)
	}
	snap.counters = make([]counterChange, 0, counters) // growing it would take longer than the rest
	for _, b := range changed {
		if b.variant == variantCounter {
			b.latchCounters(snap, &b.changed)
		}
		b.note(&b.changed, seconds)
		for _, w := range s.watches {
			w.of(b).pending.setAll(&b.changed)
		}
	}
	if o.Totals {
		for i, b := range blocks {
			if !o.HistogramsOnly || b.variant == variantHistogram {
				snap.keep(b, ns[i])
			}
		}
	}
	return snap
}

// unchanged reports whether no mark of the first n counters or gauges of b waits for
// a flush.
func (b *block) unchanged(n int) bool {
	return b.carried.Load().none() && b.parents.Load() == nil && b.pg.unmarked(n)
}

// bitsByBlock returns the slots of ids as bits, by block index.
func bitsByBlock(ids []id) map[uint32]*bitset {
	m := make(map[uint32]*bitset)
	for _, x := range ids {
		b := m[x>>slotBits]
		if b == nil {
			b = new(bitset)
			m[x>>slotBits] = b
		}
		b.set(int(x & (1<<slotBits - 1)))
	}
	return m
}

// latchCounters adds the increments of the counters in changed to snap, and
// clears the bits of counters without any. Store.flushMu must be held.
func (b *block) latchCounters(snap *Snapshot, changed *bitset) {
	for w := range changed {
		for m := changed[w]; m != 0; m &= m - 1 {
			i := w*64 + bits.TrailingZeros64(m)
			total := b.pg.total(i)
			delta := total - b.latch[i]
			if delta == 0 {
				changed[w] &^= 1 << (i % 64)
				snap.settled = append(snap.settled, counterChange{makeID(b.index, i), total, 0})
				continue
			}
			b.latch[i] = total
			snap.counters = append(snap.counters, counterChange{makeID(b.index, i), total, delta})
		}
	}
}

// takeGauges sets the bits in changed of gauges, among the first n of b, that were
// written, or changed by a parent process, since the last flush. Store.flushMu
// must be held.
func (b *block) takeGauges(changed, final *bitset, n int) {
	// Used is set before the same marks are dropped, so that a reader always
	// finds either.
	if b.pg.eachTouched(changed, n) {
		changed.clearAll(final)
		b.used.setAll(changed)
		b.pg.dropTouched(changed)
	}
	b.takeCarried(changed)
	changed.clearAll(final)
	if p := b.parents.Load(); p != nil {
		p.take(changed)
		changed.clearAll(final)
	}
}

func (snap *Snapshot) addGauges(b *block, changed *bitset) {
	for w := range changed {
		for m := changed[w]; m != 0; m &= m - 1 {
			i := w*64 + bits.TrailingZeros64(m)
			snap.gauges = append(snap.gauges, gaugeChange{makeID(b.index, i), b.gauge(i)})
		}
	}
}

// addTexts notes the text readouts of b that were ever set and have not ended.
func (snap *Snapshot) addTexts(b *block, n int) {
	for i, t := range (*b.texts.Load())[:n] {
		if v := t.v.Load(); v != nil && b.alive.has(i) {
			snap.texts = append(snap.texts, textValue{makeID(b.index, i), v})
		}
	}
}

// mergeHistograms merges the first n histograms of b and adds the changed ones
// to snap and changed. If skip is set it merges only ended histograms.
// Store.flushMu must be held.
func (b *block) mergeHistograms(snap *Snapshot, changed, final, ended *bitset, n int, skip bool) {
	hists := *b.hists.Load()
	for i, h := range hists[:n] {
		if final.has(i) || skip && (ended == nil || !ended.has(i)) {
			continue
		}
		if m := h.MergeAt(snap.Time); m.Interval.Count() != 0 {
			changed.set(i)
			snap.histograms = append(snap.histograms, histogramChange{makeID(b.index, i), m})
		}
	}
}

// takeTexts sets the bits in changed of text readouts, among the first n of b,
// that were set since the last flush, if they expire. Store.flushMu must be
// held.
func (b *block) takeTexts(changed *bitset, n int) {
	if b.active == nil {
		return
	}
	for i, t := range (*b.texts.Load())[:n] {
		if v := t.v.Load(); v != t.seen {
			t.seen = v
			changed.set(i)
		}
	}
}

// note records which stats were updated, for their expiry. Store.flushMu must be
// held.
func (b *block) note(changed *bitset, seconds uint32) {
	if b.active == nil {
		return
	}
	for w := range changed {
		b.fresh[w] |= changed[w]
		for m := changed[w]; m != 0; m &= m - 1 {
			b.active[w*64+bits.TrailingZeros64(m)].Store(seconds)
		}
	}
}

// ResetCounters sets the value of every counter to 0 and clears the recent
// lookups. Earlier increments still reach the sinks at the next flush, and
// counters stay used.
func (s *Store) ResetCounters() {
	now := s.opts.Now().UnixMilli()
	s.mu.Lock()
	for _, b := range s.eachBlock() {
		if b.variant == variantCounter {
			b.reset(now)
		}
	}
	s.resets.Add(1)
	s.mu.Unlock()
	s.symbols.ClearRecent()
}

// Sweep ends stats whose time to live has passed and, if evict is set, stats of
// evicting scopes that were not updated since the last sweep with evict. Stats
// with unflushed changes, or looked up by name since the last sweep, stay. It
// returns the number of ended stats from network input by kind, and of all
// others.
func (s *Store) Sweep(evict bool) (network [kinds]int, own int) {
	s.flushMu.Lock()
	now := s.age(s.opts.Now())
	s.mu.Lock()
	for _, b := range s.eachBlock() {
		if b.active == nil {
			continue
		}
		ttl := b.cls.ttl[b.variant.kind()]
		for i := range b.n {
			if !b.alive.has(i) {
				continue
			}
			old := ttl != 0 && now-b.active[i].Load() > ttl && int32(now-b.active[i].Load()) > 0
			asked := b.asked.has(i)
			if asked {
				b.asked.clear(i)
			}
			if (old || evict && b.cls.evict && !b.fresh.has(i)) && !asked && b.endable(i) {
				s.kill(b, i, makeID(b.index, i))
				if b.cls.network {
					network[b.variant.kind()]++
				} else {
					own++
				}
			}
		}
		if evict {
			b.fresh = bitset{}
		}
	}
	s.mu.Unlock()
	s.flushMu.Unlock()
	s.purge()
	return network, own
}

// endable reports whether stat i can end without loss: nothing was written to it
// since the last flush, and no caller is looking it up by name. If so, a lookup
// from now on waits for Store.mu. Store.mu and Store.flushMu must be held.
func (b *block) endable(i int) bool {
	b.ending.set(i) // before asked is read; see block.lease
	schedule.Point()
	if b.asked.has(i) || b.pending(i) {
		b.ending.clear(i)
		return false
	}
	return true
}

// lease notes that a caller looked up stat i by name and can be about to write
// to it. It reports false if the stat is ending.
func (b *block) lease(i int) bool {
	if b.active == nil { // it does not expire
		return true
	}
	if !b.asked.has(i) {
		b.asked.set(i)
		schedule.Point()
	}
	return !b.ending.has(i)
}

// pending reports whether a stat was written since the last flush. Store.flushMu
// must be held.
func (b *block) pending(i int) bool {
	switch b.variant {
	case variantCounter:
		return b.pg.total(i) != b.latch[i]
	case variantText:
		t := (*b.texts.Load())[i]
		return t.v.Load() != t.seen
	case variantHistogram:
		return (*b.hists.Load())[i].Pending()
	case variantGauge, variantFloat:
		p := b.parents.Load()
		return b.pg.touched(i) || b.carries(i) || p != nil && p.changed.has(i)
	}
	return false
}

// LastFlush returns the time of the last flush or, before the first, of the
// store's creation.
func (s *Store) LastFlush() time.Time {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	return s.flushed
}

// Flushes returns how many flushes there were.
func (s *Store) Flushes() uint64 {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	return s.flushes
}
