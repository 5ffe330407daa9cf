package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
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

// badServer answers each stream with its own bytes, whatever the request.
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

// overGRPC runs a client whose control plane is a static cluster; socket is a line
// with its transport socket.
func overGRPC(t *testing.T, address, socket string, change func(*Config)) *rig {
	return overWildGRPC(t, address, socket, change, nil)
}

// overWildGRPC is overGRPC with random numbers for the clusters.
func overWildGRPC(t *testing.T, address, socket string, change func(*Config), rand func() uint64) *rig {
	r := &rig{t: t, st: store.New(store.Options{})}
	d := decode.NewDecoder(decode.Options{})
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
	r.m = upstream.New(upstream.Config{Store: r.st, Source: c.Source, Rand: rand})
	c.Attach(r.m)
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.ClusterText("static.yaml", fmt.Appendf(nil, `name: control
load_assignment: {cluster_name: control, endpoints: [{lb_endpoints: [
  {endpoint: {address: {socket_address: {address: %q, port_value: %s}}}}]}]}
%s`, ip, port, socket), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.m.AddStatic(p); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	r.m.Start()
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
	r := overGRPC(t, address, "", nil)
	waittest.Equal(t, "clusters", "update_success=1", func() string { return r.counts("cluster_manager.cds.update_success") })
	equal(t, "stats", r.counts("cluster_manager.cds.update_failure", "cluster_manager.cds.update_rejected", "control_plane.connected_state"),
		fmt.Sprintf("update_failure=%d update_rejected=0 connected_state=1", len(bad)))
	waittest.Equal(t, "connections", "upstream_cx_total=6 upstream_cx_active=1 upstream_cx_destroy=5", func() string {
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
	sent := make(chan string, 100)
	address := badServer(t, func(_ int, s grpc.ServerStream) error {
		m, _ := metadata.FromIncomingContext(s.Context())
		sent <- strings.Join(m.Get("token"), ",")
		var q []byte
		if err := errors.Join(s.RecvMsg(&q), s.SendMsg((&answer{kind: clusterKind, version: "1", nonce: "n"}).encode(t, true))); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	r := overGRPC(t, address, "", func(c *Config) {
		c.ADS = &config.APISource{Type: config.APIDeltaGRPC, GRPC: []config.GRPCService{{TargetURI: address, Metadata: []config.HeaderToAdd{{Name: "token", Value: "secret"}}}}}
	})
	waittest.Equal(t, "version", "1", r.m.Version)
	equal(t, "metadata", <-sent, "secret")
	equal(t, "connections by the cluster", r.counts("cluster.control.upstream_cx_total"), "upstream_cx_total=0")
}

// TestMessagesOfATargetAreLimited: a target can have a lower limit than the client.
func TestMessagesOfATargetAreLimited(t *testing.T) {
	answer := (&answer{kind: clusterKind, version: "1", nonce: "n"}).encode(t, false)
	address := badServer(t, func(_ int, s grpc.ServerStream) error {
		var q []byte
		if err := errors.Join(s.RecvMsg(&q), s.SendMsg(answer)); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	r := overGRPC(t, address, "", func(c *Config) { c.ADS.GRPC[0].MaxReceiveBytes = uint32(len(answer) - 1) })
	waittest.Equal(t, "failures", "true", func() string { return fmt.Sprint(r.counts("cluster_manager.cds.update_failure") != "update_failure=0") })
	equal(t, "version", r.m.Version(), "")
	r = overGRPC(t, address, "", func(c *Config) { c.ADS.GRPC[0].MaxReceiveBytes = uint32(len(answer)) })
	waittest.Equal(t, "version", "1", r.m.Version)
}

// TestTargetThatIsNoURI expects an error that names it instead of a stream.
func TestTargetThatIsNoURI(t *testing.T) {
	c := &Client{o: Config{Store: store.New(store.Options{}), MaxMessageBytes: 1 << 16}}
	st, err := c.openGRPC(t.Context(), &config.APISource{GRPC: []config.GRPCService{{TargetURI: "h:1\x7f"}}}, false, "/m")
	if st != nil || err == nil || !strings.HasPrefix(err.Error(), `xds: target "h:1\x7f": `) {
		t.Errorf("got %v, %v", st, err)
	}
}

func TestTransportSocketOfTheControlPlane(t *testing.T) {
	ca := certtest.Issue(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	sign := func(name string) *certtest.Pair {
		return certtest.Issue(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		}, ca)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	peers := make(chan string, 10)
	good := (&answer{kind: clusterKind, version: "1", nonce: "n"}).encode(t, false)
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{sign("control.example").Certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
	})), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		p, _ := peer.FromContext(s.Context())
		peers <- p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName
		if err := s.SendMsg(good); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	}))
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) })
	defer running.Wait()
	defer s.Stop()

	own := sign("proxy")
	r := overGRPC(t, l.Addr().String(), fmt.Sprintf(`transport_socket: {name: tls, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: control.example,
  common_tls_context: {
    tls_certificates: [{certificate_chain: {inline_string: %q}, private_key: {inline_string: %q}}],
    validation_context: {trusted_ca: {inline_string: %q}}}}}`,
		own.Chain, own.Key, ca.Chain), nil)
	waittest.Equal(t, "version", "1", r.m.Version)
	equal(t, "the server saw", <-peers, "proxy")
}

func TestControlPlanesThatCannotWork(t *testing.T) {
	st, d := store.New(store.Options{}), decode.NewDecoder(decode.Options{})
	from := func(cluster string) *config.APISource {
		return &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: cluster}}}
	}
	c, err := New(Config{
		Store: st, Decoder: d, ADS: from("nobody"), CDS: &config.ConfigSource{Kind: config.SourceAPI, API: from("hen")},
		Layers: []Layer{
			{Name: "good", Source: config.ConfigSource{Kind: config.SourceAPI, API: from("file")}},
			{Name: "bad", Source: config.ConfigSource{Kind: config.SourceAPI, API: from("egg")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := upstream.New(upstream.Config{Store: st, Source: c.Source})
	defer m.Close()
	c.Attach(m)
	for name, eds := range map[string]string{"hen": "ads: {}", "file": "path: /x"} {
		p, err := d.ClusterText("", fmt.Appendf(nil, "{name: %s, type: EDS, eds_cluster_config: {eds_config: {%s}}}", name, eds), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.AddStatic(p); err != nil {
			t.Fatal(err)
		}
	}
	const want = `xds: ads_config: there is no static cluster "nobody"
xds: cds_config: cluster "hen" gets its own hosts from a control plane
xds: runtime layer "bad": there is no static cluster "egg"`
	if err := c.Check(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := c.control("nobody"); err == nil || err.Error() != `xds: there is no cluster "nobody" for the control plane` {
		t.Errorf("error %v", err)
	}
	if _, err := m.DialGRPC(t.Context(), "nobody"); !errors.Is(err, upstream.ErrNoCluster) {
		t.Errorf("error %v", err)
	}
}

func TestKeepalives(t *testing.T) {
	d := decode.NewDecoder(decode.Options{})
	for _, tt := range []struct {
		options string
		want    keepalive.ClientParameters
		ok      bool
	}{
		{"{}", keepalive.ClientParameters{}, false},
		{"{connection_keepalive: {interval: 30s, timeout: 5s}}", keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 5 * time.Second}, true},
	} {
		p, err := d.ClusterText("", []byte("{name: c, http2_protocol_options: "+tt.options+"}"), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := keepalives(p.Cluster); got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %+v %t, want %+v %t", tt.options, got, ok, tt.want, tt.ok)
		}
	}
}
