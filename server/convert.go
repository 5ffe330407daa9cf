package server

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// StoreOptions returns the options of a store for a bootstrap configuration.
// fixed are tags that every stat gets.
func StoreOptions(c *bootstrap.Config, product string, fixed []tags.Tag, fakeSymbols bool) (store.Options, error) {
	o := store.Options{
		Product: product,
		Symbols: symtab.Options{Fake: fakeSymbols},
		Naming: naming.Rules{
			NetworkPrefix:  c.StatsD.Exposition.Prefix,
			NetworkTotal:   c.StatsD.Exposition.CounterSuffix == "total",
			NetworkSeconds: c.StatsD.Exposition.TimerUnit == "s",
			NetworkRunes:   c.StatsD.Exposition.Compat == "statsd_exporter",

			NetworkSummaries: c.StatsD.Exposition.Observer == "summary",

			Unique: c.Stats.UniqueSeries,
		},
	}
	if c.StatsD.SelfMetrics == "statsd_exporter" {
		o.Naming.Namespaces = append(o.Naming.Namespaces, statsd.ExporterNamespace)
	}
	specs := make([]tags.Spec, len(c.Stats.Tags))
	for i, t := range c.Stats.Tags {
		specs[i] = tags.Spec{Name: t.Name, Regex: t.Regex, Fixed: t.Fixed}
	}
	var err error
	o.Tags, err = tags.New(tags.Config{
		Product: product, UseDefaults: c.Stats.UseAllDefaultTags, Tags: specs,
		CommandLine: fixed, AllowOverrides: c.Stats.TagOverrides,
	})
	if err != nil {
		return o, fmt.Errorf("stats_config.stats_tags: %w", err)
	}
	if o.Reject, err = rejecter(c.Stats.Matcher); err != nil {
		return o, err
	}
	for i, h := range c.Stats.Histograms {
		m, err := matcher(h.Match)
		if err != nil {
			return o, err
		}
		set := store.HistogramSetting{Match: m.Match, Buckets: h.Buckets, SignificantDigits: h.SignificantDigits}
		if err := set.Check(); err != nil {
			return o, fmt.Errorf("stats_config.histogram_bucket_settings[%d]: %w", i, err)
		}
		o.Histograms = append(o.Histograms, set)
	}
	return o, nil
}

func matcher(m bootstrap.StringMatcher) (match.Matcher, error) {
	kind := map[bootstrap.MatchKind]match.Kind{
		bootstrap.MatchExact:    match.KindExact,
		bootstrap.MatchPrefix:   match.KindPrefix,
		bootstrap.MatchSuffix:   match.KindSuffix,
		bootstrap.MatchContains: match.KindContains,
		bootstrap.MatchRegex:    match.KindRegex,
	}[m.Kind]
	return match.New(kind, m.Pattern, m.IgnoreCase)
}

func matchers(ms []bootstrap.StringMatcher) (match.List, error) {
	var list match.List
	for _, m := range ms {
		c, err := matcher(m)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// rejecter returns the stats matcher as a function, nil if it accepts all.
func rejecter(m bootstrap.StatsMatcher) (func(string) bool, error) {
	switch {
	case m.RejectAll:
		return func(string) bool { return true }, nil
	case len(m.Exclusion) > 0:
		list, err := matchers(m.Exclusion)
		return list.Match, err
	case len(m.Inclusion) > 0:
		list, err := matchers(m.Inclusion)
		return func(name string) bool { return !list.Match(name) }, err
	}
	return nil, nil
}

// statsdConfig returns the settings of the StatsD input.
func statsdConfig(c *bootstrap.StatsD) (statsd.Config, error) {
	cfg := statsd.Config{
		Prefix:          oneline.Clean(c.Prefix),
		ExtractTags:     c.ExtractTags,
		RejectConflicts: c.Exposition.TypeConflict == "reject",
		Events:          kept(c.EventsKept),
		Checks:          kept(c.ChecksKept),
		CheckGauges:     c.CheckGauges,
		ForgetRejected:  !c.KeepRejected,
		ExporterMetrics: c.SelfMetrics == "statsd_exporter",
		TTL:             statsd.TTL{Counter: c.TTL.Counter, Gauge: c.TTL.Gauge, Histogram: c.TTL.Histogram, Set: c.TTL.Set},
		Parse: statsd.ParseConfig{
			AbsoluteGauges: c.Parse.GaugeSigns == bootstrap.SignsAbsolute,
			TagContainer:   c.Parse.Container == bootstrap.ContainerTag,
		},
		Limits: statsd.Limits{
			LineBytes: c.Limits.LineBytes, LinesPerPacket: c.Limits.LinesPerPacket, NameBytes: c.Limits.NameBytes,
			Segments: c.Limits.Segments, Tags: c.Limits.Tags, TagKeyBytes: c.Limits.TagKeyBytes, TagValueBytes: c.Limits.TagValueBytes,
			Series: c.Limits.Series, FirstSegment: c.Limits.SeriesPerFirstSegment, SeriesPerName: c.Limits.SeriesPerName,
			NewPerSecond: c.Limits.NewSeriesPerSecond, Sets: c.Limits.Sets,
			ValuesPerTagKey: c.Limits.ValuesPerTagKey,
		},
	}
	falling, err := matchers(c.Parse.GaugeCounters)
	if err != nil {
		return cfg, fmt.Errorf("statsd.parse.gauge_counters: %w", err)
	}
	if c.Parse.NegativeCounters == bootstrap.NegativeGauge {
		cfg.GaugeBacked = falling.Match
	}
	for style, on := range map[line.Styles]bool{
		line.DogStatsD: c.Parse.DogStatsD, line.Influx: c.Parse.Influx, line.Librato: c.Parse.Librato,
		line.SignalFX: c.Parse.SignalFX, line.Graphite: c.Parse.Graphite,
	} {
		if !on {
			cfg.Parse.Off |= style
		}
	}
	for _, l := range c.Listeners {
		cfg.Listeners = append(cfg.Listeners, statsd.ListenerConfig{
			Address: l.Address, Name: l.Name,
			Readers: l.Readers, RcvBuf: l.ReceiveBuffer, PacketBytes: l.MaxPacketBytes, Allowed: l.AllowedCIDRs,
			Connections: l.MaxConnections, PerAddress: l.MaxPerAddress, IdleTimeout: l.IdleTimeout,
			Mode: l.Mode, Owner: l.Owner, Group: l.Group,
		})
	}
	return cfg, nil
}

// statsdTLS returns the files of the listeners that speak TLS, by their index.
func statsdTLS(c *bootstrap.StatsD) map[int]certs.Files {
	files := make(map[int]certs.Files)
	for i, l := range c.Listeners {
		if l.TLS != nil {
			files[i] = certs.Files{Chain: l.TLS.Chain, Key: l.TLS.Key, ClientCA: l.TLS.ClientCA}
		}
	}
	return files
}

// kept turns a number of things to keep into that of a package where 0 means
// the default and a negative number none.
func kept(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// runtimeLayers returns the layers of runtime values.
func runtimeLayers(ls []bootstrap.RuntimeLayer) []layers.Layer {
	kinds := map[bootstrap.LayerKind]layers.Kind{
		bootstrap.StaticLayer: layers.Static,
		bootstrap.DiskLayer:   layers.Disk,
		bootstrap.AdminLayer:  layers.Admin,
		bootstrap.RTDSLayer:   layers.RTDS,
	}
	out := make([]layers.Layer, len(ls))
	for i, l := range ls {
		out[i] = layers.Layer{
			Name: l.Name, Kind: kinds[l.Kind], Values: l.Static,
			SymlinkRoot: l.SymlinkRoot, Subdirectory: l.Subdirectory, AppendServiceCluster: l.AppendServiceCluster,
		}
	}
	return out
}

// adminConfig returns the settings of the administration server.
func adminConfig(c *bootstrap.Admin, product string) (admin.Config, error) {
	cfg := admin.Config{
		Product: product,
		Mode: map[bootstrap.AdminMode]admin.Mode{
			bootstrap.ModeReadOnly: admin.ModeReadOnly, bootstrap.ModeMetricsOnly: admin.ModeMetricsOnly,
		}[c.Mode],
		HostCheck: map[bootstrap.HostCheckMode]admin.HostMode{
			bootstrap.HostCheckStrict: admin.HostStrict, bootstrap.HostCheckOff: admin.HostOff,
		}[c.HostCheck],
		AllowedHosts: c.AllowedHosts, AllowedOrigins: c.AllowedOrigins, ReadOrigins: c.CORSReadOrigins,
		SocketMode: c.Address.Mode, SocketGroup: c.SocketGroup, ShowUntyped: !c.RedactUntyped,
	}
	switch {
	case c.Address.Pipe != "":
		cfg.Address = "unix:" + c.Address.Pipe
	default:
		cfg.Address = c.Address.String()
	}
	for _, m := range c.AllowPaths {
		compiled, err := matcher(m)
		if err != nil {
			return cfg, err
		}
		cfg.AllowPaths = append(cfg.AllowPaths, compiled)
	}
	l := &c.Limits
	cfg.Limits = admin.Limits{
		HeaderBytes: l.HeaderBytes, TargetBytes: l.TargetBytes, BodyBytes: l.BodyBytes, Headers: l.Headers,
		QueryParams: l.QueryParameters, QueryValue: l.QueryValueBytes,
		Connections: l.Connections, ConnectionsPerPeer: l.ConnectionsPerAddress,
		ReadTimeout: l.ReadTimeout, IdleTimeout: l.IdleTimeout, StreamStall: l.StreamStall, ResponseTime: l.ResponseTime,
		ShutdownTime: l.ShutdownTime,
		HeavyRunning: l.HeavyRunning, HeavyWaiting: l.HeavyWaiting, HeavyWait: l.HeavyWait, Compressors: l.Compressors,
		RegexBytes: l.RegexBytes, RegexProgram: l.RegexProgram, RegexBudget: l.RegexBudget, RegexParallel: l.RegexParallel,
		AuditEntries: l.AuditEntries,
	}
	return cfg, nil
}
