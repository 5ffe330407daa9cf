package accept

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
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

// fakeListener accepts the connections sent to it, and knows deadlines only as past or
// not.
type fakeListener struct {
	net.Listener // nil: the rest is not called
	conns        chan net.Conn
	past         chan struct{} // closed by a deadline in the past
	closed       chan struct{}
	entered      int
}

var errClose = errors.New("closed badly")

func (l *fakeListener) Accept() (net.Conn, error) {
	l.entered++
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	case <-l.past:
		return nil, os.ErrDeadlineExceeded
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-l.past:
		return nil, os.ErrDeadlineExceeded
	}
}

func (l *fakeListener) SetDeadline(t time.Time) error {
	if t.IsZero() {
		l.past = make(chan struct{})
	} else if t.Before(time.Now()) {
		close(l.past)
	}
	return nil
}

func (l *fakeListener) Close() error {
	close(l.closed)
	return errClose
}

// TestShutWakesAccept: a shut gate leaves the listener alone, even if an Accept
// was waiting when it shut, and closing it ends that Accept.
func TestShutWakesAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeListener{conns: make(chan net.Conn), past: make(chan struct{}), closed: make(chan struct{})}
		g := NewGate(l)
		accepted := make(chan error, 1)
		accept := func() {
			_, err := g.Accept()
			accepted <- err
		}
		go accept()
		synctest.Wait()
		g.Shut()
		synctest.Wait()
		select {
		case l.conns <- nil:
			t.Error("a shut gate accepts")
		case err := <-accepted:
			t.Fatalf("a shut gate returns %v", err)
		default:
		}
		if l.entered != 1 {
			t.Errorf("a shut gate called the listener %d times", l.entered)
		}
		g.Open()
		l.conns <- nil
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		go accept()
		synctest.Wait()
		g.Shut()
		synctest.Wait()
		if err := g.Close(); err != errClose {
			t.Errorf("Close returns %v", err)
		}
		synctest.Wait()
		select {
		case err := <-accepted:
			if err != net.ErrClosed {
				t.Errorf("Accept of a closed gate returns %v", err)
			}
		default:
			t.Error("Accept of a closed gate waits")
			g.Open()
		}
	})
}

// TestGateFile: the descriptor is that of the listener; not every listener has
// one.
func TestGateFile(t *testing.T) {
	if f, err := NewGate(&fakeListener{}).File(); f != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, %v", f, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := NewGate(l).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	same, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	if same.Addr().String() != l.Addr().String() {
		t.Errorf("a descriptor of %v, want %v", same.Addr(), l.Addr())
	}
}
