package xds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// rawCodec lets a server send any bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// badServer answers each stream with bytes of its own, whatever is asked.
func badServer(t *testing.T, serve func(n int, s grpc.ServerStream) error) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		return serve(i, s)
	}))
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		running.Wait()
	})
	return l.Addr().String()
}

// overGRPC runs a client whose control plane is a static cluster.
func overGRPC(t *testing.T, address string, change func(*Config)) *rig {
	r := &rig{t: t, st: store.New(store.Options{})}
	d := config.NewDecoder(config.Options{})
	o := Config{
		Store: r.st, Decoder: d, CDS: &config.ConfigSource{Kind: config.SourceADS},
		ADS:             &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}},
		Rand:            func() uint64 { return 0 },
		MaxMessageBytes: 1 << 16,
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	r.m = upstream.New(upstream.Config{Store: r.st, Source: c.Source})
	c.Attach(r.m)
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.ClusterText("static.yaml", fmt.Appendf(nil, `{name: control, load_assignment: {cluster_name: control, endpoints: [{lb_endpoints: [
  {endpoint: {address: {socket_address: {address: %q, port_value: %s}}}}]}]}}`, ip, port), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.m.AddStatic(p); err != nil {
		t.Fatal(err)
	}
	if err := r.m.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		r.m.Close()
	})
	return r
}

func TestBadServersDoNoHarm(t *testing.T) {
	good := (&answer{kind: clusterKind, version: "1", nonce: "n", resources: []proto.Message{edsCluster("a")}}).encode(t, false)
	bad := []func(s grpc.ServerStream) error{
		func(grpc.ServerStream) error { return errors.New("go away") },
		func(grpc.ServerStream) error { return nil },
		func(s grpc.ServerStream) error { return s.SendMsg([]byte{0xff, 0xff, 0xff}) },
		func(s grpc.ServerStream) error { return s.SendMsg(make([]byte, 1<<20)) },
		func(s grpc.ServerStream) error {
			return errors.Join(s.SendMsg([]byte{}), s.SendMsg([]byte("\x22\x03odd")), s.SendMsg([]byte{0xff}))
		},
	}
	address := badServer(t, func(n int, s grpc.ServerStream) error {
		if n < len(bad) {
			return bad[n](s)
		}
		var q []byte
		if err := errors.Join(s.RecvMsg(&q), s.SendMsg(good)); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	r := overGRPC(t, address, nil)
	eventually(t, "clusters", "update_success=1", func() string { return r.counts("cluster_manager.cds.update_success") })
	equal(t, "stats", r.counts("cluster_manager.cds.update_failure", "cluster_manager.cds.update_rejected", "control_plane.connected_state"),
		fmt.Sprintf("update_failure=%d update_rejected=0 connected_state=1", len(bad)))
	eventually(t, "connections", "upstream_cx_total=6 upstream_cx_active=1 upstream_cx_destroy=5", func() string {
		return r.counts("cluster.control.upstream_cx_total", "cluster.control.upstream_cx_active", "cluster.control.upstream_cx_destroy")
	})
	v := r.st.View()
	defer v.Close()
	c, ok := v.Find("control_plane.identifier")
	if !ok || c.Text() != "the plane" {
		t.Errorf("identifier %q, want that of the server", c.Text())
	}
}

func TestTargetByURI(t *testing.T) {
	address := badServer(t, func(_ int, s grpc.ServerStream) error {
		var q []byte
		if err := errors.Join(s.RecvMsg(&q), s.SendMsg((&answer{kind: clusterKind, version: "1", nonce: "n"}).encode(t, true))); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	r := overGRPC(t, address, func(c *Config) {
		c.ADS = &config.APISource{Type: config.APIDeltaGRPC, GRPC: []config.GRPCService{{TargetURI: address}}}
	})
	eventually(t, "version", "1", r.m.Version)
	equal(t, "connections by the cluster", r.counts("cluster.control.upstream_cx_total"), "upstream_cx_total=0")
}

func TestTransportSocketIsNeverIgnored(t *testing.T) {
	st := store.New(store.Options{})
	c := &config.Cluster{Name: "x", Sockets: config.Sockets{Default: config.Socket{Kind: config.TLSSocket}}}
	called := errors.New("the dialer")
	dial := func(_ context.Context, got *config.Cluster, _ *host.Host, _ host.Address) (net.Conn, error) {
		if got != c {
			t.Error("another cluster")
		}
		return nil, called
	}
	for _, tt := range []struct {
		o    Config
		want string
	}{
		{Config{}, `xds: cluster "x" has a transport socket, and nothing here makes such connections`},
		{Config{Dial: dial}, "the dialer"},
	} {
		tt.o.Store, tt.o.Decoder = st, config.NewDecoder(config.Options{})
		x, err := New(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		m := upstream.New(upstream.Config{Store: st})
		defer m.Close()
		x.Attach(m)
		if _, err := x.connect(context.Background(), c, host.New(host.Spec{})); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
		if _, err := x.dial(context.Background(), "nobody"); err == nil || err.Error() != `xds: cluster "nobody" of the control plane is not there` {
			t.Errorf("error %v", err)
		}
	}
}
