// Package transporttest keeps what transport sockets tell of their certificates,
// for tests. Only test files import it.
package transporttest

import (
	"maps"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// Registry is a [transport.Registry] that keeps what is in use. The zero value is
// empty. It is safe for concurrent use.
type Registry struct {
	mu   sync.Mutex
	used map[*entry]transport.Material
}

type entry struct{ r *Registry }

// Add keeps m until its entry is removed.
func (r *Registry) Add(m transport.Material) transport.Entry {
	e := &entry{r}
	e.Update(m)
	return e
}

// Update replaces what is kept.
func (e *entry) Update(m transport.Material) {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	if e.r.used == nil {
		e.r.used = make(map[*entry]transport.Material)
	}
	e.r.used[e] = m
}

// Remove ends what Add began.
func (e *entry) Remove() {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	delete(e.r.used, e)
}

// All returns what is kept, in no order.
func (r *Registry) All() []transport.Material {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.used))
}
