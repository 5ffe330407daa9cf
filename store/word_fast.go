//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package store

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// This file and word_portable.go are twins: the memory behind counters and
// gauges. Here a handle is a pointer to one 8-byte word inside a page, and the
// page is found by clearing the low bits of that pointer.
//
// A word starts out as a plain atomic. When one scheduler slot (a "P") adds to
// a page's counters very often between two flushes, it gets its own copy of
// the page, and from then on adds there without atomics while nothing else can
// run on the slot. The total of a counter is the shared word plus the words of
// all slots; each only ever grows. Cold pages cost 8 bytes a counter, hot ones 8 more for each
// slot that uses them, and two slots never write the same cache line.

const pageSize = 8192

// pagesPerGroup pages are allocated together. More than 32 KiB of memory is a
// span of its own, which the runtime starts at a multiple of 8 KiB; newPages
// checks that it did, and otherwise wastes memory.
const pagesPerGroup = 5

// hotAdds is the number of slow adds to one page, between two flushes, after
// which the adding slot gets its own copy.
const hotAdds = 4096

// word is the memory of one counter or gauge. Its zero value is not usable
// outside a page.
type word struct{ shared atomic.Uint64 }

type page struct {
	blk    *block
	slots  unsafe.Pointer // *[...]unsafe.Pointer of len nslots, each nil or *slotPage
	nslots int
	heat   uint64 // slow adds since the last flush; racy on purpose, it only steers

	touch [slotsPerBlock]uint8 // 1: the shared word was written since the last flush
	words [slotsPerBlock]word

	_ [pageSize - 32 - slotsPerBlock*9]byte
}

// slotPage is the part of a page that one scheduler slot owns. Only code
// that holds that slot writes words; touch is also cleared by the flush.
type slotPage struct {
	touch [slotsPerBlock]uint8
	words [slotsPerBlock]uint64
}

var _ [0]struct{} = [unsafe.Sizeof(page{}) - pageSize]struct{}{}

// newPages allocates a group of pages, a single one if the runtime does not align the group.
func newPages() []*page {
	g := new([pagesPerGroup]page)
	if !aligned(unsafe.Pointer(g)) {
		return []*page{pickPage()}
	}
	pages := make([]*page, pagesPerGroup)
	for i := range g {
		pages[i] = &g[i]
	}
	return pages
}

func aligned(p unsafe.Pointer) bool { return uintptr(p)%pageSize == 0 }

// shiftedPage is a page and a word. Of as many in a row as a page has words, each
// begins at another offset, so that one is aligned wherever the row begins.
type shiftedPage struct {
	page
	_ uint64
}

const shifts = pageSize / 8

// pickPage allocates an aligned page without relying on the runtime. It takes the memory of
// shifts pages: padding of the right size would not do, because the garbage collector has
// to know at which addresses the pointers will be before memory is allocated.
func pickPage() *page {
	row := new([shifts]shiftedPage)
	return &row[alignedShift(uintptr(unsafe.Pointer(row)))].page
}

// alignedShift returns the index of the aligned page in a row at address.
func alignedShift(address uintptr) int { return int(-address % pageSize / 8) }

func (w *word) page() *page {
	return (*page)(unsafe.Pointer(uintptr(unsafe.Pointer(w)) &^ (pageSize - 1)))
}

func (p *page) word(i int) *word { return &p.words[i] }

// address returns the address of word i without reading the page.
func (p *page) address(i int) uintptr {
	return uintptr(unsafe.Pointer(p)) + unsafe.Offsetof(p.words) + uintptr(i)*unsafe.Sizeof(word{})
}

func (w *word) index(p *page) int {
	return int(uintptr(unsafe.Pointer(w))-uintptr(unsafe.Pointer(&p.words))) / 8
}

// home returns the block of w and its index there.
func (w *word) home() (*block, int) {
	p := w.page()
	return p.blk, w.index(p)
}

// mark marks the shared word as written.
func (w *word) mark(p *page) {
	// The offset of touch[i], if w is words[i].
	const from = int(unsafe.Offsetof(p.touch)) - int(unsafe.Offsetof(p.words))/8
	if schedule.Enabled { // a call, even of nothing, would cost the inlining
		schedule.Point()
	}
	at := int(uintptr(unsafe.Pointer(w)) % pageSize / 8)
	if t := (*uint8)(unsafe.Add(unsafe.Pointer(p), from+at)); *t == 0 {
		*t = 1
	}
}

// The offsets of words[i] and touch[i] of a slotPage, less i words and i bytes, where
// words[i] of the page has the offset 0.
const (
	ownWords = int(unsafe.Offsetof(slotPage{}.words)) - int(unsafe.Offsetof(page{}.words))
	ownTouch = int(unsafe.Offsetof(slotPage{}.touch)) - int(unsafe.Offsetof(page{}.words))/8
)

// count adds n to a counter. It calls nothing between Hold and Release.
//
//go:nosplit
func (w *word) count(n uint64) {
	s := percpu.Hold()
	p := (*page)(unsafe.Pointer(uintptr(unsafe.Pointer(w)) &^ (pageSize - 1)))
	if uint(s) < uint(p.nslots) {
		if own := *(*unsafe.Pointer)(unsafe.Add(p.slots, uintptr(s)*unsafe.Sizeof(p.slots))); own != nil {
			at := int(uintptr(unsafe.Pointer(w)) % pageSize)
			word := (*uint64)(unsafe.Add(own, at+ownWords))
			touch := (*uint8)(unsafe.Add(own, at/8+ownTouch))
			*word += n
			if schedule.Enabled {
				schedule.Point()
			}
			*touch = 1
			percpu.Release()
			return
		}
	}
	percpu.Release()
	w.countShared(p, s, n)
}

func (w *word) countShared(p *page, slot int, n uint64) {
	w.shared.Add(n)
	w.mark(p)
	p.heat++
	if p.heat >= hotAdds {
		p.heat = 0
		p.own(slot)
	}
}

// own makes a copy of the page for slot. Losing a race is harmless: the next hot
// phase tries again.
func (p *page) own(slot int) {
	if !percpu.CanHold() {
		return
	}
	p.blk.hotMu.Lock()
	defer p.blk.hotMu.Unlock()
	if p.nslots == 0 {
		n := max(runtime.GOMAXPROCS(0), slot+1)
		t := make([]*slotPage, n)
		atomic.StorePointer(&p.slots, unsafe.Pointer(unsafe.SliceData(t)))
		schedule.Point()
		p.nslots = n // after slots: a reader that sees nslots sees the table
	}
	if slot >= p.nslots {
		return // GOMAXPROCS grew since: this slot stays on the shared word
	}
	at := (*unsafe.Pointer)(unsafe.Add(p.slots, uintptr(slot)*unsafe.Sizeof(p.slots)))
	if atomic.LoadPointer(at) == nil {
		schedule.Point()
		atomic.StorePointer(at, unsafe.Pointer(new(slotPage)))
	}
}

// slot returns the copy of p that slot s owns, nil if it has none.
func (p *page) slot(s int) *slotPage {
	return (*slotPage)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Add(p.slots, uintptr(s)*unsafe.Sizeof(p.slots)))))
}

// total returns the sum of all increments of counter i.
func (p *page) total(i int) uint64 {
	t := p.words[i].shared.Load()
	for s := range p.nslots {
		schedule.Point()
		if sp := p.slot(s); sp != nil {
			t += atomic.LoadUint64(&sp.words[i])
		}
	}
	return t
}

// takeTouched sets the bits in dst of words, among the first n, that were written
// since the last call, and clears their marks. A write that races with
// it is seen by this call or the next: marks are set after the value is written
// and taken, with a full fence, before the value is read.
func (p *page) takeTouched(dst *bitset, n int) (any bool) {
	p.heat = 0
	any = takeTouched(&p.touch, dst, n)
	for s := range p.nslots {
		if sp := p.slot(s); sp != nil && takeTouched(&sp.touch, dst, n) {
			any = true
		}
	}
	return any
}

func takeTouched(touch *[slotsPerBlock]uint8, dst *bitset, n int) (any bool) {
	for row := 0; row < n; row += 64 {
		if !marked(touch, row) {
			continue
		}
		for i := row; i < min(row+64, n); i += 8 {
			at := (*uint64)(unsafe.Pointer(&touch[i]))
			if atomic.LoadUint64(at) == 0 {
				continue
			}
			schedule.Point()
			dst[i/64] |= gather(atomic.SwapUint64(at, 0)) << (i % 64)
			schedule.Point()
			any = true
		}
	}
	return any
}

// marked reports whether any of the 64 marks from touch[row] on is set.
func marked(touch *[slotsPerBlock]uint8, row int) bool {
	m := (*[8]uint64)(unsafe.Pointer(&touch[row]))
	return atomic.LoadUint64(&m[0])|atomic.LoadUint64(&m[1])|atomic.LoadUint64(&m[2])|atomic.LoadUint64(&m[3])|
		atomic.LoadUint64(&m[4])|atomic.LoadUint64(&m[5])|atomic.LoadUint64(&m[6])|atomic.LoadUint64(&m[7]) != 0
}

// unmarked reports whether none of the first n words has a mark.
func (p *page) unmarked(n int) bool {
	for s := -1; s < p.nslots; s++ {
		touch := &p.touch
		if s >= 0 {
			sp := p.slot(s)
			if sp == nil {
				continue
			}
			touch = &sp.touch
		}
		for row := 0; row < n; row += 64 {
			if marked(touch, row) {
				return false
			}
		}
	}
	return true
}

// gather returns the low bits of the eight bytes of b, each of which is 0 or 1.
func gather(b uint64) uint64 { return b * 0x0102040810204080 >> 56 }

// scatter undoes gather.
func scatter(bits uint64) uint64 {
	each := bits * 0x0101010101010101 & 0x8040201008040201
	return (each + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101
}

// dropTouched clears the marks of the words in which.
func (p *page) dropTouched(which *bitset) {
	dropTouched(&p.touch, which)
	for s := range p.nslots {
		if sp := p.slot(s); sp != nil {
			dropTouched(&sp.touch, which)
		}
	}
}

func dropTouched(touch *[slotsPerBlock]uint8, which *bitset) {
	for i := 0; i < slotsPerBlock; i += 8 {
		if m := which[i/64] >> (i % 64) & 0xff; m != 0 {
			schedule.Point()
			atomic.AndUint64((*uint64)(unsafe.Pointer(&touch[i])), ^scatter(m))
			schedule.Point()
		}
	}
}

// eachTouched is takeTouched without clearing marks.
func (p *page) eachTouched(dst *bitset, n int) (any bool) {
	any = eachTouched(&p.touch, dst, n)
	for s := range p.nslots {
		if sp := p.slot(s); sp != nil && eachTouched(&sp.touch, dst, n) {
			any = true
		}
	}
	return any
}

func eachTouched(touch *[slotsPerBlock]uint8, dst *bitset, n int) (any bool) {
	for row := 0; row < n; row += 64 {
		if !marked(touch, row) {
			continue
		}
		for i := row; i < min(row+64, n); i += 8 {
			dst[i/64] |= gather(atomic.LoadUint64((*uint64)(unsafe.Pointer(&touch[i])))) << (i % 64)
		}
		any = true
	}
	return any
}

// touched reports whether the shared word i, which gauges use, was written since
// the last takeTouched.
func (p *page) touched(i int) bool {
	at := (*uint64)(unsafe.Pointer(&p.touch[i&^7]))
	return atomic.LoadUint64(at)>>(8*(i&7))&1 != 0
}

// written reports whether counter i was written since the last takeTouched.
func (p *page) written(i int) bool {
	if p.touched(i) {
		return true
	}
	for s := range p.nslots {
		if sp := p.slot(s); sp != nil && atomic.LoadUint64((*uint64)(unsafe.Pointer(&sp.touch[i&^7])))>>(8*(i&7))&1 != 0 {
			return true
		}
	}
	return false
}

func (w *word) load() uint64 { return w.shared.Load() }

func (w *word) set(v uint64) {
	w.shared.Store(v)
	w.mark(w.page())
}

func (w *word) add(n uint64) uint64 {
	v := w.shared.Add(n)
	w.mark(w.page())
	return v
}

func (w *word) swapIf(old, v uint64) bool {
	if !w.shared.CompareAndSwap(old, v) {
		return false
	}
	w.mark(w.page())
	return true
}
