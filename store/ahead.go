package store

import (
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

// ahead prefetches what [Cursor.read] and the methods of the cursor need of the changes
// of a snapshot, which are far apart in memory. Three loads depend on each other: of the
// block and the offset in it, of what the block refers to, and of the record. They begin
// three, two and one batch before the change is read.
type ahead struct {
	c       *Cursor
	length  int
	changed func(n int) id
	hints   int // in c.hints
}

// aheadSteps is the size of a batch. A change takes four hints at most.
const aheadSteps = prefetch.Max / 4

// ahead returns an ahead for a list of changes, of which changed returns the stats.
func (c *Cursor) ahead(length int, changed func(n int) id) ahead {
	return ahead{c: c, length: length, changed: changed}
}

// before is called before change n is read, in order.
func (a *ahead) before(n int) {
	if !prefetch.Enabled || n%aheadSteps != 0 {
		return
	}
	if n == 0 {
		a.blocks(0)
		a.blocks(aheadSteps)
		a.blocks(2 * aheadSteps)
		a.pointers(0)
		a.pointers(aheadSteps)
		a.records(0)
	}
	a.blocks(n + 3*aheadSteps)
	a.pointers(n + 2*aheadSteps)
	a.records(n + aheadSteps)
}

// add adds a hint.
func (a *ahead) add(p unsafe.Pointer) {
	a.c.hints[a.hints%prefetch.Max] = uintptr(p)
	a.hints++
}

// done passes on the hints.
func (a *ahead) done() {
	prefetch.Lines(&a.c.hints, a.hints)
	a.hints = 0
}

// blocks prefetches offsets, and blocks at their first change in the batch.
func (a *ahead) blocks(from int) {
	var last *block
	for n := from; n < min(from+aheadSteps, a.length); n++ {
		x := a.changed(n)
		b := a.c.block(x)
		if b != last {
			last = b
			a.add(unsafe.Pointer(b))
			a.add(unsafe.Pointer(&b.older))
		}
		a.add(unsafe.Pointer(&b.offset[x&(1<<slotBits-1)]))
	}
	a.done()
}

// pointers prefetches what blocks refer to.
func (a *ahead) pointers(from int) {
	var last *block
	for n := from; n < min(from+aheadSteps, a.length); n++ {
		if b := a.c.block(a.changed(n)); b != last {
			last = b
			a.add(unsafe.Pointer(b.arena.Load()))
			a.add(unsafe.Pointer(b.born.Load()))
		}
	}
	a.done()
}

// records prefetches records.
func (a *ahead) records(from int) {
	var last *block
	for n := from; n < min(from+aheadSteps, a.length); n++ {
		x := a.changed(n)
		b := a.c.block(x)
		if b != last {
			last = b
			if born := b.born.Load(); born != nil {
				a.add(unsafe.Pointer(unsafe.SliceData(*born)))
			}
		}
		a.add(unsafe.Pointer(unsafe.SliceData(b.record(int(x & (1<<slotBits - 1))))))
	}
	a.done()
}
