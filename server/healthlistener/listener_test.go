package healthlistener

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the server behind a listener.
type world struct {
	failing, closing atomic.Bool

	requests, passed, failed, connections, overflow *store.Counter
	active                                          *store.Gauge
}

// newWorld returns a healthy server.
func newWorld() *world {
	sc := store.New(store.Options{}).Root()
	return &world{
		requests: sc.Counter("requests"), passed: sc.Counter("passed"), failed: sc.Counter("failed"),
		connections: sc.Counter("connections"), overflow: sc.Counter("overflow"), active: sc.Gauge("active"),
	}
}

func (w *world) config(address string) Config {
	return Config{
		Name: "health", Address: address, Cluster: "edge", HeaderPrefix: "x-test",
		State: func() (string, bool) {
			if w.failing.Load() {
				return "DRAINING", false
			}
			return "LIVE", true
		},
		Closing: w.closing.Load,
		Stats: Stats{
			Requests: w.requests, Passed: w.passed, Failed: w.failed,
			Connections: w.connections, Overflow: w.overflow, Active: w.active,
		},
	}
}

// start runs a listener until the test ends.
func start(t *testing.T, cfg Config, inherited *os.File) *Listener {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if inherited != nil {
		l.Inherit(inherited)
	}
	if err := l.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// client keeps one connection to a listener.
type client struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, l *Listener) *client {
	t.Helper()
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{c, bufio.NewReader(c)}
}

// ask sends a request and returns the answer and its body.
func (c *client) ask(t *testing.T, method, path string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: any.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestClusterNameStaysInItsField checks that the name of a cluster cannot add a field.
func TestClusterNameStaysInItsField(t *testing.T) {
	cfg := newWorld().config("127.0.0.1:0")
	cfg.Cluster = "edge\r\nx-more: 1"
	c := dial(t, start(t, cfg, nil))
	resp, _ := c.ask(t, "GET", "/")
	if got := resp.Header.Get("X-Test-Upstream-Healthchecked-Cluster"); got != "edge__x-more: 1" || resp.Header.Get("X-More") != "" {
		t.Errorf("%q, %v", got, resp.Header)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld()
	l := start(t, w.config("127.0.0.1:0"), nil)
	if l.Addr().(*net.TCPAddr).Port == 0 {
		t.Error("the port is not known")
	}
	c := dial(t, l)
	for _, path := range []string{"/", "/healthz", "/a?b=c"} {
		resp, body := c.ask(t, "GET", path)
		if resp.Status != "200 OK" || body != "LIVE\n" || resp.Close || resp.Header.Get("X-Test-Upstream-Healthchecked-Cluster") != "edge" ||
			resp.Header.Get("X-Test-Immediate-Health-Check-Fail") != "" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %q, %v", path, resp.StatusCode, body, resp.Header)
		}
	}
	w.failing.Store(true)
	resp, body := c.ask(t, "GET", "/")
	if resp.StatusCode != 503 || body != "DRAINING\n" || resp.Header.Get("X-Test-Immediate-Health-Check-Fail") != "true" {
		t.Errorf("failing: %d, %q, %v", resp.StatusCode, body, resp.Header)
	}
	if resp, body := c.ask(t, "HEAD", "/"); resp.StatusCode != 503 || body != "" {
		t.Errorf("HEAD: %d, %q", resp.StatusCode, body)
	}
	w.failing.Store(false)
	if resp, body := c.ask(t, "POST", "/"); resp.StatusCode != 405 || body != "" || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, %q", resp.StatusCode, body)
	}
	if got := []uint64{w.requests.Value(), w.passed.Value(), w.failed.Value(), w.connections.Value(), w.active.Value()}; got[0] != 6 || got[1] != 3 || got[2] != 2 || got[3] != 1 || got[4] != 1 {
		t.Errorf("counted %v", got)
	}
	w.closing.Store(true)
	if resp, body := c.ask(t, "GET", "/"); resp.StatusCode != 200 || body != "LIVE\n" || !resp.Close {
		t.Errorf("while connections are to close: %d, %q, %v", resp.StatusCode, body, resp.Header)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the connection goes on: %d, %v", n, err)
	}
}

// TestRequests sends unusual requests.
func TestRequests(t *testing.T) {
	w := newWorld()
	l := start(t, w.config("127.0.0.1:0"), nil)
	const get, tail = "GET / HTTP/1.1\r\nHost: a\r\n", "\r\n\r\n"
	for raw, want := range map[string]string{
		get + "Connection: close\r\n\r\n":                      "200 close",
		"GET / HTTP/1.0\r\n\r\n":                               "200 close",
		get + "\r\n" + get + "Connection: close\r\n\r\n":       "200 200 close",
		get + "Content-Length: 5\r\n\r\nhello" + get + "\r\n":  "200 close",
		get + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n":    "200 close",
		"nonsense" + tail:                                      "400 close",
		"GET HTTP/1.1" + tail:                                  "400 close",
		"GET /%zz HTTP/1.1" + tail:                             "400 close",
		"GET http://[ HTTP/1.1" + tail:                         "400 close",
		get + "no colon" + tail:                                "400 close",
		get + "X: " + strings.Repeat("x", requestBytes) + tail: "431 close",
		// the maximum length
		get + "X: " + strings.Repeat("x", requestBytes-len(get+"X: "+tail)) + tail:   "200 ",
		get + "X: " + strings.Repeat("x", requestBytes+1-len(get+"X: "+tail)) + tail: "431 close",
		get: "",
	} {
		c := dial(t, l)
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		_ = c.Conn.(*net.TCPConn).CloseWrite() // the client is done
		got := ""
		for {
			resp, err := http.ReadResponse(c.r, nil)
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, resp.Body) // the status tells
			got += strings.Fields(resp.Status)[0] + " "
			if resp.Close {
				got += "close"
			}
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", raw, got, want)
		}
	}
}

// FuzzRequest sends arbitrary bytes: they may be answered or not, and the next client
// is served.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		w := newWorld()
		l, err := New(w.config("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		go func() {
			_, _ = ours.Write(raw) // the other side may have had enough
			_ = ours.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		l.serve(l.newConn(theirs))
		_ = theirs.Close()
		if w.passed.Value()+w.failed.Value() > w.requests.Value() {
			t.Errorf("%d passed and %d failed of %d requests", w.passed.Value(), w.failed.Value(), w.requests.Value())
		}
	})
}

// TestStop: connected clients still get their answers, and new ones are rejected.
func TestStop(t *testing.T) {
	w := newWorld()
	path := filepath.Join(t.TempDir(), "s")
	l := start(t, w.config("unix:"+path), nil)
	idle := dial(t, l)
	idle.ask(t, "GET", "/")
	l.Stop()
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("a connection is accepted after the stop")
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if n, err := idle.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("an idle connection goes on: %d, %v", n, err)
	}
	if _, err := l.File(); err == nil {
		t.Error("a stopped listener hands over its socket")
	}
	l.Stop()
}

// TestStopDuringARequest: a request in flight when the listener stops is answered,
// with the announcement that the connection closes.
func TestStopDuringARequest(t *testing.T) {
	w := newWorld()
	cfg := w.config("127.0.0.1:0")
	var l *Listener
	started := make(chan bool)
	state := cfg.State
	cfg.State = func() (string, bool) {
		<-started
		l.Stop()
		return state()
	}
	l = start(t, cfg, nil)
	close(started)
	if resp, body := dial(t, l).ask(t, "GET", "/"); resp.StatusCode != 200 || body != "LIVE\n" || !resp.Close {
		t.Errorf("status %d, %q, closed %t", resp.StatusCode, body, resp.Close)
	}
}

// TestAllConnectionsBusy: a client is rejected at once while all other connections
// are being answered.
func TestAllConnectionsBusy(t *testing.T) {
	w := newWorld()
	cfg := w.config("127.0.0.1:0")
	hold := make(chan bool)
	release := sync.OnceFunc(func() { close(hold) })
	cfg.State = func() (string, bool) { <-hold; return "LIVE", true }
	l := start(t, cfg, nil)
	defer release() // or nothing could end
	var all []*client
	for range maxConnections {
		c := dial(t, l)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	waittest.Until(t, "all requests", func() bool { return w.requests.Value() == maxConnections })
	if n, err := dial(t, l).Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more: %d bytes, %v", n, err)
	}
	release()
	for _, c := range all {
		if resp, err := http.ReadResponse(c.r, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	if w.overflow.Value() != 1 || w.connections.Value() != maxConnections {
		t.Errorf("%d turned away of %d", w.overflow.Value(), w.connections.Value())
	}
}

// received returns a file as if a process had received it over a socket. A file made
// by package net puts the socket into blocking mode for a moment when a listener is
// created from it, and the first listener then blocks in accept until a client
// connects.
func received(t *testing.T, file *os.File) *os.File {
	t.Helper()
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd, dupErr := -1, error(nil)
	if err := errors.Join(raw.Control(func(of uintptr) { fd, dupErr = syscall.Dup(int(of)) }), dupErr, file.Close()); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "inherited")
}

// TestHandOver hands the socket to a second listener: no connection is ever refused.
func TestHandOver(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s"), "unix:@healthlistener-test"} {
		first, second := newWorld(), newWorld()
		a := start(t, first.config(address), nil)
		file, err := a.File()
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, second.config(address), received(t, file))
		b.KeepPath(false)
		if a.Addr().String() != b.Addr().String() || a.Key() != b.Key() {
			t.Errorf("%s: %v and %v", address, a.Addr(), b.Addr())
		}
		a.KeepPath(true)
		a.Stop()
		for range 10 {
			if resp, _ := dial(t, b).ask(t, "GET", "/"); resp.StatusCode != 200 {
				t.Errorf("%s: status %d", address, resp.StatusCode)
			}
		}
		if got := second.requests.Value(); got != 10 {
			t.Errorf("%s: the second listener got %d requests", address, got)
		}
	}
}

// TestTooManyConnections: connections that send nothing, or part of a request, do not
// lock out checks; the oldest ones are closed.
func TestTooManyConnections(t *testing.T) {
	w := newWorld()
	l := start(t, w.config("127.0.0.1:0"), nil)
	first := dial(t, l)
	waittest.Until(t, "the first connection", func() bool { return w.active.Value() == 1 })
	second := dial(t, l)
	for range maxConnections - 2 {
		dial(t, l)
	}
	waittest.Until(t, "all connections", func() bool { return w.active.Value() == maxConnections })
	if _, err := io.WriteString(second, "GET / HTTP/1.1\r\n"); err != nil { // not before: its time is limited
		t.Fatal(err)
	}
	for i, oldest := range []*client{first, second} {
		if resp, body := dial(t, l).ask(t, "GET", "/"); resp.StatusCode != 200 || body != "LIVE\n" {
			t.Errorf("status %d, %q", resp.StatusCode, body)
		}
		if n, err := oldest.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("oldest connection %d: %d bytes, %v", i, n, err)
		}
		waittest.Until(t, "the place of the oldest one", func() bool { return w.active.Value() == maxConnections })
	}
	if w.overflow.Value() != 2 {
		t.Errorf("%d turned away", w.overflow.Value())
	}
}

func TestWrongConfig(t *testing.T) {
	state := func() (string, bool) { return "", true }
	for want, cfg := range map[string]Config{
		"needs a name":                 {Address: "127.0.0.1:0", State: state},
		"and a state":                  {Name: "a", Address: "127.0.0.1:0"},
		`address "localhost:1"`:        {Name: "a", Address: "localhost:1", State: state},
		`address "unix:" has no path`:  {Name: "a", Address: "unix:", State: state},
		`address "unix:@" has no path`: {Name: "a", Address: "unix:@", State: state},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	w := newWorld()
	l := start(t, w.config("127.0.0.1:0"), nil)
	second, err := New(w.config(l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil {
		t.Error("a listener that does not listen runs")
	}
	if err := second.Listen(); err == nil || !strings.Contains(err.Error(), "another program uses it") {
		t.Errorf("%v", err)
	}
}

// TestChecksPanic: a panic of a connection closes only that connection.
func TestChecksPanic(t *testing.T) {
	w := newWorld()
	panics := guardtest.New(t)
	cfg := w.config("127.0.0.1:0")
	cfg.Logger = panics.Logger()
	state := cfg.State
	cfg.State = func() (string, bool) {
		if w.failing.CompareAndSwap(true, false) {
			panic(guardtest.Canary)
		}
		return state()
	}
	l := start(t, cfg, nil)
	works := func() {
		t.Helper()
		c := dial(t, l)
		if resp, body := c.ask(t, "GET", "/"); resp.StatusCode != 200 || body != "LIVE\n" {
			t.Errorf("after it: %d, %q", resp.StatusCode, body)
		}
		c.Close()
	}
	closed := func(c *client) {
		t.Helper()
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v; want the end of the connection", n, err)
		}
	}
	w.failing.Store(true)
	bad := dial(t, l)
	if _, err := io.WriteString(bad, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	closed(bad)
	panics.Caught("health check")
	works()
}

// wildLog panics, but not on what a guard reports.
type wildLog struct{ slog.Handler }

func (w wildLog) Enabled(context.Context, slog.Level) bool { return true }
func (w wildLog) WithAttrs([]slog.Attr) slog.Handler       { return w }

func (w wildLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "recovered from a panic" {
		panic(guardtest.Canary)
	}
	return w.Handler.Handle(ctx, r)
}

// scarce is a listener that temporarily cannot accept.
type scarce struct{ net.Listener }

func (scarce) Accept() (net.Conn, error) { return nil, syscall.EMFILE }

// TestAcceptPanics: a panic outside of connections is an error, and nothing leaks.
func TestAcceptPanics(t *testing.T) {
	w := newWorld()
	panics := guardtest.New(t)
	cfg := w.config("127.0.0.1:0")
	cfg.Logger = slog.New(wildLog{panics.Logger().Handler()})
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Listen(); err != nil {
		t.Fatal(err)
	}
	l.ln.Listener = scarce{l.ln.Listener} // of which the log hears
	if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "panic while accepting") {
		t.Errorf("Run: %v", err)
	}
	panics.Caught("health listener")
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

// TestPause: a paused listener closes its connections, lets new ones wait, and
// answers them after it resumes.
func TestPause(t *testing.T) {
	w := newWorld()
	l := start(t, w.config("127.0.0.1:0"), nil)
	old := dial(t, l)
	old.ask(t, "GET", "/")
	l.Pause()
	if resp, _ := old.ask(t, "GET", "/"); resp.StatusCode != 200 || !resp.Close {
		t.Errorf("status %d, closed %t on an open connection", resp.StatusCode, resp.Close)
	}
	late := dial(t, l)
	if _, err := io.WriteString(late, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if got := w.requests.Value(); got != 2 {
		t.Errorf("%d requests while paused, want 2", got)
	}
	l.Resume()
	waittest.Until(t, "the request that waited", func() bool { return w.requests.Value() == 3 })
	if resp, body := dial(t, l).ask(t, "GET", "/"); resp.StatusCode != 200 || body != "LIVE\n" || resp.Close {
		t.Errorf("after the pause: %d, %q, closed %t", resp.StatusCode, body, resp.Close)
	}
}

// lateConn is a connection whose first read begins after its deadline.
type lateConn struct {
	net.Conn
	late atomic.Bool
}

func (c *lateConn) Read(b []byte) (int, error) {
	if !c.late.Swap(true) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(b)
}

// TestLateRead: a check that has arrived is answered although the listener was busy
// until the deadline of a connection that is to close.
func TestLateRead(t *testing.T) {
	l, err := New(newWorld().config("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	l.serve(l.newConn(&lateConn{Conn: server}))
	server.Close()
	if got, err := io.ReadAll(client); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
		t.Errorf("the answer is %q, %v", got, err)
	}
}
