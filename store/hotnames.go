package store

import (
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/directory"
	"github.com/statsd-admin/statsd-admin/internal/fingerprint"
)

// hotNames caches stats that a scope was asked for again after their creation.
// Composing a full name and comparing it with symbols costs more than the rest
// of a lookup; here the key is the scope and the name as the caller gave it.
//
// A name is represented by 96 bits of a fingerprint under random keys: two names
// are confused with a probability of 2^-96. So no text is kept, and a lookup
// touches no memory with text.
//
// Callers must check that a found stat is alive: entries of ended stats stay,
// except that dropped blocks are forgotten because they are large. Tables are
// read without a lock. A key has one entry, which is written under the lock and
// published by its tag. Later only the position of its stat changes, when a stat
// ends and another of that name is created. A full table is replaced.
type hotNames struct {
	keys  fingerprint.Keys
	seeds [2]maphash.Seed // of the salts of scopes
	gone  block           // replaces forgotten blocks; none of its stats is alive
	table atomic.Pointer[hotTable]
	most  int // entries of the largest table

	mu     sync.Mutex
	spared int // names not added since the largest table was full
}

// hotTable maps keys to stats. A stat is its slot and, above slotBits, the
// position of its block in blocks.
type hotTable struct {
	stats  *fingerprint.Map
	blocks directory.Directory[block]

	// Guarded by hotNames.mu.
	used   int               // calls of stats.Put
	placed int               // of blocks
	where  map[*block]uint32 // positions in blocks, without forgotten ones
}

const (
	minHotNames = 1 << 8
	maxHotNames = 1 << 18
)

func newHotTable(entries int) *hotTable {
	return &hotTable{
		stats: fingerprint.NewMap(entries),
		where: make(map[*block]uint32),
	}
}

func (h *hotNames) init() {
	h.keys = fingerprint.NewKeys()
	h.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	h.most = maxHotNames
	h.table.Store(newHotTable(minHotNames))
}

// salt returns the salt that distinguishes equal names in different scopes.
func (h *hotNames) salt(scope uint32) fingerprint.Salt {
	return fingerprint.Salt{maphash.Comparable(h.seeds[0], scope), maphash.Comparable(h.seeds[1], scope)}
}

func (t *hotTable) at(stat uint32) (*block, int) {
	return t.blocks.At(int(stat >> slotBits)), int(stat & (1<<slotBits - 1))
}

// keep adds a stat under the name text in sc.
func (h *hotNames) keep(sc *Scope, text string, b *block, slot int) {
	k := h.keys.Key(&sc.salt, text)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !b.alive.has(slot) {
		return // its block can be forgotten already
	}
	t := h.table.Load()
	if stat, ok := t.stats.Get(k); ok {
		if had, i := t.at(stat); had == b && i == slot {
			return // another goroutine was faster, or the kind differs
		}
	}
	if t.full() {
		if t = h.replace(t); t == nil {
			return
		}
	}
	t.put(k, b, slot)
}

// forget drops the reference to a block without stats.
func (h *hotNames) forget(b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.table.Load()
	if at, ok := t.where[b]; ok {
		delete(t.where, b)
		t.blocks.Put(int(at), &h.gone)
	}
}

// full reports whether 13 of 16 entries are used, so that searches stay short.
// Rewritten entries count again, since positions of blocks are not reused.
func (t *hotTable) full() bool { return t.used*16 >= t.stats.Cap()*13 }

// put adds a stat. The table must not be full.
func (t *hotTable) put(k fingerprint.Key, b *block, slot int) {
	t.used++
	t.stats.Put(k, t.place(b)<<slotBits|uint32(slot))
}

// place returns the position of a block in t.blocks, adding it if necessary.
func (t *hotTable) place(b *block) uint32 {
	at, ok := t.where[b]
	if ok {
		return at
	}
	at = uint32(t.placed)
	t.placed++
	t.where[b] = at
	t.blocks.Put(int(at), b)
	return at
}

// replace replaces t with a table of the stats that are alive. If those fill the
// largest table it returns nil, and starts with an empty table after it has
// refused as many names as the table holds.
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

// alive returns an iterator over the stats that are alive and their keys.
func (t *hotTable) alive() iter.Seq2[fingerprint.Key, uint32] {
	return func(yield func(fingerprint.Key, uint32) bool) {
		for k, stat := range t.stats.All() {
			if b, i := t.at(stat); b.alive.has(i) && !yield(k, stat) {
				return
			}
		}
	}
}
