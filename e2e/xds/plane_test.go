package xds

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

const nodeID = "proxy-1"

// plane is a control plane that can be stopped and started again.
type plane struct {
	t       *testing.T
	ads     bool
	delta   bool
	address string
	cache   cache.SnapshotCache
	stop    func()
	flags   map[string]any // runtime values; nil: none
	secrets []*tlsv3.Secret

	mu       sync.Mutex // guards what follows
	problems []string   // of responses that were refused
	requests int
}

func newPlane(t *testing.T, ads, delta bool) *plane {
	p := &plane{t: t, ads: ads, delta: delta, address: "127.0.0.1:0"}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start serves an empty cache, at its previous address if it had one.
func (p *plane) start() {
	p.t.Helper()
	var l net.Listener
	waittest.Equal(p.t, "listening", "yes", func() string {
		var err error
		if l, err = net.Listen("tcp", p.address); err != nil {
			return err.Error()
		}
		return "yes"
	})
	p.address = l.Addr().String()
	p.cache = cache.NewSnapshotCache(p.ads, cache.IDHash{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	s := server.NewServer(ctx, p.cache, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, q *discoveryv3.DiscoveryRequest) error {
			p.note(q.GetErrorDetail().GetMessage())
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, q *discoveryv3.DeltaDiscoveryRequest) error {
			p.note(q.GetErrorDetail().GetMessage())
			return nil
		},
	})
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	clusterservice.RegisterClusterDiscoveryServiceServer(g, s)
	endpointservice.RegisterEndpointDiscoveryServiceServer(g, s)
	secretservice.RegisterSecretDiscoveryServiceServer(g, s)
	var running sync.WaitGroup
	running.Go(func() { _ = g.Serve(l) })
	p.stop = sync.OnceFunc(func() {
		cancel()
		g.Stop()
		running.Wait()
	})
}

func (p *plane) note(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if problem != "" {
		p.problems = append(p.problems, problem)
	}
}

// problem returns the last reported problem.
func (p *plane) problem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) == 0 {
		return ""
	}
	return p.problems[len(p.problems)-1]
}

// set publishes a snapshot: clusters with the ports of their hosts.
func (p *plane) set(version string, ports map[string][]uint32, change func(*clusterv3.Cluster)) {
	p.t.Helper()
	var clusters, hosts []types.Resource
	for name, list := range ports {
		c := p.cluster(name)
		if change != nil {
			change(c)
		}
		clusters = append(clusters, c)
		hosts = append(hosts, assignment(name, list))
	}
	all := map[resource.Type][]types.Resource{resource.ClusterType: clusters, resource.EndpointType: hosts}
	if p.flags != nil {
		layer, err := structpb.NewStruct(p.flags)
		if err != nil {
			p.t.Fatal(err)
		}
		all[resource.RuntimeType] = []types.Resource{&runtimev3.Runtime{Name: "flags", Layer: layer}}
	}
	for _, secret := range p.secrets {
		all[resource.SecretType] = append(all[resource.SecretType], secret)
	}
	s, err := cache.NewSnapshot(version, all)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(context.Background(), nodeID, s); err != nil {
		p.t.Fatal(err)
	}
}

// source returns the configuration source for this control plane.
func (p *plane) source() *corev3.ConfigSource {
	from := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}
	if !p.ads {
		kind := corev3.ApiConfigSource_GRPC
		if p.delta {
			kind = corev3.ApiConfigSource_DELTA_GRPC
		}
		from.ConfigSourceSpecifier = &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: kind, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "control"}}}},
		}}
	}
	return from
}

func (p *plane) cluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: p.source()},
	}
}

func assignment(name string, ports []uint32) *endpointv3.ClusterLoadAssignment {
	l := new(endpointv3.LocalityLbEndpoints)
	for _, port := range ports {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
			}}},
		}}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{l}}
}

// proxy is a cluster manager that follows a control plane.
type proxy struct {
	st *store.Store
	x  *xds.Client
	m  *upstream.Manager
}

func newProxy(t *testing.T, p *plane) *proxy {
	t.Helper()
	st := store.New(store.Options{})
	d := decode.NewDecoder(decode.Options{})
	api := &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}
	if p.delta {
		api.Type = config.APIDeltaGRPC
	}
	o := xds.Config{Store: st, Decoder: d, Node: xds.Node{ID: nodeID, Cluster: "edge"}, CDS: &config.ConfigSource{InitialFetchTimeout: time.Minute}}
	if p.ads {
		o.ADS, o.CDS.Kind = api, config.SourceADS
	} else {
		o.CDS.API, o.CDS.Kind = api, config.SourceAPI
	}
	x, err := xds.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m := upstream.New(upstream.Config{Store: st, Source: x.Source, Transport: transport.New(transport.Config{Secrets: x.Secrets()})})
	x.Attach(m)
	ip, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	static, err := d.ClusterText("static.yaml", fmt.Appendf(nil, `
name: control
http2_protocol_options: {}
load_assignment:
  cluster_name: control
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, ip, port), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddStatic(static); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := x.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	m.Start()
	t.Cleanup(func() {
		cancel()
		running.Wait()
		m.Close()
	})
	return &proxy{st, x, m}
}

// shows lists the clusters of the control plane with the ports of their hosts.
func (p *proxy) shows() string {
	var list []string
	for v := range p.m.Clusters {
		if !v.AddedViaAPI {
			continue
		}
		var ports []string
		for h := range v.Hosts {
			ports = append(ports, strings.TrimPrefix(h.AddressText(), "127.0.0.1:"))
		}
		slices.Sort(ports)
		list = append(list, v.Name+"="+strings.Join(ports, ","))
	}
	return strings.Join(list, " ")
}

// value returns a counter or gauge as text.
func (p *proxy) value(name string) string {
	v := p.st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		return "none"
	}
	return string(c.AppendValue(nil))
}
