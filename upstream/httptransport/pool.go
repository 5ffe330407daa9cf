package httptransport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

const (
	readBuffer  = 4 << 10
	writeBuffer = 4 << 10
	tendEvery   = time.Second            // between looks at idle connections
	lookEvery   = 100 * time.Millisecond // of a waiter at the circuit breaker
)

// client is a connection to a host with its buffers. It serves one request at a
// time.
type client struct {
	*upstream.Conn
	in    *bufio.Reader
	out   *bufio.Writer
	since time.Time   // when it became idle
	sent  atomic.Bool // some of the request has left
	cut   bool        // a write has failed; the writer of the request has it

	// While headers are awaited limit is the number of bytes that can be read, and
	// head holds the bytes read; else limit is negative. lost is the error that ended reading.
	limit int
	head  []byte
	lost  error
}

// Write writes what the buffer before it flushes.
func (c *client) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.sent.Store(true)
	}
	c.cut = c.cut || err != nil
	return n, err
}

// Read reads within the limit.
func (c *client) Read(b []byte) (int, error) {
	if c.limit == 0 {
		return 0, errHeaderBytes
	}
	if c.limit > 0 {
		b = b[:min(len(b), c.limit)]
	}
	n, err := c.Conn.Read(b)
	if c.limit > 0 {
		c.limit -= n
		c.head = append(c.head, b[:n]...)
	}
	if err != nil {
		c.lost = err
	}
	return n, err
}

// connectionNames calls yield with the names in the headers Connection of the
// answer, which net/http drops if "close" is among them.
func (c *client) connectionNames(yield func(string)) {
	for line := range bytes.Lines(c.head) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !bytes.EqualFold(name, []byte("Connection")) {
			continue
		}
		for name := range strings.SplitSeq(string(value), ",") {
			yield(strings.TrimSpace(name))
		}
	}
}

// Pools holds the connections of any number of transports, so that an idle
// connection serves all of them. The zero value is ready for use. Give
// [Pools.Hooks] to the cluster manager.
type Pools struct {
	// Logger logs panics in request bodies. If nil, nothing is logged.
	Logger *slog.Logger

	byHost sync.Map // poolKey to *pool
}

type poolKey struct {
	host     *host.Host
	priority upstream.Priority
}

// Hooks returns hooks that close the connections of hosts and clusters that are
// removed, and then call next.
func (ps *Pools) Hooks(next upstream.Hooks) upstream.Hooks {
	removed, gone, closing := next.HostRemoved, next.ClusterRemoved, next.CloseConnections
	next.HostRemoved = func(c *upstream.Cluster, h *host.Host) {
		ps.Drain(c, h)
		if removed != nil {
			removed(c, h)
		}
	}
	next.ClusterRemoved = func(c *upstream.Cluster) {
		ps.Drain(c, nil)
		if gone != nil {
			gone(c)
		}
	}
	next.CloseConnections = func(c *upstream.Cluster, h *host.Host) {
		if h == nil { // with a host it is about tunnels
			ps.Drain(c, nil)
		}
		if closing != nil {
			closing(c, h)
		}
	}
	return next
}

// Drain closes the idle connections to a host, and those in use once their
// request ends. A nil host means all hosts of the cluster, a nil cluster all
// clusters.
func (ps *Pools) Drain(c *upstream.Cluster, h *host.Host) {
	for key, p := range ps.each(h) {
		if c == nil || c == p.cluster {
			ps.drop(key, p)
		}
	}
}

// each yields the pools of a host, or all of them if it is nil.
func (ps *Pools) each(h *host.Host) iter.Seq2[poolKey, *pool] {
	return func(yield func(poolKey, *pool) bool) {
		if h == nil {
			ps.byHost.Range(func(key, v any) bool { return yield(key.(poolKey), v.(*pool)) })
			return
		}
		for _, pr := range []upstream.Priority{upstream.DefaultPriority, upstream.HighPriority} {
			if v, ok := ps.byHost.Load(poolKey{h, pr}); ok && !yield(poolKey{h, pr}, v.(*pool)) {
				return
			}
		}
	}
}

// of returns the pool of a host. If a circuit breaker allows no further pool, an
// unused one is dropped.
func (ps *Pools) of(hd *upstream.Handle, c *upstream.Cluster, h *host.Host, p upstream.Priority) (*pool, error) {
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
	} else if !serves(hd, c, h) { // removed since it was picked, so no hook will follow
		ps.drop(key, v.(*pool))
	}
	return v.(*pool), nil
}

// serves reports whether c is the active cluster, and h a host of it.
func serves(hd *upstream.Handle, c *upstream.Cluster, h *host.Host) bool {
	return hd.Current() == c && c.HasHost(h)
}

// drop takes out a pool, which lives on as long as it is used.
func (ps *Pools) drop(key poolKey, p *pool) {
	if ps.byHost.CompareAndDelete(key, p) {
		p.cluster.Breakers(p.priority).Pools.Release()
		p.drain()
	}
}

// dropUnused drops an unused pool of a cluster, and reports whether there was one.
func (ps *Pools) dropUnused(c *upstream.Cluster, pr upstream.Priority) bool {
	for key, p := range ps.each(nil) {
		if p.cluster == c && p.priority == pr && p.unused() {
			ps.drop(key, p)
			return true
		}
	}
	return false
}

// pool is the connections to one host.
type pool struct {
	cluster  *upstream.Cluster
	host     *host.Host
	priority upstream.Priority

	mu       sync.Mutex
	users    int            // requests that have a connection or wait for one
	idle     []*client      // the most recently used one is last
	waiting  []chan *client // a waiter gets a connection, or nil to try and make one
	tending  bool           // a timer looks after idle
	draining bool
}

// get returns an idle connection, or a new one. If circuit breakers allow no
// further connection it waits for one until ctx is done. The caller puts the
// connection back.
func (p *pool) get(ctx context.Context) (*client, error) {
	p.use(1)
	c, err := p.take(ctx)
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

func (p *pool) take(ctx context.Context) (*client, error) {
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
	for {
		conn, err := p.cluster.Connect(ctx, p.host, p.priority, transport.Options{ALPN: []string{"http/1.1"}})
		if err == nil {
			stats.CxHTTP1Total.Inc()
			c := &client{Conn: conn, limit: -1}
			c.in = bufio.NewReaderSize(c, p.cluster.BufferSize(readBuffer))
			c.out = bufio.NewWriterSize(c, p.cluster.BufferSize(writeBuffer))
			return c, nil
		}
		if !errors.Is(err, upstream.ErrOverflow) {
			p.give(nil) // another waiter may try what this one was woken for
			if ctx.Err() == context.Canceled {
				stats.RqCancelled.Inc()
			} else {
				stats.RqPendingFailureEject.Inc()
			}
			return nil, err
		}
		turn := make(chan *client, 1)
		p.mu.Lock()
		p.waiting = append(p.waiting, turn)
		p.mu.Unlock()
		if c := p.takeIdle(); c != nil { // came back before the wait began
			p.give(c)
		}
		c, err := p.wait(ctx, turn)
		if c != nil {
			return c, nil
		}
		if err != nil {
			p.leave(turn)
			stats.RqCancelled.Inc()
			return nil, err
		}
	}
}

// wait waits for turn. A connection that was closed before the wait began, or that
// belongs to an earlier pool of the host, wakes no waiter of p, so it also looks
// whether the breaker allows a connection now.
func (p *pool) wait(ctx context.Context, turn chan *client) (*client, error) {
	look := time.Tick(lookEvery)
	limit := &p.cluster.Breakers(p.priority).Connections
	for {
		select {
		case c := <-turn:
			return c, nil
		case <-look:
			if limit.Current() < limit.Max() && !p.cluster.HostFull(p.host, p.priority) || p.host.InPool[p.priority&1].Value() == 0 {
				p.give(nil)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// leave ends the wait of turn, and passes on a connection it already got.
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

// takeIdle returns an idle connection that still works, nil if there is none.
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

// put takes back a connection after a request, and closes it if it cannot be
// reused.
func (p *pool) put(c *client, reusable bool) {
	defer p.use(-1)
	if !reusable || !c.Reusable() {
		p.discard(c)
		return
	}
	p.give(c)
}

// discard closes a connection and lets a waiter try to make another.
func (p *pool) discard(c *client) {
	_ = c.Close()
	p.give(nil)
}

// give gives a connection to the longest waiter, or keeps it. A nil one only wakes
// the waiter.
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
			p.tendLater()
		}
	}
}

func (p *pool) tendLater() {
	time.AfterFunc(tendEvery, p.tend)
}

// tend closes idle connections that are past their time or closed by the host.
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
		p.tendLater()
	}
	p.mu.Unlock()
	for _, c := range gone {
		_ = c.Close()
	}
}

// drain closes idle connections now, and those in use when they come back.
func (p *pool) drain() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.draining = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}
