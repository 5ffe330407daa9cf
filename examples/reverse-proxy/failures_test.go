package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
)

// rude is a backend that reads requests and writes arbitrary bytes.
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

// TestNothingIsHeldAfterFailures lets a host fail in every way, and checks that all
// resources of a request are released.
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
	const brokenOff = 0                                                        // answers are streamed, so the status of these has left already
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // repeats nothing by itself
	for _, tt := range []struct {
		name string
		says func(net.Conn)
		want int
	}{
		{"closes", nil, 503},
		{"resets", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, 503},
		{"part of a header", ends("HTTP/1.1 200 OK\r\nContent-Le"), 503},
		{"part of a body", ends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), brokenOff},
		{"part of a chunk", ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"), brokenOff},
		{"no chunk", stays("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"), brokenOff},
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
		status := brokenOff
		resp, err := client.Get("http://" + r.address(listener))
		if err == nil {
			if _, err := io.ReadAll(resp.Body); err == nil {
				status = resp.StatusCode
			}
			_ = resp.Body.Close()
		}
		if status != tt.want {
			t.Errorf("%s: answer %d, want %d (%v)", tt.name, status, tt.want, err)
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

// TestHeadersThatConnectionNamesStay sends hop-by-hop headers in both directions, which
// must not be forwarded.
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

// TestWhatWasSentIsNotDoneTwice lets tries of each method fail in each way, and counts
// the requests that reach the host.
func TestWhatWasSentIsNotDoneTwice(t *testing.T) {
	var asked atomic.Int64
	b := newRude(t)
	r := start(t, static("", &backend{listener: b}), web(Route{Timeout: Duration(time.Minute), Retries: 2}),
		Route{Name: "hasty", Cluster: "backend", Timeout: Duration(time.Minute), PerTryTimeout: Duration(50 * time.Millisecond), Retries: 2})
	says := func(text string, end bool) func(net.Conn) {
		return func(c net.Conn) {
			asked.Add(1)
			_, _ = c.Write([]byte(text))
			if end {
				_ = c.Close()
			}
		}
	}
	for _, tt := range []struct {
		name, listener string
		says           func(net.Conn)
		want, status   int // tries of a method that is not idempotent, and its answer
		others         int // those of other methods; their answer is the same
	}{
		{"reset", "web", says("", true), 1, 503, 3},
		{"part of an answer", "web", says("HTTP/1.1 200 OK\r\nContent-Le", true), 1, 503, 3},
		{"timeout of a try", "hasty", says("", false), 1, 504, 3},
		{"status", "web", says("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", false), 3, 503, 3},
		{"well", "web", says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), 1, 200, 1},
	} {
		b.does(tt.says)
		for _, method := range []string{"POST", "PATCH", "ODD", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"} {
			want := tt.others
			if method == "POST" || method == "PATCH" || method == "ODD" {
				want = tt.want
			}
			before := countsOf(r)
			asked.Store(0)
			if code := r.ask(method, tt.listener); code != tt.status {
				t.Errorf("%s, %s: answer %d, want %d", tt.name, method, code, tt.status)
			}
			if n := int(asked.Load()); n != want {
				t.Errorf("%s, %s: asked %d times, want %d", tt.name, method, n, want)
			}
			limit := 0
			if want == 3 {
				limit = 1
			}
			got, is := countsOf(r), [...]int{want, want - 1, limit, 1}
			for i, name := range countNames() {
				if n := got[i] - before[i]; n != is[i] {
					t.Errorf("%s, %s: %s rose by %d, want %d", tt.name, method, name, n, is[i])
				}
			}
		}
	}

	// Nothing is sent to a host that cannot be reached.
	_ = b.Close()
	r.server.Clusters().CloseConnections()
	before := countsOf(r)
	if code := r.ask("POST", "web"); code != 503 {
		t.Errorf("answer %d of a host that is gone, want 503", code)
	}
	got, is := countsOf(r), [...]int{0, 2, 1, 1}
	for i, name := range countNames() {
		if n := got[i] - before[i]; n != is[i] {
			t.Errorf("no connection: %s rose by %d, want %d", name, n, is[i])
		}
	}
}

func countNames() [4]string {
	return [...]string{"upstream_rq_total", "upstream_rq_retry", "upstream_rq_retry_limit_exceeded", "upstream_rq_completed"}
}

func countsOf(r *running) (n [4]int) {
	for i, name := range countNames() {
		n[i] = r.stat("cluster.backend." + name)
	}
	return n
}

// ask sends a request to a listener and returns the status of the answer.
func (r *running) ask(method, listener string) int {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.address(listener)+"/x", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
