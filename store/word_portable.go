//go:build !gc || !go1.26 || go1.27 || !amd64 || race || msan || asan || purego

package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// This file implements word_fast.go with atomics only: for the race detector and
// the sanitizers, for other processors, and for builds with the tag purego.

// word is the memory of one counter or gauge. Its zero value is not usable
// outside a page.
type word struct {
	shared atomic.Uint64
	marked atomic.Uint32
	i      uint32
	pg     *page
}

type page struct {
	blk   *block
	words [slotsPerBlock]word
}

// newPages allocates a group of pages.
func newPages() []*page {
	p := new(page)
	for i := range p.words {
		p.words[i].i, p.words[i].pg = uint32(i), p
	}
	return []*page{p}
}

func (p *page) word(i int) *word { return &p.words[i] }

// address returns the address of word i without reading the page.
func (p *page) address(i int) uintptr {
	return uintptr(unsafe.Pointer(p)) + unsafe.Offsetof(p.words) + uintptr(i)*unsafe.Sizeof(word{})
}

// home returns the block of w and its index there.
func (w *word) home() (*block, int) { return w.pg.blk, int(w.i) }

func (w *word) mark() {
	if schedule.Enabled { // a call, even of nothing, would cost the inlining
		schedule.Point()
	}
	if w.marked.Load() == 0 {
		w.marked.Store(1)
	}
}

// count adds n to a counter.
func (w *word) count(n uint64) { w.add(n) }

// total returns the sum of all increments of counter i.
func (p *page) total(i int) uint64 { return p.words[i].shared.Load() }

// takeTouched sets the bits in dst of words, among the first n, that were written
// since the last call, and clears their marks.
func (p *page) takeTouched(dst *bitset, n int) (any bool) {
	for i := range n {
		if w := &p.words[i]; w.marked.Load() != 0 && w.marked.Swap(0) != 0 {
			schedule.Point()
			dst[i/64] |= 1 << (i % 64)
			any = true
		}
	}
	return any
}

// unmarked reports whether none of the first n words has a mark.
func (p *page) unmarked(n int) bool {
	for i := range n {
		if p.touched(i) {
			return false
		}
	}
	return true
}

// dropTouched clears the marks of the words in which.
func (p *page) dropTouched(which *bitset) {
	for i := range p.words {
		if which.has(i) {
			schedule.Point()
			p.words[i].marked.Store(0)
			schedule.Point()
		}
	}
}

// eachTouched is takeTouched without clearing marks.
func (p *page) eachTouched(dst *bitset, n int) (any bool) {
	for i := range n {
		if p.touched(i) {
			dst[i/64] |= 1 << (i % 64)
			any = true
		}
	}
	return any
}

// touched reports whether word i was written since the last takeTouched.
func (p *page) touched(i int) bool { return p.words[i].marked.Load() != 0 }

// written reports whether counter i was written since the last takeTouched.
func (p *page) written(i int) bool { return p.touched(i) }

func (w *word) load() uint64 { return w.shared.Load() }

func (w *word) set(v uint64) {
	w.shared.Store(v)
	w.mark()
}

func (w *word) add(n uint64) uint64 {
	v := w.shared.Add(n)
	w.mark()
	return v
}

func (w *word) swapIf(old, v uint64) bool {
	if !w.shared.CompareAndSwap(old, v) {
		return false
	}
	w.mark()
	return true
}
