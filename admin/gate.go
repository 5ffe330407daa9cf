package admin

import (
	"sync/atomic"
	"time"
)

// gate lets a few requests run at once and queues some more.
type gate struct {
	slots   chan struct{} // nil: unlimited
	waiting atomic.Int64
	queue   int // below 0: any number may wait
	wait    time.Duration
}

func newGate(running, waiting int, wait time.Duration) *gate {
	g := &gate{queue: waiting, wait: wait}
	if running > 0 {
		g.slots = make(chan struct{}, running)
	}
	return g
}

// enter reports whether the caller got a slot, which it must release with leave.
// It waits at most the gate's time, and not at all once stop is closed.
func (g *gate) enter(stop <-chan struct{}) bool {
	if g.slots == nil {
		return true
	}
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	defer g.waiting.Add(-1)
	if over(int(g.waiting.Add(1)), g.queue) {
		return false
	}
	var late <-chan time.Time
	if g.wait > 0 {
		late = time.After(g.wait)
	}
	select {
	case g.slots <- struct{}{}:
		return true
	case <-late:
	case <-stop:
	}
	return false
}

func (g *gate) leave() {
	if g.slots != nil {
		<-g.slots
	}
}
