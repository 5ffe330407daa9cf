package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// answerStats counts answers to clients.
type answerStats struct {
	completed *store.Counter
	classes   [5]*store.Counter // 1xx to 5xx
}

func newAnswerStats(sc *store.Scope) (s answerStats) {
	s.completed = sc.Counter("downstream_rq_completed")
	for i := range s.classes {
		s.classes[i] = sc.Counter("downstream_rq_" + strconv.Itoa(i+1) + "xx")
	}
	return s
}

func (s *answerStats) count(status int) {
	if class := status/100 - 1; class >= 0 && class < len(s.classes) {
		s.classes[class].Inc()
	}
	s.completed.Inc()
}

// clientStats counts the connections of clients, and how they and their requests end.
type clientStats struct {
	total, received, sent, idleTimeout      *store.Counter
	ended, endedLocal, endedRemote          *store.Counter
	underRq, underRqLocal, underRqRemote    *store.Counter // ended under a request
	rqTimeout, rqResetByClient, rqResetByUs *store.Counter
	active                                  *store.Gauge
	length                                  *store.Histogram
}

func newClientStats(sc *store.Scope) clientStats {
	return clientStats{
		total: sc.Counter("downstream_cx_total"), active: sc.Gauge("downstream_cx_active"),
		length:   sc.Histogram("downstream_cx_length_ms", histogram.Milliseconds),
		received: sc.Counter("downstream_cx_rx_bytes_total"), sent: sc.Counter("downstream_cx_tx_bytes_total"),
		idleTimeout: sc.Counter("downstream_cx_idle_timeout"),
		ended:       sc.Counter("downstream_cx_destroy"), endedLocal: sc.Counter("downstream_cx_destroy_local"),
		endedRemote: sc.Counter("downstream_cx_destroy_remote"), underRq: sc.Counter("downstream_cx_destroy_active_rq"),
		underRqLocal:  sc.Counter("downstream_cx_destroy_local_active_rq"),
		underRqRemote: sc.Counter("downstream_cx_destroy_remote_active_rq"),
		rqTimeout:     sc.Counter("downstream_rq_timeout"), rqResetByClient: sc.Counter("downstream_rq_rx_reset"),
		rqResetByUs: sc.Counter("downstream_rq_tx_reset"),
	}
}

// clientListener counts the connections that it accepts.
type clientListener struct {
	net.Listener
	stats *clientStats
}

// Accept implements [net.Listener].
func (l clientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.stats.total.Inc()
	l.stats.active.Inc()
	return &clientConn{Conn: c, stats: l.stats, opened: time.Now()}, nil
}

// clientConn is a connection of a client. Bytes are counted without TLS.
type clientConn struct {
	net.Conn
	stats  *clientStats
	opened time.Time

	begun    atomic.Bool // a request has begun to arrive
	serving  atomic.Bool // a request is being served
	broken   atomic.Bool // a request ended without its whole answer
	timedOut atomic.Bool // a request did not arrive in time
	gone     atomic.Bool // the client closed the connection
	stopping atomic.Bool // net/http interrupts its own Read
	once     sync.Once
	err      error // of Close
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// withConn is the ConnContext of a server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// idle notes that the connection waits for the next request.
func (c *clientConn) idle() { c.begun.Store(false) }

// Read implements [net.Conn].
func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.stats.received.Add(uint64(n))
		c.begun.Store(true)
	}
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrDeadlineExceeded):
		c.failed(err)
	case c.stopping.Load() || c.timedOut.Swap(true):
	case c.begun.Load():
		c.stats.rqTimeout.Inc()
	default:
		c.stats.idleTimeout.Inc()
	}
	return n, err
}

// Write implements [net.Conn].
func (c *clientConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.stats.sent.Add(uint64(n))
	c.failed(err)
	return n, err
}

// failed notes whether an error means that the client closed the connection.
func (c *clientConn) failed(err error) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			c.gone.Store(true)
		}
	}
}

// SetReadDeadline implements [net.Conn].
func (c *clientConn) SetReadDeadline(t time.Time) error {
	c.stopping.Store(!t.IsZero() && t.Before(time.Now()))
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite closes the sending side.
func (c *clientConn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// served notes the end of a request. broken is set if the client did not get the whole
// answer.
func (c *clientConn) served(broken bool) {
	if broken {
		c.broken.Store(true)
		if c.gone.Load() {
			c.stats.rqResetByClient.Inc()
		} else {
			c.stats.rqResetByUs.Inc()
		}
	}
	c.serving.Store(false)
}

// Close implements [net.Conn]. A second call does nothing.
func (c *clientConn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		s := c.stats
		side, under := s.endedLocal, s.underRqLocal
		if c.gone.Load() {
			side, under = s.endedRemote, s.underRqRemote
		}
		if c.serving.Load() || c.broken.Load() {
			s.underRq.Inc()
			under.Inc()
		}
		side.Inc()
		s.ended.Inc()
		s.length.Record(uint64(time.Since(c.opened).Milliseconds()))
		s.active.Dec()
	})
	return c.err
}

// origin returns where a request comes from: inside, if its client has a private
// address and no other proxy forwarded it.
func origin(r *http.Request) upstream.Origin {
	a, err := netip.ParseAddr(r.Header.Get("X-Forwarded-For")) // with the address of the client
	if err == nil && (a.IsPrivate() || a.IsLoopback()) {
		return upstream.InternalOrigin
	}
	return upstream.ExternalOrigin
}
