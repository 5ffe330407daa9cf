package statsd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// wildListener panics, and so do its connections, when its fuses are lit.
type wildListener struct {
	net.Listener
	accept, remote, read, close, deadline guardtest.Fuse
}

func (l *wildListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.accept.Burn()
	if err != nil {
		return nil, err
	}
	return wildConn{c, l}, nil
}

func (l *wildListener) SetDeadline(t time.Time) error {
	l.deadline.Burn()
	return l.Listener.(*net.TCPListener).SetDeadline(t)
}

type wildConn struct {
	net.Conn
	l *wildListener
}

func (c wildConn) RemoteAddr() net.Addr { c.l.remote.Burn(); return c.Conn.RemoteAddr() }
func (c wildConn) Read(p []byte) (int, error) {
	c.l.read.Burn()
	return c.Conn.Read(p)
}

func (c wildConn) Close() error {
	err := c.Conn.Close()
	c.l.close.Burn()
	return err
}

// wildLog is a log handler that panics for messages about a thing when its fuse is lit.
type wildLog struct {
	slog.Handler
	guardtest.Fuse
	about string
}

func (w *wildLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.about) {
		w.Burn()
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// wildServer is a server with a datagram and a stream listener in which all that
// others give it may panic.
type wildServer struct {
	*live
	t               *testing.T
	panics          *guardtest.Panics
	now, tap, taken guardtest.Fuse
	log             wildLog
	stream          *wildListener
	lines, caught   uint64
}

func newWildServer(t *testing.T) *wildServer {
	w := &wildServer{t: t, panics: guardtest.New(t)}
	w.log.Handler, w.log.about = w.panics.Logger().Handler(), "rejected"
	w.live = newLive(t, Config{
		Listeners: []ListenerConfig{{Address: "udp://127.0.0.1:0", Readers: 1}, {Address: "tcp://127.0.0.1:0", Connections: 2}},
		Logger:    slog.New(&w.log),
		Now:       func() time.Time { w.now.Burn(); return time.Now() },
		Tap: func() func(Tapped) {
			w.tap.Burn()
			return func(Tapped) { w.taken.Burn() }
		},
	})
	l := w.listeners[1]
	w.stream = &wildListener{Listener: l.plain}
	l.accept, l.plain = w.stream, w.stream
	l.conns.patience = time.Millisecond
	w.run()
	return w
}

// works fails unless listener i takes in lines, and lets go of connections.
func (w *wildServer) works(i int) {
	w.t.Helper()
	c := w.dial(i)
	write(w.t, c, "a:1|c\n")
	w.lines++
	waittest.Until(w.t, "a line", func() bool { return w.counter("a") == w.lines })
	_ = c.Close()
	waittest.Until(w.t, "the end of all connections", func() bool { return w.listeners[1].metrics.active.Value() == 0 && w.places() == 0 })
	w.caught++
	if got := w.metrics.panics.Total(); got != w.caught {
		w.t.Errorf("server.recovered_panics is %d, want %d", got, w.caught)
	}
}

func (w *wildServer) places() int {
	c := &w.listeners[1].conns
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) + len(c.waiting)
}

// closed fails unless the other end closes c.
func (w *wildServer) closed(c net.Conn) {
	w.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c); n != 0 || isTimeout(err) {
		w.t.Errorf("a connection does not end: %d bytes, %v", n, err)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// TestPanics checks that the server keeps receiving lines after each panic.
func TestPanics(t *testing.T) {
	w := newWildServer(t)
	for i := range 2 {
		c := w.dial(i)
		w.now.Light(1) // when a line is rejected
		write(t, c, "bad "+guardtest.Canary+"\n")
		w.panics.Caught("worker")
		_ = c.Close()
		w.works(i)

		c = w.dial(i)
		w.taken.Light(1)
		write(t, c, "b:1|c|#"+guardtest.Canary+"\n")
		w.panics.Caught("worker")
		_ = c.Close()
		w.works(i)

		c = w.dial(i)
		w.log.Light(1)
		waittest.Until(t, "a rejected line is worth a line of the log", func() bool {
			write(t, c, "bad\n")
			return !w.log.Lit()
		})
		w.panics.Caught("log")
		_ = c.Close()
		w.works(i)
	}

	c := w.dial(0)
	w.tap.Light(1)
	write(t, c, "b:1|c")
	w.panics.Caught("reader")
	w.works(0)

	c = w.dial(1)
	w.tap.Light(1)
	write(t, c, "b:1|c\n")
	w.panics.Caught("connection")
	w.closed(c)
	w.works(1)

	w.stream.read.Light(1)
	w.closed(w.dial(1))
	w.panics.Caught("connection")
	w.works(1)

	w.stream.close.Light(1)
	_ = w.dial(1).Close()
	w.panics.Caught("end of a connection")
	w.works(1)

	w.stream.remote.Light(1)
	w.closed(w.dial(1))
	w.panics.Caught("accepted connection")
	w.works(1)

	w.stream.accept.Light(1)
	_ = w.dial(1).Close()
	w.panics.Caught("accepter")
	w.works(1)

	full := []net.Conn{w.dial(1), w.dial(1)}
	waittest.Until(t, "no place is left", func() bool { return w.places() == len(full) })
	w.stream.close.Light(1)
	w.closed(w.dial(1))
	w.panics.Caught("admission")
	for _, c := range full {
		_ = c.Close()
	}
	waittest.Until(t, "all places are free", func() bool { return w.places() == 0 })
	w.works(1)
}

// TestEndOfAListenerPanics: the others end in good order, and Run returns.
func TestEndOfAListenerPanics(t *testing.T) {
	w := newWildServer(t)
	c := w.dial(0)
	w.stream.deadline.Light(1)
	write(t, c, "a:1|c\n")
	w.stop()
	w.panics.Caught("end of a listener")
	if got := w.counter("a"); got != 1 {
		t.Errorf("%d lines were received", got)
	}
	if c, err := net.Dial("tcp", w.stream.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the port is still open")
	}
}
