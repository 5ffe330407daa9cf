package store

import (
	"hash/maphash"
	"sync/atomic"
)

// lookup finds stats by name: open addressing tables of (hash, id), read
// without a lock. The holder of Store.mu publishes entries and new tables with
// atomic stores. A reader of a table that was just replaced can miss only stats
// being created; callers then look again under the lock.
//
// The hash is the runtime's own, seeded per store, so names cannot be chosen
// to collide. It is split into shards so that growing copies a small part.
type lookup struct {
	seed   maphash.Seed
	shards [lookupShards]lookupShard
}

const (
	lookupShards    = 64
	lookupShardBits = 6
	lookupFirst     = 16 // entries of a new table
)

type lookupShard struct {
	table atomic.Pointer[lookupTable]
	used  int // entries that are not empty, deleted ones included; guarded by Store.mu
	live  int
}

// lookupTable has entries of the upper half of the hash above the id plus 2. 0 is
// empty, 1 was deleted.
type lookupTable struct{ entries []atomic.Uint64 }

const (
	entryEmpty   = 0
	entryDeleted = 1
)

func (l *lookup) init() {
	l.seed = maphash.MakeSeed()
	for i := range l.shards {
		l.shards[i].table.Store(&lookupTable{make([]atomic.Uint64, lookupFirst)})
	}
}

// hash returns the hash of a full name in a name space.
func (l *lookup) hash(network bool, name string) uint64 {
	h := maphash.String(l.seed, name)
	if network {
		h = ^h
	}
	return h
}

func (l *lookup) shard(h uint64) *lookupShard { return &l.shards[h>>(64-lookupShardBits)] }

// find returns the live stat called name, whose hash is h.
func (s *Store) find(h uint64, network bool, name string) (*block, int, bool) {
	t := s.lookup.shard(h).table.Load()
	for i := t.start(h); ; i = t.next(i) {
		e := t.entries[i].Load()
		if e == entryEmpty {
			return nil, 0, false
		}
		if uint32(e>>32) != uint32(h>>32) || uint32(e) < 2 {
			continue
		}
		b, slot := s.at(uint32(e) - 2)
		// Alive is checked before the record is read, which is complete
		// then, and again afterwards: the symbols were not reused.
		if b == nil || b.cls.network != network || !b.alive.has(slot) {
			continue
		}
		enc, _ := splitRecord(b.record(slot))
		if s.symbols.EqualText(enc, name) && b.alive.has(slot) {
			return b, slot, true
		}
	}
}

// Has reports whether a stat with that full name exists, from network input or
// of the program.
func (s *Store) Has(network bool, name string) bool {
	_, _, ok := s.find(s.lookup.hash(network, name), network, name)
	return ok
}

// insert adds an id. Store.mu must be held.
func (l *lookup) insert(h uint64, x id) {
	sh := l.shard(h)
	t := sh.table.Load()
	if (sh.used+1)*4 > len(t.entries)*3 {
		t = sh.grow()
	}
	t.put(h&^(1<<32-1) | uint64(x+2))
	sh.used++
	sh.live++
}

// remove takes an id out. Store.mu must be held.
func (l *lookup) remove(h uint64, x id) {
	sh := l.shard(h)
	t := sh.table.Load()
	want := h&^(1<<32-1) | uint64(x+2)
	for i := t.start(h); ; i = t.next(i) {
		switch t.entries[i].Load() {
		case want:
			t.entries[i].Store(entryDeleted)
			if sh.live--; sh.live*8 < len(t.entries) && len(t.entries) > lookupFirst {
				sh.resize(len(t.entries) / 2)
			}
			return
		case entryEmpty:
			return
		}
	}
}

// grow replaces the table with a copy that has room and no deleted entries.
func (sh *lookupShard) grow() *lookupTable {
	size := len(sh.table.Load().entries)
	if sh.live*2 >= size {
		size += size / 2
	}
	return sh.resize(size)
}

// resize replaces the table by a table of that size, without the deleted entries.
func (sh *lookupShard) resize(size int) *lookupTable {
	old := sh.table.Load()
	t := &lookupTable{make([]atomic.Uint64, size)}
	for i := range old.entries {
		if e := old.entries[i].Load(); e != entryEmpty && e != entryDeleted {
			t.put(e)
		}
	}
	sh.used = sh.live
	sh.table.Store(t)
	return t
}

// start returns the index at which the search for hash h begins. It uses the
// half of the hash that entries keep, without the bits that select the shard.
func (t *lookupTable) start(h uint64) uint64 {
	return uint64(uint32(h>>32)<<lookupShardBits) * uint64(len(t.entries)) >> 32
}

func (t *lookupTable) next(i uint64) uint64 {
	if i++; i == uint64(len(t.entries)) {
		return 0
	}
	return i
}

// put writes e to its first empty entry.
func (t *lookupTable) put(e uint64) {
	i := t.start(e)
	for t.entries[i].Load() != entryEmpty {
		i = t.next(i)
	}
	t.entries[i].Store(e)
}
