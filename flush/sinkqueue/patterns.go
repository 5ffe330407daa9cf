package sinkqueue

import "github.com/statsd-admin/statsd-admin/store"

// Patterns caches values of type T for the latest patterns of a flush. Each
// walk has patterns of its own, so the next flush sees changed rules and
// descriptions. The zero value is empty. Only one goroutine can use it.
type Patterns[T any] struct{ slots []patternSlot[T] }

type patternSlot[T any] struct {
	pattern *store.Pattern
	value   T
}

// Of returns the value for a pattern. If it is not known, the caller must set
// it: v is then the value of another pattern, whose memory can be reused.
func (k *Patterns[T]) Of(p *store.Pattern) (v *T, known bool) {
	if k.slots == nil {
		k.slots = make([]patternSlot[T], store.PatternSlots)
	}
	s := &k.slots[p.Slot()]
	known = s.pattern == p
	s.pattern = p
	return &s.value, known
}
