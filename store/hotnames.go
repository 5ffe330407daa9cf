package store

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/fingerprint"
)

// hotNames remembers where the names are that a scope was asked for again after
// their creation. To compose a full name and compare it with symbols costs more
// than all the rest of a look-up; here the key is the scope and the text that
// it was asked for.
//
// A text is known by 96 bits of a fingerprint under keys that nobody knows: two
// texts that a scope is asked for are taken for one another with a probability
// of 2^-96. So no text is kept, callers may compose names in memory of their
// own, and a look-up does not touch the lines where a text would be.
//
// What is found must be checked for being alive: nobody clears entries of ended
// stats, but blocks that the store dropped are forgotten, for they are large.
// Tables are read without a lock. A key has one entry, which is written under
// the lock and published by its tag; from then on only the place of its stat
// changes, when one of that name ended and another one began. A full table is
// replaced by another.
type hotNames struct {
	keys  fingerprint.Keys
	seeds [2]maphash.Seed // of the salts of scopes
	gone  block           // stands for those that were forgotten; no stat of it is alive
	table atomic.Pointer[hotTable]
	most  int // entries of the largest table

	mu     sync.Mutex
	spared int // names turned away since the largest table was full
}

// hotTable is an open addressing table of groups, a power of two of them. The
// tags of a group share a word, so that a search mostly looks at one word and
// one entry, as in Abseil's Swiss tables. Entries are small, for what a search
// waits for is memory.
type hotTable struct {
	tags    []atomic.Uint64 // a byte per entry: 0, or 128 and seven bits of a key
	entries []hotEntry      // groupSize for each word of tags
	blocks  atomic.Pointer[[]atomic.Pointer[block]]

	// Guarded by hotNames.mu.
	used   int               // times that an entry was written
	placed int               // of blocks
	where  map[*block]uint32 // in blocks, those that are not forgotten
}

// hotKey stands for a text that a scope is asked for.
type hotKey struct {
	low  uint64
	high uint32
}

// hotEntry says that the stat with this key is in a slot of a block: the place
// of the block in hotTable.blocks is above slotBits.
type hotEntry struct {
	low  uint64
	high uint32
	stat atomic.Uint32
}

const (
	groupSize   = 8
	minHotNames = 1 << 8
	maxHotNames = 1 << 18

	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

func newHotTable(entries int) *hotTable {
	t := &hotTable{
		tags:    make([]atomic.Uint64, entries/groupSize),
		entries: make([]hotEntry, entries),
		where:   make(map[*block]uint32),
	}
	t.blocks.Store(new([]atomic.Pointer[block]))
	return t
}

func (h *hotNames) init() {
	h.keys = fingerprint.NewKeys()
	h.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	h.most = maxHotNames
	h.table.Store(newHotTable(minHotNames))
}

// salt returns what keeps equal texts of scopes apart.
func (h *hotNames) salt(scope uint32) [2]uint64 {
	return [2]uint64{maphash.Comparable(h.seeds[0], scope), maphash.Comparable(h.seeds[1], scope)}
}

// key returns the key of a text that sc is asked for.
func (h *hotNames) key(sc *Scope, text string) hotKey {
	low, high := h.keys.Of(text)
	return hotKey{low ^ sc.salt[0], uint32(high ^ sc.salt[1])}
}

func (k hotKey) tag() uint64 { return uint64(k.high>>25 | 0x80) }

// find returns the stat with this key, if it is remembered and alive.
func (h *hotNames) find(k hotKey) (*block, int, bool) {
	t := h.table.Load()
	if e := t.entry(k); e != nil {
		if b, i := t.at(e); b.alive.has(i) {
			return b, i, true
		}
	}
	return nil, 0, false
}

// entry returns the entry of a key, nil if there is none.
func (t *hotTable) entry(k hotKey) *hotEntry {
	mask := uint64(len(t.tags) - 1)
	tag := k.tag() * eachByte
	for g := k.low & mask; ; g = (g + 1) & mask {
		tags := t.tags[g].Load()
		x := tags ^ tag
		// The lowest byte that is zero is found for certain; others may be
		// reported too, and fail the comparison.
		for same := (x - eachByte) & ^x & topBits; same != 0; same &= same - 1 {
			e := &t.entries[g*groupSize+uint64(bits.TrailingZeros64(same)/8)]
			if e.low == k.low && e.high == k.high {
				return e
			}
		}
		if tags&topBits != topBits {
			return nil
		}
	}
}

// at returns where the stat of an entry is.
func (t *hotTable) at(e *hotEntry) (*block, int) {
	stat := e.stat.Load()
	return (*t.blocks.Load())[stat>>slotBits].Load(), int(stat & (1<<slotBits - 1))
}

// keep remembers the stat with this key.
func (h *hotNames) keep(k hotKey, b *block, slot int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !b.alive.has(slot) {
		return // its block may be forgotten already
	}
	t := h.table.Load()
	if e := t.entry(k); e != nil {
		if had, i := t.at(e); had == b && i == slot {
			return // somebody was faster, or what was found was not what was asked for
		}
	}
	if t.full() {
		if t = h.replace(t); t == nil {
			return
		}
	}
	t.put(k, b, slot)
}

// forget lets go of a block that has no stats any more.
func (h *hotNames) forget(b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.table.Load()
	if at, ok := t.where[b]; ok {
		delete(t.where, b)
		(*t.blocks.Load())[at].Store(&h.gone)
	}
}

// full reports whether the table takes nothing further, so that searches stay
// short: 13 of 16 places are used. Entries that were written again count, too:
// no place of a block is used twice.
func (t *hotTable) full() bool { return t.used*16 >= len(t.entries)*13 }

// put remembers the stat with this key. There must be room.
func (t *hotTable) put(k hotKey, b *block, slot int) {
	stat := t.place(b)<<slotBits | uint32(slot)
	t.used++
	if e := t.entry(k); e != nil {
		e.stat.Store(stat)
		return
	}
	mask := uint64(len(t.tags) - 1)
	g := k.low & mask
	for t.tags[g].Load()&topBits == topBits {
		g = (g + 1) & mask
	}
	tags := t.tags[g].Load()
	i := uint64(bits.TrailingZeros64(^tags&topBits) / 8)
	e := &t.entries[g*groupSize+i]
	e.low, e.high = k.low, k.high
	e.stat.Store(stat)
	t.tags[g].Store(tags | k.tag()<<(8*i))
}

// place returns the place of a block in t.blocks.
func (t *hotTable) place(b *block) uint32 {
	at, ok := t.where[b]
	if ok {
		return at
	}
	blocks := t.blocks.Load()
	if t.placed == len(*blocks) {
		grown := make([]atomic.Pointer[block], max(4, 2*t.placed))
		for i := range *blocks {
			grown[i].Store((*blocks)[i].Load())
		}
		t.blocks.Store(&grown)
		blocks = &grown
	}
	at = uint32(t.placed)
	t.placed++
	t.where[b] = at
	(*blocks)[at].Store(b)
	return at
}

// replace makes a table with room out of the stats in t that are alive. When
// there is none because the largest table is full of them it returns nil, until
// it turned away as many names as the table has; then it starts anew.
func (h *hotNames) replace(t *hotTable) *hotTable {
	if h.spared > 0 && h.spared < t.used {
		h.spared++
		return nil
	}
	alive := 0
	for range t.alive() {
		alive++
	}
	size := len(t.entries)
	switch {
	case alive < size/2:
	case size < h.most:
		size *= 2
	case h.spared == 0:
		h.spared++
		return nil
	default:
		t = newHotTable(0)
	}
	h.spared = 0
	next := newHotTable(size)
	for e := range t.alive() {
		b, i := t.at(e)
		next.put(hotKey{e.low, e.high}, b, i)
	}
	h.table.Store(next)
	return next
}

// alive yields the entries of stats that are alive.
func (t *hotTable) alive() iter.Seq[*hotEntry] {
	return func(yield func(*hotEntry) bool) {
		for i := range t.entries {
			if t.tags[i/groupSize].Load()>>(i%groupSize*8)&0x80 == 0 {
				continue
			}
			if b, slot := t.at(&t.entries[i]); b.alive.has(slot) && !yield(&t.entries[i]) {
				return
			}
		}
	}
}
