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

	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// ErrOverflow is wrapped by what [Cluster.Connect] returns when a circuit breaker
// refuses a connection. It is counted already.
var ErrOverflow = errors.New("circuit breaker is open")

// Connect connects to h as the configuration of the cluster says, TLS handshake
// included, within its connect timeout. It counts the connection, holds one of the
// connections that the circuit breaker of the priority allows until the connection
// is closed, and tells the outlier detector how it went, unless it was for a lack of
// this machine that there is no connection (Local of [transport.Error]).
//
// A pool without any connection may be given one though the breaker is open, or
// requests might wait for ever. The connections that are made here for requests of a
// priority to a host are a pool.
func (c *Cluster) Connect(ctx context.Context, h *host.Host, p Priority, o transport.Options) (*Conn, error) {
	return c.connect(ctx, h, p, &h.InPool[p&1], o)
}

// ConnectTunnel is like [Cluster.Connect] for a connection that is given to one
// client for good, as that of a TCP proxy is, and never serves another one. Such
// connections are a pool of their own.
func (c *Cluster) ConnectTunnel(ctx context.Context, h *host.Host, p Priority, o transport.Options) (*Conn, error) {
	return c.connect(ctx, h, p, &h.InPool[2+p&1], o)
}

func (c *Cluster) connect(ctx context.Context, h *host.Host, p Priority, pool *host.Gauge, o transport.Options) (*Conn, error) {
	connections := &c.Breakers(p).Connections
	if !connections.CanTake() && pool.Value() > 0 {
		return nil, fmt.Errorf("upstream: cluster %q: connections of %s priority: %w", c.config.Name, p, ErrOverflow)
	}
	connections.Take()
	pool.Inc()
	c.ConnStarted(h)
	returned := false
	defer func() {
		if !returned { // a panic, of the caller's context for one
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
		var failed *transport.Error // it has counted bind errors already
		if errors.As(err, &failed) && failed.Local {
			c.countConnFailed(h, true)
			return nil, err
		}
		c.ConnFailed(h, failed != nil && failed.Timeout)
		return nil, err
	}
	now := time.Now()
	c.ConnEstablished(h, now.Sub(start))
	return &Conn{Conn: conn, cluster: c, host: h, breaker: connections, pool: pool, made: now}, nil
}

// Conn is a connection to a host. It counts the bytes that pass, and its own end.
// Like any connection it may be read, written and closed at the same time; the
// other methods are for whoever has it in use.
type Conn struct {
	net.Conn
	cluster *Cluster
	host    *host.Host
	breaker *Resource
	pool    *host.Gauge // it counts in
	made    time.Time

	requests atomic.Int64 // begun in all
	active   atomic.Int64
	remote   atomic.Bool // the other side closed it
	closing  sync.Once
	closeErr error
}

// Host returns the host at the other end.
func (c *Conn) Host() *host.Host { return c.host }

// Cluster returns the cluster that the connection was made for.
func (c *Conn) Cluster() *Cluster { return c.cluster }

// Begin notes that a request is attached to the connection, and End that it has
// left it.
func (c *Conn) Begin() {
	c.requests.Add(1)
	c.active.Add(1)
}

// End notes that a request has left the connection. See [Conn.Begin].
func (c *Conn) End() { c.active.Add(-1) }

// Reusable tells whether the connection may take one more request by the limits of
// its cluster. One that may not is to be closed; why is counted here.
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

// Read counts what it reads.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.cluster.stats.CxRxBytesTotal.Add(uint64(n))
	}
	c.note(err)
	return n, err
}

// Write counts what it writes.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.cluster.stats.CxTxBytesTotal.Add(uint64(n))
	}
	c.note(err)
	return n, err
}

// note notes who ended the connection.
func (c *Conn) note(err error) {
	if err != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		c.remote.Store(true)
	}
}

// Alive tells whether an idle connection is still good, as far as one can tell
// without waiting: the other side has neither closed it nor sent anything but what
// TLS sends by itself.
func (c *Conn) Alive() bool {
	if c.remote.Load() {
		return false
	}
	if t, ok := c.Conn.(*tls.Conn); ok {
		return c.stillTLS(t)
	}
	alive, err := nothingCame(c.Conn)
	if err != nil {
		return false
	}
	c.remote.Store(!alive)
	return alive
}

// stillTLS is [Conn.Alive] for TLS: what came is read as far as it is none of the
// application's, such as session tickets.
func (c *Conn) stillTLS(t *tls.Conn) bool {
	defer func() { _ = t.SetReadDeadline(time.Time{}) }()
	// Whatever is there can be read at once. Should nobody let us within the time
	// there is more of it the next time.
	for wait := time.Millisecond; ; wait *= 2 {
		if quiet, err := nothingCame(t.NetConn()); quiet || err != nil {
			return err == nil
		}
		_ = t.SetReadDeadline(time.Now().Add(wait))
		if _, err := t.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			c.remote.Store(true) // the end, or what nobody asked for
			return false
		}
	}
}

// nothingCame tells whether nothing at all is to be read from a connection, not
// even its end. Of one that is no socket it says so always.
func nothingCame(conn net.Conn) (quietly bool, err error) {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return true, nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false, err
	}
	err = raw.Control(func(fd uintptr) { quietly = quiet(fd) })
	return quietly, err
}

// CloseWrite ends the sending side of a plain connection over TCP or a unix
// socket, or of TLS.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection and counts its end. A second call does nothing.
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
