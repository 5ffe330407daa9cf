package decode_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestEachFieldHasAnEffect leaves out each field of clusters in turn: where the rest is
// still valid, the compiled cluster must be another one. Extensions are not compared as
// bytes.
func TestEachFieldHasAnEffect(t *testing.T) {
	policy := func(message, fields string) string {
		return "load_balancing_policy: {policies: [{typed_extension_config: {name: p, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies." + message + ", " + fields + "}}}]}"
	}
	check := func(fields string) string {
		return "health_checks: [{timeout: 1s, interval: 2s, healthy_threshold: 2, unhealthy_threshold: 3, " + fields + "}]"
	}
	eds := func(fields string) string {
		return "type: EDS\neds_cluster_config: {eds_config: {" + fields + "}}"
	}
	tls := func(fields string) string {
		return "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, " + fields + "}}"
	}
	http := func(fields string) string {
		return "typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, " + fields + "}}"
	}
	// without has the fields that change nothing, as the value is the default or the
	// message alone has the effect.
	for _, tt := range []struct {
		name, text string
		without    []string
	}{
		{"round-robin", policy("round_robin.v3.RoundRobin", "slow_start_config: {slow_start_window: 4s, aggression: {default_value: 2, runtime_key: k}, min_weight_percent: {value: 20}}, locality_lb_config: {zone_aware_lb_config: {routing_enabled: {value: 3}, min_cluster_size: 4, fail_traffic_on_panic: true, force_local_zone: {min_size: 2}}}"), nil},
		{"random", policy("random.v3.Random", "locality_lb_config: {locality_weighted_lb_config: {}}"), nil},
		{"least-request", policy("least_request.v3.LeastRequest", "choice_count: 5, active_request_bias: {default_value: 2, runtime_key: k}, slow_start_config: {slow_start_window: 9s}, locality_lb_config: {locality_weighted_lb_config: {}}"), nil},
		{"ring-hash", policy("ring_hash.v3.RingHash", "minimum_ring_size: 9, maximum_ring_size: 10, hash_function: MURMUR_HASH_2, locality_weighted_lb_config: {}, consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 120}"), nil},
		{"ring-hash-deprecated", policy("ring_hash.v3.RingHash", "use_hostname_for_hashing: true, hash_balance_factor: 120"), nil},
		{"maglev", policy("maglev.v3.Maglev", "table_size: 11, locality_weighted_lb_config: {}, consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 120}"), nil},
		{"http-check", check("initial_jitter: 1s, interval_jitter: 2s, interval_jitter_percent: 3, alt_port: 80, reuse_connection: false, no_traffic_interval: 4s, no_traffic_healthy_interval: 5s, unhealthy_interval: 6s, unhealthy_edge_interval: 7s, healthy_edge_interval: 8s, always_log_health_check_failures: true, always_log_health_check_success: true, tls_options: {alpn_protocols: [h2, x]}, event_log_path: /e, event_logger: [{name: f, typed_config: {'@type': type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: /f}}]," +
			"http_health_check: {host: h, path: /, method: POST, send: {text: aa}, receive: [{text: bb}], response_buffer_size: 7, expected_statuses: [{start: 300, end: 301}, {start: 400, end: 402}], retriable_statuses: [{start: 500, end: 503}], request_headers_to_remove: [r], request_headers_to_add: [{header: {key: k, value: v}, append_action: OVERWRITE_IF_EXISTS_OR_ADD, keep_empty_value: true}], service_name_matcher: {prefix: p}}"), nil},
		{"grpc-check", "http2_protocol_options: {}\n" + check("grpc_health_check: {service_name: s, authority: a, initial_metadata: [{header: {key: k, value: v}}]}"), nil},
		{"tcp-check", check("tcp_health_check: {send: {text: aa}, receive: [{text: bb}, {binary: YWI=}]}"), nil},
		{"outlier", "outlier_detection: {interval: 1s, base_ejection_time: 2s, max_ejection_time: 3s, max_ejection_time_jitter: 4s, max_ejection_percent: 5, consecutive_5xx: 6, consecutive_gateway_failure: 7, consecutive_local_origin_failure: 8, enforcing_consecutive_5xx: 9, enforcing_consecutive_gateway_failure: 10, enforcing_consecutive_local_origin_failure: 11, enforcing_success_rate: 12, enforcing_local_origin_success_rate: 13, enforcing_failure_percentage: 14, enforcing_failure_percentage_local_origin: 15, success_rate_minimum_hosts: 16, success_rate_request_volume: 17, success_rate_stdev_factor: 18, failure_percentage_threshold: 19, failure_percentage_minimum_hosts: 20, failure_percentage_request_volume: 21, split_external_local_origin_errors: true, successful_active_health_check_uneject_host: false, always_eject_one_host: true}", nil},
		{"breakers", "circuit_breakers: {thresholds: [{max_connections: 1, max_pending_requests: 2, max_requests: 3, max_retries: 4, max_connection_pools: 5, track_remaining: true, retry_budget: {budget_percent: {value: 6}, min_retry_concurrency: 7}}, {priority: HIGH, max_retries: 8}], per_host_thresholds: [{max_connections: 9}, {priority: HIGH, max_connections: 10}]}", []string{"priority"}},
		{"eds-delta", eds("initial_fetch_timeout: 1s, api_config_source: {api_type: DELTA_GRPC, set_node_on_first_message_only: true, grpc_services: [{envoy_grpc: {cluster_name: x, authority: a, max_receive_message_length: 5, retry_policy: {retry_back_off: {base_interval: 1s, max_interval: 2s}}}, initial_metadata: [{key: k, value: v}]}], rate_limit_settings: {max_tokens: 6, fill_rate: 7}}"), nil},
		{"eds-uri", eds("api_config_source: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: 'dns:a:1', stat_prefix: s}, retry_policy: {retry_back_off: {base_interval: 1s, max_interval: 2s}}}]}"), nil},
		{"eds-file", eds("path_config_source: {path: /p, watched_directory: {path: /d}}"), nil},
		{"tls", tls("sni: s, allow_renegotiation: true, max_session_keys: 2, enforce_rsa_key_usage: false, common_tls_context: {alpn_protocols: [h2, x], tls_params: {tls_minimum_protocol_version: TLSv1_2, tls_maximum_protocol_version: TLSv1_3, cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256], ecdh_curves: [X25519], signature_algorithms: [rsa_pss_rsae_sha256]}, tls_certificates: [{certificate_chain: {filename: /c.pem}, private_key: {filename: /k.pem}, ocsp_staple: {inline_bytes: YWI=}, watched_directory: {path: /w}}], validation_context: {trusted_ca: {filename: /ca.pem}, crl: {inline_string: x}, only_verify_leaf_cert_crl: true, watched_directory: {path: /v}, verify_certificate_hash: [" + strings.Repeat("ab", 32) + "], verify_certificate_spki: [NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A=], allow_expired_certificate: true, trust_chain_verification: ACCEPT_UNTRUSTED, max_verify_depth: 3, match_typed_subject_alt_names: [{san_type: DNS, matcher: {suffix: a}}, {san_type: URI, matcher: {contains: b, ignore_case: true}}]}}"), nil},
		{"tls-names", tls("auto_host_sni: true, auto_sni_san_validation: true, common_tls_context: {validation_context: {trusted_ca: {filename: /ca.pem}, match_subject_alt_names: [{safe_regex: {regex: a+}}, {exact: b}]}}"), nil},
		{"tls-secrets", tls("common_tls_context: {tls_certificate_sds_secret_configs: [{name: a, sds_config: {ads: {}}}], validation_context_sds_secret_config: {name: v, sds_config: {path_config_source: {path: /s}}}}"), nil},
		{"http1", http("explicit_http_config: {http_protocol_options: {allow_absolute_url: false, accept_http_10: true, default_host_for_http_10: h, enable_trailers: true, allow_chunked_length: true, header_key_format: {proper_case_words: {}}, override_stream_error_on_invalid_http_message: true, send_fully_qualified_url: true, allow_custom_methods: true}}, common_http_protocol_options: {idle_timeout: 1s, max_connection_duration: 2s, max_stream_duration: 3s, max_headers_count: 4, max_response_headers_kb: 5, max_requests_per_connection: 6, headers_with_underscores_action: DROP_HEADER}, upstream_http_protocol_options: {auto_sni: true, auto_san_validation: true, override_auto_sni_header: h}"), []string{"explicit_http_config", "http_protocol_options"}},
		{"http2", http("explicit_http_config: {http2_protocol_options: {hpack_table_size: 1, max_concurrent_streams: 2, initial_stream_window_size: 65536, initial_connection_window_size: 65537, allow_connect: true, allow_metadata: true, max_outbound_frames: 3, max_outbound_control_frames: 4, max_consecutive_inbound_frames_with_empty_payload: 5, max_inbound_priority_frames_per_stream: 6, max_inbound_window_update_frames_per_data_frame_sent: 7, override_stream_error_on_invalid_http_message: true, connection_keepalive: {interval: 8s, timeout: 9s, interval_jitter: {value: 10}, connection_idle_interval: 11s}, custom_settings_parameters: [{identifier: 12, value: 13}]}}"), nil},
		{"dns", "type: STRICT_DNS\ndns_refresh_rate: 3s\ndns_jitter: 1s\ndns_failure_refresh_rate: {base_interval: 1s, max_interval: 4s}\nrespect_dns_ttl: true\ndns_lookup_family: V6_ONLY\ndns_resolution_config: {resolvers: [{socket_address: {address: 1.1.1.1, port_value: 5}}], dns_resolver_options: {use_tcp_for_dns_lookups: true, no_default_search_domain: true}}\n", nil},
		{"common", "alt_stat_name: a\nconnect_timeout: 1s\nper_connection_buffer_limit_bytes: 2\nconnection_pool_per_downstream_connection: true\nwait_for_warm_on_init: false\nclose_connections_on_host_health_failure: true\nignore_health_on_host_removal: true\ncleanup_interval: 3s\nmetadata: {filter_metadata: {a: {b: c}}}\nfilters: [{name: f}]\npreconnect_policy: {per_upstream_preconnect_ratio: 1.5, predictive_preconnect_ratio: 2}\ntrack_cluster_stats: {timeout_budgets: true, request_response_sizes: true, per_endpoint_stats: true}\n" +
			"upstream_connection_options: {tcp_keepalive: {keepalive_probes: 3, keepalive_time: 4, keepalive_interval: 5}, set_local_interface_name_on_upstream_connections: true, happy_eyeballs_config: {first_address_family_version: V6, first_address_family_count: 2}}\n" +
			"upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 6}, freebind: true, socket_options: [{level: 1, name: 2, int_value: 3, state: STATE_BOUND}, {level: 4, name: 5, buf_value: YWI=}]}\n" +
			"common_lb_config: {healthy_panic_threshold: {value: 7}, update_merge_window: 8s, ignore_new_hosts_until_first_hc: true, close_connections_on_host_set_change: true, zone_aware_lb_config: {routing_enabled: {value: 3}, min_cluster_size: 4, fail_traffic_on_panic: true}, override_host_status: {statuses: [HEALTHY, DEGRADED]}}\n" +
			"load_assignment: {cluster_name: x, policy: {overprovisioning_factor: 150, endpoint_stale_after: 60s, weighted_priority_health: true, drop_overloads: [{category: x, drop_percentage: {numerator: 25, denominator: TEN_THOUSAND}}]}, endpoints: [{locality: {region: r, zone: z, sub_zone: s}, load_balancing_weight: 5, metadata: {filter_metadata: {a: {b: c}}}, lb_endpoints: [{health_status: DEGRADED, load_balancing_weight: 7, metadata: {filter_metadata: {a: {b: c}}}, endpoint: {hostname: h, address: {socket_address: {address: 10.0.0.1, port_value: 8}}, health_check_config: {address: {socket_address: {address: 10.0.0.2, port_value: 9}}, hostname: i, disable_active_health_check: true}, additional_addresses: [{address: {socket_address: {address: '::1', port_value: 8}}}]}}]}]}\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "name: c\n" + tt.text + "\n"
			full := mustParse(t, text).Cluster
			var root yaml.Node
			if err := yaml.Unmarshal([]byte(text), &root); err != nil {
				t.Fatal(err)
			}
			tried := 0
			var visit func(n *yaml.Node, path string)
			leaveOut := func(n *yaml.Node, at, size int, path string) {
				all := n.Content
				defer func() { n.Content = all }()
				n.Content = slices.Concat(all[:at], all[at+size:])
				less, err := yaml.Marshal(&root)
				if err != nil {
					t.Fatal(err)
				}
				p, err := newDecoder().ClusterText("", less, v3)
				if err != nil {
					return // needed, or by another field
				}
				tried++
				if cmp.Equal(full, p.Cluster, compare, cmpopts.IgnoreTypes(config.Any{})) {
					t.Errorf("%s has no effect", path)
				}
			}
			visit = func(n *yaml.Node, path string) {
				switch n.Kind {
				case yaml.MappingNode:
					for i := 0; i < len(n.Content); i += 2 {
						key := n.Content[i].Value
						if !slices.Contains(tt.without, key) {
							leaveOut(n, i, 2, path+"."+key)
						}
						visit(n.Content[i+1], path+"."+key)
					}
				case yaml.SequenceNode, yaml.DocumentNode:
					for i, x := range n.Content {
						if n.Kind == yaml.SequenceNode {
							leaveOut(n, i, 1, path+"[]")
						}
						visit(x, path)
					}
				}
			}
			visit(&root, "")
			if tried == 0 {
				t.Error("no field can be left out")
			}
		})
	}
}
