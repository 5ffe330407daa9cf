package store

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// refreshers are functions to call before values are read.
type refreshers struct {
	mu    sync.Mutex // guards list and gone, not the calls
	list  []*refresher
	gone  int        // removals since list was copied
	calls sync.Mutex // held during calls
	log   atomic.Pointer[slog.Logger]
}

// refresher is a function in refreshers, nil once it was removed.
type refresher struct{ f atomic.Pointer[func()] }

// BeforeRead registers f to be called before each view is opened and each flush,
// for example to set gauges. Calls do not overlap. f must not open a view or flush.
// It returns a function that unregisters f.
func (s *Store) BeforeRead(f func()) (remove func()) {
	rs, r := &s.refreshers, new(refresher)
	r.f.Store(&f)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.list = append(rs.list, r) // refresh does not look beyond the list it took
	return func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		r.f.Store(nil)
		// Copies of the list are rare, so that many functions are cheap to remove.
		if rs.gone++; rs.gone > len(rs.list)/2 {
			var kept []*refresher
			for _, o := range rs.list {
				if o.f.Load() != nil {
					kept = append(kept, o)
				}
			}
			rs.list, rs.gone = kept, 0
		}
	}
}

// refresh calls the registered functions. A panic of one is logged.
func (s *Store) refresh() {
	s.refreshers.mu.Lock()
	list := s.refreshers.list
	s.refreshers.mu.Unlock()
	if len(list) == 0 {
		return
	}
	s.refreshers.calls.Lock()
	defer s.refreshers.calls.Unlock()
	g := guard.New(s.refreshers.log.Load())
	for _, r := range list {
		if f := r.f.Load(); f != nil {
			g.Run("function before a read of stats", *f)
		}
	}
}

// GaugeFunc makes the gauge called name show the result of f, which is called
// before each view is opened and each flush, under the rules of
// [Store.BeforeRead]. Values that are not finite are ignored. It fails like
// [Scope.TryFloatGauge]. f, which must not be nil, is no longer called once the gauge
// has ended. Of several functions for one gauge, the value is that of the last one.
func (sc *Scope) GaugeFunc(name string, f func() float64, tgs ...tags.Tag) error {
	if f == nil {
		return fmt.Errorf("store: %q: the function is nil", sc.FullName(name))
	}
	g, err := sc.TryFloatGauge(name, tgs...)
	if err != nil {
		return err
	}
	b, i := g.w.home()
	var remove func()
	set := func() {
		if !b.alive.has(i) {
			remove()
			return
		}
		_ = g.Set(f()) // keeps the last finite value
	}
	sc.store.refreshers.calls.Lock() // so that set sees remove
	defer sc.store.refreshers.calls.Unlock()
	remove = sc.store.BeforeRead(set)
	return nil
}
