package discovery_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/discovery"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// pair is a cluster type with two fixed hosts.
type pair struct{}

func (pair) Run(ctx context.Context, c *upstream.Cluster) {
	at := func(a string) host.Spec { return host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(a)}} }
	c.UpdateHosts(0, &upstream.Assignment{Priorities: []upstream.PriorityHosts{
		{Hosts: []host.Spec{at("10.0.0.1:80"), at("10.0.0.2:80")}},
	}})
	c.DiscoveryDone()
	<-ctx.Done()
}

// A cluster type of one's own is a name and what makes its sources.
func Example() {
	d := discovery.New(discovery.Config{Types: map[string]discovery.Type{
		"pair": {New: func(*config.Cluster) (upstream.Source, error) { return pair{}, nil }},
	}})
	m := upstream.New(upstream.Config{Store: store.New(store.Options{}), Source: d.Source})
	defer m.Close()
	p, err := decode.NewDecoder(decode.Options{ClusterTypes: d.ClusterTypes()}).
		ClusterText("example.yaml", []byte("name: backend\ncluster_type: {name: pair}\n"), config.FormV3)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.AddStatic(p); err != nil {
		fmt.Println(err)
		return
	}
	m.Start()
	<-m.Ready()
	backend := m.Cluster("backend").Current()
	for range 3 {
		h, err := backend.Pick(nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(h.AddressText())
	}
	// Output:
	// 10.0.0.1:80
	// 10.0.0.2:80
	// 10.0.0.1:80
}
