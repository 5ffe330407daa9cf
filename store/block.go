package store

import (
	"math/bits"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// slotsPerBlock stats share one block. It is a multiple of 64 for the bit sets
// and below 1<<slotBits.
const (
	slotsPerBlock = 896
	slotBits      = 10
)

// id identifies a stat in its store: block index and slot. Ids are dense enough
// to index bit sets and are reused only when no view can hold the old stat.
type id = uint32

func makeID(block uint32, slot int) id { return block<<slotBits | uint32(slot) }

type bitset [slotsPerBlock / 64]uint64

func (b *bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b *bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }

// atomicBits is a bitset whose bits are changed one at a time by any goroutine.
type atomicBits [slotsPerBlock / 64]atomic.Uint64

func (b *atomicBits) has(i int) bool { return b[i/64].Load()>>(i%64)&1 != 0 }
func (b *atomicBits) set(i int)      { b[i/64].Or(1 << (i % 64)) }
func (b *atomicBits) clear(i int)    { b[i/64].And(^uint64(1 << (i % 64))) }

// none reports whether no bit is set; b can be nil.
func (b *atomicBits) none() bool {
	if b != nil {
		for w := range b {
			if b[w].Load() != 0 {
				return false
			}
		}
	}
	return true
}

// count returns the number of bits that are set.
func (b *bitset) count() (n int) {
	for _, m := range b {
		n += bits.OnesCount64(m)
	}
	return n
}

// setAll sets the bits that are set in other, which can be nil.
func (b *bitset) setAll(other *bitset) {
	if other != nil {
		for w, m := range other {
			b[w] |= m
		}
	}
}

// clearAll clears the bits that are set in other.
func (b *bitset) clearAll(other *bitset) {
	for w, m := range other {
		b[w] &^= m
	}
}

// copy returns the bits as of now.
func (b *atomicBits) copy() (c bitset) {
	for w := range b {
		c[w] = b[w].Load()
	}
	return c
}

// setAll sets the bits that are set in other, which can be nil.
func (b *atomicBits) setAll(other *bitset) {
	if other == nil {
		return
	}
	for w, m := range other {
		if m != 0 {
			b[w].Or(m)
		}
	}
}

// variant is the representation of the values of a block.
type variant uint8

const (
	variantCounter variant = iota
	variantGauge           // unsigned whole numbers
	variantFloat           // gauges that may be negative or fractional
	variantText
	variantHistogram

	variants = 5
)

func (v variant) kind() Kind {
	switch v {
	case variantCounter:
		return KindCounter
	case variantGauge, variantFloat:
		return KindGauge
	case variantText:
		return KindText
	default:
		return KindHistogram
	}
}

// class holds the properties that all stats of a block share besides their
// variant: origin and expiry.
type class struct {
	network bool // made by network input: a name space of its own
	evict   bool // ends after two sweeps without an update
	ttl     ttls // seconds without an update after which a stat ends, by kind; 0 means never

	open  [variants]*block // the block that takes new stats; guarded by Store.mu
	spare [variants][]*page
}

type ttls [kinds]uint32

// freeBlock is a block index without a block.
type freeBlock struct{ index, reuse uint32 }

func (c *class) expires(k Kind) bool { return c.evict || c.ttl[k] != 0 }

// block is the memory of up to slotsPerBlock stats of one variant and class.
//
// Records and values are written once, under Store.mu, before the slot's bit in
// alive is set; from then on readers need no lock. A slot is used only once.
// When all stats of a full block have ended, the whole block is dropped, and one
// with room as well if its records are large. Handles
// that are still held keep its memory and write to it without effect.
type block struct {
	pg    *page // counters and gauges
	cls   *class
	arena atomic.Pointer[arena] // records, see record.go
	hists atomic.Pointer[[]*histogram.Histogram]
	texts atomic.Pointer[[]*TextReadout]
	latch *[slotsPerBlock]uint64                    // totals as of the last flush; guarded by Store.flushMu
	base  atomic.Pointer[[slotsPerBlock]resetPoint] // of counters; nil: never reset
	born  atomic.Pointer[[]birth]                   // see born.go
	older atomic.Pointer[atomicBits]                // counters that continue those of a parent process; nil: none
	modes *[slotsPerBlock]atomic.Uint32             // import modes of gauges

	parents atomic.Pointer[parents]       // of gauges; nil: there is no parent process
	active  *[slotsPerBlock]atomic.Uint32 // age of the store at the last update, for stats that expire
	marks   *[slotsPerBlock]atomic.Uint32 // of stats from network input; see Scope.Mark

	hotMu schedule.Mutex // serializes page.own

	index   uint32
	reuse   uint32 // blocks that had the index before
	variant variant
	null    bool // holds the null stats

	end      int // bytes of the arena in use; guarded by Store.mu
	n        int // slots handed out; guarded by Store.mu
	live     int // slots of stats that are alive; guarded by Store.mu
	released int // slots whose symbols were released; guarded by Store.mu

	alive   atomicBits
	special atomic.Pointer[atomicBits] // stats without tags that may have a Series; nil: none
	used    atomicBits                 // gauges: written before the last flush, or by a parent process
	final   atomicBits                 // ended stats of which no flush reports anything further
	carried atomic.Pointer[atomicBits] // marks that a Watch took, for the next flush; nil: none yet
	asked   atomicBits                 // looked up by name since the last sweep, of stats that expire
	ending  atomicBits                 // about to end: a lookup by name has to wait for Store.mu
	changed bitset                     // in the last flush that found any; guarded by Store.flushMu
	fresh   bitset                     // updated since the last sweep, for eviction; guarded by Store.flushMu
	offset  [slotsPerBlock + 1]uint32  // of the record in arena, which ends at the next offset
	owners  owners                     // scopes that hold the stats
}

// owners has the scope of each stat of a block. Mostly all have the same.
type owners struct {
	first atomic.Uint32                                // of all stats if each is nil
	each  atomic.Pointer[[slotsPerBlock]atomic.Uint32] // written under Store.mu
}

// owner returns the scope that holds stat i.
func (b *block) owner(i int) uint32 {
	if each := b.owners.each.Load(); each != nil {
		return each[i].Load()
	}
	return b.owners.first.Load()
}

// setOwner sets the scope that holds stat i. Store.mu must be held.
func (b *block) setOwner(i int, scope uint32) {
	each := b.owners.each.Load()
	if each == nil {
		first := b.owners.first.Load()
		switch {
		case first == scope:
			return
		case b.n == 0:
			b.owners.first.Store(scope)
			return
		}
		each = new([slotsPerBlock]atomic.Uint32)
		for j := range b.n {
			each[j].Store(first)
		}
		each[i].Store(scope)
		b.owners.each.Store(each)
		return
	}
	each[i].Store(scope)
}

// largeArena is more than the records of a block take unless tags are long.
const largeArena = 128 << 10

// arena is a block's memory for records. Written bytes never change; growing
// makes a new arena that begins with the same bytes.
type arena struct{ b []byte }

// append adds the record of slot i, the highest so far. Store.mu must be held.
func (b *block) append(i int, rec []byte) {
	off, end := b.end, b.end+len(rec)
	a := b.arena.Load()
	if a == nil || end > len(a.b) {
		// Extrapolate from the records so far.
		want := max(1024, end+end/4)
		if b.n > 8 {
			want = max(end, min(2*end, end/(b.n+1)*slotsPerBlock))
		}
		b.resize(want)
		a = b.arena.Load()
	}
	copy(a.b[off:end], rec)
	b.end = end
	b.offset[i+1] = uint32(end)
}

func (b *block) resize(size int) {
	next := &arena{make([]byte, size)}
	if a := b.arena.Load(); a != nil {
		copy(next.b, a.b[:b.end])
	}
	b.arena.Store(next)
}

// trim frees the unused end of a full block's arena. Store.mu must be held.
func (b *block) trim() {
	if a := b.arena.Load(); a != nil && len(a.b)-b.end > b.end/16 {
		b.resize(b.end)
	}
}

// blockBytes is about the memory of a full block without its records, in bytes.
const blockBytes = 35 << 10

// remains returns about the bytes of ended stats of network input that b holds because
// others in it live. Store.mu must be held.
func (b *block) remains() int64 {
	if !b.cls.network || !b.full() || b.released == b.n {
		return 0
	}
	return int64(b.released) * int64(blockBytes+b.end) / slotsPerBlock
}

// record returns the bytes of slot i's record and what follows it. Readers that race
// with the end of all stats of the block get that of a stat without a name.
func (b *block) record(i int) []byte {
	a := b.arena.Load()
	if a == nil {
		return []byte{0, 0}
	}
	return a.b[b.offset[i]:]
}

// full reports whether no further slot can be handed out. Store.mu must be held.
func (b *block) full() bool { return b.n == slotsPerBlock }
