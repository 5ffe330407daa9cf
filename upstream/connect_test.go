package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/streamend"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// reached is a running cluster of one host that really listens.
type reached struct {
	*rig
	c    *Cluster
	h    *host.Host
	peer chan net.Conn // the host's ends of connections
}

func reach(t *testing.T, more string) *reached {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &reached{peer: make(chan net.Conn, 10)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.peer <- c
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	text := fmt.Sprintf("name: c\nconnect_timeout: 30s\n%s\nload_assignment:\n  cluster_name: c\n  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]\n",
		more, l.Addr().(*net.TCPAddr).Port)
	r.rig, r.c = started(t, nil, text)
	r.h = r.c.Sets()[0].Hosts[0]
	return r
}

// connect connects and returns both ends.
func (r *reached) connect() (*Conn, net.Conn) {
	r.t.Helper()
	c, err := r.c.Connect(context.Background(), r.h, DefaultPriority, transport.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c, <-r.peer
}

func TestConnectCountsUse(t *testing.T) {
	type stats = map[string]uint64
	r := reach(t, "max_requests_per_connection: 2")
	c, peer := r.connect()
	if c.Host() != r.h || c.Cluster() != r.c || !c.Alive() {
		t.Error("not what it was made for")
	}
	c.Begin()
	for _, part := range []string{"h", "ello"} {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := peer.Write([]byte("hi!")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
	}
	r.check("cluster.c.", stats{"upstream_cx_total": 1, "upstream_cx_active": 1, "upstream_cx_tx_bytes_total": 5, "upstream_cx_rx_bytes_total": 3})
	r.st.Flush(store.FlushOptions{}).Close()
	if n := r.c.Stats().CxConnectMS.Snapshot().Cumulative.Count(); n != 1 {
		t.Errorf("%d times of connecting, want 1", n)
	}
	c.End()
	if !c.Reusable() {
		t.Error("one of two requests is too much")
	}
	c.Begin()
	if c.Reusable() {
		t.Error("a third request is allowed")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_ = c.Close() // counts nothing
	_ = peer.Close()
	r.check("cluster.c.", stats{
		"upstream_cx_active": 0, "upstream_cx_destroy": 1, "upstream_cx_destroy_local": 1, "upstream_cx_destroy_remote": 0,
		"upstream_cx_destroy_with_active_rq": 1, "upstream_cx_max_requests": 1,
	})
	if n := r.c.Breakers(DefaultPriority).Connections.Current(); n != 0 {
		t.Errorf("%d connections are held", n)
	}

	c, peer = r.connect()
	_ = peer.Close()
	waittest.Until(t, "the connection ends", func() bool { return !c.Alive() })
	_ = c.Close()
	r.check("cluster.c.", stats{"upstream_cx_destroy": 2, "upstream_cx_destroy_local": 1, "upstream_cx_destroy_remote": 1, "upstream_cx_destroy_with_active_rq": 1})
}

// TestEnded: what the host sends is no end for a user that does not read.
func TestEnded(t *testing.T) {
	r := reach(t, "")
	c, peer := r.connect()
	if _, err := peer.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "data arrives", func() bool { quiet, _ := streamend.Quiet(c.Conn); return !quiet })
	if c.Ended() {
		t.Error("data is taken for the end")
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = peer.Close()
	waittest.Until(t, "the connection ends", c.Ended)
	_ = c.Close()
	r.check("cluster.c.", map[string]uint64{"upstream_cx_destroy_remote": 1})
}

// TestDialGRPCFails: callers can tell the errors apart, and get no connection.
func TestDialGRPCFails(t *testing.T) {
	closed := fmt.Sprintf("name: closed\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}\n", closedport.TCP(t).Port)
	r, _ := started(t, nil, closed)
	if _, err := r.AddOrUpdate(parse(t, "name: empty\n"), ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"missing": ErrNoCluster, "empty": ErrNoHost, "closed": syscall.ECONNREFUSED} {
		if conn, err := r.DialGRPC(context.Background(), name); conn != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, %v, want %v", name, conn, err, want)
		}
	}
}

func TestConnectKeepsTheBreaker(t *testing.T) {
	r := reach(t, "circuit_breakers: {thresholds: [{max_connections: 1}]}")
	first, peer := r.connect()
	defer peer.Close()
	if _, err := r.c.Connect(context.Background(), r.h, DefaultPriority, transport.Options{}); !errors.Is(err, ErrOverflow) {
		t.Errorf("second connection: %v, want ErrOverflow", err)
	}
	other, err := r.c.Connect(context.Background(), r.h, HighPriority, transport.Options{})
	if err != nil {
		t.Fatalf("of the other priority: %v", err)
	}
	_ = other.Close()
	_ = (<-r.peer).Close()
	_ = first.Close()
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 2, "upstream_cx_overflow": 1, "circuit_breakers.default.cx_open": 0})

	// A host without a connection gets one though others hold all there may be.
	r.c.Breakers(DefaultPriority).Connections.Take()
	lone, peer := r.connect()
	_, _ = lone.Close(), peer.Close()
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 3, "upstream_cx_overflow": 2})
}

// TestAdditionalAddressesAreTried connects to a host whose first address refuses,
// and which loses the good one by an update that replaces no host.
func TestAdditionalAddressesAreTried(t *testing.T) {
	good := listener(t, nil)
	bad := closedport.TCP(t)
	socket := func(a *net.TCPAddr) string {
		return fmt.Sprintf("address: {socket_address: {address: %s, port_value: %d}}", a.IP, a.Port)
	}
	assignment := func(additional *net.TCPAddr) string {
		return fmt.Sprintf("load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {%s, additional_addresses: [{%s}]}}]}]}", socket(bad), socket(additional))
	}
	r, c := started(t, nil, "name: c\nconnect_timeout: 30s\nupstream_connection_options: {happy_eyeballs_config: {first_address_family_version: V6}}\n"+assignment(good)+"\n")
	h := c.Sets()[0].Hosts[0]
	conn, err := c.Connect(context.Background(), h, DefaultPriority, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteAddr().String(); got != good.String() {
		t.Errorf("connected to %s, want %s", got, good)
	}
	_ = conn.Close()
	want := map[string]uint64{"upstream_cx_total": 1, "upstream_cx_connect_fail": 0, "upstream_cx_active": 0, "membership_change": 1}
	r.check("cluster.c.", want)

	a, err := ResolveAssignment(parse(t, "name: c\n"+assignment(bad)+"\n").Cluster.Assignment)
	if err != nil {
		t.Fatal(err)
	}
	c.UpdateHosts(0, a)
	if now := c.Sets()[0].Hosts; len(now) != 1 || now[0] != h || len(h.Addresses()) != 2 || h.Addresses()[1].IP != bad.AddrPort() {
		t.Errorf("hosts %v with addresses %v", now, h.Addresses())
	}
	if _, err := c.Connect(context.Background(), h, DefaultPriority, transport.Options{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want connection refused", err)
	}
	want["upstream_cx_total"], want["upstream_cx_connect_fail"] = 2, 1
	r.check("cluster.c.", want)
}

func TestAdditionalAddressesAreOfTheNetwork(t *testing.T) {
	r := newRig(t, nil)
	_, err := r.AddOrUpdate(parse(t, "name: c\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}, additional_addresses: [{address: {pipe: {path: /run/s}}}]}}]}]}\n"), "")
	if want := `upstream: cluster "c": upstream: additional address "/run/s" of endpoint "10.0.0.1" is not an IP address with a port`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestPoolsWithoutConnectionsGetOne has the breaker open because of connections that
// are of no use to the caller.
func TestPoolsWithoutConnectionsGetOne(t *testing.T) {
	r := reach(t, "circuit_breakers: {thresholds: [{max_connections: 1}, {priority: HIGH, max_connections: 1}]}")
	type connect func(context.Context, *host.Host, Priority, transport.Options) (*Conn, error)
	pools := []struct {
		name     string
		connect  connect
		priority Priority
	}{
		{"tunnels", r.c.ConnectTunnel, DefaultPriority}, {"requests", r.c.Connect, DefaultPriority},
		{"urgent tunnels", r.c.ConnectTunnel, HighPriority}, {"urgent requests", r.c.Connect, HighPriority},
	}
	var open []*Conn
	for _, p := range pools {
		c, err := p.connect(context.Background(), r.h, p.priority, transport.Options{})
		if err != nil {
			t.Fatalf("the first connection for %s: %v", p.name, err)
		}
		open = append(open, c)
		if _, err := p.connect(context.Background(), r.h, p.priority, transport.Options{}); !errors.Is(err, ErrOverflow) {
			t.Errorf("a second connection for %s: %v, want ErrOverflow", p.name, err)
		}
	}
	for _, p := range []Priority{DefaultPriority, HighPriority} {
		if n := r.c.Breakers(p).Connections.Current(); n != 2 {
			t.Errorf("%d connections of %s priority are held, want 2", n, p)
		}
	}
	for _, c := range open {
		_, _ = c.Close(), (<-r.peer).Close()
	}
	for i := range r.h.InPool {
		if n := r.h.InPool[i].Value(); n != 0 {
			t.Errorf("%d connections are left in pool %d", n, i)
		}
	}
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 4, "upstream_cx_active": 0, "upstream_cx_overflow": 6})
}

// TestHostsHaveALimit: per_host_thresholds bound the connections to one host. Connections
// of both priorities count.
func TestHostsHaveALimit(t *testing.T) {
	r := reach(t, "circuit_breakers: {per_host_thresholds: [{max_connections: 2}, {priority: HIGH, max_connections: 3}]}")
	var open []*Conn
	for i, want := range []struct {
		p        Priority
		overflow bool
	}{
		{DefaultPriority, false}, {DefaultPriority, false}, {DefaultPriority, true},
		{HighPriority, false}, {HighPriority, true},
	} {
		c, err := r.c.Connect(context.Background(), r.h, want.p, transport.Options{})
		if errors.Is(err, ErrOverflow) != want.overflow {
			t.Errorf("connection %d: %v, want ErrOverflow: %t", i, err, want.overflow)
		}
		if err == nil {
			open = append(open, c)
		}
	}
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 3, "upstream_cx_overflow": 2})
	c, err := r.c.ConnectTunnel(context.Background(), r.h, DefaultPriority, transport.Options{})
	if err != nil {
		t.Fatalf("the first tunnel: %v", err)
	}
	for _, c := range append(open, c) {
		_, _ = c.Close(), (<-r.peer).Close()
	}
	if r.c.HostFull(r.h, DefaultPriority) {
		t.Error("full without a connection")
	}
}

func TestConnectFails(t *testing.T) {
	r := reach(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.c.Connect(ctx, r.h, DefaultPriority, transport.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 1, "upstream_cx_connect_fail": 1, "upstream_cx_active": 0, "upstream_cx_destroy": 1})
	if n := r.c.Breakers(DefaultPriority).Connections.Current(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
	if n := r.h.InPool[DefaultPriority].Value(); n != 0 {
		t.Errorf("%d connections are left in the pool", n)
	}
}

func TestRefusedRequests(t *testing.T) {
	r, c := started(t, nil, static("c", 1, ""))
	h := c.Sets()[0].Hosts[0]
	c.RequestRefused(nil, RequestEnd{Status: 503})
	c.RequestRefused(h, RequestEnd{Status: 503})
	c.RequestRefused(h, RequestEnd{Retried: true}) // nobody saw an answer
	r.check("cluster.c.", map[string]uint64{
		"upstream_rq_503": 2, "upstream_rq_5xx": 2, "upstream_rq_completed": 2, "upstream_rq_total": 0, "upstream_rq_active": 0,
	})
	if s := &h.Stats; s.RqError.Value() != 2 || s.RqTotal.Value() != 0 || s.RqActive.Value() != 0 {
		t.Errorf("host: %+v", s.All())
	}
	v := r.st.View()
	defer v.Close()
	if _, ok := v.Find("cluster.c.upstream_rq_time"); ok {
		t.Error("a time is recorded, though no host answered")
	}
}

// TestAliveOverTLS leaves a connection alone as its peer does various things. What
// TLS itself says, as the tickets that come after each handshake, is no reason to
// give it up.
func TestAliveOverTLS(t *testing.T) {
	const socket = "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, " +
		"common_tls_context: {tls_params: {tls_minimum_protocol_version: %s, tls_maximum_protocol_version: %[1]s}}}}"
	for _, version := range []string{"TLSv1_2", "TLSv1_3"} {
		for name, then := range map[string]func(*tls.Conn) error{
			"closes by TLS": (*tls.Conn).Close,
			"just closes":   func(c *tls.Conn) error { return c.NetConn().Close() },
			"says more":     func(c *tls.Conn) error { _, err := c.Write([]byte("HTTP/1.1 408 Request Timeout\r\n")); return err },
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				r := reach(t, fmt.Sprintf(socket, version))
				server, own := make(chan *tls.Conn, 1), &tls.Config{Certificates: []tls.Certificate{selfSigned(t).Certificate}}
				go func() {
					conn := tls.Server(<-r.peer, own)
					if err := conn.Handshake(); err != nil {
						t.Error(err)
					}
					server <- conn
				}()
				c, err := r.c.Connect(context.Background(), r.h, DefaultPriority, transport.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				peer := <-server
				defer peer.NetConn().Close()
				for range 3 { // first with the tickets unread, then without
					if c.Ended() || !c.Alive() {
						t.Fatal("given up before anything happened")
					}
				}
				go func() { _, _ = peer.Write([]byte("answer")) }()
				if _, err := io.ReadFull(c, make([]byte, 6)); err != nil {
					t.Fatalf("what is asked of an idle connection has broken it: %v", err)
				}
				if !c.Alive() {
					t.Error("given up after an answer")
				}
				if err := then(peer); err != nil {
					t.Fatal(err)
				}
				waittest.Until(t, "the connection ends", c.Ended)
				if c.Alive() {
					t.Error("alive after its end")
				}
				_ = c.Close()
				r.check("cluster.c.", map[string]uint64{"upstream_cx_destroy_remote": 1, "upstream_cx_destroy_local": 0})
			})
		}
	}
}

// drip is a connection that always has more to read and never delivers it in time.
type drip struct{ *net.TCPConn }

func (drip) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestRecordsByteByByte: a host cannot hold up the pool of an idle connection by a TLS
// record that it sends byte by byte.
func TestRecordsByteByByte(t *testing.T) {
	r := reach(t, "")
	c, peer := r.connect()
	defer c.Close()
	defer peer.Close()
	if _, err := peer.Write([]byte{0x17}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the byte arrives", func() bool {
		quiet, _ := streamend.Quiet(c.Conn)
		return !quiet
	})
	c.Conn = tls.Client(drip{c.Conn.(*net.TCPConn)}, &tls.Config{InsecureSkipVerify: true})
	if c.Alive() {
		t.Error("a connection with a part of a record counts as usable")
	}
}
