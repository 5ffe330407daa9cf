package httptransport

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// waiter asks a pool for a connection, and returns once it waits for one.
func waiter(t *testing.T, p *pool) <-chan *client {
	t.Helper()
	got := make(chan *client, 1)
	go func() {
		c, err := p.get(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- c
	}()
	waittest.Until(t, "a request waits", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiting) == 1
	})
	return got
}

// TestWaiters: a request that waits gets the connection that comes back, and makes one
// when the circuit breaker allows it again, or its host has no other in the pool.
func TestWaiters(t *testing.T) {
	hosts := []string{serve(t, func(http.ResponseWriter, *http.Request) {}), serve(t, func(http.ResponseWriter, *http.Request) {})}
	for priority := range upstream.Priority(2) {
		r := newRig(t, "circuit_breakers: {thresholds: [{max_connections: 2}, {priority: HIGH, max_connections: 2}]}", hosts...)
		hd := r.m.Cluster("c")
		of := func(i int, priority upstream.Priority) (*pool, *client) {
			t.Helper()
			p, err := r.Pools.of(hd, hd.Current(), r.host(i), priority)
			if err != nil {
				t.Fatal(err)
			}
			c, err := p.get(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return p, c
		}
		otherPriority, held := of(0, 1-priority)
		p, c := of(0, priority)
		otherHost, last := of(1, priority)
		limit := &hd.Current().Breakers(priority).Connections

		within(t, "a connection comes back", func() {
			got := waiter(t, p)
			p.put(c, true)
			if again := <-got; again != c {
				t.Errorf("priority %d: another connection than the one that came back", priority)
			}
		})
		r.check(map[string]int{"upstream_cx_total": 3})

		var second *client
		within(t, "the breaker allows a connection", func() {
			got := waiter(t, p)
			_ = last.Close()
			second = <-got
		})
		r.check(map[string]int{"upstream_cx_total": 4})

		var third *client
		within(t, "the pool of the host is empty", func() {
			got := waiter(t, p)
			limit.Take() // by connections of other hosts
			limit.Take()
			_ = c.Close()
			_ = second.Close()
			third = <-got
		})
		r.check(map[string]int{"upstream_cx_total": 5})

		limit.Release()
		limit.Release()
		p.put(c, false)
		p.put(second, false)
		p.put(third, true)
		otherHost.put(last, false)
		otherPriority.put(held, true)
	}
}

// TestWaitersAtTheLimitOfAHost: while a host has all connections that it may have, a
// request waits without further attempts, and gets the connection that comes back.
func TestWaitersAtTheLimitOfAHost(t *testing.T) {
	r := newRig(t, "circuit_breakers: {per_host_thresholds: [{max_connections: 1}]}", serve(t, func(http.ResponseWriter, *http.Request) {}))
	hd := r.m.Cluster("c")
	p, err := r.Pools.of(hd, hd.Current(), r.host(0), upstream.DefaultPriority)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := waiter(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 3*lookEvery)
	defer cancel()
	if _, err := p.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request beyond the limit: %v", err)
	}
	r.check(map[string]int{"upstream_cx_total": 1, "upstream_cx_overflow": 2})
	within(t, "the connection comes back", func() {
		p.put(c, true)
		if again := <-got; again != c {
			t.Error("another connection than the one that came back")
		}
	})
	p.put(c, true)
}
