package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// full is a server in which every source has values for every cell of the pages, and a
// history of a minute.
func full(t *testing.T, change func(*admin.Config)) *admin.Server {
	t.Helper()
	return world(t, "plain", func(c *admin.Config) {
		now := testNow.Add(-time.Minute)
		clock := func() time.Time { return now }
		st := store.New(store.Options{Now: clock})
		past := history.New(history.Config{Store: st})
		web := st.Scope("web")
		hits, idle, temperature, took, sizes := web.Counter("hits"), web.Counter("idle"), web.Gauge("temperature"), web.Histogram("took", store.Milliseconds), web.Histogram("sizes", store.Bytes)
		web.Text("release").Set("1.2 <b>")
		web.Histogram("never", store.Milliseconds)
		sites := st.ScopeWith("", store.ScopeOptions{Network: true})
		own := st.Own()
		received, accepted, resident := own.Counter("ingest.samples.listener.udp"), own.Counter("ingest.connections_total.listener.tcp"), own.Gauge(physicalMemory)
		for _, name := range []string{"good", "plain"} {
			up := st.Scope("cluster." + name)
			for i, stat := range []string{"upstream_rq_total", "upstream_rq_2xx", "upstream_rq_5xx", "upstream_rq_timeout", "upstream_rq_pending_overflow", "upstream_cx_overflow", "upstream_rq_retry_overflow"} {
				up.Counter(stat).Add(uint64(1000*len(name)>>(2*i) + i))
			}
			up.Gauge("upstream_rq_active").Set(3)
			up.Gauge("upstream_cx_active").Set(12345)
			up.Histogram("upstream_rq_time", store.Milliseconds).Record(17)
		}
		flushNow := func() {
			snap := st.Flush(store.FlushOptions{})
			past.Add(snap)
			snap.Close()
		}
		flushNow()
		for i := range uint64(12) {
			now = now.Add(5 * time.Second)
			if i%5 != 4 {
				hits.Add(1000 * i * i)
			}
			temperature.Set(20 + i%4)
			received.Add(10 * i)
			accepted.Add(15)
			resident.Set(i << 20)
			took.Record(3 + i)
			took.Record(40 * i)
			sizes.Record(100 << i)
			if i == 6 {
				sites.Counter("page.views", tags.Tag{Name: "site", Value: "de"}).Add(5)
				sites.Counter("page.views", tags.Tag{Name: "site", Value: "fr"}).Add(6)
			}
			st.Scope("cluster.plain").Counter("upstream_rq_total").Add(50)
			flushNow()
		}
		took.Record(90)
		idle.Add(0)
		st.Symbols().EnableRecent()

		c.Store, c.Now = st, clock
		s := &c.Sources
		s.History = past
		s.Clusters = fullClusters{}
		s.Ingest = fullIngest{}
		s.ConfigDump = fullDump{}
		s.Listeners = fullListeners
		s.Certificates = fullCertificates
		s.Memory = func() admin.Memory {
			return admin.Memory{Allocated: 40 << 20, HeapSize: 64 << 20, PageheapUnmapped: 1 << 20, PageheapFree: 8 << 20, TotalThreadCache: 64 << 10, TotalPhysicalBytes: 68 << 20}
		}
		s.Contention = func() (admin.Contention, bool) {
			return admin.Contention{Contentions: 7, CurrentWaitCycles: 250, LifetimeWaitCycles: 9000}, true
		}
		s.FlushTime = func() time.Duration { return 41 * time.Millisecond }
		s.Unready = func() []lifecycle.Unready {
			return []lifecycle.Unready{{Component: "listener", Name: "init of a listener", Targets: []string{"one", "two"}}, {Name: "init of the server"}}
		}
		s.Sinks = func() []flush.SinkStatus {
			return []flush.SinkStatus{{Name: "first", Interval: 5 * time.Second, Flushes: 7, Errors: 2, Joined: 1},
				{Name: "second", Snapshots: 1, Delivery: &flush.SinkDelivery{Kind: "statsd", Target: "10.0.0.1:8125", Bytes: 900, LimitBytes: 1000, Sent: 4}}}
		}
		s.Info = func() admin.ServerInfo {
			return admin.ServerInfo{Version: "0b1fc9/0.4.1/Clean/RELEASE/Go1.26", UptimeCurrentEpoch: 95900 * time.Millisecond, UptimeAllEpochs: 4210 * time.Second, PortableCounters: true,
				Node: &admin.Node{ID: "n-17", Cluster: "edge", Region: "r", Zone: "z", SubZone: "s", Metadata: map[string]any{"b": []any{1.5, true, nil, "x"}, "a": "y"}},
				CommandLine: admin.CommandLine{Concurrency: 2, ConfigPath: "/etc/boot.yaml", LogLevel: "info", LogPath: "/var/log/x", DrainTime: 600 * time.Second, ParentShutdownTime: 900 * time.Second,
					StatsTags: []string{"a:b"}, SocketMode: 0o600, RestartEpoch: 1, Mode: "Serve", DrainStrategy: "Gradual"}}
		}
		runtime, err := layers.New(layers.Config{Layers: []layers.Layer{{Name: "base", Kind: layers.Static, Values: map[string]any{"limit": "5", "api_token": "planted-secret", "other": "x"}}, {Name: "admin", Kind: layers.Admin}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Runtime = runtime
		s.ReopenLogs = func() error { return errors.New("disk is full") }
		if change != nil {
			change(c)
		}
	})
}

// fullHosts are hosts of each health, with the kinds of addresses and places.
var fullHosts = []status.Host{
	{Address: netip.MustParseAddrPort("10.0.0.1:80"), Hostname: "10.0.0.1", Weight: 1, SuccessRate: 100, Check: &status.Check{Time: testNow.Add(-3 * time.Second), Result: "passed", Since: testNow.Add(-50 * time.Hour)}, Stats: []status.HostStat{{Name: "cx_active", Gauge: true, Value: 4}, {Name: "rq_total", Value: 12345}}},
	{Address: netip.MustParseAddrPort("[fd00::1]:443"), Hostname: "named", Region: "eu", Zone: "a", SubZone: "7", Weight: 1000, Canary: true, SuccessRate: -1, Health: status.DegradedEDSHealth,
		Stats: []status.HostStat{{Name: "cx_connect_fail", Value: 1}, {Name: "cx_total", Value: 2}, {Name: "rq_active", Gauge: true}, {Name: "rq_error", Value: 3}, {Name: "rq_timeout", Value: 4}}},
	{Pipe: "/run/x.sock", SubZone: "only", SuccessRate: 94.96, Health: status.FailedActiveHC | status.ActiveHCTimeout, Check: &status.Check{Time: testNow.Add(-70 * time.Second), Result: "timeout", Failed: true, Since: testNow.Add(-5 * time.Minute)}},
	{Address: netip.MustParseAddrPort("10.0.0.2:80"), Zone: "b", Health: status.FailedActiveHC},
}

type fullClusters struct{}

func (fullClusters) Version() string                    { return "v1" }
func (fullClusters) Tracked(func(*status.Cluster) bool) {}
func (fullClusters) Statuses(yield func(*status.Cluster) bool) {
	hosts := func(list ...status.Host) func(func(*status.Host) bool) {
		return func(yield func(*status.Host) bool) {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
	const none = 1<<32 - 1
	for _, c := range []status.Cluster{
		{Name: "degraded", ObservabilityName: "degraded", Hosts: hosts(fullHosts[:2]...), Outlier: &status.OutlierRates{Average: 95, Threshold: -1},
			Breakers: [2]status.BreakerLimits{{MaxRequests: none}, {MaxRequests: none - 1}}},
		{Name: "good", ObservabilityName: "good", Hosts: hosts(fullHosts[0]), AddedViaAPI: true, Outlier: &status.OutlierRates{}},
		{Name: "none", ObservabilityName: "none", Outlier: &status.OutlierRates{Average: -1}},
		{Name: "plain", ObservabilityName: "plain", EDSServiceName: "service", AddedViaAPI: true, Version: "v7", Hosts: hosts(fullHosts...), Outlier: &status.OutlierRates{Average: 94.5, Threshold: 90, LocalAverage: 80, LocalThreshold: 70},
			Breakers: [2]status.BreakerLimits{{MaxConnections: 1024, MaxPendingRequests: 8, MaxRequests: 1024, MaxRetries: 3}, {MaxConnections: none, MaxPendingRequests: none + 1, MaxRequests: 10, MaxRetries: 1}},
			InUse:    [2]status.BreakerUse{{Connections: 1000, PendingRequests: 7, Requests: 819, Retries: 1}, {Connections: 5, PendingRequests: 6, Requests: 10}}},
	} {
		if !yield(&c) {
			return
		}
	}
}

type fullIngest struct{ fakeIngest }

func (fullIngest) Report() report.Report {
	at := func(seconds int) time.Time { return testNow.Add(-time.Duration(seconds) * time.Second) }
	return report.Report{
		Listeners: []report.Listener{
			{ListenerInfo: report.ListenerInfo{Name: "udp", Protocol: "udp", Address: "udp://127.0.0.1:8125", Readers: 2}, Packets: 4000, Bytes: 5000, Lines: 9000, Samples: 9100, Limited: 3, KernelDrops: 2, Rejected: map[string]uint64{"a": 1, "b": 5}, QueueLimit: 1000, QueueBytes: 800},
			{ListenerInfo: report.ListenerInfo{Name: "tcp", Protocol: "tcp", Address: "tcp", TLS: true}, Lines: 10, Connections: 1, ConnectionsTotal: 1500},
			{ListenerInfo: report.ListenerInfo{Name: "gram", Protocol: "unixgram", Address: "unixgram:///run/x", Readers: 1}, KernelDrops: 1},
		},
		Rejected: []report.Rejected{{Reason: "no_type", Count: 2, Last: []report.RejectedLine{{Time: at(5), Listener: "udp", Source: "10.0.0.9:4", Line: "bad:1\x00"}, {Time: at(70), Listener: "tcp"}}}, {Reason: "long", Count: 1}},
		Limits:   []report.Limit{{Name: "series", Max: 100, Use: 80, Limited: 1}, {Name: "name_bytes", Max: 4096, Use: 4096}, {Name: "free", Max: -1, Use: 7}, {Name: "values_per_tag_key", Max: -1}, {Name: "zero", Max: 0, Limited: 2}, {Name: "calm", Max: 10, Use: 7}},
		Series:   []report.Kind{{Kind: "counter", Series: 1000, Created: 1200, Expired: 200}, {Kind: "gauge"}}, Expiry: "Series expire after a day.",
		TopSeries:  []report.NameCount{{Name: "page.views", Count: 3000}, {Name: "b", Count: 1}},
		TopTags:    []report.NameCount{{Name: "site", Count: 2}},
		TopSamples: []report.NameRate{{Name: "page.views", PerSecond: 1234.5}, {Name: "b", PerSecond: 0.02}},
		Newest:     []report.NewSeries{{Time: at(100), Name: "older", Kind: "gauge"}, {Time: at(5), Name: "page.views", Kind: "counter", Tags: "site:de", Sender: "10.0.0.9:4"}},
		Conflicts:  []report.Conflict{{Time: at(9), Name: "a", Group: "gauge", What: "kind"}, {Time: at(8), Name: "b.c", Group: "counter", Other: "b_c", What: "exposition"}},
		Relay: []report.RelayTarget{
			{Name: "one", Address: "10.0.0.5:8125", Mode: "copy", Up: true, Accepted: 2000, Sent: 1999, QueueBytes: 10, QueueLimit: 1000},
			{Name: "10.0.0.6:8125", Address: "10.0.0.6:8125", Mode: "shard", Accepted: 1, MovedIn: 2, MovedOut: 3, Dropped: 4, Ambiguous: 50, Rejected: 600, Long: 7000, QueueBytes: 1000, QueueLimit: 1000, LastError: "refused", LastErrorAt: at(3)}},
	}
}

func (fullIngest) Explain(line []byte) report.Explanation {
	if strings.HasPrefix(string(line), "bad") {
		return report.Explanation{Kind: "metric", Reason: "no_type", Offset: 2}
	}
	return report.Explanation{Kind: "metric", Samples: []report.Sample{{Kind: "counter", Stat: "a", Series: "a_total", Limit: "series"}, {Kind: "gauge", Stat: "b"}, {Kind: "gauge", Stat: "c", Known: true}}}
}

func fullListeners() []listeners.Listener {
	ip := func(text string) config.Address { return config.Address{IP: netip.MustParseAddrPort(text)} }
	return []listeners.Listener{
		{Name: "udp", Protocol: listeners.UDP, Addresses: []config.Address{ip("0.0.0.0:8125")}, DrainEnd: testNow.Add(95 * time.Second)},
		{Name: "tcp", Addresses: []config.Address{ip("0.0.0.0:1"), ip("[::]:2"), {Pipe: "/run/x"}}, Direction: listeners.Inbound},
		{Name: "gone", Direction: listeners.Outbound, Stopped: true},
	}
}

func fullCertificates() []certinfo.Context {
	at := func(days int) time.Time { return testNow.AddDate(0, 0, days) }
	named := func(n int) (names []certinfo.AltName) {
		for i := range n {
			names = append(names, certinfo.AltName{Kind: [...]string{"dns", "uri", "ip_address"}[i%3], Value: "name" + strings.Repeat("x", i)})
		}
		return names
	}
	return []certinfo.Context{
		{Chain: []certinfo.Certificate{{Path: "/own.pem", AltNames: named(5), SerialNumber: "1d03", From: at(-9), Until: at(6), OCSP: &certinfo.Validity{Until: at(2)}}, {AltNames: named(3), Until: at(30)}}},
		{CA: []certinfo.Certificate{{Path: "/ca.pem", Until: at(-1), OCSP: &certinfo.Validity{}}, {Path: "/late.pem", AltNames: named(1), Until: at(29)}}},
	}
}

const fullDumpText = `{
 "configs": [
  {
   "@type": "x",
   "bootstrap": {
    "node": {
     "id": "n-17",
     "token": "[redacted]"
    },
    "empty": null,
    "list": [
     1.5,
     true
    ]
   }
  }
 ]
}
`

type fullDump struct{}

func (fullDump) Write(w io.Writer, q dump.Query) error {
	switch {
	case q.Resource == "absent":
		return dump.NotFound(q.Resource)
	case q.Resource == "large":
		_, err := io.WriteString(w, "["+strings.Repeat("1,\n", mostShown/3)+"1]")
		return err
	}
	_, err := io.WriteString(w, fullDumpText)
	return err
}

func (fullDump) Sections(endpoints bool) []dump.Section {
	updated := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	many := func(yield func(dump.Resource) bool) {
		for i := range 53 {
			if !yield(dump.Resource{Name: fmt.Sprint("c", i), Updated: updated}) {
				return
			}
		}
	}
	list := []dump.Section{{Key: "bootstrap", Fields: []string{"bootstrap", "last_updated"}, Updated: updated}, {Key: "clusters", Version: "7", Fields: []string{"version_info"},
		Lists: []dump.List{{Field: "static_clusters", Resources: many}, {Field: "dynamic_clusters", Resources: slices.Values([]dump.Resource{{Name: "Plain", Version: "6<", Updated: updated}, {Name: "other", Version: "7"}}), Refused: maps.All(map[string]string{"other": "no <name>"})}, {Field: "none", Resources: slices.Values([]dump.Resource(nil))}}}}
	if endpoints {
		list = append(list, dump.Section{Key: "endpoint", Lists: []dump.List{{Field: "endpoint_configs", Resources: slices.Values([]dump.Resource{{Name: "plain"}})}}})
	}
	return list
}

// pageText returns the part of a page that no other page has, one element a line.
func pageText(body []byte) string {
	_, main, _ := strings.Cut(string(body), "<main id='main' tabindex='-1'>\n")
	main, _, _ = strings.Cut(main, "</main>")
	title, _, _ := strings.Cut(main, "</div>")
	_, content, _ := strings.Cut(main, "<div id='content'>")
	return elements(title + "</div>" + content)
}

var (
	anyIcon = regexp.MustCompile("<svg class='icon' aria-hidden='true'><use href='#i-([a-z]+)'/></svg>")
	taken   = regexp.MustCompile(" in [0-9.]+\u202f(µs|ms|s)")
	length  = regexp.MustCompile("<span>[0-9.]+\u202fKiB</span></footer>")
)

// elements returns markup with one element a line, and without the values that differ
// from request to request.
func elements(markup string) string {
	markup = anyIcon.ReplaceAllString(markup, "[$1]")
	markup = taken.ReplaceAllString(markup, " in some time")
	markup = length.ReplaceAllString(markup, "</footer>")
	return strings.ReplaceAll(markup, "><", ">\n<")
}

// TestGolden compares the content of each page of a server that has everything, in the
// states that its controls lead to.
func TestGolden(t *testing.T) {
	for name, targets := range map[string][]string{
		"overview":   {""},
		"stats":      {"stats?filter=^web", "stats?filter=^web&group=1&recent=1&nonzero=1&re=ecma&zero=1795341570000&pins=web.hits%0Agone&sel=web.took", "stats?filter=^(web|page)&sort=changed&dir=asc&rows=250&pause=1&hide=type.trend&type=counter&usedonly=1", "stats?filter=(x", "stats?filter=wex", "stats?filter=^none&usedonly=1&zero=5"},
		"stat":       {"stat?name=web.hits", "stat?name=web.temperature&with=web.hits&over=1h", "stat?name=web.release", "stat?name=web.never", "stat?name=page.views.site.de&from=1795341500000&to=1795341600000", "stat?name=web.nothing", "stat?name=cluster.good.upstream_cx_active&with=page.views.site.fr&from=1795341560000&to=1795341587000"},
		"histogram":  {"stat?name=web.took", "histograms?name=web.took&q=99.95&x=linear&y=count", "histograms?name=web.took&view=cdf"},
		"histograms": {"histograms?filter=^web", "histograms?name=web.took&view=time", "histograms?name=web.sizes&compare=1&b=30s&span=10s&opened=1795341590000", "histograms?merge=1&filter=^web&unused=1", "histograms?filter=none"},
		"explorer":   {"explorer?view=map&sort=new", "explorer?prefix=web.&sort=name", "explorer?tag=site", "explorer?prefix=none", "explorer?sort=samples"},
		"clusters":   {"clusters", "clusters?unhealthy=1&sort=p99", "clusters?cluster=plain", "clusters?cluster=none", "clusters?cluster=gone", "clusters?filter=^none$|x&rows=25&offset=1", "clusters?filter=^plain|^none&open=plain%0D%0Anone%0D%0Agone"},
		"listeners":  {"listeners"},
		"ingest":     {"ingest", "ingest?line=bad%3A", "ingest?line=a%3A1%7Cc"},
		"runtime":    {"runtime", "runtime?key=limit", "runtime?key=new", "runtime?key=api_token", "runtime?filter=LIM&rows=1000"},
		"logging":    {"logging", "logging?filter=MA&pick=main&to=off"},
		"config":     {"config", "config?tab=clusters", "config?resource=dynamic_clusters&name=Plain&filter=^Pla&include_eds=1", "config?section=clusters&filter=^Pla", "config?resource=large&filter=^Pla", "config?resource=absent&filter=^Pla", "config?search=TRUE&filter=^Pla", "config?search=n-1&filter=none", "config?filter=(x"},
		"certs":      {"certs"},
		"circuits":   {"circuits", "circuits?sort=name"},
		"audit":      {"audit", "audit?filter=LIMIT"},
		"server":     {"server"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := full(t, nil)
			for _, change := range []string{"/runtime_modify?limit=7&ttl=10m", "/logging?main=error", "/runtime_modify?other=y&dry_run=1", "/reset_counters?dry_run=1", "/logging?none=off"} {
				srv.Request("POST", change, nil)
			}
			var got strings.Builder
			for _, target := range targets {
				got.WriteString("<!-- " + target + " -->\n" + pageText(srv.Request("GET", Prefix+target, nil).Body))
			}
			golden.Check(t, name, []byte(got.String()))
		})
	}
}

// TestGoldenWithoutSources compares the pages of a server that has nothing to show.
func TestGoldenWithoutSources(t *testing.T) {
	clock := func() time.Time { return testNow }
	srv, err := admin.New(admin.Config{Store: store.New(store.Options{Now: clock}), Now: clock, Sources: admin.Sources{Memory: func() admin.Memory { return admin.Memory{} }}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(srv); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, page := range table() {
		target := page.path
		switch target {
		case "stats", "histograms":
			target += "?filter=none"
		case "stat":
			target += "?name=none"
		}
		reply := srv.Request("GET", Prefix+target, nil)
		checkPage(t, srv, reply.Body)
		got.WriteString("<!-- " + target + " -->\n" + pageText(reply.Body))
	}
	golden.Check(t, "without-sources", []byte(got.String()))
}

// calmClusters are clusters without unhealthy hosts.
type calmClusters struct{ fullClusters }

func (calmClusters) Statuses(yield func(*status.Cluster) bool) {
	host := func(yield func(*status.Host) bool) { yield(&fullHosts[0]) }
	_ = yield(&status.Cluster{Name: "calm", ObservabilityName: "calm", Hosts: host}) && yield(&status.Cluster{Name: "over", ObservabilityName: "limited", Hosts: host}) &&
		yield(&status.Cluster{Name: "fine", ObservabilityName: "fine", Hosts: host}) && yield(&status.Cluster{Name: "one", ObservabilityName: "one", Hosts: host})
}

type calmIngest struct{ fakeIngest }

func (calmIngest) Report() report.Report {
	return report.Report{Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Name: "tcp", Protocol: "tcp", Address: "tcp://0.0.0.0:1"}, Connections: 2},
		{ListenerInfo: report.ListenerInfo{Name: "udp", Protocol: "udp", Address: "udp://[::]:8125", Readers: 1}}}}
}

func (calmIngest) Recent() report.Recent {
	return report.Recent{Limits: []report.Limit{{Name: "series", Max: 5000, Use: 4000}, {Name: "memory_bytes", Max: 64 << 20, Use: 60 << 20}}}
}

type testProfiler string

func (testProfiler) Start() (bool, error) { return true, nil }
func (testProfiler) Stop() (bool, error)  { return true, nil }
func (p testProfiler) Path() string       { return string(p) }

// counted replaces the ids of a stream by their number.
func counted(body []byte) []byte {
	return regexp.MustCompile(`ids=[0-9.]+`).ReplaceAllFunc(body, func(ids []byte) []byte { return fmt.Append(nil, bytes.Count(ids, []byte("."))+1, " ids") })
}

// TestGoldenLive compares the pages of a server that has streams, and nothing that needs
// much attention.
func TestGoldenLive(t *testing.T) {
	srv := full(t, func(c *admin.Config) {
		own := c.Store.Own()
		own.Gauge("server.admin_exposed").Set(1)
		own.Counter(skippedFlushes).Add(1)
		c.Store.Scope("cluster.fine").Counter("upstream_rq_total").Add(5000)
		c.Store.Scope("cluster.limited").Counter("upstream_rq_total").Add(5000)
		c.Store.Scope("cluster.limited").Counter("upstream_rq_pending_overflow").Add(1)
		c.Store.Scope("cluster.one").Counter("upstream_rq_total").Add(100)
		c.Store.Scope("cluster.one").Counter("upstream_rq_5xx").Add(1)
		c.Store.Scope("secret").GaugeWithMode("stat", store.HiddenAccumulate).Set(1)
		c.Store.Flush(store.FlushOptions{}).Close()
		s := &c.Sources
		s.StatsStream = deltastream.New(deltastream.Config{Store: c.Store})
		s.Clusters, s.Ingest = calmClusters{}, calmIngest{}
		s.Unready = func() []lifecycle.Unready { return nil }
		s.HotRestartVersion = func() string { return "11.104" }
		s.CPUProfiler = testProfiler("/run/cpu.prof")
		s.Listeners = func() []listeners.Listener {
			return []listeners.Listener{{Name: "tcp"}, {Name: "old", Stopped: true}}
		}
		s.Certificates = func() []certinfo.Context {
			return []certinfo.Context{{Chain: []certinfo.Certificate{{Path: "/own.pem", Until: testNow.AddDate(0, 0, 10)}}}}
		}
	})
	if err := srv.Handle(admin.Endpoint{Path: circuitPath, Help: "circuits", Serve: func(*admin.Response, *admin.Request) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, target := range []string{"", "stats?filter=^web.hits", "stats?filter=^none", "stat?name=web.hits", "stat?name=secret.stat", "circuits", "clusters", "clusters?cluster=over", "listeners", "ingest", "explorer?prefix=secret.", "certs", "server"} {
		body := srv.Request("GET", Prefix+target, nil).Body
		checkPage(t, srv, body)
		head, _, _ := strings.Cut(string(body), "<div id='content'>")
		var scripts []string
		for _, m := range regexp.MustCompile(`<script type='module' src='assets/[^']*?([a-z]+)\.js'`).FindAllStringSubmatch(head, -1) {
			scripts = append(scripts, m[1])
		}
		_, refresh, _ := strings.Cut(head, "<select id='refresh'")
		refresh, _, _ = strings.Cut(refresh, "</select>")
		got.WriteString("<!-- " + target + " -->\n" + strings.Join(scripts, " ") + "\n" + refresh + "\n" + pageText(counted(body)))
	}
	golden.Check(t, "live", []byte(got.String()))
}

// TestGoldenWithoutHistory compares the pages of stats of a server that keeps no history.
func TestGoldenWithoutHistory(t *testing.T) {
	srv := full(t, func(c *admin.Config) {
		c.Sources.History, c.Sources.StatsStream = nil, deltastream.New(deltastream.Config{Store: c.Store})
	})
	var got strings.Builder
	for _, target := range []string{"stats?filter=^web.hits|^cluster.good.*total", "stat?name=web.hits", "histograms?name=web.took", "histograms?name=web.took&view=time", "clusters?filter=good", "listeners", "explorer?prefix=web.&sort=samples"} {
		body := srv.Request("GET", Prefix+target, nil).Body
		checkPage(t, srv, body)
		got.WriteString("<!-- " + target + " -->\n" + pageText(counted(body)))
	}
	golden.Check(t, "without-history", []byte(got.String()))
}

// TestGoldenShell compares everything around the content of a page, after a change, after
// a trial, and of a server that is draining and changes nothing.
func TestGoldenShell(t *testing.T) {
	live := full(t, nil)
	for _, change := range []string{"/runtime_modify?a=1&b=2&c=3&limit=4&other=5", "/runtime_modify?limit=&dry_run=1"} {
		live.Request("POST", change, nil)
	}
	draining := full(t, func(c *admin.Config) {
		c.Mode = admin.ModeReadOnly
		c.Sources.State = func() string { return "DRAINING" }
		c.Sources.Info = func() admin.ServerInfo { return admin.ServerInfo{Version: "plain"} }
	})
	var got strings.Builder
	shell := func(srv *admin.Server, target string) {
		top, rest, _ := strings.Cut(string(srv.Request("GET", Prefix+target, nil).Body), "<div id='content'>")
		_, bottom, _ := strings.Cut(rest, "</main>")
		got.WriteString("<!-- " + target + " -->\n" + elements(top+bottom))
	}
	shell(live, "certs?done=1")
	shell(live, "stats?done=2&filter=^none")
	shell(live, "config?done=9")
	shell(draining, "audit?done=x")
	golden.Check(t, "shell", []byte(got.String()))
}
