package upstream

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// asking is a cluster for each field that only a proxy can put in effect.
func asking() map[string]string {
	return map[string]string{
		"filters": "filters: [{name: f}]",
		"connection_pool_per_downstream_connection":                                    "connection_pool_per_downstream_connection: true",
		"per_connection_buffer_high_watermark_timeout":                                 "per_connection_buffer_high_watermark_timeout: 1s",
		"preconnect_policy":                                                            "preconnect_policy: {per_upstream_preconnect_ratio: 1.5}",
		"common_lb_config.override_host_status":                                        "common_lb_config: {override_host_status: {}}",
		"upstream_connection_options.set_local_interface_name_on_upstream_connections": "upstream_connection_options: {set_local_interface_name_on_upstream_connections: true}",
		"track_cluster_stats.request_response_sizes":                                   "track_cluster_stats: {request_response_sizes: true}",
		"track_cluster_stats.per_endpoint_stats":                                       "track_cluster_stats: {per_endpoint_stats: true}",
		"load_assignment.endpoints.lb_endpoints.endpoint.additional_addresses":         "type: STRICT_DNS\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}, additional_addresses: [{address: {socket_address: {address: 10.0.0.2, port_value: 1}}}]}}]}]}",
		"transport_socket_matcher":                                                     "transport_socket_matcher: {}",
		"common_http_protocol_options.headers_with_underscores_action":                 "common_http_protocol_options: {headers_with_underscores_action: DROP_HEADER}",
		"http_protocol_options.use_balsa_parser":                                       "http_protocol_options: {use_balsa_parser: true}",
		"http_protocol_options.ignore_http_11_upgrade":                                 "http_protocol_options: {ignore_http_11_upgrade: [{exact: x}]}",
		"upstream_bind_config.local_address_selector":                                  "upstream_bind_config: {local_address_selector: {name: x, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}}",
		"upstream_bind_config.validate_network_namespaces":                             "upstream_bind_config: {validate_network_namespaces: true}",
		"common_http_protocol_options.max_connection_duration_jitter":                  "common_http_protocol_options: {max_connection_duration_jitter: {value: 5}}",
		"preconnect_policy.preconnect_enabled_metadata":                                "preconnect_policy: {preconnect_enabled_metadata: {filter: f, path: [{key: p}], value: {present_match: true}}}",
		"upstream_config":             "upstream_config: {name: x, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}",
		"lrs_server":                  "lrs_server: {self: {}}",
		"lrs_report_endpoint_metrics": "lrs_report_endpoint_metrics: [x]",
		"stats_matcher":               "stats_matcher: {reject_all: true}",
		"queuing_policies":            "queuing_policies: {}",

		"health_checks.event_service":                              check[:len(check)-2] + ", event_service: {grpc_service: {envoy_grpc: {cluster_name: x}}}}]",
		"circuit_breakers.thresholds.retry_budget.budget_interval": "circuit_breakers: {thresholds: [{priority: HIGH, retry_budget: {budget_interval: 1s}}]}",
		"outlier_detection.detect_degraded_hosts":                  "outlier_detection: {detect_degraded_hosts: true}",
		"outlier_detection.monitors":                               "outlier_detection: {monitors: [{name: m, typed_config: " + emptyAny + "}]}",
		"health_checks.alt_port":                                   check[:len(check)-2] + ", alt_port: 7}]",
		"health_checks.http_health_check.codec_client_type":        strings.Replace(check, "tcp_health_check: {", "http_health_check: {path: /, codec_client_type: HTTP3", 1),
		"health_checks.http_health_check.use_alpn_protocol":        strings.Replace(check, "tcp_health_check: {", "http_health_check: {path: /, use_alpn_protocol: true", 1),
		"health_checks.tcp_health_check.proxy_protocol_config":     strings.Replace(check, "tcp_health_check: {", "tcp_health_check: {proxy_protocol_config: {}", 1),
	}
}

func TestUnsupportedFieldsAreRefusedOrLogged(t *testing.T) {
	for _, a := range asks(parse(t, "name: c\ntype: STRICT_DNS\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a, port_value: 1}}}}]}]}\n").Cluster) {
		if a.given {
			t.Errorf("%s: a cluster without it asks for it", a.field)
		}
		if _, ok := asking()[a.field]; !ok {
			t.Errorf("%s: not tested", a.field)
		}
	}
	for field, text := range asking() {
		var log bytes.Buffer
		add := func(supported ...string) error {
			log.Reset()
			r := newRig(t, func(c *Config) { c.Logger, c.Supported = slog.New(slog.NewTextHandler(&log, nil)), supported })
			_, err := r.AddOrUpdate(parse(t, "name: c\n"+text+"\n"), "")
			if err != nil && r.Cluster("c") != nil {
				t.Errorf("%s: the refused cluster is there", field)
			}
			return err
		}
		err := add()
		var refused *Unsupported
		warned := strings.Contains(log.String(), "setting without effect") && strings.Contains(log.String(), "field="+field+" ")
		switch {
		case err == nil && !warned:
			t.Errorf("%s: neither refused nor warned of; logged %q", field, &log)
		case err != nil && (!errors.As(err, &refused) || refused.Field != field || !strings.HasPrefix(err.Error(), `upstream: cluster "c": `+field+": ")):
			t.Errorf("%s: refused with %v", field, err)
		}
		if err := add(field); err != nil || strings.Contains(log.String(), field) {
			t.Errorf("%s: the proxy supported it: %v, logged %q", field, err, &log)
		}
	}
}

func TestProxyMayRefuseClusters(t *testing.T) {
	want := &Unsupported{"http2_protocol_options", "only HTTP/1 is spoken here"}
	r := newRig(t, func(c *Config) {
		c.Accept = func(c *config.Cluster) error {
			if c.HTTP.Protocol == config.HTTP2 {
				return want
			}
			return nil
		}
	})
	r.add("name: a\n")
	if _, err := r.AddOrUpdate(parse(t, "name: b\nhttp2_protocol_options: {}\nfilters: [{name: f}]\n"), ""); !errors.Is(err, want) || !strings.Contains(err.Error(), "filters: ") {
		t.Errorf("error %v, want both reasons", err)
	}
	if r.Cluster("a") == nil || r.Cluster("b") != nil {
		t.Error("the wrong one was refused")
	}
}
