package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// receive takes a line as a server with this relay does.
func (w *world) receive(text string) {
	w.mu.Lock()
	tracer := parser.Parse(&w.line, []byte(text)) == line.OK && IsTracer(w.line.Name)
	if tracer {
		w.Trace(&w.line)
	}
	w.mu.Unlock()
	if !tracer {
		w.add(text)
	}
}

// ring returns relays in a ring, each with the route to the next one.
func ring(t *testing.T, n int, route func(i int, next *sink) Route) (all []*world) {
	sinks := make([]*sink, n)
	for i := range sinks {
		sinks[i] = newSink(t)
	}
	for i := range sinks {
		w := newWorldWith(t, Config{LoopCheck: 20 * time.Millisecond, Routes: []Route{route(i, sinks[(i+1)%n])}})
		sinks[i].mu.Lock() // happens before a connection
		sinks[i].next = w.receive
		sinks[i].mu.Unlock()
		all = append(all, w)
	}
	for i, w := range all {
		w.run()
		t.Cleanup(sinks[i].kill)
	}
	return all
}

// TestLoopsOfSeveralRelaysAreFound has three relays in a ring. The second hashes over
// another target, too.
func TestLoopsOfSeveralRelaysAreFound(t *testing.T) {
	other := newSink(t)
	defer other.kill()
	all := ring(t, 3, func(i int, next *sink) Route {
		to := []Target{{Name: fmt.Sprint("next", i), Address: "unixlines://" + next.path}}
		if i == 1 {
			return Route{Hash: Series, Targets: append(to, targets(other)...)}
		}
		return Route{Targets: to}
	})
	for i, w := range all {
		waittest.Until(t, "the loop to be found", func() bool { return !w.targets[0].up.Load() })
		if i == 1 && !w.targets[1].up.Load() {
			t.Error("a target outside of the loop is down")
		}
	}
	before := all[0].Report()[0].Sent
	for i := range 100 {
		all[0].add(fmt.Sprintf("n%d:1|c", i))
	}
	waittest.Until(t, "the lines to wait", func() bool { return all[0].Report()[0].Queued == 100 })
	waittest.Until(t, "an attempt", func() bool { return strings.Contains(all[0].Report()[0].LastError, "in a loop") })
	if r := all[0].Report()[0]; r.Up || r.Sent != before {
		t.Errorf("%+v", r)
	}
}

// TestRoutesThatNoLineCirclesOn has two relays that send different names to each other.
func TestRoutesThatNoLineCirclesOn(t *testing.T) {
	all := ring(t, 2, func(i int, next *sink) Route {
		return Route{Prefixes: []string{[]string{"shop.", "app."}[i]}, Targets: targets(next)}
	})
	for i, w := range all {
		x := w.targets[0]
		var seen map[uint64]bool
		waittest.Until(t, "some tracers", func() bool {
			if seen == nil {
				seen = map[uint64]bool{}
			}
			seen[x.tracer.Load()] = true
			return len(seen) > 5
		})
		if r := w.Report()[0]; !r.Up || r.LastError != "" {
			t.Errorf("relay %d: %+v", i, r)
		}
	}
}

// TestLoopEnds has a loop that another configuration of the other relay ends.
func TestLoopEnds(t *testing.T) {
	s := newSink(t)
	defer s.kill()
	w := newWorldWith(t, Config{LoopCheck: 20 * time.Millisecond, Routes: []Route{{Targets: targets(s)}}})
	s.mu.Lock()
	s.next = func(text string) {
		if strings.HasPrefix(text, tracerName) {
			w.receive(text)
		}
	}
	s.mu.Unlock()
	w.run()
	x := w.targets[0]
	waittest.Until(t, "the loop to be found", func() bool { return !x.up.Load() })
	w.add("a:1|c")
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	waittest.Until(t, "the loop to end", x.up.Load)
	waittest.Until(t, "the line that waited", func() bool { return w.Report()[0].Sent == 1 })
}

// TestTracersAreForwardedOnce keeps loops that a relay only forwards to from filling up.
func TestTracersAreForwardedOnce(t *testing.T) {
	w := newWorld(t, Route{Prefixes: []string{"none."}, Targets: []Target{{Address: "unixlines:///nothing/at/all"}}},
		Route{Prefixes: []string{"shop."}, Targets: []Target{{Address: "unixlines:///nothing/here"}}})
	for i, tt := range []struct {
		text string
		want int
	}{
		{"shop.statsd.relay_tracer:1|g", 1},
		{"shop.statsd.relay_tracer:1|g", 1},
		{"shop.statsd.relay_tracer:2|g", 2},
		{"statsd.relay_tracer:3|g", 2},
	} {
		w.receive(tt.text)
		if got := len(w.targets[1].forward); got != tt.want {
			t.Errorf("line %d, %q: %d tracers wait, want %d", i, tt.text, got, tt.want)
		}
	}
	for i := range 2 * tracersSeen {
		w.receive(fmt.Sprintf("shop.statsd.relay_tracer:%d|g", 10+i))
	}
	if len(w.seen.known) > tracersSeen || len(w.targets[1].forward) > tracersQueued {
		t.Errorf("%d tracers are remembered, %d wait", len(w.seen.known), len(w.targets[1].forward))
	}
	if r := w.Report()[0]; r.Accepted != 0 || r.Queued != 0 {
		t.Errorf("%+v", r)
	}
}

// TestEachTracerHasAConnection: no connection stays open from one tracer to the next, so
// that a target that moved is followed.
func TestEachTracerHasAConnection(t *testing.T) {
	s := newSink(t)
	w := newWorldWith(t, Config{LoopCheck: 10 * time.Millisecond, Routes: []Route{{Targets: targets(s)}}})
	defer w.run()()
	waittest.Until(t, "some tracers", func() bool { return s.count() >= 6 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.conns); n < s.total {
		t.Errorf("%d tracers came over %d connections", s.total, n)
	}
}
