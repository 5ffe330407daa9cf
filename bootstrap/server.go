package bootstrap

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
	"github.com/statsd-admin/statsd-admin/server/hotrestart"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// Startup holds the settings that a program adds to its bootstrap file.
type Startup struct {
	// Product is the product name. Default "proxy".
	Product string
	// Tags are added to every stat.
	Tags []tags.Tag
	// FakeSymbols disables recent lookups for the life of the process.
	FakeSymbols bool
	// CommandLine holds the command line options. Its node fields override
	// those of the file. The drain time and strategy, the flush settings of
	// logs, mutex tracing and the admin address file take effect.
	CommandLine server.CommandLine
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
	product := o.Product
	opts, err := storeOptions(c, product, o.Tags, o.FakeSymbols)
	if err != nil {
		return server.Config{}, err
	}
	adm, err := adminConfig(&c.Admin, product)
	if err != nil {
		return server.Config{}, err
	}
	adm.PreferOpenMetrics = c.StatsD.Exposition.OpenMetrics == "prefer"
	cfg := server.Config{
		Store:          store.New(opts),
		Admin:          adm,
		Flush:          flush.Config{Interval: c.Stats.FlushInterval, OnAdmin: c.Stats.FlushOnAdmin, EvictionInterval: c.Stats.EvictionInterval},
		Layers:         runtimeLayers(c.Runtime),
		Clusters:       clustersOf(c, o),
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
	cfg.Node.MajorNumber, cfg.Node.MinorNumber, cfg.Node.Fix = buildNumbers(o.Version)
	cfg.Lifecycle.FlagsPath = c.FlagsPath
	o.apply(&cfg)
	cfg.CircuitStream = circuitStream(c)
	cfg.StatsVersion = versionNumber(o.Version)
	if c.Stats.ServerVersionSet {
		cfg.StatsVersion = uint64(c.Stats.ServerVersion)
	}
	if c.StatsD.Enabled {
		s, err := statsdConfig(&c.StatsD)
		if err != nil {
			return server.Config{}, err
		}
		cfg.StatsD, cfg.StatsDTLS = &s, statsdTLS(&c.StatsD)
	}
	if cfg.AccessLogs, err = accessLogs(c, o); err != nil {
		return server.Config{}, err
	}
	cfg.HealthListeners = healthListeners(c, o, cfg.ServiceCluster)
	if err := secureConfig(c, &cfg); err != nil {
		return server.Config{}, err
	}
	addAPI(&cfg, c, o)
	return cfg, nil
}

// apply adds the command line options to cfg.
func (s *Startup) apply(cfg *server.Config) {
	o := &s.CommandLine
	cfg.CommandLine, cfg.Version = *o, s.Version
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
func storeOptions(c *Config, product string, fixed []tags.Tag, fakeSymbols bool) (store.Options, error) {
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

func matcher(m StringMatcher) (match.Matcher, error) {
	kind := map[MatchKind]match.Kind{
		MatchExact:    match.KindExact,
		MatchPrefix:   match.KindPrefix,
		MatchSuffix:   match.KindSuffix,
		MatchContains: match.KindContains,
		MatchRegex:    match.KindRegex,
	}[m.Kind]
	return match.New(kind, m.Pattern, m.IgnoreCase)
}

func matchers(ms []StringMatcher) (match.List, error) {
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
func rejecter(m StatsMatcher) (func(string) bool, error) {
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
func statsdConfig(c *StatsD) (statsd.Config, error) {
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
			AbsoluteGauges: c.Parse.GaugeSigns == SignsAbsolute,
			TagContainer:   c.Parse.Container == ContainerTag,
		},
		Limits: statsd.Limits{
			LineBytes: c.Limits.LineBytes, LinesPerPacket: c.Limits.LinesPerPacket, NameBytes: c.Limits.NameBytes,
			Segments: c.Limits.Segments, Tags: c.Limits.Tags, TagKeyBytes: c.Limits.TagKeyBytes, TagValueBytes: c.Limits.TagValueBytes,
			Series: c.Limits.Series, FirstSegment: c.Limits.SeriesPerFirstSegment, SeriesPerName: c.Limits.SeriesPerName,
			NewPerSecond: c.Limits.NewSeriesPerSecond, Sets: c.Limits.Sets,
			ValuesPerTagKey: c.Limits.ValuesPerTagKey, MemoryBytes: c.Limits.MemoryBytes,
		},
	}
	falling, err := matchers(c.Parse.GaugeCounters)
	if err != nil {
		return cfg, fmt.Errorf("statsd.parse.gauge_counters: %w", err)
	}
	if c.Parse.NegativeCounters == NegativeGauge {
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
func statsdTLS(c *StatsD) map[int]certs.Files {
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
func runtimeLayers(ls []RuntimeLayer) []layers.Layer {
	kinds := map[LayerKind]layers.Kind{
		StaticLayer: layers.Static,
		DiskLayer:   layers.Disk,
		AdminLayer:  layers.Admin,
		RTDSLayer:   layers.RTDS,
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
func adminConfig(c *Admin, product string) (admin.Config, error) {
	cfg := admin.Config{
		Product: product,
		Mode: map[AdminMode]admin.Mode{
			ModeReadOnly: admin.ModeReadOnly, ModeMetricsOnly: admin.ModeMetricsOnly,
		}[c.Mode],
		HostCheck: map[HostCheckMode]admin.HostMode{
			HostCheckStrict: admin.HostStrict, HostCheckOff: admin.HostOff,
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

// accessLogs returns the access logs of a file. The error has the places of
// formats and filters that are wrong.
func accessLogs(c *Config, boot Startup) ([]accesslog.Config, error) {
	if c.Admin.Address.IsZero() {
		return nil, nil
	}
	var out []accesslog.Config
	var wrong Errors
	for _, l := range c.Admin.AccessLog {
		cfg := accesslog.Config{
			Path: l.Path, Format: l.Format, JSON: l.JSON, Typed: l.Typed, OmitEmpty: l.OmitEmpty, HeaderPrefix: headerPrefix(c, boot),
			FlushInterval: boot.CommandLine.FileFlushInterval, FlushBytes: int(boot.CommandLine.FileFlushMinSize) << 10,
		}
		var err error
		if l.Filter != nil {
			cfg.Filter, err = filterOf(l.Filter)
		}
		if err == nil {
			err = accesslog.Check(cfg)
		}
		if err != nil {
			wrong.List = append(wrong.List, l.Source.Error(err))
		}
		out = append(out, cfg)
	}
	if len(wrong.List) > 0 {
		return nil, &wrong
	}
	return out, nil
}

func filterOf(f *AccessFilter) (out accesslog.Filter, err error) {
	out.Status, out.Duration = accessComparison(f.Status), accessComparison(f.Duration)
	if h := f.Header; h != nil {
		out.Header = &accesslog.HeaderTest{Name: h.Name, Absent: h.Absent, Invert: h.Invert, MissingIsEmpty: h.MissingIsEmpty}
		if h.Match != nil {
			m, err := matcher(*h.Match)
			if err != nil {
				return out, err
			}
			out.Header.Match = m.Match
		}
	}
	if out.And, err = filtersOf(f.And); err != nil {
		return out, err
	}
	out.Or, err = filtersOf(f.Or)
	return out, err
}

func filtersOf(list []AccessFilter) ([]accesslog.Filter, error) {
	var out []accesslog.Filter
	for i := range list {
		f, err := filterOf(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func accessComparison(c *Comparison) *accesslog.Comparison {
	if c == nil {
		return nil
	}
	op := map[CompareOp]accesslog.Op{
		CompareEqual: accesslog.Equal, CompareNotEqual: accesslog.NotEqual,
		CompareGreaterOrEqual: accesslog.GreaterOrEqual, CompareLessOrEqual: accesslog.LessOrEqual,
	}[c.Op]
	return &accesslog.Comparison{Op: op, Value: uint64(c.Value), RuntimeKey: c.RuntimeKey}
}

// healthListeners returns the listeners for health checks that a file has.
func healthListeners(c *Config, boot Startup, cluster string) []server.HealthListener {
	var out []server.HealthListener
	for _, h := range c.HealthListeners {
		l := server.HealthListener{Name: h.Name, Address: h.Address.String(), Mode: h.Address.Mode, HeaderPrefix: headerPrefix(c, boot), Cluster: cluster}
		if h.Address.Pipe != "" {
			l.Address = "unix:" + h.Address.Pipe
		}
		out = append(out, l)
	}
	return out
}

// secureConfig adds to cfg what a file says about the security of the admin
// port.
func secureConfig(c *Config, cfg *server.Config) error {
	a := &c.Admin
	cfg.IgnoreGlobalLimit = a.IgnoreGlobalConnLimit
	cfg.Admin.DebugEndpoints = a.DebugEndpoints
	for i, o := range a.SocketOptions {
		option := admin.SocketOption{Level: o.Level, Name: o.Name, Int: o.IntValue, Prebind: o.State == "STATE_PREBIND"}
		if o.BufValue != "" {
			value, err := base64.StdEncoding.DecodeString(o.BufValue)
			if err != nil {
				return fmt.Errorf("admin.socket_options[%d].buf_value: not base64", i)
			}
			option.Bytes = value
		}
		cfg.Admin.SocketOptions = append(cfg.Admin.SocketOptions, option)
	}
	if t := a.TLS; t != nil {
		cfg.AdminTLS = &certs.Files{Chain: t.Chain, Key: t.Key, ClientCA: t.ClientCA, OptionalClient: t.OptionalClient, OCSPStaple: t.OCSPStaple}
		if t.MinVersion == "TLSv1_3" {
			cfg.AdminTLS.MinVersion = tls.VersionTLS13
		}
	}
	if a.Auth == nil {
		return nil
	}
	auth := &admin.Auth{OpenPaths: a.Auth.OpenPaths}
	roles := map[AdminRole]admin.Role{
		RoleMetrics: admin.RoleMetrics, RoleRead: admin.RoleRead,
		RoleOperate: admin.RoleOperate, RoleAdmin: admin.RoleAdmin,
	}
	var tokens []admin.Token
	for _, t := range a.Auth.Tokens {
		tokens = append(tokens, admin.Token{Name: t.Name, Role: roles[t.Role], Digest: t.SHA256})
	}
	auth.Tokens = admin.NewTokens(tokens...)
	for _, p := range a.Auth.ClientCertificates {
		auth.ClientCertificates = append(auth.ClientCertificates, admin.CertificateRole{Name: p.Name, Role: roles[p.Role]})
	}
	for _, p := range a.Auth.UnixPeers {
		auth.UnixPeers = append(auth.UnixPeers, admin.PeerRole{Group: p.Group, ID: p.ID, Role: roles[p.Role]})
	}
	cfg.Admin.Auth, cfg.AdminTokens = auth, a.Auth.TokensFile
	return nil
}

// headerPrefix returns what the names of own headers begin with.
func headerPrefix(c *Config, boot Startup) string {
	return cmp.Or(c.HeaderPrefix, "x-"+cmp.Or(boot.Product, "proxy"))
}

// clustersOf returns the static clusters of a file.
func clustersOf(c *Config, boot Startup) server.Clusters {
	out := server.Clusters{Local: c.Clusters.Local, Bind: c.Clusters.Bind, OutlierLog: c.Clusters.OutlierLog, Environment: boot.Environment}
	for _, p := range c.Clusters.Static {
		out.Static = append(out.Static, p)
	}
	return out
}

// addAPI adds to cfg what the file has for control planes and what
// /config_dump shows of it.
func addAPI(cfg *server.Config, c *Config, boot Startup) {
	file, _ := c.Root.Value().(map[string]any)
	api := envoyapi.Config{
		CDS: c.Clusters.CDS, ADS: c.Clusters.ADS, RTDS: make(map[string]xds.Layer), Secrets: c.Clusters.Secrets, Bootstrap: file,
		Decoder: decode.NewDecoder(decode.Options{
			Product: boot.Product, V2: v2form.Messages(), ReadFile: transport.ReadFile,
			AllowUnknown: !boot.CommandLine.RejectUnknownDynamicFields,
		}),
	}
	for _, l := range c.Runtime {
		if l.Kind == RTDSLayer && l.RTDSSource != nil {
			api.RTDS[l.Name] = xds.Layer{Name: l.RTDSName, Source: *l.RTDSSource}
		}
	}
	envoyapi.Add(cfg, api)
	envoyapi.AddTap(cfg)
}

// circuitStream returns the settings that a file has for the stream, nil if it
// has no sink for it.
func circuitStream(c *Config) *server.CircuitStream {
	for _, sink := range c.Stats.Sinks {
		if sink.CircuitStream() {
			return &server.CircuitStream{
				AnyOrigin: c.Admin.CircuitStreamCORS == CORSAny, Clients: c.Admin.Limits.CircuitStreams, Buckets: sink.Buckets,
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

// Explainer returns a function that explains how a server with this
// configuration that has not received anything yet would treat a line. It binds
// nothing. Without a statsd section the defaults hold. The function is safe for
// concurrent use.
func (c *Config) Explainer(o Startup) (func(line []byte) report.Explanation, error) {
	opts, err := storeOptions(c, o.Product, o.Tags, o.FakeSymbols)
	if err != nil {
		return nil, err
	}
	cfg, err := statsdConfig(&c.StatsD)
	if err != nil {
		return nil, err
	}
	cfg.Store, cfg.Listeners = store.New(opts), nil
	s, err := statsd.New(cfg)
	if err != nil {
		return nil, err
	}
	return s.Explain, nil
}
