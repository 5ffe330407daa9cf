package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// eventSource is a client of the stream that reads raw bytes.
type eventSource struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	head map[string]string
}

// listen requests the stream and reads the response headers.
func listen(t *testing.T, r *running, path, extra string) *eventSource {
	t.Helper()
	conn, err := net.Dial("tcp", r.Admin().Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\naccept-encoding: gzip\r\n%s\r\n", path, extra)
	e := &eventSource{t, conn, bufio.NewReader(conn), make(map[string]string)}
	e.head["status"] = strings.TrimSuffix(e.line(), "\r\n")
	for l := e.line(); l != "\r\n"; l = e.line() {
		name, value, _ := strings.Cut(strings.TrimSuffix(l, "\r\n"), ": ")
		e.head[name] = value
	}
	return e
}

func (e *eventSource) line() string {
	e.t.Helper()
	l, err := e.in.ReadString('\n')
	if err != nil {
		e.t.Fatalf("after %q: %v", l, err)
	}
	return l
}

// event reads up to the next empty line.
func (e *eventSource) event() (text string) {
	e.t.Helper()
	for l := e.line(); l != "\n"; l = e.line() {
		text += l
	}
	return text
}

func streaming(t *testing.T, cfg server.CircuitStream) *running {
	return start(t, server.Config{
		Admin: admin.Config{Address: "127.0.0.1:0", ReadOrigins: []string{"https://board.example"}},
		Flush: flush.Config{Interval: time.Minute}, CircuitStream: &cfg,
	})
}

func TestCircuitStream(t *testing.T) {
	for _, path := range []string{"/circuit_event_stream", "/hystrix_event_stream"} {
		r := streaming(t, server.CircuitStream{MaxPending: func(string) uint64 { return 5 }})
		e := listen(t, r, path, "last-event-id: 12\r\n")
		for name, want := range map[string]string{
			"status": "HTTP/1.1 200 OK", "content-type": "text/event-stream", "cache-control": "no-cache", "connection": "close",
			"access-control-allow-origin":  "*",
			"access-control-allow-headers": "Accept, Cache-Control, X-Requested-With, Last-Event-ID",
			"x-content-type-options":       "nosniff", "transfer-encoding": "", "content-encoding": "", "content-length": "",
		} {
			if got := e.head[name]; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		c := r.Store().Scope("cluster.a").Counter("upstream_rq_2xx")
		r.Store().Scope("cluster.a").GaugeWithMode("membership_total", store.NeverImport).Set(2)
		for _, want := range []string{`"requestCount": 0,`, `"requestCount": 3,`} {
			r.Flusher().FlushNow()
			event := e.event()
			if !strings.HasPrefix(event, `data: {"type": "HystrixCommand", "name": "a", "group": "NA", `) || !strings.Contains(event, want) {
				t.Errorf("%q has no %s", event, want)
			}
			if event := e.event(); !strings.HasPrefix(event, `data: {"currentPoolSize": 0, `) ||
				!strings.Contains(event, `"propertyValue_queueSizeRejectionThreshold": 5,`) || !strings.Contains(event, `InMilliseconds": 60000, "name": "a"`) {
				t.Errorf("second event %q", event)
			}
			if event := e.event(); event != ":\n" {
				t.Errorf("third event %q", event)
			}
			c.Add(3)
		}
	}
}

func TestCircuitStreamEndsAtShutdown(t *testing.T) {
	r := streaming(t, server.CircuitStream{})
	e := listen(t, r, "/circuit_event_stream", "")
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, e.in)
		close(ended)
	}()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestCircuitStreamRefuses(t *testing.T) {
	r := streaming(t, server.CircuitStream{Clients: 2})
	for _, id := range []string{"x", "-1", strings.Repeat("1", 65)} {
		if e := listen(t, r, "/circuit_event_stream", "last-event-id: "+id+"\r\n"); e.head["status"] != "HTTP/1.1 400 Bad Request" {
			t.Errorf("Last-Event-ID %s: %s", id, e.head["status"])
		}
	}
	listen(t, r, "/circuit_event_stream", "last-event-id: "+strings.Repeat("1", 64)+"\r\n")
	second := listen(t, r, "/circuit_event_stream", "")
	if e := listen(t, r, "/circuit_event_stream", ""); e.head["status"] != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("third client: %s", e.head["status"])
	}
	second.conn.Close()
	waittest.Until(t, "the place of the second client is free", func() bool {
		r.Flusher().FlushNow() // a client that is gone shows when it is written to
		return listen(t, r, "/circuit_event_stream", "").head["status"] == "HTTP/1.1 200 OK"
	})
}

func TestCircuitStreamOrigins(t *testing.T) {
	for _, tt := range []struct {
		any    bool
		origin string
		want   string
	}{
		{false, "https://board.example", "*"},
		{false, "https://evil.example", ""},
		{false, "null", ""},
		{true, "https://evil.example", "*"},
	} {
		r := streaming(t, server.CircuitStream{AnyOrigin: tt.any})
		e := listen(t, r, "/circuit_event_stream", "origin: "+tt.origin+"\r\n")
		if got := e.head["access-control-allow-origin"]; got != tt.want {
			t.Errorf("any %t, origin %s: access-control-allow-origin %q, want %q", tt.any, tt.origin, got, tt.want)
		}
		if got := e.head["access-control-allow-headers"] != ""; got != (tt.want != "") {
			t.Errorf("any %t, origin %s: access-control-allow-headers is there: %t", tt.any, tt.origin, got)
		}
	}
}

func TestCircuitStreamNeedsItsSink(t *testing.T) {
	const port = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstatsd: {listeners: []}\n"
	for _, tt := range []struct {
		sinks  string
		exists bool
	}{
		{"", false},
		{"stats_sinks: [{name: proxy.stat_sinks.hystrix}]", true},
		{"stats_sinks: [{name: circuit_stream, typed_config: {'@type': x, num_buckets: 4}}]", true},
	} {
		c, err := bootstrap.Parse("test.yaml", []byte(port+tt.sinks), bootstrap.Options{Product: "proxy"})
		if err != nil {
			t.Fatalf("%s: %v", tt.sinks, err)
		}
		cfg, err := c.Server(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, cfg)
		status := r.Admin().Request("HEAD", "/circuit_event_stream", nil).Status
		if tt.exists != (status == 200) || !tt.exists && status != 404 {
			t.Errorf("%s: status %d", tt.sinks, status)
		}
		if tt.exists != strings.Contains(r.get(t, "/help"), "/circuit_event_stream: ") {
			t.Errorf("%s: /help has it: %v", tt.sinks, !tt.exists)
		}
		if !tt.exists {
			for _, path := range []string{"/circuit_event_stream", "/hystrix_event_stream"} {
				if got := r.get(t, path); !strings.Contains(got, "{name: circuit_stream} in stats_sinks turns it on") {
					t.Errorf("%s: what would turn it on is not told: %q", path, got)
				}
			}
		}
	}
}
