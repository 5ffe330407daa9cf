package discovery

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listed is a custom type whose message is a list of addresses.
type listed struct {
	list      string
	secondary bool
}

func (l *listed) Run(ctx context.Context, c *upstream.Cluster) {
	a := &upstream.Assignment{Priorities: make([]upstream.PriorityHosts, 1)}
	for _, text := range strings.Fields(l.list) {
		a.Priorities[0].Hosts = append(a.Priorities[0].Hosts, host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(text)}})
	}
	c.UpdateHosts(0, a)
	c.DiscoveryDone()
	<-ctx.Done()
}

func (l *listed) Secondary() bool { return l.secondary }

// first is a custom type that balances by itself.
type first struct {
	listed
	hosts atomic.Pointer[[]*host.Host]
}

func (f *first) Balancer() lb.Balancer { return f }

func (f *first) Update(sets []*host.Set, _ *host.Set) {
	if len(sets) > 0 {
		f.hosts.Store(&sets[0].Hosts)
	}
}

func (f *first) Pick(*lb.Context) *host.Host {
	if list := f.hosts.Load(); list != nil && len(*list) > 0 {
		return (*list)[0]
	}
	return nil
}

const customText = "name: c\ncluster_type: {name: listed, typed_config: {'@type': type.googleapis.com/google.protobuf.StringValue, value: '10.0.0.1:80 10.0.0.2:80'}}\n"

// value returns the text of a google.protobuf.StringValue that is short.
func value(a config.Any) string { return a.Value[2:] }

func TestCustomType(t *testing.T) {
	c := Config{Types: map[string]Type{"listed": {New: func(c *config.Cluster) (upstream.Source, error) {
		if !strings.HasSuffix(c.CustomType.Config.TypeURL, "/google.protobuf.StringValue") {
			return nil, errors.New("another message")
		}
		return &listed{list: value(c.CustomType.Config)}, nil
	}}}}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, c, customText, upstream.Hooks{})
		synctest.Wait()
		r.wantHosts("10.0.0.1:80 10.0.0.2:80")
		if !r.c.Ready() {
			t.Error("not ready")
		}
	})
}

func TestCustomTypeWithItsBalancer(t *testing.T) {
	c := Config{Types: map[string]Type{"listed": {OwnBalancer: true, New: func(c *config.Cluster) (upstream.Source, error) {
		return &first{listed: listed{list: value(c.CustomType.Config)}}, nil
	}}}}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, c, customText+"lb_policy: CLUSTER_PROVIDED\n", upstream.Hooks{})
		synctest.Wait()
		for range 3 {
			if h, err := r.c.Pick(nil); err != nil || h.AddressText() != "10.0.0.1:80" {
				t.Errorf("picked %v, %v", h, err)
			}
		}
	})
}

func TestSecondaryTypeWaitsForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.9")
		b.delay["a.example"] = 10 * time.Second
		s := New(Config{Resolver: b, Types: map[string]Type{"listed": {New: func(c *config.Cluster) (upstream.Source, error) {
			return &listed{list: value(c.CustomType.Config), secondary: true}, nil
		}}}})
		m := upstream.New(upstream.Config{Store: store.New(store.Options{}), Source: s.Source})
		t.Cleanup(m.Close)
		d := decode.NewDecoder(decode.Options{ClusterTypes: s.ClusterTypes()})
		for _, text := range []string{customText, strings.Replace(cluster("STRICT_DNS", "", "a.example:80"), "name: c", "name: dns", 1)} {
			p, err := d.ClusterText("test.yaml", []byte(text), config.FormV3)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.AddStatic(p); err != nil {
				t.Fatal(err)
			}
		}
		m.Start()
		c := m.Cluster("c").Current()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if len(c.Sets()) > 0 {
			t.Error("the secondary cluster did not wait")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(c.Sets()) != 1 || !c.Ready() {
			t.Error("the secondary cluster did not start")
		}
	})
}

func TestSourceRefuses(t *testing.T) {
	none := func(*config.Cluster) (upstream.Source, error) { return nil, errors.New("no list") }
	types := map[string]Type{
		"b": {}, "a": {New: none},
		"liar": {OwnBalancer: true, New: func(*config.Cluster) (upstream.Source, error) { return &listed{}, nil }},
	}
	endpoint := func(a config.AddressSpec) *config.Assignment {
		return &config.Assignment{Localities: []config.LocalityEndpoints{{Endpoints: []config.Endpoint{{Address: a}}}}}
	}
	for _, tt := range []struct {
		name  string
		types map[string]Type
		c     config.Cluster
		want  string
	}{
		{"static", nil, config.Cluster{}, "type 0 has no source"},
		{"eds", nil, config.Cluster{Type: config.EDSDiscovery}, "clusters of type EDS are not supported by this program"},
		{"unknown", types, config.Cluster{Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "x"}}, `"x" is not a known cluster type; known: a, b, liar`},
		{"none-known", nil, config.Cluster{Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "x"}}, `"x" is not a known cluster type; known: none`},
		{"empty", types, config.Cluster{Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "b"}}, `cluster type "b" makes no sources`},
		{"unwilling", types, config.Cluster{Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "a"}}, `cluster type "a": no list`},
		{"no-balancer", types, config.Cluster{Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "liar"}}, `cluster type "liar" has no balancer although OwnBalancer is set`},
		{"pipe", nil, config.Cluster{Type: config.StrictDNS, Assignment: endpoint(config.AddressSpec{Kind: config.PipeAddress, Path: "/run/x"})}, `endpoint "/run/x" is not a host name with a port`},
		{"named-port", nil, config.Cluster{Type: config.LogicalDNS, Assignment: endpoint(config.AddressSpec{Kind: config.SocketAddress, Host: "a", NamedPort: "http"})}, `endpoint "a": port "http" is not a number`},
		{"no-endpoint", nil, config.Cluster{Type: config.LogicalDNS}, "type LOGICAL_DNS takes exactly one endpoint"},
		{"resolver", nil, config.Cluster{Type: config.StrictDNS, DNS: config.DNS{ResolverExtension: config.Extension{Name: "apple"}}}, `"apple" is not a known resolver`},
		{"resolver-address", nil, config.Cluster{Type: config.LogicalDNS, DNS: config.DNS{Resolvers: []config.AddressSpec{{Kind: config.SocketAddress, Host: "ns"}}}}, `resolver "ns" is not an IP address`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(Config{Types: tt.types, Resolver: newBook()}).Source(&tt.c)
			if err == nil || err.Error() != "discovery: "+tt.want {
				t.Errorf("%v, %v; want %s", s, err, tt.want)
			}
		})
	}
}

func TestDefaultSources(t *testing.T) {
	c := New(Config{}).c
	if r, ok := c.Resolver.(*Client); !ok || r.c.ResolvConf != "/etc/resolv.conf" || r.c.Hosts != "/etc/hosts" || cap(r.slots) != 128 {
		t.Errorf("resolver %+v", c.Resolver)
	}
	if c.MaxHosts != DefaultMaxHosts || c.Rand == nil || c.Logger == nil {
		t.Errorf("%+v", c)
	}
}

func TestEDSIsPluggedIn(t *testing.T) {
	var asked string
	s := New(Config{Resolver: newBook(), EDS: func(c *config.Cluster) (upstream.Source, error) {
		asked = c.Name
		return &listed{}, nil
	}})
	if source, err := s.Source(&config.Cluster{Name: "c", Type: config.EDSDiscovery}); err != nil || source == nil || asked != "c" {
		t.Errorf("%v, %v; asked for %q", source, err, asked)
	}
}

func TestOriginalDestinationNeedsNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Config{Resolver: newBook()}, "name: c\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n", upstream.Hooks{})
		to := netip.MustParseAddrPort("10.0.0.1:80")
		if h, err := r.c.Pick(&lb.Context{Destination: config.Address{IP: to}}); err != nil || h.AddressText() != to.String() {
			t.Fatalf("picked %v, %v", h, err)
		}
		// Used before the first sweep at 5 s, found unused at 10 s.
		time.Sleep(9 * time.Second)
		synctest.Wait()
		r.wantHosts("10.0.0.1:80")
		time.Sleep(time.Second)
		synctest.Wait()
		r.wantHosts("")
	})
}
