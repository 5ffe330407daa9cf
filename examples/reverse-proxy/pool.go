package main

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// client is a connection to a host with its buffers. One request uses it at a
// time.
type client struct {
	*upstream.Conn
	pool  *pool
	in    *bufio.Reader
	out   *bufio.Writer
	since time.Time // when it became idle
	sent  bool      // something of the request it has
}

// Write notes that something went out. What the buffer before it holds has not.
func (c *client) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent = c.sent || n > 0
	return n, err
}

// pools are the connections of the proxy, whatever listener they are made for: what
// one keeps idle another one may be waiting for.
type pools struct{ byHost sync.Map } // poolKey to *pool

type poolKey struct {
	host     *host.Host
	priority upstream.Priority
}

// of returns the pool of a host. serves tells whether the cluster and the host are
// in use. If a circuit breaker allows no further pool, one that nobody uses goes.
func (ps *pools) of(c *upstream.Cluster, h *host.Host, p upstream.Priority, serves func(*upstream.Cluster, *host.Host) bool) (*pool, error) {
	key := poolKey{h, p}
	if v, ok := ps.byHost.Load(key); ok {
		return v.(*pool), nil
	}
	breaker := &c.Breakers(p).Pools
	if breaker.Current() >= breaker.Max() && !ps.dropUnused(c, p) && !breaker.CanTake() {
		return nil, upstream.ErrOverflow
	}
	breaker.Take()
	v, old := ps.byHost.LoadOrStore(key, &pool{cluster: c, host: h, priority: p})
	if old {
		breaker.Release()
	} else if !serves(c, h) { // it went since it was picked, and is not told of again
		ps.drop(key, v.(*pool))
	}
	return v.(*pool), nil
}

// drop drops a pool. It lives on as long as somebody uses it.
func (ps *pools) drop(key any, p *pool) {
	if ps.byHost.CompareAndDelete(key, p) {
		p.cluster.Breakers(p.priority).Pools.Release()
		p.drain()
	}
}

// dropUnused drops a pool of a cluster that nobody uses, and tells whether there
// was one.
func (ps *pools) dropUnused(c *upstream.Cluster, pr upstream.Priority) (dropped bool) {
	ps.byHost.Range(func(key, v any) bool {
		p := v.(*pool)
		if p.cluster == c && p.priority == pr && p.unused() {
			ps.drop(key, p)
			dropped = true
		}
		return !dropped
	})
	return dropped
}

// drain drops the pools of a host, or of all hosts of a cluster if h is nil, or
// all there are if c is nil too.
func (ps *pools) drain(c *upstream.Cluster, h *host.Host) {
	ps.byHost.Range(func(key, v any) bool {
		p := v.(*pool)
		if (h == nil || h == p.host) && (c == nil || c == p.cluster) {
			ps.drop(key, p)
		}
		return true
	})
}

// pool is the connections to one host.
type pool struct {
	cluster  *upstream.Cluster
	host     *host.Host
	priority upstream.Priority

	mu       sync.Mutex
	users    int            // requests that have a connection, or ask for one
	idle     []*client      // the one used last is at the end
	waiting  []chan *client // given a connection, or nil to try and make one
	tending  bool           // a timer looks after idle
	draining bool
}

// get returns a connection, one that is idle if there is any. If circuit breakers
// allow no further connection it waits for one until the deadline. What it returns
// is to be put back.
func (p *pool) get(deadline time.Time) (*client, error) {
	p.use(1)
	c, err := p.take(deadline)
	if err != nil {
		p.use(-1)
	}
	return c, err
}

func (p *pool) use(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users += n
}

func (p *pool) unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users == 0
}

func (p *pool) take(deadline time.Time) (*client, error) {
	if c := p.takeIdle(); c != nil {
		return c, nil
	}
	pending, stats := &p.cluster.Breakers(p.priority).Pending, p.cluster.Stats()
	if !pending.TryTake() {
		return nil, upstream.ErrOverflow
	}
	defer pending.Release()
	stats.RqPendingTotal.Inc()
	stats.RqPendingActive.Inc()
	defer stats.RqPendingActive.Dec()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for {
		// This proxy speaks HTTP/1.1 only, whatever the cluster would allow.
		conn, err := p.cluster.Connect(ctx, p.host, p.priority, transport.Options{ALPN: []string{"http/1.1"}})
		if err == nil {
			stats.CxHTTP1Total.Inc()
			c := &client{Conn: conn, pool: p, in: bufio.NewReaderSize(conn, headerBytes(p.cluster))}
			c.out = bufio.NewWriterSize(c, bufferSize(p.cluster, writeBuffer))
			return c, nil
		}
		if !errors.Is(err, upstream.ErrOverflow) {
			p.give(nil) // whoever waits too may try what we were woken for
			stats.RqPendingFailureEject.Inc()
			return nil, err
		}
		turn := make(chan *client, 1)
		p.mu.Lock()
		p.waiting = append(p.waiting, turn)
		p.mu.Unlock()
		if c := p.takeIdle(); c != nil { // came back before we waited
			p.give(c)
		}
		select {
		case c := <-turn:
			if c != nil {
				return c, nil
			}
		case <-ctx.Done():
			p.leave(turn)
			stats.RqCancelled.Inc()
			return nil, ctx.Err()
		}
	}
}

// leave ends the wait of turn. What it was given already is passed on.
func (p *pool) leave(turn chan *client) {
	p.mu.Lock()
	for i, w := range p.waiting {
		if w == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	p.give(<-turn)
}

// takeIdle returns a connection that is idle and still good, nil if there is none.
func (p *pool) takeIdle() *client {
	for {
		p.mu.Lock()
		last := len(p.idle) - 1
		if last < 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		if c.Alive() && c.Reusable() {
			return c
		}
		p.discard(c)
	}
}

// put takes back a connection after a request. One that cannot be used again is
// closed.
func (p *pool) put(c *client, reusable bool) {
	defer p.use(-1)
	if !reusable || !c.Reusable() {
		p.discard(c)
		return
	}
	p.give(c)
}

// discard closes a connection and lets somebody who waits try and make another.
func (p *pool) discard(c *client) {
	_ = c.Close()
	p.give(nil)
}

// give gives a connection to who waits longest, or keeps it. A nil one only wakes.
func (p *pool) give(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.waiting) > 0:
		turn := p.waiting[0]
		p.waiting = p.waiting[1:]
		turn <- c
	case c == nil:
	case p.draining:
		_ = c.Close()
	default:
		c.since = time.Now()
		p.idle = append(p.idle, c)
		if !p.tending {
			p.tending = true
			time.AfterFunc(tendEvery, p.tend)
		}
	}
}

// tendEvery is how often idle connections are looked at.
const tendEvery = time.Second

// tend closes idle connections whose time is over or whose other side has left.
func (p *pool) tend() {
	limit := p.cluster.Config().HTTP.IdleTimeout
	var gone []*client
	p.mu.Lock()
	kept := p.idle[:0]
	for _, c := range p.idle {
		switch {
		case limit > 0 && time.Since(c.since) >= limit:
			p.cluster.Stats().CxIdleTimeout.Inc()
			gone = append(gone, c)
		case !c.Alive() || !c.Reusable():
			gone = append(gone, c)
		default:
			kept = append(kept, c)
		}
	}
	p.idle = kept
	p.tending = len(kept) > 0
	if p.tending {
		time.AfterFunc(tendEvery, p.tend)
	}
	p.mu.Unlock()
	for _, c := range gone {
		_ = c.Close()
	}
}

// drain closes what is idle now, and what is in use when it comes back.
func (p *pool) drain() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.draining = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}
