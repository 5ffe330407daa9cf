package histogram

import (
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// pageBins bins share one page, the unit in which memory for bins is made.
const pageBins = 64

// narrowPage holds a page of counters of 16 bits, four to a word. A counter
// stays below laneLimit: what would reach it moves laneLimit to the widePage.
type narrowPage [pageBins / 4]atomic.Uint64

// widePage holds the overflow of the counters of a page.
type widePage [pageBins]atomic.Uint64

const (
	laneBits  = 16
	laneMask  = 1<<laneBits - 1
	laneLimit = 1 << (laneBits - 1)
)

// pageOf returns the number of the page that bin i is on; bins below 0 are on
// pages below 0.
func pageOf(i int) int { return i >> 6 }

// sparse is an array of pages of which only those in use exist. Readers and
// users of existing pages need no lock; need is called with a lock held.
type sparse[P any] struct {
	window atomic.Pointer[window[P]]
}

// window is the part of a sparse array between the first and the last page in
// use. Its bounds never change: growing makes a new window with the same pages.
type window[P any] struct {
	base  int // number of the first page
	pages []atomic.Pointer[P]
}

// page returns page n, nil if it does not exist.
func (s *sparse[P]) page(n int) *P {
	w := s.window.Load()
	if w == nil {
		return nil
	}
	return w.page(n)
}

func (w *window[P]) page(n int) *P {
	if i := uint(n - w.base); i < uint(len(w.pages)) {
		return w.pages[i].Load()
	}
	return nil
}

// need creates page n if it does not exist, and returns by how many bytes s grew.
// Calls must not overlap.
func (s *sparse[P]) need(n int) (grown int) {
	w := s.window.Load()
	if w == nil || n < w.base || n >= w.base+len(w.pages) {
		had := 0
		if w != nil {
			had = len(w.pages)
		}
		w = w.including(n)
		grown = pointerBytes * (len(w.pages) - had)
		schedule.Point()
		s.window.Store(w)
	}
	if at := &w.pages[n-w.base]; at.Load() == nil {
		p := new(P)
		grown += int(unsafe.Sizeof(*p))
		schedule.Point()
		at.Store(p)
	}
	return grown
}

// including returns a window with the pages of w, which may be nil, and room
// for page n. Large windows get room to spare, so that growing step by step
// does not copy them each time.
func (w *window[P]) including(n int) *window[P] {
	if w == nil {
		return &window[P]{base: n, pages: make([]atomic.Pointer[P], 1)}
	}
	spare := len(w.pages) / 32
	first, end := w.base, w.base+len(w.pages)
	if n < first {
		first = n - spare
	} else {
		end = n + 1 + spare
	}
	g := &window[P]{base: first, pages: make([]atomic.Pointer[P], end-first)}
	for i := range w.pages {
		g.pages[i+w.base-first].Store(w.pages[i].Load())
	}
	return g
}

// span returns the numbers of the first page and of the one after the last.
func (s *sparse[P]) span() (first, end int) {
	w := s.window.Load()
	if w == nil {
		return 0, 0
	}
	return w.base, w.base + len(w.pages)
}
