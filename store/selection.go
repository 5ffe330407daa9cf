package store

import "sync/atomic"

// Selection remembers for each stat whether a predicate on its name held, so
// that a filter asked again judges new names only. The zero value knows
// nothing. Any number of goroutines may use a selection at a time; two that
// judge the same stat must come to the same answer.
type Selection struct {
	blocks atomic.Pointer[[]atomic.Pointer[selected]]
}

// selected is what a selection knows of one block.
type selected struct {
	blk   *block
	known atomicBits
	hit   atomicBits
}

// Known reports whether the stat under c was judged, and how.
func (s *Selection) Known(c *Cursor) (hit, known bool) {
	p := s.blocks.Load()
	if n := int(c.x >> slotBits); p != nil && n < len(*p) {
		if sel := (*p)[n].Load(); sel != nil && sel.blk == c.b && sel.known.has(c.i) {
			return sel.hit.has(c.i), true
		}
	}
	return false, false
}

// Note keeps the judgment of the stat under c.
func (s *Selection) Note(c *Cursor, hit bool) {
	n := int(c.x >> slotBits)
	p := s.blocks.Load()
	for p == nil || n >= len(*p) {
		grown := make([]atomic.Pointer[selected], max(len(*c.s.blocks.Load()), n+1))
		if p != nil {
			for i := range *p {
				grown[i].Store((*p)[i].Load())
			}
		}
		// What a racing Note puts into the old list is judged again later.
		s.blocks.CompareAndSwap(p, &grown)
		p = s.blocks.Load()
	}
	at := &(*p)[n]
	sel := at.Load()
	for sel == nil || sel.blk != c.b {
		at.CompareAndSwap(sel, &selected{blk: c.b})
		sel = at.Load()
	}
	if hit {
		sel.hit.set(c.i)
	}
	sel.known.set(c.i)
}
