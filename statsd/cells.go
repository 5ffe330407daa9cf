package statsd

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/directory"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// group is the kind of a stat to senders. Each name has one group.
type group uint8

const (
	counters group = iota
	gauges
	histograms
	sets

	groups = 4
)

// String returns the word for g in metrics and suffixes.
func (g group) String() string { return [groups]string{"counter", "gauge", "histogram", "set"}[g] }

func storeKind(g group) store.Kind {
	return [groups]store.Kind{store.KindCounter, store.KindGauge, store.KindHistogram, store.KindGauge}[g]
}

func groupOf(t line.Type) group {
	switch t {
	case line.Counter:
		return counters
	case line.Gauge:
		return gauges
	case line.Set:
		return sets
	default:
		return histograms
	}
}

// cell is one series. Workers reach it by its number, which their caches keep
// together with the generation of the cell. The generation changes when the
// series ends.
//
// All fields but gen, family and carry are written under registry.mu while no worker
// knows the number. Workers read them after they got the number under that
// lock.
type cell struct {
	gen    atomic.Uint32
	group  group
	role   role
	cost   uint16        // charged for it, in units of costUnit
	family atomic.Uint32 // number, or solo and a hash; see cells.family
	first  uint32        // number of the segment
	carry  atomic.Uint64 // of a counter: fractions; of a gauge: the newest timestamp, in unix seconds

	// stat is the stat or the set. Its type follows from the group, which saves the
	// word that an interface needs for it. Nil: the cell is free.
	stat unsafe.Pointer
}

// The stat of a cell by its group.

func (ce *cell) counter() *store.Counter     { return (*store.Counter)(ce.stat) }
func (ce *cell) gauge() *store.FloatGauge    { return (*store.FloatGauge)(ce.stat) }
func (ce *cell) histogram() *store.Histogram { return (*store.Histogram)(ce.stat) }
func (ce *cell) set() *set                   { return (*set)(ce.stat) }

// handle returns the stat that keeps the name of the series in the store. A
// histogram has none.
func (ce *cell) handle() store.Handle {
	switch ce.group {
	case counters:
		return ce.counter()
	case gauges:
		return ce.gauge()
	case sets:
		return ce.set().gauge
	}
	return nil
}

// role is the purpose of a series, and flags.
type role uint8

const (
	ordinary      role = iota
	overflowBare       // receives samples over a limit
	overflowNamed      // the same for one name

	// bare marks the series without labels of its family in the exposition.
	bare role = 0x80
	// timer marks a histogram of milliseconds.
	timer role = 0x40

	flags = bare | timer
)

const cellsPerChunk = 1024

type cellChunk [cellsPerChunk]cell

// cells holds all cells by number.
type cells struct {
	chunks directory.Directory[cellChunk] // changed under registry.mu

	// registry.mu guards the rest.

	known   int // chunks so far, gone ones included
	free    []uint32
	retired []uint32
	gone    []goneChunk
	exposed []*[cellsPerChunk]uint64 // see hashOf, by chunk; nil or missing: all are 0
}

// hashOf returns the hash of what the exposition shows of cell x, 0 if it has no
// labels or another cell has the same. registry.mu must be held.
func (c *cells) hashOf(x uint32) uint64 {
	if i := int(x / cellsPerChunk); i < len(c.exposed) && c.exposed[i] != nil {
		return c.exposed[i][x%cellsPerChunk]
	}
	return 0
}

func (c *cells) setHash(x uint32, h uint64) {
	i := int(x / cellsPerChunk)
	if h == 0 && (i >= len(c.exposed) || c.exposed[i] == nil) {
		return
	}
	for len(c.exposed) <= i {
		c.exposed = append(c.exposed, nil)
	}
	if c.exposed[i] == nil {
		c.exposed[i] = new([cellsPerChunk]uint64)
	}
	c.exposed[i][x%cellsPerChunk] = h
}

// goneChunk is a chunk whose memory was freed. Its cells get higher generations
// when it comes back, so that nothing takes them for the old ones.
type goneChunk struct{ index, gen uint32 }

func (c *cells) at(x uint32) *cell {
	return &c.chunks.At(int(x / cellsPerChunk))[x%cellsPerChunk]
}

// each calls f with the cells that are not free.
func (c *cells) each(f func(x uint32, ce *cell)) {
	for i := range c.known {
		chunk := c.chunks.At(i)
		for j := 0; chunk != nil && j < cellsPerChunk; j++ {
			if ce := &chunk[j]; ce.stat != nil {
				f(uint32(i*cellsPerChunk+j), ce)
			}
		}
	}
}

// count returns the number of cells that there is memory for.
func (c *cells) count() int { return (c.known - len(c.gone)) * cellsPerChunk }

// take returns a free cell. registry.mu must be held.
func (c *cells) take() (uint32, *cell) {
	if len(c.free) == 0 {
		c.grow()
	}
	x := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return x, c.at(x)
}

// grow adds a chunk of free cells.
func (c *cells) grow() {
	chunk, index := new(cellChunk), c.known
	if n := len(c.gone); n > 0 {
		for i := range chunk {
			chunk[i].gen.Store(c.gone[n-1].gen)
		}
		index, c.gone = int(c.gone[n-1].index), c.gone[:n-1]
	} else {
		c.known++
	}
	c.chunks.Put(index, chunk)
	for i := cellsPerChunk - 1; i >= 0; i-- {
		c.free = append(c.free, uint32(index*cellsPerChunk+i))
	}
}

// shrink frees the chunks in which all cells are free. registry.mu and the mu
// of all workers must be held, and no cache may refer to a free cell.
func (c *cells) shrink() {
	free := make([]int, c.known)
	for _, x := range c.free {
		free[x/cellsPerChunk]++
	}
	kept := make([]uint32, 0, len(c.free)%cellsPerChunk)
	for _, x := range c.free {
		if free[x/cellsPerChunk] < cellsPerChunk {
			kept = append(kept, x)
		}
	}
	for i, n := range free {
		chunk := c.chunks.At(i)
		if n < cellsPerChunk || chunk == nil {
			continue
		}
		gen := uint32(0)
		for j := range chunk {
			gen = max(gen, chunk[j].gen.Load())
		}
		c.chunks.Put(i, nil)
		if i < len(c.exposed) {
			c.exposed[i] = nil
		}
		c.gone = append(c.gone, goneChunk{uint32(i), gen + 1})
	}
	c.free = kept
}

// retire ends the use of cell x. Cached numbers no longer lead to it, but a
// worker that found it before can still use it. registry.mu must be held.
func (c *cells) retire(x uint32) {
	c.at(x).gen.Add(1)
	c.retired = append(c.retired, x)
}

// recycle frees retired cells that no worker uses any more. registry.mu must be
// held.
func (c *cells) recycle(xs []uint32) {
	for _, x := range xs {
		ce := c.at(x)
		ce.stat = nil
		ce.carry.Store(0)
	}
	c.free = append(c.free, xs...)
}

// count adds x, which is between 0 and 2^53, to a counter. Fractions are
// collected, rounded up to multiples of 2^-32, and counted when they reach a
// whole number: 0.7/0.1 counts 7 although its float64 is a little less.
func (ce *cell) count(x float64) {
	c := ce.counter()
	whole := uint64(x)
	if part := x - float64(whole); part != 0 {
		f := uint64(math.Ceil(part * (1 << 32)))
		// In 32 bits, so that the collected fractions can wrap.
		now := ce.carry.Add(f)
		whole += uint64(uint32(now>>32) - uint32((now-f)>>32))
	}
	if whole != 0 {
		c.Add(whole)
	}
}

// convert changes the values of a sample to the unit of its histogram, which is
// milliseconds if a timer created it, and seconds otherwise.
func (ce *cell) convert(typ line.Type, values []line.Value) {
	factor := 1000.0
	switch isTimer := typ == line.Timer; {
	case isTimer == (ce.role&timer != 0):
		return
	case isTimer:
		factor = 1e-3
	}
	for i := range values {
		values[i].Number *= factor
	}
}

// maxAhead is how far a timestamp may be ahead of the clock, in seconds.
const maxAhead = 60

// newest reports whether a value with the timestamp t may replace the value of a
// gauge: no newer one was set before. If the clock, now, was set back since then, it
// does not count.
func (ce *cell) newest(t, now uint64) bool {
	for {
		last := ce.carry.Load()
		if t < last && last <= now+maxAhead {
			return false
		}
		if ce.carry.CompareAndSwap(last, t) {
			return true
		}
	}
}
