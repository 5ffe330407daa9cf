package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/discovery"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
	"github.com/statsd-admin/statsd-admin/upstream/status"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// Clusters configures the upstream clusters of a server. The zero value has none;
// clusters can be added with [Server.Clusters].
type Clusters struct {
	// Static are the clusters of the static configuration. They are never removed,
	// and the server goes live once all of them are ready.
	Static []upstream.Parsed
	// Secrets holds the secrets that TLS contexts refer to by name alone.
	Secrets []*config.Secret
	// Local is the name of the static cluster that this server belongs to. Zone-aware
	// routing requires it. Optional.
	Local string
	// Bind is the local address of connections of clusters that set none. If nil, any
	// address is used.
	Bind *config.Bind
	// OutlierLog is a file for ejections and unejections of hosts, as lines of JSON.
	// Optional.
	OutlierLog string

	// Control creates the control plane client. If nil, clusters and secrets from
	// control planes or files are rejected. Package server/envoyapi sets it.
	Control func(*Server) (Control, error)
	// Environment looks up environment variables that hold certificates and keys. If
	// nil, they are rejected.
	Environment func(name string) (value string, ok bool)

	// Resolver resolves host names. If nil, the system's resolver is used.
	Resolver discovery.Resolver
	// Types maps names to additional cluster types.
	Types map[string]discovery.Type
	// CustomCheck returns the factory of the probers of a custom health check. If
	// nil, such checks are rejected.
	CustomCheck func(*config.Cluster) (func(*host.Host) health.Prober, error)
	// Supported lists the cluster fields that the program itself implements, Accept
	// can reject clusters, and OriginalHosts limits the hosts of ORIGINAL_DST
	// clusters; see [upstream.Config].
	Supported     []string
	Accept        func(*config.Cluster) error
	OriginalHosts int
	// Hooks are called for host and cluster events.
	Hooks upstream.Hooks
}

// Control is a client of control planes.
type Control interface {
	// Source finds the hosts of a cluster of type EDS.
	Source(*config.Cluster) (upstream.Source, error)
	// Secrets delivers the secrets of TLS contexts that name a source.
	Secrets() transport.Secrets
	// Attach sets the manager of the clusters. Check returns an error for control
	// planes that cannot be reached.
	Attach(*upstream.Manager)
	Check() error
	// Run follows the control planes until ctx is done.
	Run(ctx context.Context) error
	// FollowsClusters reports whether a control plane delivers clusters.
	FollowsClusters() bool
	// LayersReady is closed once every runtime layer has received its first response.
	LayersReady() <-chan struct{}
}

// makeClusters creates the cluster manager and adds the static clusters.
func (s *Server) makeClusters() error {
	c := &s.cfg.Clusters
	log := s.logger("upstream")
	var secrets transport.Secrets
	var eds func(*config.Cluster) (upstream.Source, error)
	if c.Control != nil {
		var err error
		if s.control, err = c.Control(s); err != nil {
			return err
		}
		secrets, eds = s.control.Secrets(), s.control.Source
	}
	s.transport = transport.New(transport.Config{
		Bind: c.Bind, Environment: c.Environment, Registry: s.certs, Logger: log,
		StaticSecrets: c.Secrets, Secrets: secrets,
	})
	cfg := upstream.Config{
		Store: s.store, Logger: log, Transport: s.transport,
		Runtime: s.runtime, Seed: rand.Uint64(), LocalCluster: c.Local,
		Source: discovery.New(discovery.Config{Resolver: c.Resolver, Types: c.Types, EDS: eds, Logger: log}).Source, CustomCheck: c.CustomCheck, Hooks: s.clusterHooks(),
		Supported: append([]string{"track_cluster_stats.per_endpoint_stats"}, c.Supported...), Accept: c.Accept, OriginalHosts: c.OriginalHosts,
		Logs: s.events, Added: s.obsolete.note,
	}
	if c.OutlierLog != "" {
		var err error
		if s.outliers, err = s.events.Open(c.OutlierLog); err != nil {
			return err
		}
		cfg.OutlierLog = s.outliers
	}
	if n := s.cfg.Node; n != nil && (n.Region != "" || n.Zone != "" || n.SubZone != "") {
		cfg.Local = &config.Locality{Region: n.Region, Zone: n.Zone, SubZone: n.SubZone}
	}
	s.clusters = upstream.New(cfg)
	if s.control != nil {
		s.control.Attach(s.clusters)
	}
	var errs []error
	for _, p := range c.Static {
		err := s.clusters.AddStatic(p)
		if at, ok := p.(interface{ Location() string }); ok && err != nil && at.Location() != "" {
			err = fmt.Errorf("%s: %w", at.Location(), err)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || s.control == nil {
		return err
	}
	return s.control.Check()
}

// NoteUnknownFields handles a control plane resource with n unknown fields according
// to the command line: it rejects the resource, or counts the fields and logs them at
// most once a minute.
func (s *Server) NoteUnknownFields(resource string, n int) error {
	return s.noteUnknownFields(resource, n, time.Now())
}

func (s *Server) noteUnknownFields(resource string, n int, now time.Time) error {
	o := &s.cfg.CommandLine
	switch {
	case o.RejectUnknownDynamicFields:
		return fmt.Errorf("%d unknown fields", n)
	case o.IgnoreUnknownDynamicFields:
		return nil
	}
	s.gauges.dynamicUnknown.Add(uint64(n))
	before := s.unknownLogged.Load()
	if (before == nil || now.Sub(*before) >= time.Minute) && s.unknownLogged.CompareAndSwap(before, &now) {
		s.logger("upstream").Warn("a control plane sends unknown fields; server.dynamic_unknown_fields counts all of them", "resource", resource, "fields", n)
	}
	return nil
}

// runClusters starts host discovery and makes the server live once the clusters are
// ready.
func (s *Server) runClusters(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.clusters.StopDiscovery) // large rings take seconds to build
	s.clusters.Start()
	stop()
	for _, ready := range []<-chan struct{}{s.clusters.Ready(), s.layersReady()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	s.initialize()
	return nil
}

// layersReady is closed once every runtime layer of a control plane has received its
// first response.
func (s *Server) layersReady() <-chan struct{} {
	if s.control == nil {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	return s.control.LayersReady()
}

// clusterHooks returns hooks that log events and call the hooks of the
// configuration.
func (s *Server) clusterHooks() upstream.Hooks {
	h := s.cfg.Clusters.Hooks
	checks, log := s.loggers.Logger("hc"), s.loggers.Logger("upstream")
	hooks := h
	h.HealthChanged = func(c *upstream.Cluster, of *host.Host) {
		checks.Debug("health changed", "cluster", c.Config().Name, "host", of.AddressText(), "healthy", of.Health() == status.Healthy)
		if hooks.HealthChanged != nil {
			hooks.HealthChanged(c, of)
		}
	}
	h.ClusterReady = func(c *upstream.Cluster) {
		log.Debug("cluster is ready", "cluster", c.Config().Name)
		if hooks.ClusterReady != nil {
			hooks.ClusterReady(c)
		}
	}
	h.OutlierEvent = func(c *upstream.Cluster, e outlier.Event) {
		log.Debug("outlier detection", "cluster", c.Config().Name, "host", e.Host.AddressText(), "ejected", e.Eject, "enforced", e.Enforced)
		if hooks.OutlierEvent != nil {
			hooks.OutlierEvent(c, e)
		}
	}
	return h
}

// dialCluster connects to a host of a cluster, from a goroutine of the gRPC library.
func (s *Server) dialCluster(ctx context.Context, cluster string) (conn net.Conn, err error) {
	err = errors.New("server: the connection to a cluster panicked")
	s.guard.Run("connection to a cluster", func() { conn, err = s.clusters.DialGRPC(ctx, cluster) })
	return conn, err
}

// Clusters returns the cluster manager. A proxy can add its own clusters to it.
func (s *Server) Clusters() *upstream.Manager { return s.clusters }

// unready lists the pending init targets of the server and of warming clusters.
func (s *Server) unready() []lifecycle.Unready {
	out := s.life.Unready()
	unready := s.clusters.Unready()
	for _, c := range unready {
		out = append(out, lifecycle.Unready{
			Component: clusterComponent, Name: "init manager Cluster " + c.Config().Name, Targets: targets(c),
		})
	}
	return append(out, s.unanswered(len(unready) == 0)...)
}

// unanswered lists the control planes whose first response is pending. Dynamic
// clusters are requested once all existing clusters are ready.
func (s *Server) unanswered(allReady bool) (out []lifecycle.Unready) {
	waits := func(ready <-chan struct{}) bool {
		select {
		case <-ready:
			return false
		default:
			return true
		}
	}
	if s.control != nil && s.control.FollowsClusters() && allReady && waits(s.clusters.Ready()) {
		out = append(out, lifecycle.Unready{Component: clusterComponent, Name: "init manager Clusters", Targets: []string{"target CDS"}})
	}
	if waits(s.layersReady()) {
		out = append(out, lifecycle.Unready{Component: "runtime", Name: "init manager Runtime", Targets: []string{"target RTDS"}})
	}
	return out
}

// targets lists the pending init targets of a cluster: first the secrets of its
// connections, then its hosts, then their health checks.
func targets(c *upstream.Cluster) (list []string) {
	for _, secret := range c.AwaitedSecrets() {
		list = append(list, "target SdsApi "+secret)
	}
	name := c.Config().Name
	switch {
	case len(list) > 0:
	case c.Discovered():
		list = append(list, "target "+name+" health check")
	default:
		list = append(list, "target "+name+" "+discoveryName(c.Config()))
	}
	return list
}

// clusterComponent is the mask that selects clusters in /init_dump.
const clusterComponent = "cluster"

func discoveryName(c *config.Cluster) string {
	switch c.Type {
	case config.StrictDNS, config.LogicalDNS:
		return "dns"
	case config.EDSDiscovery:
		return "eds"
	case config.CustomDiscovery:
		return c.CustomType.Name
	}
	return "start" // the only pending target is the start of the server
}

// circuitOf returns the name of the cluster with a stat name, and its limit of pending
// requests at the default priority.
func (s *Server) circuitOf(statName string) (name string, maxPending uint64) {
	var found *upstream.Cluster
	if h := s.clusters.Cluster(statName); h != nil {
		found = h.Current()
	}
	if found == nil || found.Config().StatName != statName {
		found = nil
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
		return statName, eventstream.DefaultMaxPending
	}
	return found.Config().Name, found.Breakers(upstream.DefaultPriority).Pending.Max()
}
