package bootstrap

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestServerConfig checks what a server gets from a file and from the command line.
func TestServerConfig(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "tokens")
	if err := os.WriteFile(token, []byte("admin:admin:sha256:"+strings.Repeat("0", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, fmt.Sprintf(`
node: {id: n, cluster: c, locality: {zone: z}}
flags_path: /flags
header_prefix: x-own
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 1}}
  access_log: [{name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: %[1]s/log}}]
  auth: {tokens_file: %[2]s}
  allow_paths: [{exact: /ready}, {prefix: /stats}]
  ignore_global_conn_limit: true
  circuit_stream_cors: any
stats_sinks: [{name: envoy.stat_sinks.wasm}, {name: envoy.stat_sinks.circuit_stream}]
stats_config: {history_bytes: 0}
stats_server_version_override: 7
static_resources: {clusters: [{name: one, load_assignment: {cluster_name: one}}, {name: two, load_assignment: {cluster_name: two}}]}
health_listeners: [{name: first, address: {socket_address: {address: 127.0.0.1, port_value: 2}}}, {name: second, address: {socket_address: {address: 127.0.0.1, port_value: 3}}}]
statsd: {listeners: [{address: "udp://127.0.0.1:4"}, {address: "tcp://127.0.0.1:5"}], mapping: {rules: {mappings: [{match: a, name: b}]}}}
layered_runtime: {layers: [{name: base, static_layer: {a: 1}}, {name: admin, admin_layer: {}}]}
`, dir, token))
	cfg, err := c.Server(Startup{Version: "0b1fc90d/v1.2.3-rc/Clean/RELEASE/Go", CommandLine: server.CommandLine{
		DrainStrategy: "Immediate", ServiceCluster: "sc", ServiceNode: "sn", ServiceZone: "sz", AdminAddressPath: "/address", EnableMutexTracing: true,
		FileFlushInterval: 3 * time.Second, FileFlushMinSize: 5,
		SocketPath: "@x", SocketMode: 0o640, BaseID: 9, UseDynamicBaseID: true, BaseIDPath: "/base", RestartEpoch: 4, SkipHotRestartOnNoParent: true, SkipHotRestartParentStats: true, ParentShutdownTime: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, l := range cfg.Layers {
		layers = append(layers, l.Name)
	}
	got := []any{cfg.Node.ID, cfg.Node.Cluster, cfg.ServiceCluster, cfg.Node.Zone, cfg.Node.MajorNumber, cfg.Node.MinorNumber, cfg.Node.Fix, cfg.StatsVersion, cfg.HistoryBytes, cfg.Lifecycle,
		cfg.AdminAddressPath, cfg.TraceMutexes, *cfg.HotRestart, *cfg.CircuitStream, len(cfg.Sinks), len(cfg.Clusters.Static), layers,
		len(cfg.StatsD.Listeners), cfg.StatsDRules != nil, cfg.AdminTokens, cfg.IgnoreGlobalLimit, len(cfg.Admin.AllowPaths), cfg.Admin.Auth != nil, cfg.Admin.Address}
	want := []any{"sn", "sc", "sc", "sz", uint32(1), uint32(2), uint32(3), uint64(7), -1, lifecycle.Config{FlagsPath: "/flags", DrainTime: -1, Strategy: lifecycle.Immediate},
		"/address", true, server.HotRestart{SocketPath: "@x", SocketMode: 0o640, BaseID: 9, UseDynamicBaseID: true, BaseIDPath: "/base", RestartEpoch: 4, SkipOnNoParent: true, SkipParentStats: true, ParentShutdownTime: time.Minute},
		server.CircuitStream{AnyOrigin: true, Clients: 16}, 0, 2, []string{"base", "admin"}, 2, true, token, true, 2, true, "127.0.0.1:1"}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("value %d: %s", i, diff)
		}
	}
	for i, l := range cfg.HealthListeners {
		if l.Name != []string{"first", "second"}[i] || l.HeaderPrefix != "x-own" || l.Cluster != "sc" {
			t.Errorf("health listener %+v", l)
		}
	}
	if l := cfg.AccessLogs; len(cfg.HealthListeners) != 2 || len(l) != 1 || l[0].Path != dir+"/log" || l[0].HeaderPrefix != "x-own" || l[0].FlushInterval != 3*time.Second || l[0].FlushBytes != 5<<10 {
		t.Errorf("%d health listeners, access logs %+v", len(cfg.HealthListeners), l)
	}
	// The defaults, and what the command line leaves to the file.
	c = mustParse(t, "node: {id: n, cluster: c, locality: {zone: z}}\nstats_config: {history_bytes: 1048576}\n")
	cfg, err = c.Server(Startup{Version: "0b1fc90d/none", CommandLine: server.CommandLine{DrainTime: time.Second, DisableHotRestart: true, SocketPath: "@x"}})
	if err != nil {
		t.Fatal(err)
	}
	got = []any{cfg.Node.ID, cfg.Node.Cluster, cfg.ServiceCluster, cfg.Node.Zone, cfg.Node.Fix, cfg.StatsVersion, cfg.HistoryBytes, cfg.Lifecycle, cfg.HotRestart == nil, cfg.CircuitStream == nil, cfg.StatsD == nil, cfg.StatsDRules == nil, cfg.AdminTokens, cfg.AccessLogs == nil}
	want = []any{"n", "c", "c", "z", uint32(0), uint64(0x0b1fc9), 1 << 20, lifecycle.Config{DrainTime: time.Second}, true, true, true, true, "", true}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("default %d: %s", i, diff)
		}
	}
	// Without an address nothing is logged.
	c = mustParse(t, "admin: {access_log_path: /dev/stdout}\n")
	if cfg, err = c.Server(Startup{}); err != nil || len(cfg.AccessLogs) != 0 || headerPrefix(c) != "x-proxy" {
		t.Errorf("%d access logs, %v", len(cfg.AccessLogs), err)
	}
	missing := mustParse(t, "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, auth: {tokens_file: /no/such}}\n")
	if _, err := missing.Server(Startup{}); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("a missing file: %v", err)
	}
	unknown := mustParse(t, "stats_config: {stats_tags: [{tag_name: shoe_size}]}\n")
	if _, err := unknown.Server(Startup{}); err == nil || !strings.HasPrefix(err.Error(), "stats_config.stats_tags: ") {
		t.Errorf("a tag without a rule: %v", err)
	}
	if _, err := unknown.Explainer(Startup{}); err == nil {
		t.Error("lines are explained without the rule of a tag")
	}
}

func TestVersionNumber(t *testing.T) {
	for build, want := range map[string]uint64{"": 0, "0b1fc90d/1/x": 0x0b1fc9, "0b1": 0x0b1, "ffffff": 0xffffff, "fffffg": 0, "1234567": 0x123456} {
		if got := versionNumber(build); got != want {
			t.Errorf("%q: %x, want %x", build, got, want)
		}
	}
}

// TestSinksAreMade makes a sink of each kind.
func TestSinksAreMade(t *testing.T) {
	c := mustParse(t, `
sinks:
- {name: one, remote_write: {url: "http://a"}, tags: {instance: x}}
- otlp: {url: "http://a"}
- otlp: {url: "http://a", protocol: grpc}
- graphite: {address: "127.0.0.1:1"}
- json_lines: {path: /dev/null}
- metrics_service: {url: "http://a:1"}
- statsd: {address: "127.0.0.1:1"}
- remote_write: {url: "https://a", tls: {ca: /no/such}}
`)
	var got []string
	for _, newSink := range newSinks(c) {
		sink, err := newSink(store.New(store.Options{}), nil, nil)
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, sink.(flush.Reporter).Delivery().Kind)
		r := sink.(flush.Runner)
		r.Close()
		r.Run(t.Context())
	}
	want := []string{"remote_write", "otlp", "otlp", "graphite", "json_lines", "metrics_service", "statsd", "stat /no/such: no such file or directory"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSinkTLS reads the certificates of sinks: the own one for each connection.
func TestSinkTLS(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, serial int64) {
		certtest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(serial)}, nil).Write(t, path(name+".pem"), path(name+".key"))
	}
	write("a", 7)
	write("other", 8)
	for _, x := range []struct {
		tls  sinkTLS
		want string
	}{
		{sinkTLS{set: true}, ""}, {sinkTLS{set: true, ca: path("a.pem")}, ""}, {sinkTLS{set: true, ca: path("a.key")}, "bootstrap: no certificate in "}, {sinkTLS{set: true, ca: path("none")}, "no such file"},
		{sinkTLS{set: true, chain: path("a.pem"), key: path("none")}, "no such file"}, {sinkTLS{set: true, chain: path("none"), key: path("a.key")}, "no such file"},
		{sinkTLS{set: true, chain: path("a.pem"), key: path("other.key")}, "private key does not match"},
	} {
		if _, err := x.tls.config(); x.want == "" && err != nil || err != nil && !strings.Contains(err.Error(), x.want) || err == nil && x.want != "" {
			t.Errorf("%+v: %v, want %s", x.tls, err, x.want)
		}
	}
	c, err := (&sinkTLS{set: true, ca: path("a.pem"), chain: path("a.pem"), key: path("a.key"), serverName: "name"}).config()
	if err != nil || c.RootCAs == nil || c.ServerName != "name" || c.MinVersion != tls.VersionTLS12 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, serial := range []int64{7, 9} {
		pair, err := c.GetClientCertificate(nil)
		if err != nil || pair.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%+v, %v, want the serial number %d", pair, err, serial)
		}
		write("a", 9)
	}
	if c, err := (&sinkTLS{}).config(); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestRules reads parts of a file that are right by themselves.
func TestRules(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, x := range []struct {
		text    string
		message string // of an error or warning; "" for none
	}{
		{"default_regex_engine: {name: x}", `"x" is not a known engine; known: proxy.regex_engines.google_re2`},
		{"default_regex_engine: {name: envoy.regex_engines.google_re2}", ""},
		{"default_regex_engine: {name: proxy.regex_engines.google_re2}", ""},
		{"default_regex_engine: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.regex_engines.v3.GoogleRE2}}", ""},
		{"sinks: [{graphite: {address: 'a:1'}, tags: {a: b}}]", "lines have no tags; set graphite.tagged to true"},
		{"sinks: [{graphite: {address: 'a:1', tagged: true}, tags: {a: b}}]", ""},
		{"sinks: [{graphite: {address: 'a:1'}, tags: {}}]", ""},
		{"sinks: [{statsd: {address: 'a:1'}, tags: {a: b}}]", "the format plain has no tags"},
		{"sinks: [{statsd: {address: 'a:1'}, tags: {}}]", ""},
		{"sinks: [{statsd: {address: 'a:1', format: dogstatsd}, tags: {'': b}}]", "the name of a tag is empty"},
		{"sinks: [{remote_write: {url: 'http://a'}}]", "without a tag instance, two servers would write the same series"},
		{"sinks: [{remote_write: {url: 'http://a'}, tags: {a: b, instance: c}}]", ""},
		{"sinks: [{statsd: {address: 'a:1'}, interval: 10s}]\nstats_flush_on_admin: true", "cannot be used with stats_flush_on_admin"},
		{"sinks: [{statsd: {address: 'a:1'}, interval: 10s}]", ""},
		{"sinks: [{statsd: {address: 'a:1'}, interval: 11s}]", "11s is not a multiple of the flush interval 5s"},
		{"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, host_check: off}", "web pages may reach this server"},
		{"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, host_check: strict}", ""},
		{"stats_config: {stats_matcher: {exclusion_list: {patterns: []}}}", "at least one pattern must be set"},
		{"stats_config: {stats_tags: [{tag_name: envoy.cluster_name, regex: ''}]}", ""},
		{"stats_config: {stats_tags: [{regex: 'a(b)'}]}", "tag_name cannot be empty"},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, match_type: ''}]}}}", ""},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, labels: [x]}]}}}", "is not a mapping"},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, observer_type: histogram, histogram_options: {buckets: [-1, 0]}}]}}}", "no bucket is greater than 0"},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, observer_type: histogram, histogram_options: {buckets: [0, 1]}}]}}}", "0 is left out"},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, observer_type: histogram, histogram_options: {buckets: [1, 1]}}]}}}", "1 is not greater than the bucket before it"},
		{"statsd: {mapping: {rules: {mappings: [{match: a, name: b, observer_type: histogram, histogram_options: {buckets: [1, .inf]}}]}}}", ""},
		{"statsd: {mapping: {watch: true}}", "there is no file to watch"},
		{"statsd: {listeners: [{address: 'udp://127.0.0.1:0', name: " + long(maxNameBytes+1) + "}]}", "is longer than"},
		{"statsd: {relay_only: true}", "every line would be dropped: relay is not set"},
		{"statsd: {relay: [{targets: [{address: 'udp://a:1', name: " + long(maxNameBytes+1) + "}]}]}", "is longer than"},
		{"statsd: {relay: [{targets: [{address: 'udp://a:1', name: " + long(longName) + "}]}]}", ""},
		{"statsd: {relay: [{targets: [{address: 'udp://a:1', health_check: {expect: x}}]}]}", "address"},
		{"stats_sinks: [{name: envoy.stat_sinks.metrics_service}, {name: envoy.stat_sinks.open_telemetry}]", "accepted, but nothing is sent"},
		{"stats_sinks: [{name: envoy.stat_sinks.metrics_service, typed_config: {}}]", "accepted, but nothing is sent"},
		{"stats_sinks: [{name: envoy.stat_sinks.open_telemetry, typed_config: {grpc_service: {}}}]", "accepted, but nothing is sent"},
		{"stats_sinks: [{name: envoy.stat_sinks.open_telemetry, typed_config: {http_service: {http_uri: {uri: x}}}}]", "typed_config.http_service.http_uri.uri: "},
		{"stats_sinks: [{name: envoy.stat_sinks.open_telemetry, typed_config: {report_histograms_as_deltas: true}}]", "report_histograms_as_deltas is that of counters"},
		{"stats_sinks: [{name: envoy.stat_sinks.open_telemetry, typed_config: {report_histograms_as_deltas: true, report_counters_as_deltas: true}}]", "accepted, but nothing is sent"},
		{"stats_sinks: [{name: envoy.stat_sinks.metrics_service, typed_config: {grpc_service: {envoy_grpc: {cluster_name: 'a b'}}}}]", `"a b" is not an authority; set authority`},
		{"", ""}, {"null", ""}, {"# nothing", ""},
	} {
		c, err := Parse("a.yaml", []byte(x.text), Options{})
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(c.Warnings, "\n")
		}
		if x.message == "" && got != "" || !strings.Contains(got, x.message) {
			t.Errorf("%.150s: %q, want %q", x.text, got, x.message)
		}
	}
}

// TestRejectAll expects no stat to exist, or each.
func TestRejectAll(t *testing.T) {
	if c := mustParse(t, "stats_config: {stats_matcher: {reject_all: true}}"); !c.Stats.Reject("a") {
		t.Error("a stat exists")
	}
	if c := mustParse(t, "stats_config: {stats_matcher: {reject_all: false}}"); c.Stats.Reject != nil && c.Stats.Reject("a") {
		t.Error("a stat is rejected")
	}
}

// TestExporterCompatibility expects conflicts of types to be rejected as statsd_exporter
// does, unless the file decides.
func TestExporterCompatibility(t *testing.T) {
	for text, want := range map[string]bool{"": false, "compat: statsd_exporter": true, "compat: statsd_exporter, type_conflict: suffix": false, "type_conflict: reject": true} {
		c := mustParse(t, "statsd: {exposition: {"+text+"}, events: {keep: 0}, service_checks: {keep: 7}}")
		if c.StatsD.RejectConflicts != want || c.StatsD.Events != -1 || c.StatsD.Checks != 7 {
			t.Errorf("%s: %v, %d events, %d checks", text, c.StatsD.RejectConflicts, c.StatsD.Events, c.StatsD.Checks)
		}
	}
}

// TestNullIsMergedAsNothing expects null over a value to leave it.
func TestNullIsMergedAsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("node: {id: n}\nflags_path: /a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{Path: file, YAML: "node: null\nflags_path: /b\n"}, Options{})
	if err != nil || c.Node.ID != "n" || c.FlagsPath != "/b" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestExplainerErrors expects the place of a mapping file that cannot be read.
func TestExplainerErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.yaml")
	c := mustParse(t, "statsd: {mapping: {file: "+file+"}}")
	want := `a.yaml:1:26: statsd.mapping.file: "` + file + `": no such file or directory`
	if _, err := c.Explainer(Startup{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got := c.FilePosition(file); got != "a.yaml:1:26: statsd.mapping.file" || c.FilePosition("other") != "" || new(Config).FilePosition("") != "" || new(Config).CheckFiles() != nil {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(file, []byte("mappings: [{match: 'a.*', name: 'b c'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Explainer(Startup{}); err == nil || !strings.Contains(err.Error(), file+":1:") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(file, []byte("mappings: [{match: 'a.*', name: 'b'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	explain, err := c.Explainer(Startup{})
	if err != nil {
		t.Fatal(err)
	}
	if x := explain([]byte("a.x:1|c")); len(x.Samples) != 1 || x.Samples[0].Stat != "b" {
		t.Errorf("%+v", x)
	}
}

// TestFieldEnds finds the name and the end of fields in text form.
func TestFieldEnds(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1 b: 2": "a|a: 1", "a {b: 1} c": "a|a {b: 1}", "a: -1, b": "a|a: -1,", "a: 'x' \"y\"; b": "a|a: 'x' \"y\";", "a: 'x\\'y' b": "a|a: 'x\\'y'", "a: 'x": "a|a: 'x",
		"[a.b/C.d] {} e": "[a.b/C.d]|[a.b/C.d] {}", "[a": "[a|[a", "a: [1, {b: '}'}] c": "a|a: [1, {b: '}'}]", "a <b: 1> c": "a|a <b: 1>", "a # c\n: 1 b": "a|a # c\n: 1", "a # c": "a|a # c",
		"a {b # }\n} c": "a|a {b # }\n}", "a {b": "a|a {b", "a: - 1 b": "a|a: - 1", "a: -": "a|a: -", "a": "a|a", "a:": "a|a:", "A_1.b+c-d9Z: x": "A_1.b+c-d9Z|A_1.b+c-d9Z: x", "a:'x'b": "a|a:'x'",
	} {
		if name, end := fieldEnds([]byte(text), 0); name > len(text) || end > len(text) || text[:name]+"|"+text[:end] != want {
			t.Errorf("%q: %d and %d, want %q", text, name, end, want)
		}
	}
}

// TestTapIDs collects each ID once, in the order of the file.
func TestTapIDs(t *testing.T) {
	tap := func(id string) string { return "{commonConfig: {admin_config: {config_id: " + id + "}}}" }
	text := "a: [" + strings.Join([]string{tap("one"), tap("two"), tap("one"), tap("null"), tap("[x]"), tap("{}"), tap("''"), tap("three"), "{common_config: {admin_config: x}}"}, ", ") + "]"
	if got := tapIDs(node(t, text)); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}
