package admin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestPause checks that a paused server closes idle connections and streams, keeps
// new connections waiting, and answers them when it resumes.
func TestPause(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		s, err := New(Config{Store: store.New(store.Options{}), Address: address})
		if err != nil {
			t.Fatal(err)
		}
		began, ended := make(chan bool), make(chan bool)
		if err := s.Handle(Endpoint{Path: "/endless", Help: "h", Serve: func(w *Response, r *Request) error {
			close(began)
			<-r.Closing()
			close(ended)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		dial := func() net.Conn {
			t.Helper()
			c, err := net.Dial(s.Addr().Network(), s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			return c
		}
		send := func(c net.Conn, path string) {
			t.Helper()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
		}
		answered := func(c net.Conn, closing bool) {
			t.Helper()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 200 || resp.Close != closing {
				t.Fatalf("%s: %+v, %v", address, resp, err)
			}
		}
		idle := dial()
		send(idle, "/ready")
		answered(idle, false)
		stream := dial()
		send(stream, "/endless")
		<-began
		s.Pause()
		<-ended
		answered(stream, true)
		if n, err := idle.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%s: the idle connection reads %d, %v", address, n, err)
		}
		late := dial()
		send(late, "/ready")
		if err := late.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := late.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a paused server sends %d bytes, %v", address, n, err)
		}
		if err := late.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		s.Resume()
		s.Resume()
		answered(late, false)

		// Another server continues with the socket.
		f, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		s.KeepPath(true)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		next, err := New(Config{Store: store.New(store.Options{}), Address: address})
		if err != nil {
			t.Fatal(err)
		}
		next.Inherit(f)
		if err := next.Listen(); err != nil {
			t.Fatal(err)
		}
		if next.Addr().String() != s.Addr().String() {
			t.Errorf("the next server listens on %s, not on %s", next.Addr(), s.Addr())
		}
		next.KeepPath(false)
		go func() { done <- next.Run(t.Context()) }()
		c := dial()
		send(c, "/ready")
		answered(c, false)
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		if _, err := next.File(); err == nil {
			t.Error("a closed server has a socket")
		}
		if _, err := net.Dial(next.Addr().Network(), next.Addr().String()); err == nil {
			t.Error("the socket is still open")
		}
	}
}

// TestResumeEndsTheHurry: a request that runs since before a pause is cut when its
// time is over, unless the server has resumed by then.
func TestResumeEndsTheHurry(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			all := newConnections(&Limits{}, guard.Guard{})
			client, server := net.Pipe()
			defer client.Close()
			c := &conn{Conn: server, below: server}
			c.busy.Store(true)
			if !all.enter(c) {
				t.Fatal("the connection is refused")
			}
			all.hurry(time.Second)
			if resumed {
				all.endHurry()
			}
			if err := client.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err := client.Read(make([]byte, 1))
			if cut := err == io.EOF; cut == resumed {
				t.Errorf("resumed %t, cut %t: %v", resumed, cut, err)
			}
			all.leave(c)
		})
	}
}

// TestInheritedSockets expects the last file to count, the ones before to be closed,
// and a file without a socket to be refused.
func TestInheritedSockets(t *testing.T) {
	file := func() *os.File {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s := newServer(t, Config{Address: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0"})
	s.KeepPath(true) // there is none
	first, second := file(), file()
	s.Inherit(first)
	s.Inherit(second)
	if err := first.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the first file was open: %v", err)
	}
	if err := s.Listen(); err == nil || !strings.HasPrefix(err.Error(), "admin: the inherited socket "+os.DevNull+": ") {
		t.Errorf("Listen: %v", err)
	}
	if err := second.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the second file was open: %v", err)
	}
	s.InheritMetrics(file())
	if err := s.Listen(); err == nil || s.Addr() != nil {
		t.Errorf("Listen on %v: %v", s.Addr(), err)
	}
	if _, err := s.MetricsFile(); err == nil {
		t.Error("the metrics address has a socket")
	}
	if err := s.Listen(); err != nil { // no file is used twice
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
