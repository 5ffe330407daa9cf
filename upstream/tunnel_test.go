package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// TestTunnelEndsIfNothingIsTaken lets one side take nothing while the other sends.
func TestTunnelEndsIfNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		client, from := net.Pipe()
		to, stuck := net.Pipe() // never read
		defer stuck.Close()
		go func() { _, _ = client.Write([]byte("hello")) }()
		moved := activity{begin: time.Now()}
		var written uint64
		copyUntilIdle(halfPipe{to}, from, 1<<10, time.Minute, &moved, &written)
		if written != 0 {
			t.Errorf("%d bytes are counted, want none", written)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("ended after %v, want 1m", took)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the client sees %v, want the end", err)
		}
	})
}

// TestBusyTunnelKeepsItsSilentDirection: a direction that is silent for longer than the
// idle time still passes data if the other one is busy meanwhile.
func TestBusyTunnelKeepsItsSilentDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, from := net.Pipe()
		to, host := net.Pipe()
		moved := activity{begin: time.Now()}
		var written uint64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			copyUntilIdle(halfPipe{to}, from, 1<<10, time.Minute, &moved, &written)
		}()
		for range 10 {
			moved.note(time.Now()) // as the other direction does
			time.Sleep(30 * time.Second)
		}
		go func() { _, _ = client.Write([]byte("hello")) }()
		_ = host.SetReadDeadline(time.Now().Add(time.Second))
		got := make([]byte, 5)
		if _, err := io.ReadFull(host, got); err != nil || string(got) != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
		<-ended
		if written != 5 {
			t.Errorf("%d bytes are counted", written)
		}
		if d := moved.since(time.Now()); d != time.Minute {
			t.Errorf("ended %v after the data, want 1m", d)
		}
	})
}

// TestTunnelWhenTheClockIsSet: the idle time of a tunnel passes whatever the time of day.
func TestTunnelWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		begin := time.Now()
		a := activity{begin: begin}
		set := clocktest.Set(begin, by)
		if d := a.since(set.Add(20 * time.Second)); d != 20*time.Second {
			t.Errorf("clock set by %v: %v since the begin, want 20s", by, d)
		}
		a.note(begin.Add(10 * time.Second))
		if d := a.since(set.Add(15 * time.Second)); d != 5*time.Second {
			t.Errorf("clock set by %v: %v since the last data, want 5s", by, d)
		}
	}
}

// wildConn panics when it is written to.
type wildConn struct{ net.Conn }

func (wildConn) Write([]byte) (int, error) { panic(guardtest.Canary) }

// halfPipe is a pipe as one end of a tunnel.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// TestTunnel passes data and ends on in both directions, and closes both connections
// when the context is done.
func TestTunnel(t *testing.T) {
	panics := guardtest.New(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // says "hello" back once it has all of it, and ends with its client
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				hello := make([]byte, 5)
				if _, err := io.ReadFull(c, hello); err == nil {
					_, _ = c.Write(hello)
				}
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	r, _ := started(t, func(o *Config) { o.Logger = panics.Logger() }, `{name: c, connect_timeout: 30s, per_connection_buffer_limit_bytes: 3, load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: `+strconv.Itoa(l.Addr().(*net.TCPAddr).Port)+`}}}}]}]}}`)
	cl := r.Cluster("c").Acquire()
	defer cl.Release()
	var toHost, toClient uint64 // of the last tunnel, once it has ended
	tunnel := func(ctx context.Context, wrap func(net.Conn) net.Conn) (client *net.TCPConn, ended chan struct{}) {
		h, err := cl.Pick(nil)
		if err != nil {
			t.Fatal(err)
		}
		up, err := cl.ConnectTunnel(t.Context(), h, DefaultPriority, transport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		at, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		dialed, err := net.Dial("tcp", at.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := at.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			toHost, toClient = up.Tunnel(ctx, wrap(accepted), 0)
		}()
		return dialed.(*net.TCPConn), ended
	}

	var last net.Conn
	plain := func(c net.Conn) net.Conn {
		last = c
		return c
	}
	client, ended := tunnel(t.Context(), plain)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); string(got) != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	<-ended
	client.Close()
	if toHost != 5 || toClient != 5 {
		t.Errorf("%d bytes to the host, %d to the client, want 5 and 5", toHost, toClient)
	}
	if err := last.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection of a client whose tunnel has ended: %v, want it closed", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	client, ended = tunnel(ctx, plain)
	defer client.Close()
	cancel()
	<-ended

	client, ended = tunnel(t.Context(), func(c net.Conn) net.Conn { return wildConn{c} })
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	panics.Caught("tunnel")
	<-ended
	if toHost != 5 || toClient != 0 {
		t.Errorf("%d bytes to the host, %d to a client that panics, want 5 and 0", toHost, toClient)
	}
	if n := cl.Stats().CxActive.Value(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	cl.tunnels.Range(func(any, any) bool {
		t.Error("the cluster keeps a tunnel that has ended")
		return false
	})
}

// TestTunnelsToFailedHosts lets a host turn unhealthy before the connection, between
// connection and tunnel, and under the tunnel: in the last two cases the tunnel ends if
// the cluster is configured so.
func TestTunnelsToFailedHosts(t *testing.T) {
	for fails, name := range []string{"before", "between", "under", "kept"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_, cl := started(t, nil, fmt.Sprintf("{name: c, connect_timeout: 30s, close_connections_on_host_health_failure: %t, load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: "+
				"[{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}}", name != "kept", l.Addr().(*net.TCPAddr).Port))
			h, err := cl.Pick(nil)
			if err != nil {
				t.Fatal(err)
			}
			fail := func(now int) {
				if now == fails || name == "kept" && now == 2 {
					h.SetFlags(status.FailedActiveHC)
					cl.healthChanged(h, 0)
				}
			}
			fail(0)
			up, err := cl.ConnectTunnel(t.Context(), h, DefaultPriority, transport.Options{})
			if err != nil {
				t.Fatal(err)
			}
			there, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer there.Close()
			fail(1)
			client, from := net.Pipe()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				up.Tunnel(t.Context(), from, 0)
			}()
			pass := func() error {
				if _, err := client.Write([]byte("x")); err != nil {
					return err
				}
				_, err := io.ReadFull(there, make([]byte, 1))
				return err
			}
			if fails != 1 {
				if err := pass(); err != nil {
					t.Fatal(err)
				}
				cl.endTunnels(host.New(host.Spec{})) // another host
				fail(2)
			}
			if name == "before" || name == "kept" {
				if err := pass(); err != nil {
					t.Errorf("the tunnel has ended: %v", err)
				}
				there.Close()
			}
			<-ended
		})
	}
}
