package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/process"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// Startup holds the settings that a program adds to its bootstrap file.
type Startup struct {
	// Tags are added to every stat.
	Tags []tags.Tag
	// FakeSymbols disables recent lookups for the life of the process.
	FakeSymbols bool
	// CommandLine holds the command line options. Its node fields override
	// the ones in the file. The drain time and strategy, the flush settings of
	// logs, mutex tracing and the admin address file take effect.
	CommandLine server.CommandLine
	// DefaultCommandLine holds the options of a start without arguments.
	DefaultCommandLine server.CommandLine
	// Version is the build version that /server_info shows.
	Version string
	// Environment looks up environment variables that hold certificates and
	// keys of clusters. If nil, such references are refused.
	Environment func(name string) (value string, ok bool)
}

// Server returns the server configuration that the file and o describe. The
// files that the configuration names must exist. The caller sets the loggers.
func (c *Config) Server(o Startup) (server.Config, error) {
	if err := c.CheckFiles(); err != nil {
		return server.Config{}, err
	}
	opts, err := storeOptions(c, o.Tags, o.FakeSymbols)
	if err != nil {
		return server.Config{}, err
	}
	cfg := server.Config{
		Store:          store.New(opts),
		Admin:          adminConfig(&c.Admin),
		HistoryBytes:   cmp.Or(c.Stats.HistoryBytes, -1), // 0 means none
		Flush:          flush.Config{Interval: c.Stats.FlushInterval, OnAdmin: c.Stats.FlushOnAdmin, EvictionInterval: c.Stats.EvictionInterval},
		Clusters:       server.Clusters{Local: c.Clusters.Local, Bind: c.Clusters.Bind, OutlierLog: c.Clusters.OutlierLog, Environment: o.Environment},
		ProfilePath:    c.Admin.ProfilePath,
		FilePosition:   c.FilePosition,
		UnknownFields:  uint64(len(c.UnknownFields)),
		ServiceCluster: c.Node.Cluster,
	}
	node := c.Node
	node.UserAgentName = opts.Tags.Product()
	node.MajorNumber, node.MinorNumber, node.Fix = buildNumbers(o.Version)
	cfg.Node = &node
	cfg.Admin.PreferOpenMetrics, cfg.Admin.OmitCreated = c.StatsD.PreferOpenMetrics, c.StatsD.OmitCreated
	for _, p := range c.Clusters.Static {
		cfg.Clusters.Static = append(cfg.Clusters.Static, p)
	}
	for _, l := range c.Runtime {
		cfg.Layers = append(cfg.Layers, l.Layer)
	}
	cfg.Lifecycle.FlagsPath = c.FlagsPath
	o.apply(&cfg)
	cfg.CircuitStream = circuitStream(c)
	cfg.Sinks = newSinks(c)
	cfg.StatsVersion = versionNumber(o.Version)
	if c.Stats.ServerVersionSet {
		cfg.StatsVersion = uint64(c.Stats.ServerVersion)
	}
	if c.StatsD.Enabled {
		input, files := c.StatsD.Config, make(map[int]certs.Files)
		for i, l := range c.StatsD.Listeners {
			input.Listeners = append(input.Listeners, l.ListenerConfig)
			if l.Files != nil {
				files[i] = *l.Files
			}
		}
		cfg.StatsD, cfg.StatsDTLS = &input, files
		if m := &c.StatsD.Mapping; m.Given() {
			cfg.StatsDRules = &server.RulesSource{File: m.File, Watch: m.Watch, Load: m.Load}
		}
	}
	cfg.AccessLogs = accessLogs(c, o)
	for _, l := range c.HealthListeners {
		l.HeaderPrefix, l.Cluster = headerPrefix(c), cfg.ServiceCluster
		cfg.HealthListeners = append(cfg.HealthListeners, l)
	}
	cfg.IgnoreGlobalLimit, cfg.AdminTLS = c.Admin.IgnoreGlobalConnLimit, c.Admin.TLS
	if c.Admin.Auth != nil {
		cfg.AdminTokens = c.Admin.Auth.TokensFile
	}
	addAPI(&cfg, c, o)
	return cfg, nil
}

// apply adds the command line options to cfg.
func (s *Startup) apply(cfg *server.Config) {
	o := &s.CommandLine
	cfg.CommandLine, cfg.DefaultCommandLine, cfg.Version = *o, s.DefaultCommandLine, s.Version
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

// storeOptions returns the options of a store for a bootstrap configuration.
// fixed are tags that every stat gets.
func storeOptions(c *Config, fixed []tags.Tag, fakeSymbols bool) (store.Options, error) {
	o := store.Options{OwnPrefix: c.Stats.OwnPrefix, Symbols: symtab.Options{Fake: fakeSymbols}, Naming: c.StatsD.Naming}
	o.Naming.Bare, o.Naming.Unique = process.Segments(), c.Stats.UniqueSeries
	var err error
	o.Tags, err = tags.New(tags.Config{
		Product: c.product, UseDefaults: c.Stats.UseAllDefaultTags, Tags: c.Stats.Tags,
		CommandLine: fixed, AllowOverrides: c.Stats.TagOverrides,
	})
	if err != nil {
		return o, fmt.Errorf("stats_config.stats_tags: %w", err)
	}
	o.Reject = c.Stats.Reject
	for i, h := range c.Stats.Histograms {
		if err := h.Check(); err != nil {
			return o, fmt.Errorf("stats_config.histogram_bucket_settings[%d]: %w", i, err)
		}
		o.Histograms = append(o.Histograms, h)
	}
	return o, nil
}

// adminConfig returns the settings of the administration server.
func adminConfig(c *Admin) admin.Config {
	cfg := c.Config
	cfg.Address, cfg.SocketMode = c.Address.endpoint(), c.Address.Mode
	cfg.Limits = c.Limits.Limits
	if c.Auth != nil {
		cfg.Auth = &c.Auth.Auth
	}
	return cfg
}

func accessLogs(c *Config, boot Startup) (out []accesslog.Config) {
	if c.Admin.Address.IsZero() {
		return nil
	}
	for _, l := range c.Admin.AccessLog {
		cfg := l.Config
		cfg.HeaderPrefix = headerPrefix(c)
		cfg.FlushInterval, cfg.FlushBytes = boot.CommandLine.FileFlushInterval, int(boot.CommandLine.FileFlushMinSize)<<10
		out = append(out, cfg)
	}
	return out
}

// headerPrefix returns what the names of own headers begin with.
func headerPrefix(c *Config) string {
	return cmp.Or(c.HeaderPrefix, "x-"+cmp.Or(c.product, tags.DefaultProduct))
}

// addAPI adds to cfg what the file has for control planes and what
// /config_dump shows of it.
func addAPI(cfg *server.Config, c *Config, boot Startup) {
	file, _ := c.Root.Value().(map[string]any)
	api := envoyapi.Config{
		CDS: c.Clusters.CDS, ADS: c.Clusters.ADS, RTDS: make(map[string]xds.Layer), Secrets: c.Clusters.Secrets, Bootstrap: file,
		Decoder: decode.NewDecoder(decode.Options{
			Product: c.product, V2: v2form.Messages(), ReadFile: transport.ReadFile,
			AllowUnknown: !boot.CommandLine.RejectUnknownDynamicFields,
		}),
	}
	for _, l := range c.Runtime {
		if l.RTDSSource != nil {
			api.RTDS[l.Name] = xds.Layer{Name: l.RTDSName, Source: *l.RTDSSource}
		}
	}
	envoyapi.Add(cfg, api)
	if c.Admin.Tap || len(c.Admin.TapIDs) > 0 {
		t := envoyapi.AddTap(cfg)
		for _, id := range c.Admin.TapIDs {
			t.Register(id)
		}
	}
}

// circuitStream returns the settings that a file has for the stream, nil if it
// has no sink for it.
func circuitStream(c *Config) *server.CircuitStream {
	for _, sink := range c.Stats.Sinks {
		if sink.CircuitStream() {
			return &server.CircuitStream{
				AnyOrigin: c.Admin.CircuitStreamAny, Clients: c.Admin.Limits.CircuitStreams, Buckets: sink.Buckets,
			}
		}
	}
	return nil
}

// hotRestartOf returns the settings that a command line has for hot restarts, nil
// if they are switched off.
func hotRestartOf(o *server.CommandLine) *server.HotRestart {
	if o.DisableHotRestart || o.SocketPath == "" || o.Mode == "InitOnly" || hotrestart.Version() == "disabled" {
		return nil
	}
	return &server.HotRestart{
		SocketPath: o.SocketPath, SocketMode: fs.FileMode(o.SocketMode),
		BaseID: uint32(o.BaseID), UseDynamicBaseID: o.UseDynamicBaseID, BaseIDPath: o.BaseIDPath, RestartEpoch: o.RestartEpoch,
		SkipOnNoParent: o.SkipHotRestartOnNoParent, SkipParentStats: o.SkipHotRestartParentStats,
		ParentShutdownTime: o.ParentShutdownTime,
	}
}

// versionNumber is what the gauge server.version shows of a build: the first six
// digits of its revision, which are hexadecimal, or 0.
func versionNumber(build string) uint64 {
	revision, _, _ := strings.Cut(build, "/")
	n, err := strconv.ParseUint(revision[:min(len(revision), 6)], 16, 32)
	if err != nil {
		return 0
	}
	return n
}

// Explainer returns a function that explains how a new server with this
// configuration would handle a line. It binds nothing. Without a statsd
// section, the defaults apply. The function is safe for concurrent use.
func (c *Config) Explainer(o Startup) (func(line []byte) report.Explanation, error) {
	opts, err := storeOptions(c, o.Tags, o.FakeSymbols)
	if err != nil {
		return nil, err
	}
	cfg := c.StatsD.Config
	cfg.Store = store.New(opts)
	if c.StatsD.Mapping.Given() {
		if cfg.Rules, _, err = c.StatsD.Mapping.Load(); err != nil {
			var invalid *Errors
			if at := c.FilePosition(c.StatsD.Mapping.File); at != "" && !errors.As(err, &invalid) {
				err = fmt.Errorf("%s: %q: %w", at, c.StatsD.Mapping.File, boundedfile.Cause(err))
			}
			return nil, err
		}
	}
	s, err := statsd.New(cfg)
	if err != nil {
		return nil, err
	}
	return s.Explain, nil
}
