package store

import (
	"math/bits"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// Watch follows the changes of a store, independently of its flushes and at
// the cost of reading a byte for each stat that did not change. Writers are not
// slowed down.
//
// While it is open it needs eight bytes for each counter, gauge and histogram.
// Close it; only one goroutine can use it at a time.
type Watch struct {
	s      *Store
	blocks []*watched // by block index; guarded by Store.flushMu
	resets uint64
	polled time.Time // last

	ended []uint64 // guarded by Store.orderMu, as is lost
	lost  bool     // some in ended are missing
}

// watched is the state of a watch for a block.
type watched struct {
	b       *block
	n       int    // slots of stats that were reported
	pending bitset // changes that a flush or another watch took the marks of
	last    []uint64
	texts   []*string
}

// maxEnded limits the ended stats that a watch collects between two polls.
const maxEnded = 1 << 17

// Watch returns a watch on all changes from now on. Values recorded to
// histograms count as a change when a flush has merged them.
func (s *Store) Watch() *Watch {
	w := &Watch{s: s, polled: s.opts.Now()}
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	w.resets = s.resets.Load()
	blocks, ns := s.blocksInUse()
	for k, b := range blocks {
		x := w.of(b)
		x.n = ns[k]
		for i := range ns[k] {
			x.moved(i)
		}
	}
	s.watches = append(slices.Clip(s.watches), w)
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.enders = append(slices.Clip(s.enders), w)
	return w
}

// Close ends the watch and releases its memory. Closing twice does nothing.
func (w *Watch) Close() {
	without := func(list []*Watch) []*Watch {
		return slices.DeleteFunc(slices.Clone(list), func(o *Watch) bool { return o == w })
	}
	s := w.s
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	s.watches, w.blocks = without(s.watches), nil
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.enders, w.ended = without(s.enders), nil
}

// Time returns the time of the last poll or, before the first, of the call of
// [Store.Watch].
func (w *Watch) Time() time.Time { return w.polled }

// blocksInUse returns the blocks and how many of their slots were handed out.
func (s *Store) blocksInUse() ([]*block, []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := s.eachBlock()
	ns := make([]int, len(blocks))
	for i, b := range blocks {
		ns[i] = b.n
	}
	return blocks, ns
}

// of returns the state for b. Store.flushMu must be held.
func (w *Watch) of(b *block) *watched {
	for int(b.index) >= len(w.blocks) {
		w.blocks = append(w.blocks, nil)
	}
	x := w.blocks[b.index]
	if x == nil || x.b != b {
		x = &watched{b: b}
		w.blocks[b.index] = x
	}
	return x
}

// end notes dead stats. Store.orderMu must be held.
func (w *Watch) end(s *Store, dead []id) {
	if len(w.ended)+len(dead) > maxEnded {
		w.ended, w.lost = nil, true
		return
	}
	for _, x := range dead {
		b, i := s.at(x)
		w.ended = append(w.ended, b.ref(i))
	}
}

// ref returns the reference of stat i. After two million reuses of a block index
// references repeat.
func (b *block) ref(i int) uint64 {
	return uint64(b.reuse&(1<<21-1))<<32 | uint64(makeID(b.index, i))
}

// Ref returns a number below 2^53 that identifies the stat. It is never reused
// for another stat of the store, even after the stat has ended.
func (c *Cursor) Ref() uint64 { return c.b.ref(c.i) }

// FindRef is [View.Find] for the stat with a reference.
func (v *View) FindRef(ref uint64) (Cursor, bool) {
	found := v.s.HasRef(ref) // first: the cursor has the blocks as of now
	c := v.cursor(nil)
	return c, found && c.stand(id(ref))
}

// carry moves the marks of the first n words to carried, for the next flush, and
// adds them to changed. A mark is always in either place. Store.flushMu
// must be held.
func (b *block) carry(changed *bitset, n int) {
	var marked bitset
	if !b.pg.eachTouched(&marked, n) {
		return
	}
	if b.variant != variantCounter {
		b.used.setAll(&marked) // as a flush does, so that readers find either
	}
	c := b.carried.Load()
	if c == nil {
		c = new(atomicBits)
		b.carried.Store(c)
	}
	schedule.Point()
	c.setAll(&marked)
	b.pg.dropTouched(&marked)
	changed.setAll(&marked)
}

// takeCarried moves the bits in carried to changed. Store.flushMu must be held.
func (b *block) takeCarried(changed *bitset) {
	c := b.carried.Load()
	if c == nil {
		return
	}
	for w := range c {
		if c[w].Load() != 0 {
			changed[w] |= c[w].Swap(0)
		}
	}
}

// carries reports whether a mark of stat i waits for the next flush.
func (b *block) carries(i int) bool {
	c := b.carried.Load()
	return c != nil && c.has(i)
}

// moved reports whether the value of stat i differs from that of the last call,
// the value and, for counters and histograms, its growth. Store.flushMu must be
// held.
func (x *watched) moved(i int) (raw, delta uint64, moved bool) {
	b := x.b
	if b.variant == variantText {
		for i >= len(x.texts) {
			x.texts = append(x.texts, nil)
		}
		v := (*b.texts.Load())[i].v.Load()
		moved = v != x.texts[i]
		x.texts[i] = v
		return 0, 0, moved
	}
	switch b.variant {
	case variantCounter:
		raw = b.pg.total(i)
	case variantHistogram:
		raw = (*b.hists.Load())[i].Snapshot().Cumulative.Count()
	default:
		raw = b.gauge(i)
	}
	if x.last == nil {
		x.last = make([]uint64, slotsPerBlock)
	}
	moved = raw != x.last[i]
	if b.variant == variantCounter || b.variant == variantHistogram {
		delta = raw - x.last[i]
	}
	x.last[i] = raw
	return raw, delta, moved
}

// Changes are the changes between two polls of a [Watch]. They are immutable and
// hold no lock; stats that end later are left out when they are visited.
type Changes struct {
	Time     time.Time     // of the poll
	Interval time.Duration // since the poll before
	Ended    []uint64      // references of stats that ended
	Lost     bool          // more stats ended than Ended has
	Reset    bool          // counters were reset, so that any may have changed

	s      *Store
	blocks []changedBlock
	slots  []uint16
	raws   []uint64
	deltas []uint64
}

// changedBlock is a part of the lists of Changes.
type changedBlock struct {
	b        *block
	from, to int
}

// Poll returns the changes since the last call: stats whose value changed, and
// new ones.
func (w *Watch) Poll() *Changes {
	s := w.s
	s.refresh()
	s.purge()
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	now := s.opts.Now()
	ch := &Changes{s: s, Time: now, Interval: max(now.Sub(w.polled), 0)}
	w.polled = now
	if n := s.resets.Load(); n != w.resets {
		w.resets, ch.Reset = n, true
	}
	s.orderMu.Lock()
	ch.Ended, ch.Lost, w.ended, w.lost = w.ended, w.lost, nil, false
	s.orderMu.Unlock()
	blocks, ns := s.blocksInUse()
	for k, b := range blocks {
		x := w.of(b)
		changed := x.pending
		x.pending = bitset{}
		switch b.variant {
		case variantCounter, variantGauge, variantFloat:
			var marked bitset
			b.carry(&marked, ns[k])
			changed.setAll(&marked)
			for _, o := range s.watches {
				if o != w {
					o.of(b).pending.setAll(&marked)
				}
			}
		case variantText:
			for i := range ns[k] {
				changed.set(i)
			}
		}
		created := x.n
		for ; x.n < ns[k]; x.n++ {
			changed.set(x.n)
		}
		ch.add(x, &changed, created)
	}
	w.forget(blocks)
	return ch
}

// add adds the stats in changed whose value moved, and those from slot created
// on.
func (ch *Changes) add(x *watched, changed *bitset, created int) {
	from := len(ch.slots)
	for w := range changed {
		for m := changed[w]; m != 0; m &= m - 1 {
			i := w*64 + bits.TrailingZeros64(m)
			raw, delta, moved := x.moved(i)
			if (moved || i >= created) && x.b.alive.has(i) {
				ch.slots, ch.raws, ch.deltas = append(ch.slots, uint16(i)), append(ch.raws, raw), append(ch.deltas, delta)
			}
		}
	}
	if to := len(ch.slots); to > from {
		ch.blocks = append(ch.blocks, changedBlock{x.b, from, to})
	}
}

// forget drops the state for blocks that are gone. Store.flushMu must be held.
func (w *Watch) forget(blocks []*block) {
	k := 0
	for n, x := range w.blocks {
		for k < len(blocks) && int(blocks[k].index) < n {
			k++
		}
		if x != nil && (k == len(blocks) || blocks[k] != x.b) {
			w.blocks[n] = nil
		}
	}
}

// Len returns the number of changed stats.
func (ch *Changes) Len() int { return len(ch.slots) }

// Bytes returns the memory that ch needs.
func (ch *Changes) Bytes() int {
	return 160 + 24*cap(ch.blocks) + 2*cap(ch.slots) + 8*(cap(ch.raws)+cap(ch.deltas)+cap(ch.Ended))
}

// Each calls yield with each changed stat that is alive, and with the growth of
// a counter or of the number of values of a histogram, until yield returns
// false. The cursor has the value as of the poll, that of a histogram or text
// readout as of now. The cursor is valid during the call, and the methods that
// concern the name only after [Cursor.Locate].
func (ch *Changes) Each(yield func(c *Cursor, delta uint64) bool) {
	ch.s.orderMu.Lock()
	v := ch.s.viewLocked() // keeps stats that are alive now
	ch.s.orderMu.Unlock()
	defer v.Close()
	c := v.cursor(nil)
	c.step = &c.next[0]
	for _, part := range ch.blocks {
		for k := part.from; k < part.to; k++ {
			i := int(ch.slots[k])
			if !part.b.alive.has(i) {
				continue
			}
			*c.step = step{b: part.b, x: makeID(part.b.index, i), i: i, raw: ch.raws[k]}
			if !yield(&c, ch.deltas[k]) {
				return
			}
		}
	}
}

// Locate makes the methods that concern the name usable for a cursor of
// [Changes.Each].
func (c *Cursor) Locate() {
	if c.rec == nil {
		c.rec = c.b.record(c.i)
		n, w := uvarint(c.rec)
		c.cut = uint32(w) + uint32(n)
	}
}

// MergeChanges joins the changes of consecutive polls of a watch, of which there
// must be at least one.
func MergeChanges(list []*Changes) *Changes {
	if len(list) == 1 {
		return list[0]
	}
	out := &Changes{s: list[0].s}
	type sums struct {
		changed      bitset
		raws, deltas [slotsPerBlock]uint64
	}
	all := make(map[*block]*sums)
	var order []*block
	for _, ch := range list {
		out.Time, out.Interval = ch.Time, out.Interval+ch.Interval
		out.Lost, out.Reset = out.Lost || ch.Lost, out.Reset || ch.Reset
		out.Ended = append(out.Ended, ch.Ended...)
		for _, part := range ch.blocks {
			t := all[part.b]
			if t == nil {
				t = new(sums)
				all[part.b] = t
				order = append(order, part.b)
			}
			for k := part.from; k < part.to; k++ {
				i := ch.slots[k]
				t.changed.set(int(i))
				t.raws[i] = ch.raws[k]
				t.deltas[i] += ch.deltas[k]
			}
		}
	}
	for _, b := range order {
		t, from := all[b], len(out.slots)
		for w := range t.changed {
			for m := t.changed[w]; m != 0; m &= m - 1 {
				i := w*64 + bits.TrailingZeros64(m)
				out.slots, out.raws, out.deltas = append(out.slots, uint16(i)), append(out.raws, t.raws[i]), append(out.deltas, t.deltas[i])
			}
		}
		out.blocks = append(out.blocks, changedBlock{b, from, len(out.slots)})
	}
	return out
}
