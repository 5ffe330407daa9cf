package certs

import (
	"slices"
	"sync"
	"time"
)

// Context is the material of one TLS context. A context without certificates
// is legal.
type Context struct {
	CACerts []Certificate // trusted authorities
	Chain   []Certificate // own certificate first
}

// Registry holds the contexts that are in use. Make it with [New].
type Registry struct {
	now func() time.Time

	mu   sync.Mutex
	list []*Handle // in the order of Add
}

// Handle stands for one registered context.
type Handle struct {
	registry *Registry
	context  Context // guarded by registry.mu
}

// New returns an empty registry. now tells the time; nil means time.Now.
func New(now func() time.Time) *Registry {
	if now == nil {
		now = time.Now
	}
	return &Registry{now: now}
}

// Add registers a context. Its slices must not be changed afterwards.
func (r *Registry) Add(c Context) *Handle {
	h := &Handle{registry: r, context: c}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, h)
	return h
}

// Update replaces the material of a context, for instance after a rotation.
func (h *Handle) Update(c Context) {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	h.context = c
}

// Remove takes the context out of the registry. A second call does nothing.
func (h *Handle) Remove() {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	h.registry.list = slices.DeleteFunc(h.registry.list, func(other *Handle) bool { return other == h })
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

// Now returns the time of the registry, for [Certificate.DaysUntilExpiration].
func (r *Registry) Now() time.Time { return r.now() }

// DaysUntilFirstExpiring returns the smallest number of days until a
// certificate expires, 0 and false when there is none.
func (r *Registry) DaysUntilFirstExpiring() (days uint64, any bool) {
	now := r.now()
	for _, c := range r.List() {
		for _, list := range [][]Certificate{c.CACerts, c.Chain} {
			for i := range list {
				if d := list[i].DaysUntilExpiration(now); !any || d < days {
					days, any = d, true
				}
			}
		}
	}
	return days, any
}

// SecondsUntilFirstOCSPExpiring returns the smallest number of seconds until
// an OCSP response expires, 0 and false when there is none.
func (r *Registry) SecondsUntilFirstOCSPExpiring() (seconds uint64, any bool) {
	now := r.now()
	for _, c := range r.List() {
		for i := range c.Chain {
			ocsp := c.Chain[i].OCSP
			if ocsp == nil {
				continue
			}
			if s := uint64(max(0, ocsp.Expiration.Sub(now)) / time.Second); !any || s < seconds {
				seconds, any = s, true
			}
		}
	}
	return seconds, any
}
