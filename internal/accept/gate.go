package accept

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Gate is a listener that can stop accepting and start again, while its socket
// stays open and connections wait in its queue. Make one with [NewGate].
type Gate struct {
	net.Listener
	mu     sync.Mutex    // guards the rest
	shut   chan struct{} // nil while the gate is open; closed when it opens again
	shuts  int           // how often it was shut
	closed bool
}

// NewGate returns an open gate. The listener must have deadlines, as the listeners of
// package net do.
func NewGate(l net.Listener) *Gate { return &Gate{Listener: l} }

// Accept implements [net.Listener]. While the gate is shut it waits.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		shut, before := g.state()
		if shut != nil {
			<-shut
			continue
		}
		c, err := g.Listener.Accept()
		if _, now := g.state(); err == nil || now == before || !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
	}
}

func (g *Gate) state() (shut chan struct{}, shuts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut, g.shuts
}

// Shut stops accepting. It does not wait for an Accept that is returning.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil && !g.closed {
		g.shut = make(chan struct{})
		g.shuts++
		g.deadline(time.Unix(1, 0)) // wakes Accept
	}
}

// Open accepts again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		g.deadline(time.Time{})
		close(g.shut)
		g.shut = nil
	}
}

// deadline sets the deadline of Accept, which fails only if the listener is
// closed.
func (g *Gate) deadline(t time.Time) {
	if d, ok := g.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(t)
	}
}

// Close closes the listener, also while the gate is shut.
func (g *Gate) Close() error {
	err := g.Listener.Close()
	g.mu.Lock()
	g.closed = true // a later Shut would make Accept wait forever
	g.mu.Unlock()
	g.Open()
	return err
}

// File returns a duplicate of the socket.
func (g *Gate) File() (*os.File, error) {
	f, ok := g.Listener.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return f.File()
}
