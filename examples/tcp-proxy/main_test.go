package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
)

// echo starts a host that sends everything back, up to the end.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// TestProxy sends connections through the proxy and reads its stats.
func TestProxy(t *testing.T) {
	srv, err := newProxy("127.0.0.1:0", "127.0.0.1:0", echo(t), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	at := srv.Listeners().List()[0].Addresses[0].String()
	dial := func() *net.TCPConn {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*net.TCPConn)
	}
	sent := strings.Repeat("hello ", 100_000)
	for range 4 {
		c := dial()
		go func() {
			_, _ = io.WriteString(c, sent)
			_ = c.CloseWrite()
		}()
		if got, err := io.ReadAll(c); string(got) != sent || err != nil {
			t.Errorf("%d of %d bytes came back, %v", len(got), len(sent), err)
		}
		c.Close()
	}
	if got := string(srv.Admin().Request("GET", "/stats?filter=^cluster.backend.upstream_cx_total", nil).Body); got != "cluster.backend.upstream_cx_total: 4\n" {
		t.Errorf("stats: %q", got)
	}
	hosts := string(srv.Admin().Request("GET", "/clusters", nil).Body)
	if n := strings.Count(hosts, "::cx_total::2\n"); n != 2 {
		t.Errorf("%d hosts had two connections, want 2:\n%s", n, hosts)
	}

	idle := dial() // open until the end
	defer idle.Close()
	if _, err := idle.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(idle, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, way := range []string{"rx", "tx"} {
		name := "tcp.backend.downstream_cx_" + way + "_bytes_total"
		if got, want := srv.Store().Root().Counter(name).Total(), uint64(4*len(sent)+1); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if got := string(srv.Admin().Request("GET", "/stats?filter=^listener.*downstream_cx_length_ms", nil).Body); !strings.Contains(got, "_ms: P0(") {
		t.Errorf("length of connections: %q", got)
	}
	if n, err := idle.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end", n)
	}
}

func TestWrongHosts(t *testing.T) {
	if _, err := newProxy("127.0.0.1:0", "127.0.0.1:0", "nowhere"); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("error %v", err)
	}
}

// TestShort keeps the example at what a reader grasps at once.
func TestShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			lines++
		}
	}
	if lines >= 60 {
		t.Errorf("the example has %d lines of code, want fewer than 60", lines)
	}
}

// withDeadHost runs a proxy over the hosts and another one, which stops before the first
// connection. It returns the server and the address of its listener.
func withDeadHost(t *testing.T, hosts ...string) (srv *server.Server, at string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if srv, err = newProxy("127.0.0.1:0", "127.0.0.1:0", append(hosts, l.Addr().String())...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-srv.Initialized()
	return srv, srv.Listeners().List()[0].Addresses[0].String()
}

// TestHostGoesDown stops a host while the proxy runs: the other host serves all connections.
func TestHostGoesDown(t *testing.T) {
	srv, at := withDeadHost(t, echo(t))
	for i := range 4 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
			t.Errorf("connection %d got %q, %v", i, got, err)
		}
		c.Close()
	}
	if got := string(srv.Admin().Request("GET", "/stats?filter=upstream_cx_connect_fail$&usedonly", nil).Body); !strings.HasPrefix(got, "cluster.backend.upstream_cx_connect_fail: ") {
		t.Errorf("stats: %q", got)
	}
}

// TestNoHostAccepts stops the only host: the connection of a client ends, and is counted.
func TestNoHostAccepts(t *testing.T) {
	srv, at := withDeadHost(t)
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	const name = "cluster.backend.upstream_cx_connect_attempts_exceeded"
	if got := string(srv.Admin().Request("GET", "/stats?filter=^"+name, nil).Body); got != name+": 1\n" {
		t.Errorf("stats: %q", got)
	}
}
