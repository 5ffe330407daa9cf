package server

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// once is a listener with one connection.
type once struct{ conn chan net.Conn }

func (l *once) Addr() net.Addr  { return l }
func (l *once) Network() string { return "pipe" }
func (l *once) String() string  { return "pipe" }
func (l *once) Close() error    { return nil }
func (l *once) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// halfPipe is a pipe that cannot close one direction.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// TestSlowClientsAreLetGo lets clients be slow in every way there is, and looks when
// their connections end.
func TestSlowClientsAreLetGo(t *testing.T) {
	const whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	drip := func(text string) func(net.Conn) { // then one byte each second, for ever
		return func(c net.Conn) {
			_, err := io.WriteString(c, text)
			for err == nil {
				time.Sleep(time.Second)
				_, err = io.WriteString(c, "x")
			}
		}
	}
	s, _ := made(t, Config{})
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	own := Listener{ReadTimeout: 2 * time.Second, WriteTimeout: 3 * time.Second, IdleTimeout: 4 * time.Second}
	long := Listener{ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	for _, tt := range []struct {
		name  string
		cfg   Listener
		does  func(c net.Conn)
		reads bool // takes answers
		want  time.Duration
	}{
		{"says nothing", Listener{}, func(net.Conn) {}, true, 10 * time.Second},
		{"header for ever", long, drip("GET / HTTP/1.1\r\nHost: x\r\nX: "), true, 10 * time.Second},
		{"body for ever", long, drip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"), true, time.Minute},
		{"stays", Listener{}, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, true, 2 * time.Minute},
		{"takes nothing", long, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, false, time.Minute},
		{"says nothing, as set", own, func(net.Conn) {}, true, 2 * time.Second},
		{"stays, as set", own, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, true, 4 * time.Second},
		{"takes nothing, as set", own, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, false, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				tt.cfg.Name = "web"
				tt.cfg.HTTP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
				h := s.newHTTPPort(&port{cfg: tt.cfg, tcp: bound.(*net.TCPListener), log: slog.New(slog.DiscardHandler)})
				hs := h.newServer()
				ended := make(chan struct{})
				states := hs.ConnState
				hs.ConnState = func(c net.Conn, state http.ConnState) {
					states(c, state)
					if state == http.StateClosed {
						close(ended)
					}
				}
				here, there := net.Pipe()
				var client sync.WaitGroup
				client.Go(func() { tt.does(here) })
				if tt.reads {
					client.Go(func() { _, _ = io.Copy(io.Discard, here) })
				}
				watch := time.AfterFunc(time.Hour, func() { _ = here.Close() })
				l := &once{make(chan net.Conn, 1)}
				l.conn <- &httpConn{Conn: halfPipe{there}, port: h, opened: begin}
				client.Go(func() { _ = hs.Serve(l) })
				<-ended
				close(l.conn)
				watch.Stop()
				if took := time.Since(begin); took != tt.want {
					t.Errorf("let go after %v, want %v", took, tt.want)
				}
				_ = here.Close()
				client.Wait()
			})
		})
	}
}
