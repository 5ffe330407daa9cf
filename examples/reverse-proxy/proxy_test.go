package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestMain finds leaked goroutines.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// backend is a real server that counts requests.
type backend struct {
	http.Server
	listener net.Listener
	requests atomic.Int64
	accepted atomic.Int64
	answer   atomic.Pointer[http.HandlerFunc]
}

// newBackend starts a backend that answers 200 by default.
func newBackend(t *testing.T, address string) *backend {
	t.Helper()
	b := &backend{}
	var err error
	if b.listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	b.does(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from ", b.address()) })
	b.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			b.requests.Add(1)
		}
		(*b.answer.Load())(w, r)
	})
	b.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			b.accepted.Add(1)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Serve(b.listener) // ends by Close
	}()
	t.Cleanup(func() {
		_ = b.Close()
		<-done
	})
	return b
}

func (b *backend) does(f http.HandlerFunc) { b.answer.Store(&f) }

func (b *backend) address() string { return b.listener.Addr().String() }

// status answers with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// running is a proxy at work.
type running struct {
	server *server.Server
	t      *testing.T
	client *http.Client
	stop   func()
}

// start runs a proxy of a bootstrap text with an administration port.
func start(t *testing.T, clusters string, routes ...Route) *running {
	t.Helper()
	return startAs(t, "", clusters, routes...)
}

// startAs runs a proxy with a product name.
func startAs(t *testing.T, product, clusters string, routes ...Route) *running {
	t.Helper()
	boot, err := bootstrap.Parse("boot.yaml", []byte("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+clusters), bootstrap.Options{Product: product})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := boot.Server(bootstrap.Startup{CommandLine: server.CommandLine{DrainTime: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range routes {
		if routes[i].Address == "" {
			routes[i].Address = "127.0.0.1:0"
		}
	}
	srv, err := newProxy(cfg, routes)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	r := &running{server: srv, t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.client.CloseIdleConnections()
	})
	t.Cleanup(r.stop)
	select {
	case <-srv.Initialized():
	case <-time.After(30 * time.Second):
		t.Fatal("the proxy is not initialized within 30 s")
	}
	return r
}

// static returns a static cluster with further fields.
func static(fields string, hosts ...*backend) string {
	s := "static_resources:\n  clusters:\n  - name: backend\n    connect_timeout: 20s\n    load_assignment:\n      cluster_name: backend\n      endpoints:\n      - lb_endpoints:\n"
	for _, h := range hosts {
		s += endpoint(h.address())
	}
	for line := range strings.Lines(fields) {
		s += "    " + line
	}
	return s + "\n"
}

func endpoint(address string) string {
	ip, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("        - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", ip, port)
}

// address returns where a listener listens.
func (r *running) address(name string) string {
	r.t.Helper()
	for _, l := range r.server.Listeners().List() {
		if l.Name == name {
			return l.Addresses[0].String()
		}
	}
	r.t.Fatalf("no listener %q", name)
	return ""
}

// get asks the listener "web" and returns status and body.
func (r *running) get(header ...string) (int, string, *http.Response) {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.address("web")+"/x", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, "", &http.Response{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp.StatusCode, string(body), resp
}

// stat returns the value of a counter or gauge, 0 if there is none.
func (r *running) stat(name string) int {
	r.t.Helper()
	text := string(r.server.Admin().Request("GET", "/stats?filter=^"+strings.ReplaceAll(name, ".", "\\.")+"$", nil).Body)
	_, value, ok := strings.Cut(strings.TrimSpace(text), ": ")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return n
}

// want waits until stats below "cluster.backend." have the given values, since a client
// has its answer before the proxy has counted it. It ignores other stats.
func (r *running) want(stats map[string]int) {
	r.t.Helper()
	var wrong []string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		wrong = nil
		for name, want := range stats {
			full := name
			if !strings.HasPrefix(name, "http.") && !strings.HasPrefix(name, "listener") {
				full = "cluster.backend." + name
			}
			if got := r.stat(full); got != want {
				wrong = append(wrong, fmt.Sprintf("%s is %d, want %d", full, got, want))
			}
		}
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Error(strings.Join(wrong, "\n"))
			return
		}
	}
}

// host returns a host of the cluster by its address.
func (r *running) host(address string) *host.Host {
	r.t.Helper()
	for _, s := range r.server.Clusters().Cluster("backend").Current().Sets() {
		for _, h := range s.Hosts {
			if h.AddressText() == address {
				return h
			}
		}
	}
	r.t.Fatalf("no host %s", address)
	return nil
}

func (r *running) cluster() *upstream.Cluster {
	return r.server.Clusters().Cluster("backend").Current()
}

// eventually waits until ok says true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}

func web(r Route) Route {
	r.Name, r.Cluster = "web", "backend"
	return r
}

func TestCountersUnderLoad(t *testing.T) {
	hosts := []*backend{newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")}
	r := start(t, static("", hosts...), web(Route{}))
	const clients, each = 8, 250
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for range each {
				if code, body, _ := r.get(); code != 200 || !strings.HasPrefix(body, "hello from 127.0.0.1:") {
					t.Errorf("answer %d %q", code, body)
					return
				}
			}
		})
	}
	running.Wait()
	requests, connections := 0, 0
	for _, b := range hosts {
		s := &r.host(b.address()).Stats
		if got, want := s.RqTotal.Value(), uint64(b.requests.Load()); got != want || s.RqSuccess.Value() != want {
			t.Errorf("%s: rq_total %d, rq_success %d; it got %d", b.address(), got, s.RqSuccess.Value(), want)
		}
		if s.RqError.Value() != 0 || s.RqTimeout.Value() != 0 || s.RqActive.Value() != 0 || s.CxConnectFail.Value() != 0 {
			t.Errorf("%s: %+v", b.address(), s.All())
		}
		if got, want := s.CxTotal.Value(), uint64(b.accepted.Load()); got != want {
			t.Errorf("%s: cx_total %d; it accepted %d", b.address(), got, want)
		}
		if b.requests.Load() < clients*each/4 {
			t.Errorf("%s got %d of %d requests", b.address(), b.requests.Load(), clients*each)
		}
		requests, connections = requests+int(b.requests.Load()), connections+int(b.accepted.Load())
	}
	if requests != clients*each {
		t.Errorf("hosts got %d requests, want %d", requests, clients*each)
	}
	r.want(map[string]int{
		"upstream_rq_total": requests, "upstream_rq_completed": requests, "upstream_rq_2xx": requests, "upstream_rq_200": requests,
		"upstream_rq_active": 0, "upstream_rq_pending_active": 0, "upstream_rq_pending_total": connections,
		"upstream_cx_total": connections, "membership_total": 3, "membership_healthy": 3,
		"http.web.downstream_rq_total": requests, "http.web.downstream_rq_2xx": requests, "http.web.downstream_rq_active": 0,
	})
	r.stop()
	if n := r.cluster(); n == nil {
		t.Fatal("the cluster is gone")
	}
	for _, b := range hosts {
		if n := r.host(b.address()).Stats.CxActive.Value(); n != 0 {
			t.Errorf("%s: %d connections after the end", b.address(), n)
		}
	}
}

func TestEjectsAFailingHost(t *testing.T) {
	bad, good, better := newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")
	bad.does(status(500))
	path := filepath.Join(t.TempDir(), "outliers.log")
	r := start(t, "cluster_manager: {outlier_detection: {event_log_path: "+path+"}}\n"+
		static("outlier_detection: {consecutive_5xx: 5, interval: 3600s, base_ejection_time: 3600s, max_ejection_percent: 100}", bad, good, better), web(Route{}))
	const requests = 100
	codes := map[int]int{}
	for range requests {
		code, _, _ := r.get()
		codes[code]++
	}
	if codes[500] != 5 || codes[200] != requests-5 || len(codes) != 2 {
		t.Errorf("answers %v, want 5 of 500 and %d of 200", codes, requests-5)
	}
	if n := bad.requests.Load(); n != 5 {
		t.Errorf("the failing host got %d requests, want 5", n)
	}
	s := &r.host(bad.address()).Stats
	if s.RqTotal.Value() != 5 || s.RqError.Value() != 5 || s.RqSuccess.Value() != 0 {
		t.Errorf("the failing host counts %+v", s.All())
	}
	if f := r.host(bad.address()).Flags(); f.String() != "/failed_outlier_check" {
		t.Errorf("flags %v", f)
	}
	r.want(map[string]int{
		"outlier_detection.ejections_enforced_total": 1, "outlier_detection.ejections_enforced_consecutive_5xx": 1,
		"outlier_detection.ejections_active": 1, "membership_healthy": 2, "upstream_rq_500": 5, "upstream_rq_5xx": 5, "upstream_rq_200": requests - 5,
	})
	r.stop()
	events, err := os.ReadFile(path)
	want := fmt.Sprintf(`"cluster_name":"backend","upstream_url":%q,"action":"EJECT","num_ejections":1,"enforced":true,"eject_consecutive_event":{}}`+"\n", bad.address())
	if err != nil || !strings.HasPrefix(string(events), `{"type":"CONSECUTIVE_5XX",`) || !strings.HasSuffix(string(events), want) {
		t.Errorf("events %q, %v", events, err)
	}
}

func TestTripsABreaker(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	b.does(func(http.ResponseWriter, *http.Request) { <-release })
	r := start(t, static("circuit_breakers: {thresholds: [{max_connections: 1, max_pending_requests: 1}]}", b), web(Route{Timeout: Duration(time.Minute)}))
	answers := make(chan int, 2)
	ask := func() { code, _, _ := r.get(); answers <- code }
	go ask()
	eventually(t, "the first request is in flight", func() bool { return b.requests.Load() == 1 })
	go ask()
	eventually(t, "the second request waits", func() bool { return r.stat("cluster.backend.upstream_cx_overflow") == 1 })
	r.want(map[string]int{
		"circuit_breakers.default.cx_open": 1, "circuit_breakers.default.rq_pending_open": 1, "circuit_breakers.default.rq_open": 0,
		"circuit_breakers.high.cx_open": 0, "upstream_rq_active": 1, "upstream_rq_pending_active": 1, "upstream_cx_active": 1,
	})
	const refused = 7
	for range refused {
		if code, _, _ := r.get(); code != 503 {
			t.Errorf("answer %d over the limit, want 503", code)
		}
	}
	r.want(map[string]int{"upstream_rq_pending_overflow": refused, "upstream_rq_503": refused, "upstream_rq_total": 1})
	close(release)
	for range 2 {
		if code := <-answers; code != 200 {
			t.Errorf("answer %d within the limit, want 200", code)
		}
	}
	eventually(t, "nothing is in flight", func() bool { return r.stat("http.web.downstream_rq_active") == 0 })
	r.want(map[string]int{
		"circuit_breakers.default.cx_open": 1, "circuit_breakers.default.rq_pending_open": 0, "upstream_rq_total": 2, "upstream_rq_200": 2,
		"upstream_cx_total": 1, "upstream_cx_overflow": 1, "upstream_rq_active": 0, "upstream_rq_pending_active": 0,
		"upstream_rq_pending_total": 2,
	})
	if n := b.requests.Load(); n != 2 {
		t.Errorf("the host got %d requests, want 2", n)
	}
	if n := r.host(b.address()).Stats.RqError.Value(); n != refused {
		t.Errorf("rq_error %d, want %d", n, refused)
	}
}

func TestRetriesOnAnotherHost(t *testing.T) {
	bad, good := newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")
	bad.does(status(503))
	r := start(t, static("circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 1}}]}", bad, good), web(Route{Retries: 3}))
	const requests = 40
	for range requests {
		if code, _, _ := r.get(); code != 200 {
			t.Errorf("answer %d, want 200", code)
		}
	}
	retried := int(bad.requests.Load())
	if retried == 0 || good.requests.Load() != requests {
		t.Errorf("hosts got %d and %d requests", retried, good.requests.Load())
	}
	r.want(map[string]int{
		"upstream_rq_total": requests + retried, "upstream_rq_retry": retried, "upstream_rq_retry_success": retried,
		"retry.upstream_rq_503": retried, "retry.upstream_rq_5xx": retried, "retry.upstream_rq_completed": retried,
		"upstream_rq_completed": requests, "upstream_rq_200": requests, "upstream_rq_503": 0, "upstream_rq_retry_overflow": 0,
		"upstream_rq_retry_backoff_exponential": retried,
	})
}

func TestRetryBudgetIsKept(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(status(503))
	r := start(t, static("circuit_breakers: {thresholds: [{max_retries: 0}]}", b), web(Route{Retries: 3}))
	const requests = 10
	for range requests {
		if code, _, _ := r.get(); code != 503 {
			t.Errorf("answer %d, want 503", code)
		}
	}
	r.want(map[string]int{"upstream_rq_retry": 0, "upstream_rq_retry_overflow": requests, "upstream_rq_503": requests, "upstream_rq_total": requests})
}

func TestTimeouts(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	defer close(release)
	b.does(func(http.ResponseWriter, *http.Request) { <-release })
	r := start(t, static("track_timeout_budgets: true", b),
		web(Route{Timeout: Duration(50 * time.Millisecond)}),
		Route{Name: "tries", Cluster: "backend", Timeout: Duration(time.Minute), PerTryTimeout: Duration(20 * time.Millisecond), Retries: 2})
	if code, _, _ := r.get(); code != 504 {
		t.Errorf("answer %d, want 504", code)
	}
	r.want(map[string]int{
		"upstream_rq_timeout": 1, "upstream_rq_per_try_timeout": 0, "upstream_rq_504": 1, "upstream_rq_total": 1,
		"upstream_cx_destroy_local_with_active_rq": 1, "upstream_cx_destroy": 1, "upstream_cx_active": 0,
	})
	resp, err := r.client.Get("http://" + r.address("tries") + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 504 {
		t.Errorf("answer %d, want 504", resp.StatusCode)
	}
	r.want(map[string]int{
		"upstream_rq_timeout": 1, "upstream_rq_per_try_timeout": 3, "upstream_rq_504": 2, "upstream_rq_total": 4,
		"upstream_rq_retry": 2, "upstream_rq_retry_limit_exceeded": 1, "upstream_rq_retry_success": 0,
	})
	if s := &r.host(b.address()).Stats; s.RqTimeout.Value() != 4 || s.RqError.Value() != 4 || s.RqSuccess.Value() != 0 {
		t.Errorf("host counts %+v", s.All())
	}
}

func TestHashHeaderSticks(t *testing.T) {
	hosts := []*backend{newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")}
	r := start(t, static("lb_policy: MAGLEV", hosts...), web(Route{HashHeader: "x-user"}))
	seen := map[string]bool{}
	for user := range 30 {
		name := fmt.Sprint("user-", user)
		_, first, _ := r.get("x-user", name)
		seen[first] = true
		for range 4 {
			if _, again, _ := r.get("x-user", name); again != first {
				t.Errorf("%s went to %q, then to %q", name, first, again)
			}
		}
	}
	if len(seen) != len(hosts) {
		t.Errorf("30 users reach %d of %d hosts", len(seen), len(hosts))
	}
}

func TestHealthChecks(t *testing.T) {
	sick, well := newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")
	r := start(t, static("health_checks: [{timeout: 20s, interval: 0.01s, no_traffic_interval: 0.01s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /health}}]", sick, well), web(Route{}))
	r.want(map[string]int{"membership_healthy": 2})
	sick.does(status(503))
	eventually(t, "the sick host is found out", func() bool { return r.stat("cluster.backend.membership_healthy") == 1 })
	if text := string(r.server.Admin().Request("GET", "/clusters", nil).Body); !strings.Contains(text, "backend::"+sick.address()+"::health_flags::/failed_active_hc\n") {
		t.Errorf("/clusters:\n%s", text)
	}
	const requests = 50
	for range requests {
		if code, _, _ := r.get(); code != 200 {
			t.Errorf("answer %d", code)
		}
	}
	if sick.requests.Load() != 0 || well.requests.Load() != requests {
		t.Errorf("the sick host got %d, the other %d", sick.requests.Load(), well.requests.Load())
	}
	sick.does(status(200))
	eventually(t, "it is well again", func() bool { return r.stat("cluster.backend.membership_healthy") == 2 })
	eventually(t, "it gets requests", func() bool { r.get(); return sick.requests.Load() > 0 })
}

// TestMessages sends requests of several forms through, and looks at what arrives
// at either end.
func TestMessages(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, " ", r.URL, " ", r.Host, " ", len(body), " ", r.Header["Connection"], r.Header["Upgrade"], " ", r.Header.Get("X-Own")))
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header()["Content-Type"] = nil
		w.WriteHeader(201)
		_, _ = w.Write(body)
	})
	r := start(t, static("", b), web(Route{}))
	for _, tt := range []struct {
		method, path string
		body         io.Reader
		want         string
		size         int
	}{
		{"GET", "/a?b=%20c&d=%zz", nil, "GET /a?b=%20c&d=%zz example.test 0 [] [] mine", 0},
		{"POST", "/p", strings.NewReader(strings.Repeat("x", 100_000)), "POST /p example.test 100000 [] [] mine", 100_000},
		{"PUT", "/chunked", io.MultiReader(strings.NewReader("one"), strings.NewReader("two")), "PUT /chunked example.test 6 [] [] mine", 6},
		{"HEAD", "/h", nil, "HEAD /h example.test 0 [] [] mine", 0},
		{"DELETE", "/%2F..%2F", nil, "DELETE /%2F..%2F example.test 0 [] [] mine", 0},
	} {
		req, err := http.NewRequest(tt.method, "http://"+r.address("web")+tt.path, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "example.test"
		req.Header.Set("X-Own", "mine")
		req.Header.Set("Connection", "upgrade")
		req.Header.Set("Upgrade", "websocket")
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 201 || len(body) != tt.size || resp.Header.Get("X-Seen") != tt.want || resp.Header.Get("Keep-Alive") != "" || resp.Header["Content-Type"] != nil {
			t.Errorf("%s %s: %d, %d bytes, %v; %v\nwant %s", tt.method, tt.path, resp.StatusCode, len(body), resp.Header, err, tt.want)
		}
	}
	r.want(map[string]int{"upstream_rq_total": 5, "upstream_rq_201": 5, "upstream_rq_active": 0})
}

func TestHostsByTLS(t *testing.T) {
	b := httptest.NewUnstartedServer(status(200))
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.StartTLS()
	defer b.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw}))
	socket := func(san string) string {
		return fmt.Sprintf(`transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: example.com, `+
			`common_tls_context: {alpn_protocols: [h2], validation_context: {trusted_ca: {inline_string: %q}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: %s}}]}}}}`, authority, san)
	}
	r := start(t, static(socket("example.com"), &backend{listener: b.Listener}), web(Route{}))
	for range 3 {
		if code, _, _ := r.get(); code != 200 {
			t.Errorf("answer %d", code)
		}
	}
	r.want(map[string]int{"ssl.handshake": 1, "upstream_cx_total": 1, "upstream_rq_200": 3})
	if certs := string(r.server.Admin().Request("GET", "/certs", nil).Body); !strings.Contains(certs, b.Certificate().SerialNumber.Text(16)) {
		t.Errorf("/certs: %s", certs)
	}

	other := start(t, static(socket("example.org"), &backend{listener: b.Listener}), web(Route{}))
	if code, _, _ := other.get(); code != 503 {
		t.Errorf("answer %d of a host with another name, want 503", code)
	}
	other.want(map[string]int{"ssl.fail_verify_san": 1, "upstream_cx_connect_fail": 1, "upstream_rq_pending_failure_eject": 1, "upstream_rq_503": 1, "upstream_rq_total": 0})
}

func TestDefaultBinding(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	b.does(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr, " ", r.Header.Get("X-Forwarded-For"))
	})
	r := start(t, "cluster_manager: {upstream_bind_config: {source_address: {address: 127.0.0.9, port_value: 0}}}\n"+static("", b), web(Route{}))
	if _, body, _ := r.get("X-Forwarded-For", "192.0.2.1"); !strings.HasPrefix(body, "127.0.0.9:") || !strings.HasSuffix(body, " 192.0.2.1, 127.0.0.1") {
		t.Errorf("the host sees %q", body)
	}
}

func TestZoneAwareRouting(t *testing.T) {
	near, far := newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")
	group := func(zone, address string) string {
		return "      - locality: {zone: " + zone + "}\n        lb_endpoints:\n" + endpoint(address)
	}
	r := start(t, `node: {id: n, cluster: edge, locality: {zone: a}}
cluster_manager: {local_cluster_name: edge}
static_resources:
  clusters:
  - name: edge
    load_assignment:
      cluster_name: edge
      endpoints:
`+group("a", "127.0.0.1:1")+group("b", "127.0.0.1:2")+`  - name: backend
    common_lb_config: {zone_aware_lb_config: {min_cluster_size: 1}}
    load_assignment:
      cluster_name: backend
      endpoints:
`+group("a", near.address())+group("b", far.address()), web(Route{}))
	const requests = 20
	for range requests {
		r.get()
	}
	if near.requests.Load() != requests || far.requests.Load() != 0 {
		t.Errorf("the near host got %d requests, the far one %d", near.requests.Load(), far.requests.Load())
	}
	r.want(map[string]int{"lb_zone_routing_all_directly": requests, "zone.a.a.upstream_rq_200": requests})
}

func TestDrain(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	r := start(t, static("", b), web(Route{}))
	if _, _, resp := r.get(); resp.Close {
		t.Error("asked to close without a drain")
	}
	r.server.Admin().Request("POST", "/healthcheck/fail", nil)
	if code, _, resp := r.get(); code != 200 || !resp.Close {
		t.Errorf("health check failed: answer %d, close %t", code, resp.Close)
	}
	r.server.Admin().Request("POST", "/healthcheck/ok", nil)
	if code, _, resp := r.get(); code != 200 || resp.Close {
		t.Errorf("health check restored: answer %d, close %t", code, resp.Close)
	}
	if reply := r.server.Admin().Request("POST", "/drain_listeners", nil); string(reply.Body) != "OK\n" {
		t.Errorf("drain: %q", reply.Body)
	}
	if c, err := net.Dial("tcp", r.address("web")); err == nil {
		_ = c.Close()
		t.Error("a drained listener accepts")
	}
	if code, _, _ := r.get(); code != 200 { // over the connection there is
		t.Errorf("answer %d over an old connection", code)
	}
	name := "listener." + strings.ReplaceAll(r.address("web"), ":", "_")
	eventually(t, "the connection that was to be closed is", func() bool { return r.stat(name+".downstream_cx_active") == 1 })
	r.want(map[string]int{
		"listener_manager.listener_stopped": 1, name + ".downstream_cx_total": 2, name + ".downstream_cx_active": 1,
		"upstream_rq_total": 4, "upstream_cx_total": 1,
	})
}
