package sinkqueue

import "github.com/statsd-admin/statsd-admin/store"

// Patterns keeps what the last patterns of a flush mean to a sink. Each walk has patterns
// of its own, so the next flush learns anew what rules and descriptions
// have become. Its zero value is empty. One goroutine uses it.
type Patterns[T any] struct{ slots []patternSlot[T] }

type patternSlot[T any] struct {
	pattern *store.Pattern
	value   T
}

// Of returns the value for a pattern. If it is not known, the caller has to set it; it
// is that of another pattern then, whose memory can be reused.
func (k *Patterns[T]) Of(p *store.Pattern) (v *T, known bool) {
	if k.slots == nil {
		k.slots = make([]patternSlot[T], store.PatternSlots)
	}
	s := &k.slots[p.Slot()]
	known = s.pattern == p
	s.pattern = p
	return &s.value, known
}
