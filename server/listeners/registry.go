package listeners

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Direction is the traffic direction of a listener.
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
	// Stop stops accepting and returns when that is complete. It is called at most
	// once. It may be nil.
	Stop func()
	// Stopped is set by [Registry.List] once a drain has stopped the listener.
	Stopped bool
	// DrainEnd is set by [Registry.List] while the listener drains gracefully: to the
	// end of its drain time.
	DrainEnd time.Time

	ended chan struct{} // closed when Stop has returned; nil unless Stopped
}

// Config configures a [Registry]. The zero value is valid.
type Config struct {
	Stats Stats
	// StartDrain starts a graceful drain and calls done after its time. It returns
	// false if a running drain covers this one. If nil, a graceful drain stops
	// listeners at once.
	StartDrain func(inboundOnly bool, done func()) bool
	// DrainEnd returns when the drain of a direction is over, or the zero time if none
	// has started. It may be nil.
	DrainEnd func(inbound bool) time.Time
	// Logger logs drains, and a panic in a Stop function, which then counts as done.
	// If nil, nothing is logged.
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

// Registry holds the listeners. Create it with [New].
type Registry struct {
	cfg Config

	mu             sync.Mutex
	list           []*Listener // in the order of Add
	inboundStopped bool
	allStopped     bool
	draining       uint64
}

// New returns an empty registry.
func New(cfg Config) *Registry {
	cfg.Stats.Warming.Set(0)
	return &Registry{cfg: cfg}
}

// Add appends a listener to the list. It fails if the name is taken or the direction
// has been stopped; the caller must then stop the listener.
func (r *Registry) Add(l Listener) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.admitLocked(&l, false); err != nil {
		return err
	}
	r.list = append(r.list, &l)
	r.cfg.Stats.Added.Inc()
	r.setActiveLocked()
	return nil
}

// Replace replaces the listener of the same name with l and stops the old one. It
// fails if there is none or the direction has been stopped.
func (r *Registry) Replace(l Listener) error {
	r.mu.Lock()
	i, err := r.admitLocked(&l, true)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	stops := r.list[i].takeLocked(nil)
	r.list[i] = &l
	r.cfg.Stats.Modified.Inc()
	r.mu.Unlock()
	r.stop(stops)
	return nil
}

// Remove removes and stops a listener, and reports whether it existed.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	i := r.findLocked(name)
	if i < 0 {
		r.mu.Unlock()
		return false
	}
	old := r.list[i]
	r.list = slices.Delete(r.list, i, i+1)
	stops := old.takeLocked(nil)
	r.cfg.Stats.Removed.Inc()
	r.setActiveLocked()
	r.mu.Unlock()
	r.stop(stops)
	return true
}

// List returns all listeners, stopped ones included, in the order in which they were
// added.
func (r *Registry) List() []Listener {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Listener, len(r.list))
	for i, l := range r.list {
		list[i] = *l
		if r.cfg.DrainEnd != nil && !l.Stopped {
			list[i].DrainEnd = r.cfg.DrainEnd(l.Direction == Inbound)
		}
	}
	return list
}

// AppendText appends one line per address of each listener: name::address.
func (r *Registry) AppendText(dst []byte) []byte {
	for _, l := range r.List() {
		for _, a := range l.Addresses {
			dst = fmt.Appendf(dst, "%s::%s\n", l.Name, a)
		}
	}
	return dst
}

// Drain stops all listeners, or inbound ones, and returns when they have stopped, even if
// another call has begun to stop them. Afterwards no listeners of that direction can be added or
// replaced.
func (r *Registry) Drain(inboundOnly bool) {
	r.mu.Lock()
	r.inboundStopped = true
	r.allStopped = r.allStopped || !inboundOnly
	var stops []func()
	var names []string
	var ends []chan struct{}
	for _, l := range r.list {
		if inboundOnly && l.Direction != Inbound {
			continue
		}
		if !l.Stopped {
			names = append(names, l.Name)
		}
		stops = l.takeLocked(stops)
		ends = append(ends, l.ended)
	}
	r.mu.Unlock()
	r.stop(stops)
	for _, ended := range ends {
		<-ended
	}
	if len(names) > 0 {
		r.info("listeners stopped by a drain", "listeners", names)
	}
}

func (r *Registry) info(message string, attributes ...any) {
	if r.cfg.Logger != nil {
		r.cfg.Logger.Info(message, attributes...)
	}
}

// DrainGracefully starts a drain and returns at once. Listeners stop after the drain
// time, or stay if skipExit is set.
func (r *Registry) DrainGracefully(inboundOnly, skipExit bool) {
	done := func() { r.Drain(inboundOnly) }
	if skipExit {
		done = func() {}
	}
	if r.cfg.StartDrain == nil {
		done()
		return
	}
	if r.cfg.StartDrain(inboundOnly, done) {
		r.info("graceful drain started", "inbound_only", inboundOnly)
	} else {
		r.info("graceful drain not started: a running drain covers it", "inbound_only", inboundOnly)
	}
}

// admitLocked counts a listener that is added or replaces another, or returns an error if
// it cannot. i is the index of the listener with its name, or -1. r.mu must be held.
func (r *Registry) admitLocked(l *Listener, replaces bool) (i int, err error) {
	i = r.findLocked(l.Name)
	switch {
	case l.Name == "":
		err = errors.New("listeners: the listener has no name")
	case r.allStopped:
		err = fmt.Errorf("listeners: %q not added: all listeners are stopped", l.Name)
	case r.inboundStopped && l.Direction == Inbound:
		err = fmt.Errorf("listeners: %q not added: inbound listeners are stopped", l.Name)
	case !replaces && i >= 0:
		err = fmt.Errorf("listeners: second listener named %q", l.Name)
	case replaces && i < 0:
		err = fmt.Errorf("listeners: no listener named %q", l.Name)
	}
	if err != nil {
		r.cfg.Stats.Refused.Inc()
		return i, err
	}
	r.cfg.Stats.Created.Inc()
	l.Stopped, l.DrainEnd = false, time.Time{}
	return i, nil
}

// findLocked returns the index of a listener, or -1. r.mu must be held.
func (r *Registry) findLocked(name string) int {
	return slices.IndexFunc(r.list, func(l *Listener) bool { return l.Name == name })
}

// takeLocked marks a listener as stopped and appends its Stop function to stops, unless
// it was stopped before. The registry's lock must be held.
func (l *Listener) takeLocked(stops []func()) []func() {
	if l.Stopped {
		return stops
	}
	stop, ended := l.Stop, make(chan struct{})
	l.Stopped, l.ended = true, ended
	return append(stops, func() {
		defer close(ended)
		if stop != nil {
			stop()
		}
	})
}

// stop calls the functions concurrently and counts each when it returns. No lock may
// be held.
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

// addDraining adds n to the number of stopping listeners.
func (r *Registry) addDraining(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining += n
	r.cfg.Stats.Draining.Set(r.draining)
}

// setActiveLocked publishes the length of the list. r.mu must be held.
func (r *Registry) setActiveLocked() {
	r.cfg.Stats.Active.Set(uint64(len(r.list)))
}
