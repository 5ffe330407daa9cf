package healthlistener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/accept"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/internal/unixsock"
	"github.com/statsd-admin/statsd-admin/store"
)

// Config configures a [Listener]. Name, Address and State are required.
type Config struct {
	Name string
	// Address is ip:port, unix:path, or unix:@name for an abstract socket.
	Address string
	// Mode is the mode of a unix socket. The default is 0600.
	Mode fs.FileMode

	// State returns the state of the server and whether it is healthy.
	State func() (name string, healthy bool)
	// Closing reports whether the connection should close after the current answer.
	// If nil, it never should.
	Closing func() bool
	// HeaderPrefix is the prefix of the header fields that only this listener sends.
	// The default is "x-proxy".
	HeaderPrefix string
	// Cluster is the service cluster, which answers include unless it is empty.
	Cluster string

	Stats Stats
	// Logger receives log messages. If nil, nothing is logged.
	Logger *slog.Logger
}

// Stats are the stats of a listener. Nil fields are not counted.
type Stats struct {
	Requests, Passed, Failed *store.Counter // checks, by result
	Connections, Overflow    *store.Counter // accepted and rejected
	Active                   *store.Gauge   // open connections
}

// Listener answers health checks. Create it with [New].
type Listener struct {
	cfg     Config
	stopped chan struct{} // closed by Stop
	stop    sync.Once

	paused    atomic.Bool
	turns     atomic.Int64 // last one of a connection that waits for a request
	mu        sync.Mutex   // guards the rest
	ln        *accept.Gate
	inherited *os.File
	open      map[*conn]struct{}
	quiet     sync.Cond // signalled when a connection ends
}

// New checks cfg and returns a listener that is not bound yet.
func New(cfg Config) (*Listener, error) {
	if cfg.Name == "" || cfg.State == nil {
		return nil, errors.New("healthlistener: a listener needs a name and a state")
	}
	if path, ok := strings.CutPrefix(cfg.Address, "unix:"); ok {
		if path == "" || path == "@" {
			return nil, fmt.Errorf("healthlistener: address %q has no path", cfg.Address)
		}
	} else if _, err := netip.ParseAddrPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("healthlistener: address %q is neither ip:port nor unix:path", cfg.Address)
	}
	cfg.Mode = cmp.Or(cfg.Mode, 0o600)
	cfg.HeaderPrefix = cmp.Or(cfg.HeaderPrefix, "x-proxy")
	cfg.Cluster = oneline.Clean(cfg.Cluster)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	l := &Listener{cfg: cfg, stopped: make(chan struct{}), open: make(map[*conn]struct{})}
	l.quiet.L = &l.mu
	return l, nil
}

// Name returns the name.
func (l *Listener) Name() string { return l.cfg.Name }

// Key identifies the listener across hot restarts. It is the configured address.
func (l *Listener) Key() string { return "health " + l.cfg.Address }

// Inherit makes Listen use a socket that another process has bound. The listener
// takes ownership of the file.
func (l *Listener) Inherit(socket *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inherited != nil {
		_ = l.inherited.Close() // a duplicate
	}
	l.inherited = socket
}

// Listen binds the address.
func (l *Listener) Listen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln != nil {
		return fmt.Errorf("healthlistener: %q is already listening", l.cfg.Name)
	}
	ln, err := l.bind()
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, unixsock.ErrInUse) {
		return fmt.Errorf("healthlistener: cannot listen on %s: address already in use (another program uses it; choose another address, or port 0 for a free one)", l.cfg.Address)
	}
	if err != nil {
		return fmt.Errorf("healthlistener: cannot listen on %s: %w", l.cfg.Address, err)
	}
	l.ln = accept.NewGate(ln)
	return nil
}

// bind binds the address, or uses the inherited socket. l.mu must be held.
func (l *Listener) bind() (net.Listener, error) {
	path, isUnix := strings.CutPrefix(l.cfg.Address, "unix:")
	if file := l.inherited; file != nil {
		l.inherited = nil
		return unixsock.Inherit(file, path)
	}
	switch {
	case !isUnix:
		return net.Listen("tcp", l.cfg.Address)
	case path[0] == '@':
		return net.Listen("unix", path)
	}
	return unixsock.Listen(path, l.cfg.Mode, "")
}

// Addr returns the bound address, nil before Listen.
func (l *Listener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln == nil {
		return nil
	}
	return l.ln.Addr()
}

// File returns a duplicate of the socket, for a successor.
func (l *Listener) File() (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln == nil || l.isStopped() {
		return nil, fmt.Errorf("healthlistener: %q is not listening", l.cfg.Name)
	}
	return l.ln.File()
}

// KeepPath sets whether closing the listener leaves the path of a unix socket to a
// successor.
func (l *Listener) KeepPath(keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln == nil {
		return
	}
	if u, ok := l.ln.Listener.(*unixsock.Listener); ok {
		u.Keep(keep)
	}
}

// Pause stops accepting until [Listener.Resume], but keeps the socket open. Open
// connections close as after Stop.
func (l *Listener) Pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused.Store(true)
	if l.ln != nil {
		l.ln.Shut()
	}
	for c := range l.open {
		c.hurry()
	}
}

// Resume accepts connections again.
func (l *Listener) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused.Store(false)
	if l.ln != nil {
		l.ln.Open()
	}
}

// Stop stops accepting. Open connections close with their next answer, or after a
// moment if they are idle.
func (l *Listener) Stop() {
	l.stop.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.stopped)
		if l.ln != nil {
			_ = l.ln.Close() // nothing more is accepted either way
		}
		for c := range l.open {
			c.hurry()
		}
	})
}

// Run answers checks until ctx is done. Call it once, after [Listener.Listen]. It
// returns when all connections are closed.
func (l *Listener) Run(ctx context.Context) error {
	l.mu.Lock()
	ln := l.ln
	l.mu.Unlock()
	if ln == nil {
		return fmt.Errorf("healthlistener: %q is not listening", l.cfg.Name)
	}
	done := make(chan error, 1)
	go func() {
		err := errors.New("healthlistener: panic while accepting")
		guard.New(l.cfg.Logger).Run("health listener", func() { err = l.accept(ln) })
		done <- err
	}()
	var err error
	select {
	case <-ctx.Done():
		l.Stop()
		err = <-done
	case err = <-done:
		if err == nil { // it was stopped
			<-ctx.Done()
		}
	}
	l.Stop()
	l.wait()
	return err
}

// wait waits until all connections are closed, and closes them if that takes too
// long.
func (l *Listener) wait() {
	late := time.AfterFunc(shutdownTime, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.open {
			_ = c.Close() // its goroutine notices
		}
	})
	defer late.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) > 0 {
		l.quiet.Wait()
	}
}

// accept serves connections until the listener is stopped.
func (l *Listener) accept(ln net.Listener) error {
	log := l.cfg.Logger.With("listener", l.cfg.Name)
	for {
		nc, err := accept.Next(ln.Accept, accept.Transient, l.stopped, log)
		switch {
		case err == nil:
			l.admit(nc)
		case l.isStopped():
			return nil
		default:
			return fmt.Errorf("healthlistener: %q: %w", l.cfg.Name, err)
		}
	}
}

// admit serves a connection or rejects it.
func (l *Listener) admit(nc net.Conn) {
	c := l.newConn(nc)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxConnections {
		l.cfg.Stats.Overflow.Inc()
		if !l.makeRoom() {
			_ = nc.Close()
			return
		}
	}
	l.cfg.Stats.Connections.Inc()
	l.cfg.Stats.Active.Inc()
	c.wait()
	l.open[c] = struct{}{} // not before: its goroutine takes it out
	go func() {
		guard.New(l.cfg.Logger).Run("health check", func() {
			defer l.leave(c)
			l.serve(c)
		})
	}()
}

// makeRoom closes the connection that has waited longest for a request, so that idle
// clients cannot lock out checks. It reports false if none is waiting. l.mu must be
// held.
func (l *Listener) makeRoom() bool {
	for {
		var oldest *conn
		var first int64
		for c := range l.open {
			if since := c.waiting.Load(); since != 0 && (oldest == nil || since < first) {
				oldest, first = c, since
			}
		}
		if oldest == nil {
			return false
		}
		if oldest.waiting.CompareAndSwap(first, 0) { // else its request has come
			_ = oldest.Close() // its goroutine notices
			return true
		}
	}
}

// leave closes and unregisters a connection.
func (l *Listener) leave(c *conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.quiet.Broadcast()
	l.cfg.Stats.Active.Dec()
}

// leaving reports whether connections should close with their next answer.
func (l *Listener) leaving() bool { return l.paused.Load() || l.isStopped() }

func (l *Listener) isStopped() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}
