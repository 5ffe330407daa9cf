package xds

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// oracle decodes a response by its generated type.
func oracle(data []byte, delta bool) (*response, error) {
	r := new(response)
	envelope := func(i int, e *discoveryv3.Resource) decode.Resource {
		x := decode.WireResource(e.GetResource().GetTypeUrl(), e.GetResource().GetValue(), i)
		if e.GetName() != "" {
			x.Name = e.GetName()
		}
		x.Version = r.version
		if e.GetVersion() != "" {
			x.Version = e.GetVersion()
		}
		return x
	}
	if delta {
		var m discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(data, &m); err != nil {
			return nil, err
		}
		r.version, r.nonce, r.typeURL, r.identifier = m.GetSystemVersionInfo(), m.GetNonce(), m.GetTypeUrl(), m.GetControlPlane().GetIdentifier()
		r.removed = m.GetRemovedResources()
		for _, n := range m.GetRemovedResourceNames() {
			r.removed = append(r.removed, n.GetName())
		}
		for i, e := range m.GetResources() {
			r.resources = append(r.resources, envelope(i, e))
		}
		return r, nil
	}
	var m discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	r.full = true
	r.version, r.nonce, r.typeURL, r.identifier = m.GetVersionInfo(), m.GetNonce(), m.GetTypeUrl(), m.GetControlPlane().GetIdentifier()
	for i, a := range m.GetResources() {
		var e discoveryv3.Resource
		if messageName(a.GetTypeUrl()) == "envoy.service.discovery.v3.Resource" {
			if err := proto.Unmarshal(a.GetValue(), &e); err != nil {
				return nil, err
			}
			r.resources = append(r.resources, envelope(i, &e))
			continue
		}
		x := decode.WireResource(a.GetTypeUrl(), a.GetValue(), i)
		x.Version = r.version
		r.resources = append(r.resources, x)
	}
	return r, nil
}

func sameResponse(t *testing.T, got, want *response) {
	t.Helper()
	if got.version != want.version || got.nonce != want.nonce || got.typeURL != want.typeURL || got.full != want.full {
		t.Fatalf("got %q %q %q %t, want %q %q %q %t", got.version, got.nonce, got.typeURL, got.full, want.version, want.nonce, want.typeURL, want.full)
	}
	slices.Sort(got.removed)
	slices.Sort(want.removed)
	if !slices.Equal(got.removed, want.removed) {
		t.Fatalf("removed %q, want %q", got.removed, want.removed)
	}
	if len(got.resources) != len(want.resources) {
		t.Fatalf("%d resources, want %d", len(got.resources), len(want.resources))
	}
	for i := range want.resources {
		g, w := &got.resources[i], &want.resources[i]
		if g.Name != w.Name || g.Version != w.Version || g.TypeURL != w.TypeURL || g.Index != w.Index || !bytes.Equal(g.Bytes(), w.Bytes()) {
			t.Fatalf("resource %d: got %+v, want %+v", i, *g, *w)
		}
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seeds are responses of both variants.
func seeds(t testing.TB) (all [][]byte) {
	for _, v := range variants {
		for _, a := range []answer{
			{},
			{kind: clusterKind, version: "1", nonce: "n", resources: []proto.Message{edsCluster("a"), edsCluster("b", timeout(-1))}},
			{kind: endpointKind, version: "2", nonce: "m", resources: []proto.Message{endpointsOf("a", 1, 2)}, removed: []string{"a", "b"}},
			{kind: clusterKind, version: "3", nonce: "o", removed: []string{"a"}},
			{kind: layerKind, version: "4", raw: []*anypb.Any{{TypeUrl: "x/y", Value: []byte{0xff}}, {}}},
		} {
			all = append(all, a.encode(t, v.delta))
		}
	}
	inner, err := anypb.New(edsCluster("a"))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := anypb.New(&discoveryv3.Resource{Name: "a", Version: "7", Resource: inner, Aliases: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	return append(all,
		marshal(t, &discoveryv3.DiscoveryResponse{VersionInfo: "6", TypeUrl: clusterKind.typeURL(), Resources: []*anypb.Any{wrapped}}),
		marshal(t, &discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: clusterKind.typeURL(), Resources: []*discoveryv3.Resource{{Name: "a"}}, ControlPlane: &corev3.ControlPlane{Identifier: "p"},
			RemovedResourceNames: []*discoveryv3.ResourceName{{Name: "z"}},
		}))
}

func TestResponsesAreReadAsTheirTypesAre(t *testing.T) {
	for _, data := range seeds(t) {
		for _, v := range variants {
			want, err := oracle(data, v.delta)
			if err != nil {
				continue
			}
			got, err := decodeResponse(data, v.delta)
			if err != nil {
				t.Fatalf("%x: %v", data, err)
			}
			sameResponse(t, got, want)
		}
	}
}

func TestResponsesAreBounded(t *testing.T) {
	many := bytes.Repeat([]byte{2<<3 | 2, 0}, maxResources+1)
	for _, v := range variants {
		if _, err := decodeResponse(many, v.delta); err == nil || err.Error() != "xds: more than 1048576 resources in a response" {
			t.Errorf("%s: error %v for too many resources", v.name, err)
		}
		if _, err := decodeResponse(many[2:], v.delta); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		long := protowire.AppendString([]byte{5<<3 | 2}, strings.Repeat("x", maxLabel+1))
		if _, err := decodeResponse(long, v.delta); err == nil || !strings.Contains(err.Error(), "at most 65536 bytes") {
			t.Errorf("%s: error %v for a long nonce", v.name, err)
		}
		texts, packed := []byte{1, 4, 5}, []byte{6} // fields of texts, and of messages with a text in field 1
		if v.delta {
			texts, packed = []byte{1, 4, 5, 6}, []byte{7, 8}
		}
		for _, n := range texts {
			if _, err := decodeResponse([]byte{n<<3 | 2, 1, 0xff}, v.delta); err == nil {
				t.Errorf("%s: field %d with no text is accepted", v.name, n)
			}
		}
		for _, n := range packed {
			if _, err := decodeResponse([]byte{n<<3 | 2, 3, 1<<3 | 2, 1, 0xff}, v.delta); err == nil {
				t.Errorf("%s: a message in field %d with no text is accepted", v.name, n)
			}
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var faults []fault
	for i := range 1000 {
		faults = append(faults, fault{"", unnamed(&decode.Resource{Index: i, TypeURL: strings.Repeat("x", 1000)})})
	}
	s := summary(faults)
	if len(s) > maxProblem+100 || !strings.HasSuffix(s, "more") {
		t.Errorf("%d bytes, ending %q", len(s), s[max(len(s)-20, 0):])
	}
	huge := summary([]fault{{"", unnamed(&decode.Resource{TypeURL: strings.Repeat("x", 10*maxProblem)})}})
	if len(huge) > maxProblem+100 {
		t.Errorf("%d bytes of one problem", len(huge))
	}
	other := errors.New("other")
	if s := summary([]fault{{"", errMalformed}, {"a", errMalformed}, {"b", other}}); s != errMalformed.Error()+"\nother" {
		t.Errorf("%q, want the same error only once", s)
	}
	if s := summary(nil); s != "" {
		t.Errorf("%q for no problem", s)
	}
}

// FuzzResponse checks that any bytes of a server are decoded like the generated type
// decodes them, or refused. Each response gets one reply that can be encoded and
// echoes the nonce. A refusal states a reason and keeps the version.
func FuzzResponse(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, false)
		f.Add(s, true)
	}
	st := store.New(store.Options{})
	d := decode.NewDecoder(decode.Options{})
	f.Fuzz(func(t *testing.T, data []byte, delta bool) {
		got, err := decodeResponse(data, delta)
		want, bad := oracle(data, delta)
		if err != nil {
			return // limits are tighter than in the generated code
		}
		if bad == nil {
			sameResponse(t, got, want)
		}
		if len(got.resources) > 50 {
			return
		}
		api := &config.APISource{Type: config.APIGRPC, GRPC: make([]config.GRPCService, 1)}
		api.GRPC[0].ClusterName = "control"
		c, err := New(Config{Store: st, Decoder: d, ADS: api, CDS: &config.ConfigSource{Kind: config.SourceADS}})
		if err != nil {
			t.Fatal(err)
		}
		m := upstream.New(upstream.Config{Store: st, Source: c.Source})
		defer m.Close()
		c.Attach(m)
		c.ads.delta = delta
		hosts := endpoints{c: c, cl: testCluster(t, d, st)}
		defer c.ads.follow(newSubscription(clusterKind, "", c.clusters, c.clusters.stats, 0, guard.Guard{}))()
		defer c.ads.follow(newSubscription(endpointKind, "a", &hosts, newUpdateStats(st.Scope("x")), 0, guard.Guard{}))()
		for range c.ads.topics {
			c.ads.settle()
			c.ads.next(false)
		}
		if err := c.ads.handle(got); err != nil {
			t.Fatal(err)
		}
		n, _ := c.ads.due()
		if got.typeURL == clusterKind.typeURL() || got.typeURL == endpointKind.typeURL() {
			if n != 1 {
				t.Fatalf("%d replies", n)
			}
			q := c.ads.next(false)
			if _, err := proto.Marshal(q); err != nil {
				t.Fatal(err)
			}
			type replies interface {
				GetResponseNonce() string
			}
			if nonce := q.(replies).GetResponseNonce(); nonce != got.nonce {
				t.Fatalf("nonce %q, want %q", nonce, got.nonce)
			}
			if q, ok := q.(*discoveryv3.DiscoveryRequest); ok {
				want := got.version
				if q.GetErrorDetail() != nil {
					want = ""
				}
				if q.GetVersionInfo() != want {
					t.Fatalf("version %q, want %q", q.GetVersionInfo(), want)
				}
			}
		} else if n != 0 {
			t.Fatalf("%d replies to a type without subscribers", n)
		}
	})
}

// testCluster is a cluster for hosts.
func testCluster(t testing.TB, d *decode.Decoder, st *store.Store) *upstream.Cluster {
	t.Helper()
	p, err := d.ClusterMessage(edsCluster("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	m := upstream.New(upstream.Config{Store: st, Source: func(*config.Cluster) (upstream.Source, error) { return idle{}, nil }})
	t.Cleanup(m.Close)
	if err := m.AddStatic(p); err != nil {
		t.Fatal(err)
	}
	return m.Cluster("a").Current()
}

// idle is a source without hosts.
type idle struct{}

func (idle) Run(context.Context, *upstream.Cluster) {}
