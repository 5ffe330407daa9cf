package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Listener is a TCP listener of the program around the server. The server binds
// it, or takes it over from the process before; shows it; stops it when listeners
// are drained; and hands it over to the process that follows.
type Listener struct {
	Name string // unique
	// Address is what to listen on, such as "127.0.0.1:8080" or ":0".
	Address   string
	Direction listeners.Direction
	// Serve accepts connections once the server is initialized, until l is
	// closed, and goes on with those it has until ctx is done; then it ends them,
	// in reasonable time, and returns. Its counts up to then are in the last flush
	// and in the successor. An error ends the server.
	//
	// While [lifecycle.Server.ShouldClose] says so it should ask its clients to
	// close their connections.
	Serve func(ctx context.Context, l net.Listener) error
}

// port is a bound listener of the program around the server.
type port struct {
	cfg  Listener
	tcp  *net.TCPListener
	once sync.Once
	err  error

	gate *accept.Gate // in front of tcp
	log  *slog.Logger

	open   atomic.Int64 // connections
	total  *store.Counter
	active *store.Gauge
}

var _ net.Listener = (*port)(nil)

// bindPorts binds the listeners of the program around the server, all or none.
func (s *Server) bindPorts() error {
	inherited := s.hot.takePorts()
	defer func() {
		for _, f := range inherited { // of listeners that are gone
			_ = f.Close()
		}
	}()
	for _, l := range s.cfg.Listeners {
		if slices.ContainsFunc(s.ports, func(p *port) bool { return p.cfg.Name == l.Name }) {
			return fmt.Errorf("server: second listener named %q", l.Name)
		}
		p := &port{cfg: l}
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
		sc := s.store.Scope("listener." + statPart(at.String()))
		p.total, p.active = sc.Counter("downstream_cx_total"), sc.Gauge("downstream_cx_active")
		err := s.listeners.Add(listeners.Listener{
			Name: l.Name, Direction: l.Direction, Addresses: []config.Address{at}, Stop: func() { _ = p.Close() },
		})
		if err != nil {
			return err
		}
		s.log.Info(fmt.Sprintf("listener %s on %s", l.Name, at))
	}
	return nil
}

// statPart returns an address as it stands in names of stats.
func statPart(address string) string {
	return strings.ReplaceAll(oneline.Clean(address), ":", "_")
}

// closePorts closes all, as at a start that fails.
func (s *Server) closePorts() {
	for _, p := range s.ports {
		_ = p.Close()
	}
}

// runPort serves a port once the server is initialized.
func (s *Server) runPort(ctx context.Context, p *port) error {
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	defer p.Close() // also when Serve panics
	select {
	case <-s.live:
	case <-ctx.Done():
		return nil
	}
	if err := p.cfg.Serve(ctx, p); err != nil {
		return fmt.Errorf("listener %q: %w", p.cfg.Name, err)
	}
	return nil
}

// key identifies a listener in a handoff.
func (p *port) key() string { return portPrefix + p.cfg.Name + " " + p.cfg.Address }

// portPrefix begins the addresses of handed over sockets that are no StatsD
// listeners.
const portPrefix = "listener "

// adopt goes on with a socket of the process before.
func (p *port) adopt(f *os.File) error {
	l, err := net.FileListener(f)
	_ = f.Close() // l is a duplicate
	if err != nil {
		return err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return fmt.Errorf("%T was handed over", l)
	}
	p.tcp = tcp
	return nil
}

// socket returns a duplicate for the process that follows. A port that is closed
// has none.
func (p *port) socket() (hotrestart.Socket, bool) {
	f, err := p.tcp.File()
	if err != nil {
		return hotrestart.Socket{}, false
	}
	return hotrestart.Socket{Address: p.key(), Files: []*os.File{f}}, true
}

// Accept implements [net.Listener]. It waits for better times when there are no
// file descriptors left or the like, and fails only once the listener is closed:
// clients must not be able to end the server.
func (p *port) Accept() (net.Conn, error) {
	c, err := accept.Next(p.gate.Accept, accept.Open, nil, p.log)
	if err != nil {
		return nil, err
	}
	p.open.Add(1)
	p.total.Inc()
	p.active.Inc()
	return &portConn{Conn: c, port: p}, nil
}

// Addr implements [net.Listener].
func (p *port) Addr() net.Addr { return p.tcp.Addr() }

// Close stops accepting. Connections go on.
func (p *port) Close() error {
	p.once.Do(func() { p.err = p.gate.Close() })
	return p.err
}

// portConn is a connection of a port.
type portConn struct {
	net.Conn
	port *port
	once sync.Once
	err  error
}

// Close closes the connection. A second call does nothing.
func (c *portConn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.port.open.Add(-1)
		c.port.active.Dec()
	})
	return c.err
}

// CloseWrite ends the sending side.
func (c *portConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
