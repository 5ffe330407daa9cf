package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

// bare is the same proxy without the library: no clusters, no stats and no circuit
// breakers.
func bare(b *testing.B, hosts []string) http.Handler {
	var next atomic.Uint64
	t := &http.Transport{MaxIdleConnsPerHost: 1000}
	b.Cleanup(t.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: t, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		rewrite(p)
		p.Out.URL.Host = hosts[next.Add(1)%uint64(len(hosts))]
	}}
}

// listenHTTP serves a handler of net/http until the benchmark ends.
func listenHTTP(b *testing.B, h http.Handler) string {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// listen serves a handler until the benchmark ends.
func listen(b *testing.B, h fasthttp.RequestHandler) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := fasthttp.Server{Handler: h, NoDefaultServerHeader: true, NoDefaultDate: true, NoDefaultContentType: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	b.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return l.Addr().String()
}

// BenchmarkProxy compares a request straight to a host with one through the bare
// proxy and one through that of the library, all over real connections.
func BenchmarkProxy(b *testing.B) {
	body := strings.Repeat("x", 100)
	hosts := make([]string, 3)
	for i := range hosts {
		hosts[i] = listen(b, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(body) })
	}
	p := startBench(b, hosts)
	for _, impl := range []struct{ name, address string }{
		{"direct", hosts[0]}, {"bare", listenHTTP(b, bare(b, hosts))}, {"library", p.Listeners().List()[0].Addresses[0].String()},
	} {
		for _, clients := range []int{1, 8 * runtime.GOMAXPROCS(0)} {
			b.Run(fmt.Sprintf("impl=%s/clients=%d", impl.name, clients), func(b *testing.B) {
				c := fasthttp.HostClient{Addr: impl.address, MaxConns: 1000}
				defer c.CloseIdleConnections()
				ask := func() {
					req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
					req.SetRequestURI("http://" + impl.address + "/")
					if err := c.Do(req, resp); err != nil || resp.StatusCode() != 200 || len(resp.Body()) != len(body) {
						b.Errorf("answer %d, %v", resp.StatusCode(), err)
					}
					fasthttp.ReleaseRequest(req)
					fasthttp.ReleaseResponse(resp)
				}
				ask()
				b.ReportAllocs()
				before := processorTime(b)
				defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
				if clients == 1 {
					for b.Loop() {
						ask()
					}
					return
				}
				b.SetParallelism(clients / runtime.GOMAXPROCS(0))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						ask()
					}
				})
			})
		}
	}
}

// processorTime returns how long this process has kept processors busy: client,
// proxy and hosts together. Other processes disturb it less than the time that
// passes.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startBench runs a proxy to the hosts.
func startBench(b *testing.B, hosts []string) *server.Server {
	b.Helper()
	text := "static_resources:\n  clusters:\n  - name: backend\n    outlier_detection: {}\n    circuit_breakers: {thresholds: [{max_connections: 100000, max_requests: 100000, max_pending_requests: 100000}]}\n" +
		"    load_assignment:\n      cluster_name: backend\n      endpoints:\n      - lb_endpoints:\n"
	for _, h := range hosts {
		text += endpoint(h)
	}
	boot, err := bootstrap.Parse("boot.yaml", []byte(text), bootstrap.Options{})
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := boot.Server(bootstrap.Startup{})
	if err != nil {
		b.Fatal(err)
	}
	p, err := newProxy(cfg, []Route{web(Route{Address: "127.0.0.1:0"})})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Listen(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	<-p.Initialized()
	return p
}

// BenchmarkLibrary is what a request costs in the library alone: to find its
// cluster and host, pass the circuit breakers, and be counted.
func BenchmarkLibrary(b *testing.B) {
	p := startBench(b, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"})
	picks := sync.Pool{New: func() any { return new(lb.Context) }}
	one := func() {
		cl := p.Clusters().Cluster("backend").Acquire()
		defer cl.Release()
		pick := picks.Get().(*lb.Context)
		defer picks.Put(pick)
		if cl.MaintenanceMode() {
			b.Error("under maintenance")
		}
		h, err := cl.Pick(pick)
		if err != nil {
			b.Error(err)
			return
		}
		requests := &cl.Breakers(upstream.DefaultPriority).Requests
		if !requests.TryTake() {
			b.Error("breaker is open")
		}
		cl.RequestStarted(h)
		cl.RequestFinished(h, upstream.RequestEnd{Status: 200, Took: time.Millisecond})
		cl.TimeoutBudgetPerTry(time.Millisecond, 0)
		cl.TimeoutBudget(time.Millisecond, 15*time.Second)
		requests.Release()
	}
	b.Run("cores=one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			one()
		}
	})
	b.Run("cores=all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	})
}
