// Package shrinkmap provides a map that gives memory back when it gets smaller,
// which a Go map never does.
package shrinkmap

import (
	"iter"
	"maps"
)

// Map is a map that is copied when it has shrunk to an eighth of its largest size.
// The zero value is empty. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	m    map[K]V
	peak int // largest size of m
}

// small is the size up to which a map keeps its memory.
const small = 256

// Get returns the value of k, and whether there is one.
func (m *Map[K, V]) Get(k K) (V, bool) {
	v, ok := m.m[k]
	return v, ok
}

// At returns the value of k, or the zero value.
func (m *Map[K, V]) At(k K) V { return m.m[k] }

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return len(m.m) }

// Set sets the value of k.
func (m *Map[K, V]) Set(k K, v V) {
	if m.m == nil {
		m.m = make(map[K]V)
	}
	m.m[k] = v
	m.peak = max(m.peak, len(m.m))
}

// Delete removes k. It must not be called within a loop over [Map.All].
func (m *Map[K, V]) Delete(k K) {
	delete(m.m, k)
	n := len(m.m)
	if m.peak <= small || n >= m.peak/8 {
		return
	}
	next := make(map[K]V, n)
	maps.Copy(next, m.m)
	m.m, m.peak = next, n
}

// All yields the keys and their values.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, v := range m.m {
			if !yield(k, v) {
				return
			}
		}
	}
}
