package statsd

// cellIndex finds cells by cells.hashOf. It is an open addressing table of cell
// numbers with linear probing, which takes a tenth of the memory of a map for a
// million series. registry.mu guards it.
type cellIndex struct {
	cells *cells
	slots []uint32 // cell number + 1; 0: empty. A power of two
	used  int
}

func newCellIndex(c *cells) cellIndex {
	return cellIndex{cells: c, slots: make([]uint32, 64)}
}

// find returns the cell whose hash is h.
func (x *cellIndex) find(h uint64) (number uint32, ok bool) {
	mask := uint64(len(x.slots) - 1)
	for i := h & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if n := x.slots[i] - 1; x.cells.hashOf(n) == h {
			return n, true
		}
	}
	return 0, false
}

// insert adds a cell whose hash is set and not yet in x.
func (x *cellIndex) insert(number uint32) {
	if x.used++; x.used*4 > len(x.slots)*3 {
		x.resize(2 * len(x.slots))
	}
	x.place(number + 1)
}

func (x *cellIndex) resize(size int) {
	old := x.slots
	x.slots = make([]uint32, size)
	for _, s := range old {
		if s != 0 {
			x.place(s)
		}
	}
}

func (x *cellIndex) place(s uint32) {
	mask := uint64(len(x.slots) - 1)
	i := x.cells.hashOf(s-1) & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}

// remove removes a cell, if it is in x, and moves up the entries that it
// displaced.
func (x *cellIndex) remove(number uint32) {
	mask := uint64(len(x.slots) - 1)
	i := x.cells.hashOf(number) & mask
	for ; x.slots[i] != number+1; i = (i + 1) & mask {
		if x.slots[i] == 0 {
			return
		}
	}
	for j := i; ; {
		j = (j + 1) & mask
		if x.slots[j] == 0 {
			break
		}
		// The entry at j can move to i unless its home lies between.
		home := x.cells.hashOf(x.slots[j]-1) & mask
		if (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	if x.used--; x.used*8 < len(x.slots) && len(x.slots) > 64 {
		x.resize(len(x.slots) / 2)
	}
}
