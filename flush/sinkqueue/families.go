package sinkqueue

import "github.com/statsd-admin/statsd-admin/store"

// Families keeps a value for each of the last families of a flush, of which most points
// have one in common. One goroutine uses it.
type Families[T any] struct{ slots []familySlot[T] }

type familySlot[T any] struct {
	name  *store.Name
	kind  store.Kind
	value T
}

const familySlots = 256

// Forget makes all values unknown. Descriptions of families can change between flushes.
func (f *Families[T]) Forget() {
	if f.slots == nil {
		f.slots = make([]familySlot[T], familySlots)
	}
	for i := range f.slots {
		f.slots[i].name = nil
	}
}

// Of returns the value of a family, which the caller sets if it is not known. The value
// is valid until the next call.
func (f *Families[T]) Of(name *store.Name, k store.Kind) (v *T, known bool) {
	s := &f.slots[name.ID()%familySlots]
	known = s.name == name && s.kind == k
	s.name, s.kind = name, k
	return &s.value, known
}
