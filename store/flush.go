package store

import (
	"math/bits"
	"time"
)

// FlushOptions are the settings of one flush.
type FlushOptions struct {
	// SkipHistograms leaves the histograms as they are. A server that is not
	// fully initialized does so.
	SkipHistograms bool
	// Totals makes the snapshot carry the values of all stats, not only of
	// those that changed. It costs a copy of them.
	Totals bool
}

// Flush ends an interval: it merges what histograms recorded, takes what was
// added to counters since the last flush, and returns both as a snapshot. An
// increment that races with a flush counts in this interval or in the next,
// in exactly one of them. Its cost grows with the number of stats that
// changed; for the others it looks at one byte each.
//
// Close the snapshot when it is no longer needed.
func (s *Store) Flush(o FlushOptions) *Snapshot {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	now := s.opts.Now()
	s.flushSeq++
	snap := &Snapshot{
		Seq:      s.flushSeq,
		Time:     now,
		Interval: now.Sub(s.flushed),
		view:     s.View(),
		totals:   o.Totals,
	}
	s.flushed = now
	seconds := uint32(now.Unix())

	s.mu.Lock()
	blocks := s.eachBlock()
	ns := make([]int, len(blocks))
	for i, b := range blocks {
		ns[i] = b.n
	}
	s.mu.Unlock()
	for i, b := range blocks {
		var changed bitset
		switch b.variant {
		case variantCounter:
			if b.pg.takeTouched(&changed, ns[i]) {
				b.latchCounters(snap, &changed)
			}
		case variantGauge, variantFloat:
			b.takeGauges(&changed, ns[i])
			snap.addGauges(b, &changed)
		case variantHistogram:
			if !o.SkipHistograms {
				b.mergeHistograms(snap, &changed, ns[i])
			}
		case variantText:
			for slot := range ns[i] {
				snap.texts = append(snap.texts, makeID(b.index, slot))
			}
			b.takeTexts(&changed, ns[i])
		}
		b.note(&changed, seconds)
		if o.Totals {
			snap.keep(b, ns[i])
		}
	}
	return snap
}

// latchCounters notes in snap what was added to the counters of b that may
// have changed, and clears the bits of those that did not. Store.flushMu must
// be held.
func (b *block) latchCounters(snap *Snapshot, changed *bitset) {
	for w := range changed {
		for m := changed[w]; m != 0; m &= m - 1 {
			i := w*64 + bits.TrailingZeros64(m)
			total := b.pg.total(i)
			delta := total - b.latch[i]
			if delta == 0 {
				changed[w] &^= 1 << (i % 64)
				continue
			}
			b.latch[i] = total
			snap.counters = append(snap.counters, counterChange{makeID(b.index, i), delta})
		}
	}
}

// takeGauges notes in changed which of the first n gauges of b were written
// since the last flush, or changed by a parent process. Store.flushMu must be
// held.
func (b *block) takeGauges(changed *bitset, n int) {
	// Used is set before the marks are dropped, and no others are, so that no
	// reader finds neither.
	if b.pg.eachTouched(changed, n) {
		b.used.setAll(changed)
		b.pg.dropTouched(changed)
	}
	if p := b.parents.Load(); p != nil {
		p.take(changed)
	}
}

func (snap *Snapshot) addGauges(b *block, changed *bitset) {
	for w := range changed {
		for m := changed[w]; m != 0; m &= m - 1 {
			snap.gauges = append(snap.gauges, makeID(b.index, w*64+bits.TrailingZeros64(m)))
		}
	}
}

func (b *block) mergeHistograms(snap *Snapshot, changed *bitset, n int) {
	hists := *b.hists.Load()
	for i, h := range hists[:n] {
		if !b.alive.has(i) {
			continue
		}
		if m := h.Merge(); m.Interval.Count() != 0 {
			changed.set(i)
			snap.histograms = append(snap.histograms, makeID(b.index, i))
		}
	}
}

// takeTexts notes in changed which of the first n text readouts of b were set
// since the last flush, if it matters. Store.flushMu must be held.
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

// note remembers which stats were updated, for their expiry. Store.flushMu
// must be held.
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

// ResetCounters makes the value of every counter 0 and clears the recent
// lookups. What was added before still reaches the sinks at the next flush,
// and counters stay used.
func (s *Store) ResetCounters() {
	s.mu.Lock()
	for _, b := range s.eachBlock() {
		if b.variant == variantCounter {
			b.reset()
		}
	}
	s.mu.Unlock()
	s.symbols.ClearRecent()
}

// Sweep ends the stats of evicting scopes that were not updated between the
// last two sweeps, and those whose time to live is over. It returns how many
// of each kind network input had made, and of all others.
func (s *Store) Sweep(evict bool) (network [kinds]int, own int) {
	s.flushMu.Lock()
	now := uint32(s.opts.Now().Unix())
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
			if (old || evict && b.cls.evict && !b.fresh.has(i)) && !b.pending(i) {
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

// pending reports whether a stat was written since the last flush, so that its
// end would lose something. Store.flushMu must be held.
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
		return b.pg.touched(i) || p != nil && p.changed.has(i)
	}
	return false
}

// LastFlush returns when the last flush was, or when the store was made.
func (s *Store) LastFlush() time.Time {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	return s.flushed
}
