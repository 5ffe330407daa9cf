package symtab

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/directory"
)

const (
	pageBits = 10
	pageSize = 1 << pageBits

	// pinned is a saturated reference count: it no longer changes and the token is
	// never removed.
	pinned = math.MaxUint32
)

// page holds the state of pageSize consecutive symbols.
type page struct {
	// where is the location of the token's bytes (see arena). In a free slot it is
	// the index of the next free slot, which differs from every location. Written
	// under tokens.mu, read without it.
	where [pageSize]atomic.Uint64

	// refs leaves 0 only under the lock of the token's shard, so a token seen at 0
	// under that lock can be removed. All other accesses need no lock.
	refs [pageSize]atomic.Uint32

	// Guarded by tokens.mu.
	live  int    // slots in use
	fresh uint32 // slots from here on were never used since the page was made
	free  uint32 // first free slot below fresh, or noSlot
}

const noSlot = math.MaxUint32

// tokens maps symbols to bytes and reference counts and hands out symbols.
type tokens struct {
	live atomic.Int64 // symbols in use

	// pages is changed under mu. A page without symbols in use may be nil.
	pages directory.Directory[page]

	mu       sync.Mutex // taken after a shard's lock; guards all below
	begun    int        // pages that ever had symbols
	maxPages int        // limit of begun
	resident int        // pages that are not nil
	room     []uint64   // bit p is set while page p < begun has a number to give

	arena arena
}

func (k *tokens) init() {
	k.maxPages = 1 << (32 - pageBits)
}

func (k *tokens) page(sym Symbol) *page {
	return k.pages.Find(int(sym >> pageBits))
}

// get returns the bytes of a symbol, or nil if it is not in use. They never
// change.
func (k *tokens) get(sym Symbol) []byte {
	if p := k.page(sym); p != nil {
		at := place(p.where[sym%pageSize].Load())
		if g := k.arena.group(at.chunk()); g != nil {
			if blk := g.blocks[at.chunk()%chunksPerGroup].Load(); blk != nil {
				start, end := at.offset(), at.offset()+at.length()
				return blk[start:end:end]
			}
		}
		if at.chunk() != 0 {
			return k.getSlow(sym)
		}
	}
	return nil
}

// getSlow is get for tokens that have a separate chunk or are being moved.
func (k *tokens) getSlow(sym Symbol) []byte {
	where := k.whereOf(sym)
	if where == nil {
		return nil
	}
	for {
		at := place(where.Load())
		if at.chunk() == 0 {
			return nil
		}
		if b, ok := k.arena.bytes(at); ok {
			return b
		}
		// The chunk was dropped after the location was read, so the token has moved
		// or gone. Look again.
	}
}

// tryRetain takes a reference unless the count is 0.
func (k *tokens) tryRetain(sym Symbol) bool {
	p := k.page(sym)
	if p == nil {
		return false
	}
	refs := &p.refs[sym%pageSize]
	for {
		n := refs.Load()
		if n == 0 || n == pinned {
			return n == pinned
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// retain takes a reference, even the first. The lock of the token's shard must
// be held.
func (k *tokens) retain(sym Symbol) {
	if !k.tryRetain(sym) {
		k.page(sym).refs[sym%pageSize].Store(1)
	}
}

// drop returns a reference and reports whether it was the last.
func (k *tokens) drop(sym Symbol) bool {
	p := k.page(sym)
	if p == nil {
		return false
	}
	refs := &p.refs[sym%pageSize]
	for {
		n := refs.Load()
		if n == 0 || n == pinned {
			return false
		}
		if refs.CompareAndSwap(n, n-1) {
			return n == 1
		}
	}
}

// held reports whether there are references to a symbol.
func (k *tokens) held(sym Symbol) bool {
	p := k.page(sym)
	return p != nil && p.refs[sym%pageSize].Load() != 0
}

// create stores a token with one reference under an unused number, preferably a
// freed one. It returns 0 if no number is left.
func (k *tokens) create(token string) Symbol {
	k.mu.Lock()
	defer k.mu.Unlock()
	sym, p := k.takeNumber()
	if sym == 0 {
		return 0
	}
	at := k.add(sym, token)
	p.where[sym%pageSize].Store(uint64(at))
	p.refs[sym%pageSize].Store(1)
	k.live.Add(1)
	return sym
}

// destroy removes a token without references. The lock of its shard must be
// held, and the shard must no longer know it.
func (k *tokens) destroy(sym Symbol) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := place(k.page(sym).where[sym%pageSize].Load())
	k.giveNumber(sym)
	k.live.Add(-1)
	k.remove(sym, at)
}

// takeNumber takes the lowest page that has a free number. k.mu must be held.
func (k *tokens) takeNumber() (Symbol, *page) {
	i := -1
	for w, word := range k.room {
		if word != 0 {
			i = w*64 + bits.TrailingZeros64(word)
			break
		}
	}
	if i < 0 {
		if k.begun == k.maxPages {
			return 0, nil
		}
		i = k.begun
		k.begun++
		for len(k.room)*64 <= i {
			k.room = append(k.room, 0)
		}
		k.room[i/64] |= 1 << (i % 64)
	}
	p := k.makePage(i)
	slot := p.free
	if slot != noSlot {
		p.free = uint32(p.where[slot].Load())
	} else {
		slot = p.fresh
		p.fresh++
	}
	p.live++
	if p.free == noSlot && p.fresh == pageSize {
		k.room[i/64] &^= 1 << (i % 64)
	}
	return Symbol(i<<pageBits) + Symbol(slot), p
}

// makePage returns page i, creating it if necessary. k.mu must be held.
func (k *tokens) makePage(i int) *page {
	p := k.pages.Find(i)
	if p == nil {
		p = &page{free: noSlot}
		if i == 0 {
			p.fresh = 1 // symbol 0 is not for tokens
		}
		k.resident++
		k.pages.Put(i, p)
	}
	return p
}

// giveNumber frees a number. A page without symbols is dropped if another
// page's worth of numbers is free. k.mu must be held.
func (k *tokens) giveNumber(sym Symbol) {
	i, slot := int(sym>>pageBits), uint32(sym%pageSize)
	p := k.pages.Find(i)
	p.where[slot].Store(uint64(p.free))
	p.free = slot
	p.live--
	k.room[i/64] |= 1 << (i % 64)
	if p.live == 0 && k.resident*pageSize-int(k.live.Load()) > 2*pageSize {
		k.pages.Put(i, nil)
		k.resident--
	}
}
