package store

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// hotNames remembers where the names are that a scope was asked for again after
// their creation. To compose a full name and compare it with symbols costs more
// than all the rest of a look-up; here the key is the scope and the text that
// it was asked for.
//
// A text is known by two hashes of 64 bits under seeds that nobody knows: two
// texts that a scope is asked for are taken for one another with a probability
// of 2^-128. So no text is kept, callers may compose names in memory of their
// own, and a look-up does not touch the lines where a text would be.
//
// What is found must be checked for being alive: nobody clears entries of ended
// stats. Tables are read without a lock. An entry is written once, under the
// lock, and published by its tag; a full table is replaced by another.
type hotNames struct {
	seeds [2]maphash.Seed
	table atomic.Pointer[hotTable]
	most  int // entries of the largest table

	mu     sync.Mutex
	spared int // names turned away since the largest table was full
}

// hotTable is an open addressing table of groups, a power of two of them. The
// tags of a group share a word, so that a search mostly looks at one word and
// one entry, as in Abseil's Swiss tables.
type hotTable struct {
	tags    []atomic.Uint64 // a byte per entry: 0, or 128 and seven bits of a hash
	entries []hotEntry      // groupSize for each word of tags
	used    int             // guarded by hotNames.mu
}

// hotKey stands for a text that a scope is asked for.
type hotKey struct {
	hash, check uint64
	scope       uint32
}

// hotEntry is half a cache line.
type hotEntry struct {
	hash, check uint64
	b           *block
	scope, slot uint32
}

const (
	groupSize   = 8
	minHotNames = 1 << 8
	maxHotNames = 1 << 18

	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

func newHotTable(entries int) *hotTable {
	return &hotTable{tags: make([]atomic.Uint64, entries/groupSize), entries: make([]hotEntry, entries)}
}

func (h *hotNames) init() {
	h.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	h.most = maxHotNames
	h.table.Store(newHotTable(minHotNames))
}

// key returns the key of a text that sc is asked for.
func (h *hotNames) key(sc *Scope, text string) hotKey {
	return hotKey{maphash.String(h.seeds[0], text) ^ sc.salt, maphash.String(h.seeds[1], text), sc.id}
}

func tagOf(hash uint64) uint64 { return hash>>57 | 0x80 }

// find returns the stat with this key, if it is remembered and alive.
func (h *hotNames) find(k hotKey) (*block, int, bool) {
	t := h.table.Load()
	mask := uint64(len(t.tags) - 1)
	tag := tagOf(k.hash) * eachByte
	for g := k.hash & mask; ; g = (g + 1) & mask {
		tags := t.tags[g].Load()
		x := tags ^ tag
		// The lowest byte that is zero is found for certain; others may be
		// reported too, and fail the comparison.
		for same := (x - eachByte) & ^x & topBits; same != 0; same &= same - 1 {
			e := &t.entries[g*groupSize+uint64(bits.TrailingZeros64(same)/8)]
			if e.check == k.check && e.hash == k.hash && e.scope == k.scope && e.b.alive.has(int(e.slot)) {
				return e.b, int(e.slot), true
			}
		}
		if tags&topBits != topBits {
			return nil, 0, false
		}
	}
}

// keep remembers the stat with this key.
func (h *hotNames) keep(k hotKey, b *block, slot int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.table.Load()
	if t.full() {
		if t = h.replace(t); t == nil {
			return
		}
	}
	t.put(hotEntry{k.hash, k.check, b, k.scope, uint32(slot)})
}

// full reports whether the table takes no further entry, so that searches stay
// short: 13 of 16 places are used.
func (t *hotTable) full() bool { return t.used*16 >= len(t.entries)*13 }

func (t *hotTable) put(e hotEntry) {
	mask := uint64(len(t.tags) - 1)
	g := e.hash & mask
	for t.tags[g].Load()&topBits == topBits {
		g = (g + 1) & mask
	}
	tags := t.tags[g].Load()
	i := uint64(bits.TrailingZeros64(^tags&topBits) / 8)
	t.entries[g*groupSize+i] = e
	t.tags[g].Store(tags | tagOf(e.hash)<<(8*i))
	t.used++
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
	for i := range t.entries {
		if t.entries[i].alive() {
			alive++
		}
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
	for _, e := range t.entries {
		if e.alive() {
			next.put(e)
		}
	}
	h.table.Store(next)
	return next
}

func (e *hotEntry) alive() bool { return e.b != nil && e.b.alive.has(int(e.slot)) }
