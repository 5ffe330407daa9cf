package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// A dialer connects to hosts as their cluster is configured.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	factory := transport.New(transport.Config{})
	d, err := factory.Dialer(&config.Cluster{Name: "backend", ConnectTimeout: 5 * time.Second}, store.New(store.Options{}).Scope("cluster.backend"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	h := host.New(host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(l.Addr().String())}})
	conn, err := d.Dial(context.Background(), h, transport.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conn.RemoteAddr().String() == l.Addr().String(), d.Secure(h))
	_ = conn.Close()
	// Output: true false
}
