package httptransport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

func TestRequestsAreCounted(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(201)
		fmt.Fprint(w, r.Method, " ", r.RequestURI, " ", r.Host, " ", len(body))
	})
	r := newRig(t, "", a)
	client := &http.Client{Transport: r}
	for _, tt := range []struct{ method, body, want string }{
		{"GET", "", "GET /path?q example.test 0"}, {"POST", strings.Repeat("x", 200_000), "POST /path?q example.test 200000"}, {"HEAD", "", ""},
	} {
		resp, err := client.Do(request(t, tt.method, tt.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != tt.want || resp.StatusCode != 201 {
			t.Errorf("%s: %d %q, %v", tt.method, resp.StatusCode, got, err)
		}
	}
	r.check(map[string]int{
		"upstream_rq_total": 3, "upstream_rq_201": 3, "upstream_rq_completed": 3, "upstream_rq_active": 0,
		"upstream_cx_total": 1, "upstream_cx_http1_total": 1, "upstream_cx_active": 1, "upstream_rq_pending_total": 1,
	})
	if s := &r.host(0).Stats; s.RqSuccess.Value() != 3 || s.RqError.Value() != 0 || s.RqActive.Value() != 0 {
		t.Errorf("host counts %+v", s.All())
	}
	if n := r.m.Cluster("c").Current().Breakers(upstream.DefaultPriority).Pending.Current(); n != 0 {
		t.Errorf("%d requests are pending after all answers", n)
	}
}

// TestOriginsAreCounted counts answers by the kind of client, also answers of the
// cluster itself.
func TestOriginsAreCounted(t *testing.T) {
	r := newRig(t, "", serve(t, func(http.ResponseWriter, *http.Request) {}))
	r.Origin = func(r *http.Request) upstream.Origin {
		switch r.Method {
		case "GET":
			return upstream.InternalOrigin
		case "DELETE":
			return upstream.ExternalOrigin
		}
		return upstream.UnknownOrigin
	}
	send := func() {
		for _, method := range []string{"GET", "GET", "DELETE", "PUT"} {
			resp, err := r.RoundTrip(request(t, method, ""))
			if err == nil {
				_ = resp.Body.Close()
			}
		}
	}
	send()
	r.put(clusterText("")) // without hosts
	send()
	r.check(map[string]int{
		"upstream_rq_2xx": 4, "internal.upstream_rq_2xx": 2, "external.upstream_rq_2xx": 1, "external.upstream_rq_200": 1,
		"upstream_rq_5xx": 4, "internal.upstream_rq_503": 2, "external.upstream_rq_503": 1, "external.upstream_rq_completed": 2,
	})
}

// TestInvalidRequestsPickNoHost: a client must not be able to charge a host.
func TestInvalidRequestsPickNoHost(t *testing.T) {
	r := newRig(t, "outlier_detection: {consecutive_5xx: 1}", scripted(t, "HTTP/1.1 400 Bad\r\n\r\n"))
	for name, req := range map[string]*http.Request{
		"no host": {Method: "GET", URL: &url.URL{Path: "/"}, Header: http.Header{}},
		"preface": {Method: "PRI", URL: &url.URL{Path: "*"}, Host: "x", Header: http.Header{}},
		"connect": {Method: "CONNECT", URL: &url.URL{Host: "x:1"}, Host: "x:1", Header: http.Header{}},
	} {
		_, err := r.RoundTrip(req)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Status != 400 {
			t.Errorf("%s: %v, want status 400", name, err)
		}
	}
	r.check(map[string]int{"upstream_cx_total": 0, "upstream_rq_total": 0, "upstream_cx_protocol_error": 0})
	if s := &r.host(0).Stats; s.RqError.Value()+s.CxTotal.Value() != 0 {
		t.Errorf("host counts %+v", s.All())
	}
}

// TestHostOfARequest: requests of clients and requests that a server received name their
// host in different fields.
func TestHostOfARequest(t *testing.T) {
	for _, req := range []*http.Request{{Method: "GET", Host: "x", URL: &url.URL{Path: "/"}}, {Method: "GET", URL: &url.URL{Host: "x", Path: "/"}}} {
		if err := Check(req); err != nil {
			t.Errorf("%q, %q: %v", req.Host, req.URL.Host, err)
		}
	}
}

// TestHTTPSIsNeverPlainText: a request for https does not reach a host in plain text. The
// connection serves others.
func TestHTTPSIsNeverPlainText(t *testing.T) {
	r := newRig(t, "", serve(t, func(http.ResponseWriter, *http.Request) {}))
	c := &http.Client{Transport: r}
	_, err := c.Get("https://c/")
	if e := (*Error)(nil); !errors.As(err, &e) || e.Status != http.StatusBadGateway || !errors.Is(err, errPlain) {
		t.Errorf("https: %v", err)
	}
	resp, err := c.Get("http://c/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.check(map[string]int{"upstream_cx_total": 1, "upstream_rq_total": 1, "upstream_rq_502": 1, "upstream_rq_200": 1})
	if n := r.host(0).Stats.RqError.Value(); n != 0 {
		t.Errorf("%d errors of the host", n)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	r.put(clusterText("transport_socket: {name: tls}", s.Listener.Addr().String()))
	resp, err = c.Get("https://c/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestShortBodiesChargeTheHost: the client has seen the status, which stays.
func TestShortBodiesChargeTheHost(t *testing.T) {
	for text, want := range map[string]map[string]int{
		"Content-Length: 5\r\n\r\nab":          {"upstream_rq_rx_reset": 1, "upstream_cx_protocol_error": 0},
		"Transfer-Encoding: chunked\r\n\r\nno": {"upstream_rq_rx_reset": 0, "upstream_cx_protocol_error": 1},
	} {
		r := newRig(t, "", scripted(t, "HTTP/1.1 200 OK\r\n"+text+"\r\n"))
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%q is complete", text)
		}
		resp.Body.Close()
		r.check(want)
		r.check(map[string]int{"upstream_rq_200": 1, "upstream_rq_active": 0, "upstream_cx_active": 0})
	}
}

// TestBadAnswersChargeTheHost ejects a host whose answers are not HTTP.
func TestBadAnswersChargeTheHost(t *testing.T) {
	for name, text := range map[string]string{
		"not HTTP":         "hello\r\n\r\n",
		"long headers":     "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
		"many headers":     "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 200) + "\r\n",
		"other protocol":   "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"interim for ever": strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100),
	} {
		t.Run(name, func(t *testing.T) {
			good := serve(t, func(http.ResponseWriter, *http.Request) {})
			r := newRig(t, "outlier_detection: {consecutive_5xx: 3, consecutive_gateway_failure: 3, enforcing_consecutive_gateway_failure: 0, max_ejection_percent: 50}", scripted(t, text), good)
			bad := 0
			for range 20 {
				resp, err := r.RoundTrip(request(t, "GET", ""))
				if err != nil {
					if e := (*Error)(nil); !errors.As(err, &e) || e.Status != 502 {
						t.Errorf("%v, want status 502", err)
					}
					bad++
					continue
				}
				resp.Body.Close()
			}
			if bad != 3 || r.host(0).Flags().String() != "/failed_outlier_check" {
				t.Errorf("%d bad answers, host is %s; want 3 and an ejection", bad, r.host(0).Flags())
			}
			r.check(map[string]int{"upstream_cx_protocol_error": 3, "upstream_rq_502": 3, "upstream_rq_200": 17})
			if n := r.host(0).Stats.RqError.Value(); n != 3 {
				t.Errorf("rq_error %d", n)
			}
		})
	}
}

// TestBrokenBodiesOfClientsChargeNoHost: the client breaks off its request.
func TestBrokenBodiesOfClientsChargeNoHost(t *testing.T) {
	r := newRig(t, "", serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
	req := request(t, "POST", "x")
	req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("abc"), failing{})), -1
	if _, err := r.RoundTrip(req); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.RoundTrip(request(t, "GET", "").WithContext(ctx)); err == nil {
		t.Error("no error after the client left")
	}
	r.check(map[string]int{
		"upstream_rq_active": 0, "upstream_cx_protocol_error": 0, "upstream_rq_rx_reset": 0, "upstream_rq_5xx": 0,
		"upstream_rq_tx_reset": 1, "upstream_rq_cancelled": 1, "upstream_rq_pending_failure_eject": 0,
	})
	if s := &r.host(0).Stats; s.RqSuccess.Value()+s.RqError.Value() != 0 {
		t.Errorf("%d successes, %d errors", s.RqSuccess.Value(), s.RqError.Value())
	}
}

// TestRequestsThatCannotBeWritten: a body that is shorter or longer than its stated
// length, or a bad URL, fails at once and charges no host.
func TestRequestsThatCannotBeWritten(t *testing.T) {
	r := newRig(t, "", serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
	r.Retries = 2
	for want, change := range map[string]func(*http.Request){
		"ContentLength=10 with Body length 5": func(r *http.Request) { r.ContentLength = 10 },
		"ContentLength=3 with Body length 5":  func(r *http.Request) { r.ContentLength = 3 },
		"can't write control character":       func(r *http.Request) { r.URL.RawQuery = "\n" },
		"control character in Request.URL":    func(r *http.Request) { r.Body, r.URL.RawQuery = nil, "\n" },
	} {
		req := request(t, "POST", "hello")
		change(req)
		within(t, want, func() {
			_, err := r.RoundTrip(req)
			if e := (*Error)(nil); !errors.As(err, &e) || e.Status != http.StatusBadRequest || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	if s := &r.host(0).Stats; s.RqError.Value()+s.RqTimeout.Value() != 0 || s.RqTotal.Value() != 4 {
		t.Errorf("%+v", s.All())
	}
	r.check(map[string]int{"upstream_rq_tx_reset": 4, "upstream_rq_retry": 0, "upstream_rq_active": 0})
}

// TestLackOfThisMachineChargesNoHost: the source address is not of this machine.
func TestLackOfThisMachineChargesNoHost(t *testing.T) {
	r := newRig(t, "upstream_bind_config: {source_address: {address: 192.0.2.1, port_value: 0}}", "127.0.0.1:1")
	if _, err := r.RoundTrip(request(t, "GET", "")); err == nil {
		t.Error("no error")
	}
	r.check(map[string]int{"bind_errors": 1, "upstream_rq_503": 1, "upstream_rq_pending_failure_eject": 1, "upstream_rq_cancelled": 0})
	if n := r.host(0).Stats.RqError.Value(); n != 0 {
		t.Errorf("%d errors of the host", n)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the client is gone") }

func TestRetries(t *testing.T) {
	var asked atomic.Int64
	bad := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		asked.Add(1)
		w.WriteHeader(503)
		_, _ = io.WriteString(w, "no")
	})
	good := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	r := newRig(t, "", bad, good)
	r.Retries = 1
	for range 10 {
		resp, err := r.RoundTrip(request(t, "POST", "again"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "again" || err != nil || resp.StatusCode != 200 {
			t.Errorf("%d %q, %v", resp.StatusCode, body, err)
		}
		resp.Body.Close()
	}
	n := int(asked.Load())
	r.check(map[string]int{
		"upstream_rq_retry": n, "upstream_rq_retry_success": n, "retry.upstream_rq_503": n, "upstream_rq_503": 0,
		"upstream_rq_200": 10, "upstream_rq_completed": 10, "upstream_rq_total": 10 + n,
	})
	if n == 0 {
		t.Error("the bad host was never asked")
	}

	// A body that is too large to keep is sent once.
	r.put(clusterText("", bad))
	resp, err := r.RoundTrip(request(t, "POST", strings.Repeat("x", maxReplay+1)))
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	r.check(map[string]int{"retry_or_shadow_abandoned": 1, "upstream_rq_503": 1})

	// Without retries nothing is exceeded.
	r.Retries = 0
	if status := r.send(request(t, "GET", "")); status != 503 {
		t.Errorf("without retries: status %d", status)
	}
	r.check(map[string]int{"upstream_rq_retry_limit_exceeded": 0, "upstream_rq_503": 2})
}

func TestTimeouts(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, "track_timeout_budgets: true", serve(t, func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	r.Timeout = 30 * time.Millisecond
	_, err := r.RoundTrip(request(t, "GET", ""))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Status != 504 {
		t.Errorf("%v, want status 504", err)
	}
	r.Timeout, r.PerTryTimeout, r.Retries = time.Minute, 150*time.Millisecond, 2
	if _, err = r.RoundTrip(request(t, "GET", "")); err == nil {
		t.Error("no error")
	}
	r.check(map[string]int{"upstream_rq_timeout": 1, "upstream_rq_per_try_timeout": 3, "upstream_rq_504": 2, "upstream_rq_retry_limit_exceeded": 1, "upstream_cx_active": 0})
}

// TestBodiesAreStreamed reads the first event before the host sends the second,
// through a reverse proxy.
func TestBodiesAreStreamed(t *testing.T) {
	next := make(chan struct{})
	r := newRig(t, "", serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			_, _ = io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	p := httptest.NewServer(&httputil.ReverseProxy{Transport: r, Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Host = "c"; p.Out.URL.Scheme = "http" }, ErrorHandler: HandleError})
	defer p.Close()
	resp, err := http.Get(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	event := make([]byte, len("data: 1\n\n"))
	for range 2 {
		if _, err := io.ReadFull(resp.Body, event); err != nil {
			t.Fatal(err)
		}
		r.check(map[string]int{"upstream_rq_active": 1})
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(resp.Body); len(rest) != 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	waittest.Until(t, "the request ended", func() bool { return r.value("upstream_rq_active") == 0 })
	r.check(map[string]int{"upstream_rq_200": 1})
}

// TestBodyClosedEarly costs the connection and charges no host.
func TestBodyClosedEarly(t *testing.T) {
	r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }))
	resp, err := r.RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("before the end: %d bytes, %v", n, err)
	}
	for range 2 {
		resp.Body.Close()
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
	}
	r.check(map[string]int{"upstream_rq_active": 0, "upstream_rq_tx_reset": 1, "upstream_cx_active": 0, "upstream_rq_200": 1})
}

func TestClusterIsGone(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	r.m.Remove("c")
	_, err := r.RoundTrip(request(t, "GET", ""))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Status != 503 {
		t.Errorf("%v, want status 503", err)
	}
	w := httptest.NewRecorder()
	HandleError(w, nil, err)
	if w.Code != 503 || w.Body.String() != "Service Unavailable\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// TestPoolOfARemovedHostIsNotKept asks for the pool of a host that was removed
// after it was picked.
func TestPoolOfARemovedHostIsNotKept(t *testing.T) {
	r := newRig(t, "", serve(t, func(http.ResponseWriter, *http.Request) {}))
	hd := r.m.Cluster("c")
	c, h := hd.Current(), r.host(0)
	gone := host.New(host.Spec{Address: h.Address()})
	of := func(h *host.Host) *pool {
		p, err := r.Pools.of(hd, c, h, upstream.DefaultPriority)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := of(gone)
	if of(gone) == p {
		t.Error("the pool of a host that the cluster does not have is kept")
	}
	conn, err := p.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p.put(conn, true)
	r.check(map[string]int{"upstream_cx_total": 1, "upstream_cx_active": 0})
	if p = of(h); of(h) != p {
		t.Error("the pool of a host of the cluster is not kept")
	}
}

// TestUpdatesUnderLoad updates, removes and returns the cluster under load, and
// compares what clients and hosts saw with the counters.
func TestUpdatesUnderLoad(t *testing.T) {
	var served atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.ContentLength > 0 {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(200 + 4*rand.IntN(2))
	}
	hosts := []string{serve(t, h), serve(t, h), serve(t, h)}
	r := newRig(t, "circuit_breakers: {thresholds: [{max_connections: 100, max_pending_requests: 100}]}", hosts...)
	for _, removals := range []bool{false, true} {
		var answers [600]atomic.Int64
		var stop atomic.Bool
		var clients sync.WaitGroup
		served.Store(0)
		before := r.value("upstream_rq_total")
		for range 8 {
			clients.Go(func() {
				for !stop.Load() {
					body := ""
					if rand.IntN(3) == 0 {
						body = "abc"
					}
					resp, err := r.RoundTrip(request(t, "POST", body))
					if e := (*Error)(nil); errors.As(err, &e) {
						answers[e.Status].Add(1)
						continue
					} else if err != nil {
						t.Error(err)
						continue
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					answers[resp.StatusCode].Add(1)
				}
			})
		}
		for i := range 40 {
			if removals && i%5 == 4 {
				r.m.Remove("c")
			}
			time.Sleep(time.Millisecond)
			r.put(clusterText(fmt.Sprintf("per_connection_buffer_limit_bytes: %d\ncircuit_breakers: {thresholds: [{max_connections: 100, max_pending_requests: 100}]}", 5000+i), hosts[:1+rand.IntN(3)]...))
		}
		stop.Store(true)
		clients.Wait()
		if ok := answers[200].Load() + answers[204].Load(); ok == 0 || ok != served.Load() {
			t.Errorf("%d answers of %d that hosts gave", ok, served.Load())
		}
		if !removals { // else the totals start anew
			r.check(map[string]int{
				"upstream_rq_total": before + int(served.Load()), "upstream_rq_200": int(answers[200].Load()), "upstream_rq_204": int(answers[204].Load()),
				"upstream_rq_503": int(answers[503].Load()),
			})
		}
		r.check(map[string]int{"upstream_rq_active": 0, "upstream_rq_pending_active": 0})
	}
}

// TestPanicOfABody: the body of a request is code of the caller.
func TestPanicOfABody(t *testing.T) {
	r := newRig(t, "", serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
	panics := guardtest.New(t)
	r.Pools.Logger = panics.Logger()
	req := request(t, "POST", "")
	req.Body, req.ContentLength = io.NopCloser(panicking{}), -1
	if _, err := r.RoundTrip(req); err == nil {
		t.Error("no error")
	}
	panics.Caught("body of a request")
	r.check(map[string]int{"upstream_rq_active": 0, "upstream_cx_active": 0})
	if resp, err := r.RoundTrip(request(t, "POST", "x")); err != nil || resp.StatusCode != 200 {
		t.Errorf("next request: %v, %v", resp, err)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic(guardtest.Canary) }

// TestOriginalDestinations follows the header, and counts an empty one as invalid.
func TestOriginalDestinations(t *testing.T) {
	a := serve(t, func(http.ResponseWriter, *http.Request) {})
	r := newRig(t, "", a)
	r.m.Remove("c")
	r.put("name: c\nconnect_timeout: 5s\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {use_http_header: true}")
	for value, want := range map[string]int{a: 200, "": 503, "nowhere": 503} {
		req := request(t, "GET", "")
		req.Header.Set("X-Proxy-Original-Dst-Host", value)
		resp, err := r.RoundTrip(req)
		got := 200
		if e := (*Error)(nil); errors.As(err, &e) {
			got = e.Status
		} else {
			resp.Body.Close()
		}
		if got != want {
			t.Errorf("%q: %d, want %d (%v)", value, got, want, err)
		}
	}
	r.check(map[string]int{"original_dst_host_invalid": 2})

	// A host that is new just after another one keeps its connection, too.
	b := serve(t, func(http.ResponseWriter, *http.Request) {})
	for range 3 {
		req := request(t, "GET", "")
		req.Header.Set("X-Proxy-Original-Dst-Host", b)
		resp, err := r.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	r.check(map[string]int{"upstream_cx_total": 2, "upstream_rq_total": 4})
}

// lockedBody is a body like that of a server's request: Close waits for Read.
type lockedBody struct {
	mu   sync.Mutex
	more chan struct{} // closed to end the body
}

func (b *lockedBody) Read([]byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	<-b.more
	return 0, io.EOF
}

func (b *lockedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return nil
}

// TestStalledBodyDelaysNoAnswer: a client that stops sending must not hold up the
// answer of the host, or the timeout.
func TestStalledBodyDelaysNoAnswer(t *testing.T) {
	early := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	mute := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	for name, tt := range map[string]struct {
		host   string
		status int
	}{"early answer": {early, 413}, "timeout": {mute, 504}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "", tt.host)
			r.Timeout = time.Minute
			if tt.status == 504 {
				r.Timeout = 50 * time.Millisecond
			}
			body := &lockedBody{more: make(chan struct{})}
			defer close(body.more)
			req := request(t, "POST", "")
			req.Body, req.ContentLength = body, 1<<20
			got := make(chan int, 1)
			go func() {
				resp, err := r.RoundTrip(req)
				if e := (*Error)(nil); errors.As(err, &e) {
					got <- e.Status
					return
				}
				_ = resp.Body.Close()
				got <- resp.StatusCode
			}()
			select {
			case status := <-got:
				if status != tt.status {
					t.Errorf("status %d, want %d", status, tt.status)
				}
			case <-time.After(time.Minute):
				t.Error("the stalled body holds up RoundTrip")
			}
		})
	}
}

// TestConnectionOfAnUnfinishedRequestIsNotReused: the host would take the next
// request for the rest of the body.
func TestConnectionOfAnUnfinishedRequestIsNotReused(t *testing.T) {
	for name, rest := range map[string]io.Reader{"short": strings.NewReader(""), "broken": failing{}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						in := bufio.NewReader(c)
						for {
							if _, err := http.ReadRequest(in); err != nil {
								return
							}
							_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						}
					}()
				}
			}()
			r := newRig(t, "", l.Addr().String())
			answered := make(chan struct{})
			req := request(t, "POST", "")
			req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 8<<10)), gated{answered}, rest)), 1<<20
			resp, err := r.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			close(answered)
			time.Sleep(50 * time.Millisecond) // the request breaks off
			if got, err := io.ReadAll(resp.Body); string(got) != "ok" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			waittest.Until(t, "no connection", func() bool { return r.value("upstream_cx_active") == 0 })
		})
	}
}

// gated is an empty reader that waits for its channel.
type gated struct{ open chan struct{} }

func (g gated) Read([]byte) (int, error) {
	<-g.open
	return 0, io.EOF
}

// TestBodyClosedWhileItIsRead counts the end of the request once.
func TestBodyClosedWhileItIsRead(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	for range 20 {
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.ReadAll(resp.Body)
		}()
		time.Sleep(time.Millisecond)
		_ = resp.Body.Close()
		<-read
	}
	r.check(map[string]int{"upstream_rq_active": 0, "upstream_rq_total": 20, "upstream_rq_completed": 20, "upstream_cx_active": 0})
	if n := r.m.Cluster("c").Current().Breakers(upstream.DefaultPriority).Requests.Current(); n != 0 {
		t.Errorf("%d requests are held by the circuit breaker", int64(n))
	}
}

// TestWaitersGetSlotsOfDrainedPools: a request that waits for a connection must
// learn that a connection of an earlier pool of the host was closed.
func TestWaitersGetSlotsOfDrainedPools(t *testing.T) {
	r := newRig(t, "circuit_breakers: {thresholds: [{max_connections: 1}]}", serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "x")
	}))
	first, err := r.RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	r.Pools.Drain(nil, nil)
	second := make(chan error, 1)
	go func() {
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err == nil {
			_ = resp.Body.Close()
		}
		second <- err
	}()
	waittest.Until(t, "a waiting request", func() bool { return r.value("upstream_rq_pending_active") == 1 })
	_ = first.Body.Close()
	select {
	case err := <-second:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the second request waits for ever")
	}
}
