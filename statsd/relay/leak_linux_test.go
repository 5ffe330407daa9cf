package relay

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"testing"

	leaks "github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// descriptors returns how many descriptors the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestNoDescriptorLeaks starts and stops relays whose targets die and come back, with
// health checks and probes under way.
func TestNoDescriptorLeaks(t *testing.T) {
	s, dead := newSink(t), "unixlines:///nothing/here"
	cycle := func() {
		w := newWorld(t, Route{Hash: Name, Targets: append(targets(s), Target{Name: "dead", Address: dead})},
			Route{Targets: []Target{{Name: "udp", Address: "udp://127.0.0.1:9", Health: HealthCheck{Address: "127.0.0.1:1"}}}})
		stop := w.run()
		for i := range 10 {
			w.add(fmt.Sprintf("n%d:1|c", i))
		}
		waittest.Until(t, "a line", func() bool { return w.targets[0].queue.Delivery().Sent > 0 })
		s.kill()
		w.add("again:1|c")
		waittest.Until(t, "a dead target", func() bool { return !w.targets[1].up.Load() })
		s.start()
		stop()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would close forgotten sockets
	cycle()
	s.kill() // keeps its connections until then
	before := descriptors(t)
	s.start()
	for range 8 {
		cycle()
	}
	s.kill()
	waittest.Until(t, "no more descriptors than before", func() bool { return descriptors(t) <= before })
}

// TestProbesLeaveNothingOpen connects as checks, probes and tracers do.
func TestProbesLeaveNothingOpen(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accept := func() {
		if c, err := ln.Accept(); err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
	}
	addr := ln.Addr().String()
	w := newWorld(t, Route{Targets: []Target{{Address: "tcp://" + addr, Health: HealthCheck{Address: addr}}}})
	to := w.targets[0]
	leaks.Check(t, "health check", func() {
		if err := to.check(t.Context()); err != nil {
			t.Error(err)
		}
		accept()
	})
	leaks.Check(t, "probe", func() { to.sends.n = misses; to.probe(t.Context()); accept() })
	leaks.Check(t, "tracer", func() {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); to.trace(ctx) }()
		to.forward <- []byte("a:1|c")
		accept()
		cancel()
		<-done
	})
}
