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
	c      *Cursor
	length int
	list   unsafe.Pointer // of changes, which begin with an id
	size   uintptr        // of a change
	hints  int            // in c.hints
}

// aheadSteps is the size of a batch. A change takes at most three hints in a pass.
const aheadSteps = prefetch.Max / 4

const (
	mostRecords = 40 // a size that most records do not exceed
	lineBytes   = 64 // of the caches
)

// aheadOf returns an ahead for a list of changes, which begin with the id of a stat.
func aheadOf[T counterChange | gaugeChange](c *Cursor, list []T) ahead {
	return ahead{c: c, length: len(list), list: unsafe.Pointer(unsafe.SliceData(list)), size: unsafe.Sizeof(*new(T))}
}

// changed returns the stat of change n.
func (a *ahead) changed(n int) id { return *(*id)(unsafe.Add(a.list, uintptr(n)*a.size)) }

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

func (a *ahead) add(address uintptr) {
	a.c.hints[a.hints%prefetch.Max] = address
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
		at := uintptr(unsafe.Pointer(b)) // &b.offset would read from b to see whether it is nil
		if b != last {
			last = b
			a.add(at)
			a.add(at + unsafe.Offsetof(b.older))
		}
		a.add(at + unsafe.Offsetof(b.offset) + 4*uintptr(x&(1<<slotBits-1)))
	}
	a.done()
}

// pointers prefetches what blocks refer to.
func (a *ahead) pointers(from int) {
	var last *block
	for n := from; n < min(from+aheadSteps, a.length); n++ {
		if b := a.c.block(a.changed(n)); b != last {
			last = b
			a.add(uintptr(unsafe.Pointer(b.arena.Load())))
			a.add(uintptr(unsafe.Pointer(b.born.Load())))
		}
	}
	a.done()
}

func (a *ahead) records(from int) {
	var last *block
	for n := from; n < min(from+aheadSteps, a.length); n++ {
		x := a.changed(n)
		b := a.c.block(x)
		if b != last {
			last = b
			if born := b.born.Load(); born != nil {
				a.add(uintptr(unsafe.Pointer(unsafe.SliceData(*born))))
			}
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b.record(int(x & (1<<slotBits - 1))))))
		a.add(at)
		if end := at + mostRecords - 1; end/lineBytes != at/lineBytes {
			a.add(end)
		}
	}
	a.done()
}
