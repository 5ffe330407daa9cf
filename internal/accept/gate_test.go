package accept

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestGate: connections that arrive while the gate is shut are accepted when it
// opens, and closing it ends a waiting Accept.
func TestGate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(l)
	type result struct {
		conn net.Conn
		err  error
	}
	accepted := make(chan result, 9)
	go func() {
		for {
			c, err := g.Accept()
			accepted <- result{c, err}
			if errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	dial := func() {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	comes := func() {
		t.Helper()
		if r := <-accepted; r.err != nil {
			t.Fatal(r.err)
		} else {
			r.conn.Close()
		}
	}
	dial()
	comes()
	for range 100 { // also when the accepter has not noticed the one before
		g.Shut()
		g.Shut()
		g.Open()
		g.Open()
	}
	dial()
	comes()
	g.Shut()
	dial()
	dial()
	waiting := 2 // an Accept that was returning when the gate shut may still take one
	for through := true; through; {
		select {
		case r := <-accepted:
			if waiting--; waiting == 0 || r.err != nil {
				t.Fatalf("accepted %v, %v through a shut gate", r.conn, r.err)
			}
			r.conn.Close()
		case <-time.After(50 * time.Millisecond):
			through = false
		}
	}
	g.Open()
	for range waiting {
		comes()
	}
	f, err := g.File()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	g.Shut()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-accepted; !errors.Is(r.err, net.ErrClosed) {
		t.Errorf("a closed gate returns %v, %v", r.conn, r.err)
	}
}

// TestGatePassesErrors: a deadline that the caller has set is not the gate's.
func TestGatePassesErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(l)
	defer g.Close()
	if err := l.(*net.TCPListener).SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestShutAfterClose: Accept must not wait for a listener that is closed.
func TestShutAfterClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(l)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g.Shut()
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
