package relay

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// Relays that send to each other form a loop, in which lines circle forever. A relay
// finds the loops that it is part of with tracers: gauges whose name ends in tracerName
// and whose value is random. It sends one to each target from time to time. Every relay
// forwards the tracers of others once, and a target whose tracer comes back is down.
const (
	tracerName    = "statsd.relay_tracer"
	tracersQueued = 16  // of a target, to forward
	tracersSeen   = 256 // remembered, so that they are forwarded once
)

var errLoop = errors.New("relay: lines come back to this server: the target relays them in a loop")

// IsTracer reports whether the name of a metric, without tags, is that of a tracer,
// which is passed to Trace and is neither a stat nor a line for [Writer.Add].
func IsTracer(name []byte) bool { return bytes.HasSuffix(name, []byte(tracerName)) }

// tracers are the recently forwarded tracers of other relays.
type tracers struct {
	known map[uint64]bool // by hash of the text
	order [tracersSeen]uint64
	next  int
}

// add reports whether a tracer is new, and remembers it.
func (s *tracers) add(text []byte) bool {
	h := xxhash.Sum64(text)
	if s.known[h] {
		return false
	}
	if s.known == nil {
		s.known = make(map[uint64]bool, tracersSeen)
	}
	delete(s.known, s.order[s.next])
	s.known[h], s.order[s.next] = true, h
	s.next = (s.next + 1) % tracersSeen
	return true
}

// Trace handles a received tracer, which must have been identified. If this
// relay sent it, its target relays in a loop and is marked as down. A tracer of
// another relay is forwarded on all routes that accept its name.
func (r *Relay) Trace(l *line.Line) {
	value, _ := strconv.ParseUint(string(l.Samples[0].Text), 10, 64)
	for _, t := range r.targets {
		if value != 0 && t.tracer.Load() == value {
			select {
			case t.returned <- struct{}{}:
			default:
			}
			return
		}
	}
	r.mu.Lock()
	fresh := r.seen.add(l.Text)
	r.mu.Unlock()
	if !fresh {
		return
	}
	for _, rt := range r.routes {
		if !rt.takes(l) {
			continue
		}
		for _, t := range rt.targets {
			select {
			case t.forward <- bytes.Clone(l.Text):
			default: // its relay sends another one
			}
		}
	}
}

// trace sends tracers to t, and forwards tracers of other relays, until ctx ends. They
// have a connection of their own, so that they pass while t is down.
func (t *target) trace(ctx context.Context) {
	conn := sinkqueue.NewConn(sinkqueue.ConnConfig{
		Network: t.network, Address: t.location, Timeout: t.relay.cfg.Timeout, PacketBytes: max(t.cfg.PacketBytes, maxDatagram),
	})
	defer conn.Close()
	var due <-chan time.Time
	if every := t.relay.cfg.LoopCheck; every > 0 {
		due = time.Tick(every)
	}
	sent, looped := false, false // since the last tracer
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-t.forward:
			_, _ = conn.Send(ctx, text) // the next tracer replaces a lost one
		case <-t.returned:
			looped = true
			t.note(&t.loops, errLoop)
		case <-due:
			if sent && !looped {
				t.note(&t.loops, nil)
			}
			sent, looped = t.sendTracers(ctx, conn), false
			conn.Close()
		}
	}
}

// sendTracers sends new tracers that look like lines for t, and reports whether it
// succeeded.
func (t *target) sendTracers(ctx context.Context, conn *sinkqueue.Conn) (ok bool) {
	value := 1 + rand.Uint64N(1<<53-1) // whole also as a float
	t.tracer.Store(value)
	prefixes := t.route.prefixes
	if len(prefixes) == 0 {
		prefixes = [][]byte{nil}
	}
	ok = true
	for _, p := range prefixes {
		text := strconv.AppendUint(append(append(bytes.Clone(p), tracerName...), ':'), value, 10)
		_, err := conn.Send(ctx, append(text, "|g"...))
		ok = ok && err == nil
	}
	return ok
}

// looping returns an error if lines come back from t.
func (t *target) looping() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loops.err
}
