package httptransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// send returns the status of the answer to r, or of the error.
func (r *rig) send(req *http.Request) int {
	r.t.Helper()
	resp, err := r.RoundTrip(req)
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Status
	} else if err != nil {
		r.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestAnswersAtTheLimits has answers with as many headers, interim answers and bytes as
// are allowed, and one more.
func TestAnswersAtTheLimits(t *testing.T) {
	const end = "Content-Length: 0\r\n\r\n"
	line := func(size int) string { return "A: " + strings.Repeat("x", size-len("A: \r\n")) + "\r\n" }
	interim := func(n int) string { return strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", n) }
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"100-headers":    {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 99) + end, 200},
		"101-headers":    {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 100) + end, 502},
		"60-KiB":         {"HTTP/1.1 200 OK\r\n" + line(60<<10-len(end)+2) + end, 200},
		"60-KiB-and-one": {"HTTP/1.1 200 OK\r\n" + line(60<<10-len(end)+3) + end, 502},
		"10-interim":     {interim(10) + "HTTP/1.1 200 OK\r\n" + end, 200},
		"11-interim":     {interim(11) + "HTTP/1.1 200 OK\r\n" + end, 502},
		"status-99":      {"HTTP/1.1 099 Low\r\n" + end, 502},
		"status-999":     {"HTTP/1.1 999 High\r\n" + end, 999},
	} {
		if got := newRig(t, "", scripted(t, tt.text)).send(request(t, "GET", "")); got != tt.want {
			t.Errorf("%s: status %d, want %d", name, got, tt.want)
		}
	}
}

func TestErrorsAsAnswers(t *testing.T) {
	cause := errors.New("cause")
	for status, err := range map[int]error{502: cause, 504: fmt.Errorf("outer: %w", &Error{504, cause})} {
		w := httptest.NewRecorder()
		HandleError(w, nil, err)
		if w.Code != status || w.Body.String() != http.StatusText(status)+"\n" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%v: %d %q %v", err, w.Code, w.Body, w.Header())
		}
		if !errors.Is(err, cause) {
			t.Errorf("%v hides its cause", err)
		}
	}
	if got := (&Error{504, cause}).Error(); got != "httptransport: cause" {
		t.Error(got)
	}
}

func TestIdempotentMethods(t *testing.T) {
	for method, want := range map[string]bool{"": true, "GET": true, "HEAD": true, "PUT": true, "DELETE": true, "OPTIONS": true, "TRACE": true, "POST": false, "PATCH": false, "get": false} {
		if got := idempotent(method); got != want {
			t.Errorf("%q: %t", method, got)
		}
	}
}

// TestErrorsAreJudged expects one reason for each error, and retries only for what
// another host may do better.
func TestErrorsAreJudged(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithTimeout(context.Background(), -1)
	defer cancelLate()
	wrapped := func(err error) error { return fmt.Errorf("read: %w", err) }
	reset := upstream.RequestEnd{RemoteReset: true, Status: 503}
	for name, tt := range map[string]*struct {
		err   error
		ctx   context.Context
		try   try
		body  *replay
		want  upstream.RequestEnd
		retry bool
	}{
		"client-gone":     {io.EOF, gone, try{}, nil, upstream.RequestEnd{LocalReset: true}, false},
		"client-broke":    {io.EOF, nil, try{}, brokenReplay(), upstream.RequestEnd{LocalReset: true}, false},
		"client-late":     {os.ErrDeadlineExceeded, late, try{}, nil, upstream.RequestEnd{Timeout: true, Status: 504}, false},
		"last-deadline":   {wrapped(os.ErrDeadlineExceeded), nil, try{last: true}, nil, upstream.RequestEnd{Timeout: true, Status: 504}, false},
		"of-a-try":        {os.ErrDeadlineExceeded, nil, try{}, nil, upstream.RequestEnd{PerTryTimeout: true, Status: 504}, true},
		"of-the-cluster":  {os.ErrDeadlineExceeded, nil, try{long: true}, nil, upstream.RequestEnd{LocalReset: true, Status: 408}, false},
		"end":             {io.EOF, nil, try{}, nil, reset, true},
		"end-in-the-half": {wrapped(io.ErrUnexpectedEOF), nil, try{}, nil, reset, true},
		"reset":           {wrapped(syscall.ECONNRESET), nil, try{}, nil, reset, true},
		"pipe":            {wrapped(syscall.EPIPE), nil, try{}, nil, reset, true},
		"cluster-no-late": {io.EOF, nil, try{long: true, last: true}, nil, reset, true},
		"not-http":        {errHeaderCount, nil, try{}, nil, upstream.RequestEnd{BadAnswer: true, Status: 502}, false},
	} {
		req := request(t, "GET", "")
		if tt.ctx != nil {
			req = req.WithContext(tt.ctx)
		}
		a := &tt.try
		a.x = &exchange{r: req, body: tt.body, cluster: r.m.Cluster("c").Current()}
		a.end.Status = 503
		if a.judge(tt.err); a.end != tt.want || a.retry != tt.retry {
			t.Errorf("%s: %+v, retry %t; want %+v, %t", name, a.end, a.retry, tt.want, tt.retry)
		}
	}
	r.check(map[string]int{"upstream_rq_max_duration_reached": 1})
}

func brokenReplay() *replay {
	b := new(replay)
	b.broken.Store(true)
	return b
}

// TestResetsAreRetried: a request to a host that closed the connection is repeated
// for idempotent methods only.
func TestResetsAreRetried(t *testing.T) {
	for method, want := range map[string]int{"GET": 2, "PUT": 2, "POST": 0} {
		r := newRig(t, "", scripted(t, ""))
		r.Retries = 2
		if status := r.send(request(t, method, "")); status != 503 {
			t.Errorf("%s: status %d", method, status)
		}
		r.check(map[string]int{"upstream_rq_retry": want, "upstream_rq_retry_limit_exceeded": want / 2, "upstream_rq_rx_reset": want + 1, "upstream_rq_active": 0})
	}
}

// TestConnectFailuresAreRetried for each method: nothing was sent.
func TestConnectFailuresAreRetried(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	r.Retries = 1
	if status := r.send(request(t, "POST", "x")); status != 503 {
		t.Errorf("status %d", status)
	}
	r.check(map[string]int{"upstream_rq_retry": 1, "upstream_cx_connect_fail": 2, "upstream_rq_pending_failure_eject": 2, "upstream_rq_pending_total": 2, "upstream_rq_pending_active": 0, "upstream_rq_pending_overflow": 0})
}

// TestRetriedAnswersKeepTheirConnection if the rest of the answer is short.
func TestRetriedAnswersKeepTheirConnection(t *testing.T) {
	for size, want := range map[int]int{0: 1, maxDiscard - 1: 1, maxDiscard: 2} {
		var asked atomic.Int32
		r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				w.WriteHeader(500)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			}
		}))
		r.Retries = 1
		if status := r.send(request(t, "GET", "")); status != 200 {
			t.Errorf("%d bytes: status %d", size, status)
		}
		r.check(map[string]int{"upstream_cx_total": want, "upstream_cx_active": 1, "upstream_rq_retry_success": 1})
		if n := r.m.Cluster("c").Current().Breakers(upstream.DefaultPriority).Retries.Current(); n != 0 {
			t.Errorf("%d bytes: %d retries are held by the circuit breaker", size, int64(n))
		}
	}
}

// TestAnswersThatEndTheConnection: the headers that Connection names end with it, and
// the connection serves no other request.
func TestAnswersThatEndTheConnection(t *testing.T) {
	r := newRig(t, "", scripted(t, "HTTP/1.1 200 OK\r\nX-Kept: 1\r\n"+
		"cOnnection: close, X-Hop , content-length\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok"))
	for range 2 {
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if h := resp.Header; h.Get("X-Hop") != "" || h.Get("X-Kept") != "1" || h.Get("Content-Length") != "2" || string(body) != "ok" {
			t.Errorf("%v, %q", h, body)
		}
	}
	r.check(map[string]int{"upstream_cx_total": 2, "upstream_cx_active": 0})
}

// TestNothingIsUpgraded: the host sees no upgrade, and the request of the caller stays
// as it is.
func TestNothingIsUpgraded(t *testing.T) {
	r := newRig(t, "", serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", fmt.Sprint(r.Header["Upgrade"], r.Header["Connection"], r.Header["X-A"]))
		w.Header().Set("X-Proxy-Upstream-Canary", "true")
	}))
	req := request(t, "GET", "")
	req.Header = http.Header{"Upgrade": {"h2c"}, "Connection": {"Upgrade"}, "X-A": {"1"}}
	resp, err := r.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("X-Seen"); got != "[] [] [1]" || len(req.Header) != 3 {
		t.Errorf("the host saw %s, the caller's headers are %v", got, req.Header)
	}
	r.check(map[string]int{"canary.upstream_rq_200": 1})
}

// TestHeadersOfTheProduct: a host speaks of its state in headers with the name of the
// product, whatever their value.
func TestHeadersOfTheProduct(t *testing.T) {
	for product, name := range map[string]string{"": "X-Proxy-", "envoy": "X-Envoy-"} {
		a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name+"Upstream-Canary", "true")
			w.Header().Set(name+"Immediate-Health-Check-Fail", "")
		})
		r := newRigOf(t, product, "health_checks: [{timeout: 1s, interval: 600s, no_traffic_interval: 600s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]", a)
		waittest.Until(t, "the cluster is active", func() bool { return r.m.Cluster("c") != nil })
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r.check(map[string]int{"canary.upstream_rq_200": 1, "health_check.passive_failure": 1})
	}
}

// TestPoolsAtTheLimit: the breaker bounds pools; one without users makes room.
func TestPoolsAtTheLimit(t *testing.T) {
	a := serve(t, func(http.ResponseWriter, *http.Request) {})
	r := newRig(t, "circuit_breakers: {thresholds: [{max_connection_pools: 1}]}", a, serve(t, func(http.ResponseWriter, *http.Request) {}))
	hd := r.m.Cluster("c")
	c := hd.Current()
	breaker := &c.Breakers(upstream.DefaultPriority).Pools
	of := func(i int) (*pool, error) { return r.Pools.of(hd, c, r.host(i), upstream.DefaultPriority) }
	first, err := of(0)
	if err != nil {
		t.Fatal(err)
	}
	first.use(1)
	if _, err := of(1); !errors.Is(err, upstream.ErrOverflow) || breaker.Current() != 1 {
		t.Errorf("a pool beside one in use: %v, %d pools", err, breaker.Current())
	}
	if again, err := of(0); again != first || err != nil {
		t.Errorf("the pool in use: %v", err)
	}
	first.use(-1)
	if second, err := of(1); err != nil || second == first || breaker.Current() != 1 {
		t.Errorf("a pool beside an unused one: %v, %d pools", err, breaker.Current())
	}
	if again, err := of(0); err != nil || again == first {
		t.Errorf("the dropped pool is still there, %v", err)
	}
	r.Pools.Drain(nil, nil)
	if breaker.Current() != 0 {
		t.Errorf("%d pools after draining", breaker.Current())
	}
}

// TestDrainIsSelective closes the connections of one host, or of one cluster.
func TestDrainIsSelective(t *testing.T) {
	hosts := []string{serve(t, func(http.ResponseWriter, *http.Request) {}), serve(t, func(http.ResponseWriter, *http.Request) {})}
	r := newRig(t, "", hosts...)
	for range 2 {
		r.send(request(t, "GET", ""))
	}
	r.check(map[string]int{"upstream_cx_active": 2})
	r.Pools.Drain(new(upstream.Cluster), nil)
	r.check(map[string]int{"upstream_cx_active": 2})
	r.Pools.Drain(r.m.Cluster("c").Current(), r.host(1))
	r.check(map[string]int{"upstream_cx_active": 1})
	if n := r.host(0).Stats.CxActive.Value(); n != 1 {
		t.Errorf("%d connections of the other host", n)
	}
	r.Pools.Drain(r.m.Cluster("c").Current(), nil)
	r.check(map[string]int{"upstream_cx_active": 0})
}

// TestIdleConnectionsEnd after the idle time of the cluster, an hour.
func TestIdleConnectionsEnd(t *testing.T) {
	r := newRig(t, "", serve(t, func(http.ResponseWriter, *http.Request) {}))
	r.send(request(t, "GET", ""))
	p, err := r.Pools.of(r.m.Cluster("c"), r.m.Cluster("c").Current(), r.host(0), upstream.DefaultPriority)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		idle time.Duration
		left int
	}{{0, 1}, {time.Hour - time.Minute, 1}, {time.Hour, 0}, {time.Hour, 0}} {
		p.mu.Lock()
		for _, c := range p.idle {
			c.since = time.Now().Add(-tt.idle)
		}
		p.mu.Unlock()
		p.tend()
		p.mu.Lock()
		if len(p.idle) != tt.left || p.tending != (tt.left > 0) {
			t.Errorf("idle for %v: %d are left, looked after %t", tt.idle, len(p.idle), p.tending)
		}
		p.mu.Unlock()
		r.check(map[string]int{"upstream_cx_active": tt.left, "upstream_cx_idle_timeout": 1 - tt.left})
	}
}

// TestTooManyRequests: breakers refuse requests without asking a host, and without a
// retry.
func TestTooManyRequests(t *testing.T) {
	for fields, want := range map[string]map[string]int{
		"{max_pending_requests: 0}": {"upstream_rq_pending_overflow": 1, "upstream_cx_total": 0},
		"{max_requests: 0}":         {"upstream_rq_pending_overflow": 1, "upstream_cx_total": 1, "upstream_cx_active": 1},
		"{max_retries: 0}":          {"upstream_rq_retry_overflow": 1, "upstream_rq_500": 1},
	} {
		r := newRig(t, "circuit_breakers: {thresholds: ["+fields+"]}", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
		r.Retries = 3
		status := 503
		if want["upstream_rq_500"] > 0 {
			status = 500
		}
		if got := r.send(request(t, "GET", "")); got != status {
			t.Errorf("%s: status %d, want %d", fields, got, status)
		}
		r.check(want)
		r.check(map[string]int{"upstream_rq_retry": 0, "upstream_rq_active": 0, "upstream_rq_pending_active": 0})
	}
}

// TestDroppedRequests are answered by the cluster, and counted as such.
func TestDroppedRequests(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	r.put(clusterText("", "127.0.0.1:1") + "  policy: {drop_overloads: [{category: x, drop_percentage: {numerator: 100}}]}\n")
	if got := r.send(request(t, "GET", "")); got != 503 {
		t.Errorf("status %d", got)
	}
	r.check(map[string]int{"upstream_rq_503": 1, "upstream_rq_completed": 1, "upstream_rq_total": 0, "upstream_cx_total": 0})
}

// TestAnswersWithoutBodies free their connection at once, whatever they say about a
// body.
func TestAnswersWithoutBodies(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		status int
		header string
	}{"head": {"HEAD", 200, "10"}, "head-unknown": {"HEAD", 200, ""}, "empty": {"GET", 200, "0"}, "no-content": {"GET", 204, ""}, "not-modified": {"GET", 304, "10"}} {
		r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if tt.header != "" {
				w.Header().Set("Content-Length", tt.header)
			}
			w.WriteHeader(tt.status)
		}))
		for range 2 {
			resp, err := r.RoundTrip(request(t, tt.method, ""))
			if err != nil {
				t.Fatal(err)
			}
			r.check(map[string]int{"upstream_rq_active": 0, "upstream_cx_active": 1})
			if body, err := io.ReadAll(resp.Body); len(body) > 0 || err != nil || resp.StatusCode != tt.status {
				t.Errorf("%s: %d %q, %v", name, resp.StatusCode, body, err)
			}
			resp.Body.Close()
		}
		r.check(map[string]int{"upstream_cx_total": 1})
	}
}

// TestHeadersAreReadWithinTheLimit, and kept.
func TestHeadersAreReadWithinTheLimit(t *testing.T) {
	r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100)) }))
	hd := r.m.Cluster("c")
	p, err := r.Pools.of(hd, hd.Current(), r.host(0), upstream.DefaultPriority)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer p.put(c, false)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil || !c.sent.Load() {
		t.Fatalf("%v, sent %t", err, c.sent.Load())
	}
	c.limit = 12
	if got, err := io.ReadAll(c); string(got) != "HTTP/1.1 200" || string(c.head) != string(got) || !errors.Is(err, errHeaderBytes) {
		t.Errorf("%q, kept %q, %v", got, c.head, err)
	}
	c.limit = -1
	if n, err := c.Read(make([]byte, 20)); n == 0 || err != nil || len(c.head) != 12 {
		t.Errorf("after the headers: %d bytes, %v, kept %q", n, err, c.head)
	}
}

// TestWaitersThatLeave counts a client that leaves while it waits for a connection once,
// and forgets it.
func TestWaitersThatLeave(t *testing.T) {
	r := newRig(t, "circuit_breakers: {thresholds: [{max_connections: 1}]}", serve(t, func(http.ResponseWriter, *http.Request) {}))
	hd := r.m.Cluster("c")
	p, err := r.Pools.of(hd, hd.Current(), r.host(0), upstream.DefaultPriority)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	within(t, "the wait", func() {
		if _, err := p.get(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	if p.users != 1 || len(p.waiting) != 0 {
		t.Errorf("%d users, %d waiting", p.users, len(p.waiting))
	}
	p.put(c, true)
	if !p.unused() || len(p.idle) != 1 {
		t.Errorf("%d users, %d idle after the connection came back", p.users, len(p.idle))
	}
	r.check(map[string]int{"upstream_rq_cancelled": 1, "upstream_rq_pending_failure_eject": 0, "upstream_rq_pending_active": 0, "upstream_cx_active": 1})
}

// TestDestinationHeaderWithoutValue has the header in the map of the request, without a
// value.
func TestDestinationHeaderWithoutValue(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	r.m.Remove("c")
	r.put("name: c\nconnect_timeout: 5s\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {use_http_header: true}")
	req := request(t, "GET", "")
	req.Header["X-Proxy-Original-Dst-Host"] = nil
	if got := r.send(req); got != 503 {
		t.Errorf("status %d", got)
	}
}

// TestDrainOfOneHost: hosts leave one by one, so one must not cost a look at the pools
// of all others.
func TestDrainOfOneHost(t *testing.T) {
	var ps Pools
	hosts := make([]*host.Host, 100)
	for i := range hosts {
		hosts[i] = host.New(host.Spec{})
		for _, pr := range []upstream.Priority{upstream.DefaultPriority, upstream.HighPriority} {
			ps.byHost.Store(poolKey{hosts[i], pr}, &pool{host: hosts[i], priority: pr})
		}
	}
	n := 0
	for key, p := range ps.each(hosts[7]) {
		if n++; key.host != hosts[7] || p.host != hosts[7] || p.priority != key.priority {
			t.Errorf("pool %d is that of another host or priority", n)
		}
	}
	if n != 2 {
		t.Errorf("looked at %d pools, want 2", n)
	}
}
