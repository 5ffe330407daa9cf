package server

import (
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// FromBootstrap returns the configuration of a server for a bootstrap file.
// fixed are tags that every stat gets; fakeSymbols switches recent lookups off
// for good. What a file does not say, such as loggers, is left to the caller.
func FromBootstrap(c *bootstrap.Config, product string, fixed []tags.Tag, fakeSymbols bool) (Config, error) {
	opts, err := StoreOptions(c, product, fixed, fakeSymbols)
	if err != nil {
		return Config{}, err
	}
	adm, err := adminConfig(&c.Admin, product)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{
		Store:          store.New(opts),
		Admin:          adm,
		Flush:          flush.Config{Interval: c.Stats.FlushInterval, OnAdmin: c.Stats.FlushOnAdmin, EvictionInterval: c.Stats.EvictionInterval},
		Layers:         runtimeLayers(c.Runtime),
		ProfilePath:    c.Admin.ProfilePath,
		UnknownFields:  uint64(len(c.UnknownFields)),
		ServiceCluster: c.Node.Cluster,
		Node: &admin.Node{
			ID: c.Node.ID, Cluster: c.Node.Cluster, Metadata: c.Node.Metadata,
			Region: c.Node.Region, Zone: c.Node.Zone, SubZone: c.Node.SubZone,
			UserAgentName: product, ClientFeatures: c.Node.ClientTags,
		},
	}
	cfg.Lifecycle.FlagsPath = c.FlagsPath
	if c.Stats.ServerVersionSet {
		cfg.StatsVersion = uint64(c.Stats.ServerVersion)
	}
	if c.StatsD.Enabled {
		s := statsdConfig(&c.StatsD)
		cfg.StatsD = &s
	}
	for _, l := range c.Admin.AccessLog {
		cfg.AccessLogs = append(cfg.AccessLogs, accesslog.Config{Path: l.Path, Format: l.Format, Product: product})
	}
	return cfg, nil
}
