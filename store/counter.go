package store

import (
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// noCopy makes go vet report copies of a struct that embeds it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Counter is a total that only rises, shared by any number of goroutines. Ask
// a [Scope] for one once, keep the pointer, and call it from the hot path.
//
// A counter is one word that its writers add to. Readers derive the increments
// of an interval and the value since a reset as differences.
//
// A nil counter is a null counter: it takes writes, and its value is 0.
type Counter struct {
	_ noCopy
	w word
}

// Inc adds one to c.
//
// It takes no lock, looks up no name and never allocates. An increment that
// races with a flush is reported in exactly one interval: that one or the next.
func (c *Counter) Inc() {
	if c != nil {
		c.w.count(1)
	}
}

// Add adds n to c with the guarantees of [Counter.Inc]. Totals wrap at 2^64.
// Adding 0 does not mark a counter as used.
func (c *Counter) Add(n uint64) {
	if c != nil {
		c.w.count(n)
	}
}

// Value returns the sum of the increments since c was created or last reset.
func (c *Counter) Value() uint64 {
	if c == nil {
		return 0
	}
	b, i := c.w.home()
	if b.null {
		return 0
	}
	return b.value(i)
}

// Total returns the sum of all increments, regardless of resets.
func (c *Counter) Total() uint64 {
	if c == nil {
		return 0
	}
	b, i := c.w.home()
	if b.null {
		return 0
	}
	return b.pg.total(i)
}

// value returns counter i's total since the last reset. The base is read first:
// after a reset in between it would exceed the total.
func (b *block) value(i int) uint64 {
	var from uint64
	if base := b.base.Load(); base != nil {
		from = base[i].total.Load()
		schedule.Point()
	}
	return b.pg.total(i) - from
}

// resetPoint is the state of a counter at its last reset. Zero: it had none.
type resetPoint struct {
	total atomic.Uint64
	at    atomic.Int64 // Unix time in milliseconds
}

// resetsLocked returns the reset points of b. Store.mu must be held.
func (b *block) resetsLocked() *[slotsPerBlock]resetPoint {
	base := b.base.Load()
	if base == nil {
		base = new([slotsPerBlock]resetPoint)
		b.base.Store(base)
	}
	return base
}

// reset makes values count from the present totals. Store.mu must be held.
func (b *block) reset(now int64) {
	base := b.resetsLocked()
	for i := range b.n {
		base[i].at.Store(now)
		base[i].total.Store(b.pg.total(i))
	}
}

// ResetCounter sets the counter under c to zero, as [Store.ResetCounters] does.
func (c *Cursor) ResetCounter() {
	if c.b.variant != variantCounter {
		return
	}
	now := c.s.opts.Now().UnixMilli()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p := &c.b.resetsLocked()[c.i]
	p.at.Store(now)
	p.total.Store(c.b.pg.total(c.i))
	c.s.resets.Add(1)
}
