package statsd

import (
	"slices"
	"testing"
	"unsafe"
)

// TestCellNumbersAreDense takes a chunk of cells: there is memory for each number once.
func TestCellNumbersAreDense(t *testing.T) {
	var c cells
	for want := range uint32(2*cellsPerChunk + 1) {
		chunks := int(want)/cellsPerChunk + 1
		if x, ce := c.take(); x != want || ce != c.at(want) || c.count() != chunks*cellsPerChunk {
			t.Fatalf("cell %d with memory for %d, want %d of %d", x, c.count(), want, chunks*cellsPerChunk)
		}
	}
}

// TestMemoryOfFreeCells frees chunks of cells and takes them again: the numbers come back
// under generations that no cell had, and without the old hashes.
func TestMemoryOfFreeCells(t *testing.T) {
	var c cells
	taken := func(n int) (xs []uint32) {
		for range n {
			x, ce := c.take()
			ce.stat = unsafe.Pointer(ce)
			xs = append(xs, x)
		}
		return xs
	}
	free := func(xs ...uint32) {
		for _, x := range xs {
			c.retire(x)
		}
		c.recycle(c.retired)
		c.retired = nil
	}
	used := func() (xs []uint32) {
		c.each(func(x uint32, _ *cell) { xs = append(xs, x) })
		return xs
	}
	all := taken(3 * cellsPerChunk)
	kept := uint32(2*cellsPerChunk + 7)
	for _, x := range all {
		c.setHash(x, uint64(x)+1)
	}
	for range 4 { // the generation of one cell is ahead of the others
		c.at(5).gen.Add(1)
	}
	free(slices.DeleteFunc(slices.Clone(all), func(x uint32) bool { return x == kept })...)
	if got := used(); !slices.Equal(got, []uint32{kept}) {
		t.Fatalf("cells %v are in use, want %d", got, kept)
	}
	c.shrink()
	c.shrink() // nothing is left to free
	if n := c.count(); n != cellsPerChunk || len(c.free) != cellsPerChunk-1 || len(c.gone) != 2 {
		t.Fatalf("memory for %d cells, %d are free, %d chunks are gone", n, len(c.free), len(c.gone))
	}
	if c.hashOf(0) != 0 || c.hashOf(kept) != uint64(kept)+1 {
		t.Errorf("hashes %d and %d", c.hashOf(0), c.hashOf(kept))
	}
	again := taken(3*cellsPerChunk - 1)
	if got := used(); len(got) != 3*cellsPerChunk || c.count() != 3*cellsPerChunk || c.known != 3 {
		t.Errorf("%d cells are in use of %d", len(got), c.count())
	}
	for _, x := range again {
		want := uint32(1) // of the chunk that stayed
		switch x / cellsPerChunk {
		case 0:
			want = 4 + 1 + 1
		case 1:
			want = 1 + 1
		}
		if got := c.at(x).gen.Load(); got != want {
			t.Fatalf("cell %d has generation %d, want %d", x, got, want)
		}
	}
}

// TestHashesOfCells: a cell has none until one is set, whatever cells beside it have.
func TestHashesOfCells(t *testing.T) {
	var c cells
	for _, x := range []uint32{0, cellsPerChunk - 1, cellsPerChunk} {
		c.setHash(x, 0)
		if len(c.exposed) != 0 {
			t.Errorf("cell %d takes memory for no hash", x)
		}
	}
	c.setHash(2*cellsPerChunk, 5)
	c.setHash(cellsPerChunk, 0)
	if c.exposed[1] != nil {
		t.Error("a chunk takes memory for no hash")
	}
	for x, want := range map[uint32]uint64{2 * cellsPerChunk: 5, 2*cellsPerChunk + 1: 0, 2*cellsPerChunk - 1: 0, 0: 0, 3 * cellsPerChunk: 0} {
		if got := c.hashOf(x); got != want {
			t.Errorf("cell %d has hash %d, want %d", x, got, want)
		}
	}
	c.setHash(2*cellsPerChunk, 0)
	if got := c.hashOf(2 * cellsPerChunk); got != 0 {
		t.Errorf("hash %d after it was taken away", got)
	}
}

// TestOldestTimestampThatCounts checks the bounds at which a value replaces a newer one:
// equal timestamps, and a timestamp further ahead than a clock may be.
func TestOldestTimestampThatCounts(t *testing.T) {
	for _, tt := range []struct {
		last, t, now uint64
		want         bool
	}{
		{100, 100, 100, true},
		{100, 99, 100, false},
		{100, 99, 100 - maxAhead, false},
		{100, 99, 100 - maxAhead - 1, true},
	} {
		var ce cell
		ce.carry.Store(tt.last)
		if got := ce.newest(tt.t, tt.now); got != tt.want {
			t.Errorf("%d after %d at %d: %t, want %t", tt.t, tt.last, tt.now, got, tt.want)
		}
		if want := map[bool]uint64{true: tt.t, false: tt.last}[tt.want]; ce.carry.Load() != want {
			t.Errorf("%d after %d at %d leaves %d, want %d", tt.t, tt.last, tt.now, ce.carry.Load(), want)
		}
	}
}
