package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Listener is a TCP listener of the embedding program. The server binds it or
// inherits it from its predecessor, lists it, stops it when listeners are drained,
// and hands it over to its successor.
type Listener struct {
	Name string // unique
	// Address is the address to listen on, such as "127.0.0.1:8080" or ":0".
	Address   string
	Direction listeners.Direction
	// TLS holds certificate files. If set, accepted connections are of type
	// [*tls.Conn], and their handshake has begun; Read and Write wait for its end.
	// listener.<address>.ssl.handshake and listener.<address>.ssl.connection_error
	// count the handshakes that completed and failed; failures are logged at debug, at
	// most one a second. The files are shown by /certs, and reloaded by Reload and when
	// they change. A gauge
	// listener.<address>.ssl.certificate.<file>.expiration_unix_time_seconds
	// shows when the certificate expires; <file> is the name of Chain without
	// directory and extension.
	TLS *certs.Files
	// Serve accepts connections once the server is initialized, until l is closed. It
	// serves open connections until ctx is done, then closes them within a reasonable
	// time and returns. Everything it counts before it returns is part of the last
	// flush and of the handoff. An error shuts the server down.
	//
	// While [lifecycle.Server.ShouldClose] is true, Serve should ask clients to close
	// their connections.
	Serve func(ctx context.Context, l net.Listener) error
	// Handle serves one connection, in a separate goroutine; set it instead of Serve.
	// The server accepts the connections, closes them after Handle returns or once ctx
	// is done, and recovers panics of Handle. Connections have a CloseWrite method.
	Handle func(ctx context.Context, c net.Conn)
	// HTTP handles the requests on the listener; set it instead of Serve. Its
	// connections, requests and responses are counted below http.<Name>, with the
	// metrics of Envoy's connection manager, and its responses also below
	// listener.<address>.http.<Name>. Responses ask clients to close their connections
	// while [lifecycle.Server.ShouldClose] is true. When the server ends, running
	// requests have 5 s. Programs that need other settings call [http.Server] in Serve.
	HTTP http.Handler
	// ReadTimeout limits the time in which a request for HTTP arrives, body included;
	// 0: no limit. Its header must always arrive within 10 s. WriteTimeout limits each
	// write to the client; 0: no limit. IdleTimeout limits the time between requests;
	// default 2 minutes.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration
}

// port is a bound listener of the embedding program.
type port struct {
	cfg  Listener
	tcp  *net.TCPListener
	once sync.Once
	err  error

	gate *accept.Gate // wraps tcp
	log  *slog.Logger

	open   atomic.Int64 // connections
	total  *store.Counter
	active *store.Gauge
	length *store.Histogram

	tls     *certs.Server // nil without TLS
	expires *store.Gauge  // of the certificate of tls, in seconds of Unix time

	handshakes, handshakeErrors *store.Counter            // nil without TLS
	handshakeLogged             atomic.Pointer[time.Time] // when a failure was last logged, at most every second
}

var _ net.Listener = (*port)(nil)

// bindPorts binds the listeners of the embedding program, all or none.
func (s *Server) bindPorts() error {
	inherited := s.hot.takePorts()
	defer func() {
		for _, f := range inherited { // of removed listeners
			_ = f.Close()
		}
	}()
	for i, l := range s.cfg.Listeners {
		if slices.ContainsFunc(s.ports, func(p *port) bool { return p.cfg.Name == l.Name }) {
			return fmt.Errorf("server: duplicate listener name %q", l.Name)
		}
		functions := 0
		for _, set := range [...]bool{l.Serve != nil, l.Handle != nil, l.HTTP != nil} {
			if set {
				functions++
			}
		}
		if functions != 1 {
			return fmt.Errorf("server: listener %q needs exactly one of Serve, Handle and HTTP", l.Name)
		}
		if l.HTTP != nil && l.Name == "admin" {
			return errors.New(`server: a listener with HTTP cannot be named "admin": http.admin has the statistics of the administration port`)
		}
		p := &port{cfg: l, tls: s.portTLS[i]}
		if f := inherited[p.key()]; f != nil {
			delete(inherited, p.key())
			if err := p.adopt(f); err != nil {
				return fmt.Errorf("server: listener %q: %w", l.Name, err)
			}
		} else {
			bound, err := net.Listen("tcp", l.Address)
			if err != nil {
				return fmt.Errorf("server: listener %q: %w", l.Name, err)
			}
			p.tcp = bound.(*net.TCPListener)
		}
		p.gate, p.log = accept.NewGate(p.tcp), s.log.With("listener", l.Name)
		s.ports = append(s.ports, p)
		at := listeners.FromNet(p.Addr())
		sc := s.store.Own().Scope("listener." + statPart(at.String()))
		sc.Help(map[string]string{
			"downstream_cx_total": "Accepted connections.", "downstream_cx_active": "Open connections.",
			"downstream_cx_length_ms": "Time from accepting a connection to closing it.",
		})
		p.total, p.active = sc.Counter("downstream_cx_total"), sc.Gauge("downstream_cx_active")
		p.length = sc.Histogram("downstream_cx_length_ms", store.Milliseconds)
		if l.TLS != nil {
			file := filepath.Base(l.TLS.Chain)
			name := tokenPart(strings.TrimSuffix(file, filepath.Ext(file)))
			sc.Help(map[string]string{"ssl.certificate." + name + ".expiration_unix_time_seconds": "Unix time at which the certificate expires."})
			p.expires = sc.GaugeWithMode("ssl.certificate."+name+".expiration_unix_time_seconds", store.NeverImport)
			p.refresh()
			sc.Help(map[string]string{"ssl.handshake": "Completed TLS handshakes.", "ssl.connection_error": "Failed TLS handshakes."})
			p.handshakes, p.handshakeErrors = sc.Counter("ssl.handshake"), sc.Counter("ssl.connection_error")
		}
		err := s.listeners.Add(listeners.Listener{
			Name: l.Name, Direction: l.Direction, Addresses: []config.Address{at}, Stop: func() { _ = p.Close() },
		})
		if err != nil {
			return err
		}
		s.log.Info("listener " + nameAt(l.Name, at.String()))
	}
	return nil
}

// nameAt returns a name and an address, which is the name of many listeners.
func nameAt(name, address string) string {
	if name == address {
		return address
	}
	return name + " on " + address
}

// statPart returns an address in the form used in stat names.
func statPart(address string) string {
	return strings.ReplaceAll(oneline.Clean(address), ":", "_")
}

// tokenPart returns text as one token of a stat name.
func tokenPart(text string) string {
	return cmp.Or(strings.ReplaceAll(statPart(text), ".", "_"), "_")
}

// securePorts loads the certificates of the listeners of the embedding program.
func (s *Server) securePorts() error {
	s.portTLS = make([]*certs.Server, len(s.cfg.Listeners))
	for i, l := range s.cfg.Listeners {
		if l.TLS == nil {
			continue
		}
		var err error
		if s.portTLS[i], err = s.loadTLS(*l.TLS); err != nil {
			return fmt.Errorf("server: listener %q: %w", l.Name, err)
		}
	}
	return nil
}

// refresh publishes when the certificate in use expires.
func (p *port) refresh() {
	if p.tls != nil {
		p.expires.Set(uint64(max(p.tls.Expires().Unix(), 0)))
	}
}

// closePorts closes all listeners after a failed start.
func (s *Server) closePorts() {
	for _, p := range s.ports {
		_ = p.Close()
	}
}

// runPort serves a port once the server is initialized.
func (s *Server) runPort(ctx context.Context, p *port) error {
	context.AfterFunc(ctx, func() { _ = p.Close() })
	defer p.Close() // even if Serve panics
	select {
	case <-s.live:
	case <-ctx.Done():
		return nil
	}
	serve := p.cfg.Serve
	switch {
	case p.cfg.Handle != nil:
		serve = s.handleConns(p)
	case p.cfg.HTTP != nil:
		serve = s.newHTTPPort(p).run
	}
	if err := serve(ctx, p); err != nil {
		return fmt.Errorf("listener %q: %w", p.cfg.Name, err)
	}
	return nil
}

// handleConns returns the Serve of a listener with a Handle.
func (s *Server) handleConns(p *port) func(context.Context, net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		var running sync.WaitGroup
		defer running.Wait()
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			running.Go(func() { s.guard.Run("connection of a listener", func() { p.handle(ctx, c) }) })
		}
	}
}

// handle serves one connection, which ends with ctx.
func (p *port) handle(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	p.cfg.Handle(ctx, c)
}

// key identifies a listener in a handoff.
func (p *port) key() string { return portPrefix + p.cfg.Name + " " + p.cfg.Address }

// portPrefix marks the addresses of handed-over sockets that are not StatsD
// listeners.
const portPrefix = "listener "

// adopt takes over a socket of the predecessor.
func (p *port) adopt(f *os.File) error {
	l, err := net.FileListener(f)
	_ = f.Close() // l is a duplicate
	if err != nil {
		return err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return fmt.Errorf("unexpected inherited %T", l)
	}
	p.tcp = tcp
	return nil
}

// socket returns a duplicate for the successor, or nil if the port is closed.
func (p *port) socket() (hotrestart.Socket, bool) {
	f, err := p.tcp.File()
	if err != nil {
		return hotrestart.Socket{}, false
	}
	return hotrestart.Socket{Address: p.key(), Files: []*os.File{f}}, true
}

// Accept implements [net.Listener]. On temporary errors, such as a lack of file
// descriptors, it retries. It fails only once the listener is closed, so that clients
// cannot shut the server down.
func (p *port) Accept() (net.Conn, error) {
	c, err := accept.Next(p.gate.Accept, accept.Open, nil, p.log)
	if err != nil {
		return nil, err
	}
	p.open.Add(1)
	p.total.Inc()
	p.active.Inc()
	if c = (&portConn{Conn: c, port: p, begin: time.Now()}); p.tls == nil {
		return c, nil
	}
	t := tls.Server(c, p.tls.Config())
	if p.cfg.HTTP == nil { // its connections count their own
		go func() {
			guard.New(p.log).Run("handshake of a listener", func() { p.shook(t, t.Handshake()) })
		}()
	}
	return t, nil
}

// shook counts the handshake of a connection.
func (p *port) shook(c net.Conn, err error) {
	if err == nil {
		p.handshakes.Inc()
		return
	}
	p.handshakeErrors.Inc()
	now, before := time.Now(), p.handshakeLogged.Load()
	if (before == nil || now.Sub(*before) >= time.Second) && p.handshakeLogged.CompareAndSwap(before, &now) {
		p.log.Debug("TLS handshake failed", "peer", c.RemoteAddr(), "error", err)
	}
}

// Addr implements [net.Listener].
func (p *port) Addr() net.Addr { return p.tcp.Addr() }

// Close stops accepting. Open connections are not affected.
func (p *port) Close() error {
	p.once.Do(func() { p.err = p.gate.Close() })
	return p.err
}

// portConn is a connection of a port.
type portConn struct {
	net.Conn
	port  *port
	begin time.Time
	once  sync.Once
	err   error
}

// Close closes the connection. A second call does nothing.
func (c *portConn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.port.open.Add(-1)
		c.port.active.Dec()
		c.port.length.RecordDuration(time.Since(c.begin))
	})
	return c.err
}

// CloseWrite closes the sending side.
func (c *portConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
