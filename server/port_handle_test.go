package server_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestListenerHandle checks that a panic of Handle ends its own connection only, and
// that the server closes the open connections at its end.
func TestListenerHandle(t *testing.T) {
	ended := make(chan error, 1)
	panics := guardtest.New(t)
	r := start(t, server.Config{Admin: anyPort(), OnPanic: func(where string, v any) { panics.Guard().Report(where, v) }, Loggers: quiet(t), Listeners: []server.Listener{{Name: "tcp", Address: "127.0.0.1:0", Handle: func(_ context.Context, c net.Conn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		if first[0] == '!' {
			panic(guardtest.Canary)
		}
		_, _ = c.Write(first)
		_, err := c.Read(first) // until the server closes it
		ended <- err
	}}}})
	at := r.Listeners().List()[0].Addresses[0].String()
	for _, text := range []string{"!", "a"} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(io.LimitReader(c, 1))
		if want := strings.TrimPrefix(text, "!"); string(b) != want {
			t.Errorf("%q: got %q, %v", text, b, err)
		}
	}
	panics.Caught("connection of a listener")
	if got := r.get(t, "/stats?filter=^server.recovered_panics$"); got != "server.recovered_panics: 1\n" {
		t.Errorf("got %q", got)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the connection was not closed")
	}
}

func TestListenersNeedOneFunction(t *testing.T) {
	both := server.Listener{Name: "l", Address: "127.0.0.1:0", Handle: func(context.Context, net.Conn) {}, Serve: func(context.Context, net.Listener) error { return nil }}
	for _, l := range []server.Listener{{Name: "l", Address: "127.0.0.1:0"}, both} {
		s, err := server.New(server.Config{Loggers: quiet(t), Listeners: []server.Listener{l}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err == nil || err.Error() != `server: listener "l" needs either Serve or Handle` {
			t.Errorf("error %v", err)
		}
	}
}
