package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func hostAt(addr string, change ...func(*host.Spec)) *host.Host {
	s := host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(addr)}}
	for _, c := range change {
		c(&s)
	}
	return host.New(s)
}

func proberFor(t *testing.T, c Config, h *host.Host) Prober {
	t.Helper()
	if c.Cluster == "" {
		c.Cluster = "backend"
	}
	if c.Check.Timeout == 0 {
		c.Check.Timeout = 5 * time.Second
	}
	var n counts
	if c.Stats.Attempt == nil {
		c.Stats = n.stats()
	}
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := k.prober(h)
	t.Cleanup(p.Close)
	return p
}

func probe(t *testing.T, p Prober) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.Probe(ctx)
}

func TestHTTPAnswers(t *testing.T) {
	ranges := []config.StatusRange{{Start: 200, End: 201}}
	service := &config.StringMatcher{Kind: config.MatchPrefix, Pattern: "pay"}
	tests := []struct {
		name   string
		check  config.HTTPHealthCheck
		status int
		header map[string]string
		body   string
		want   Outcome
	}{
		{"good", config.HTTPHealthCheck{Expected: ranges}, 200, nil, "", Outcome{}},
		{"wrong status", config.HTTPHealthCheck{Expected: ranges}, 204, nil, "", Outcome{Kind: Active, Why: "status 204"}},
		{"upper end is open", config.HTTPHealthCheck{Expected: ranges}, 201, nil, "", Outcome{Kind: Active, Why: "status 201"}},
		{"another range", config.HTTPHealthCheck{Expected: []config.StatusRange{{Start: 100, End: 101}, {Start: 300, End: 400}}}, 302, map[string]string{"location": "/"}, "", Outcome{}},
		{"retriable", config.HTTPHealthCheck{Expected: ranges, Retriable: []config.StatusRange{{Start: 500, End: 600}}}, 503, nil, "", Outcome{Kind: Active, Retriable: true, Why: "status 503"}},
		{"degraded", config.HTTPHealthCheck{Expected: ranges}, 200, map[string]string{"x-proxy-degraded": ""}, "", Outcome{Degraded: true}},
		{"excluded", config.HTTPHealthCheck{Expected: ranges}, 503, map[string]string{"x-proxy-immediate-health-check-fail": "true"}, "", Outcome{Kind: Active, Exclude: true, Why: "status 503"}},
		{"excluded by the mere header", config.HTTPHealthCheck{Expected: ranges}, 503, map[string]string{"x-proxy-immediate-health-check-fail": ""}, "", Outcome{Kind: Active, Exclude: true, Why: "status 503"}},
		{"nothing is excluded that passes", config.HTTPHealthCheck{Expected: ranges}, 200, map[string]string{"x-proxy-immediate-health-check-fail": "true"}, "", Outcome{}},
		{"body", config.HTTPHealthCheck{Expected: ranges, ResponseBufferSize: 1024, Receive: [][]byte{[]byte("a"), []byte("c")}}, 200, nil, "xaxbcx", Outcome{}},
		{"body out of order", config.HTTPHealthCheck{Expected: ranges, ResponseBufferSize: 1024, Receive: [][]byte{[]byte("c"), []byte("a")}}, 200, nil, "xaxbcx", Outcome{Kind: Active, Why: "unexpected body"}},
		{"body beyond the buffer", config.HTTPHealthCheck{Expected: ranges, ResponseBufferSize: 4, Receive: [][]byte{[]byte("ok")}}, 200, nil, "1234ok", Outcome{Kind: Active, Why: "unexpected body"}},
		{"whole body", config.HTTPHealthCheck{Expected: ranges, Receive: [][]byte{[]byte("ok")}}, 200, nil, strings.Repeat("x", 5000) + "ok", Outcome{}},
		{"wrong body is not retriable", config.HTTPHealthCheck{Expected: ranges, Retriable: []config.StatusRange{{Start: 500, End: 600}}, Receive: [][]byte{[]byte("ok")}}, 503, nil, "no", Outcome{Kind: Active, Why: "unexpected body"}},
		{"service", config.HTTPHealthCheck{Expected: ranges, ServiceName: service}, 200, map[string]string{"x-proxy-upstream-healthchecked-cluster": "payments"}, "", Outcome{}},
		{"wrong service", config.HTTPHealthCheck{Expected: ranges, ServiceName: service}, 200, map[string]string{"x-proxy-upstream-healthchecked-cluster": "orders"}, "", Outcome{Kind: Active, Why: "another service"}},
		{"service at the end", config.HTTPHealthCheck{Expected: ranges, ServiceName: &config.StringMatcher{Kind: config.MatchSuffix, Pattern: "ments"}}, 200, map[string]string{"x-proxy-upstream-healthchecked-cluster": "payments"}, "", Outcome{}},
		{"part of the service", config.HTTPHealthCheck{Expected: ranges, ServiceName: &config.StringMatcher{Kind: config.MatchContains, Pattern: "YM", IgnoreCase: true}}, 200, map[string]string{"x-proxy-upstream-healthchecked-cluster": "payments"}, "", Outcome{}},
		{"pattern of the service", config.HTTPHealthCheck{Expected: ranges, ServiceName: &config.StringMatcher{Kind: config.MatchRegex, Pattern: "p.*s"}}, 200, map[string]string{"x-proxy-upstream-healthchecked-cluster": "payments"}, "", Outcome{}},
		{"body that is long", config.HTTPHealthCheck{Expected: ranges}, 200, nil, strings.Repeat("x", 4<<20), Outcome{}},
		{"no service", config.HTTPHealthCheck{Expected: ranges, ServiceName: service}, 200, nil, "", Outcome{Kind: Active, Why: "another service"}},
	}
	for _, http2 := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/http2=%t", tt.name, http2), func(t *testing.T) {
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if got := r.ProtoMajor == 2; got != http2 {
						t.Errorf("spoken %s", r.Proto)
					}
					for k, v := range tt.header {
						w.Header().Set(k, v)
					}
					w.WriteHeader(tt.status)
					io.WriteString(w, tt.body)
				}))
				startBoth(srv)
				defer srv.Close()
				tt.check.Path, tt.check.HTTP2 = "/healthz", http2
				var n counts
				p := proberFor(t, Config{Check: config.HealthCheck{HTTP: tt.check, ReuseConnection: true}, Stats: n.stats()}, hostAt(srv.Listener.Addr().String()))
				if got := probe(t, p); got != tt.want {
					t.Errorf("outcome %+v, want %+v", got, tt.want)
				}
				if want := tt.check.ServiceName != nil; (n.verify.Value() == 1) != want {
					t.Errorf("verify_cluster = %d", n.verify.Value())
				}
				p.Close()
			})
		}
	}
}

// startBoth starts a server that speaks HTTP/1 and HTTP/2 without TLS.
func startBoth(srv *httptest.Server) {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = p
	srv.Start()
}

func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	check := config.HealthCheck{ReuseConnection: true, HTTP: config.HTTPHealthCheck{
		Path: "/check/%2F?deep=1", Method: "PUT", Host: "given.example", Send: []byte("ping"),
		HeadersToAdd: []config.HeaderToAdd{
			{Name: "x-a", Value: "1"}, {Name: "x-a", Value: "2"}, {Name: "x-a", Value: "3", Append: config.AddIfAbsent},
			{Name: "x-b", Value: "1"}, {Name: "x-b", Value: "2", Append: config.OverwriteOrAdd},
			{Name: "x-c", Value: "1", Append: config.OverwriteIfExists}, {Name: "x-d"}, {Name: "x-e", KeepEmpty: true},
			{Name: "x-gone", Value: "1"},
		},
		HeadersToRemove: []string{"x-gone"},
	}}
	addr := srv.Listener.Addr().String()
	if o := probe(t, proberFor(t, Config{Check: check}, hostAt(addr))); o != (Outcome{}) {
		t.Fatalf("outcome %+v", o)
	}
	if got.Method != "PUT" || got.RequestURI != "/check/%2F?deep=1" || got.Host != "given.example" || got.UserAgent() != "Proxy/HC" || string(body) != "ping" {
		t.Errorf("request %s %s, host %s, agent %s, body %q", got.Method, got.RequestURI, got.Host, got.UserAgent(), body)
	}
	for name, want := range map[string]string{"X-A": "[1 2]", "X-B": "[2]", "X-C": "[]", "X-D": "[]", "X-E": "[]", "X-Gone": "[]", "Accept-Encoding": "[]"} {
		if v := fmt.Sprint(got.Header[name]); v != want {
			t.Errorf("%s: %s, want %s", name, v, want)
		}
	}

	// The host of the endpoint goes first, the cluster name is the last resort.
	named := hostAt(addr, func(s *host.Spec) { s.HealthCheckHostname = "own.example" })
	probe(t, proberFor(t, Config{Check: check}, named))
	if got.Host != "own.example" {
		t.Errorf("host %s, want that of the endpoint", got.Host)
	}
	check.HTTP = config.HTTPHealthCheck{Path: "/", HeadersToRemove: []string{"user-agent"}}
	probe(t, proberFor(t, Config{Check: check, Product: "envoy"}, hostAt(addr)))
	if got.Host != "backend" || got.Method != "GET" || got.UserAgent() != "" {
		t.Errorf("host %s, method %s, agent %q", got.Host, got.Method, got.UserAgent())
	}
	// Another address to check.
	other := hostAt("127.0.0.1:1", func(s *host.Spec) { s.HealthCheckAddress = config.Address{IP: netip.MustParseAddrPort(addr)} })
	if o := probe(t, proberFor(t, Config{Check: check, Product: "envoy"}, other)); o != (Outcome{}) {
		t.Errorf("by the check address: %+v", o)
	}
}

func TestVerifyClusterIsDrawn(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	c := Config{
		Check:   config.HealthCheck{ReuseConnection: true, HTTP: config.HTTPHealthCheck{Path: "/", ServiceName: &config.StringMatcher{Pattern: "x"}}},
		Runtime: upstreamtest.Runtime{"health_check.verify_cluster": 30},
	}
	for x, want := range map[uint64]Kind{29: Active, 30: Passed, 99: Passed, 100: Active} {
		c.Rand = func() uint64 { return x }
		if o := probe(t, proberFor(t, c, hostAt(srv.Listener.Addr().String()))); o.Kind != want {
			t.Errorf("number %d: %+v", x, o)
		}
	}
}

// TestHTTPConnections counts connections while the server ends some.
func TestHTTPConnections(t *testing.T) {
	var conns, closing atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if closing.Load() == 1 {
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, strings.Repeat("x", 2000))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	post := config.HTTPHealthCheck{Path: "/", Method: "POST", Send: []byte("ping")}
	for i, http := range []config.HTTPHealthCheck{{Path: "/"}, post, {Path: "/"}} {
		reuse := i < 2
		conns.Store(0)
		p := proberFor(t, Config{Check: config.HealthCheck{ReuseConnection: reuse, HTTP: http}}, hostAt(srv.Listener.Addr().String()))
		for range 3 {
			if o := probe(t, p); o != (Outcome{}) {
				t.Errorf("outcome %+v", o)
			}
		}
		if want := map[bool]int64{true: 1, false: 3}[reuse]; conns.Load() != want {
			t.Errorf("reuse=%t: %d connections, want %d", reuse, conns.Load(), want)
		}
		if !reuse {
			continue
		}
		// Closed from the other side between two checks: no failure.
		srv.CloseClientConnections()
		if o := probe(t, p); o != (Outcome{}) {
			t.Errorf("after a close in between: %+v", o)
		}
		closing.Store(1)
		probe(t, p)
		probe(t, p)
		closing.Store(0)
		if conns.Load() != 3 {
			t.Errorf("%d connections, want 3: one more after each close", conns.Load())
		}
	}
}

// TestHTTPServerFails runs a whole checker against a server that turns bad,
// hangs, and is killed.
func TestHTTPServerFails(t *testing.T) {
	var mode atomic.Value
	mode.Store("ok")
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mode.Load() {
		case "bad":
			w.WriteHeader(500)
		case "hang":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "trickle":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}))
	var c counts
	s := settings()
	s.Timeout, s.UnhealthyThreshold, s.HealthyThreshold = 50*time.Millisecond, 2, 2
	s.Interval, s.UnhealthyInterval, s.UnhealthyEdgeInterval, s.HealthyEdgeInterval = time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond
	s.HTTP.Path = "/"
	k, err := New(Config{Check: s, Stats: c.stats(), Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	h := hostAt(srv.Listener.Addr().String())
	h.SetFlags(status.FailedActiveHC)
	k.Add(h)
	await := func(what string, want status.Flags) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for h.Flags() != want {
			if time.Now().After(deadline) {
				t.Fatalf("%s: flags %s, want %s", what, h.Flags(), want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("up", 0)
	mode.Store("bad")
	await("bad", status.FailedActiveHC)
	mode.Store("ok")
	await("up again", 0)
	mode.Store("hang")
	await("hanging", status.FailedActiveHC|status.ActiveHCTimeout)
	mode.Store("ok")
	await("answering again", 0)
	mode.Store("trickle")
	await("answer without an end", status.FailedActiveHC|status.ActiveHCTimeout)
	mode.Store("ok")
	await("ending again", 0)
	close(release)
	srv.CloseClientConnections()
	srv.Close()
	await("killed", status.FailedActiveHC)
	if c.network.Value() < 2 || c.success.Value() == 0 {
		t.Errorf("network_failure %d, success %d", c.network.Value(), c.success.Value())
	}
}

func listen(t *testing.T, serve func(net.Conn)) (addr string, conns *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return ln.Addr().String(), conns
}

// TestTCPConnectionsEndBetweenChecks: a host that closes connections between checks stays
// healthy.
func TestTCPConnectionsEndBetweenChecks(t *testing.T) {
	closed := make(chan struct{})
	addr, conns := listen(t, func(c net.Conn) {
		_, _ = io.CopyN(c, c, 4)
		_ = c.Close()
		closed <- struct{}{}
	})
	check := config.TCPHealthCheck{Send: []byte("ping"), Receive: [][]byte{[]byte("ping")}}
	p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.TCPCheck, TCP: check, ReuseConnection: true}}, hostAt(addr))
	for i := range 3 {
		if o := p.Probe(t.Context()); o.Kind != Passed {
			t.Fatalf("check %d: outcome %+v", i, o)
		}
		<-closed
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// unwritable is a connection that fails when it is written to.
type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestTCPWritesFail: a kept connection that cannot be written to is replaced once.
func TestTCPWritesFail(t *testing.T) {
	dials := 0
	broken := func() net.Conn {
		one, two := net.Pipe()
		t.Cleanup(func() { two.Close() })
		return unwritable{one}
	}
	c := Config{
		Check: config.HealthCheck{TCP: config.TCPHealthCheck{Send: []byte("ping"), Receive: [][]byte{[]byte("ping")}}},
		Dial: func(context.Context, *host.Host, config.Address) (net.Conn, error) {
			dials++
			return broken(), nil
		},
	}
	h := hostAt("127.0.0.1:1")
	p := &tcpProber{c: &c, host: h, conn: broken(), at: h.HealthCheckAddress()}
	if o := p.Probe(t.Context()); o.Kind != Network || dials != 1 || p.conn != nil {
		t.Errorf("outcome %+v after %d connections, want a failure after 1, and none kept", o, dials)
	}
}

func TestTCP(t *testing.T) {
	echo := func(c net.Conn) { io.Copy(c, c) }
	for _, tt := range []struct {
		name    string
		serve   func(net.Conn)
		check   config.TCPHealthCheck
		reuse   bool
		want    Kind
		conns   int64 // after three checks
		timeout bool
	}{
		{"connect only", func(c net.Conn) {
			if b, _ := io.ReadAll(c); len(b) > 0 {
				t.Errorf("connect only sent %q", b)
			}
		}, config.TCPHealthCheck{Send: []byte("never sent")}, true, Passed, 3, false},
		{"echo", echo, config.TCPHealthCheck{Send: []byte("ping pong"), Receive: [][]byte{[]byte("pi"), []byte("po")}}, true, Passed, 1, false},
		{"echo, no reuse", echo, config.TCPHealthCheck{Send: []byte("ping"), Receive: [][]byte{[]byte("ping")}}, false, Passed, 3, false},
		{"closed", func(net.Conn) {}, config.TCPHealthCheck{Send: []byte("x"), Receive: [][]byte{[]byte("y")}}, true, Network, 3, false},
		{"banner without a request", func(c net.Conn) { io.WriteString(c, "220 ready\r\n"); io.Copy(io.Discard, c) }, config.TCPHealthCheck{Receive: [][]byte{[]byte("220")}}, false, Passed, 3, false},
		{"wrong answer until the deadline", echo, config.TCPHealthCheck{Send: []byte("x"), Receive: [][]byte{[]byte("y")}}, true, Network, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, conns := listen(t, tt.serve)
			p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.TCPCheck, TCP: tt.check, ReuseConnection: tt.reuse}}, hostAt(addr))
			if tt.timeout {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				defer cancel()
				if o := p.Probe(ctx); o.Kind != Network {
					t.Errorf("outcome %+v", o)
				}
				<-ctx.Done() // the deadline of the connection may pass first
				return
			}
			for i := range 3 {
				if o := probe(t, p); o.Kind != tt.want {
					t.Errorf("check %d: %+v, want kind %d", i, o, tt.want)
				}
			}
			p.Close()
			for deadline := time.Now().Add(30 * time.Second); conns.Load() < tt.conns && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if conns.Load() != tt.conns {
				t.Errorf("%d connections, want %d", conns.Load(), tt.conns)
			}
		})
	}
	p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.TCPCheck}}, hostAt(closedport.TCP(t).String()))
	if o := probe(t, p); o.Kind != Network {
		t.Errorf("nobody there: %+v", o)
	}
}

func TestGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	health := grpchealth.NewServer()
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health)
	go srv.Serve(ln)
	defer srv.Stop()
	addr := ln.Addr().String()
	health.SetServingStatus("up", healthpb.HealthCheckResponse_SERVING)
	health.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)

	check := func(service string) Prober {
		return proberFor(t, Config{Check: config.HealthCheck{Kind: config.GRPCCheck, ReuseConnection: true, GRPC: config.GRPCHealthCheck{ServiceName: service}}}, hostAt(addr))
	}
	for service, want := range map[string]Kind{"": Passed, "up": Passed, "down": Active, "nobody": Active} {
		if o := probe(t, check(service)); o.Kind != want {
			t.Errorf("service %q: %+v, want kind %d", service, o, want)
		}
	}
	p := check("up")
	probe(t, p)
	health.SetServingStatus("up", healthpb.HealthCheckResponse_NOT_SERVING)
	if o := probe(t, p); o.Kind != Active {
		t.Errorf("turned off: %+v", o)
	}
	srv.Stop()
	if o := probe(t, p); o.Kind != Network {
		t.Errorf("killed: %+v", o)
	}
}

// TestGRPCRequest checks the bytes of a request.
func TestGRPCRequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var got metadata.MD
	var left time.Duration
	srv := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		got, _ = metadata.FromIncomingContext(ctx)
		end, _ := ctx.Deadline()
		left = time.Until(end)
		return next(ctx, m)
	}))
	healthpb.RegisterHealthServer(srv, grpchealth.NewServer())
	go srv.Serve(ln)
	defer srv.Stop()
	check := config.HealthCheck{Kind: config.GRPCCheck, ReuseConnection: true, Timeout: 1234 * time.Second, GRPC: config.GRPCHealthCheck{
		Metadata: []config.HeaderToAdd{{Name: "x-a", Value: "1"}},
	}}
	addr := ln.Addr().String()
	for _, tt := range []struct{ authority, hostname, want string }{
		{"", "", "backend"}, {"given.example", "", "given.example"}, {"given.example", "own.example", "own.example"},
	} {
		check.GRPC.Authority = tt.authority
		p := proberFor(t, Config{Check: check}, hostAt(addr, func(s *host.Spec) { s.HealthCheckHostname = tt.hostname }))
		if o := probe(t, p); o != (Outcome{}) {
			t.Fatalf("outcome %+v", o)
		}
		if a, x := fmt.Sprint(got[":authority"]), fmt.Sprint(got["x-a"]); a != "["+tt.want+"]" || x != "[1]" {
			t.Errorf("authority %s, x-a %s, want [%s], [1]", a, x, tt.want)
		}
		if left < 600*time.Second || left > 1234*time.Second {
			t.Errorf("%v are left of the timeout of 1234 s", left)
		}
	}
}

func TestGRPCWithoutTheService(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	go srv.Serve(ln)
	defer srv.Stop()
	p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.GRPCCheck, ReuseConnection: true}}, hostAt(ln.Addr().String()))
	if o := probe(t, p); o.Kind != Active {
		t.Errorf("unimplemented: %+v", o)
	}
}

// FuzzServingStatus checks that no answer makes the reader fail, and that only
// field 1 counts.
func FuzzServingStatus(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 7, 8, 1, 18, 1, 'x', 8, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := servingStatus(b)
		if len(b) < 5 && got != 0 {
			t.Errorf("%x: status %d of no message", b, got)
		}
		if got == grpcServing && !strings.Contains(string(b[5:]), "\x01") && !strings.Contains(string(b[5:]), "\x81") {
			t.Errorf("%x: serving without a 1", b)
		}
	})
}

// TestServingStatus has fields that are unknown to us before and behind the status.
func TestServingStatus(t *testing.T) {
	for message, want := range map[string]uint64{
		"\x08\x01": 1, "\x08\x02\x08\x01": 1, "\x10\x07\x08\x01": 1, "\x08\x01\x10\x07": 1,
		"\x12\x02\x08\x02\x08\x01": 1, "\x08\x01\x12\x02\x08\x02": 1, "\x08\x01\x12\x00": 1,
		"\x15\x08\x02\x08\x02\x08\x01": 1, "\x08\x01\x15\x08\x02\x08\x02": 1,
		"\x11\x08\x02\x08\x02\x08\x02\x08\x02\x08\x01": 1, "\x08\x01\x11\x08\x02\x08\x02\x08\x02\x08\x02": 1,
		// Malformed: cut off, or of an unknown type.
		"\x08\x01\x08": 0, "\x08\x01\x12\x03ab": 0, "\x08\x01\x12": 0, "\x08\x01\x15abc": 0, "\x08\x01\x11abcdefg": 0, "\x08\x01\x13": 0, "\x08\x01\x80": 0,
	} {
		frame := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
		if got := servingStatus(frame); got != want {
			t.Errorf("%q: %d, want %d", message, got, want)
		}
	}
}

// TestUnsupportedService: a checker that cannot judge the name is refused.
func TestUnsupportedService(t *testing.T) {
	for _, s := range []config.StringMatcher{{Kind: config.MatchRegex, Pattern: "("}, {Kind: config.MatchCustom}} {
		if _, err := New(Config{Check: config.HealthCheck{HTTP: config.HTTPHealthCheck{ServiceName: &s}}}); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

// TestCutOffAnswers ends connections in the middle of answers, and sends too much.
func TestCutOffAnswers(t *testing.T) {
	body := config.HTTPHealthCheck{Path: "/", Receive: [][]byte{[]byte("ok")}}
	h2 := body
	h2.HTTP2 = true
	const settings, headers, data = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88", "\x00\x00\x02\x00\x00\x00\x00\x00\x01ok"
	for name, tt := range map[string]struct {
		check  config.HealthCheck
		answer string
	}{
		"http":  {config.HealthCheck{HTTP: body}, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"},
		"http2": {config.HealthCheck{HTTP: h2}, settings + headers + data},
		"grpc":  {config.HealthCheck{Kind: config.GRPCCheck}, settings + headers + data},
		"tcp":   {config.HealthCheck{Kind: config.TCPCheck, TCP: config.TCPHealthCheck{Receive: [][]byte{[]byte("end")}}}, strings.Repeat("x", 2*maxReceived)},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := listen(t, func(c net.Conn) {
				if tt.check.Kind != config.TCPCheck {
					untilRequest(c, name != "http")
				}
				_, _ = io.WriteString(c, tt.answer)
				if tt.check.Kind != config.TCPCheck {
					_ = c.(*net.TCPConn).CloseWrite()
				}
				_, _ = io.Copy(io.Discard, c)
			})
			if o := probe(t, proberFor(t, Config{Check: tt.check}, hostAt(addr))); o != (Outcome{Kind: Network}) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

// TestHangingConnection: the check after a timeout uses another connection.
func TestHangingConnection(t *testing.T) {
	for name, check := range map[string]config.HealthCheck{
		"http2": {HTTP: config.HTTPHealthCheck{Path: "/", HTTP2: true}}, "grpc": {Kind: config.GRPCCheck},
	} {
		t.Run(name, func(t *testing.T) {
			hangs := make(chan struct{}, 2)
			addr, conns := listen(t, func(c net.Conn) {
				_, _ = io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				untilRequest(c, true)
				hangs <- struct{}{}
				_, _ = io.Copy(io.Discard, c)
			})
			check.ReuseConnection = true
			p := proberFor(t, Config{Check: check}, hostAt(addr))
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-hangs; cancel() }()
				if o := p.Probe(ctx); o.Kind != Network {
					t.Errorf("outcome %+v", o)
				}
				cancel()
			}
			p.Close()
			if conns.Load() != 2 {
				t.Errorf("%d connections, want 2", conns.Load())
			}
		})
	}
}

// TestDefaults checks with random numbers and a report that nobody wants.
func TestDefaults(t *testing.T) {
	k, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	k.c.Rand()
	addr, _ := listen(t, func(c net.Conn) {
		untilRequest(c, false)
		_, _ = io.WriteString(c, "220 mail.example\r\n\r\n")
	})
	if o := probe(t, proberFor(t, Config{Check: config.HealthCheck{HTTP: config.HTTPHealthCheck{Path: "/"}}}, hostAt(addr))); o.Kind != Network {
		t.Errorf("outcome %+v", o)
	}
}

// TestMovedHost: a host that stands for a name is checked where it is now, kept
// connections or not.
func TestMovedHost(t *testing.T) {
	bad := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	good := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	startBoth(bad)
	startBoth(good)
	defer bad.Close()
	defer good.Close()
	for _, http2 := range []bool{false, true} {
		h := hostAt(bad.Listener.Addr().String())
		p := proberFor(t, Config{Check: config.HealthCheck{ReuseConnection: true, HTTP: config.HTTPHealthCheck{Path: "/", HTTP2: http2}}}, h)
		if o := probe(t, p); o.Kind != Active {
			t.Errorf("before: %+v", o)
		}
		h.SetAddress(config.Address{IP: netip.MustParseAddrPort(good.Listener.Addr().String())}, config.Address{})
		if o := probe(t, p); o.Kind != Passed {
			t.Errorf("after the move: %+v", o)
		}
		p.Close()
	}
	serving := func(status healthpb.HealthCheckResponse_ServingStatus) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		health, srv := grpchealth.NewServer(), grpc.NewServer()
		health.SetServingStatus("", status)
		healthpb.RegisterHealthServer(srv, health)
		go srv.Serve(ln)
		t.Cleanup(srv.Stop)
		return ln.Addr().String()
	}
	moving := hostAt(serving(healthpb.HealthCheckResponse_NOT_SERVING))
	g := proberFor(t, Config{Check: config.HealthCheck{Kind: config.GRPCCheck, ReuseConnection: true}}, moving)
	if o := probe(t, g); o.Kind != Active {
		t.Errorf("before: %+v", o)
	}
	moving.SetAddress(config.Address{IP: netip.MustParseAddrPort(serving(healthpb.HealthCheckResponse_SERVING))}, config.Address{})
	if o := probe(t, g); o.Kind != Passed {
		t.Errorf("after the move: %+v", o)
	}
	g.Close()

	echo, _ := listen(t, func(c net.Conn) { io.Copy(c, c) })
	silent, _ := listen(t, func(c net.Conn) {})
	h := hostAt(echo)
	p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.TCPCheck, ReuseConnection: true, TCP: config.TCPHealthCheck{Send: []byte("x"), Receive: [][]byte{[]byte("x")}}}}, h)
	if o := probe(t, p); o.Kind != Passed {
		t.Errorf("before: %+v", o)
	}
	h.SetAddress(config.Address{IP: netip.MustParseAddrPort(silent)}, config.Address{})
	if o := probe(t, p); o.Kind != Network {
		t.Errorf("after the move: %+v", o)
	}
	p.Close()
}

// TestNoConnectionForALackOfThisMachine looks at what each prober makes of an
// error of Dial.
func TestNoConnectionForALackOfThisMachine(t *testing.T) {
	lack, refused := errors.New("no descriptors"), errors.New("refused")
	for _, check := range []config.HealthCheck{
		{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/"}},
		{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/", HTTP2: true}},
		{Kind: config.TCPCheck}, {Kind: config.GRPCCheck},
	} {
		for err, want := range map[error]Kind{lack: Local, refused: Network} {
			p := proberFor(t, Config{
				Check: check, IsLocal: func(err error) bool { return errors.Is(err, lack) },
				Dial: func(context.Context, *host.Host, config.Address) (net.Conn, error) { return nil, err },
			}, hostAt("10.0.0.1:80"))
			if got := probe(t, p); got != (Outcome{Kind: want}) {
				t.Errorf("check %d, http2 %t, %v: outcome %+v, want kind %d", check.Kind, check.HTTP.HTTP2, err, got, want)
			}
		}
	}
}

// untilRequest reads until the header of a request has come.
func untilRequest(c net.Conn, http2 bool) {
	in := bufio.NewReader(c)
	if !http2 {
		_, _ = http.ReadRequest(in)
		return
	}
	_, _ = in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	for {
		frame := make([]byte, 9)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		_, _ = in.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2]))
		if frame[3] == 1 {
			return
		}
	}
}

// TestProtocolErrorsAreReported answers checks with invalid answers.
func TestProtocolErrorsAreReported(t *testing.T) {
	h1, h2 := config.HealthCheck{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/"}}, config.HealthCheck{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/", HTTP2: true}}
	const frame = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for _, tt := range []struct {
		name   string
		check  config.HealthCheck
		answer string
		want   int
	}{
		{"no-http", h1, "220 mail.example ESMTP\r\n\r\n", 1},
		{"bad-status", h1, "HTTP/1.1 abc Odd\r\n\r\n", 1},
		{"bad-header", h1, "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 1},
		{"bad-chunk", h1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 1},
		{"closed", h1, "", 0},
		{"cut-off", h1, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0},
		{"settings-on-a-stream", h2, "\x00\x00\x00\x04\x00\x00\x00\x00\x01", 1},
		{"headers-for-nobody", h2, frame + "\x00\x00\x01\x01\x04\x00\x00\x00\x00\x88", 1},
		{"closed-after-settings", h2, frame, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, _ := listen(t, func(c net.Conn) {
				untilRequest(c, tt.check.HTTP.HTTP2)
				_, _ = io.WriteString(c, tt.answer)
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			})
			told := 0
			p := proberFor(t, Config{Check: tt.check, ProtocolError: func() { told++ }}, hostAt(addr))
			if o := probe(t, p); o != (Outcome{Kind: Network}) || told != tt.want {
				t.Errorf("outcome %+v, told %d times, want %d", o, told, tt.want)
			}
		})
	}
}
