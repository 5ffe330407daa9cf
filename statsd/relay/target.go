package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// target is a server with its queue.
type target struct {
	relay    *Relay
	route    *route
	cfg      Target
	index    int    // in Relay.targets
	seed     uint64 // of its scores
	mode     string
	network  sinkqueue.Network
	location string
	longest  int // line
	overhead int // bytes of a packet besides its lines and the line feeds between them

	queue *sinkqueue.Queue
	conn  *sinkqueue.Conn
	up    atomic.Bool // read by writers

	accepted, movedIn, movedOut, long, connections *store.Counter
	upGauge                                        *store.Gauge

	wake chan struct{} // has an element if sending began to fail

	tracer   atomic.Uint64 // value of the last tracer that was sent
	returned chan struct{} // has an element if that tracer came back
	forward  chan []byte   // tracers of other relays

	mu     sync.Mutex    // guards the rest
	loops  failures      // tracers that came back
	sends  failures      // of packets
	checks failures      // of health checks
	pause  time.Duration // before the next probe
}

// failures counts the failures since the last success.
type failures struct {
	n   int
	err error
}

func (r *Relay) newTarget(rt *route, cfg Target) *target {
	t := &target{relay: r, route: rt, cfg: cfg, index: len(r.targets), seed: xxhash.Sum64String(cfg.Name), wake: make(chan struct{}, 1), longest: maxPacketBytes}
	t.returned, t.forward = make(chan struct{}, 1), make(chan []byte, tracersQueued)
	t.network, t.location, _, _ = SplitAddress(cfg.Address) // checked before
	t.mode = [...]string{None: "copy", Name: "hash of names", Series: "hash of series"}[rt.Hash]
	switch {
	case t.network.Stream():
		t.overhead = 1
	case t.network == sinkqueue.UDP:
		t.longest = maxDatagram
	}
	t.conn = sinkqueue.NewConn(sinkqueue.ConnConfig{
		Network: t.network, Address: t.location, Timeout: r.cfg.Timeout, PacketBytes: max(cfg.PacketBytes, maxDatagram),
		Opened: t.opened, Lost: func(n int) { t.queue.Lost(n) },
	})
	name := oneline.Clean(cfg.Name)
	t.queue = sinkqueue.New(sinkqueue.Config{
		Options: sinkqueue.Options{Name: name, Store: r.cfg.Store, QueueBytes: cfg.QueueBytes, Logger: r.cfg.Logger},
		Words:   sinkqueue.Words{Scope: "relay", Tag: "target", Unit: "lines"},
		Kind:    t.mode, Target: cfg.Address, Send: t.send, Count: countLines, Keeps: r.handing.Load,
	})
	sc, tag := r.cfg.Store.Own().Scope("relay"), tags.Tag{Name: "target", Value: name}
	sc.Help(helpTexts)
	t.accepted = sc.Counter("accepted_lines", tag)
	t.movedIn = sc.Counter("moved_in_lines", tag)
	t.movedOut = sc.Counter("moved_out_lines", tag)
	t.long = sc.Counter("long_lines", tag)
	t.connections = sc.Counter("connections", tag)
	t.upGauge = sc.GaugeWithMode("up", store.NeverImport, tag)
	t.up.Store(true)
	t.upGauge.Set(1)
	r.targets = append(r.targets, t)
	return t
}

// eachLine calls yield for the lines of a packet.
func eachLine(data []byte, yield func(text []byte)) {
	for len(data) > 0 {
		var text []byte
		if text, data, _ = bytes.Cut(data, []byte{'\n'}); len(text) > 0 {
			yield(text)
		}
	}
}

func countLines(data []byte) (n int) {
	eachLine(data, func([]byte) { n++ })
	return n
}

// opened checks and counts a new connection.
func (t *target) opened(c net.Conn) error {
	if err := t.relay.checkLoop(t, c.RemoteAddr()); err != nil {
		return err
	}
	t.connections.Inc()
	return nil
}

// send makes one attempt to send a packet.
func (t *target) send(ctx context.Context, data []byte) (int, error) {
	if err := t.looping(); err != nil {
		return 0, err
	}
	n, err := t.conn.Send(ctx, data)
	if !errors.Is(err, sinkqueue.ErrRefused) { // which is about the packet, not the target
		t.note(&t.sends, err)
	}
	if err == nil {
		t.mu.Lock()
		t.pause = 0 // connecting alone does not show that t is well
		t.mu.Unlock()
	}
	return n, err
}

// note counts a failure, or ends a series of failures if err is nil, and decides
// whether t is up.
func (t *target) note(f *failures, err error) {
	t.mu.Lock()
	f.n++
	if f.err = err; err == nil {
		f.n = 0
	}
	up := t.sends.n < misses && t.checks.n < misses && t.loops.n == 0
	why := errors.Join(t.sends.err, t.checks.err, t.loops.err)
	changed := t.up.Swap(up) != up
	t.mu.Unlock()
	if !changed {
		return
	}
	log := t.relay.cfg.Logger
	if up {
		t.upGauge.Set(1)
		t.queue.Retry()
		log.Info("relay: target is up again", "target", t.cfg.Name)
		return
	}
	t.upGauge.Set(0)
	select {
	case t.wake <- struct{}{}:
	default:
	}
	log.Warn("relay: target is down", "target", t.cfg.Name, "error", why)
}

// watch checks t until ctx ends: its health, and whether it can be connected to again
// after sending failed.
func (t *target) watch(ctx context.Context) {
	checking := t.cfg.Health.Address != ""
	for {
		if checking {
			t.note(&t.checks, t.check(ctx))
		}
		wait := t.nextProbe()
		if checking && (wait == 0 || wait > t.cfg.Health.Interval) {
			wait = t.cfg.Health.Interval
		}
		var fired <-chan time.Time
		if wait > 0 {
			fired = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-fired:
			t.probe(ctx)
		}
	}
}

// nextProbe returns how long to wait before t is connected to, 0 if sending does not
// fail.
func (t *target) nextProbe() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sends.n < misses {
		return 0
	}
	t.pause = max(t.pause, sinkqueue.MinRetry)
	wait := time.Duration(float64(t.pause) * (0.8 + 0.4*rand.Float64()))
	t.pause = min(2*t.pause, sinkqueue.MaxRetry)
	return wait
}

// probe connects to t if sending fails: while its packets go elsewhere, nothing else
// notices that it is back.
func (t *target) probe(ctx context.Context) {
	t.mu.Lock()
	failing := t.sends.n >= misses
	t.mu.Unlock()
	if !failing {
		return
	}
	c, err := t.network.Dial(ctx, t.location, t.relay.cfg.Timeout)
	if err != nil {
		return
	}
	defer c.Close()
	if t.relay.checkLoop(t, c.RemoteAddr()) == nil {
		t.note(&t.sends, nil)
	}
}

// check makes one health check.
func (t *target) check(ctx context.Context) (err error) {
	h := &t.cfg.Health
	defer func() {
		if err != nil {
			err = fmt.Errorf("health check of %s: %w", h.Address, err)
		}
	}()
	c, err := sinkqueue.TCP.Dial(ctx, h.Address, t.relay.cfg.Timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	if h.Expect == "" {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(t.relay.cfg.Timeout)); err != nil {
		return err
	}
	if _, err := c.Write([]byte(healthQuestion)); err != nil {
		return err
	}
	answer := make([]byte, 0, healthAnswerBytes)
	for len(answer) < cap(answer) {
		n, err := c.Read(answer[len(answer):cap(answer)])
		answer = answer[:len(answer)+n]
		if bytes.Contains(answer, []byte(h.Expect)) {
			return nil
		}
		if err != nil {
			break
		}
	}
	return fmt.Errorf("the answer does not contain %q", h.Expect)
}

func (t *target) report() report.RelayTarget {
	d := t.queue.Delivery()
	r := report.RelayTarget{
		Name: t.cfg.Name, Address: t.cfg.Address, Mode: t.mode, Up: t.up.Load(),
		Accepted: t.accepted.Total(), MovedIn: t.movedIn.Total(), MovedOut: t.movedOut.Total(), Long: t.long.Total(),
		Sent: d.SentMetrics, Packets: d.Sent, Bytes: d.SentBytes, Dropped: d.DroppedMetrics, Ambiguous: d.AmbiguousMetrics, Rejected: d.Rejected,
		LostPackets: d.Lost, Connections: t.connections.Total(), Failed: d.Failed,
		Queued: d.Metrics, QueueBytes: d.Bytes, QueueLimit: d.LimitBytes, QueueAge: d.Age,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.loops.err != nil:
		r.LastError = t.loops.err.Error()
	case t.checks.err != nil:
		r.LastError = t.checks.err.Error()
	case d.LastError != nil:
		r.LastError, r.LastErrorAt = d.LastError.Error(), d.LastErrorAt
	}
	return r
}

// helpTexts has the help texts of the metrics of a target that its queue does not have.
var helpTexts = map[string]string{
	"accepted_lines":  "Lines that a target was chosen for.",
	"moved_in_lines":  "Lines that came from another target that is down.",
	"moved_out_lines": "Lines that went to another target while this one was down.",
	"long_lines":      "Lines dropped because they are too long for the target.",
	"connections":     "Connections opened to the target.",
	"up":              "1 if the target is up.",
}
