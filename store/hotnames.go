package store

import (
	"strings"
	"sync/atomic"
)

// hotNames remembers where names are that were asked for again after their
// creation. Comparing a name with its symbols costs more than all the rest of
// a look-up; here the text is kept, for a bounded number of names. What is
// found must be checked for being alive: nobody clears entries of ended stats.
type hotNames struct {
	table atomic.Pointer[hotTable]
}

// hotTable has a power of two of places, each for one name.
type hotTable struct {
	places []atomic.Pointer[hotName]
	filled atomic.Int64
}

type hotName struct {
	hash    uint64
	name    string
	b       *block
	i       uint32
	owner   uint32 // scope that held the stat when it was remembered
	network bool
}

const (
	minHotNames = 1 << 8
	maxHotNames = 1 << 16
)

func (h *hotNames) init() {
	h.table.Store(&hotTable{places: make([]atomic.Pointer[hotName], minHotNames)})
}

// find returns where a name is that sc holds, if it is remembered and the stat
// is alive.
func (h *hotNames) find(hash uint64, sc *Scope, name string) (*block, int, bool) {
	t := h.table.Load()
	at := hash & uint64(len(t.places)-1)
	e := t.places[at].Load()
	if e == nil || e.hash != hash {
		if e = t.places[at^1].Load(); e == nil || e.hash != hash {
			return nil, 0, false
		}
	}
	if e.owner != sc.id || e.network != sc.cls.network || e.name != name ||
		!e.b.alive.has(int(e.i)) || sc.closed.Load() {
		return nil, 0, false
	}
	return e.b, int(e.i), true
}

// keep remembers a name in one of its two places. Where both are taken the
// older names mostly stay, or a walk over many names would make all of them
// come and go.
func (h *hotNames) keep(hash uint64, network bool, name string, b *block, i int) {
	t := h.table.Load()
	if n := int64(len(t.places)); t.filled.Load() > n/2 && n < maxHotNames {
		t = h.grow(t)
	}
	at := hash & uint64(len(t.places)-1)
	if t.places[at].Load() != nil && t.places[at^1].Load() == nil {
		at ^= 1
	}
	old := t.places[at].Load()
	if old != nil && old.b.alive.has(int(old.i)) && hash>>60 != 0 {
		return
	}
	e := &hotName{hash, strings.Clone(name), b, uint32(i), b.owner[i].Load(), network}
	if t.places[at].CompareAndSwap(old, e) && old == nil {
		t.filled.Add(1)
	}
}

// grow doubles the table. Entries that a racing keep adds are lost, and found
// the long way the next time.
func (h *hotNames) grow(old *hotTable) *hotTable {
	t := &hotTable{places: make([]atomic.Pointer[hotName], 2*len(old.places))}
	for i := range old.places {
		if e := old.places[i].Load(); e != nil {
			at := e.hash & uint64(len(t.places)-1)
			if t.places[at].Load() != nil {
				at ^= 1
			}
			t.places[at].Store(e)
			t.filled.Add(1)
		}
	}
	if !h.table.CompareAndSwap(old, t) {
		return h.table.Load()
	}
	return t
}
