package symtab

import "sync/atomic"

// directory is a growing array of pages. Reads take no lock; writes must not
// overlap. The zero value is empty.
type directory[T any] struct {
	pages atomic.Pointer[[]atomic.Pointer[T]]
}

// at returns page i, or nil.
func (d *directory[T]) at(i int) *T {
	if pages := d.pages.Load(); pages != nil && i < len(*pages) {
		return (*pages)[i].Load()
	}
	return nil
}

// put sets page i. Calls must not overlap.
func (d *directory[T]) put(i int, page *T) {
	pages := d.pages.Load()
	if pages == nil || i >= len(*pages) {
		pages = d.grow(i)
	}
	(*pages)[i].Store(page)
}

// grow publishes a copy with room for index i. Readers of the old array miss
// later changes, but a reader that needs a page learned of it after the change.
func (d *directory[T]) grow(i int) *[]atomic.Pointer[T] {
	var old []atomic.Pointer[T]
	if pages := d.pages.Load(); pages != nil {
		old = *pages
	}
	pages := make([]atomic.Pointer[T], max(4, 2*len(old), i+1))
	for j := range old {
		pages[j].Store(old[j].Load())
	}
	d.pages.Store(&pages)
	return &pages
}
