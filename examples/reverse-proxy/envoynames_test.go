package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

// envoyMetrics returns the metrics that public dashboards and alerts for Envoy query, of
// a proxy with outlier detection, health checks and circuit breakers. The sources are
// the mixins envoy-mixin and grafana/jsonnet-libs, the dashboards of Envoy Gateway and
// TransferWise, and the monitoring template of Zabbix.
func envoyMetrics() []string {
	return strings.Fields(`
		envoy_cluster_circuit_breakers_default_cx_open
		envoy_cluster_circuit_breakers_default_cx_pool_open
		envoy_cluster_circuit_breakers_default_rq_open
		envoy_cluster_circuit_breakers_default_rq_pending_open
		envoy_cluster_external_upstream_rq_time_bucket
		envoy_cluster_external_upstream_rq_xx
		envoy_cluster_health_check_attempt
		envoy_cluster_health_check_failure
		envoy_cluster_health_check_healthy
		envoy_cluster_health_check_success
		envoy_cluster_lb_healthy_panic
		envoy_cluster_manager_active_clusters
		envoy_cluster_manager_cds_update_attempt
		envoy_cluster_manager_cds_update_rejected
		envoy_cluster_manager_cds_update_success
		envoy_cluster_manager_warming_clusters
		envoy_cluster_membership_change
		envoy_cluster_membership_degraded
		envoy_cluster_membership_healthy
		envoy_cluster_membership_total
		envoy_cluster_outlier_detection_ejections_active
		envoy_cluster_outlier_detection_ejections_enforced_total
		envoy_cluster_outlier_detection_ejections_overflow
		envoy_cluster_upstream_cx_active
		envoy_cluster_upstream_cx_connect_fail
		envoy_cluster_upstream_cx_connect_ms_bucket
		envoy_cluster_upstream_cx_connect_timeout
		envoy_cluster_upstream_cx_destroy
		envoy_cluster_upstream_cx_destroy_local_with_active_rq
		envoy_cluster_upstream_cx_destroy_remote_with_active_rq
		envoy_cluster_upstream_cx_length_ms_bucket
		envoy_cluster_upstream_cx_overflow
		envoy_cluster_upstream_cx_rx_bytes_total
		envoy_cluster_upstream_cx_total
		envoy_cluster_upstream_cx_tx_bytes_total
		envoy_cluster_upstream_flow_control_backed_up_total
		envoy_cluster_upstream_flow_control_drained_total
		envoy_cluster_upstream_flow_control_paused_reading_total
		envoy_cluster_upstream_flow_control_resumed_reading_total
		envoy_cluster_upstream_rq
		envoy_cluster_upstream_rq_active
		envoy_cluster_upstream_rq_cancelled
		envoy_cluster_upstream_rq_completed
		envoy_cluster_upstream_rq_maintenance_mode
		envoy_cluster_upstream_rq_pending_active
		envoy_cluster_upstream_rq_pending_failure_eject
		envoy_cluster_upstream_rq_pending_overflow
		envoy_cluster_upstream_rq_pending_total
		envoy_cluster_upstream_rq_per_try_timeout
		envoy_cluster_upstream_rq_retry
		envoy_cluster_upstream_rq_retry_overflow
		envoy_cluster_upstream_rq_retry_success
		envoy_cluster_upstream_rq_rx_reset
		envoy_cluster_upstream_rq_time_bucket
		envoy_cluster_upstream_rq_time_count
		envoy_cluster_upstream_rq_time_sum
		envoy_cluster_upstream_rq_timeout
		envoy_cluster_upstream_rq_total
		envoy_cluster_upstream_rq_tx_reset
		envoy_cluster_upstream_rq_xx
		envoy_cluster_version
		envoy_cluster_warming_state
		envoy_http_downstream_cx_active
		envoy_http_downstream_cx_destroy
		envoy_http_downstream_cx_destroy_remote_active_rq
		envoy_http_downstream_cx_idle_timeout
		envoy_http_downstream_cx_length_ms_bucket
		envoy_http_downstream_cx_rx_bytes_total
		envoy_http_downstream_cx_total
		envoy_http_downstream_cx_tx_bytes_total
		envoy_http_downstream_rq_active
		envoy_http_downstream_rq_completed
		envoy_http_downstream_rq_rx_reset
		envoy_http_downstream_rq_time_bucket
		envoy_http_downstream_rq_time_count
		envoy_http_downstream_rq_time_sum
		envoy_http_downstream_rq_timeout
		envoy_http_downstream_rq_total
		envoy_http_downstream_rq_tx_reset
		envoy_http_downstream_rq_xx
		envoy_http_rq_total
		envoy_listener_downstream_cx_active
		envoy_listener_downstream_cx_total
		envoy_listener_http_downstream_rq_xx
		envoy_listener_manager_lds_update_rejected
		envoy_listener_manager_lds_update_success
		envoy_listener_manager_total_listeners_active
		envoy_listener_ssl_certificate_expiration_unix_time_seconds
		envoy_server_concurrency
		envoy_server_days_until_first_cert_expiring
		envoy_server_live
		envoy_server_memory_allocated
		envoy_server_memory_heap_size
		envoy_server_memory_physical_size
		envoy_server_parent_connections
		envoy_server_state
		envoy_server_total_connections
		envoy_server_uptime
		envoy_server_version
	`)
}

// absent are the metrics that do not exist here.
const absent = `envoy_listener_manager_lds_update_rejected envoy_listener_manager_lds_update_success`

// TestMetricsOfEnvoyDashboards: under the product name envoy, the metrics of public
// dashboards exist. docs/migration.md says why the others do not.
func TestMetricsOfEnvoyDashboards(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cds := write("cds.json", `{"version_info": "1", "resources": []}`)
	eds := write("eds.json", `{"version_info": "1", "resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "found"}]}`)
	secure := Route{Name: "secure", Cluster: "backend", TLS: certificate(t, dir)}
	r := startAs(t, "envoy", "dynamic_resources: {cds_config: {path_config_source: {path: "+cds+"}}}\n"+static("outlier_detection: {}\n"+
		"health_checks: [{timeout: 20s, interval: 20s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /health}}]\n"+
		"circuit_breakers: {thresholds: [{track_remaining: true}]}", b)+
		"  - {name: found, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: "+eds+"}}}}\n", web(Route{}), secure)
	if code, _, _ := r.get("X-Forwarded-For", "203.0.113.7"); code != 200 {
		t.Fatalf("status %d", code)
	}
	r.want(map[string]int{"http.web.downstream_rq_2xx": 1})
	have := make(map[string]bool)
	text := string(r.server.Admin().Request("GET", "/stats/prometheus", nil).Body)
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		have[name] = true
	}
	var missing []string
	for _, name := range envoyMetrics() {
		if !have[name] {
			missing = append(missing, name)
		}
	}
	if want := strings.Fields(absent); !slices.Equal(missing, want) {
		t.Errorf("missing %s\nwant    %s", strings.Join(missing, " "), strings.Join(want, " "))
	}
	reasons, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(absent) {
		if !strings.Contains(string(reasons), strings.TrimPrefix(name, "envoy_")) {
			t.Errorf("docs/migration.md does not say why there is no %s", name)
		}
	}
	at := func(name string) string { return strings.ReplaceAll(r.address(name), ":", "_") }
	for _, label := range []string{
		`envoy_cluster_upstream_rq_xx{envoy_response_code_class="2",envoy_cluster_name="backend"} 1`, `envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="backend"} 1`,
		`envoy_http_downstream_rq_xx{envoy_response_code_class="2",envoy_http_conn_manager_prefix="web"} 1`,
		`envoy_cluster_external_upstream_rq_xx{envoy_response_code_class="2",envoy_cluster_name="backend"} 1`,
		`envoy_listener_http_downstream_rq_xx{envoy_response_code_class="2",envoy_http_conn_manager_prefix="web",envoy_listener_address="` + at("web") + `"} 1`,
		`envoy_listener_ssl_certificate_expiration_unix_time_seconds{envoy_tls_certificate="secure",envoy_listener_address="` + at("secure") + `"} 4102444800`,
	} {
		if !strings.Contains(text, label+"\n") {
			t.Errorf("no line %s", label)
		}
	}
}

// certificate writes a certificate for 127.0.0.1 that expires in the year 2100.
func certificate(t *testing.T, dir string) *TLS {
	t.Helper()
	files := &TLS{Chain: filepath.Join(dir, "secure.pem"), Key: filepath.Join(dir, "key.pem")}
	certtest.Issue(t, &x509.Certificate{
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
	}, nil).Write(t, files.Chain, files.Key)
	return files
}

// TestClientsByTLS serves a client by TLS.
func TestClientsByTLS(t *testing.T) {
	route := web(Route{TLS: certificate(t, t.TempDir())})
	r := start(t, static("", newBackend(t, "127.0.0.1:0")), route)
	chain, err := os.ReadFile(route.TLS.Chain)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(chain)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + r.address("web") + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(b), "hello from ") {
		t.Errorf("got %q, %v", b, err)
	}
	r.want(map[string]int{"http.web.downstream_rq_2xx": 1, "http.web.downstream_cx_active": 1})
	if sent := r.stat("http.web.downstream_cx_tx_bytes_total"); sent == 0 {
		t.Error("no bytes are counted")
	}
}
