package flush_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

// movable is a sink with an interval that can move.
type movable struct {
	recorder
	closed chan struct{}
	held   uint64 // deltas of c as of Hold
	moved  []bool
	got    []flush.Parcel
}

func (*movable) Interval() time.Duration { return time.Minute }
func (m *movable) Close()                { close(m.closed) }
func (m *movable) Run(ctx context.Context) {
	select {
	case <-m.closed:
	case <-ctx.Done():
	}
}

func (m *movable) Hold(context.Context) []flush.Parcel {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = m.deltas
	return []flush.Parcel{{Sink: m.name}}
}

func (m *movable) Release(moved bool) { m.moved = append(m.moved, moved) }

func (m *movable) Inherit(p flush.Parcel) bool {
	m.got = append(m.got, p)
	return p.Form == ""
}

// wild is a sink that cannot move without a panic.
type wild struct{ movable }

func (*wild) Hold(context.Context) []flush.Parcel { panic(guardtest.Canary) }
func (*wild) Inherit(flush.Parcel) bool           { panic(guardtest.Canary) }

// TestPanicsOfMovingSinks: what other sinks have still moves.
func TestPanicsOfMovingSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		bad := &wild{movable{recorder: recorder{name: "bad"}, closed: make(chan struct{})}}
		good := &movable{recorder: recorder{name: "good"}, closed: make(chan struct{})}
		fine := &movable{recorder: recorder{name: "fine"}, closed: make(chan struct{})}
		s, stop := run(t, flush.Config{Store: store.New(store.Options{}), Interval: time.Second, Sinks: []flush.Sink{bad, good, fine}, Logger: panics.Logger()})
		s.Suspend()
		if parcels := s.Hold(t.Context()); len(parcels) != 2 || parcels[0].Sink == parcels[1].Sink {
			t.Errorf("moves %v", parcels)
		}
		panics.Caught("move of a sink")
		s.Release(true)
		if s.Inherit(flush.Parcel{Sink: "bad"}) {
			t.Error("a parcel was taken")
		}
		panics.Caught("inheritance of a sink")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHoldReportsEverythingBefore: a sink that moves has got all snapshots, also those
// that wait for the end of its interval.
func TestHoldReportsEverythingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.New(store.Options{})
		m := &movable{recorder: recorder{name: "m", slow: time.Second}, closed: make(chan struct{})}
		s, stop := run(t, flush.Config{Store: st, Interval: time.Second, Sinks: []flush.Sink{&recorder{name: "r"}, m}})
		c := st.Root().Counter("c")
		for range 3 {
			c.Add(2)
			time.Sleep(time.Second)
		}
		s.Suspend()
		if parcels := s.Hold(t.Context()); len(parcels) != 1 || m.held != 6 {
			t.Errorf("%d parcels after %d increments, want 6", len(parcels), m.held)
		}
		s.Release(false)
		if len(m.moved) != 1 || m.moved[0] {
			t.Errorf("released %v", m.moved)
		}
		for p, want := range map[string]bool{"m": true, "r": false, "x": false} {
			if got := s.Inherit(flush.Parcel{Sink: p}); got != want {
				t.Errorf("a parcel for %s: %t", p, got)
			}
		}
		if s.Inherit(flush.Parcel{Sink: "m", Form: "other"}) || len(m.got) != 2 {
			t.Errorf("the sink got %v", m.got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
