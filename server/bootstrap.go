package server

import (
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Tag is a tag that every stat gets.
type Tag = tags.Tag

// CommandLine is the command line options in effect, as /server_info shows them.
type CommandLine = admin.CommandLine

// Boot is what a program adds to its bootstrap file.
type Boot struct {
	// Product is the product name. Default "proxy".
	Product string
	// Tags are tags that every stat gets.
	Tags []Tag
	// FakeSymbols switches recent lookups off for good.
	FakeSymbols bool
	// CommandLine is the command line options. Their node fields override those
	// of the file; drain time, drain strategy, flush settings of logs, mutex
	// tracing and the admin address file take effect.
	CommandLine CommandLine
	// Version is what /server_info calls the build.
	Version string
	// Environment looks up environment variables that hold certificates and
	// keys of clusters. Nil refuses them.
	Environment func(name string) (value string, ok bool)
}

// FromBootstrap returns the configuration of a server for a bootstrap file. The
// files that it names must be there. Loggers are left to the caller.
func FromBootstrap(c *bootstrap.Config, boot Boot) (Config, error) {
	if err := c.CheckFiles(); err != nil {
		return Config{}, err
	}
	product := boot.Product
	opts, err := StoreOptions(c, product, boot.Tags, boot.FakeSymbols)
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
		Clusters:       clustersOf(c, boot),
		Bootstrap:      plainFile(c),
		ProfilePath:    c.Admin.ProfilePath,
		FilePlace:      c.FilePlace,
		UnknownFields:  uint64(len(c.UnknownFields)),
		ServiceCluster: c.Node.Cluster,
		Node: &admin.Node{
			ID: c.Node.ID, Cluster: c.Node.Cluster, Metadata: c.Node.Metadata,
			Region: c.Node.Region, Zone: c.Node.Zone, SubZone: c.Node.SubZone,
			UserAgentName: product, ClientFeatures: c.Node.ClientTags,
		},
	}
	cfg.Node.MajorNumber, cfg.Node.MinorNumber, cfg.Node.Fix = buildNumbers(boot.Version)
	cfg.Tap = true
	cfg.Lifecycle.FlagsPath = c.FlagsPath
	cfg.apply(boot)
	cfg.CircuitStream = circuitStream(c)
	cfg.StatsVersion = versionNumber(boot.Version)
	if c.Stats.ServerVersionSet {
		cfg.StatsVersion = uint64(c.Stats.ServerVersion)
	}
	if c.StatsD.Enabled {
		s, err := statsdConfig(&c.StatsD)
		if err != nil {
			return Config{}, err
		}
		cfg.StatsD, cfg.StatsDTLS = &s, statsdTLS(&c.StatsD)
	}
	if cfg.AccessLogs, err = accessLogs(c, boot); err != nil {
		return Config{}, err
	}
	cfg.HealthListeners = healthListeners(c, boot, cfg.ServiceCluster)
	if err := secureConfig(c, &cfg); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// apply lets the command line have its effect.
func (cfg *Config) apply(boot Boot) {
	o := &boot.CommandLine
	cfg.CommandLine, cfg.Version = *o, boot.Version
	cfg.AdminAddressPath = o.AdminAddressPath
	cfg.TraceMutexes = o.EnableMutexTracing
	cfg.HotRestart = hotRestartOf(o)
	cfg.Lifecycle.DrainTime = o.DrainTime
	if o.DrainTime == 0 {
		cfg.Lifecycle.DrainTime = -1 // at once; 0 would be the default
	}
	if o.DrainStrategy == lifecycle.Immediate.String() {
		cfg.Lifecycle.Strategy = lifecycle.Immediate
	}
	if o.ServiceCluster != "" {
		cfg.ServiceCluster, cfg.Node.Cluster = o.ServiceCluster, o.ServiceCluster
	}
	if o.ServiceNode != "" {
		cfg.Node.ID = o.ServiceNode
	}
	if o.ServiceZone != "" {
		cfg.Node.Zone = o.ServiceZone
	}
}

// buildNumbers returns the numbers of the second part of a version such as
// revision/1.2.3/Clean/RELEASE/go1.26, zeros if it has none.
func buildNumbers(version string) (major, minor, fix uint32) {
	parts := strings.Split(version, "/")
	if len(parts) < 2 {
		return 0, 0, 0
	}
	release, _, _ := strings.Cut(parts[1], "-") // before the name of a pre-release
	release, _, _ = strings.Cut(release, "+")
	numbers := strings.Split(strings.TrimPrefix(release, "v"), ".")
	if len(numbers) != 3 {
		return 0, 0, 0
	}
	var out [3]uint32
	for i, text := range numbers {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return 0, 0, 0
		}
		out[i] = uint32(n)
	}
	return out[0], out[1], out[2]
}
