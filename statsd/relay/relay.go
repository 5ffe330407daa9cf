package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// Relay forwards lines. Create it with [New]; its methods are safe for concurrent use.
type Relay struct {
	cfg     Config
	routes  []*route
	targets []*target // of all routes
	named   bool
	invalid bool
	guard   guard.Guard

	moving sync.Mutex // guards the next two
	mover  *Writer    // of lines that move
	line   line.Line

	handing atomic.Bool // packets that are left at the end are kept for Hold

	mu      sync.Mutex // guards the rest
	writers []*Writer
	own     []listener
	seen    tracers // forwarded
}

// New checks cfg and returns a relay. Nothing is sent before Start.
func New(cfg Config) (*Relay, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{cfg: cfg, guard: guard.New(cfg.Logger)}
	for _, rt := range cfg.Routes {
		made := &route{Route: rt}
		for _, p := range rt.Prefixes {
			made.prefixes = append(made.prefixes, []byte(p))
		}
		for _, t := range rt.Targets {
			made.targets = append(made.targets, r.newTarget(made, t))
		}
		r.routes = append(r.routes, made)
		r.named = r.named || rt.Hash != None || len(rt.Prefixes) > 0
		r.invalid = r.invalid || rt.Invalid
	}
	r.mover = r.NewWriter(&r.moving)
	return r, nil
}

// NeedsName reports whether metrics must be identified before [Writer.Add].
func (r *Relay) NeedsName() bool { return r.named }

// TakesInvalid reports whether a route relays lines that the parser rejects.
func (r *Relay) TakesInvalid() bool { return r.invalid }

// Start starts sending. Call it once. The returned function sends the queued
// lines, for up to 5 seconds and as long as targets accept them, counts the
// rest as dropped unless HandOver was called, and returns when all goroutines
// have stopped. Writers must not be used once it is called.
func (r *Relay) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sending, abort := context.WithCancel(context.Background())
	var queues, others sync.WaitGroup
	run := func(parts *sync.WaitGroup, f func()) {
		parts.Go(func() { r.keep("relay", f) })
	}
	for _, t := range r.targets {
		run(&queues, func() {
			defer t.conn.Close()
			t.queue.Run(sending)
		})
		run(&others, func() { t.watch(ctx) })
		run(&others, func() { t.trace(ctx) })
	}
	run(&others, func() { r.flushUntil(ctx) })
	return func() {
		defer time.AfterFunc(linger, abort).Stop()
		cancel()
		others.Wait()
		for _, t := range r.targets {
			t.queue.Close()
		}
		queues.Wait()
		abort()
	}
}

// keep calls f until it returns without a panic.
func (r *Relay) keep(where string, f func()) {
	for !r.guard.Run(where, f) {
		time.Sleep(r.cfg.Delay)
	}
}

// flushUntil flushes regularly, and once more when ctx is done.
func (r *Relay) flushUntil(ctx context.Context) {
	tick := time.Tick(r.cfg.Delay)
	for {
		select {
		case <-ctx.Done():
			r.flush()
			return
		case <-tick:
			r.flush()
		}
	}
}

// flush queues the packets of all writers, and moves the lines that wait for targets
// that are down.
func (r *Relay) flush() {
	r.mu.Lock()
	writers := r.writers
	r.mu.Unlock()
	for _, w := range writers {
		w.flush()
	}
	for _, rt := range r.routes {
		r.move(rt)
	}
	r.mover.flush()
}

// move moves the lines that wait for the targets of a hash that are down to the next
// target of each.
func (r *Relay) move(rt *route) {
	r.moving.Lock()
	defer r.moving.Unlock()
	up := 0
	for _, t := range rt.targets {
		if t.up.Load() {
			up++
		}
	}
	if rt.Hash == None || up == 0 || up == len(rt.targets) {
		return
	}
	for _, t := range rt.targets {
		if t.up.Load() {
			continue
		}
		t.queue.Take(func(data []byte, _ int) {
			eachLine(data, func(text []byte) {
				_, to := rt.pick(r.keyOf(rt, text))
				r.mover.packers[t.index].out++
				r.mover.packers[to.index].in++
				r.mover.put(to, text)
			})
		})
	}
}

// keyOf returns the key of a line in a packet. r.moving must be held.
func (r *Relay) keyOf(rt *route, text []byte) uint64 {
	l := &r.line
	if r.cfg.Parser.Split(l, text) != line.OK || l.Kind == line.KindMetric && r.cfg.Parser.Identify(l) != line.OK {
		return invalidKey(text)
	}
	return rt.key(l, &r.mover.scratch)
}

// HandOver makes the end of sending keep the queued packets, for [Relay.Hold].
func (r *Relay) HandOver() { r.handing.Store(true) }

// Hold returns the packets that were left at the end, for another process.
func (r *Relay) Hold() (all []flush.Parcel) {
	for _, t := range r.targets {
		all = append(all, t.queue.Hold(context.Background())...)
	}
	return all
}

// Release ends Hold. If moved is false, the packets are lost.
func (r *Relay) Release(moved bool) {
	for _, t := range r.targets {
		t.queue.Release(moved)
	}
}

// Inherit queues a packet from another process for the target of the same name.
// It returns false if there is no such target.
func (r *Relay) Inherit(p flush.Parcel) bool {
	return slices.ContainsFunc(r.targets, func(t *target) bool { return t.queue.Inherit(p) })
}

// Report describes the targets.
func (r *Relay) Report() []report.RelayTarget {
	var all []report.RelayTarget
	for _, t := range r.targets {
		all = append(all, t.report())
	}
	return all
}
