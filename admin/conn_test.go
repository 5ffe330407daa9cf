package admin

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestReservedConnections fills the server with silent connections: only the critical
// endpoints still work.
func TestReservedConnections(t *testing.T) {
	for name, limits := range map[string]Limits{"all": {Connections: 20}, "peer": {ConnectionsPerPeer: 20}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{Limits: limits})
			for range 20 + 2*reservedConnections {
				dial(t, s)
			}
			waittest.Until(t, "the places to be taken", func() bool { return s.connections.count() >= 20+reservedConnections })
			for range 3 {
				for _, path := range []string{"/ready", "/live", "/server_info"} {
					if a := get(t, s, path); a.status != 200 {
						t.Errorf("%s: %+v", path, a)
					}
				}
				if a := get(t, s, "/help"); a.status != 503 || a.header.Get("retry-after") != "1" {
					t.Errorf("/help: %+v", a)
				}
				// A connection past the limit gets one response, even if it sends
				// more requests.
				if a := parseAnswers(t, talk(t, s, request("GET /ready HTTP/1.1")+probe)); len(a) != 1 || a[0].status != 200 {
					t.Errorf("two requests: %+v", a)
				}
			}
			waittest.Until(t, "evicted connections to go", func() bool { return s.connections.count() <= 20+reservedConnections })
		})
	}
}

func TestConnectionsAreFreedAgain(t *testing.T) {
	s := start(t, Config{Limits: Limits{Connections: 2, ConnectionsPerPeer: 2}})
	for range 10 {
		a, b := dial(t, s), dial(t, s)
		waittest.Until(t, "two connections", func() bool { return s.connections.count() == 2 })
		a.Close()
		b.Close()
		waittest.Until(t, "none", func() bool { return s.connections.count() == 0 })
		if a := get(t, s, "/help"); a.status != 200 {
			t.Fatalf("got %+v", a)
		}
		waittest.Until(t, "none", func() bool { return s.connections.count() == 0 })
	}
	if g := s.metrics.active.Value(); g != 0 {
		t.Errorf("listener.admin.downstream_cx_active is %d at the end", g)
	}
	if n := len(s.connections.perPeer); n != 0 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// TestBusyConnectionsAreNotEvicted fills all reserved slots with running requests.
func TestBusyConnectionsAreNotEvicted(t *testing.T) {
	l := Limits{Connections: 1}.withDefaults()
	cs := newConnections(&l, guard.Guard{})
	newConn := func() *conn {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return &conn{Conn: a, below: a, peer: netip.MustParseAddr("10.0.0.1")}
	}
	var reserved []*conn
	for i := range 1 + reservedConnections {
		c := newConn()
		if !cs.enter(c) || c.reserved != (i > 0) {
			t.Fatalf("connection %d: reserved %t", i, c.reserved)
		}
		c.busy.Store(true)
		if i > 0 {
			reserved = append(reserved, c)
		}
	}
	if cs.enter(newConn()) {
		t.Error("want no place while all are busy")
	}
	reserved[3].busy.Store(false)
	if !cs.enter(newConn()) {
		t.Error("want the place of the idle one")
	}
	if _, err := reserved[3].Conn.Write([]byte("x")); err == nil {
		t.Error("the idle one is still open")
	}
	if cs.leave(reserved[3]); len(cs.reserved) != reservedConnections {
		t.Errorf("%d reserved places are taken", len(cs.reserved))
	}
	empty := newConnections(&l, guard.Guard{})
	if n := empty.close(0); n != 0 || empty.enter(newConn()) {
		t.Errorf("after the end: %d handlers, and a connection is admitted", n)
	}
}

// TestNoPlaceIsLeft fills all places with running requests: a client gets the reason, or
// with TLS nothing.
func TestNoPlaceIsLeft(t *testing.T) {
	ca := newAuthority(t)
	for name, cfg := range map[string]*tls.Config{"plain": nil, "tls": ca.settings(tls.NoClientCert)} {
		t.Run(name, func(t *testing.T) {
			log := make(chan Access, 2)
			s := start(t, Config{TLS: cfg, Limits: Limits{Connections: 1}, AccessLog: func(a Access) { log <- a }})
			for range 1 + reservedConnections {
				c := new(conn)
				c.busy.Store(true)
				if !s.connections.enter(c) {
					t.Fatal("a connection is refused")
				}
				defer s.connections.leave(c)
			}
			c := dial(t, s)
			got, err := io.ReadAll(c)
			if cfg != nil {
				_, second := io.ReadAll(dial(t, s)) // the first is done with
				if len(got) > 0 || err != nil || second != nil || s.metrics.rejected.Value() != 2 || len(log) > 0 {
					t.Errorf("%q, %v, %v, %d rejected, %d answers in the log", got, err, second, s.metrics.rejected.Value(), len(log))
				}
				return
			}
			a := parseAnswers(t, string(got))
			if err != nil || len(a) != 1 || a[0].status != 503 || a[0].body != "too many connections\n" || a[0].header.Get("retry-after") != "1" {
				t.Errorf("%+v, %v", a, err)
			}
			if a := <-log; s.metrics.rejected.Value() != 1 || a.Status != 503 || a.Peer != c.LocalAddr().String() {
				t.Errorf("%d rejected, log %+v", s.metrics.rejected.Value(), a)
			}
		})
	}
}

// TestAdmitDecides expects Config.Admit to get the number of open connections, and a
// connection that it refuses to end without an answer.
func TestAdmitDecides(t *testing.T) {
	open := make(chan int, 3)
	s := start(t, Config{Admit: func(n int) bool { open <- n; return n < 2 }})
	for i := range 3 {
		c := dial(t, s)
		if got := <-open; got != i {
			t.Errorf("%d connections are open, want %d", got, i)
		}
		if i < 2 {
			waittest.Until(t, "the connection", func() bool { return s.connections.count() == i+1 })
			continue
		}
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
			t.Errorf("a refused connection reads %q, %v", got, err)
		}
	}
	if got := s.metrics.globalOverflow.Value(); got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

// TestClosingWaitsForNoClient closes TLS connections whose clients read nothing, not
// even the close. Nothing else waits for that, and it ends at its deadline.
func TestClosingWaitsForNoClient(t *testing.T) {
	ca := newAuthority(t)
	settings := ca.settings(tls.NoClientCert)
	settings.SessionTicketsDisabled = true // they would have to be read
	l := Limits{Connections: 1}.withDefaults()
	enter := func(t *testing.T, cs *connections) *conn {
		t.Helper()
		raw, other := net.Pipe()
		client, server := tls.Client(other, &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1", Time: testTime}), tls.Server(raw, settings)
		shaken := make(chan error)
		go func() { shaken <- client.Handshake() }()
		if err := errors.Join(server.Handshake(), <-shaken); err != nil {
			t.Fatal(err)
		}
		c := &conn{Conn: server, below: raw, tls: server, peer: netip.MustParseAddr("10.0.0.1")}
		if !cs.enter(c) {
			t.Fatal("no place")
		}
		go func() {
			_, _ = c.Read(make([]byte, 1)) // ends when the connection is closed
			cs.leave(c)
		}()
		return c
	}
	for _, tt := range []struct {
		name        string
		grace, took time.Duration
	}{{"each for itself", time.Minute, 5 * time.Second}, {"cut", time.Second, time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cs := newConnections(&l, guard.Guard{})
				begun := time.Now()
				for range 1 + reservedConnections + 3 {
					enter(t, cs) // the last ones take the places of others
				}
				if took := time.Since(begun); took != 0 {
					t.Fatalf("entering waited %s for others to be closed", took)
				}
				if n := cs.close(tt.grace); n != 0 {
					t.Errorf("%d did not end", n)
				}
				if took := time.Since(begun); took != tt.took {
					t.Errorf("closing took %s, want %s", took, tt.took)
				}
			})
		})
	}
}

func TestHalfOpenConnectionsEnd(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0", Limits: Limits{ReadTimeout: 500 * time.Millisecond, Connections: 50, ConnectionsPerPeer: 50}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	silent := dial(t, s)
	half := dial(t, s)
	io.WriteString(half, "GET /ready HTTP/1.1\r\nHost: localh")
	body := dial(t, s)
	io.WriteString(body, request("POST /ready HTTP/1.1", "Content-Length: 10")+"a=b")
	ended := make(chan error)
	go func() { ended <- s.Run(t.Context()) }() // only now, so that all is there when the time begins
	for name, c := range map[string]net.Conn{"silent": silent, "half": half, "body": body} {
		got, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "silent" && len(got) != 0 || name != "silent" && !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
			t.Errorf("%s: %q", name, got)
		}
	}
	waittest.Until(t, "all connections to be closed", func() bool { return s.connections.count() == 0 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	s := start(t, Config{Limits: Limits{IdleTimeout: 50 * time.Millisecond, ReadTimeout: time.Hour}})
	if a := parseAnswers(t, talk(t, s, request("GET /ready HTTP/1.1"))); len(a) != 1 || a[0].status != 200 {
		t.Errorf("got %+v", a)
	}
}

// TestUnixConnectionsHaveNoPeer opens more of them than allowed for one address.
func TestUnixConnectionsHaveNoPeer(t *testing.T) {
	s := start(t, Config{Address: "unix:" + filepath.Join(t.TempDir(), "s"), Limits: Limits{ConnectionsPerPeer: 1}})
	dial(t, s)
	dial(t, s)
	waittest.Until(t, "the connections", func() bool { return s.connections.count() == 2 })
	if a := get(t, s, "/help"); a.status != 200 {
		t.Errorf("got %+v", a)
	}
}

// TestPeersHaveTheirOwnLimit fills the places of one address. Another address still
// gets in.
func TestPeersHaveTheirOwnLimit(t *testing.T) {
	s := start(t, Config{Limits: Limits{ConnectionsPerPeer: 2}})
	for range 2 {
		dial(t, s)
	}
	waittest.Until(t, "the connections", func() bool { return s.connections.count() == 2 })
	if a := get(t, s, "/help"); a.status != 503 {
		t.Errorf("the same address: %+v", a)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := d.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Skip("no second loopback address: ", err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request("GET /help HTTP/1.1", "Connection: close")); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c)
	if a := parseAnswers(t, string(out)); err != nil || len(a) != 1 || a[0].status != 200 {
		t.Errorf("another address: %+v, %v", a, err)
	}
}

// TestRefusedBodiesAreTaken sends a large body that is refused before it is read. The
// connection is closed cleanly, so that the response is not lost.
func TestRefusedBodiesAreTaken(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	if _, err := io.WriteString(c, request("POST /ready HTTP/1.1", "Transfer-Encoding: chunked")+strings.Repeat("x", 100<<10)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c)
	if a := parseAnswers(t, string(out)); err != nil || len(a) != 1 || a[0].status != 400 {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestKeepAlive sends several requests over one connection.
func TestKeepAlive(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	var all strings.Builder
	buf := make([]byte, 4096)
	for i := range 50 {
		io.WriteString(c, request(fmt.Sprintf("GET /ready?%d HTTP/1.1", i)))
		for {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(buf[:n])
			if strings.HasSuffix(all.String(), "LIVE\n") {
				break
			}
		}
	}
	if a := parseAnswers(t, all.String()); len(a) != 50 {
		t.Errorf("%d answers", len(a))
	}
	if got := s.metrics.connections.Value(); got != 1 {
		t.Errorf("listener.admin.downstream_cx_total is %d, want 1", got)
	}
	waittest.Until(t, "the counts", func() bool { return s.metrics.classes[1].Value() == 50 && s.metrics.running.Value() == 0 })
	if got := s.metrics.requests.Value(); got != 50 {
		t.Errorf("http.admin.downstream_rq_total is %d, want 50", got)
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0"})
	begun, goOn := make(chan bool), make(chan bool)
	s.Handle(Endpoint{Path: "/slow", Serve: func(w *Response, _ *Request) error {
		begun <- true
		<-goOn
		_, err := io.WriteString(w, "done")
		return err
	}})
	run(t, s)
	idle := dial(t, s)
	io.WriteString(idle, request("GET /ready HTTP/1.1"))
	if _, err := idle.Read(make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	busy := dial(t, s)
	io.WriteString(busy, request("GET /slow HTTP/1.1"))
	<-begun
	closed := make(chan bool)
	go func() { s.Close(); close(closed) }()
	if rest, err := io.ReadAll(idle); err != nil || len(rest) > 0 {
		t.Errorf("idle connection: %q, %v", rest, err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("new connections are accepted during shutdown")
	}
	close(goOn)
	out, err := io.ReadAll(busy)
	if a := parseAnswers(t, string(out)); err != nil || len(a) != 1 || a[0].body != "done" || !strings.Contains(string(out), "connection: close") {
		t.Errorf("busy connection: %+v, %v", a, err)
	}
	<-closed
	if err := s.Listen(); err != ErrClosed {
		t.Errorf("Listen after the end: %v", err)
	}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	if err := s.Serve(ln); err != ErrClosed {
		t.Errorf("Serve after the end: %v", err)
	}
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve after the end leaves the listener open: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestShutdownEndsStuckRequests(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0", Limits: Limits{ShutdownTime: 20 * time.Millisecond, StreamStall: time.Hour}})
	ended := make(chan error, 1)
	s.Handle(Endpoint{Path: "/endless", Serve: endlessLines(ended)})
	run(t, s)
	stalled(t, s, "/endless")
	waittest.Until(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
	s.Close()
	if err := <-ended; err != ErrGone {
		t.Errorf("the handler got %v", err)
	}
}

// TestTimeOfRequests expects the time of answers, without that of streams, which say
// only how long their clients stayed.
func TestTimeOfRequests(t *testing.T) {
	s := newServer(t, Config{Address: "127.0.0.1:0"})
	s.Handle(Endpoint{Path: "/endless", Serve: func(w *Response, _ *Request) error { <-w.Endless(); return nil }})
	run(t, s)
	c := stalled(t, s, "/endless")
	waittest.Until(t, "the stream", func() bool { return s.metrics.running.Value() == 1 })
	c.Close()
	waittest.Until(t, "the end of the stream", func() bool { return s.metrics.requests.Value() == 1 })
	s.Request("GET", "/ready", nil)
	s.store.Flush(store.FlushOptions{}).Close()
	if n := s.metrics.time.Snapshot().Cumulative.Count(); n != 1 {
		t.Errorf("http.admin.downstream_rq_time has %d values, want 1", n)
	}
}

// TestQuitAnswersFirst checks that the shutdown starts only after the client has its
// response.
func TestQuitAnswersFirst(t *testing.T) {
	answered, quit := make(chan bool), make(chan bool)
	var s *Server
	s = newServer(t, Config{Address: "127.0.0.1:0", Sources: Sources{Quit: func() {
		defer close(quit)
		select {
		case <-answered:
		case <-time.After(30 * time.Second):
			t.Error("the end began before the answer was sent")
		}
		go s.Close()
	}}})
	run(t, s)
	c := dial(t, s)
	if _, err := io.WriteString(c, request("POST /quitquitquit HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(body) != "OK\n" {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
	close(answered)
	<-quit
}

func TestTakenPortIsNamed(t *testing.T) {
	first := start(t, Config{})
	addr := first.Addr().String()
	s := newServer(t, Config{Address: addr})
	err := s.Listen()
	if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("got %v", err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run without an address works")
	}
}

func TestBadAddresses(t *testing.T) {
	for _, addr := range []string{"localhost:80", "127.0.0.1", ":80", "127.0.0.1:x", "unix:", "unix:@", "/run/x.sock", "http://127.0.0.1:80"} {
		if _, err := New(Config{Address: addr}); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if err := newServer(t, Config{}).Listen(); err == nil {
		t.Error("Listen without an address works")
	}
}

func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "admin.sock")
	for _, umask := range []int{0, 0o077} {
		old := syscall.Umask(umask)
		s := newServer(t, Config{Address: "unix:" + path, SocketMode: 0o640})
		err := s.Listen()
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.Run(t.Context()) }()
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != os.ModeSocket|0o640 {
			t.Errorf("umask %o: %v, %v", umask, info.Mode(), err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("left behind: %v", entries)
		}
		for _, raw := range []string{probe, "GET /ready HTTP/1.0\r\n\r\n"} {
			if a := parseAnswers(t, talk(t, s, raw)); len(a) != 1 || a[0].body != "LIVE\n" {
				t.Errorf("%q: %+v", raw, a)
			}
		}
		if a := parseAnswers(t, talk(t, s, "GET /ready HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n")); len(a) != 1 || a[0].status != 403 {
			t.Errorf("foreign host: %+v", a)
		}
		if err := newServer(t, Config{Address: "unix:" + path}).Listen(); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("second server: %v", err)
		}
		s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	}
	// Only a stale socket is replaced.
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	s := newServer(t, Config{Address: "unix:" + path, SocketGroup: fmt.Sprint(os.Getgid())})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("without a mode: %v, %v", info.Mode(), err)
	}
	// A socket put in its place by another server is not removed.
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a file that is not ours was removed: %v", err)
	}
	if err := newServer(t, Config{Address: "unix:" + path}).Listen(); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("over a file: %v", err)
	}
	if err := newServer(t, Config{Address: "unix:" + filepath.Join(dir, "none", "x")}).Listen(); err == nil {
		t.Error("in a directory that does not exist: no error")
	}
	if err := newServer(t, Config{Address: "unix:" + path + "2", SocketGroup: "no such group"}).Listen(); err == nil {
		t.Error("with a group that does not exist: no error")
	}
}

func TestAbstractSocket(t *testing.T) {
	s := start(t, Config{Address: fmt.Sprintf("unix:@admin-test-%d", os.Getpid())})
	if a := get(t, s, "/ready"); a.body != "LIVE\n" {
		t.Errorf("got %+v", a)
	}
}

// flakyListener fails a few times before it works.
type flakyListener struct {
	net.Listener
	errs atomic.Int32
	last error
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if n := l.errs.Add(-1); n >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	} else if n == -2 && l.last != nil {
		return nil, l.last
	}
	return l.Listener.Accept()
}

func TestAcceptSurvivesLackOfFiles(t *testing.T) {
	log := new(logBuffer)
	s := newServer(t, Config{Logger: log.logger()})
	ln := &flakyListener{Listener: must(net.Listen("tcp", "127.0.0.1:0")), last: io.ErrUnexpectedEOF}
	ln.errs.Store(4) // every other one is retried with the descriptor in reserve
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ln); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("Serve: %v", err)
		}
	})
	waittest.Until(t, "the address", func() bool { return s.Addr() != nil })
	c := dial(t, s)
	io.WriteString(c, probe)
	out, err := io.ReadAll(c)
	if a := parseAnswers(t, string(out)); err != nil || len(a) != 1 || a[0].status != 200 {
		t.Errorf("%+v, %v", a, err)
	}
	wg.Wait()
	s.Close()
	if n := strings.Count(log.String(), "accept failed"); n != 2 {
		t.Errorf("%d log lines about failures, want 2", n)
	}
}

func TestExposureIsShown(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		cfg  Config
		want uint64
	}{
		{Config{Address: "0.0.0.0:0"}, 1},
		{Config{Address: "[::]:0"}, 1},
		{Config{Address: "0.0.0.0:0", Mode: ModeReadOnly}, 0},
		{Config{Address: "0.0.0.0:0", Mode: ModeMetricsOnly}, 0},
		{Config{Address: "127.0.0.1:0"}, 0},
		{Config{Address: "127.0.0.9:0"}, 0},
		{Config{Address: "[::1]:0"}, 0},
		{Config{Address: "unix:" + filepath.Join(t.TempDir(), "s")}, 0},
		{Config{Address: "0.0.0.0:0", Auth: &Auth{}}, 0},
		{Config{Address: "0.0.0.0:0", TLS: ca.settings(tls.NoClientCert)}, 1},
		{Config{Address: "0.0.0.0:0", TLS: ca.settings(tls.VerifyClientCertIfGiven)}, 1},
		{Config{Address: "0.0.0.0:0", TLS: ca.settings(tls.RequireAnyClientCert)}, 1},
		{Config{Address: "0.0.0.0:0", TLS: ca.settings(tls.RequireAndVerifyClientCert)}, 0},
	} {
		log := new(logBuffer)
		cfg := tt.cfg
		cfg.Logger = log.logger()
		s := start(t, cfg)
		c := dial(t, s)
		_, _ = io.WriteString(c, probe) // any answer will do: it is served by now
		_, _ = io.ReadAll(c)
		name := fmt.Sprintf("%s in mode %d, TLS %t, auth %t", cfg.Address, cfg.Mode, cfg.TLS != nil, cfg.Auth != nil)
		if got := s.metrics.exposed.Value(); got != tt.want {
			t.Errorf("%s: server.admin_exposed is %d, want %d", name, got, tt.want)
		}
		if got := strings.Contains(log.String(), "can be reached from other machines"); got != (tt.want == 1) {
			t.Errorf("%s: warned %t", name, got)
		}
		if !strings.Contains(log.String(), "admin address: "+s.Addr().String()) {
			t.Errorf("the log lacks the address:\n%s", log)
		}
	}
}

// TestShutdownLeavesStuckHandlersBehind checks that no handler can block the shutdown
// forever.
func TestShutdownLeavesStuckHandlersBehind(t *testing.T) {
	s := newServer(t, Config{Limits: Limits{ShutdownTime: 10 * time.Millisecond}})
	begun, goOn, back := make(chan bool), make(chan bool), make(chan bool)
	s.Handle(Endpoint{Path: "/stuck", Serve: func(*Response, *Request) error {
		begun <- true
		<-goOn
		close(back)
		return nil
	}})
	ended := make(chan error)
	go func() { ended <- s.Serve(must(net.Listen("tcp", "127.0.0.1:0"))) }()
	waittest.Until(t, "the address", func() bool { return s.Addr() != nil })
	io.WriteString(dial(t, s), request("GET /stuck HTTP/1.1"))
	<-begun
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "1 requests did not finish") {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; err != ErrClosed {
		t.Errorf("Serve: %v", err)
	}
	close(goOn)
	<-back
	waittest.Until(t, "the end of the request", func() bool { return s.connections.count() == 0 })
	if err := s.Close(); err != nil {
		t.Errorf("Close when all is quiet: %v", err)
	}
}

// TestFlood opens far more connections than allowed and sends a part of a request on
// each.
func TestFlood(t *testing.T) {
	const flood = 1000
	s := start(t, Config{Limits: Limits{ReadTimeout: 2 * time.Second}})
	before := memoryInUse()
	conns := make([]net.Conn, flood)
	for i := range conns {
		conns[i] = dial(t, s)
		io.WriteString(conns[i], "GET /re")
	}
	if grown := memoryInUse() - before; grown > 32<<20 {
		t.Errorf("%d half requests cost %d KiB", flood, grown>>10)
	}
	for range 20 {
		if a := get(t, s, "/ready"); a.status != 200 {
			t.Fatalf("got %+v", a)
		}
	}
	waittest.Until(t, "the half requests to be given up", func() bool { return s.connections.count() == 0 })
	if a := get(t, s, "/help"); a.status != 200 {
		t.Errorf("afterwards: %+v", a)
	}
}

// memoryInUse returns the bytes of heap and stacks after a garbage collection.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
