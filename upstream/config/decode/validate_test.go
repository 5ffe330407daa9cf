package decode_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// ruleTest is a cluster named c with the fields in text and its errors.
type ruleTest struct {
	name string
	form config.Form
	text string
	want []string
}

const v2, v3 = config.FormV2, config.FormV3

func one(s string) []string { return []string{s} }

func runRules(t *testing.T, tests []ruleTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if !strings.HasPrefix(text, "name:") {
				text = "name: c\n" + text
			}
			_, err := newDecoder().ClusterText("c.yaml", []byte(text), tt.form)
			if diff := cmp.Diff(tt.want, faults(t, err)); diff != "" {
				t.Errorf("errors in\n%s\n(-want +got)\n%s", text, diff)
			}
		})
	}
}

func TestClusterFieldRules(t *testing.T) {
	const ends = "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}}]}]}\n"
	runRules(t, []ruleTest{
		{"name-empty", v3, "name: ''\n", one("name: must not be empty")},
		{"name-absent", v2, "name:\n", one("name: must not be empty")},
		{"name-too-long", v3, "name: " + strings.Repeat("x", 1025) + "\n", one("name: 1025 bytes exceeds 1024")},
		{"alt-stat-name-too-long", v3, "name: c\nalt_stat_name: " + strings.Repeat("x", 1025) + "\n", one("alt_stat_name: 1025 bytes exceeds 1024")},
		{"type-number", v3, "type: 17\n", one("type: 17 is not a discovery type (STATIC, STRICT_DNS, LOGICAL_DNS, EDS, ORIGINAL_DST)")},
		{"type-word", v2, "type: SOMETHING\n", one(`type: "SOMETHING" is not a discovery type (STATIC, STRICT_DNS, LOGICAL_DNS, EDS, ORIGINAL_DST)`)},
		{"type-and-cluster-type", v3, "cluster_type: {name: no.balancer}\ntype: STATIC\n", one("type: cannot be combined with cluster_type")},
		{"cluster-type-name-empty", v3, "cluster_type: {}\n", one("cluster_type.name: must not be empty")},
		{"cluster-type-unknown", v3, "cluster_type: {name: x}\n", one(`cluster_type.name: "x" is not a known cluster type; known: no.balancer, own.balancer, proxy.cluster.dns, proxy.cluster.eds, proxy.cluster.logical_dns, proxy.cluster.original_dst, proxy.cluster.static, proxy.cluster.strict_dns`)},
		{"connect-timeout-zero", v3, "connect_timeout: 0s\n", one("connect_timeout: 0s must be greater than 0s")},
		{"connect-timeout-negative", v2, "connect_timeout: -0.25s\n", one("connect_timeout: -250ms must be greater than 0s")},
		{"lb-policy-v3", v3, "lb_policy: 4\n", one("lb_policy: 4 is not a load balancing policy (ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG)")},
		{"lb-policy-v2", v2, "lb_policy: 12\n", one("lb_policy: 12 is not a load balancing policy (ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, ORIGINAL_DST_LB, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG)")},
		{"dns-refresh-too-short", v3, "dns_refresh_rate: 0.0009s\n", one("dns_refresh_rate: 900µs is below the minimum of 1ms")},
		{"dns-refresh-one-millisecond", v2, "dns_refresh_rate: 0.001s\n", nil},
		{"failure-rate-base-absent", v2, "dns_failure_refresh_rate: {}\n", one("dns_failure_refresh_rate.base_interval: must be set")},
		{"failure-rate-base-zero", v3, "dns_failure_refresh_rate: {base_interval: 0s}\n", one("dns_failure_refresh_rate.base_interval: 0s must be greater than 0s")},
		{"failure-rate-base-tiny", v3, "dns_failure_refresh_rate: {base_interval: 0.000001s}\n", nil},
		{"failure-rate-max-below-base", v2, "dns_failure_refresh_rate: {base_interval: 2s, max_interval: 1s}\n", one("dns_failure_refresh_rate.max_interval: 1s is below base_interval 2s")},
		{"failure-rate-max-equals-base", v3, "dns_failure_refresh_rate: {base_interval: 2s, max_interval: 2s}\n", nil},
		{"lookup-family-v2", v2, "dns_lookup_family: 3\n", one("dns_lookup_family: 3 is not a lookup family (AUTO, V4_ONLY, V6_ONLY)")},
		{"lookup-family-v3", v3, "dns_lookup_family: 5\n", one("dns_lookup_family: 5 is not a lookup family (AUTO, V4_ONLY, V6_ONLY, V4_PREFERRED, ALL)")},
		{"cleanup-interval", v2, "cleanup_interval: 0s\n", one("cleanup_interval: 0s must be greater than 0s")},
		{"two-health-checks", v3, "health_checks:\n" + strings.Repeat("- {timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}\n", 2), one("health_checks: 2 health checks, only one is supported")},
		{"ten-health-checks", v2, "health_checks:\n" + strings.Repeat("- {timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}\n", 10), one("health_checks: 10 health checks, only one is supported")},
		{"socket-match-name", v2, "transport_socket_matches: [{transport_socket: {name: tls}}]\n", one("transport_socket_matches[0].name: must not be empty")},
		{"socket-name", v3, "transport_socket: {}\n", one("transport_socket.name: must not be empty")},
		{"socket-name-in-match", v3, "transport_socket_matches: [{name: m, transport_socket: {name: ''}}]\n", one("transport_socket_matches[0].transport_socket.name: must not be empty")},
		{"socket-unknown", v3, "transport_socket: {name: x}\n", one(`transport_socket.name: "x" is not a known transport socket; known: raw_buffer, tls`)},
		{"filter-name", v2, "filters: [{}]\n", one("filters[0].name: must not be empty")},
		{"ring-minimum", v3, "lb_policy: ring_hash\nring_hash_lb_config: {minimum_ring_size: 8388609}\n", one("ring_hash_lb_config.minimum_ring_size: 8388609 exceeds 8388608")},
		{"ring-maximum", v2, "lb_policy: ring_hash\nring_hash_lb_config: {maximum_ring_size: 8388609}\n", one("ring_hash_lb_config.maximum_ring_size: 8388609 exceeds 8388608")},
		{"ring-minimum-above-maximum", v2, "lb_policy: ring_hash\nring_hash_lb_config: {minimum_ring_size: 20, maximum_ring_size: 10}\n", one("ring_hash_lb_config: minimum_ring_size 20 exceeds maximum_ring_size 10")},
		{"ring-maximum-below-default", v3, "lb_policy: ring_hash\nring_hash_lb_config: {maximum_ring_size: 1023}\n", one("ring_hash_lb_config: minimum_ring_size 1024 exceeds maximum_ring_size 1023")},
		{"ring-hash-function", v3, "lb_policy: ring_hash\nring_hash_lb_config: {hash_function: 2}\n", one("ring_hash_lb_config.hash_function: 2 is not a hash function (XX_HASH, MURMUR_HASH_2)")},
		{"choice-count", v2, "lb_policy: least_request\nleast_request_lb_config: {choice_count: 1}\n", one("least_request_lb_config.choice_count: 1 is below 2")},
		{"maglev-not-prime", v3, "lb_policy: maglev\nmaglev_lb_config: {table_size: 65536}\n", one("maglev_lb_config.table_size: 65536 is not a prime number")},
		{"maglev-too-large", v3, "lb_policy: maglev\nmaglev_lb_config: {table_size: 5000012}\n", one("maglev_lb_config.table_size: 5000012 exceeds 5000011")},
		{"two-lb-configs", v2, "original_dst_lb_config: {}\nring_hash_lb_config: {}\n", one("ring_hash_lb_config and original_dst_lb_config cannot both be set")},
		{"two-lb-configs-v3", v3, "round_robin_lb_config: {}\nmaglev_lb_config: {}\n", one("maglev_lb_config and round_robin_lb_config cannot both be set")},
		{"panic-threshold", v3, "common_lb_config: {healthy_panic_threshold: {value: 100.5}}\n", one("common_lb_config.healthy_panic_threshold: 100.5 is not a percentage between 0 and 100")},
		{"panic-threshold-negative", v2, "common_lb_config: {healthy_panic_threshold: {value: -1}}\n", one("common_lb_config.healthy_panic_threshold: -1 is not a percentage between 0 and 100")},
		{"routing-enabled", v2, "common_lb_config: {zone_aware_lb_config: {routing_enabled: {value: 101}}}\n", one("common_lb_config.zone_aware_lb_config.routing_enabled: 101 is not a percentage between 0 and 100")},
		{"routing-enabled-nan", v3, "common_lb_config: {zone_aware_lb_config: {routing_enabled: {value: .nan}}}\n", one("common_lb_config.zone_aware_lb_config.routing_enabled: NaN is not a percentage between 0 and 100")},
		{"zone-aware-and-locality", v2, "common_lb_config: {zone_aware_lb_config: {}, locality_weighted_lb_config: {}}\n", one("common_lb_config.zone_aware_lb_config: cannot be combined with locality_weighted_lb_config")},
		{"hash-balance", v3, "common_lb_config: {consistent_hashing_lb_config: {hash_balance_factor: 99}}\n", one("common_lb_config.consistent_hashing_lb_config.hash_balance_factor: 99 is below 100")},
		{"subset-fallback", v2, "lb_subset_config: {fallback_policy: 3}\n", one("lb_subset_config.fallback_policy: 3 is not a fallback policy (NO_FALLBACK, ANY_ENDPOINT, DEFAULT_SUBSET)")},
		{"selector-fallback", v3, "lb_subset_config: {subset_selectors: [{keys: [a], fallback_policy: 5}]}\n", one("lb_subset_config.subset_selectors[0].fallback_policy: 5 is not a fallback policy (NOT_DEFINED, NO_FALLBACK, ANY_ENDPOINT, DEFAULT_SUBSET, KEYS_SUBSET)")},
		{"watermark-timeout", v3, "per_connection_buffer_high_watermark_timeout: -1s\n", one("per_connection_buffer_high_watermark_timeout: -1s must not be negative")},
		{"dns-jitter", v3, "dns_jitter: -1s\n", one("dns_jitter: -1s must not be negative")},
		{"preconnect-low", v3, "preconnect_policy: {per_upstream_preconnect_ratio: 0.5}\n", one("preconnect_policy.per_upstream_preconnect_ratio: 0.5 is not between 1 and 3")},
		{"preconnect-high", v3, "preconnect_policy: {predictive_preconnect_ratio: 3.5}\n", one("preconnect_policy.predictive_preconnect_ratio: 3.5 is not between 1 and 3")},
		{"strict-dns", v3, "type: STRICT_DNS\n" + ends, nil},
		{"bind-nowhere", v2, "upstream_bind_config: {source_address: {address: '', port_value: 0}}\n", nil},
		{"bind-nowhere-v3", v3, "upstream_bind_config: {source_address: {}}\n", nil},
		{"bind-port-alone", v2, "upstream_bind_config: {source_address: {port_value: 7}}\n", one("upstream_bind_config.source_address.address: must not be empty")},
		{"bind-nowhere-twice", v3, "upstream_bind_config: {additional_source_addresses: [{port_value: 0}]}\n", one("upstream_bind_config.additional_source_addresses[0].address: must not be empty")},
	})
}

func TestReferencedMessageRules(t *testing.T) {
	check := func(fields string) string {
		return "health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, " + fields + "}]\n"
	}
	tls := func(fields string) string {
		return "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, " + fields + "}}\n"
	}
	eds := func(fields string) string {
		return "type: EDS\neds_cluster_config: {eds_config: {" + fields + "}}\n"
	}
	assignment := func(fields string) string { return "load_assignment: {cluster_name: c, " + fields + "}\n" }
	long, longSecret := strings.Repeat("x", 16385), strings.Repeat("x", 1025)
	runRules(t, []ruleTest{
		{"address-none", v2, "hosts: [{}]\n", one("hosts[0]: needs one of socket_address, pipe")},
		{"address-none-v3", v3, "dns_resolvers: [{}]\n", one("dns_resolvers[0]: needs one of socket_address, pipe, envoy_internal_address")},
		{"address-empty", v2, "hosts: [{socket_address: {address: '', port_value: 1}}]\n", one("hosts[0].socket_address.address: must not be empty")},
		{"port-absent", v2, "hosts: [{socket_address: {address: 1.2.3.4}}]\n", one("hosts[0].socket_address: needs one of port_value, named_port")},
		{"port-too-large", v2, "hosts: [{socket_address: {address: 1.2.3.4, port_value: 65536}}]\n", one("hosts[0].socket_address.port_value: 65536 exceeds 65535")},
		{"protocol", v2, "hosts: [{socket_address: {protocol: 2, address: 1.2.3.4, port_value: 1}}]\n", one("hosts[0].socket_address.protocol: 2 is not one of TCP, UDP")},
		{"pipe-path", v2, "hosts: [{pipe: {}}]\n", one("hosts[0].pipe.path: must not be empty")},
		{"pipe-path-longest", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /" + long[:106] + "}}}}]}]"), nil},
		{"pipe-path-too-long", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /" + long[:107] + "}}}}]}]"), one("load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.pipe.path: 108 bytes exceeds 107")},
		{"pipe-path-of-health-checks", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}, health_check_config: {address: {pipe: {path: /" + long[:107] + "}}}}}]}]"), one("load_assignment.endpoints[0].lb_endpoints[0].endpoint.health_check_config.address.pipe.path: 108 bytes exceeds 107")},
		{"pipe-mode", v2, "hosts: [{pipe: {path: /x, mode: 512}}]\n", one("hosts[0].pipe.mode: 512 exceeds 511")},
		{"pipe-mode-octal", v2, "hosts: [{pipe: {path: /x, mode: 0777}}]\n", nil},
		{"assignment-name", v3, "load_assignment: {}\n", one("load_assignment.cluster_name: must not be empty")},
		{"locality-weight", v2, assignment("endpoints: [{load_balancing_weight: 0}]"), one("load_assignment.endpoints[0].load_balancing_weight: 0 is below 1")},
		{"host-weight", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}, load_balancing_weight: 0}]}]"), one("load_assignment.endpoints[0].lb_endpoints[0].load_balancing_weight: 0 is below 1")},
		{"priority", v3, assignment("endpoints: [{priority: 129}]"), one("load_assignment.endpoints[0].priority: 129 exceeds 128")},
		{"check-port", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 1.2.3.4, port_value: 1}}, health_check_config: {port_value: 65536}}}]}]"), one("load_assignment.endpoints[0].lb_endpoints[0].endpoint.health_check_config.port_value: 65536 exceeds 65535")},
		{"check-port-of-pipe", v3, assignment("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}, health_check_config: {port_value: 80}}}]}]"), one("load_assignment.endpoints[0].lb_endpoints[0].endpoint.health_check_config.port_value: 80 needs a socket address")},
		{"overprovisioning", v2, assignment("policy: {overprovisioning_factor: 0}"), one("load_assignment.policy.overprovisioning_factor: 0 must be greater than 0")},
		{"stale-after", v3, assignment("policy: {endpoint_stale_after: 0s}"), one("load_assignment.policy.endpoint_stale_after: 0s must be greater than 0s")},
		{"drop-category", v3, assignment("policy: {drop_overloads: [{drop_percentage: {numerator: 1}}]}"), one("load_assignment.policy.drop_overloads[0].category: must not be empty")},
		{"drop-denominator", v3, assignment("policy: {drop_overloads: [{category: x, drop_percentage: {denominator: 3}}]}"), one("load_assignment.policy.drop_overloads[0].drop_percentage.denominator: 3 is not one of HUNDRED, TEN_THOUSAND, MILLION")},
		{"drop-two", v3, assignment("policy: {drop_overloads: [{category: x}, {category: y}]}"), one("load_assignment.policy.drop_overloads: 2 entries exceeds 1")},
		{"drop-more-than-all", v3, assignment("policy: {drop_overloads: [{category: x, drop_percentage: {numerator: 120}}]}"), one("load_assignment.policy.drop_overloads[0].drop_percentage: 120% exceeds 100%")},
		{"eds-kind", v2, eds(""), one("eds_cluster_config.eds_config: needs one of path, api_config_source, ads, self")},
		{"eds-api-type", v3, eds("api_config_source: {api_type: 17}"), one("eds_cluster_config.eds_config.api_config_source.api_type: 17 is not one of DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE, REST, GRPC, DELTA_GRPC, AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC")},
		{"eds-version", v3, eds("ads: {}, resource_api_version: 9"), one("eds_cluster_config.eds_config.resource_api_version: 9 is not one of AUTO, V2, V3")},
		{"eds-request-timeout", v3, eds("api_config_source: {request_timeout: 0s}"), one("eds_cluster_config.eds_config.api_config_source.request_timeout: 0s must be greater than 0s")},
		{"eds-grpc-target", v3, eds("api_config_source: {grpc_services: [{}]}"), one("eds_cluster_config.eds_config.api_config_source.grpc_services[0]: needs one of envoy_grpc, google_grpc")},
		{"eds-grpc-cluster", v3, eds("api_config_source: {grpc_services: [{envoy_grpc: {}}]}"), one("eds_cluster_config.eds_config.api_config_source.grpc_services[0].envoy_grpc.cluster_name: must not be empty")},
		{"eds-fill-rate", v3, eds("api_config_source: {rate_limit_settings: {fill_rate: 0}}"), one("eds_cluster_config.eds_config.api_config_source.rate_limit_settings.fill_rate: 0 must be greater than 0")},
		{"check-timeout-absent", v3, "health_checks: [{interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}]\n", one("health_checks[0].timeout: must be set")},
		{"check-interval-zero", v2, "health_checks: [{timeout: 1s, interval: 0s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}]\n", one("health_checks[0].interval: 0s must be greater than 0s")},
		{"check-thresholds-absent", v3, "health_checks: [{timeout: 1s, interval: 1s, tcp_health_check: {}}]\n", []string{"health_checks[0].unhealthy_threshold: must be set", "health_checks[0].healthy_threshold: must be set"}},
		{"check-thresholds-zero", v2, "health_checks: [{timeout: 1s, interval: 1s, tcp_health_check: {}, healthy_threshold: 0, unhealthy_threshold: 0}]\n", nil},
		{"no-traffic-interval", v2, check("tcp_health_check: {}, no_traffic_interval: 0s"), one("health_checks[0].no_traffic_interval: 0s must be greater than 0s")},
		{"no-traffic-healthy-interval", v3, check("tcp_health_check: {}, no_traffic_healthy_interval: 0s"), one("health_checks[0].no_traffic_healthy_interval: 0s must be greater than 0s")},
		{"unhealthy-interval", v3, check("tcp_health_check: {}, unhealthy_interval: 0s"), one("health_checks[0].unhealthy_interval: 0s must be greater than 0s")},
		{"unhealthy-edge-interval", v3, check("tcp_health_check: {}, unhealthy_edge_interval: 0s"), one("health_checks[0].unhealthy_edge_interval: 0s must be greater than 0s")},
		{"healthy-edge-interval", v2, check("tcp_health_check: {}, healthy_edge_interval: 0s"), one("health_checks[0].healthy_edge_interval: 0s must be greater than 0s")},
		{"health-checker-none", v2, check("alt_port: 1"), one("health_checks[0]: needs one of http_health_check, tcp_health_check, grpc_health_check, custom_health_check")},
		{"http-path", v2, check("http_health_check: {path: ''}"), one("health_checks[0].http_health_check.path: must not be empty")},
		{"http-headers-to-add", v3, check("http_health_check: {path: /, request_headers_to_add: [" + strings.Repeat("{header: {key: x}},", 1001) + "]}"), one("health_checks[0].http_health_check.request_headers_to_add: 1001 entries exceeds 1000")},
		{"http-codec", v3, check("http_health_check: {path: /, codec_client_type: 3}"), one("health_checks[0].http_health_check.codec_client_type: 3 is not one of HTTP1, HTTP2, HTTP3")},
		{"http-method", v3, check("http_health_check: {path: /, method: CONNECT}"), one("health_checks[0].http_health_check.method: CONNECT is not one of METHOD_UNSPECIFIED, GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH")},
		{"status-order", v2, check("http_health_check: {path: /, expected_statuses: [{start: 300, end: 300}]}"), one("health_checks[0].http_health_check.expected_statuses[0]: start 300 must be less than end 300")},
		{"status-start", v3, check("http_health_check: {path: /, expected_statuses: [{start: 99, end: 300}]}"), one("health_checks[0].http_health_check.expected_statuses[0].start: 99 is below 100")},
		{"status-end", v3, check("http_health_check: {path: /, retriable_statuses: [{start: 200, end: 601}]}"), one("health_checks[0].http_health_check.retriable_statuses[0].end: 601 exceeds 600")},
		{"payload-none", v3, check("tcp_health_check: {send: {}}"), one("health_checks[0].tcp_health_check.send: needs one of text, binary")},
		{"payload-empty", v2, check("tcp_health_check: {send: {text: ''}}"), one("health_checks[0].tcp_health_check.send.text: must not be empty")},
		{"payload-odd", v3, check("tcp_health_check: {receive: [{text: abc}]}"), one(`health_checks[0].tcp_health_check.receive[0].text: "abc" is not hexadecimal`)},
		{"payload-http-v2", v2, check("http_health_check: {path: /, receive: {text: zz}}"), one(`health_checks[0].http_health_check.receive.text: "zz" is not hexadecimal`)},
		{"payload-http-v3", v3, check("http_health_check: {path: /, receive: [{text: zz}]}"), one(`health_checks[0].http_health_check.receive[0].text: "zz" is not hexadecimal`)},
		{"custom-check-name", v2, check("custom_health_check: {}"), one("health_checks[0].custom_health_check.name: must not be empty")},
		{"custom-check-unknown", v2, check("custom_health_check: {name: x}"), one(`health_checks[0].custom_health_check.name: "x" is not a known health checker; known: known.checker`)},
		{"threshold-priority", v2, "circuit_breakers: {thresholds: [{priority: 2}]}\n", one("circuit_breakers.thresholds[0].priority: 2 is not one of DEFAULT, HIGH")},
		{"budget-percent", v2, "circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 101}}}]}\n", one("circuit_breakers.thresholds[0].retry_budget.budget_percent: 101 is not a percentage between 0 and 100")},
		{"per-host-thresholds", v3, "circuit_breakers: {per_host_thresholds: [{max_connections: 1}, {max_retries: 1}]}\n", one("circuit_breakers.per_host_thresholds[1]: only priority and max_connections may be set")},
		{"outlier-interval", v2, "outlier_detection: {interval: 0s}\n", one("outlier_detection.interval: 0s must be greater than 0s")},
		{"outlier-base", v3, "outlier_detection: {base_ejection_time: 0s}\n", one("outlier_detection.base_ejection_time: 0s must be greater than 0s")},
		{"outlier-max-zero", v3, "outlier_detection: {max_ejection_time: 0s}\n", []string{"outlier_detection.max_ejection_time: 0s must be greater than 0s", "outlier_detection.max_ejection_time: 0s is below base_ejection_time 30s"}},
		{"outlier-max-below-base", v3, "outlier_detection: {base_ejection_time: 20s, max_ejection_time: 10s}\n", one("outlier_detection.max_ejection_time: 10s is below base_ejection_time 20s")},
		{"outlier-percent", v2, "outlier_detection: {max_ejection_percent: 101}\n", one("outlier_detection.max_ejection_percent: 101 exceeds 100")},
		{"outlier-threshold", v2, "outlier_detection: {failure_percentage_threshold: 101}\n", one("outlier_detection.failure_percentage_threshold: 101 exceeds 100")},
		{"bind-source-v2", v2, "upstream_bind_config: {}\n", one("upstream_bind_config.source_address: must be set")},
		{"bind-source-v3", v3, "upstream_bind_config: {}\n", nil},
		{"socket-option", v3, "upstream_bind_config: {socket_options: [{state: 3}]}\n", []string{"upstream_bind_config.socket_options[0]: needs one of int_value, buf_value", "upstream_bind_config.socket_options[0].state: 3 is not one of STATE_PREBIND, STATE_BOUND, STATE_LISTENING"}},
		{"tls-sni", v3, tls("sni: " + strings.Repeat("s", 256)), one(`transport_socket.typed_config.sni: "` + strings.Repeat("s", 80) + `"… is longer than 255 bytes`)},
		{"tls-context-sni", v2, "tls_context: {sni: " + strings.Repeat("s", 256) + "}\n", one(`tls_context.sni: "` + strings.Repeat("s", 80) + `"… is longer than 255 bytes`)},
		{"tls-version", v3, tls("common_tls_context: {tls_params: {tls_minimum_protocol_version: 5}}"), one("transport_socket.typed_config.common_tls_context.tls_params.tls_minimum_protocol_version: 5 is not one of TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3")},
		{"tls-key-provider", v3, tls("common_tls_context: {tls_certificates: [{private_key_provider: {}}]}"), one("transport_socket.typed_config.common_tls_context.tls_certificates[0].private_key_provider.provider_name: must not be empty")},
		{"tls-spki", v3, tls("common_tls_context: {validation_context: {verify_certificate_spki: [abc]}}"), one(`transport_socket.typed_config.common_tls_context.validation_context.verify_certificate_spki[0]: "abc" is shorter than 44 characters`)},
		{"tls-hash", v2, "tls_context: {common_tls_context: {validation_context: {verify_certificate_hash: [abc]}}}\n", one(`tls_context.common_tls_context.validation_context.verify_certificate_hash[0]: "abc" is shorter than 64 bytes`)},
		{"tls-combined", v2, "tls_context: {common_tls_context: {combined_validation_context: {}}}\n", []string{"tls_context.common_tls_context.combined_validation_context.default_validation_context: must be set", "tls_context.common_tls_context.combined_validation_context.validation_context_sds_secret_config: must be set"}},
		{"tls-data-kind", v3, tls("common_tls_context: {tls_certificates: [{certificate_chain: {}}]}"), one("transport_socket.typed_config.common_tls_context.tls_certificates[0].certificate_chain: needs one of filename, inline_bytes, inline_string, environment_variable")},
		{"tls-data-file", v3, tls("common_tls_context: {tls_certificates: [{certificate_chain: {filename: ''}}]}"), one("transport_socket.typed_config.common_tls_context.tls_certificates[0].certificate_chain.filename: must not be empty")},
		{"tls-secret-name-chain", v3, tls("common_tls_context: {tls_certificate_sds_secret_configs: [{name: " + longSecret + "}]}"), one("transport_socket.typed_config.common_tls_context.tls_certificate_sds_secret_configs[0].name: 1025 bytes exceeds 1024")},
		{"tls-secret-name-context", v3, tls("common_tls_context: {validation_context_sds_secret_config: {name: " + longSecret + "}}"), one("transport_socket.typed_config.common_tls_context.validation_context_sds_secret_config.name: 1025 bytes exceeds 1024")},
		{"tls-names-combined", v3, tls("common_tls_context: {combined_validation_context: {default_validation_context: {match_typed_subject_alt_names: [{san_type: DNS, matcher: {safe_regex: {regex: '('}}}]}, validation_context_sds_secret_config: {name: s}}}"), one(`transport_socket.typed_config.common_tls_context.combined_validation_context.default_validation_context.match_typed_subject_alt_names[0].matcher.safe_regex.regex: "(" is not a regular expression`)},
		{"tls-secret-name-combined", v3, tls("common_tls_context: {combined_validation_context: {default_validation_context: {}, validation_context_sds_secret_config: {name: " + longSecret + "}}}"), one("transport_socket.typed_config.common_tls_context.combined_validation_context.validation_context_sds_secret_config.name: 1025 bytes exceeds 1024")},
		{"tls-other-message", v3, "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.config.core.v3.Pipe, path: /x}}\n", one(`transport_socket.typed_config: "envoy.config.core.v3.Pipe" is not an UpstreamTlsContext`)},
		{"max-headers", v2, "common_http_protocol_options: {max_headers_count: 0}\n", one("common_http_protocol_options.max_headers_count: 0 is below 1")},
		{"http2-streams", v2, "http2_protocol_options: {max_concurrent_streams: 0}\n", one("http2_protocol_options.max_concurrent_streams: 0 is below 1")},
		{"http2-streams-high", v3, "http2_protocol_options: {max_concurrent_streams: 2147483648}\n", one("http2_protocol_options.max_concurrent_streams: 2147483648 exceeds 2147483647")},
		{"http2-windows", v3, "http2_protocol_options: {initial_stream_window_size: 65534, initial_connection_window_size: 65534}\n", []string{"http2_protocol_options.initial_stream_window_size: 65534 is below 65535", "http2_protocol_options.initial_connection_window_size: 65534 is below 65535"}},
		{"http2-frames", v2, "http2_protocol_options: {max_outbound_frames: 0, max_outbound_control_frames: 0, max_inbound_window_update_frames_per_data_frame_sent: 0}\n", []string{"http2_protocol_options.max_outbound_frames: 0 is below 1", "http2_protocol_options.max_outbound_control_frames: 0 is below 1", "http2_protocol_options.max_inbound_window_update_frames_per_data_frame_sent: 0 is below 1"}},
		{"http2-setting", v3, "http2_protocol_options: {custom_settings_parameters: [{identifier: 65536}]}\n", []string{"http2_protocol_options.custom_settings_parameters[0].identifier: 65536 exceeds 65535", "http2_protocol_options.custom_settings_parameters[0].value: must be set"}},
		{"http1-key-format", v3, "http_protocol_options: {header_key_format: {}}\n", one("http_protocol_options.header_key_format: needs one of proper_case_words, stateful_formatter")},
		{"header-name-empty", v2, check("http_health_check: {path: /, request_headers_to_add: [{header: {key: ''}}]}"), one("health_checks[0].http_health_check.request_headers_to_add[0].header.key: must not be empty")},
		{"header-value-hidden", v3, check(`http_health_check: {path: /, request_headers_to_add: [{header: {key: a, value: "hunter2\n"}}]}`), one(`health_checks[0].http_health_check.request_headers_to_add[0].header.value: [redacted] is not a legal header value`)},
		{"header-name-illegal", v3, check(`http_health_check: {path: /, request_headers_to_add: [{header: {key: "a\nb"}}]}`), one(`health_checks[0].http_health_check.request_headers_to_add[0].header.key: "a\nb" is not a legal header name`)},
		{"header-value-long", v3, check("http_health_check: {path: /, request_headers_to_add: [{header: {key: a, value: " + long + "}}]}"), one(`health_checks[0].http_health_check.request_headers_to_add[0].header.value: [redacted] is longer than 16384 bytes`)},
		{"matcher-kind", v3, check("http_health_check: {path: /, service_name_matcher: {}}"), one("health_checks[0].http_health_check.service_name_matcher: needs one of exact, prefix, suffix, safe_regex, contains, custom")},
		{"matcher-prefix", v2, check("http_health_check: {path: /, service_name_matcher: {prefix: ''}}"), one("health_checks[0].http_health_check.service_name_matcher.prefix: must not be empty")},
		{"matcher-regex-long", v2, check("http_health_check: {path: /, service_name_matcher: {regex: " + strings.Repeat("r", 1025) + "}}"), one(`health_checks[0].http_health_check.service_name_matcher.regex: "` + strings.Repeat("r", 80) + `"… is longer than 1024 bytes`)},
		{"matcher-safe-regex-long", v3, check("http_health_check: {path: /, service_name_matcher: {safe_regex: {regex: " + strings.Repeat("r", 1025) + "}}}"), one(`health_checks[0].http_health_check.service_name_matcher.safe_regex.regex: "` + strings.Repeat("r", 80) + `"… is longer than 1024 bytes`)},
		{"matcher-regex-large", v2, check("http_health_check: {path: /, service_name_matcher: {regex: '" + strings.Repeat("r{1000}", 11) + "'}}"), one(`health_checks[0].http_health_check.service_name_matcher.regex: "` + strings.Repeat("r{1000}", 11) + `" compiles to more than 10000 instructions`)},
		{"matcher-regex-bad", v2, check("http_health_check: {path: /, service_name_matcher: {regex: '('}}"), one(`health_checks[0].http_health_check.service_name_matcher.regex: "(" is not a regular expression`)},
		{"matcher-safe-regex-bad", v3, check("http_health_check: {path: /, service_name_matcher: {safe_regex: {regex: '('}}}"), one(`health_checks[0].http_health_check.service_name_matcher.safe_regex.regex: "(" is not a regular expression`)},
	})
}

func TestEnforcingPercentsAreAtMostOneHundred(t *testing.T) {
	for _, field := range []string{
		"enforcing_consecutive_5xx", "enforcing_success_rate", "enforcing_consecutive_gateway_failure",
		"enforcing_consecutive_local_origin_failure", "enforcing_local_origin_success_rate",
		"enforcing_failure_percentage", "enforcing_failure_percentage_local_origin",
	} {
		runRules(t, []ruleTest{
			{field + "-v2", v2, "outlier_detection: {" + field + ": 101}\n", one("outlier_detection." + field + ": 101 exceeds 100")},
			{field + "-v3", v3, "outlier_detection: {" + field + ": 101}\n", one("outlier_detection." + field + ": 101 exceeds 100")},
		})
	}
}

func TestCrossFieldRules(t *testing.T) {
	const (
		host   = "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}}]}]}\n"
		addr   = "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address"
		ads    = "eds_cluster_config: {eds_config: {ads: {}}}\n"
		h2     = "http2_protocol_options: {}\n"
		checks = "health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, grpc_health_check: {}}]\n"
	)
	selector := func(fields string) string { return "lb_subset_config: {subset_selectors: [{" + fields + "}]}\n" }
	const keys = "lb_subset_config.subset_selectors[0].fallback_keys_subset: "
	runRules(t, []ruleTest{
		{"ring-hash-config", v2, "ring_hash_lb_config: {}\n", one("ring_hash_lb_config: needs lb_policy RING_HASH, got ROUND_ROBIN")},
		{"least-request-config", v2, "lb_policy: RANDOM\nleast_request_lb_config: {}\n", one("least_request_lb_config: needs lb_policy LEAST_REQUEST, got RANDOM")},
		{"maglev-config", v3, "lb_policy: RANDOM\nmaglev_lb_config: {}\n", one("maglev_lb_config: needs lb_policy MAGLEV, got RANDOM")},
		{"round-robin-config", v3, "lb_policy: RANDOM\nround_robin_lb_config: {}\n", one("round_robin_lb_config: needs lb_policy ROUND_ROBIN, got RANDOM")},
		{"original-dst-config-elsewhere", v2, "original_dst_lb_config: {use_http_header: true}\n", nil},
		{"eds-without-config", v2, "type: EDS\n", one("eds_cluster_config: must be set for type EDS")},
		{"eds-without-source", v3, "type: EDS\neds_cluster_config: {}\n", one("eds_cluster_config.eds_config: must be set for type EDS")},
		{"eds-config-elsewhere", v3, ads, one("eds_cluster_config: only allowed for type EDS, got STATIC")},
		{"original-dst-policy", v2, "type: ORIGINAL_DST\n", one("lb_policy: type ORIGINAL_DST needs CLUSTER_PROVIDED or ORIGINAL_DST_LB, got ROUND_ROBIN")},
		{"original-dst-lb", v2, "type: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\n", nil},
		{"original-dst-provided", v3, "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n", nil},
		{"original-dst-lb-elsewhere", v2, "type: STRICT_DNS\nlb_policy: ORIGINAL_DST_LB\n", one("lb_policy: ORIGINAL_DST_LB needs type ORIGINAL_DST, got STRICT_DNS")},
		{"original-dst-hosts", v2, "type: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\nhosts: [{pipe: {path: /x}}]\n", one("hosts: type ORIGINAL_DST finds its hosts itself and takes none")},
		{"original-dst-assignment", v3, "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + host, one("load_assignment: type ORIGINAL_DST finds its hosts itself and takes none")},
		{"provided-elsewhere", v3, "lb_policy: CLUSTER_PROVIDED\ntype: STRICT_DNS\n" + host, one("lb_policy: CLUSTER_PROVIDED, but type STRICT_DNS brings no load balancer")},
		{"custom-brings-own", v3, "cluster_type: {name: own.balancer}\n", one(`lb_policy: cluster type "own.balancer" brings its own load balancer, use CLUSTER_PROVIDED`)},
		{"custom-brings-none", v3, "cluster_type: {name: no.balancer}\nlb_policy: CLUSTER_PROVIDED\n", one(`lb_policy: CLUSTER_PROVIDED, but type "no.balancer" brings no load balancer`)},
		{"custom-own-provided", v2, "cluster_type: {name: own.balancer}\nlb_policy: CLUSTER_PROVIDED\n", nil},
		{"provided-with-subsets", v3, "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\nlb_subset_config: {}\n", one("lb_subset_config: cannot be used with lb_policy CLUSTER_PROVIDED")},
		{"original-dst-lb-with-subsets", v2, "type: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\nlb_subset_config: {}\n", one("lb_subset_config: cannot be used with lb_policy ORIGINAL_DST_LB")},
		{"header-name", v3, "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {http_header_name: x}\n", one("original_dst_lb_config.http_header_name: needs use_http_header")},
		{"locality-weight-aware", v2, "lb_subset_config: {locality_weight_aware: true}\n", one("lb_subset_config.locality_weight_aware: needs common_lb_config.locality_weighted_lb_config")},
		{"scale-locality-weight-alone", v3, "lb_subset_config: {scale_locality_weight: true}\n", nil},
		{"fallback-keys-alone", v2, selector("keys: [a, b], fallback_keys_subset: [a]"), one(keys + "only allowed with fallback_policy KEYS_SUBSET")},
		{"fallback-keys-empty", v3, selector("keys: [a, b], fallback_policy: KEYS_SUBSET"), one(keys + "must not be empty with fallback_policy KEYS_SUBSET")},
		{"fallback-keys-foreign", v2, selector("keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c]"), one(keys + `"c" is not one of the selector's keys`)},
		{"fallback-keys-equal", v3, selector("keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [b, a, a]"), one(keys + "must be smaller than keys")},
		{"fallback-keys-of-each-selector", v3, selector("keys: [a, b], fallback_policy: KEYS_SUBSET}, {keys: [a, b], fallback_keys_subset: [a]}, {keys: [c, d], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c, d]"), []string{
			keys + "must not be empty with fallback_policy KEYS_SUBSET",
			strings.Replace(keys, "[0]", "[1]", 1) + "only allowed with fallback_policy KEYS_SUBSET",
			strings.Replace(keys, "[0]", "[2]", 1) + "must be smaller than keys",
		}},
		{"logical-dns-none", v3, "type: LOGICAL_DNS\n", one("load_assignment: type LOGICAL_DNS takes exactly one endpoint, got 0")},
		{"logical-dns-two-hosts", v2, "type: LOGICAL_DNS\nhosts: [{socket_address: {address: a, port_value: 1}}, {socket_address: {address: b, port_value: 1}}]\n", one("hosts: type LOGICAL_DNS takes exactly one endpoint, got 2")},
		{"named-port", v3, strings.Replace(host, "port_value: 80", "named_port: http", 1), []string{addr + ".socket_address.named_port: not supported for type STATIC; set port_value", addr + `.socket_address.address: "a.example" is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names`}},
		{"named-port-of-checks", v3, strings.Replace(host, "a.example, port_value: 80}}", "10.0.0.1, port_value: 80}}, health_check_config: {address: {socket_address: {address: 10.0.0.2, named_port: http}}}", 1), one(strings.TrimSuffix(addr, "address") + "health_check_config.address.socket_address.named_port: not supported; set port_value")},
		{"resolver-name", v2, "hosts: [{socket_address: {address: 10.0.0.1, port_value: 1, resolver_name: r}}]\n", one("hosts[0].socket_address.resolver_name: not supported for type STATIC")},
		{"dns-resolver-name", v2, "type: STRICT_DNS\nhosts: [{socket_address: {address: a, port_value: 1, resolver_name: r}}]\n", one("hosts[0].socket_address.resolver_name: not supported for type STRICT_DNS")},
		{"dns-pipe", v3, "type: LOGICAL_DNS\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n", one(addr + ": type LOGICAL_DNS needs a socket address")},
		{"dns-pipe-host", v2, "type: STRICT_DNS\nhosts: [{pipe: {path: /x}}]\n", one("hosts[0]: type STRICT_DNS needs a socket address")},
		{"static-name", v3, host, one(addr + `.socket_address.address: "a.example" is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names`)},
		{"static-name-host", v2, "hosts: [{socket_address: {address: a.example, port_value: 1}}]\n", one(`hosts[0].socket_address.address: "a.example" is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names`)},
		{"dns-resolver-address", v2, "dns_resolvers: [{socket_address: {address: 1.1.1.1, port_value: 53}}, {socket_address: {address: dns.example, port_value: 53}}]\n", one(`dns_resolvers[1]: "dns.example" is not an IP address`)},
		{"both-protocols", v2, h2 + "http_protocol_options: {}\n", one("http2_protocol_options: cannot be combined with http_protocol_options under USE_CONFIGURED_PROTOCOL")},
		{"both-protocols-downstream", v3, h2 + "http_protocol_options: {}\nprotocol_selection: USE_DOWNSTREAM_PROTOCOL\n", nil},
		{"both-option-maps", v2, "extension_protocol_options: {takes.options: {a: 1}}\ntyped_extension_protocol_options: {takes.options: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}\n", one("typed_extension_protocol_options: cannot be combined with extension_protocol_options")},
		{"options-unknown-filter", v2, "extension_protocol_options: {x: {}}\n", one(`extension_protocol_options["x"]: no such filter`)},
		{"options-for-filter-without", v3, "typed_extension_protocol_options: {takes.none: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}\n", one(`typed_extension_protocol_options["takes.none"]: filter takes no options`)},
		{"grpc-check-http1", v2, checks, one("health_checks[0].grpc_health_check: needs http2_protocol_options")},
		{"grpc-check-http2", v3, h2 + checks, nil},
		{"hostname-hashing", v3, "common_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true}}\n", one("common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing: needs type STRICT_DNS, got STATIC")},
		{"weights-sum", v3, "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [" + strings.Repeat("{load_balancing_weight: 4294967295, endpoint: {address: {pipe: {path: /x}}}},", 2) + "]}]}\n", one("load_assignment.endpoints[0].lb_endpoints: sum of weights exceeds 4294967295")},
		{"locality-weights-sum", v2, "load_assignment: {cluster_name: c, endpoints: [{load_balancing_weight: 4294967295}, {load_balancing_weight: 1}]}\n", one("load_assignment.endpoints[1].load_balancing_weight: sum of weights exceeds 4294967295")},
		{"no-endpoints", v2, "type: STATIC\n", nil},
		{"requests-twice", v3, "max_requests_per_connection: 1\ncommon_http_protocol_options: {max_requests_per_connection: 1}\n", one("max_requests_per_connection: set twice")},
		{"policy-empty", v3, "load_balancing_policy: {}\n", one("load_balancing_policy: no policy given")},
		{"policy-unknown", v3, "load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}}]}\n", one(`load_balancing_policy: none of "x" is known`)},
		{"policy-with-subsets", v3, "lb_subset_config: {}\nload_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}}]}\n", one("load_balancing_policy: cannot be combined with lb_subset_config")},
		{"single-host-two-keys", v3, "lb_subset_config: {subset_selectors: [{keys: [a, b], single_host_per_subset: true}]}\n", one("lb_subset_config.subset_selectors[0].single_host_per_subset: needs exactly one key, got 2")},
		{"single-host-one-key", v3, "lb_subset_config: {subset_selectors: [{keys: [a, a], single_host_per_subset: true}]}\n", nil},
		{"policy-missing", v3, "lb_policy: LOAD_BALANCING_POLICY_CONFIG\n", one("load_balancing_policy: must be set for lb_policy LOAD_BALANCING_POLICY_CONFIG")},
		{"named-endpoint-missing", v3, "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint_name: x}]}]}\n", one(`load_assignment.endpoints[0].lb_endpoints[0].endpoint_name: "x" is not one of named_endpoints`)},
	})
}

func TestIgnoredWithoutError(t *testing.T) {
	runRules(t, []ruleTest{
		{"dns-fields-elsewhere", v2, "dns_refresh_rate: 1s\nrespect_dns_ttl: true\nuse_tcp_for_dns_lookups: true\n", nil},
		{"cleanup-elsewhere", v3, "cleanup_interval: 1s\n", nil},
		{"default-subset-alone", v3, "lb_subset_config: {default_subset: {a: b}}\n", nil},
		{"selector-without-keys", v2, "lb_subset_config: {subset_selectors: [{keys: []}]}\n", nil},
		{"zone-aware-without-local", v2, "common_lb_config: {zone_aware_lb_config: {}}\n", nil},
		{"alt-stat-name-empty", v3, "alt_stat_name: ''\n", nil},
		{"ignore-new-hosts-without-checks", v3, "common_lb_config: {ignore_new_hosts_until_first_hc: true}\n", nil},
	})
	if p := mustParse(t, "name: c\nlb_subset_config: {subset_selectors: [{keys: []}]}\n"); p.Cluster.LB.Subset != nil {
		t.Errorf("Subset = %+v, want nil without a usable selector", p.Cluster.LB.Subset)
	}
}

func TestNamesMustBeUnique(t *testing.T) {
	d := newDecoder()
	var list []*decode.ParsedCluster
	for _, name := range []string{"a", "b", "a"} {
		p, err := d.ClusterText("f.yaml", fmt.Appendf(nil, "type: STATIC\nname: %s\n", name), v3)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	err := decode.CheckNames(list)
	want := `f.yaml:2:1: cluster "a": name: "a" is already used by another cluster`
	if err == nil || err.Error() != want {
		t.Errorf("CheckNames = %v, want %s", err, want)
	}
	if err := decode.CheckNames(list[:2]); err != nil {
		t.Errorf("CheckNames of different names = %v", err)
	}
}

func TestLocalClusterRules(t *testing.T) {
	good := mustParse(t, "name: a\nload_assignment: {cluster_name: a, endpoints: [{priority: 0, lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n")
	bad := mustParse(t, "name: b\nload_assignment: {cluster_name: b, endpoints: [{priority: 1, lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n")
	static := []*decode.ParsedCluster{good, bad}
	tests := []struct{ name, want string }{
		{"", ""},
		{"a", ""},
		{"b", `cluster "b": load_assignment.endpoints[0].priority: must be 0 in the local cluster`},
		{"c", `cluster_manager.local_cluster_name: "c" is not a static cluster`},
	}
	for _, tt := range tests {
		got := ""
		if err := decode.CheckLocalCluster(tt.name, static); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("CheckLocalCluster(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHostWeightAboveOneHundred(t *testing.T) {
	text := []byte("name: c\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{load_balancing_weight: 101, endpoint: {address: {pipe: {path: /x}}}}]}]}\n")
	const path = "load_assignment.endpoints[0].lb_endpoints[0].load_balancing_weight: 101 exceeds 100"
	p, err := newDecoder().ClusterText("", text, v3)
	if err != nil {
		t.Fatalf("a weight of 101 is refused: %v", err)
	}
	if w := p.Warnings(); len(w) != 1 || !strings.HasSuffix(w[0].Error(), path) {
		t.Errorf("Warnings = %v, want one about %s", w, path)
	}
	if got := p.Cluster.Assignment.Localities[0].Endpoints[0].Weight; got != 101 {
		t.Errorf("Weight = %d, want 101", got)
	}
	o := options()
	o.Strict = true
	_, err = decode.NewDecoder(o).ClusterText("", text, v3)
	if diff := cmp.Diff(one(path), faults(t, err)); diff != "" {
		t.Errorf("strict (-want +got)\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"long-name", "name: " + strings.Repeat("n", 61) + "\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n", "name: 61 bytes is longer than 60"},
		{"no-members", "name: c\ntype: STRICT_DNS\n", "load_assignment: type STRICT_DNS without endpoints"},
		{"eds-members", "name: c\ntype: EDS\neds_cluster_config: {eds_config: {ads: {}}}\nload_assignment: {cluster_name: c, endpoints: [{}]}\n", "load_assignment: type EDS ignores the endpoints given here"},
		{"match-names", "name: c\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\ntransport_socket_matches: [{name: m, transport_socket: {name: tls}}, {name: m, transport_socket: {name: tls}}]\n", `transport_socket_matches[1].name: "m" is used by another match, both count under one name`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := mustParse(t, tt.text).Warnings()
			if len(w) != 1 || w[0].Field+": "+w[0].Message != tt.want {
				t.Errorf("Warnings = %v, want %s", w, tt.want)
			}
		})
	}
}

func TestErrorKindsCanBeCounted(t *testing.T) {
	tests := []struct {
		name, text string
		kind       decode.Kind
	}{
		{"syntax", "name: [", decode.Malformed},
		{"wrong-type", "name: 5", decode.Malformed},
		{"extension", "name: c\ntransport_socket: {name: t, typed_config: [5]}", decode.Malformed},
		{"unknown-field", "nome: c", decode.UnknownField},
		{"field-rule", "name: ''", decode.BadValue},
		{"conflict", "name: c\ntype: EDS", decode.Conflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newDecoder().ClusterText("", []byte(tt.text), v3)
			var list *decode.Errors
			if !errors.As(err, &list) {
				t.Fatalf("error is %T", err)
			}
			var single *decode.Error
			if !errors.As(err, &single) || single.Kind != tt.kind {
				t.Errorf("errors.As finds %v, want kind %d", single, tt.kind)
			}
			if got := list.Count(tt.kind); got != 1 || len(list.List) != 1 {
				t.Errorf("Count = %d of %d, want 1 of 1: %v", got, len(list.List), err)
			}
		})
	}
}

func TestWarningsOfAssignments(t *testing.T) {
	const text = "cluster_name: c\nendpoints: [{lb_endpoints: [{%s, endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}, additional_addresses: [{address: {socket_address: {address: 10.0.0.2, port_value: 1}}}]}}]}]\n"
	for more, want := range map[string]int{"load_balancing_weight: 100": 0, "load_balancing_weight: 101": 1} {
		p, err := newDecoder().AssignmentText("", fmt.Appendf(nil, text, more), v3)
		if err != nil {
			t.Fatal(err)
		}
		if w := p.Warnings(); len(w) != want || want == 1 && !strings.Contains(w[0].Error(), "load_balancing_weight: 101") {
			t.Errorf("%q: warnings %v", more, w)
		}
	}
}
