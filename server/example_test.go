package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// recorder keeps the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// A web service counts its requests by route and status, and serves the administration
// interface on its own port, behind its own access control.
func Example_service() {
	// Stats below "shop" are exposed without a prefix: http_requests_total.
	st := store.New(store.Options{Naming: naming.Rules{Namespaces: []string{"shop"}}})
	shop := st.Scope("shop")
	shop.Help(map[string]string{"http_requests_total": "Requests by route and status."})
	inFlight := shop.Gauge("http_requests_in_flight")
	instrument := func(route string, next http.HandlerFunc) http.Handler {
		latency := shop.Histogram("http_request_seconds", store.Seconds, tags.String("route", route))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inFlight.Inc()
			defer inFlight.Dec()
			begin, rec := time.Now(), &recorder{w, http.StatusOK}
			next(rec, r)
			latency.RecordDuration(time.Since(begin))
			shop.Counter("http_requests_total", tags.String("route", route), tags.String("status", strconv.Itoa(rec.status))).Inc()
		})
	}
	operators := func(next http.Handler) http.Handler { // the access control of the service
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, password, ok := r.BasicAuth(); !ok || password != "secret" {
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}

	mux := http.NewServeMux()
	srv, err := server.New(server.Config{
		Store:     st,
		Listeners: []server.Listener{{Name: "web", Address: "127.0.0.1:0", HTTP: mux}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux.Handle("/hello", instrument("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	mux.Handle("/metrics", srv.Admin())
	mux.Handle("/admin/", operators(http.StripPrefix("/admin", srv.Admin())))
	// srv.Run(ctx) serves the mux until ctx ends.

	for _, target := range []string{"/hello", "/admin/ready", "/metrics?filter=requests_total"} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost"+target, nil))
		fmt.Print(rec.Code, " ", rec.Body)
	}
	// Output:
	// 200 hello
	// 401 unauthorized
	// 200 # HELP http_requests_total Requests by route and status.
	// # TYPE http_requests_total counter
	// http_requests_total{route="/hello",status="200"} 1
}

func ExampleServer_Run() {
	srv, err := server.New(server.Config{Admin: admin.Config{Address: "127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	<-srv.Initialized()
	fmt.Println(srv.Admin().Request("GET", "/ready", nil).Status)
	stop()
	fmt.Println(<-done)
	// Output:
	// 200
	// <nil>
}

// Requests can be answered without a listener.
func ExampleServer_Admin() {
	st := store.New(store.Options{})
	st.Scope("jobs").Counter("done").Add(3)
	srv, err := server.New(server.Config{Store: st, Layers: []layers.Layer{
		{Name: "base", Kind: layers.Static, Values: map[string]any{"jobs.parallel": 4}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", srv.Admin().Request("GET", "/stats?filter=^jobs", nil).Body)
	fmt.Println(strings.Contains(string(srv.Admin().Request("GET", "/runtime", nil).Body), "jobs.parallel"))
	// Output:
	// jobs.done: 3
	// true
}

// A test of a program sets the clock and ends intervals itself.
func ExampleServer_Flusher() {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	st := store.New(store.Options{Now: clock})
	srv, err := server.New(server.Config{
		Store: st,
		Admin: admin.Config{Now: clock},
		Flush: flush.Config{After: []func(*store.Snapshot){func(snap *store.Snapshot) {
			for c, delta := range snap.CounterChanges {
				if c.Name() == "jobs.done" {
					fmt.Println(delta, "in", snap.Interval)
				}
			}
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := st.Scope("jobs").Counter("done")
	for range 2 {
		done.Add(3)
		now = now.Add(10 * time.Second)
		srv.Flusher().FlushNow()
	}
	fmt.Println(done.Value(), "in all")
	// Output:
	// 3 in 10s
	// 3 in 10s
	// 6 in all
}

// A TCP proxy: connections to the listener are forwarded to the hosts of a cluster, and
// counted by both.
func ExampleListener() {
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		c, err := host.Accept()
		if err == nil {
			fmt.Fprintln(c, "hello from the host")
			_ = c.Close()
		}
	}()

	backend, err := decode.StaticCluster("backend", host.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	var srv *server.Server
	forward := func(ctx context.Context, client net.Conn) {
		cluster := srv.Clusters().Cluster("backend").Acquire()
		defer cluster.Release()
		h, err := cluster.Pick(nil)
		if err != nil {
			return // counted in upstream_cx_none_healthy
		}
		conn, err := cluster.ConnectTunnel(ctx, h, upstream.DefaultPriority, transport.Options{})
		if err != nil {
			return // counted in upstream_cx_connect_fail
		}
		conn.Tunnel(ctx, client, time.Hour)
	}
	srv, err = server.New(server.Config{
		Clusters:  server.Clusters{Static: []upstream.Parsed{backend}},
		Listeners: []server.Listener{{Name: "tcp", Address: "127.0.0.1:0", Handle: forward}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()
	<-srv.Initialized()

	client, err := net.Dial("tcp", srv.Listeners().List()[0].Addresses[0].String())
	if err == nil {
		_, _ = io.WriteString(client, "hello\n")
		answer, _ := io.ReadAll(client)
		fmt.Printf("%s", answer)
		_ = client.Close()
	}
	fmt.Printf("%s", srv.Admin().Request("GET", "/stats?filter=backend.upstream_cx_total", nil).Body)
	stop()
	fmt.Println(<-done)
	// Output:
	// hello from the host
	// cluster.backend.upstream_cx_total: 1
	// <nil>
}
