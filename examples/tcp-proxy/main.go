// Command tcp-proxy forwards TCP connections to hosts in turn, as long as they accept
// connections. Stats and the state of the hosts are on the administration port.
//
//	go run ./examples/tcp-proxy 127.0.0.1:8080 127.0.0.1:8081
//	nc 127.0.0.1 9000
//	curl '127.0.0.1:9901/stats?filter=cx_' 127.0.0.1:9901/clusters
package main

import (
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	srv, err := newProxy("127.0.0.1:9000", "127.0.0.1:9901", os.Args[1:]...)
	if err == nil {
		err = srv.Run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// newProxy returns a server that forwards connections from address to hosts.
func newProxy(address, adminAddress string, hosts ...string) (srv *server.Server, err error) {
	backend, err := decode.Static{
		Name: "backend", Hosts: hosts, ConnectTimeout: time.Second, EjectAfter: 3, Check: &decode.StaticCheck{},
	}.Cluster()
	if err != nil {
		return nil, err
	}
	return server.New(server.Config{
		Admin:    admin.Config{Address: adminAddress},
		Clusters: server.Clusters{Static: []upstream.Parsed{backend}},
		Listeners: []server.Listener{{Name: "tcp", Address: address, Handle: func(ctx context.Context, client net.Conn) {
			forward(ctx, srv, client)
		}}},
	})
}

// forward connects client to a host, and tries another one if that fails.
func forward(ctx context.Context, srv *server.Server, client net.Conn) {
	cluster := srv.Clusters().Cluster("backend").Acquire()
	defer cluster.Release()
	for range 3 {
		host, err := cluster.Pick(nil)
		if err != nil {
			return // counted in upstream_cx_none_healthy
		}
		up, err := cluster.ConnectTunnel(ctx, host, upstream.DefaultPriority, transport.Options{})
		if err == nil {
			received, sent := up.Tunnel(ctx, client, time.Hour)
			srv.Store().Root().Counter("tcp.backend.downstream_cx_rx_bytes_total").Add(received)
			srv.Store().Root().Counter("tcp.backend.downstream_cx_tx_bytes_total").Add(sent)
			return
		} // counted in upstream_cx_connect_fail
	}
	cluster.Stats().CxConnectAttemptsExceeded.Inc()
}
