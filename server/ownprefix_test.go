package server_test

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestOwnPrefix starts a server with all that makes stats and finds none outside the
// prefix.
func TestOwnPrefix(t *testing.T) {
	cfg := fromYAML(t, t.TempDir(), `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, access_log_path: $DIR/access, tap: {}}
stats_config: {own_prefix: own.stats}
statsd: {listeners: [{address: "tcp://127.0.0.1:0"}], self_metrics: statsd_exporter}
node: {id: n, cluster: c}
static_resources:
  clusters:
  - {name: a, connect_timeout: 1s, track_cluster_stats: {per_endpoint_stats: true}, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}
  - {name: plane, connect_timeout: 1s, load_assignment: {cluster_name: plane, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: plane}}]}
  cds_config: {ads: {}, initial_fetch_timeout: 0.001s}
layered_runtime: {layers: [{name: remote, rtds_layer: {name: flags, rtds_config: {ads: {}, initial_fetch_timeout: 0.001s}}}, {name: admin, admin_layer: {}}]}
`)
	cfg.ProcessStats = true
	r := start(t, cfg)
	waittest.Until(t, "the runtime layer is followed", func() bool { return strings.Contains(r.get(t, "/stats?filter=runtime.flags"), "update_attempt") })
	r.Flusher().FlushNow()
	v := r.Store().View()
	defer v.Close()
	found := make(map[string]bool) // first segments below the prefix
	for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
		for c := v.ByName(set); c.Next(); {
			rest, ok := strings.CutPrefix(string(c.AppendName(nil)), "own.stats.")
			if !ok {
				t.Errorf("%s is outside the prefix", c.AppendName(nil))
			}
			first, _, _ := strings.Cut(rest, ".")
			found[first] = true
		}
	}
	for _, want := range []string{"server", "cluster", "cluster_manager", "control_plane", "xds", "runtime", "process", "go", "compat", "ingest", "admin", "tap", "listener"} {
		if !found[want] {
			t.Errorf("no stat below own.stats.%s", want)
		}
	}
	metrics := r.get(t, "/stats/metrics")
	for _, want := range []string{
		"\nown_stats_process_start_time_seconds{} ", "\n# HELP own_stats_process_start_time_seconds ",
		"\nproxy_own_stats_cluster_upstream_cx_total{proxy_cluster_name=\"a\"} 0\n",
		"\nproxy_own_stats_cluster_endpoint_cx_total{proxy_cluster_name=\"a\",",
		"\nstatsd_exporter_lines_total{} 0\n",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the exposition lacks %q", want)
		}
	}
	if got := r.get(t, "/stats?filter=endpoint.127.0.0.1_1.cx_total"); got != "own.stats.cluster.a.endpoint.127.0.0.1_1.cx_total: 0\n" {
		t.Errorf("stats of a host: %q", got)
	}
}
