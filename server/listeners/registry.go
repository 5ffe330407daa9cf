package listeners

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Direction says which way the traffic of a listener goes.
type Direction uint8

// The directions.
const (
	Unspecified Direction = iota
	Inbound
	Outbound
)

// String returns the name of d.
func (d Direction) String() string {
	switch d {
	case Inbound:
		return "INBOUND"
	case Outbound:
		return "OUTBOUND"
	}
	return "UNSPECIFIED"
}

// Protocol is the transport of a listener.
type Protocol uint8

// The protocols.
const (
	TCP Protocol = iota
	UDP
)

// String returns the name of p.
func (p Protocol) String() string {
	if p == UDP {
		return "UDP"
	}
	return "TCP"
}

// Listener is one listener of the server.
type Listener struct {
	Name      string           // unique
	Addresses []config.Address // as bound, in order; not changed afterwards
	Direction Direction
	Protocol  Protocol
	// Stop stops accepting and returns when that is done everywhere. It is
	// called once at most. Nil: there is nothing to stop.
	Stop func()
}

// Config sets up a [Registry]. The zero value works.
type Config struct {
	Stats Stats
	// StartDrain begins a graceful drain and calls done when its time is over;
	// it returns false when a running drain covers this one. nil: a graceful
	// drain has no period.
	StartDrain func(inboundOnly bool, done func()) bool
	// Logger logs a panic in a Stop function, which then counts as done. If nil,
	// nothing is logged.
	Logger *slog.Logger
}

// Stats are the stats of a registry, with their names below "listener_manager.".
// Nil fields are not counted.
type Stats struct {
	Added    *store.Counter // listener_added
	Modified *store.Counter // listener_modified
	Removed  *store.Counter // listener_removed
	Stopped  *store.Counter // listener_stopped: once per listener
	Created  *store.Counter // listener_create_success: added or replaced another
	Refused  *store.Counter // listener_create_failure: could not be added or replace another

	Active   *store.Gauge // total_listeners_active
	Warming  *store.Gauge // total_listeners_warming: always 0, since only ready listeners are added
	Draining *store.Gauge // total_listeners_draining: about to be stopped
}

// Registry holds the listeners. Make it with [New].
type Registry struct {
	cfg Config

	mu             sync.Mutex
	list           []*entry // in the order of Add
	inboundStopped bool
	allStopped     bool
	draining       uint64
}

// entry is a listener and whether its Stop was taken to be called.
type entry struct {
	Listener
	stopped bool
}

// New returns an empty registry.
func New(cfg Config) *Registry {
	cfg.Stats.Warming.Set(0)
	return &Registry{cfg: cfg}
}

// Add puts a listener at the end of the list. It is refused when the name is
// taken or its direction was stopped; the caller then stops it himself.
func (r *Registry) Add(l Listener) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refusedLocked(l); err != nil {
		r.cfg.Stats.Refused.Inc()
		return err
	}
	if r.findLocked(l.Name) >= 0 {
		r.cfg.Stats.Refused.Inc()
		return fmt.Errorf("listeners: second listener named %q", l.Name)
	}
	r.list = append(r.list, &entry{Listener: l})
	r.cfg.Stats.Added.Inc()
	r.cfg.Stats.Created.Inc()
	r.setActiveLocked()
	return nil
}

// Replace puts l in the place of the listener of the same name and stops that
// one. It is refused when there is none or the direction was stopped.
func (r *Registry) Replace(l Listener) error {
	r.mu.Lock()
	if err := r.refusedLocked(l); err != nil {
		r.mu.Unlock()
		r.cfg.Stats.Refused.Inc()
		return err
	}
	i := r.findLocked(l.Name)
	if i < 0 {
		r.mu.Unlock()
		r.cfg.Stats.Refused.Inc()
		return fmt.Errorf("listeners: no listener named %q", l.Name)
	}
	old := r.list[i]
	r.list[i] = &entry{Listener: l}
	stops := r.takeLocked([]*entry{old})
	r.cfg.Stats.Modified.Inc()
	r.cfg.Stats.Created.Inc()
	r.mu.Unlock()
	r.stop(stops)
	return nil
}

// Remove takes a listener out of the list and stops it. It reports whether
// there was one.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	i := r.findLocked(name)
	if i < 0 {
		r.mu.Unlock()
		return false
	}
	old := r.list[i]
	r.list = slices.Delete(r.list, i, i+1)
	stops := r.takeLocked([]*entry{old})
	r.cfg.Stats.Removed.Inc()
	r.setActiveLocked()
	r.mu.Unlock()
	r.stop(stops)
	return true
}

// List returns all listeners in the order in which they were added, stopped
// ones among them.
func (r *Registry) List() []Listener {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Listener, len(r.list))
	for i, e := range r.list {
		list[i] = e.Listener
	}
	return list
}

// AppendText appends one line for each address of each listener:
// name::address.
func (r *Registry) AppendText(dst []byte) []byte {
	for _, l := range r.List() {
		for _, a := range l.Addresses {
			dst = fmt.Appendf(dst, "%s::%s\n", l.Name, a)
		}
	}
	return dst
}

// Drain stops all listeners, or those of inbound traffic, now, and returns
// when they have stopped. From then on listeners of that direction can be
// neither added nor replaced.
func (r *Registry) Drain(inboundOnly bool) {
	r.mu.Lock()
	r.inboundStopped = true
	r.allStopped = r.allStopped || !inboundOnly
	var chosen []*entry
	for _, e := range r.list {
		if !inboundOnly || e.Direction == Inbound {
			chosen = append(chosen, e)
		}
	}
	stops := r.takeLocked(chosen)
	r.mu.Unlock()
	r.stop(stops)
}

// DrainGracefully starts a drain and returns at once; listeners stop when the
// drain time is over, or stay when skipExit is set.
func (r *Registry) DrainGracefully(inboundOnly, skipExit bool) {
	done := func() { r.Drain(inboundOnly) }
	if skipExit {
		done = func() {}
	}
	if r.cfg.StartDrain == nil {
		done()
		return
	}
	r.cfg.StartDrain(inboundOnly, done)
}

// refusedLocked says why a listener may not be added. r.mu must be held.
func (r *Registry) refusedLocked(l Listener) error {
	switch {
	case l.Name == "":
		return fmt.Errorf("listeners: a listener without a name")
	case r.allStopped:
		return fmt.Errorf("listeners: %q not added: all listeners are stopped", l.Name)
	case r.inboundStopped && l.Direction == Inbound:
		return fmt.Errorf("listeners: %q not added: inbound listeners are stopped", l.Name)
	}
	return nil
}

// findLocked returns the index of a listener, or -1. r.mu must be held.
func (r *Registry) findLocked(name string) int {
	return slices.IndexFunc(r.list, func(e *entry) bool { return e.Name == name })
}

// takeLocked marks entries as stopped and returns the functions that stop
// those that were not. r.mu must be held.
func (r *Registry) takeLocked(entries []*entry) []func() {
	var stops []func()
	for _, e := range entries {
		if e.stopped {
			continue
		}
		e.stopped = true
		stop := e.Stop
		if stop == nil {
			stop = func() {}
		}
		stops = append(stops, stop)
	}
	return stops
}

// stop calls the functions side by side and counts each when it returns. No
// lock may be held.
func (r *Registry) stop(stops []func()) {
	r.addDraining(uint64(len(stops)))
	var wg sync.WaitGroup
	for _, stop := range stops {
		wg.Go(func() {
			guard.New(r.cfg.Logger).Run("end of a listener", func() {
				defer r.addDraining(^uint64(0))
				defer r.cfg.Stats.Stopped.Inc()
				stop()
			})
		})
	}
	wg.Wait()
}

// addDraining adds n to the number of listeners that are about to stop.
func (r *Registry) addDraining(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining += n
	r.cfg.Stats.Draining.Set(r.draining)
}

// setActiveLocked shows the length of the list. r.mu must be held.
func (r *Registry) setActiveLocked() {
	r.cfg.Stats.Active.Set(uint64(len(r.list)))
}
