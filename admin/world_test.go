package admin

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// world is a program with a server. It holds everything that endpoints can change.
type world struct {
	mu       sync.Mutex
	state    string
	calls    []string
	runtime  *layers.Loader
	levels   []logctl.LoggerLevel
	profiles map[string]bool
	failing  error

	clusters       []worldCluster
	clusterVersion string
	tracked        []string // names of clusters with statistics of hosts
	config         []configdump.Section
}

func newWorld() *world {
	return &world{clusters: usualClusters(), clusterVersion: "static", config: usualConfig(), state: "LIVE", runtime: runtimeLayers("defaults", "disk", "admin"), profiles: map[string]bool{},
		levels: []logctl.LoggerLevel{{Name: "admin", Level: logctl.Info}, {Name: "main", Level: logctl.Debug}, {Name: "stats", Level: logctl.Info}}}
}

// String returns everything that endpoints can change.
func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.state, w.calls, w.overrides(), w.levels, w.profiles)
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

// sources returns the sources that read and change w.
func (w *world) sources() Sources {
	return Sources{
		State: func() string { w.mu.Lock(); defer w.mu.Unlock(); return w.state },
		Info: func() ServerInfo {
			return ServerInfo{Version: "0b1fc9/0.4.1/Clean/RELEASE/Go1.26", UptimeCurrentEpoch: 95900 * time.Millisecond,
				UptimeAllEpochs: 4210 * time.Second,
				CommandLine: CommandLine{Concurrency: 2, ConfigPath: "/etc/ourproduct/boot.yaml", LogLevel: "info", FileFlushInterval: 10 * time.Second,
					DrainTime: 600 * time.Second, ParentShutdownTime: 900 * time.Second, StatsTags: []string{"a:b"}, SocketMode: 384},
				Node: &Node{ID: "n-17", Cluster: "edge", Metadata: map[string]any{"b": []any{1.5, true, nil, "x"}, "a": map[string]any{}},
					Zone: "z-2", UserAgentName: "proxy", MajorNumber: 1, MinorNumber: 2, Extensions: []string{"tap"}}}
		},
		HotRestartVersion: func() string { return "11.104" },
		Memory: func() Memory {
			return Memory{41943040, 67108864, 1048576, 8388608, 65536, 71303168}
		},
		Contention:    func() (Contention, bool) { return Contention{3, 250, 1 << 60}, true },
		Quit:          func() { w.note("quit") },
		Health:        (*worldHealth)(w),
		Drains:        (*worldDrains)(w),
		Runtime:       w.runtime,
		Loggers:       (*worldLoggers)(w),
		ReopenLogs:    func() error { w.note("reopen"); return w.failing },
		CPUProfiler:   worldProfiler{w, "cpu"},
		HeapProfiler:  worldProfiler{w, "heap"},
		Ingest:        (*worldIngest)(w),
		ReloadMapping: func() error { w.note("reload"); return w.failing },
		Sinks:         w.sinks,
		Clusters:      (*worldClusters)(w),
		ConfigDump:    configdump.Source(w.configDump),
		Listeners: func() []listeners.Listener {
			ip := func(text string) config.Address { return config.Address{IP: netip.MustParseAddrPort(text)} }
			return []listeners.Listener{
				{Name: "ingress", Addresses: []config.Address{ip("0.0.0.0:15001"), ip("0.0.0.0:15002")}},
				{Name: "metrics_in", Addresses: []config.Address{ip("[::1]:8125")}, Protocol: listeners.UDP},
				{Name: "local\n", Addresses: []config.Address{{Pipe: "/run/in.sock"}}},
			}
		},
		Certificates: func() []certinfo.Context {
			day := func(d int) time.Time { return testTime().AddDate(0, 0, d).Truncate(time.Hour) }
			return []certinfo.Context{{
				CA: []certinfo.Certificate{{Path: "/etc/ourproduct/ca.pem", SerialNumber: "4f1c9a0be2", From: day(-100), Until: day(812)}},
				Chain: []certinfo.Certificate{
					{SerialNumber: "1d03", From: day(-1), Until: day(44), OCSP: &certinfo.Validity{From: day(-1), Until: day(6)}, AltNames: []certinfo.AltName{
						{Kind: "dns", Value: "edge.example.net"}, {Kind: "uri", Value: "spiffe://example.net/<edge>"}, {Kind: "ip_address", Value: "10.1.2.3"}}},
					{Path: "/old.pem", From: day(-9), Until: day(-1)}},
			}, {}}
		},
		Unready: func() []lifecycle.Unready {
			return []lifecycle.Unready{
				{Component: "listener", Name: "init manager Listener-local-init-manager ingress_8080 57", Targets: []string{"target RdsRouteConfigSubscription RDS init main_routes"}},
				{Component: "server", Name: "init manager Server"}}
		},
	}
}

type worldHealth world

func (h *worldHealth) FailHealth()    { h.mu.Lock(); defer h.mu.Unlock(); h.state = "DRAINING" }
func (h *worldHealth) RestoreHealth() { h.mu.Lock(); defer h.mu.Unlock(); h.state = "LIVE" }

func (h *worldHealth) HealthFailed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == "DRAINING"
}

type worldDrains world

func (d *worldDrains) Drain(inboundOnly bool) { (*world)(d).note("drain inbound=%t", inboundOnly) }
func (d *worldDrains) DrainGracefully(inboundOnly, skipExit bool) {
	(*world)(d).note("drain gracefully inbound=%t skip=%t", inboundOnly, skipExit)
}

// runtimeLayers returns layers with a value in the first one. The layer named admin,
// if any, can be changed.
func runtimeLayers(names ...string) *layers.Loader {
	var cfg layers.Config
	for i, name := range names {
		l := layers.Layer{Name: name, Kind: layers.Static}
		if i == 0 {
			l.Values = map[string]any{"limits.max_sessions": "200"}
		}
		if name == "admin" {
			l.Kind = layers.Admin
		}
		cfg.Layers = append(cfg.Layers, l)
	}
	return must(layers.New(cfg))
}

// overrides returns the values of the admin layer.
func (w *world) overrides() map[string]string {
	out := make(map[string]string)
	for key, v := range w.runtime.Snapshot().All() {
		if v.PerLayer[len(v.PerLayer)-1] != "" {
			out[key] = v.Final
		}
	}
	return out
}

type worldLoggers world

func (l *worldLoggers) List() []logctl.LoggerLevel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.levels)
}

func (l *worldLoggers) set(name, level string) error {
	to, ok := logctl.ParseLevel(level)
	if !ok {
		return logctl.ErrUnknownLevel
	}
	for i := range l.levels {
		if name == "" || l.levels[i].Name == name {
			l.levels[i].Level = to
			if name != "" {
				return nil
			}
		}
	}
	if name != "" {
		return logctl.ErrUnknownLogger
	}
	return nil
}

func (l *worldLoggers) Set(name, level string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set(name, level)
}

func (l *worldLoggers) SetAll(level string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set("", level)
}

func (l *worldLoggers) SetPaths(paths string) error {
	(*world)(l).note("paths %s", paths)
	if paths == "bad" {
		return logctl.ErrEmptyName
	}
	return nil
}

func (l *worldLoggers) Clone() *logctl.Registry {
	cfg := logctl.Config{Levels: map[string]logctl.Level{}}
	for _, l := range l.List() {
		cfg.Names, cfg.Levels[l.Name] = append(cfg.Names, l.Name), l.Level
	}
	return must(logctl.New(cfg))
}

func (l *worldLoggers) Settings() map[string]string { return l.Clone().Settings() }

func (l *worldLoggers) Restore(levels map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, level := range levels {
		if name == "level" {
			continue
		}
		if err := l.set(name, level); err != nil {
			return err
		}
	}
	return nil
}

type worldProfiler struct {
	w    *world
	name string
}

func (p worldProfiler) Start() (bool, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.failing != nil {
		return false, p.w.failing
	}
	was := p.w.profiles[p.name]
	p.w.profiles[p.name] = true
	return !was, nil
}

func (p worldProfiler) Stop() (bool, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	was := p.w.profiles[p.name]
	delete(p.w.profiles, p.name)
	return was, p.w.failing
}

func (p worldProfiler) Path() string { return "/var/log/proxy/proxy.prof" }

type worldIngest world

// sinks returns one sink of each sort: failing, without packets, not used yet.
func (w *world) sinks() []flush.SinkStatus {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return []flush.SinkStatus{
		{
			Name: "prometheus", Interval: 15 * time.Second, Flushes: 40, Errors: 1, Joined: 2, Dropped: 17, Snapshots: 3,
			Delivery: &flush.SinkDelivery{
				Kind: "remote_write", Target: "https://metrics.example.com/api/v1/write",
				Packets: 4, Bytes: 5000, LimitBytes: 16 << 20, Age: 42500 * time.Millisecond, Owed: 6,
				Sent: 70, SentMetrics: 8000, SentBytes: 900000, Failed: 10, Retries: 11, Dropped: 12, Ambiguous: 13, Lost: 14, LostCounts: 15, Rejected: 16,
				LastSent: at, LastError: errors.New("status 503: \"try\nlater\""), LastErrorAt: at.Add(time.Second), NextRetry: at.Add(4 * time.Second),
			},
		},
		{Name: "own", Flushes: 41},
		{Name: "agent", Interval: 5 * time.Second, Delivery: &flush.SinkDelivery{
			Kind: "statsd", Target: "udp://127.0.0.1:8125", LimitBytes: 16 << 20,
			LastError: errors.New("token -----BEGIN PRIVATE KEY-----"), LastErrorAt: at,
		}},
	}
}

func (g *worldIngest) Report() report.Report {
	at := testTime()
	return report.Report{
		Listeners: []report.Listener{
			{ListenerInfo: report.ListenerInfo{Name: "udp://127.0.0.1:8125", Protocol: "udp", Address: "udp://127.0.0.1:8125", Readers: 2},
				Packets: 7, Bytes: 120, Lines: 21,
				Samples: 30, Applied: 18, Limited: 1, Rejected: map[string]uint64{"bad_value": 1, "bad_type": 1}, KernelDrops: 5,
				QueueBytes: 100, QueueLimit: 16 << 20, RcvBufAsked: 9 << 20, RcvBufBytes: 8 << 20, LinesPerPacket: &report.Quantiles{Count: 1, P50: 3, P99: 3, Max: 3}, BusySeconds: 0.25},
			{ListenerInfo: report.ListenerInfo{Name: "tcp", Protocol: "tcp", Address: "tcp://[::1]:8125", TLS: true}, Connections: 1, ConnectionsTotal: 1 << 60,
				Ended: map[string]uint64{"closed eof": 2}},
		},
		Relay: []report.RelayTarget{
			{Name: "a", Address: "tcp://10.0.0.1:8125", Mode: "hash of names", Up: true, Accepted: 20, MovedIn: 1, Sent: 20, Packets: 2, Bytes: 300, Connections: 1, Queued: 1, QueueBytes: 14, QueueLimit: 4 << 20},
			{Name: "udp://b:8125", Address: "udp://b:8125", Mode: "copy", Accepted: 9, MovedOut: 1, Dropped: 2, Ambiguous: 3, Rejected: 2, Long: 1, Failed: 4, QueueLimit: 4 << 20, LastError: "no <route>", LastErrorAt: at},
		},
		Rejected: []report.Rejected{{Reason: "bad_value", Count: 2, Last: []report.RejectedLine{
			{Time: at, Listener: "tcp", Source: "10.0.0.1:5", Line: "old:x|c"},
			{Time: at, Listener: "udp://127.0.0.1:8125", Line: "a\x00b:<x>\u202e|c "}}}},
		Limits: []report.Limit{{Name: "series", Max: 1000000, Use: 12, Limited: 1}},
		Series: []report.Kind{{Kind: "counter", Series: 12, Created: 13, Expired: 1}},
		Cache:  report.Cache{Entries: 12, Hits: 30, Misses: 13, Evicted: 1}, Collisions: 1, TypeConflicts: 2,
		Conflicts:  []report.Conflict{{Time: at, Name: "a.b", Group: "gauge", Other: "a_b", What: "exposition"}, {Time: at, Name: "c", Group: "gauge", What: "kind"}},
		TopSeries:  []report.NameCount{{Name: "many", Count: 30}, {Name: "few", Count: 2}},
		TopSamples: []report.NameRate{{Name: "hot", PerSecond: 66.5}},
		TopTags:    []report.NameCount{{Name: "user", Count: 1000}},
		Newest:     []report.NewSeries{{Time: at, Name: "first", Kind: "counter"}, {Time: at, Name: "last", Kind: "gauge", Tags: "a=b"}},
		Events: []report.Event{{Received: at, Event: line.Event{Title: "old"}}, {Received: at, Event: line.Event{Title: "deploy\nnow", Text: "", Time: 1700000000, Host: "h", Key: "k",
			Priority: "low", Source: "s", Alert: "info", Tags: []string{"a:b", "c"}}}},
		Checks: []report.ServiceCheck{{Received: at, ServiceCheck: line.ServiceCheck{Name: "db", Status: 2, Time: 1700000000, Host: "h", Message: "down", Tags: []string{"a:b"}}},
			{Received: at, ServiceCheck: line.ServiceCheck{Name: "odd", Status: 9}}},
		StreamBusySeconds: 1.5, UnixQueue: 10,
	}
}

func (g *worldIngest) Explain(text []byte) report.Explanation {
	switch string(text) {
	case "event":
		return report.Explanation{Kind: "event", Event: &line.Event{Title: "t", Text: "x"}, UnknownFields: 1}
	case "check":
		return report.Explanation{Kind: "service_check", Check: &line.ServiceCheck{Name: "db"}}
	case "\r":
		return report.Explanation{Kind: "blank"}
	case "rt:+5|g|#route:/a,canary":
		return report.Explanation{Kind: "metric", Name: "rt", Tags: []tags.Tag{{Name: "canary"}, {Name: "route", Value: "/a"}}, Samples: []report.Sample{
			{Type: "g", Kind: "gauge", Rate: 1, Values: []string{"+5"}, Stat: "rt.canary.route./a", Series: `rt{canary="",route="/a"}`, Known: true},
			{Type: "s", Kind: "set", Rate: 0.5, Member: "anna", Stat: "rt_set", Limit: "series"}}}
	}
	return report.Explanation{Kind: "metric", Reason: "bad_value", Offset: 2}
}

func (g *worldIngest) Recent() report.Recent {
	rep := g.Report()
	return report.Recent{Samples: rep.TopSamples, Newest: rep.Newest}
}

func (g *worldIngest) NearLimits(string, []tags.Tag) []report.Limit { return nil }

func (g *worldIngest) Mapping() report.Mapping {
	scale := 0.001
	return report.Mapping{Rules: []report.RuleUse{{Rule: report.Rule{Number: 1, Match: "a.*", Scale: &scale}, Name: "a"}}}
}

func (g *worldIngest) Forget(match func(string) bool) int {
	names := g.matching(match)
	for _, name := range names {
		(*world)(g).note("forget %s", name)
	}
	return len(names)
}

func (g *worldIngest) Matching(match func(string) bool) int { return len(g.matching(match)) }

func (g *worldIngest) matching(match func(string) bool) []string {
	return slices.DeleteFunc([]string{"web.a", "web.b", "web"}, func(name string) bool { return !match(name) })
}
