package transport_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// option reads a socket option of a connection.
func option(t *testing.T, conn net.Conn, level, name int) int {
	t.Helper()
	rc, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var v int
	var got error
	if err := rc.Control(func(fd uintptr) { v, got = unix.GetsockoptInt(int(fd), level, name) }); err != nil || got != nil {
		t.Fatal(err, got)
	}
	return v
}

// dialPlain connects to a new plain text server.
func dialPlain(t *testing.T, c *config.Cluster) (net.Conn, *server) {
	t.Helper()
	s := serve(t, nil)
	conn, err := dialer(t, c).Dial(context.Background(), hostAt(s.address, nil), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, s
}

func TestKeepalive(t *testing.T) {
	idle := func(conn net.Conn) [4]int {
		return [4]int{
			option(t, conn, unix.SOL_SOCKET, unix.SO_KEEPALIVE), option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPCNT),
			option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL),
		}
	}
	c := cluster(nil)
	conn, _ := dialPlain(t, c)
	system := idle(conn)
	if system[0] != 0 {
		t.Errorf("without a setting keepalive is %d, want 0", system[0])
	}
	c.Keepalive = &config.Keepalive{}
	conn, _ = dialPlain(t, c)
	if got, want := idle(conn), [4]int{1, system[1], system[2], system[3]}; got != want {
		t.Errorf("with an empty setting: %v, want those of the system %v", got, want)
	}
	c.Keepalive = &config.Keepalive{Probes: 4, Time: 77 * time.Second, Interval: 11 * time.Second}
	conn, _ = dialPlain(t, c)
	if got, want := idle(conn), [4]int{1, 4, 77, 11}; got != want {
		t.Errorf("keepalive, probes, time, interval: %v, want %v", got, want)
	}
	c.Keepalive = &config.Keepalive{Time: 100000 * time.Second}
	s := serve(t, nil)
	if _, err := dialer(t, c).Dial(context.Background(), hostAt(s.address, nil), transport.Options{}); err == nil || !strings.Contains(err.Error(), "keepalive") {
		t.Errorf("a time that the system refuses: %v, want an error", err)
	}
}

func ip(text string, port uint16) config.AddressSpec {
	a := config.AddressSpec{Kind: config.SocketAddress, Host: text, Port: port}
	a.IP, _ = netip.ParseAddr(text)
	return a
}

func TestSourceAddress(t *testing.T) {
	c := cluster(nil)
	c.Bind = &config.Bind{Source: ip("127.0.0.2", 0)}
	_, s := dialPlain(t, c)
	if got := s.last(t).remote.(*net.TCPAddr).AddrPort().Addr(); got != v4(127, 0, 0, 2) {
		t.Errorf("the connection comes from %s, want 127.0.0.2", got)
	}

	c.Bind = &config.Bind{Source: ip("::1", 0), Additional: []config.AddressSpec{ip("127.0.0.3", 0)}}
	_, s = dialPlain(t, c)
	if got := s.last(t).remote.(*net.TCPAddr).AddrPort().Addr(); got != v4(127, 0, 0, 3) {
		t.Errorf("the connection comes from %s, want that of the same family, 127.0.0.3", got)
	}

	// An empty address and port mean no binding and override the default.
	f := transport.New(transport.Config{Bind: &config.Bind{Source: ip("127.0.0.4", 0)}})
	for text, bind := range map[string]*config.Bind{"127.0.0.1": {Source: config.AddressSpec{Kind: config.SocketAddress}}, "127.0.0.4": nil} {
		c.Bind = bind
		s := serve(t, nil)
		dialerOf(t, f, c).mustSay(t, hostAt(s.address, nil), transport.Options{})
		if got := s.last(t).remote.(*net.TCPAddr).AddrPort().Addr().String(); got != text {
			t.Errorf("the connection comes from %s, want %s", got, text)
		}
	}
}

func TestSourceAddressThatCannotBeHad(t *testing.T) {
	for _, source := range []string{"192.0.2.1", "::1"} {
		c := cluster(nil)
		c.Bind = &config.Bind{Source: ip(source, 0)}
		s := serve(t, nil)
		d := dialer(t, c)
		_, err := d.Dial(context.Background(), hostAt(s.address, nil), transport.Options{})
		if stageOf(err) != transport.Bind || !strings.Contains(err.Error(), source) || d.count("bind_errors") != 1 {
			t.Errorf("dial from %s: %v, %d bind errors; want a bind error, 1", source, err, d.count("bind_errors"))
		}
		if e := (*transport.Error)(nil); !errors.As(err, &e) || !e.Local {
			t.Errorf("dial from %s: %v is charged to the host", source, err)
		}
	}
}

func TestFreebind(t *testing.T) {
	c := cluster(nil)
	c.ConnectTimeout = 20 * time.Millisecond // it is bound, but no answer comes
	c.Bind = &config.Bind{Source: ip("192.0.2.1", 0), Freebind: true}
	d := dialer(t, c)
	_, err := d.Dial(context.Background(), hostAt(serve(t, nil).address, nil), transport.Options{})
	if err == nil || stageOf(err) == transport.Bind || d.count("bind_errors") != 0 {
		t.Errorf("dial: %v, %d bind errors; want an error when connecting and 0", err, d.count("bind_errors"))
	}
}

func TestSocketOptions(t *testing.T) {
	c := cluster(nil)
	c.Bind = &config.Bind{Options: []config.SocketOption{
		{Level: unix.SOL_SOCKET, Name: unix.SO_PRIORITY, IsInt: true, Int: 5, State: config.StatePrebind},
		{Level: unix.IPPROTO_TCP, Name: unix.TCP_USER_TIMEOUT, Buf: "\x39\x30\x00\x00", State: config.StateBound},
	}}
	conn, _ := dialPlain(t, c)
	if got := option(t, conn, unix.SOL_SOCKET, unix.SO_PRIORITY); got != 5 {
		t.Errorf("priority %d, want 5", got)
	}
	if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != 12345 {
		t.Errorf("user timeout %d, want 12345", got)
	}
	c.Bind.Options[0].Name = 12345
	_, err := dialer(t, c).Dial(context.Background(), hostAt(serve(t, nil).address, nil), transport.Options{})
	if err == nil || !strings.Contains(err.Error(), "socket option level 1 name 12345") {
		t.Errorf("an option that does not exist: %v, want an error that names it", err)
	}
}

func TestUnixSocket(t *testing.T) {
	c := cluster(nil)
	c.Bind = &config.Bind{Source: ip("127.0.0.2", 0)} // means nothing here
	c.Keepalive = &config.Keepalive{Probes: 1}
	s := serveOn(t, listen(t, "unix", filepath.Join(t.TempDir(), "s")), nil)
	dialer(t, c).mustSay(t, hostAt(s.address, nil), transport.Options{})
}

func TestConnectTimeout(t *testing.T) {
	// A listener that accepts but never shakes hands.
	ln := listen(t, "tcp", "127.0.0.1:0")
	t.Cleanup(func() { ln.Close() })
	h := hostAt(config.Address{IP: ln.Addr().(*net.TCPAddr).AddrPort()}, nil)
	c := cluster(&config.TLS{})
	c.ConnectTimeout = 10 * time.Millisecond
	_, err := dialer(t, c).Dial(context.Background(), h, transport.Options{})
	if e, ok := err.(*transport.Error); !ok || !e.Timeout || !strings.Contains(e.Error(), "not connected in 10ms") {
		t.Errorf("dial: %v, want a timeout of 10ms", err)
	}

	// The end of the caller's own deadline, whether it was before or comes now, is not a
	// timeout of the cluster.
	c.ConnectTimeout = time.Hour
	for _, limit := range []time.Duration{-time.Second, 10 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		d := dialer(t, c)
		_, err = d.Dial(ctx, h, transport.Options{})
		if e, ok := err.(*transport.Error); !ok || e.Timeout || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("dial with a deadline in %v: %v, want the end of this deadline", limit, err)
		}
		cancel()
	}

	// A canceled context is not a timeout.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = dialer(t, c).Dial(ctx, h, transport.Options{})
	if e, ok := err.(*transport.Error); !ok || e.Timeout {
		t.Errorf("dial with a cancelled context: %v, want an error without a timeout", err)
	}
}

func TestRefusedConnection(t *testing.T) {
	closed := closedport.TCP(t)
	d := dialer(t, cluster(nil))
	_, err := d.Dial(context.Background(), hostAt(config.Address{IP: closed.AddrPort()}, nil), transport.Options{})
	want := `transport: cluster "c": host ` + closed.String() + ": connect: connection refused"
	if err == nil || err.Error() != want || stageOf(err) != transport.Connect {
		t.Errorf("dial: %v, want %s", err, want)
	}
}
