package healthlistener

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimits waits and writes for exactly as long as a client may, and a bit
// longer.
func TestLimits(t *testing.T) {
	request := func(bytes int) string {
		const text = "GET / HTTP/1.1\r\nHost: a\r\nX: "
		return text + strings.Repeat("x", bytes-len(text)-4) + "\r\n\r\n"
	}
	type step struct {
		sleep time.Duration
		send  string
	}
	half := request(100)[:50]
	rest := request(100)[50:]
	for _, tt := range []struct {
		name  string
		stop  bool // the listener stops before the steps
		steps []step
		want  string // status; "": the connection is closed without an answer
	}{
		{"idle", false, []step{{time.Minute - 1, request(100)}}, "200"},
		{"idle_late", false, []step{{time.Minute + lateRead + 1, request(100)}}, ""},
		{"request", false, []step{{0, half}, {5*time.Second - 1, rest}}, "200"},
		{"request_late", false, []step{{0, half}, {5*time.Second + 1, rest}}, ""},
		{"idle_again", false, []step{{time.Minute - 1, request(100)}, {time.Minute - 1, request(100)}}, "200"},
		{"large", false, []step{{0, request(8 << 10)}}, "200"},
		{"too_large", false, []step{{0, request(8<<10 + 1)}}, "431"},
		{"large_again", false, []step{{0, request(8 << 10)}, {0, request(8 << 10)}}, "200"},
		{"stopped", true, []step{{time.Second - 1, request(100)}}, "200"},
		{"stopped_late", true, []step{{time.Second + lateRead + 1, request(100)}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				l, err := New(w.config("127.0.0.1:0"))
				if err != nil {
					t.Fatal(err)
				}
				client, server := net.Pipe()
				c := l.newConn(server)
				c.wait()
				done := make(chan struct{})
				go func() {
					l.serve(c)
					server.Close()
					close(done)
				}()
				if tt.stop {
					synctest.Wait()
					c.hurry()
				}
				answers := make(chan string, 1)
				go func() {
					b, _ := io.ReadAll(client)
					answers <- string(b)
				}()
				for _, s := range tt.steps {
					time.Sleep(s.sleep)
					_, _ = io.WriteString(client, s.send) // fails if the connection is closed
					synctest.Wait()
				}
				client.Close()
				<-done
				got := <-answers
				n := strings.Count(got, "HTTP/1.1 ")
				if tt.want == "" && got != "" || tt.want != "" && (n != len(tt.steps) && tt.name != "request" || !strings.HasPrefix(got, "HTTP/1.1 "+tt.want+" ")) {
					t.Errorf("got %q, want status %q", got, tt.want)
				}
			})
		})
	}
}

func TestDefaults(t *testing.T) {
	for _, set := range []bool{false, true} {
		cfg := Config{Name: "a", Address: "127.0.0.1:0", State: func() (string, bool) { return "LIVE", true }}
		want := Config{Mode: 0o600, HeaderPrefix: "x-proxy"}
		if set {
			cfg.Mode, cfg.HeaderPrefix = 0o640, "x-own"
			want = cfg
		}
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if l.cfg.Mode != want.Mode || l.cfg.HeaderPrefix != want.HeaderPrefix || l.cfg.Logger == nil {
			t.Errorf("mode %#o, prefix %q, want %#o and %q", l.cfg.Mode, l.cfg.HeaderPrefix, want.Mode, want.HeaderPrefix)
		}
	}
}

// TestInheritTwice: the listener owns each socket that it gets, and uses the last.
func TestInheritTwice(t *testing.T) {
	file := func() *os.File {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	l, err := New(newWorld().config("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := file(), file()
	l.Inherit(first)
	l.Inherit(second)
	if err := first.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the first socket is still open: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("the second socket: %v", err)
	}
}

// TestStoppedBeforeServed: a connection that was accepted just before the stop or the
// pause closes as soon as an open one.
func TestStoppedBeforeServed(t *testing.T) {
	for name, leave := range map[string]func(*Listener){"stop": (*Listener).Stop, "pause": (*Listener).Pause} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := New(newWorld().config("127.0.0.1:0"))
				if err != nil {
					t.Fatal(err)
				}
				leave(l)
				client, server := net.Pipe()
				defer client.Close()
				began := time.Now()
				l.serve(l.newConn(server))
				if got := time.Since(began); got > partingTime+lateRead {
					t.Errorf("closed after %v", got)
				}
			})
		})
	}
}

// TestRoomIsMadeOnce: a connection that was closed to make room is not closed again in
// place of the next one.
func TestRoomIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(newWorld().config("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		var all []*conn
		for range 3 {
			client, server := net.Pipe()
			defer client.Close()
			c := l.newConn(server)
			c.wait()
			l.open[c] = struct{}{} // and its goroutine is slow
			all = append(all, c)
		}
		for i := range all {
			if !l.makeRoom() || all[i].SetDeadline(time.Time{}) == nil {
				t.Errorf("connection %d is still open", i)
			}
		}
		if l.makeRoom() {
			t.Error("there was nothing left to close")
		}
	})
}

// TestClientsThatDoNotRead: a client that does not read its answer delays the end of a
// listener by the time for a shutdown and no more.
func TestClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, err := New(w.config("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		client, server := net.Pipe()
		defer client.Close()
		l.admit(server)
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		l.Stop()
		l.wait()
		if got := time.Since(began); got != shutdownTime || w.active.Value() != 0 {
			t.Errorf("after %v %d connections are open, want 0 after %v", got, w.active.Value(), shutdownTime)
		}
	})
}
