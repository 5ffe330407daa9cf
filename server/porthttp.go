package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/store"
)

// The limits of listeners with a handler for HTTP, unless set otherwise.
const (
	httpHeaderTimeout = 10 * time.Second
	httpIdleTimeout   = 2 * time.Minute
	httpShutdownTime  = 5 * time.Second
)

// httpPort is a port with a handler for HTTP. Its fields are named after the stats
// below http.<listener>.
type httpPort struct {
	*port
	server *Server

	routed, rqTotal, rqTimeout, rqRxReset, rqTxReset *store.Counter
	cxTotal, cxRxBytes, cxTxBytes, cxIdleTimeout     *store.Counter
	rqActive, cxActive                               *store.Gauge
	rqTime, cxLength                                 *store.Histogram
	cxDestroy, cxDestroyActiveRq                     [3]*store.Counter // in all, by us, by the client
	rqCompleted                                      [2]*store.Counter // the second one is below listener.<address>
	rqClass                                          [2][5]*store.Counter
}

func (s *Server) newHTTPPort(p *port) *httpPort {
	own, name := s.store.Own(), "http."+tokenPart(p.cfg.Name)
	sc := own.Scope(name)
	sc.Help(map[string]string{ // of what the administration port does not count
		"rq_total": "Requests passed to the handler.", "downstream_rq_completed": "Responses.", "downstream_rq_timeout": "Requests that did not arrive in time.",
		"downstream_rq_rx_reset": "Requests whose client left before the end of the response.", "downstream_rq_tx_reset": "Responses that the server broke off.",
		"downstream_cx_total": "Accepted connections.", "downstream_cx_active": "Open connections.",
		"downstream_cx_length_ms":      "Time from accepting a connection to closing it.",
		"downstream_cx_rx_bytes_total": "Received bytes.", "downstream_cx_tx_bytes_total": "Sent bytes.",
		"downstream_cx_idle_timeout": "Connections closed because no request arrived.", "downstream_cx_destroy": "Closed connections.",
		"downstream_cx_destroy_local": "Connections closed by the server.", "downstream_cx_destroy_remote": "Connections closed by the client.",
		"downstream_cx_destroy_active_rq":        "Connections closed during a request.",
		"downstream_cx_destroy_local_active_rq":  "Connections closed by the server during a request.",
		"downstream_cx_destroy_remote_active_rq": "Connections closed by the client during a request.",
	})
	counter := func(name string) *store.Counter { return sc.Counter("downstream_" + name) }
	h := &httpPort{
		port: p, server: s, routed: sc.Counter("rq_total"),
		rqTotal: counter("rq_total"), rqTimeout: counter("rq_timeout"), rqRxReset: counter("rq_rx_reset"), rqTxReset: counter("rq_tx_reset"),
		cxTotal: counter("cx_total"), cxRxBytes: counter("cx_rx_bytes_total"), cxTxBytes: counter("cx_tx_bytes_total"), cxIdleTimeout: counter("cx_idle_timeout"),
		rqActive: sc.Gauge("downstream_rq_active"), cxActive: sc.Gauge("downstream_cx_active"),
		rqTime: sc.Histogram("downstream_rq_time", store.Milliseconds), cxLength: sc.Histogram("downstream_cx_length_ms", store.Milliseconds),
	}
	for i, side := range [...]string{"", "_local", "_remote"} {
		h.cxDestroy[i], h.cxDestroyActiveRq[i] = counter("cx_destroy"+side), counter("cx_destroy"+side+"_active_rq")
	}
	listener := "listener." + statPart(listeners.FromNet(p.Addr()).String())
	of := own.Scope(listener + "." + name)
	of.Help(map[string]string{"downstream_rq_completed": "Responses.", "downstream_rq_2xx": "Responses by class of status."})
	for i, sc := range [...]*store.Scope{sc, of} {
		h.rqCompleted[i] = sc.Counter("downstream_rq_completed")
		for class := range h.rqClass[i] {
			h.rqClass[i][class] = sc.Counter("downstream_rq_" + strconv.Itoa(class+1) + "xx")
		}
	}
	return h
}

// run is the Serve of the listener.
func (h *httpPort) run(ctx context.Context, _ net.Listener) error {
	hs := h.newServer()
	if err := hs.Serve(h); !errors.Is(err, net.ErrClosed) {
		return err
	}
	<-ctx.Done() // a drained listener keeps its connections
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), httpShutdownTime)
	defer stop()
	if hs.Shutdown(end) != nil {
		_ = hs.Close()
	}
	return nil
}

func (h *httpPort) newServer() *http.Server {
	header := httpHeaderTimeout
	if h.cfg.ReadTimeout > 0 {
		header = min(header, h.cfg.ReadTimeout)
	}
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: header,
		ReadTimeout:       h.cfg.ReadTimeout,
		IdleTimeout:       cmp.Or(h.cfg.IdleTimeout, httpIdleTimeout),
		ErrorLog:          slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, httpConnKey{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				c.(*httpConn).begun.Store(false)
			}
		},
	}
}

// httpConnKey is the key of the [httpConn] in the context of a request.
type httpConnKey struct{}

// ServeHTTP implements [http.Handler].
func (h *httpPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	c := r.Context().Value(httpConnKey{}).(*httpConn)
	if t, ok := c.Conn.(*tls.Conn); ok { // net/http does not see it
		state := t.ConnectionState()
		r.TLS = &state
	}
	a := &httpAnswer{fullWriter: w.(fullWriter), conn: c}
	c.serving.Store(true)
	h.rqTotal.Inc()
	h.routed.Inc()
	h.rqActive.Inc()
	whole := false
	defer func() { // also after a panic
		if whole && a.status == 0 && !a.hijacked { // net/http answers 200
			a.start(http.StatusOK)
		}
		h.countClass(a.status)
		for _, n := range h.rqCompleted {
			n.Inc()
		}
		h.rqTime.RecordDuration(time.Since(begin))
		c.served(!whole || a.late)
		h.rqActive.Dec()
	}()
	defer h.server.abort()
	h.cfg.HTTP.ServeHTTP(a, r)
	whole = true
}

// countClass counts a response by the class of its status; 0 is none.
func (h *httpPort) countClass(status int) {
	for i := range h.rqClass {
		if class := status/100 - 1; class >= 0 && class < len(h.rqClass[i]) {
			h.rqClass[i][class].Inc()
		}
	}
}

// abort is deferred by handlers: it reports a panic and breaks the connection.
func (s *Server) abort() {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		s.guard.Report("request of a listener", v)
		panic(http.ErrAbortHandler)
	}
}

// fullWriter is the part of the response of net/http that handlers use.
type fullWriter interface {
	http.ResponseWriter
	http.Flusher
	http.Hijacker
	io.ReaderFrom
}

// httpAnswer notes the status of a response.
type httpAnswer struct {
	fullWriter
	conn     *httpConn
	status   int
	late     bool // the client had left when it began
	hijacked bool
}

// start is called before the first byte.
func (a *httpAnswer) start(status int) {
	if a.status != 0 {
		return
	}
	a.status, a.late = status, a.conn.gone.Load()
	if p := a.conn.port; p.server.life.ShouldClose(p.cfg.Direction == listeners.Inbound) {
		a.Header().Set("Connection", "close")
	}
}

// Unwrap serves [http.ResponseController].
func (a *httpAnswer) Unwrap() http.ResponseWriter { return a.fullWriter }

// WriteHeader implements [http.ResponseWriter].
func (a *httpAnswer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols { // others precede a response
		a.start(status)
	}
	a.fullWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *httpAnswer) Write(b []byte) (int, error) {
	a.start(http.StatusOK)
	return a.fullWriter.Write(b)
}

// ReadFrom implements [io.ReaderFrom].
func (a *httpAnswer) ReadFrom(r io.Reader) (int64, error) {
	a.start(http.StatusOK)
	return a.fullWriter.ReadFrom(r)
}

// Flush implements [http.Flusher].
func (a *httpAnswer) Flush() {
	a.start(http.StatusOK)
	a.fullWriter.Flush()
}

// Hijack implements [http.Hijacker]. If no response has begun, the first bytes that the
// handler then writes to the connection are the response that is counted.
func (a *httpAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := a.fullWriter.Hijack()
	a.hijacked = err == nil
	a.conn.raw.Store(a.hijacked && a.status == 0)
	return c, rw, err
}

// Accept implements [net.Listener].
func (h *httpPort) Accept() (net.Conn, error) {
	c, err := h.port.Accept()
	if err != nil {
		return nil, err
	}
	h.cxTotal.Inc()
	h.cxActive.Inc()
	return &httpConn{Conn: c, port: h, opened: time.Now()}, nil
}

// httpConn is a connection of a client. Bytes are counted without TLS.
type httpConn struct {
	net.Conn
	port   *httpPort
	opened time.Time

	begun    atomic.Bool // a request has begun to arrive
	serving  atomic.Bool // a request is being served
	broken   atomic.Bool // a request ended without its whole response
	timedOut atomic.Bool // a request did not arrive in time
	gone     atomic.Bool // the client closed the connection
	stopping atomic.Bool // net/http interrupts its own Read
	greeted  atomic.Bool // the TLS handshake has ended
	raw      atomic.Bool // hijacked, and no response has begun
	once     sync.Once
	err      error // of Close
}

// plainAnswer is the response to a request without TLS where TLS is required.
const plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nthis port speaks TLS: use https\n"

// handshake does what net/http does for a [tls.Conn], which it does not see. After the
// first call it returns at once. Reads return the error of a handshake.
func (c *httpConn) handshake() {
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return
	}
	err := t.Handshake()
	if c.greeted.Swap(true) {
		return
	}
	c.port.shook(t, err)
	var header tls.RecordHeaderError
	if errors.As(err, &header) && header.Conn != nil {
		_, _ = io.WriteString(header.Conn, plainAnswer)
	}
}

// Read implements [net.Conn].
func (c *httpConn) Read(b []byte) (n int, err error) {
	c.handshake()
	n, err = c.Conn.Read(b)
	if n > 0 {
		c.port.cxRxBytes.Add(uint64(n))
		c.begun.Store(true)
	}
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrDeadlineExceeded):
		c.failed(err)
	case c.stopping.Load() || c.timedOut.Swap(true):
	case c.begun.Load():
		c.port.rqTimeout.Inc()
	default:
		c.port.cxIdleTimeout.Inc()
	}
	return n, err
}

// Write implements [net.Conn].
func (c *httpConn) Write(b []byte) (int, error) {
	if d := c.port.cfg.WriteTimeout; d > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(d)) // a closed one shows it in Write
	}
	if c.raw.CompareAndSwap(true, false) {
		c.port.countClass(statusOf(b))
	}
	n, err := c.Conn.Write(b)
	c.port.cxTxBytes.Add(uint64(n))
	if err != nil {
		c.failed(err)
		c.broken.Store(c.serving.Load())
	}
	return n, err
}

// statusOf returns the status of a response of HTTP/1, or 0 if b does not begin one.
func statusOf(b []byte) int {
	if !bytes.HasPrefix(b, []byte("HTTP/1.")) {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte(" "))
	status, _ := strconv.Atoi(string(rest[:min(3, len(rest))]))
	return status
}

// failed notes whether an error means that the client closed the connection.
func (c *httpConn) failed(err error) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			c.gone.Store(true)
		}
	}
}

// SetReadDeadline implements [net.Conn].
func (c *httpConn) SetReadDeadline(t time.Time) error {
	c.stopping.Store(!t.IsZero() && t.Before(time.Now()))
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite closes the sending side.
func (c *httpConn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// served notes the end of a request. broken is set if the client did not get the whole
// response.
func (c *httpConn) served(broken bool) {
	if broken || c.broken.Load() {
		c.broken.Store(true)
		if c.gone.Load() {
			c.port.rqRxReset.Inc()
		} else {
			c.port.rqTxReset.Inc()
		}
	}
	c.serving.Store(false)
}

// Close implements [net.Conn]. A second call does nothing.
func (c *httpConn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		side := 1
		if c.gone.Load() {
			side = 2
		}
		for _, i := range [...]int{0, side} {
			c.port.cxDestroy[i].Inc()
			if c.serving.Load() || c.broken.Load() {
				c.port.cxDestroyActiveRq[i].Inc()
			}
		}
		c.port.cxLength.RecordDuration(time.Since(c.opened))
		c.port.cxActive.Dec()
	})
	return c.err
}
