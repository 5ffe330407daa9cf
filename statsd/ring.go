package statsd

// ring keeps the last max items.
type ring[T any] struct {
	items []T
	max   int
	next  int // index of the oldest item once the ring is full
}

func newRing[T any](max int) ring[T] { return ring[T]{max: max} }

func (r *ring[T]) add(v T) {
	switch {
	case r.max == 0:
	case len(r.items) < r.max:
		r.items = append(r.items, v)
	default:
		r.items[r.next] = v
		r.next = (r.next + 1) % r.max
	}
}

// list returns the items, oldest first.
func (r *ring[T]) list() []T {
	out := make([]T, 0, len(r.items))
	return append(append(out, r.items[r.next:]...), r.items[:r.next]...)
}

// oldest returns the item that the next add replaces, or the zero value.
func (r *ring[T]) oldest() (v T) {
	if len(r.items) == r.max && r.max > 0 {
		return r.items[r.next]
	}
	return v
}
