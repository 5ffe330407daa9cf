package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/streamend"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// ErrOverflow is wrapped by the errors of [Cluster.Connect] if a circuit breaker
// refuses the connection. The overflow is counted.
var ErrOverflow = errors.New("circuit breaker is open")

// Connect connects to h as the cluster is configured, including the TLS handshake,
// within the connect timeout. It counts the connection, holds a slot of the priority's
// circuit breaker until the connection is closed, and reports the result to the
// outlier detector, except for errors of this machine (Local of [transport.Error]).
//
// The connections to a host for requests of one priority are a pool. A pool without a
// connection gets one even if the breaker is open, or requests could wait forever.
func (c *Cluster) Connect(ctx context.Context, h *host.Host, p Priority, o transport.Options) (*Conn, error) {
	return c.connect(ctx, h, p, &h.InPool[p&1], o)
}

// ErrNoCluster is returned by [Cluster.Pick], and wrapped by the error of
// [Manager.DialGRPC], if there is no such cluster.
var ErrNoCluster = errors.New("there is no such cluster")

// DialGRPC connects to a host that the load balancer of a cluster picks, for calls over
// gRPC: HTTP/2 is offered unless the transport socket names protocols.
func (m *Manager) DialGRPC(ctx context.Context, cluster string) (net.Conn, error) {
	var c *Cluster
	if h := m.Cluster(cluster); h != nil {
		c = h.Current()
	}
	if c == nil {
		return nil, fmt.Errorf("upstream: cluster %q: %w", cluster, ErrNoCluster)
	}
	to, err := c.Pick(nil)
	if err != nil {
		return nil, fmt.Errorf("upstream: cluster %q: %w", cluster, err)
	}
	conn, err := c.Connect(ctx, to, DefaultPriority, transport.Options{DefaultALPN: []string{"h2"}})
	if err != nil {
		return nil, err // without an interface that holds a nil pointer
	}
	return conn, nil
}

// HostFull reports whether h has as many connections, of both priorities and tunnels
// included, as per_host_thresholds allow for a priority.
func (c *Cluster) HostFull(h *host.Host, p Priority) bool {
	limit := c.config.CircuitBreakers.PerHostDefault
	if p == HighPriority {
		limit = c.config.CircuitBreakers.PerHostHigh
	}
	return h.Stats.CxActive.Value() >= limit
}

// ConnectTunnel is like [Cluster.Connect] for a connection that serves one client
// only, such as that of a TCP proxy. Tunnels to a host are a separate pool.
func (c *Cluster) ConnectTunnel(ctx context.Context, h *host.Host, p Priority, o transport.Options) (*Conn, error) {
	return c.connect(ctx, h, p, &h.InPool[2+p&1], o)
}

func (c *Cluster) connect(ctx context.Context, h *host.Host, p Priority, pool *host.Gauge, o transport.Options) (*Conn, error) {
	connections := &c.Breakers(p).Connections
	full := !connections.CanTake()
	if !full && c.HostFull(h, p) {
		c.stats.CxOverflow.Inc()
		full = true
	}
	if full && pool.Value() > 0 {
		return nil, fmt.Errorf("upstream: cluster %q: connections of %s priority: %w", c.config.Name, p, ErrOverflow)
	}
	connections.Take()
	pool.Inc()
	c.ConnStarted(h)
	failed := h.Health() == status.Unhealthy
	returned := false
	defer func() {
		if !returned { // a panic, for example of the caller's context
			connections.Release()
			pool.Dec()
			c.countConnFailed(h, true)
		}
	}()
	start := time.Now()
	conn, err := c.dialer.Dial(ctx, h, o)
	returned = true
	if err != nil {
		connections.Release()
		pool.Dec()
		var why *transport.Error // it has counted bind errors already
		if errors.As(err, &why) && why.Local {
			c.countConnFailed(h, true)
			return nil, err
		}
		c.ConnFailed(h, why != nil && why.Timeout)
		return nil, err
	}
	now := time.Now()
	c.ConnEstablished(h, now.Sub(start))
	return &Conn{Conn: conn, cluster: c, host: h, breaker: connections, pool: pool, made: now, failed: failed}, nil
}

// Conn is a connection to a host that counts bytes and its end. Read, Write and Close
// can be called concurrently; the other methods are for the current user.
type Conn struct {
	net.Conn
	cluster *Cluster
	host    *host.Host
	breaker *Resource
	pool    *host.Gauge // it counts in
	made    time.Time
	failed  bool // the host was unhealthy already when it was picked

	requests atomic.Int64 // begun in all
	active   atomic.Int64
	remote   atomic.Bool // the other side closed it
	closing  sync.Once
	closeErr error
}

// Host returns the host at the other end.
func (c *Conn) Host() *host.Host { return c.host }

// Cluster returns the cluster of the connection.
func (c *Conn) Cluster() *Cluster { return c.cluster }

// Begin records that a request is attached to the connection. Each call must be
// followed by a call of [Conn.End].
func (c *Conn) Begin() {
	c.requests.Add(1)
	c.active.Add(1)
}

// End records that a request has left the connection.
func (c *Conn) End() { c.active.Add(-1) }

// Reusable reports whether the limits of the cluster allow another request on the
// connection. If not, it counts the reason, and the caller closes the connection.
func (c *Conn) Reusable() bool {
	o := &c.cluster.config.HTTP
	switch {
	case o.MaxRequestsPerConnection > 0 && c.requests.Load() >= int64(o.MaxRequestsPerConnection):
		c.cluster.stats.CxMaxRequests.Inc()
		return false
	case o.MaxConnectionDuration > 0 && time.Since(c.made) >= o.MaxConnectionDuration:
		c.cluster.stats.CxMaxDurationReached.Inc()
		return false
	}
	return true
}

// Read reads from the connection and counts the bytes.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.cluster.stats.CxRxBytesTotal.Add(uint64(n))
	}
	c.note(err)
	return n, err
}

// Write writes to the connection and counts the bytes.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.cluster.stats.CxTxBytesTotal.Add(uint64(n))
	}
	c.note(err)
	return n, err
}

// note records whether the host ended the connection.
func (c *Conn) note(err error) {
	if err != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		c.remote.Store(true)
	}
}

// Alive reports, without blocking, whether an idle connection is usable: the host has
// neither closed it nor sent anything except TLS messages such as session tickets.
func (c *Conn) Alive() bool {
	if c.remote.Load() {
		return false
	}
	if t, ok := c.Conn.(*tls.Conn); ok {
		return c.stillTLS(t)
	}
	alive, err := streamend.Quiet(c.Conn)
	if err != nil {
		return false
	}
	c.remote.Store(!alive)
	return alive
}

// Ended reports, without blocking, whether the host has closed the connection. It is
// [Conn.Alive] for a user that sends and never reads: without TLS, unread data is no end.
func (c *Conn) Ended() bool {
	if _, ok := c.Conn.(*tls.Conn); ok {
		return !c.Alive()
	}
	ended := streamend.Closed(c.Conn)
	if ended {
		c.remote.Store(true)
	}
	return ended
}

// stillTLS is [Conn.Alive] for TLS. It consumes messages without application data.
func (c *Conn) stillTLS(t *tls.Conn) bool {
	defer func() { _ = t.SetReadDeadline(time.Time{}) }()
	// Received data can be read at once. If the scheduler does not get to it within
	// the deadline, the next deadline is longer. A host that sends a record byte by
	// byte exceeds the last one.
	for wait := time.Millisecond; wait <= mostWait; wait *= 2 {
		if quiet, err := streamend.Quiet(t.NetConn()); quiet || err != nil {
			return err == nil
		}
		_ = t.SetReadDeadline(time.Now().Add(wait))
		if _, err := t.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			c.remote.Store(true) // the end, or unexpected data
			return false
		}
	}
	return false
}

// mostWait is the longest time that [Conn.Alive] waits for the rest of a TLS record.
const mostWait = 64 * time.Millisecond

// CloseWrite closes the sending side of a TCP, unix or TLS connection.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection and counts its end. Further calls do nothing.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.closeErr = c.Conn.Close()
		c.breaker.Release()
		c.pool.Dec()
		c.cluster.ConnClosed(c.host, ConnEnd{
			Local: !c.remote.Load(), ActiveRequests: int(c.active.Load()), Requests: int(c.requests.Load()), Lived: time.Since(c.made),
		})
	})
	return c.closeErr
}
