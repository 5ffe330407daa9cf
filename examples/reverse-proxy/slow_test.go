package main

import (
	"io"
	"log"
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

// TestSlowClientsAreLetGo lets clients be slow in every way there is, and looks when
// their connections end.
func TestSlowClientsAreLetGo(t *testing.T) {
	const whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	drip := func(text string) func(net.Conn) { // one byte each second, for ever
		return func(c net.Conn) {
			for i := 0; ; i++ {
				b := byte('x')
				if i < len(text) {
					b = text[i]
				}
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
	}
	own := Route{ReadTimeout: Duration(2 * time.Second), WriteTimeout: Duration(3 * time.Second), IdleTimeout: Duration(4 * time.Second)}
	for _, tt := range []struct {
		name  string
		route Route
		does  func(c net.Conn)
		reads bool // takes answers
		want  time.Duration
	}{
		{"says nothing", Route{}, func(net.Conn) {}, true, time.Minute},
		{"header for ever", Route{}, drip("GET / HTTP/1.1\r\nHost: x\r\nX: "), true, time.Minute},
		{"body for ever", Route{}, drip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"), true, time.Minute},
		{"stays", Route{}, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, true, time.Minute},
		{"takes nothing", Route{}, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, false, time.Minute},
		{"says nothing, as set", own, func(net.Conn) {}, true, 2 * time.Second},
		{"stays, as set", own, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, true, 4 * time.Second},
		{"takes nothing, as set", own, func(c net.Conn) { _, _ = io.WriteString(c, whole) }, false, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				r := &httpRoute{Route: tt.route}
				s := r.newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
				s.ErrorLog = log.New(io.Discard, "", 0)
				ended := make(chan struct{})
				s.ConnState = func(_ net.Conn, state http.ConnState) {
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
				l.conn <- there
				client.Go(func() { _ = s.Serve(l) })
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

// TestAnswersMeetRequests: a host may answer while its client still sends, and gets
// what the client sends later.
func TestAnswersMeetRequests(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		word := make([]byte, 5)
		for range 2 {
			if _, err := io.ReadFull(r.Body, word); err != nil {
				t.Error(err)
				return
			}
			_, _ = w.Write(word)
			_ = control.Flush()
		}
	})
	r := start(t, static("", b), web(Route{}))
	body, words := io.Pipe()
	defer words.Close()
	go func() { _, _ = io.WriteString(words, "hello") }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address("web"), body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"hello", "world"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		go func() { _, _ = io.WriteString(words, "world") }() // the second one fails, at the end of the test
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q follows, %v", rest, err)
	}
}
