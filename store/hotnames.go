package store

import (
	"hash/maphash"
	"iter"
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

// hotTable knows the stats by their keys. Its numbers are of slots: the place of
// the block in blocks is above slotBits.
type hotTable struct {
	stats  *fingerprint.Map
	blocks atomic.Pointer[[]atomic.Pointer[block]]

	// Guarded by hotNames.mu.
	used   int               // times that a stat was put into stats
	placed int               // of blocks
	where  map[*block]uint32 // in blocks, those that are not forgotten
}

const (
	minHotNames = 1 << 8
	maxHotNames = 1 << 18
)

func newHotTable(entries int) *hotTable {
	t := &hotTable{
		stats: fingerprint.NewMap(entries),
		where: make(map[*block]uint32),
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
func (h *hotNames) salt(scope uint32) fingerprint.Salt {
	return fingerprint.Salt{maphash.Comparable(h.seeds[0], scope), maphash.Comparable(h.seeds[1], scope)}
}

// at returns where a stat is.
func (t *hotTable) at(stat uint32) (*block, int) {
	return (*t.blocks.Load())[stat>>slotBits].Load(), int(stat & (1<<slotBits - 1))
}

// keep remembers the stat that sc was asked for as text.
func (h *hotNames) keep(sc *Scope, text string, b *block, slot int) {
	k := h.keys.Key(&sc.salt, text)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !b.alive.has(slot) {
		return // its block may be forgotten already
	}
	t := h.table.Load()
	if stat, ok := t.stats.Get(k); ok {
		if had, i := t.at(stat); had == b && i == slot {
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
func (t *hotTable) full() bool { return t.used*16 >= t.stats.Cap()*13 }

// put remembers the stat with this key. There must be room.
func (t *hotTable) put(k fingerprint.Key, b *block, slot int) {
	t.used++
	t.stats.Put(k, t.place(b)<<slotBits|uint32(slot))
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
	size := t.stats.Cap()
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
	for k, stat := range t.alive() {
		b, i := t.at(stat)
		next.put(k, b, i)
	}
	h.table.Store(next)
	return next
}

// alive yields the stats that are alive, with their keys.
func (t *hotTable) alive() iter.Seq2[fingerprint.Key, uint32] {
	return func(yield func(fingerprint.Key, uint32) bool) {
		for k, stat := range t.stats.All() {
			if b, i := t.at(stat); b.alive.has(i) && !yield(k, stat) {
				return
			}
		}
	}
}
