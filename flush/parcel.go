package flush

import (
	"context"
	"sync"
	"time"
)

// Parcel is a packet, or increments, that a sink has not delivered, for the
// sink of the same name in the successor process.
type Parcel struct {
	// Sink is the name of the sink, and Form identifies the encoding of Data.
	Sink, Form string
	// Shard is the part of the sink that keeps the order of its packets.
	Shard int
	// Age is how long ago the packet was queued. A time of day would be wrong in the
	// other process if the clock was set in between.
	Age time.Duration
	// Metrics is the number of metrics in the packet.
	Metrics int
	// Increments are counter increments that wait for a packet; Data is then
	// the key of their series. If it is 0, Data is a packet.
	Increments uint64
	Data       []byte
}

// Movable is a [Runner] whose undelivered packets can move to another process.
type Movable interface {
	Runner
	// Hold stops sending, waits for attempts in progress, at most until ctx
	// ends, and removes and returns everything that is not delivered. Attempts
	// that continue after ctx ends keep their packets.
	Hold(ctx context.Context) []Parcel
	// Release ends Hold. If moved is false, the sink gets everything back.
	Release(moved bool)
	// Inherit takes a parcel of another process. It returns false if the sink cannot
	// send it.
	Inherit(Parcel) bool
}

// Hold flushes the histograms, which are not handed over, waits until the sinks
// have encoded all snapshots, at most until ctx ends, and removes and returns
// everything that the sinks have not delivered. Flushes must be suspended, and
// [Scheduler.Release] must follow.
func (s *Scheduler) Hold(ctx context.Context) (all []Parcel) {
	s.flush(false)
	var mu sync.Mutex // guards all
	s.eachMovable(func(w *worker, m Movable) {
		select {
		case <-w.idle():
		case <-ctx.Done():
		}
		parcels := m.Hold(ctx)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, parcels...)
	})
	return all
}

// Release ends a Hold. If moved is false, the sinks get everything back.
func (s *Scheduler) Release(moved bool) {
	s.eachMovable(func(_ *worker, m Movable) { m.Release(moved) })
}

// Inherit passes a parcel to its sink. It returns false if there is no such sink, or
// it cannot send the parcel.
func (s *Scheduler) Inherit(p Parcel) (taken bool) {
	for _, w := range s.workers {
		if m, ok := w.sink.(Movable); ok && w.sink.Name() == p.Sink {
			w.guard.Run("inheritance of a sink", func() { taken = m.Inherit(p) })
			return taken
		}
	}
	return false
}

// eachMovable calls f for all sinks that can move, at the same time.
func (s *Scheduler) eachMovable(f func(*worker, Movable)) {
	var all sync.WaitGroup
	for _, w := range s.workers {
		if m, ok := w.sink.(Movable); ok {
			all.Go(func() { w.guard.Run("move of a sink", func() { f(w, m) }) })
		}
	}
	all.Wait()
}
