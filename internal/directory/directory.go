// Package directory has growing arrays that are read without a lock.
package directory

import "sync/atomic"

// Directory is a growing array of pointers. Reads take no lock; writes must not
// overlap. The zero value is empty.
//
// A write beyond the end publishes a longer copy. Readers of the old array miss
// later changes, but a reader that needs an element learned of it after the change.
type Directory[T any] struct {
	list atomic.Pointer[[]atomic.Pointer[T]]
}

// At returns element i, which must have been put.
func (d *Directory[T]) At(i int) *T { return (*d.list.Load())[i].Load() }

// Find returns element i, or nil.
func (d *Directory[T]) Find(i int) *T {
	if list := d.list.Load(); list != nil && i < len(*list) {
		return (*list)[i].Load()
	}
	return nil
}

// All returns the elements that there is memory for; some are nil.
func (d *Directory[T]) All() []atomic.Pointer[T] {
	if list := d.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Put sets element i.
func (d *Directory[T]) Put(i int, v *T) {
	list := d.All()
	if i >= len(list) {
		list = d.Resize(max(4, 2*len(list), i+1))
	}
	list[i].Store(v)
}

// Resize sets the number of elements that there is memory for.
func (d *Directory[T]) Resize(n int) []atomic.Pointer[T] {
	next, list := make([]atomic.Pointer[T], n), d.All()
	for i := range min(n, len(list)) {
		next[i].Store(list[i].Load())
	}
	d.list.Store(&next)
	return next
}
