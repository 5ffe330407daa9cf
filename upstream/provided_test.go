package upstream

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// last is a custom cluster type with a balancer that takes the last host.
type last struct {
	manual
	sets atomic.Pointer[[]*host.Set]
}

func (l *last) Balancer() lb.Balancer                    { return l }
func (l *last) Update(sets []*host.Set, local *host.Set) { l.sets.Store(&sets) }
func (l *last) Pick(*lb.Context) *host.Host {
	if sets := l.sets.Load(); sets != nil && len(*sets) > 0 {
		if hosts := (*sets)[0].Hosts; len(hosts) > 0 {
			return hosts[len(hosts)-1]
		}
	}
	return nil
}

// watching is a balancer that keeps the local hosts, and calls first in its first update.
type watching struct {
	last
	first func()
	local *host.Set
}

func (w *watching) Balancer() lb.Balancer { return w }
func (w *watching) Update(_ []*host.Set, local *host.Set) {
	w.local = local
	if f := w.first; f != nil {
		w.first = nil
		f()
	}
}

// TestLocalClusterChangesAsAnotherBecomesActive: the local cluster gets a host after
// another cluster has balanced its hosts and before that is active.
func TestLocalClusterChangesAsAnotherBecomesActive(t *testing.T) {
	w := &watching{last: last{manual: manual{make(chan *Cluster, 1)}}}
	r := newRig(t, func(c *Config) {
		c.LocalCluster = "me"
		source := c.Source
		c.Source = func(c *config.Cluster) (Source, error) {
			if c.CustomType != nil {
				return w, nil
			}
			return source(c)
		}
	})
	r.Start()
	r.add(byEDS("me", ""))
	me := r.source("me")
	me.UpdateHosts(0, hosts(spec(100)))
	me.DiscoveryDone()
	w.first = func() { me.UpdateHosts(0, hosts(spec(100), spec(101))) }
	r.addMine()
	c := <-w.started
	c.DiscoveryDone()
	if w.local == nil || len(w.local.Hosts) != 2 {
		t.Errorf("the cluster is balanced with %+v, want both local hosts", w.local)
	}
}

// addMine adds a cluster of a type of the program's own, with its balancer.
func (r *rig) addMine() {
	r.t.Helper()
	p, err := decode.NewDecoder(decode.Options{ClusterTypes: map[string]bool{"mine": true}}).ClusterText("test.yaml",
		[]byte("name: c\ncluster_type: {name: mine}\nlb_policy: CLUSTER_PROVIDED\n"), config.FormV3)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.AddOrUpdate(p, ""); err != nil {
		r.t.Fatal(err)
	}
}

func TestCustomClusterWithItsBalancer(t *testing.T) {
	l := &last{manual: manual{make(chan *Cluster, 1)}}
	r := newRig(t, func(c *Config) {
		c.Source = func(c *config.Cluster) (Source, error) {
			if c.CustomType == nil || c.CustomType.Name != "mine" {
				return nil, errors.New("not mine")
			}
			return l, nil
		}
	})
	r.Start()
	r.addMine()
	c := <-l.started
	c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
	c.DiscoveryDone()
	if got := picks(c, 3); got != "3 3 3" {
		t.Errorf("picks %s, want those of the own balancer", got)
	}
}

// fixed is a prober that always says the same.
type fixed health.Outcome

func (f fixed) Probe(context.Context) health.Outcome { return health.Outcome(f) }
func (fixed) Close()                                 {}

const customCheck = "health_checks: [{timeout: 1s, interval: 1000s, no_traffic_interval: 1000s, unhealthy_threshold: 1, healthy_threshold: 1, custom_health_check: {name: ping}}]"

func TestCustomCheck(t *testing.T) {
	const tls = "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}"
	p, err := decode.NewDecoder(decode.Options{HealthCheckers: []string{"ping"}}).ClusterText("test.yaml", []byte(static("c", 2, customCheck+"\n"+tls)), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) {
		c.CustomCheck = func(*config.Cluster) (func(*host.Host) health.Prober, error) {
			return func(h *host.Host) health.Prober {
				return fixed{Degraded: h.AddressText() == "10.0.0.2:80"}
			}, nil
		}
	})
	r.Start()
	if _, err := r.AddOrUpdate(p, ""); err != nil {
		t.Fatal(err)
	}
	c := func() *Cluster {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.handles["c"].current.Load().cluster
	}
	waittest.Until(t, "both are checked", func() bool { return r.Cluster("c") != nil && c().Ready() })
	if got := shown(c()); got != "0:1 0:2/degraded_active_hc" {
		t.Errorf("hosts %s", got)
	}
	r.check("cluster.c.", map[string]uint64{"membership_healthy": 1, "membership_degraded": 1, "health_check.degraded": 1})

	// The check is unknown or fails to start: the cluster is rejected and leaves no trace.
	for want, check := range map[string]func(*config.Cluster) (func(*host.Host) health.Prober, error){
		`"ping"`:      nil,
		"no such map": func(*config.Cluster) (func(*host.Host) health.Prober, error) { return nil, errors.New("no such map") },
	} {
		var contexts certinfo.Registry
		r = newRig(t, func(c *Config) {
			c.CustomCheck, c.Transport = check, transport.New(transport.Config{Registry: &contexts})
		})
		r.Start()
		if _, err := r.AddOrUpdate(p, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %s", err, want)
		}
		v := r.st.View()
		if _, ok := v.Find("cluster.c.membership_total"); ok {
			t.Error("statistics of a refused cluster are left")
		}
		if n := len(contexts.List()); n != 0 {
			t.Errorf("%d TLS contexts of a refused cluster are left", n)
		}
		v.Close()
	}
}

func TestChecksDialByTheHook(t *testing.T) {
	b := newBackend(t)
	var dialled atomic.Int64
	r := newRig(t, func(c *Config) {
		c.Dial = func(ctx context.Context, c *config.Cluster, h *host.Host, a config.Address) (net.Conn, error) {
			if c.Name != "c" || a.String() != "10.0.0.1:80" || h.Address() != a {
				return nil, errors.New("asked for something else")
			}
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", b.Listener.Addr().String())
		}
	})
	r.Start()
	r.add(static("c", 1, checks))
	waittest.Until(t, "the host is checked", func() bool { return r.Cluster("c") != nil && r.Cluster("c").Current().Ready() })
	if dialled.Load() == 0 || shown(r.Cluster("c").Current()) != "0:1" {
		t.Errorf("dialled %d times; hosts %s", dialled.Load(), shown(r.Cluster("c").Current()))
	}
}
