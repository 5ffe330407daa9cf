package store

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// A stat ends in three steps. kill makes it invisible. purge removes its id from
// the orders. After the last view that can have the id is closed, release frees
// its symbols, and its block with the last stat of a full block. A stat with
// increments that no flush has reported waits for the next snapshot in between.

// removed holds ids of dead stats that views of later epochs cannot have.
type removed struct {
	epoch uint64
	ids   []id
	bytes int64 // of those from network input, if a view was open
}

// kill ends the stat x. Store.mu must be held.
func (s *Store) kill(b *block, i int, x id) {
	enc, _ := splitRecord(b.record(i))
	var buf [256]byte
	full := s.symbols.AppendText(buf[:0], enc)
	b.alive.clear(i)
	s.lookup.remove(s.lookup.hash(b.cls.network, string(full)), x)
	k := b.variant.kind()
	b.live--
	s.stats--
	if b.marks != nil && s.ended != nil {
		if mark := b.marks[i].Load(); mark != 0 {
			s.ended(mark)
		}
	}
	s.byKind[k]--
	s.dead = append(s.dead, x)
}

// OnNetworkEnd registers f to be called with the mark of each ending stat of
// network input that has one; see [Scope.Mark]. Holders of handles of such stats
// must look them up again, since writes to an ended stat have no effect. f must be
// quick and must not call the store, which is locked. It removes all marks. Nil
// unregisters, and the marks stay until the next function is registered.
func (s *Store) OnNetworkEnd(f func(mark uint32)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = f
	if f == nil {
		return
	}
	for _, b := range s.eachBlock() {
		if b.marks == nil {
			continue
		}
		for i := range b.marks {
			b.marks[i].Store(0)
		}
	}
}

// SetReject replaces the stats matcher. Existing stats that it rejects end,
// except for hidden gauges. Nil rejects nothing.
func (s *Store) SetReject(reject func(name string) bool) {
	s.mu.Lock()
	s.reject = reject
	s.overflow = [kinds]*Counter{} // one may end here
	if reject != nil {
		s.killWhere(func(b *block, i int) bool {
			hidden := b.modes != nil && ImportMode(b.modes[i].Load()) == HiddenAccumulate
			return !hidden && reject(s.nameIn(b, i))
		})
	}
	s.mu.Unlock()
	s.purge()
}

// NetworkRefs returns the references of the stats from network input whose full name
// satisfies match; see [Cursor.Ref]. Stats can come and go meanwhile.
func (s *Store) NetworkRefs(match func(name string) bool) (refs []uint64) {
	for index := range s.blocks.All() {
		for ref, name := range s.networkNames(index) {
			if match(name) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// networkNames returns the full names of the stats from network input in a block, by their
// references.
func (s *Store) networkNames(index int) map[uint64]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.blocks.Find(index)
	if b == nil || !b.cls.network {
		return nil
	}
	names := make(map[uint64]string, b.live)
	for i := range b.n {
		if b.alive.has(i) {
			names[b.ref(i)] = s.nameIn(b, i)
		}
	}
	return names
}

// RemoveRefs ends the stats with the references that still live, and returns their number.
func (s *Store) RemoveRefs(refs []uint64) (n int) {
	s.mu.Lock()
	for _, ref := range refs {
		if s.HasRef(ref) {
			b, i := s.at(id(ref))
			s.kill(b, i, id(ref))
			n++
		}
	}
	s.mu.Unlock()
	s.purge()
	return n
}

// RemoveNetwork ends the stats from network input whose full name satisfies match, and
// returns their number.
func (s *Store) RemoveNetwork(match func(name string) bool) int {
	return s.RemoveRefs(s.NetworkRefs(match))
}

// nameIn returns the full name of the stat in slot i of b. Store.mu must be held.
func (s *Store) nameIn(b *block, i int) string {
	enc, _ := splitRecord(b.record(i))
	return string(s.symbols.AppendText(nil, enc))
}

// killWhere ends the stats for which f is true. Store.mu must be held.
func (s *Store) killWhere(f func(b *block, i int) bool) (n int) {
	for _, b := range s.eachBlock() {
		for i := range b.n {
			if !b.alive.has(i) {
				continue
			}
			if f(b, i) {
				s.kill(b, i, makeID(b.index, i))
				n++
			}
		}
	}
	return n
}

// purge removes dead stats from orders and scopes.
func (s *Store) purge() {
	s.orderMu.Lock()
	s.mu.Lock()
	dead := s.dead
	s.dead = nil
	if len(dead) == 0 {
		s.mu.Unlock()
		s.orderMu.Unlock()
		return
	}
	if s.naming {
		s.named = append(s.named, dead...)
	}
	settled := s.keepUnsent(dead)
	holders := make(map[*Scope]bool)
	note := func(holder uint32, k Kind) {
		if sc := s.scopes[holder]; sc != nil {
			sc.counts[k]--
			holders[sc] = !sc.cls.network
		}
	}
	for _, x := range dead {
		b, i := s.at(x)
		k := b.variant.kind()
		note(b.owner(i), k)
		for _, holder := range s.sharers[x] {
			note(holder, k)
		}
		delete(s.sharers, x)
	}
	for sc, listed := range holders {
		if listed {
			sc.held = slices.DeleteFunc(sc.held, s.isDead)
		}
	}
	gone := s.goneFrom(dead)
	for _, o := range s.byTag {
		o.dropPending(s.isDead)
	}
	s.mu.Unlock()
	for _, g := range gone {
		g.o.remove(s, g.ids, len(g.ids)-g.pending, s.isDead)
	}
	for _, o := range s.byTag {
		o.drop(s.isDead)
	}
	s.settleLocked(settled)
	for _, w := range s.enders {
		w.end(s, dead)
	}
	ended := s.endedLocked()
	s.orderMu.Unlock()
	s.release(ended)
}

// goneIDs are dead stats of an order.
type goneIDs struct {
	o       *order
	ids     []id
	pending int // of ids, which were in no chunk
}

// goneFrom returns the dead stats of each order by name and by family, which it drops
// from the pending ones. Store.mu and Store.orderMu must be held.
func (s *Store) goneFrom(dead []id) (list []goneIDs) {
	from := func(o *order, of func(k Kind) bool) {
		var ids []id
		for _, x := range dead {
			if b, _ := s.at(x); of(b.variant.kind()) {
				ids = append(ids, x)
			}
		}
		if len(ids) > 0 {
			list = append(list, goneIDs{o, ids, o.dropPending(s.isDead)})
		}
	}
	for set := range NameSet(nameSets) {
		from(&s.byName[set], func(k Kind) bool { return SetOf(k) == set })
	}
	for k := range Kind(kinds) {
		from(&s.byFamily[k], func(other Kind) bool { return other == k })
	}
	return list
}

// NetworkRemains returns about how many bytes ended stats of network input still take: stats
// that an open view can have, and others in a block, whose memory stays as long as a stat in
// it lives. It is safe for concurrent use.
func (s *Store) NetworkRemains() int64 { return s.remains.Load() }

// KeepNames makes snapshots list the stats that have ended; see
// [Snapshot.Ended]. Use it only in a program that flushes: without flushes
// ended stats accumulate.
func (s *Store) KeepNames() {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.naming = true
}

// KeepEnded makes the store keep the increments of counters and histograms that
// end before a flush has reported them, for the next [Store.Flush]. Use it only
// in a program that flushes: without flushes such stats accumulate. The first
// call of Flush implies it.
func (s *Store) KeepEnded() {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.keeping = true
}

// keepUnsent moves dead stats that the next flush has to report to Store.unsent
// and returns the others, whose final bit it sets. A flush in progress that read
// the bit before takes the mark of an increment after that and reports it.
// Store.orderMu must be held.
func (s *Store) keepUnsent(dead []id) (gone []id) {
	for _, x := range dead {
		if b, i := s.at(x); s.keeping && b.unsent(i) {
			s.unsent = append(s.unsent, x)
		} else {
			b.final.set(i)
			gone = append(gone, x)
		}
	}
	return gone
}

// unsent reports whether stat i has an increment that no flush has reported.
// Gauges and text readouts have none.
func (b *block) unsent(i int) bool {
	switch b.variant {
	case variantCounter:
		written := b.pg.written(i) // first: Poll moves marks from there to carried
		schedule.Point()
		return written || b.carries(i)
	case variantHistogram:
		return (*b.hists.Load())[i].Pending()
	}
	return false
}

// viewOfFlush opens the view of a snapshot and returns the dead stats with
// increments that the snapshot has to report, and, under KeepNames, all that ended
// since the last flush. They stay readable until the view is closed. With
// histogramsOnly, counters with such increments wait for another snapshot.
func (s *Store) viewOfFlush(histogramsOnly bool) (v *View, ended, named []id) {
	s.purge()
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.keeping = true
	v = s.viewLocked()
	ended = s.takeUnsentLocked(func(b *block, _ int) bool { return !histogramsOnly || b.variant == variantHistogram })
	gone := append(s.settled, ended...)
	named, s.named, s.settled = s.named, nil, nil
	if len(s.unsent) > 0 && len(named) > 0 {
		waiting := bitsByBlock(s.unsent)
		named = slices.DeleteFunc(named, func(x id) bool {
			b, i := s.at(x)
			if w := waiting[b.index]; w == nil || !w.has(i) {
				return false
			}
			s.named = append(s.named, x)
			return true
		})
	}
	if len(gone) > 0 {
		s.removeLocked(gone)
	}
	return v, ended, named
}

// takeUnsentLocked removes the stats for which sent returns true from Store.unsent
// and returns them. Store.orderMu must be held.
func (s *Store) takeUnsentLocked(sent func(b *block, i int) bool) (taken []id) {
	s.unsent = slices.DeleteFunc(s.unsent, func(x id) bool {
		b, i := s.at(x)
		if !sent(b, i) {
			return false
		}
		taken = append(taken, x)
		return true
	})
	return taken
}

// releaseSent releases the ended counters whose increments have all been
// acknowledged by a successor. Store.flushMu must be held.
func (s *Store) releaseSent() {
	s.orderMu.Lock()
	s.settleLocked(s.takeUnsentLocked(func(b *block, i int) bool {
		sent := b.variant == variantCounter && b.pg.total(i) == b.latch[i]
		if sent {
			b.final.set(i)
		}
		return sent
	}))
	ended := s.endedLocked()
	s.orderMu.Unlock()
	s.release(ended)
}

// settleLocked lets dead stats without unsent increments be released when no view
// has them, and under KeepNames a snapshot has listed them. Store.orderMu must be
// held.
func (s *Store) settleLocked(gone []id) {
	if s.naming {
		s.settled = append(s.settled, gone...)
		return
	}
	s.removeLocked(gone)
}

// removeLocked lets dead stats be released when no open view can have them. Store.orderMu
// must be held.
func (s *Store) removeLocked(gone []id) {
	r := removed{epoch: s.epoch, ids: gone}
	if len(s.views) > 0 {
		for _, x := range gone {
			if b, i := s.at(x); b.cls.network {
				r.bytes += int64(b.sizeOf(i))
			}
		}
		s.remains.Add(r.bytes)
	}
	s.removed = append(s.removed, r)
	s.epoch++
}

// endedLocked returns the dead stats that no open view can have. Store.orderMu
// must be held.
func (s *Store) endedLocked() (ids []id) {
	oldest := s.epoch
	for e := range s.views {
		oldest = min(oldest, e)
	}
	n := 0
	for n < len(s.removed) && s.removed[n].epoch < oldest {
		ids = append(ids, s.removed[n].ids...)
		s.remains.Add(-s.removed[n].bytes)
		n++
	}
	s.removed = slices.Delete(s.removed, 0, n)
	return ids
}

// release frees the resources of dead stats.
func (s *Store) release(ids []id) {
	if len(ids) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range ids {
		b, i := s.at(x)
		s.leaveSeries(b, i, x)
		enc, rest := splitRecord(b.record(i))
		s.symbols.Release(enc)
		if rest[0]&flagTagged != 0 {
			s.releaseTags(rest[1:])
		}
		before := b.remains()
		b.released++
		s.remains.Add(b.remains() - before)
		if b.released == b.n && (b.full() || b.end > largeArena) {
			if b.cls.open[b.variant] == b {
				b.cls.open[b.variant] = nil
			}
			s.blocks.Put(int(b.index), nil)
			b.arena.Store(nil) // other pages of its group keep the block
			s.hot.forget(b)
			s.recycled.Add(1)
			s.freeBlocks = append(s.freeBlocks, freeBlock{b.index, b.reuse + 1})
		}
	}
	s.names.trim()
	for index, gone := range bitsByBlock(ids) {
		switch b := s.blocks.At(int(index)); {
		case b == nil: // dropped
		case b.variant == variantHistogram:
			replaceShared(&b.hists, gone, (*s.null.hists.Load())[variantHistogram])
		case b.variant == variantText:
			replaceShared(&b.texts, gone, (*s.null.texts.Load())[variantText])
		}
	}
}

// replaceShared puts a null stat in the places of ended ones in a list that is read
// without a lock: histograms and texts can be large, and their block stays as long as one
// stat in it lives.
func replaceShared[T any](list *atomic.Pointer[[]T], gone *bitset, null T) {
	l := slices.Clone(*list.Load())
	for i := range l {
		if gone.has(i) {
			l[i] = null
		}
	}
	list.Store(&l)
}

// releaseTags releases the family and the tag names of a record.
func (s *Store) releaseTags(rest []byte) {
	uvarint := func() uint64 {
		v, w := binary.Uvarint(rest)
		rest = rest[w:]
		return v
	}
	// A name can be that of a family and of a tag, so each can be its last holder.
	release := func() {
		if n := s.names.release(uint32(uvarint())); n != nil {
			s.leaveNamed(n)
			s.names.forget(n)
		}
	}
	release()
	for range uvarint() {
		release()
		if uvarint() == 0 {
			n := uvarint()
			rest = rest[n:]
		}
	}
}

// isDead reports whether the stat x has ended. It must not be released yet.
func (s *Store) isDead(x id) bool {
	b, i := s.at(x)
	return !b.alive.has(i)
}
