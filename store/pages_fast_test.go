//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package store

import (
	"runtime"
	"strconv"
	"testing"
	"unsafe"
)

// TestSlotsBeyondTheTable: a slot that GOMAXPROCS added later gets no copy of a page.
func TestSlotsBeyondTheTable(t *testing.T) {
	var table [3]*slotPage
	p := newPages()[0]
	p.blk = new(block)
	p.slots, p.nslots = unsafe.Pointer(&table[0]), 2
	p.own(2)
	p.own(1)
	if table[0] != nil || table[1] == nil || table[2] != nil {
		t.Errorf("copies: %v", table)
	}
}

// TestPagesAreAligned: the runtime aligns groups of pages. Where it did not, a page is
// picked that is aligned.
func TestPagesAreAligned(t *testing.T) {
	group := newPages()
	if len(group) != pagesPerGroup {
		t.Errorf("a group of %d pages, want %d: the runtime does not align it", len(group), pagesPerGroup)
	}
	for _, p := range append(group, pickPage(), pickPage()) {
		if !aligned(unsafe.Pointer(p)) {
			t.Errorf("a page at %p", p)
		}
		p.blk = new(block)
		last := p.word(slotsPerBlock - 1)
		last.count(3)
		if got := p.total(slotsPerBlock - 1); got != 3 {
			t.Errorf("the last word counts %d, want 3", got)
		}
	}
	for off := uintptr(0); off < pageSize; off += 8 { // wherever the runtime places a row
		address := 3*pageSize + off
		i := alignedShift(address)
		if i < 0 || i >= shifts || (address+uintptr(i)*unsafe.Sizeof(shiftedPage{}))%pageSize != 0 {
			t.Fatalf("offset %d: page %d of the row is picked", off, i)
		}
	}
}

// TestPagesOfSlots: what one slot has added to its own copy of a page is marked and counted
// like what all share.
func TestPagesOfSlots(t *testing.T) {
	st := New(Options{})
	const first, other, shared = 3, 64 + 9, 200
	var counters []*Counter
	for i := range shared + 1 {
		counters = append(counters, st.Root().Counter(strconv.Itoa(i)))
	}
	b, _ := counters[0].w.home()
	b.pg.own(0)
	slot := b.pg.slot(0)
	add := func(i int, n uint64) { slot.words[i] += n; slot.touch[i] = 1 } // as the owner does
	var only bitset
	only.set(first)
	only.set(other)
	add(first, 5)
	add(other, 7)
	for i := range shared + 1 {
		if b.pg.touched(i) || b.pg.written(i) != only.has(i) {
			t.Errorf("counter %d: touched %t, written %t", i, b.pg.touched(i), b.pg.written(i))
		}
	}
	var seen bitset
	if b.pg.unmarked(b.n) || !b.pg.eachTouched(&seen, b.n) || seen != only {
		t.Errorf("marked are %x", seen)
	}
	if first, other := counters[first].Total(), counters[other].Total(); first != 5 || other != 7 {
		t.Errorf("totals %d and %d, want 5 and 7", first, other)
	}
	counters[shared].w.countShared(b.pg, 0, 1)
	only.set(shared)
	var drop, taken bitset
	drop.set(other)
	drop.set(other + 1)
	b.pg.dropTouched(&drop)
	if b.pg.written(other) || !b.pg.written(first) || !b.pg.written(shared) {
		t.Error("other marks were dropped than asked for")
	}
	add(other, 1)
	if !b.pg.takeTouched(&taken, b.n) || taken != only { // which the flush below does not see again
		t.Errorf("taken are %x, want %x", taken, only)
	}
	if b.pg.takeTouched(&taken, b.n) || b.pg.eachTouched(&taken, b.n) || b.pg.written(first) || !b.pg.unmarked(b.n) {
		t.Error("marks are taken twice")
	}

	// A watch and a flush see them, also of a counter that ends.
	w := st.Watch()
	defer w.Close()
	add(first, 2)
	if n := w.Poll().Len(); n != 1 {
		t.Errorf("the watch reports %d changes, want 1", n)
	}
	add(other, 3)
	if got, want := sorted(deltas(st)), "3+7 73+11"; got != want {
		t.Errorf("the flush reports %q, want %q", got, want)
	}
	sc := st.Scope("ending")
	ending := sc.Counter("c")
	_, i := ending.w.home()
	add(i, 4)
	sc.Close()
	if got, want := deltas(st), "ending.c+4 "; got != want {
		t.Errorf("the flush reports %q, want %q", got, want)
	}
}

// TestHotPagesAreOwned: a slot gets a copy of a page after many slow adds between two
// flushes, and not before.
func TestHotPagesAreOwned(t *testing.T) {
	st := New(Options{})
	c := st.Root().Counter("c")
	b, _ := c.w.home()
	add := func(n int) {
		for range n {
			c.w.countShared(b.pg, 1, 1)
		}
	}
	add(hotAdds - 1)
	deltas(st)
	add(hotAdds - 1)
	if b.pg.nslots != 0 {
		t.Error("a page has copies before it is hot")
	}
	add(1)
	if b.pg.nslots < max(2, runtime.GOMAXPROCS(0)) || b.pg.slot(0) != nil || b.pg.slot(1) == nil {
		t.Errorf("%d slots, copies %v and %v", b.pg.nslots, b.pg.slot(0), b.pg.slot(1))
	}
	own := b.pg.slot(1)
	if add(hotAdds); b.pg.slot(1) != own {
		t.Error("a slot got another copy")
	}
	if got := c.Total(); got != 3*hotAdds-1 {
		t.Errorf("total %d, want %d", got, 3*hotAdds-1)
	}
}

// TestBitsAndBytes: scatter undoes gather.
func TestBitsAndBytes(t *testing.T) {
	for m := range uint64(256) {
		bytes := scatter(m)
		for i := range 8 {
			if got := bytes >> (8 * i) & 0xff; got != m>>i&1 {
				t.Fatalf("byte %d of %08b is %d", i, m, got)
			}
		}
		if got := gather(bytes); got != m {
			t.Fatalf("%08b is gathered as %08b", m, got)
		}
	}
}
