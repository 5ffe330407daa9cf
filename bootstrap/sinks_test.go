package bootstrap

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/graphite"
	"github.com/statsd-admin/statsd-admin/flush/jsonlines"
	"github.com/statsd-admin/statsd-admin/flush/metricsservice"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestOpenTelemetrySink(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`
sinks:
- otlp: {url: "http://a:4318", temporality: delta, histograms: explicit, resource: {b: x, a: y}, headers: {x-key: v}, refresh: 2m}
stats_sinks:
- name: envoy.stat_sinks.open_telemetry
  typed_config: {http_service: {http_uri: {uri: "http://b:4318/v1/metrics", cluster: c, timeout: 3s}}, report_counters_as_deltas: true, report_histograms_as_deltas: true, prefix: p}
- name: envoy.stat_sinks.open_telemetry
  typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}
- name: envoy.stat_sinks.open_telemetry
  typed_config: {grpc_service: {envoy_grpc: {cluster_name: "d e", authority: d}, timeout: 4s}}
static_resources: {clusters: [{name: "d e", connect_timeout: 1s, type: STATIC, load_assignment: {cluster_name: d, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}]}
`), Options{Product: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	got := sinksOf(c)
	if len(got) != 3 || len(c.Warnings) != 1 || !got[2].grpc || got[2].cluster != "d e" {
		t.Fatalf("%d sinks, warnings %q", len(got), c.Warnings)
	}
	want := []Sink{
		{Options: sinkqueue.Options{Name: "otlp"}, OTLP: &otlp.Config{
			HTTP: sinkhttp.Config{URL: "http://a:4318", Headers: map[string]string{"X-Key": "v"}}, Delta: true, Explicit: true,
			Resource: []tags.Tag{{Name: "a", Value: "y"}, {Name: "b", Value: "x"}}, Batch: otlp.DefaultBatch, Refresh: 2 * time.Minute,
		}},
		{Options: sinkqueue.Options{Name: "open_telemetry", Prefix: "p"}, OTLP: &otlp.Config{
			HTTP: sinkhttp.Config{URL: "http://b:4318/v1/metrics", Timeout: 3 * time.Second}, Delta: true, Explicit: true, Batch: otlp.DefaultBatch, Refresh: -1,
		}},
		{Options: sinkqueue.Options{Name: "open_telemetry_2"}, OTLP: &otlp.Config{
			HTTP: sinkhttp.Config{URL: "http://d", Timeout: 4 * time.Second}, Explicit: true, Batch: otlp.DefaultBatch, Refresh: -1,
		}},
	}
	for i := range want {
		if g := *got[i]; !reflect.DeepEqual(g.Options, want[i].Options) || !reflect.DeepEqual(g.OTLP, want[i].OTLP) {
			t.Errorf("sink %d: got %+v %+v\nwant %+v %+v", i, g.Options, g.OTLP, want[i].Options, want[i].OTLP)
		}
	}
}

func TestOpenTelemetryOverGRPC(t *testing.T) {
	c, err := Parse("a.yaml", []byte("sinks: [{otlp: {url: 'http://a', protocol: grpc, compression: gzip}}]\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := sinksOf(c)[0]
	o := got.Options
	o.Store = store.New(store.Options{})
	sink, err := got.create(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := sink.(flush.Reporter).Delivery()
	if !got.OTLP.Gzip || d.Target != "http://a" || d.Kind != "otlp" {
		t.Errorf("%+v, %+v", got.OTLP, d)
	}
	r := sink.(flush.Runner)
	r.Close()
	r.Run(t.Context())
}

func TestStatsDSinks(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`
sinks:
- statsd: {address: "localhost:8125"}
- {name: dog, statsd: {address: "localhost:8125", format: dogstatsd}}
- {name: local, statsd: {protocol: unixgram, address: /run/s, format: dogstatsd, max_packet_bytes: 4KiB, final_newline: true, zero_deltas: true, gauges: changed, gauge_signs: absolute, timers: none, events: false}, prefix: edge, interval: 10s, queue: {max_bytes: 1MiB, max_age: 1m}, on_ambiguous: resend, tags: {zone: b, dc: a}, filters: {include: [{prefix: a}], exclude: [{exact: ab}], kinds: [counter], origin: received}}
stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.StatsdSink, address: {socket_address: {address: 127.0.0.1, port_value: 9125}}}
- name: envoy.stat_sinks.dog_statsd
  typed_config: {address: {pipe: {path: /run/d}}, prefix: p, max_bytes_per_datagram: 1400}
- name: envoy.stat_sinks.graphite_statsd
  typed_config: {address: {socket_address: {address: "::1", port_value: 1}}}
- name: envoy.stat_sinks.statsd
  typed_config: {tcp_cluster_name: there}
- name: envoy.stat_sinks.statsd
  typed_config: {tcp_cluster_name: nowhere}
static_resources:
  clusters:
  - name: there
    load_assignment: {cluster_name: there, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8125}}}}]}]}
`), Options{Product: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Sink{
		{Options: sinkqueue.Options{Name: "statsd"}, StatsD: &statsdsink.Config{Network: statsdsink.UDP, Address: "localhost:8125", Format: statsdsink.Plain, Timers: statsdsink.Values}},
		{Options: sinkqueue.Options{Name: "dog"}, StatsD: &statsdsink.Config{Network: statsdsink.UDP, Address: "localhost:8125", Format: statsdsink.DogStatsD, Timers: statsdsink.Values, Events: true}},
		{
			Options: sinkqueue.Options{
				Name: "local", Prefix: "edge", Interval: 10 * time.Second, QueueBytes: 1 << 20, QueueAge: time.Minute, Resend: true,
				Tags:   []tags.Tag{{Name: "dc", Value: "a"}, {Name: "zone", Value: "b"}},
				Filter: sinkqueue.Filter{Include: match.List{match.Prefix("a")}, Exclude: match.List{match.Exact("ab")}, Kinds: []store.Kind{store.KindCounter}, Origin: sinkqueue.Received},
			},
			StatsD: &statsdsink.Config{Network: statsdsink.Unixgram, Address: "/run/s", Format: statsdsink.DogStatsD, PacketBytes: 4096, FinalNewline: true, ZeroDeltas: true, ChangedGauges: true, AbsoluteGauges: true, Timers: statsdsink.None},
		},
		{Options: sinkqueue.Options{Name: "statsd_2", Prefix: "edge"}, StatsD: &statsdsink.Config{Network: statsdsink.UDP, Address: "127.0.0.1:9125", Format: statsdsink.Plain, ZeroDeltas: true, PacketBytes: 1}},
		{Options: sinkqueue.Options{Name: "dog_statsd", Prefix: "p"}, StatsD: &statsdsink.Config{Network: statsdsink.Unixgram, Address: "/run/d", Format: statsdsink.DogStatsD, ZeroDeltas: true, PacketBytes: 1400}},
		{Options: sinkqueue.Options{Name: "graphite_statsd", Prefix: "edge"}, StatsD: &statsdsink.Config{Network: statsdsink.UDP, Address: "[::1]:1", Format: statsdsink.Graphite, ZeroDeltas: true, PacketBytes: 1}},
		{Options: sinkqueue.Options{Name: "statsd_3", Prefix: "edge"}, StatsD: &statsdsink.Config{Network: statsdsink.TCP, Address: "there", Format: statsdsink.Plain, ZeroDeltas: true, PacketBytes: 16 << 10}},
	}
	got := sinksOf(c)
	if len(got) != len(want) {
		t.Fatalf("%d sinks, want %d", len(got), len(want))
	}
	for i := range want {
		if g := *got[i]; !reflect.DeepEqual(g.Options, want[i].Options) || !reflect.DeepEqual(g.StatsD, want[i].StatsD) {
			t.Errorf("sink %d: got %+v %+v\nwant %+v %+v", i, g.Options, g.StatsD, want[i].Options, want[i].StatsD)
		}
	}
	if w := fmt.Sprint(c.Warnings); len(c.Warnings) != 1 || !strings.Contains(w, `nothing is sent: "nowhere" is not a static cluster`) {
		t.Errorf("warnings %s", w)
	}
	o := got[6].Options
	o.Store = store.New(store.Options{})
	dialed := make(chan string, 1)
	sink, err := got[6].create(o, func(_ context.Context, cluster string) (net.Conn, error) {
		select {
		case dialed <- cluster:
		default:
		}
		return nil, net.ErrClosed
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Store.Root().Counter("a").Inc()
	snap := o.Store.Flush(store.FlushOptions{})
	if err := sink.Flush(snap); err != nil {
		t.Fatal(err)
	}
	snap.Close()
	r := sink.(flush.Runner)
	r.Close()
	r.Run(t.Context())
	if got := <-dialed; got != "there" {
		t.Errorf("connects to %q", got)
	}
}

func TestGraphiteSinks(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`
sinks:
- graphite: {address: "a:2003"}
- {tags: {dc: x}, graphite: {address: "[::1]:2003", layout: legacy, tagged: true, percentiles: [50, 99.9], zero_deltas: true, timeout: 3s}}
- graphite: {address: "a:2003", layout: modern, percentiles: []}
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Sink{
		{Options: sinkqueue.Options{Name: "graphite"}, Graphite: &graphite.Config{Address: "a:2003", Layout: graphite.Plain}},
		{Options: sinkqueue.Options{Name: "graphite_2", Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, Graphite: &graphite.Config{
			Address: "[::1]:2003", Layout: graphite.Legacy, Tagged: true, Percentiles: []float64{50, 99.9}, ZeroDeltas: true, Timeout: 3 * time.Second,
		}},
		{Options: sinkqueue.Options{Name: "graphite_3"}, Graphite: &graphite.Config{Address: "a:2003", Layout: graphite.Modern, Percentiles: []float64{}}},
	}
	got := sinksOf(c)
	if len(got) != len(want) {
		t.Fatalf("%d sinks", len(got))
	}
	for i := range want {
		if g := *got[i]; !reflect.DeepEqual(g.Options, want[i].Options) || !reflect.DeepEqual(g.Graphite, want[i].Graphite) {
			t.Errorf("sink %d: got %+v %+v\nwant %+v %+v", i, g.Options, g.Graphite, want[i].Options, want[i].Graphite)
		}
		o := got[i].Options
		o.Store = store.New(store.Options{})
		if sink, err := got[i].create(o, nil); err != nil || sink.Name() != o.Name {
			t.Errorf("sink %d: %v", i, err)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{`otlp: {url: "http://a:1/v1/metrics", protocol: grpc}`, "a.yaml:2:15: sinks[0].otlp.url: the URL of a receiver over gRPC has no path"},
		{`otlp: {url: "http://a:1", protocol: grpc, headers: {Grpc-Timeout: 1S}}`, `header "Grpc-Timeout" is not allowed in gRPC`},
		{`otlp: {url: "http://a:1", protocol: udp}`, `"udp" is not one of http, grpc`},
		{`json_lines: {}`, "path"},
		{`metrics_service: {}`, "url"},
		{`metrics_service: {url: "http://a:1/x"}`, "a.yaml:2:26: sinks[0].metrics_service.url: the URL of a receiver over gRPC has no path"},
		{`json_lines: {path: ""}`, "sinks[0].json_lines.path: must not be empty"},
		{`json_lines: {path: a, percentiles: [-1]}`, "sinks[0].json_lines.percentiles[0]: \"-1\" is not a number in [0, 100]"},
		{`graphite: {}`, "address"},
		{`graphite: {address: "a"}`, "a.yaml:2:23: sinks[0].graphite.address: \"a\" is not host:port, such as 127.0.0.1:2003"},
		{`graphite: {address: "a:1", layout: x}`, `"x" is not one of plain, modern, legacy`},
		{`graphite: {address: "a:1", percentiles: [100]}`, "sinks[0].graphite.percentiles[0]: \"100\" is not a number in [0.01, 99.99]"},
		{`graphite: {address: "a:1", percentiles: [` + strings.Repeat("1, ", 33) + `]}`, "33 percentiles; at most 32 are allowed"},
		{`{tags: {a: b}, graphite: {address: "a:1"}}`, "sinks[0].tags: lines have no tags; set graphite.tagged to true"},
		{`{otlp: {url: "http://a"}, graphite: {address: "a:1"}}`, "graphite"},
	} {
		if _, err := Parse("a.yaml", []byte("sinks:\n- "+tt.text), Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestJSONLinesSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.jsonl")
	c, err := Parse("a.yaml", []byte("sinks: [{json_lines: {path: '"+path+"', percentiles: [0, 100]}}]\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := sinksOf(c)[0]
	if want := (jsonlines.Config{Path: path, Percentiles: []float64{0, 100}}); !reflect.DeepEqual(*got.JSONLines, want) {
		t.Errorf("got %+v, want %+v", *got.JSONLines, want)
	}
	o := got.Options
	o.Store = store.New(store.Options{})
	sink, err := got.create(o, nil)
	if err != nil || sink.Name() != "json_lines" {
		t.Fatal(sink, err)
	}
	r := sink.(flush.Runner)
	r.Close()
	r.Run(t.Context())
}

func TestMetricsServiceSinks(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`
node: {id: n, cluster: shop}
sinks:
- metrics_service: {url: "https://a:9500", temporality: delta, histograms: summary, timeout: 2s}
stats_sinks:
- name: envoy.stat_sinks.metrics_service
  typed_config: {grpc_service: {envoy_grpc: {cluster_name: metrics}, timeout: 3s}, transport_api_version: V3, report_counters_as_deltas: true, histogram_emit_mode: HISTOGRAM}
- name: envoy.stat_sinks.metrics_service
  typed_config: {grpc_service: {google_grpc: {target_uri: "b:1", stat_prefix: x}}, emit_tags_as_labels: true}
- name: envoy.stat_sinks.metrics_service
  typed_config: {grpc_service: {envoy_grpc: {cluster_name: secure}}}
static_resources:
  clusters:
  - name: metrics
    connect_timeout: 1s
    type: STRICT_DNS
    typed_extension_protocol_options: {}
    load_assignment: {cluster_name: metrics, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: collector, port_value: 9500}}}}]}]}
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []metricsservice.Config{
		{Receiver: sinkhttp.Config{URL: "https://a:9500", Timeout: 2 * time.Second}, Delta: true, Histograms: metricsservice.Summaries},
		{Receiver: sinkhttp.Config{URL: "http://metrics", Timeout: 3 * time.Second}, Delta: true, Histograms: metricsservice.Buckets, FullNames: true},
		{Receiver: sinkhttp.Config{URL: "http://b:1"}},
	}
	got := sinksOf(c)
	if len(got) != len(want) {
		t.Fatalf("%d sinks", len(got))
	}
	for i, name := range []string{"metrics_service", "metrics_service_2", "metrics_service_3"} {
		want[i].NodeID, want[i].NodeCluster = "n", "shop"
		if !reflect.DeepEqual(*got[i].Metrics, want[i]) {
			t.Errorf("sink %d: got %+v\nwant %+v", i, *got[i].Metrics, want[i])
		}
		o := got[i].Options
		o.Store = store.New(store.Options{})
		sink, err := got[i].create(o, nil)
		if err != nil || sink.Name() != name {
			t.Fatal(sink, err)
		}
		r := sink.(flush.Runner)
		r.Close()
		r.Run(t.Context())
	}
	if w := fmt.Sprint(c.Warnings); !strings.Contains(w, `nothing is sent: "secure" is not a static cluster`) {
		t.Errorf("warnings %s", w)
	}
}

// TestTooManySinks counts the sinks in both sections.
func TestTooManySinks(t *testing.T) {
	many := func(n int) string { return "[" + strings.Repeat("{json_lines: {path: a}}, ", n) + "]\n" }
	const other = "stats_sinks: [{name: hystrix}]\n"
	for text, want := range map[string]string{
		"sinks: " + many(maxSinks):                                               "",
		other + "sinks: " + many(maxSinks):                                       "a.yaml:2:8: sinks: 257 sinks are more than the limit of 256: each reports the metrics of all",
		"stats_sinks: [" + strings.Repeat("{name: hystrix}, ", maxSinks+1) + "]": "a.yaml:1:14: stats_sinks: 257 sinks are more than",
	} {
		if _, err := Parse("a.yaml", []byte(text), Options{}); (err != nil) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestSinkNamesAreUnique numbers equal names, and leaves out numbers of other sinks.
func TestSinkNamesAreUnique(t *testing.T) {
	const unnamed, named = "{graphite: {address: 'a:1'}}, ", "{graphite: {address: 'a:1'}, name: %s}, "
	text := "sinks: [" + unnamed + fmt.Sprintf(named, "graphite_2") + unnamed + fmt.Sprintf(named, "a") + fmt.Sprintf(named, "a") + fmt.Sprintf(named, "a_2") + unnamed + "]"
	c, err := Parse("a.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sinksOf(c) {
		names = append(names, s.Options.Name)
	}
	if want := []string{"graphite", "graphite_2", "graphite_3", "a", "a_3", "a_2", "graphite_4"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestSinksToOtherServers: only stats that come back are a loop.
func TestSinksToOtherServers(t *testing.T) {
	for _, sink := range []string{
		"filters: {origin: own}, statsd: {address: 'localhost:8125'}", "statsd: {address: 'localhost:8126'}", "statsd: {address: '192.0.2.1:8125'}",
		"statsd: {address: /run/a, protocol: unixgram}", "graphite: {address: 'localhost:8125'}",
	} {
		if _, err := Parse("a.yaml", []byte("statsd: {}\nsinks: [{"+sink+"}]\n"), Options{}); err != nil {
			t.Errorf("%s: %v", sink, err)
		}
	}
}
