package certinfo

import (
	"slices"
	"sync"
	"time"
)

// Registry holds the TLS contexts in use. The zero value is empty and ready to
// use. A nil Registry keeps nothing.
type Registry struct {
	// Now returns the current time. If nil, time.Now is used.
	Now func() time.Time

	mu   sync.Mutex
	list []*Handle // in the order of Add
}

// Handle is a context in a [Registry].
type Handle struct {
	registry *Registry
	context  Context // guarded by registry.mu
}

// Add registers a context. Its slices must not be changed afterwards.
func (r *Registry) Add(c Context) *Handle {
	h := &Handle{registry: r, context: c}
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, h)
	}
	return h
}

// Update replaces the context, for example after a rotation.
func (h *Handle) Update(c Context) {
	if r := h.registry; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		h.context = c
	}
}

// Remove removes the context from the registry. A second call does nothing.
func (h *Handle) Remove() {
	if r := h.registry; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = slices.DeleteFunc(r.list, func(other *Handle) bool { return other == h })
	}
}

// List returns all contexts in the order in which they were added. The slices
// in them must not be changed.
func (r *Registry) List() []Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Context, len(r.list))
	for i, h := range r.list {
		list[i] = h.context
	}
	return list
}

// DaysUntilFirstExpiring returns the smallest number of days until a
// certificate expires, and false if there is none.
func (r *Registry) DaysUntilFirstExpiring() (days uint64, ok bool) {
	now := r.time()
	for _, c := range r.List() {
		for _, list := range [][]Certificate{c.CA, c.Chain} {
			for i := range list {
				if d := list[i].DaysLeft(now); !ok || d < days {
					days, ok = d, true
				}
			}
		}
	}
	return days, ok
}

// SecondsUntilFirstOCSPExpiring returns the smallest number of seconds until
// an OCSP response expires, and false if there is none.
func (r *Registry) SecondsUntilFirstOCSPExpiring() (seconds uint64, ok bool) {
	now := r.time()
	for _, c := range r.List() {
		for i := range c.Chain {
			ocsp := c.Chain[i].OCSP
			if ocsp == nil {
				continue
			}
			if s := secondsLeft(ocsp.Until, now); !ok || s < seconds {
				seconds, ok = s, true
			}
		}
	}
	return seconds, ok
}

func (r *Registry) time() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}
