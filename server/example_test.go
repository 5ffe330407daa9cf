package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

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
