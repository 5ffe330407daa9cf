//go:build gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package store

import (
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

func TestPaddedPagesAreAligned(t *testing.T) {
	for _, n := range []uintptr{0, 8, 16, pageSize - 8} {
		g := paddedPages(n)
		if off := uintptr(unsafe.Pointer(g)) % pageSize; off != 0 {
			t.Errorf("%d bytes of padding: pages begin at offset %d", n, off)
		}
		last := &g[pagesPerGroup-1]
		last.blk = new(block)
		last.word(slotsPerBlock - 1).count(3)
		if got := last.total(slotsPerBlock - 1); got != 3 {
			t.Errorf("%d bytes of padding: the last word counts %d, want 3", n, got)
		}
	}
}
