package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
)

// rude is a backend that reads requests and says what it wants.
type rude struct {
	net.Listener
	mu   sync.Mutex
	says func(c net.Conn)
}

func newRude(t *testing.T) *rude {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rude{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					r.mu.Lock()
					says := r.says
					r.mu.Unlock()
					if says == nil {
						return
					}
					says(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return r
}

func (r *rude) does(says func(net.Conn)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says = says
}

// TestNothingIsHeldAfterFailures lets a host fail in every way there is and looks
// whether all that a request takes is given back.
func TestNothingIsHeldAfterFailures(t *testing.T) {
	b := newRude(t)
	ends := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}
	stays := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = c.Write([]byte(text)) }
	}
	r := start(t, static("circuit_breakers: {thresholds: [{max_connections: 1, max_requests: 1, max_retries: 1, max_pending_requests: 1}]}", &backend{listener: b}),
		web(Route{Timeout: Duration(time.Minute), Retries: 1}),
		Route{Name: "hasty", Cluster: "backend", Timeout: Duration(time.Minute), PerTryTimeout: Duration(50 * time.Millisecond), Retries: 1})
	for _, tt := range []struct {
		name string
		says func(net.Conn)
		want int
	}{
		{"closes", nil, 503},
		{"resets", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, 503},
		{"part of a header", ends("HTTP/1.1 200 OK\r\nContent-Le"), 503},
		{"part of a body", ends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), 503},
		{"part of a chunk", ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"), 503},
		{"no chunk", stays("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"), 502},
		{"no HTTP", stays("hello\r\n\r\n"), 502},
		{"long header", stays("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"), 502},
		{"switches", stays("HTTP/1.1 101 Switching Protocols\r\n\r\n"), 502},
		{"hints for ever", stays(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000)), 502},
		{"says nothing", stays(""), 504},
		{"500", stays("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), 500},
		{"too much", stays("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200},
		{"well", stays("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200},
	} {
		b.does(tt.says)
		listener := "web"
		if tt.want == 504 {
			listener = "hasty"
		}
		resp, err := r.client.Get("http://" + r.address(listener))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: answer %d, want %d", tt.name, resp.StatusCode, tt.want)
		}
		eventually(t, tt.name+": nothing is in flight", func() bool { return r.stat("http."+listener+".downstream_rq_active") == 0 })
		r.want(map[string]int{"upstream_rq_active": 0, "upstream_rq_pending_active": 0})
		k := r.cluster().Breakers(upstream.DefaultPriority)
		held := fmt.Sprint(k.Pending.Current(), k.Requests.Current(), k.Retries.Current())
		if kept := k.Connections.Current(); held != "0 0 0" || kept > 1 || int(kept) != r.stat("cluster.backend.upstream_cx_active") {
			t.Errorf("%s: pending, requests and retries held: %s; %d connections, %d shown", tt.name, held, kept, r.stat("cluster.backend.upstream_cx_active"))
		}
	}
	total := r.stat("cluster.backend.upstream_rq_total")
	if retried := r.stat("cluster.backend.upstream_rq_retry"); total != 14+retried {
		t.Errorf("%d tries, %d of them retries, of 14 requests", total, retried)
	}
	r.stop()
	if n := r.stat("cluster.backend.upstream_cx_active"); n != 0 {
		t.Errorf("%d connections after the end", n)
	}
}

// TestHeadersThatConnectionNamesStay sends them both ways: each is about one
// connection only.
func TestHeadersThatConnectionNamesStay(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "X-Back, close")
		w.Header().Set("X-Back", "1")
		fmt.Fprint(w, "there: ", r.Header.Get("X-There"))
	})
	r := start(t, static("", b), web(Route{}))
	c, err := net.Dial("tcp", r.address("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close, X-There, Content-Length\r\nX-There: 1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c) // ends because the client wants to close
	if got := string(all); err != nil || !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, "X-Back") || !strings.HasSuffix(got, "there: ") {
		t.Errorf("%v, answer %q", err, got)
	}
}
