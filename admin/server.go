package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/statsd-admin/statsd-admin/admin/ui"
	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Server is an administration server. Use [New]. Its methods are safe for concurrent
// use.
type Server struct {
	cfg         Config
	product     string
	limits      Limits
	src         Sources
	store       *store.Store
	logger      *slog.Logger
	now         func() time.Time
	hosts       *hostCheck
	origins     *originCheck
	readers     *originCheck
	refusals    failures // of mutations that have an entry in audit
	badMethods  wrongMethods
	auth        *authCheck  // nil permits everything
	tls         *tls.Config // nil disables TLS
	heavy       *gate
	slots       slots
	regexes     *gate // for requests with a filter
	filters     filterCache
	explorer    *store.Explorer
	exploring   atomic.Bool // the explorer is being prepared
	compressors *compressors
	connections *connections
	metrics     *selfMetrics
	audit       *auditLog
	spare       spare
	exposed     sync.Once   // of warnExposed
	guard       guard.Guard // counts and logs panics
	panics      panicLog
	buffers     sync.Pool // of *[]byte with responseBuffer bytes
	http        *fasthttp.Server
	assets      *ui.Assets

	tableMu sync.Mutex // held while a new table is made
	table   atomic.Pointer[endpoints]

	mutating    sync.Mutex // held by mutations that record changes
	temporaries temporaries
	bundling    atomic.Bool // a bundle is being made

	ctx     context.Context // canceled when the server shuts down
	cancel  context.CancelFunc
	closing <-chan struct{} // of ctx
	// sessions holds a channel that is closed when the server shuts down or
	// pauses, and replaced when it resumes. Written under mu.
	sessions atomic.Pointer[chan struct{}]

	mu          sync.Mutex
	port        socket // of Config.Address
	metricsPort socket // of Config.MetricsAddress
	listeners   map[net.Listener]struct{}
	addr        net.Addr
	closed      bool
}

// socket is a socket that Listen binds.
type socket struct {
	gate      *accept.Gate // nil before Listen
	inherited *os.File     // for Listen; nil: it binds
}

// New checks cfg and returns a server that does not listen yet.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil {
		cfg.Store = store.New(store.Options{})
	}
	product := cfg.Store.Product()
	if !validProduct(product) {
		return nil, fmt.Errorf("admin: product name %q contains characters other than letters, digits, '-', '_' and '.'", product)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Address != "" {
		if _, err := parseAddress(cfg.Address); err != nil {
			return nil, err
		}
	}
	if addr, err := parseAddress(cfg.MetricsAddress); cfg.MetricsAddress != "" && (err != nil || addr.unix != "" || cfg.Address == "") {
		return nil, fmt.Errorf("admin: metrics address %q is not ip:port next to an address", cfg.MetricsAddress)
	}
	auth, err := newAuthCheck(cfg.Auth)
	if err != nil {
		return nil, err
	}
	limits, metrics := cfg.Limits.withDefaults(), newMetrics(cfg.Store)
	cfg.Logger = guard.Observe(cfg.Logger, func(string, any) { metrics.panics.Inc() })
	s := &Server{
		cfg:      cfg,
		product:  product,
		limits:   limits,
		src:      cfg.Sources.withDefaults(),
		store:    cfg.Store,
		logger:   cfg.Logger,
		guard:    guard.New(cfg.Logger),
		now:      cfg.Now,
		hosts:    newHostCheck(cfg.HostCheck, cfg.AllowedHosts),
		origins:  newOriginCheck(cfg.AllowedOrigins),
		readers:  newOriginCheck(cfg.ReadOrigins),
		spare:    spare{open: openNull, patience: mostPatience, most: mostPatience},
		auth:     auth,
		tls:      secured(cfg.TLS),
		slots:    newSlots(runtime.GOMAXPROCS(0)),
		heavy:    newGate(limits.HeavyRunning, limits.HeavyWaiting, limits.HeavyWait),
		regexes:  newGate(limits.RegexParallel, -1, time.Second),
		explorer: cfg.Store.NewExplorer(),
		filters: filterCache{limits: render.FilterLimits{
			Now:     time.Now,
			Length:  bound(limits.RegexBytes, math.MaxInt32),
			Program: bound(limits.RegexProgram, math.MaxInt32),
			Budget:  bound(limits.RegexBudget, 365*24*time.Hour)}},
		compressors: newCompressors(limits.Compressors),
		metrics:     metrics,
		audit:       newAuditLog(limits.AuditEntries, limits.AuditBytes, cfg.Logger),
		listeners:   make(map[net.Listener]struct{}),
		assets:      ui.Load(),
	}
	s.newSession()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.closing = s.ctx.Done()
	s.connections = newConnections(&s.limits, s.guard)
	s.buffers.New = func() any {
		b := make([]byte, 0, responseBuffer)
		return &b
	}
	s.http = s.newHTTP()
	table, err := s.builtin()
	if err != nil {
		return nil, err
	}
	if err := auth.checkOpen(table); err != nil {
		return nil, err
	}
	s.table.Store(table)
	if names := limits.absent(); len(names) > 0 {
		s.logger.Warn("unlimited by configuration: " + strings.Join(names, ", "))
	}
	if cfg.HostCheck == HostOff {
		s.logger.Warn("host check is off: web pages can reach this server by a name that they control")
	}
	return s, nil
}

func validProduct(name string) bool {
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// Handle adds an endpoint. It returns an error if the path is taken, does not start
// with '/', or contains any of & " ' < > ? :, a space or a byte that is not printable
// ASCII. Use [HTTPHandler] to serve an http.Handler.
func (s *Server) Handle(e Endpoint) error {
	s.tableMu.Lock()
	defer s.tableMu.Unlock()
	table, err := s.table.Load().with(e)
	if err != nil {
		return err
	}
	s.table.Store(table)
	return nil
}

// Remove removes an endpoint that [Server.Handle] added. It reports whether
// there was one with this path that is not fixed.
func (s *Server) Remove(path string) bool {
	s.tableMu.Lock()
	defer s.tableMu.Unlock()
	table := s.table.Load()
	e := table.byPath[path]
	if e == nil || e.Fixed || e.Path != path {
		return false
	}
	s.table.Store(table.without(path))
	return true
}

// Endpoints returns the rows of the table in byte order of their paths, except rows
// that are hidden or do not exist in the server's mode.
func (s *Server) Endpoints() []Endpoint { return s.endpointsIn(s.cfg.Mode) }

func (s *Server) endpointsIn(mode Mode) []Endpoint {
	var rows []Endpoint
	for _, e := range s.table.Load().rows {
		if e.in(mode) && !e.Hidden {
			rows = append(rows, *e)
		}
	}
	return rows
}

// Addr returns the address that the server listens on, or nil before Listen or Serve.
// If the configured port was 0, it has the actual port.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// MetricsAddr is Addr for Config.MetricsAddress. It is nil without one and before Listen.
func (s *Server) MetricsAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.metricsPort.gate == nil {
		return nil
	}
	return s.metricsPort.gate.Addr()
}

// ErrClosed is returned by Serve and Run of a server that was shut down.
var ErrClosed = errors.New("admin: server closed")

// Listen binds the configured addresses. The error wraps [ErrAddressInUse] if another
// program uses it.
func (s *Server) Listen() error {
	if s.cfg.Address == "" {
		return errors.New("admin: no address configured")
	}
	if err := s.bind(&s.port, &s.cfg); err != nil {
		return err
	}
	s.mu.Lock()
	gate := s.port.gate
	s.addr = gate.Addr()
	s.mu.Unlock()
	s.logger.Info("admin address: " + gate.Addr().String())
	if s.cfg.MetricsAddress == "" {
		return nil
	}
	cfg := s.cfg
	cfg.Address, cfg.Socket = s.cfg.MetricsAddress, nil
	if err := s.bind(&s.metricsPort, &cfg); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.port.gate, s.addr = nil, nil
		return errors.Join(err, gate.Close())
	}
	s.logger.Info("metrics address: " + s.MetricsAddr().String())
	return nil
}

// bind opens the socket p, which is that of the address in cfg.
func (s *Server) bind(p *socket, cfg *Config) error {
	ln, err := s.inheritedListener(p, cfg.Address)
	if ln == nil && err == nil {
		ln, err = listen(cfg)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || p.gate != nil {
		_ = ln.Close()
		if s.closed {
			return ErrClosed
		}
		return errors.New("admin: already listening")
	}
	p.gate = accept.NewGate(ln)
	return nil
}

// Run listens, unless [Server.Listen] was called, and serves until ctx is done. It
// then lets running requests finish, for up to Limits.ShutdownTime, and returns when
// all have ended; see [Server.Close]. Call it once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	ln := s.port.gate
	s.mu.Unlock()
	if ln == nil {
		if err := s.Listen(); err != nil {
			return err
		}
		s.mu.Lock()
		ln = s.port.gate
		s.mu.Unlock()
	}
	var metrics sync.WaitGroup
	defer metrics.Wait()
	if s.cfg.MetricsAddress != "" {
		metrics.Go(func() { s.guard.Run("metrics address", s.serveMetrics) })
	}
	defer context.AfterFunc(ctx, func() {
		s.guard.Run("end of the server", func() { _ = s.Close() })
	})()
	err := s.Serve(ln)
	if err2 := s.Close(); errors.Is(err, ErrClosed) {
		return err2
	}
	return err
}

// Close shuts the server down, as the end of Run's context does, and waits for
// running requests. The error has the number of handlers that did not return.
func (s *Server) Close() error {
	s.stopListening()
	s.spare.close()
	if n := s.connections.close(s.limits.ShutdownTime); n > 0 {
		return fmt.Errorf("admin: %d requests did not finish in time", n)
	}
	return nil
}

// stopListening closes all listeners and prevents new ones.
func (s *Server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.cancel()
		s.temporaries.stop()
		s.endSessionLocked()
	}
	for _, p := range []*socket{&s.port, &s.metricsPort} {
		if p.gate != nil {
			_ = p.gate.Close()
		}
	}
	for ln := range s.listeners {
		s.guard.Run("end of a listener", func() { _ = ln.Close() })
	}
}

// Serve accepts connections from ln until the server is shut down, and then returns
// [ErrClosed]. It closes ln. Several listeners can be served at once.
func (s *Server) Serve(ln net.Listener) error { return s.serve(ln, kindOf(ln.Addr())) }

// serveMetrics serves Config.MetricsAddress.
func (s *Server) serveMetrics() {
	s.mu.Lock()
	ln := s.metricsPort.gate
	s.mu.Unlock()
	at := kindOf(ln.Addr())
	at.metrics = true
	if err := s.serve(ln, at); !errors.Is(err, ErrClosed) {
		s.logger.Error("the metrics address is not served any more", "error", err)
	}
}

func (s *Server) serve(ln net.Listener, at listenerKind) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.listeners[ln] = struct{}{}
	if s.addr == nil {
		s.addr = ln.Addr()
	}
	s.mu.Unlock()

	s.spare.fill()
	if at.open && !at.metrics && (s.tls == nil || s.tls.ClientAuth != tls.RequireAndVerifyClientCert) {
		s.warnExposed()
	}
	for {
		last := false
		nc, err := accept.Next(func() (nc net.Conn, err error) {
			nc, last, err = s.spare.accept(ln)
			return nc, err
		}, accept.Transient, s.closing, s.logger)
		switch {
		case err == nil:
			if !s.guard.Run("accepted connection", func() { s.admit(nc, at, last) }) {
				_ = nc.Close()
			}
		case isClosed(s.closing):
			return ErrClosed
		default:
			return fmt.Errorf("admin: %w", err)
		}
	}
}

// warnExposed warns once that other machines can reach the server, if they can also
// change it without authentication.
func (s *Server) warnExposed() {
	if s.cfg.Mode != ModeFull || s.auth != nil {
		return
	}
	s.exposed.Do(func() {
		s.metrics.exposed.Set(1)
		s.logger.Warn("the administration interface can be reached from other machines and has no authentication")
	})
}

// admit starts serving a connection, or rejects it.
func (s *Server) admit(nc net.Conn, at listenerKind, last bool) {
	if s.cfg.Admit != nil && !s.cfg.Admit(s.connections.count()) {
		s.metrics.globalOverflow.Inc()
		_ = nc.Close()
		return
	}
	c := s.wrap(nc, at)
	c.reserved = last
	s.metrics.connections.Inc()
	if !s.connections.enter(c) {
		s.metrics.rejected.Inc()
		s.rejectConnection(c)
		return
	}
	s.metrics.active.Inc()
	go func() {
		s.guard.Run("connection", func() { s.attend(c, last) })
	}()
}

// attend serves a connection until it ends. last is set if it uses the reserved
// descriptor, for which others wait: then its client has to speak soon.
func (s *Server) attend(c *conn, last bool) {
	defer func() {
		s.connections.leave(c)
		s.spare.fill()
		s.metrics.active.Dec()
	}()
	returned := false
	defer func() {
		if !returned { // after a panic
			_ = c.Conn.Close()
		}
	}()
	if last && !s.spare.awaits(c.below) {
		s.metrics.rejected.Inc()
		c.cut()
	} else if s.greet(c) {
		_ = s.http.ServeConn(c) // fails only if the client is gone
	}
	returned = true
}

// peerOf returns the client's address, or the zero address on unix sockets.
func peerOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
