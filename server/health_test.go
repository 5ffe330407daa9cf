package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
)

// check requests a health check over a new connection.
func check(t *testing.T, addr string) (*http.Response, string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://" + addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestHealthListener checks that the listener follows the health switch and is
// drained like inbound listeners.
func TestHealthListener(t *testing.T) {
	dir := t.TempDir()
	cfg := fromYAML(t, dir, `
node: {cluster: edge}
header_prefix: x-test
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
health_listeners:
- address: {socket_address: {address: 127.0.0.1, port_value: 0}}
- {name: local, address: {pipe: {path: $DIR/h.sock}}}
`)
	cfg.Lifecycle = lifecycle.Config{DrainTime: time.Hour, Strategy: lifecycle.Immediate}
	r := start(t, cfg)
	addr := r.HealthListeners()[0].Addr().String()
	if got, want := r.get(t, "/listeners"), fmt.Sprintf("health::%s\nlocal::%s/h.sock\n", addr, dir); got != want || strings.HasSuffix(addr, ":0") {
		t.Errorf("/listeners shows %q, want %q", got, want)
	}
	resp, body := check(t, addr)
	if resp.StatusCode != 200 || body != "LIVE\n" || resp.Header.Get("X-Test-Upstream-Healthchecked-Cluster") != "edge" {
		t.Errorf("%d, %q, %v", resp.StatusCode, body, resp.Header)
	}
	r.post(t, "/healthcheck/fail")
	resp, body = check(t, addr)
	if resp.StatusCode != 503 || body != "DRAINING\n" || !resp.Close || resp.Header.Get("X-Test-Immediate-Health-Check-Fail") != "true" {
		t.Errorf("after fail: %d, %q, %v", resp.StatusCode, body, resp.Header)
	}
	r.post(t, "/healthcheck/ok")
	if resp, body = check(t, addr); resp.StatusCode != 200 || body != "LIVE\n" || resp.Close {
		t.Errorf("after ok: %d, %q", resp.StatusCode, body)
	}
	// A graceful drain keeps the answer and closes connections.
	r.post(t, "/drain_listeners?graceful&inboundonly")
	if resp, body = check(t, addr); resp.StatusCode != 200 || body != "LIVE\n" || !resp.Close {
		t.Errorf("while draining: %d, %q, closing %t", resp.StatusCode, body, resp.Close)
	}
	r.post(t, "/drain_listeners?inboundonly")
	for network, address := range map[string]string{"tcp": addr, "unix": filepath.Join(dir, "h.sock")} {
		if c, err := net.Dial(network, address); err == nil {
			c.Close()
			t.Errorf("%s is accepted from after the drain", address)
		}
	}
	if got := r.get(t, "/stats?filter=listener_stopped|health_check"); got != "http.health.health_check.failed: 1\nhttp.health.health_check.ok: 3\n"+
		"http.health.health_check.request_total: 4\nhttp.local.health_check.failed: 0\nhttp.local.health_check.ok: 0\nhttp.local.health_check.request_total: 0\n"+
		"listener_manager.listener_stopped: 2\n" {
		t.Errorf("%q", got)
	}
	if got := r.get(t, "/ready"); got != "LIVE\n" {
		t.Errorf("/ready says %q", got)
	}
}

// TestHealthListenerTaken checks that a port in use by another program prevents the
// start and leaks nothing.
func TestHealthListenerTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s, err := server.New(withLoggers(t, server.Config{Admin: anyPort(), HealthListeners: []server.HealthListener{{Address: "127.0.0.1:0"}, {Name: "b", Address: ln.Addr().String()}}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "another program uses it") {
		t.Errorf("%v", err)
	}
	if c, err := net.Dial("tcp", s.HealthListeners()[0].Addr().String()); err == nil {
		c.Close()
		t.Error("the other listener is still open")
	}
}

// TestHealthListenerIsHandedOver sends health checks continuously during hot
// restarts. None of them is refused.
func TestHealthListenerIsHandedOver(t *testing.T) {
	for _, withStatsD := range []bool{true, false} {
		l := newLine(t)
		config := func(epoch uint32) server.Config {
			cfg := l.config(epoch, 0)
			if !withStatsD {
				cfg.StatsD = nil
			}
			cfg.HealthListeners = []server.HealthListener{{Address: "127.0.0.1:0"}, {Name: "local", Address: "unix:" + filepath.Join(l.dir, "h.sock")}}
			return cfg
		}
		first := start(t, config(0))
		addr := first.HealthListeners()[0].Addr().String()
		var checks sync.WaitGroup
		var passed atomic.Int64
		stop := make(chan struct{})
		for network, address := range map[string]string{"tcp": addr, "unix": filepath.Join(l.dir, "h.sock")} {
			checks.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					c, err := net.Dial(network, address)
					if err != nil {
						t.Errorf("a check is refused: %v", err)
						return
					}
					fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
					answer, err := io.ReadAll(c)
					c.Close()
					if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
						t.Errorf("a check gets %q, %v", answer, err)
						return
					}
					passed.Add(1)
				}
			})
		}
		for epoch := range uint32(2) {
			n := passed.Load()
			waittest.Until(t, "checks pass", func() bool { return passed.Load() > n+50 })
			before := first
			first = start(t, config(epoch+1))
			if got := first.HealthListeners()[0].Addr().String(); got != addr {
				t.Errorf("epoch %d listens on %s, not %s", epoch+1, got, addr)
			}
			if err := before.stop(); err != nil {
				t.Error(err)
			}
		}
		n := passed.Load()
		waittest.Until(t, "checks pass", func() bool { return passed.Load() > n+50 })
		close(stop)
		checks.Wait()
		counted := func() int64 {
			st := first.Store()
			return int64(st.Root().Counter("http.health.health_check.ok").Value() + st.Root().Counter("http.local.health_check.ok").Value())
		}
		waittest.Until(t, fmt.Sprint("all checks are counted: ", counted(), " of ", passed.Load()), func() bool { return counted() == passed.Load() })
	}
}
