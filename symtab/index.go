package symtab

import (
	"sync"
	"sync/atomic"
)

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	minSlots   = 8
)

// shard is one part of the index from token to symbol: a table with linear
// probing. A slot holds the low 32 bits of the token's hash above its symbol,
// or 0. Slots are changed under mu and read without it. A reader can miss an
// entry that is being moved and then looks again under mu.
type shard struct {
	mu   sync.Mutex
	used int // slots in use; guarded by mu

	slots atomic.Pointer[[]atomic.Uint64] // replaced under mu when it grows or shrinks

	_ [40]byte // keeps the next shard's mu off this cache line
}

// shardOf uses other bits of the hash than home, so the buckets of a shard fill
// evenly.
func shardOf(h uint64) uint64 { return h >> (64 - shardBits) }

// home is the first slot of the probe sequence for a tag in a table of n slots.
func home(tag uint32, n int) int { return int(uint64(tag) * uint64(n) >> 32) }

// findLocked returns the symbol stored under tag that match accepts, or 0.
func (s *shard) findLocked(tag uint32, match func(Symbol) bool) Symbol {
	p := s.slots.Load()
	if p == nil {
		return 0
	}
	slots := *p
	for i := home(tag, len(slots)); ; i = next(i, len(slots)) {
		slot := slots[i].Load()
		if slot == 0 {
			return 0
		}
		if uint32(slot>>32) == tag && match(Symbol(slot)) {
			return Symbol(slot)
		}
	}
}

// insertLocked adds a symbol that is absent.
func (s *shard) insertLocked(tag uint32, sym Symbol) {
	p := s.slots.Load()
	if p == nil || (s.used+1)*5 > len(*p)*4 {
		p = s.resizeLocked(s.used*5/3 + minSlots)
	}
	s.used++
	put(*p, uint64(tag)<<32|uint64(sym))
}

// removeLocked removes a symbol that is present. It closes the gap, so probes
// stay short without tombstones.
func (s *shard) removeLocked(tag uint32, sym Symbol) {
	slots := *s.slots.Load()
	want := uint64(tag)<<32 | uint64(sym)
	gap := home(tag, len(slots))
	for slots[gap].Load() != want {
		gap = next(gap, len(slots))
	}
	for i := next(gap, len(slots)); ; i = next(i, len(slots)) {
		slot := slots[i].Load()
		if slot == 0 {
			break
		}
		// An entry may move into the gap unless its probe begins behind it.
		h := home(uint32(slot>>32), len(slots))
		if behind := gap < h && h <= i || i < gap && (gap < h || h <= i); !behind {
			slots[gap].Store(slot)
			gap = i
		}
	}
	slots[gap].Store(0)
	s.used--
	if s.used == 0 && len(slots) > 8*minSlots || s.used > 0 && len(slots) > 4*s.used+8*minSlots {
		s.resizeLocked(s.used*5/3 + minSlots)
	}
}

// resizeLocked publishes a table of n slots with the same entries.
func (s *shard) resizeLocked(n int) *[]atomic.Uint64 {
	slots := make([]atomic.Uint64, n)
	if old := s.slots.Load(); old != nil {
		for i := range *old {
			if slot := (*old)[i].Load(); slot != 0 {
				put(slots, slot)
			}
		}
	}
	s.slots.Store(&slots)
	return &slots
}

func put(slots []atomic.Uint64, slot uint64) {
	i := home(uint32(slot>>32), len(slots))
	for slots[i].Load() != 0 {
		i = next(i, len(slots))
	}
	slots[i].Store(slot)
}

func next(i, n int) int {
	if i++; i == n {
		return 0
	}
	return i
}
