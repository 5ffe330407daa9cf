package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variants are the two variants of the protocol.
var variants = []struct {
	name  string
	delta bool
}{{"sotw", false}, {"delta", true}}

// rig is a client with its manager and the server side of its streams.
type rig struct {
	t       testing.TB
	st      *store.Store
	c       *Client
	m       *upstream.Manager
	delta   bool
	streams chan *fakeStream // as they are opened
	refuse  atomic.Bool      // streams that are to be opened
	stop    func()
	layers  sync.Map // name to values
	certs   certinfo.Registry
}

// newRig starts a client of an aggregated stream, within a bubble of fake time.
func newRig(t testing.TB, delta bool, change func(*Config)) *rig {
	return newWildRig(t, delta, change, func(*Client) {})
}

// newWildRig is newRig with a client that change modifies before it runs.
func newWildRig(t testing.TB, delta bool, change func(*Config), spoil func(*Client)) *rig {
	r := &rig{t: t, st: store.New(store.Options{}), delta: delta, streams: make(chan *fakeStream, 100)}
	api := &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}
	if delta {
		api.Type = config.APIDeltaGRPC
	}
	o := Config{
		Store: r.st, Decoder: decode.NewDecoder(decode.Options{}), ADS: api,
		CDS:  &config.ConfigSource{Kind: config.SourceADS, InitialFetchTimeout: 15 * time.Second},
		Node: Node{ID: "node", Cluster: "edge", Version: "1.2.3", Metadata: map[string]any{"role": "test"}},
		Rand: func() uint64 { return uint64(firstDelay) - 1 },
		SetLayer: func(name string, values map[string]any) error {
			if values["bad"] != nil {
				return errors.New("bad values")
			}
			r.layers.Store(name, values)
			return nil
		},
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	c.open = func(ctx context.Context, _ *config.APISource, delta bool, method string) (stream, error) {
		if r.refuse.Load() {
			return nil, errors.New("no server")
		}
		s := &fakeStream{method: method, delta: delta, ctx: ctx, requests: make(chan proto.Message, 100), responses: make(chan []byte), broken: make(chan struct{})}
		r.streams <- s
		return s, nil
	}
	r.m = upstream.New(upstream.Config{Store: r.st, Source: c.Source, Transport: r.transport()})
	c.Attach(r.m)
	spoil(c)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.m.Close()
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	r.m.Start()
	synctest.Wait()
}

// inVariants runs a test in each variant, with a client whose stream is open, in a
// bubble of fake time.
func inVariants(t *testing.T, f func(t *testing.T, r *rig, s *fakeStream)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, nil)
				r.start()
				f(t, r, r.open())
				r.stop()
			})
		})
	}
}

// open returns the next opened stream.
func (r *rig) open() *fakeStream {
	r.t.Helper()
	synctest.Wait()
	select {
	case s := <-r.streams:
		return s
	default:
		r.t.Fatal("no stream was opened")
		return nil
	}
}

// fakeStream is a stream whose server is the test.
type fakeStream struct {
	method    string
	delta     bool
	ctx       context.Context
	requests  chan proto.Message
	responses chan []byte
	broken    chan struct{}
}

func (s *fakeStream) Send(m proto.Message) error {
	if _, err := proto.Marshal(m); err != nil {
		panic(err)
	}
	select {
	case s.requests <- m:
		return nil
	case <-s.broken:
	case <-s.ctx.Done():
	}
	return errors.New("the stream is over")
}

func (s *fakeStream) Recv() (*response, error) {
	select {
	case b := <-s.responses:
		return decodeResponse(b, s.delta)
	case <-s.broken:
		return nil, errors.New("the server went away")
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *fakeStream) Close() {}

// says returns the requests since the last call, one line each.
func (s *fakeStream) says() string {
	synctest.Wait()
	time.Sleep(gatherTime)
	synctest.Wait()
	var lines []string
	for {
		select {
		case m := <-s.requests:
			lines = append(lines, describe(m))
			continue
		default:
		}
		return strings.Join(lines, "\n")
	}
}

// describe writes a request on one line.
func describe(m proto.Message) string {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	short := func(typeURL string) { b.WriteString(typeURL[strings.LastIndexByte(typeURL, '.')+1:]) }
	if q, ok := m.(*discoveryv3.DiscoveryRequest); ok {
		short(q.GetTypeUrl())
		if q.GetNode() != nil {
			put("node=%s", q.GetNode().GetId())
		}
		if q.GetVersionInfo() != "" {
			put("version=%s", q.GetVersionInfo())
		}
		if len(q.GetResourceNames()) > 0 {
			put("names=%s", strings.Join(q.GetResourceNames(), ","))
		}
		if q.GetResponseNonce() != "" {
			put("nonce=%s", q.GetResponseNonce())
		}
		if q.GetErrorDetail() != nil {
			put("error=%q", q.GetErrorDetail().GetMessage())
		}
		return b.String()
	}
	q := m.(*discoveryv3.DeltaDiscoveryRequest)
	short(q.GetTypeUrl())
	if q.GetNode() != nil {
		put("node=%s", q.GetNode().GetId())
	}
	if len(q.GetResourceNamesSubscribe()) > 0 {
		put("subscribe=%s", strings.Join(q.GetResourceNamesSubscribe(), ","))
	}
	if len(q.GetResourceNamesUnsubscribe()) > 0 {
		put("unsubscribe=%s", strings.Join(q.GetResourceNamesUnsubscribe(), ","))
	}
	var versions []string
	for name, v := range q.GetInitialResourceVersions() {
		versions = append(versions, name+":"+v)
	}
	slices.Sort(versions)
	if len(versions) > 0 {
		put("initial=%s", strings.Join(versions, ","))
	}
	if q.GetResponseNonce() != "" {
		put("nonce=%s", q.GetResponseNonce())
	}
	if q.GetErrorDetail() != nil {
		put("error=%q", q.GetErrorDetail().GetMessage())
	}
	return b.String()
}

// answer is a response in either variant.
type answer struct {
	kind           kind
	version, nonce string
	resources      []proto.Message
	removed        []string // delta only
	ttl            time.Duration
	heartbeats     []string // names of resources without content
	raw            []*anypb.Any
}

// answer sends a response and returns the requests that follow.
func (s *fakeStream) answer(t testing.TB, a answer) string {
	t.Helper()
	select {
	case s.responses <- a.encode(t, s.delta):
	case <-s.ctx.Done():
		t.Fatal("the stream is closed")
	}
	return s.says()
}

func (a *answer) encode(t testing.TB, delta bool) []byte {
	t.Helper()
	all := a.raw
	for _, m := range a.resources {
		p, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	plane := &corev3.ControlPlane{Identifier: "the plane"}
	var m proto.Message = &discoveryv3.DiscoveryResponse{
		VersionInfo: a.version, Nonce: a.nonce, TypeUrl: a.kind.typeURL(), Resources: all, ControlPlane: plane,
	}
	envelope := func(name string, p *anypb.Any) *discoveryv3.Resource {
		e := &discoveryv3.Resource{Name: name, Version: a.version, Resource: p}
		if a.ttl > 0 {
			e.Ttl = durationpb.New(a.ttl)
		}
		return e
	}
	if sotw, ok := m.(*discoveryv3.DiscoveryResponse); ok && a.ttl > 0 {
		sotw.Resources = nil
		put := func(name string, p *anypb.Any) {
			e, err := anypb.New(envelope(name, p))
			if err != nil {
				t.Fatal(err)
			}
			sotw.Resources = append(sotw.Resources, e)
		}
		for _, p := range all {
			r := decode.WireResource(p.GetTypeUrl(), p.GetValue(), 0)
			put(r.Name, p)
		}
		for _, name := range a.heartbeats {
			put(name, nil)
		}
	}
	if delta {
		d := &discoveryv3.DeltaDiscoveryResponse{
			SystemVersionInfo: a.version, Nonce: a.nonce, TypeUrl: a.kind.typeURL(), RemovedResources: a.removed, ControlPlane: plane,
		}
		for _, p := range all {
			r := decode.WireResource(p.GetTypeUrl(), p.GetValue(), 0)
			d.Resources = append(d.Resources, envelope(r.Name, p))
		}
		for _, name := range a.heartbeats {
			d.Resources = append(d.Resources, envelope(name, nil))
		}
		m = d
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// edsCluster is an EDS cluster of the aggregated stream.
func edsCluster(name string, change ...func(*clusterv3.Cluster)) proto.Message {
	c := &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// named returns a cluster that requests another name.
func named(service string) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) { c.EdsClusterConfig.ServiceName = service }
}

func timeout(d time.Duration) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(d) }
}

// endpointsOf is a load assignment of hosts at ports of 10.0.0.1.
func endpointsOf(name string, ports ...uint32) *endpointv3.ClusterLoadAssignment {
	l := &endpointv3.LocalityLbEndpoints{LoadBalancingWeight: wrapperspb.UInt32(1)}
	for _, p := range ports {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: p},
			}}},
		}}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{l}}
}

// hosts lists the hosts of an active cluster, "-" if there is no such cluster.
func (r *rig) hosts(name string) string {
	h := r.m.Cluster(name)
	if h == nil || h.Current() == nil {
		return "-"
	}
	var list []string
	for _, s := range h.Current().Sets() {
		for _, x := range s.Hosts {
			list = append(list, strings.TrimPrefix(x.AddressText(), "10.0.0.1"))
		}
	}
	return strings.Join(list, " ")
}

// counts returns what the counters and gauges have, as "name=value" joined by
// blanks.
func (r *rig) counts(names ...string) string {
	var list []string
	v := r.st.View()
	defer v.Close()
	for _, name := range names {
		value := "none"
		if c, ok := v.Find(name); ok {
			value = string(c.AppendValue(nil))
		}
		list = append(list, name[strings.LastIndexByte(name, '.')+1:]+"="+value)
	}
	return strings.Join(list, " ")
}

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func stale(d time.Duration) *endpointv3.ClusterLoadAssignment_Policy {
	return &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: durationpb.New(d)}
}
