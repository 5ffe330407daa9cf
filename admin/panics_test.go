package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// wildListener panics, and so do its connections, when its fuses are lit.
type wildListener struct {
	net.Listener
	end, read, close guardtest.Fuse
}

func (l *wildListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wildConn{c, l}, nil
}

func (l *wildListener) Close() error {
	l.end.Burn()
	return l.Listener.Close()
}

type wildConn struct {
	net.Conn
	l *wildListener
}

func (c wildConn) Read(p []byte) (int, error) {
	c.l.read.Burn()
	return c.Conn.Read(p)
}

func (c wildConn) Close() error {
	c.l.close.Burn()
	return c.Conn.Close()
}

// wildServer is a server that serves a second listener, which may panic.
type wildServer struct {
	*Server
	t             *testing.T
	panics        *guardtest.Panics
	admit, access guardtest.Fuse
	wild          *wildListener
	stop          func() error
	served        chan error // by the second listener
	caught        uint64
}

func newWildServer(t *testing.T) *wildServer {
	w := &wildServer{t: t, panics: guardtest.New(t), served: make(chan error, 1)}
	w.Server = newServer(t, Config{
		Address: "127.0.0.1:0", Logger: w.panics.Logger(), Limits: Limits{ShutdownTime: 50 * time.Millisecond},
		Admit:     func(int) bool { w.admit.Burn(); return true },
		AccessLog: func(Access) { w.access.Burn() },
	})
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.stop = func() error { cancel(); return <-ended }
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.wild = &wildListener{Listener: ln}
	go func() { w.served <- w.Serve(w.wild) }()
	return w
}

// dialWild connects to the second listener.
func (w *wildServer) dialWild() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.wild.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// closed fails unless the other end closes c, after at least some bytes.
func (w *wildServer) closed(c net.Conn, least int) {
	w.t.Helper()
	got, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() || len(got) < least {
		w.t.Errorf("%d bytes, then %v", len(got), err)
	}
}

// works fails unless both listeners are served, the panics left nothing behind, and
// they are counted.
func (w *wildServer) works() {
	w.t.Helper()
	if a := get(w.t, w.Server, "/ready"); a.status != 200 {
		w.t.Errorf("/ready: %+v", a)
	}
	c := w.dialWild()
	if _, err := io.WriteString(c, probe); err != nil {
		w.t.Fatal(err)
	}
	w.closed(c, len("HTTP/1.1 200 OK"))
	waittest.Until(w.t, "the end of all connections", func() bool { return w.connections.count() == 0 && w.metrics.active.Value() == 0 })
	w.caught++
	if got := w.metrics.panics.Value(); got != w.caught {
		w.t.Errorf("server.recovered_panics is %d, want %d", got, w.caught)
	}
}

// wildLog is a log that panics about mutations when its fuse is lit.
type wildLog struct {
	slog.Handler
	*guardtest.Fuse
}

func (w wildLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "audit" {
		w.Burn()
	}
	return w.Handler.Handle(ctx, r)
}

// TestPanicsOfTheLog: a mutation that the log cannot take is answered as any other.
func TestPanicsOfTheLog(t *testing.T) {
	panics, fuse := guardtest.New(t), new(guardtest.Fuse)
	s := newServer(t, Config{Logger: slog.New(wildLog{panics.Logger().Handler(), fuse})})
	fuse.Light(1)
	if a := s.Request("POST", "/reset_counters", nil); a.Status != 200 {
		t.Errorf("status %d", a.Status)
	}
	panics.Caught("log")
	if got := s.metrics.panics.Value(); got != 1 || len(s.Audit(9)) != 1 {
		t.Errorf("server.recovered_panics is %d, want 1; the audit log has %d entries", got, len(s.Audit(9)))
	}
}

// TestPanicsOfConnections checks that a panic ends only its own connection, and that
// the server still shuts down cleanly.
func TestPanicsOfConnections(t *testing.T) {
	w := newWildServer(t)
	w.admit.Light(1)
	w.closed(w.dialWild(), 0)
	w.panics.Caught("accepted connection")
	w.works()

	w.wild.read.Light(1)
	w.closed(w.dialWild(), 0)
	w.panics.Caught("connection")
	w.works()

	c := w.dialWild()
	w.access.Light(1)
	if _, err := io.WriteString(c, request("GET /ready?secret="+guardtest.Canary[:6]+" HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	w.closed(c, len("HTTP/1.1 200 OK"))
	w.panics.Caught("connection")
	w.works()

	w.wild.end.Light(1)
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	w.panics.Caught("end of a listener")
	if err := <-w.served; err != ErrClosed {
		t.Errorf("Serve: %v", err)
	}
}

// TestConnectionsThatDoNotClose checks that the shutdown abandons connections that
// cannot be closed and handlers that do not return.
func TestConnectionsThatDoNotClose(t *testing.T) {
	w := newWildServer(t)
	c := w.dialWild()
	waittest.Until(t, "a connection", func() bool { return w.connections.count() == 1 })
	w.wild.close.Light(4)
	if err := w.stop(); err == nil || err.Error() != "admin: 1 requests did not finish in time" {
		t.Errorf("Run: %v", err)
	}
	for range 2 { // Run closes once more what the end of its context has closed
		w.panics.Caught("closing of a connection")
		w.panics.Caught("cut of a connection")
	}
	if err := <-w.served; err != ErrClosed {
		t.Errorf("Serve: %v", err)
	}
	_ = c.Close()
	waittest.Until(t, "the end of the connection", func() bool { return w.connections.count() == 0 })
}

// TestEndPanics checks that a server whose shutdown panics keeps serving, and can be
// shut down again.
func TestEndPanics(t *testing.T) {
	panics := guardtest.New(t)
	s := newServer(t, Config{Address: "127.0.0.1:0", Logger: panics.Logger()})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var err error
		if !panics.Guard().Run("Run", func() { err = s.Run(ctx) }) {
			err = io.ErrUnexpectedEOF
		}
		ended <- err
	}()
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("/ready: %+v", a)
	}
	end := s.cancel
	s.cancel = func() { end(); panic("x") }
	cancel()
	panics.Caught("end of the server")
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("/ready: %+v", a)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestRepeatedPanicsDisableEndpoints lets each built-in endpoint panic repeatedly:
// three panics within a minute disable it permanently, except for endpoints that
// report the server's health.
func TestRepeatedPanicsDisableEndpoints(t *testing.T) {
	now := testTime()
	s := newServer(t, Config{Sources: newWorld().sources(), Now: func() time.Time { return now }})
	var neverDisabled []string
	for _, e := range s.table.Load().rows {
		calls := 0
		e.Serve = func(*Response, *Request) error { calls++; panic(guardtest.Canary) }
		for range 4 {
			if err := s.call(e, nil, nil); err == nil || strings.Contains(err.Error(), guardtest.Canary) {
				t.Errorf("%s: %v", e.Path, err)
			}
		}
		now = now.Add(24 * time.Hour)
		err := s.call(e, nil, nil)
		switch calls {
		case 3:
			var known *Error
			if !errors.As(err, &known) || known.Status != 500 || !strings.Contains(known.Msg, "switched off until the server is restarted") {
				t.Errorf("%s: %v", e.Path, err)
			}
		case 5:
			neverDisabled = append(neverDisabled, e.Path)
		default:
			t.Errorf("%s is called %d times", e.Path, calls)
		}
	}
	slices.Sort(neverDisabled)
	if want := []string{"/live", "/ready", "/stats", "/stats/metrics"}; !slices.Equal(neverDisabled, want) {
		t.Errorf("%q stay on, want %q", neverDisabled, want)
	}
}
