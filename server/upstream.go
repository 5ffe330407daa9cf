package server

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/discovery"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
)

// Clusters are the upstream clusters of a server and how they run. The zero
// value is none; more can be added by [Server.Clusters].
type Clusters struct {
	// Static are the clusters of the static configuration. They are there for
	// the whole life of the server, which is live once all are ready.
	Static []*config.ParsedCluster
	// Local is the name of the static cluster that this server belongs to,
	// empty if there is none. Zone-aware routing needs it.
	Local string
	// Bind is the local address of connections of clusters that name none. Nil:
	// any.
	Bind *config.Bind

	// Resolver looks up host names. Nil: what the system says.
	Resolver discovery.Resolver
	// Types are further cluster types by name.
	Types map[string]discovery.Type
	// CustomCheck returns what makes the probers of a custom health check. Nil
	// refuses such checks.
	CustomCheck func(*config.Cluster) (func(*host.Host) health.Prober, error)
	// Hooks are told of what happens to hosts and clusters.
	Hooks upstream.Hooks
}

// clustersOf returns the clusters that a file has.
func clustersOf(c *bootstrap.Config) Clusters {
	return Clusters{
		Static: c.Clusters.Static, Local: c.Clusters.Local, Bind: c.Clusters.Bind,
	}
}

// makeClusters makes the manager of clusters and gives it the static ones.
func (s *Server) makeClusters() error {
	c := &s.cfg.Clusters
	cfg := upstream.Config{
		Store: s.store, Product: s.cfg.Admin.Product, Logger: s.loggers.Logger("upstream"),
		Runtime: clusterRuntime{s.runtime}, Seed: rand.Uint64(), LocalCluster: c.Local,
		Source: s.hostSources().Source, CustomCheck: c.CustomCheck, Hooks: s.clusterHooks(),
	}
	if n := s.cfg.Node; n != nil && (n.Region != "" || n.Zone != "" || n.SubZone != "") {
		cfg.Local = &host.Locality{Region: n.Region, Zone: n.Zone, SubZone: n.SubZone}
	}
	s.clusters = upstream.New(cfg)
	var errs []error
	for _, p := range c.Static {
		errs = append(errs, s.clusters.AddStatic(p))
	}
	return errors.Join(errs...)
}

// hostSources says what finds the hosts of clusters that do not name them.
func (s *Server) hostSources() *discovery.Sources {
	return discovery.New(discovery.Config{
		Resolver: s.cfg.Clusters.Resolver, Types: s.cfg.Clusters.Types, Logger: s.loggers.Logger("upstream"),
	})
}

// runClusters lets clusters find their hosts and makes the server live once they
// have.
func (s *Server) runClusters(ctx context.Context) error {
	if err := s.clusters.Start(); err != nil {
		return err
	}
	select {
	case <-s.clusters.Ready():
		s.initialize()
	case <-ctx.Done():
	}
	return nil
}

// clusterHooks log what happens and tell those who asked to be told.
func (s *Server) clusterHooks() upstream.Hooks {
	h := s.cfg.Clusters.Hooks
	checks, log := s.loggers.Logger("hc"), s.loggers.Logger("upstream")
	told := h
	h.HealthChanged = func(c *upstream.Cluster, of *host.Host) {
		checks.Debug("health changed", "cluster", c.Config().Name, "host", of.AddressText(), "healthy", of.Health() == host.Healthy)
		if told.HealthChanged != nil {
			told.HealthChanged(c, of)
		}
	}
	h.ClusterReady = func(c *upstream.Cluster) {
		log.Debug("cluster is ready", "cluster", c.Config().Name)
		if told.ClusterReady != nil {
			told.ClusterReady(c)
		}
	}
	h.OutlierEvent = func(c *upstream.Cluster, e outlier.Event) {
		log.Debug("outlier detection", "cluster", c.Config().Name, "host", e.Host.AddressText(), "ejected", e.Eject, "enforced", e.Enforced)
		if told.OutlierEvent != nil {
			told.OutlierEvent(c, e)
		}
	}
	return h
}

// Clusters returns the manager of clusters, to which a proxy may add its own.
func (s *Server) Clusters() *upstream.Manager { return s.clusters }

// unready lists what the server, and clusters that are being changed, still wait
// for.
func (s *Server) unready() []admin.Unready {
	var out []admin.Unready
	for _, u := range s.life.Unready() {
		out = append(out, admin.Unready{Component: u.Component, Name: u.Name, Targets: u.Targets})
	}
	for _, c := range s.clusters.Unready() {
		waits := "health check"
		if !c.Discovered() {
			waits = discoveryName(c.Config())
		}
		name := c.Config().Name
		out = append(out, admin.Unready{
			Component: clusterComponent, Name: "init manager Cluster " + name, Targets: []string{"target " + name + " " + waits},
		})
	}
	return out
}

// clusterComponent is the mask of /init_dump that shows clusters.
const clusterComponent = "cluster"

// discoveryName says how a cluster finds its hosts.
func discoveryName(c *config.Cluster) string {
	switch c.Type {
	case config.StrictDNS, config.LogicalDNS:
		return "dns"
	case config.EDSDiscovery:
		return "eds"
	case config.CustomDiscovery:
		return c.CustomType.Name
	}
	return "start" // nothing but the start of the server is awaited
}

// maxPending returns how many requests may be pending at the default priority of
// the cluster whose statistics have that name.
func (s *Server) maxPending(statName string) uint64 {
	var found *upstream.Cluster
	if h := s.clusters.Cluster(statName); h != nil {
		found = h.Current()
	}
	if found == nil || found.Config().StatName != statName {
		s.clusters.Clusters(func(v *upstream.View) bool {
			if v.Config.StatName != statName {
				return true
			}
			if h := s.clusters.Cluster(v.Name); h != nil {
				found = h.Current()
			}
			return false
		})
	}
	if found == nil {
		return eventstream.DefaultMaxPending
	}
	return found.Breakers(upstream.DefaultPriority).Pending.Max()
}

// clusterRuntime reads runtime values for clusters.
type clusterRuntime struct{ l *layers.Loader }

// Uint implements [upstream.Runtime].
func (r clusterRuntime) Uint(key string) (uint64, bool) {
	v := r.l.Snapshot()
	n := v.Int(key, 0)
	return n, n == v.Int(key, 1)
}

// Float implements [upstream.Runtime].
func (r clusterRuntime) Float(key string) (float64, bool) {
	v := r.l.Snapshot()
	x := v.Double(key, 0)
	return x, x == v.Double(key, 1)
}
