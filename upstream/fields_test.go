package upstream

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

// force is how a field of a cluster is in effect.
type force int

const (
	library force = iota // this library obeys it
	program              // a setting for the proxy; the example proxy obeys it
	handed               // a setting for whoever it is meant for; nobody here is
	asked                // refused or warned of, unless the proxy obeys it
)

// fieldCase says how a field is in effect, and where the compiled cluster has it:
// between the texts before and after something changes there.
type fieldCase struct {
	field         string
	by            force
	path          string // of fields of config.Cluster; the last one is what somebody reads
	before, after string
}

const (
	tlsSocket = "{name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: x}}"
	emptyAny  = "{'@type': type.googleapis.com/google.protobuf.Struct, value: {}}"
	member    = "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}}}]}]}"
	check     = "health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]"
	selectors = "lb_subset_config: {subset_selectors: [{keys: [a, b]}]"
)

// simple is a field of a message that is set alone.
func simple(by force, path, field, value string) fieldCase {
	text := value
	parts := strings.Split(field, ".")
	for i := len(parts) - 1; i > 0; i-- {
		text = "{" + parts[i] + ": " + text + "}"
	}
	return fieldCase{field, by, path, "", parts[0] + ": " + text}
}

// fieldCases lists every field of clusters in both forms.
func fieldCases() []fieldCase {
	list := []fieldCase{
		{"name", library, "Name", "", "name: d"},
		simple(library, "StatName", "alt_stat_name", "a"),
		{"transport_socket_matches.name", library, "Sockets.Matches.0.Name", "transport_socket_matches: [{name: a, transport_socket: {name: raw_buffer}}]", "transport_socket_matches: [{name: b, transport_socket: {name: raw_buffer}}]"},
		{"transport_socket_matches.match", library, "Sockets.Matches.0.Match", "transport_socket_matches: [{name: a, transport_socket: {name: raw_buffer}}]", "transport_socket_matches: [{name: a, match: {k: v}, transport_socket: {name: raw_buffer}}]"},
		{"transport_socket_matches.transport_socket", library, "Sockets.Matches.0.Socket", "transport_socket_matches: [{name: a, transport_socket: {name: raw_buffer}}]", "transport_socket_matches: [{name: a, transport_socket: " + tlsSocket + "}]"},
		simple(library, "Type", "type", "STRICT_DNS"),
		simple(library, "CustomType.Name", "cluster_type.name", "mine"),
		{"cluster_type.typed_config", handed, "CustomType.Config", "cluster_type: {name: mine}", "cluster_type: {name: mine, typed_config: " + emptyAny + "}"},
		{"eds_cluster_config.eds_config", library, "EDS.Source", "type: EDS\neds_cluster_config: {eds_config: {ads: {}}}", "type: EDS\neds_cluster_config: {eds_config: {path: /x}}"},
		{"eds_cluster_config.service_name", library, "EDS.ServiceName", "type: EDS\neds_cluster_config: {eds_config: {ads: {}}}", "type: EDS\neds_cluster_config: {eds_config: {ads: {}}, service_name: s}"},
		simple(library, "ConnectTimeout", "connect_timeout", "7s"),
		simple(library, "BufferLimitBytes", "per_connection_buffer_limit_bytes", "7"),
		simple(library, "LB.Policy", "lb_policy", "RANDOM"),
		{"hosts", library, "Assignment", "", "hosts: [{socket_address: {address: 10.0.0.1, port_value: 1}}]"},
		{"load_assignment", library, "Assignment", "", member},
		{"health_checks", library, "HealthChecks", "", check},
		simple(library, "HTTP.MaxRequestsPerConnection", "max_requests_per_connection", "7"),
		simple(library, "CircuitBreakers.Default", "circuit_breakers", "{thresholds: [{max_retries: 7}]}"),
		simple(library, "Outlier", "outlier_detection", "{}"),
		simple(library, "Sockets.Default", "tls_context", "{sni: x}"),
		simple(library, "Sockets.Default", "transport_socket", tlsSocket),

		simple(program, "HTTP.AutoSNI", "upstream_http_protocol_options.auto_sni", "true"),
		simple(program, "HTTP.AutoSANValidation", "upstream_http_protocol_options.auto_san_validation", "true"),
		{"upstream_http_protocol_options.override_auto_sni_header", handed, "HTTP.OverrideAutoSNIHeader", "upstream_http_protocol_options: {auto_sni: true}", "upstream_http_protocol_options: {auto_sni: true, override_auto_sni_header: x}"},
		simple(program, "HTTP.IdleTimeout", "common_http_protocol_options.idle_timeout", "7s"),
		simple(library, "HTTP.MaxConnectionDuration", "common_http_protocol_options.max_connection_duration", "7s"),
		simple(program, "HTTP.MaxHeadersCount", "common_http_protocol_options.max_headers_count", "7"),
		simple(program, "HTTP.MaxStreamDuration", "common_http_protocol_options.max_stream_duration", "7s"),
		simple(program, "HTTP.MaxResponseHeadersKB", "common_http_protocol_options.max_response_headers_kb", "7"),
		simple(asked, "HTTP.HeadersWithUnderscores", "common_http_protocol_options.headers_with_underscores_action", "DROP_HEADER"),
		simple(library, "HTTP.MaxRequestsPerConnection", "common_http_protocol_options.max_requests_per_connection", "7"),
		simple(handed, "HTTP.HTTP1Options.AllowAbsoluteURL", "http_protocol_options.allow_absolute_url", "false"),
		simple(handed, "HTTP.HTTP1Options.AcceptHTTP10", "http_protocol_options.accept_http_10", "true"),
		simple(handed, "HTTP.HTTP1Options.DefaultHostHTTP10", "http_protocol_options.default_host_for_http_10", "x"),
		simple(handed, "HTTP.HTTP1Options.ProperCaseHeaders", "http_protocol_options.header_key_format", "{proper_case_words: {}}"),
		simple(program, "HTTP.HTTP1Options.EnableTrailers", "http_protocol_options.enable_trailers", "true"),
		simple(program, "HTTP.HTTP1Options.AllowChunkedLength", "http_protocol_options.allow_chunked_length", "true"),
		simple(handed, "HTTP.HTTP1Options.StreamErrorOnBadMsg", "http_protocol_options.override_stream_error_on_invalid_http_message", "true"),
		simple(program, "HTTP.HTTP1Options.SendFullURL", "http_protocol_options.send_fully_qualified_url", "true"),
		simple(handed, "HTTP.HTTP1Options.AllowCustomMethods", "http_protocol_options.allow_custom_methods", "true"),
		simple(program, "HTTP.Protocol", "http2_protocol_options", "{}"),
		simple(program, "HTTP.Protocol", "protocol_selection", "USE_DOWNSTREAM_PROTOCOL"),
		simple(handed, "UntypedExtensionOptions", "extension_protocol_options", "{takes.options: {}}"),
		simple(handed, "ExtensionOptions", "typed_extension_protocol_options", "{takes.options: "+emptyAny+"}"),

		simple(library, "DNS.RefreshRate", "dns_refresh_rate", "7s"),
		simple(library, "DNS.FailureBase", "dns_failure_refresh_rate.base_interval", "7s"),
		{"dns_failure_refresh_rate.max_interval", library, "DNS.FailureMax", "dns_failure_refresh_rate: {base_interval: 1s}", "dns_failure_refresh_rate: {base_interval: 1s, max_interval: 7s}"},
		simple(library, "DNS.RespectTTL", "respect_dns_ttl", "true"),
		simple(library, "DNS.Family", "dns_lookup_family", "V4_ONLY"),
		simple(library, "DNS.Resolvers", "dns_resolvers", "[{socket_address: {address: 1.2.3.4, port_value: 5}}]"),
		simple(library, "DNS.UseTCP", "use_tcp_for_dns_lookups", "true"),
		simple(library, "DNS.Resolvers", "dns_resolution_config", "{resolvers: [{socket_address: {address: 1.2.3.4, port_value: 5}}]}"),
		simple(library, "DNS.ResolverExtension", "typed_dns_resolver_config", "{name: r, typed_config: "+emptyAny+"}"),
		simple(library, "DNS.Jitter", "dns_jitter", "7s"),

		simple(library, "CleanupInterval", "cleanup_interval", "7s"),
		simple(library, "Bind.Source", "upstream_bind_config.source_address", "{address: 10.0.0.1, port_value: 0}"),
		{"upstream_bind_config.freebind", library, "Bind.Freebind", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}}", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, freebind: true}"},
		{"upstream_bind_config.socket_options", library, "Bind.Options", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}}", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, socket_options: [{int_value: 1}]}"},
		{"upstream_bind_config.extra_source_addresses", library, "Bind.Additional", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}}", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, extra_source_addresses: [{address: {address: 10.0.0.2, port_value: 0}}]}"},
		{"upstream_bind_config.additional_source_addresses", library, "Bind.Additional", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}}", "upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, additional_source_addresses: [{address: 10.0.0.2, port_value: 0}]}"},

		{"lb_subset_config.fallback_policy", library, "LB.Subset.Fallback", selectors + "}", selectors + ", fallback_policy: ANY_ENDPOINT}"},
		{"lb_subset_config.default_subset", library, "LB.Subset.DefaultSubset", selectors + "}", selectors + ", default_subset: {a: b}}"},
		{"lb_subset_config.subset_selectors.keys", library, "LB.Subset.Selectors.0.Keys", selectors + "}", "lb_subset_config: {subset_selectors: [{keys: [c]}]}"},
		{"lb_subset_config.subset_selectors.fallback_policy", library, "LB.Subset.Selectors.0.Fallback", selectors + "}", "lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: ANY_ENDPOINT}]}"},
		{"lb_subset_config.subset_selectors.fallback_keys_subset", library, "LB.Subset.Selectors.0.FallbackKeys", selectors + "}", "lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a]}]}"},
		{"lb_subset_config.subset_selectors.single_host_per_subset", library, "LB.Subset.Selectors.0.SingleHostPerSubset", "lb_subset_config: {subset_selectors: [{keys: [a]}]}", "lb_subset_config: {subset_selectors: [{keys: [a], single_host_per_subset: true}]}"},
		{"lb_subset_config.locality_weight_aware", library, "LB.Subset.LocalityWeightAware", selectors + "}", "common_lb_config: {locality_weighted_lb_config: {}}\n" + selectors + ", locality_weight_aware: true}"},
		{"lb_subset_config.scale_locality_weight", library, "LB.Subset.ScaleLocalityWeight", selectors + "}", selectors + ", scale_locality_weight: true}"},
		{"lb_subset_config.panic_mode_any", library, "LB.Subset.PanicModeAny", selectors + "}", selectors + ", panic_mode_any: true}"},
		{"lb_subset_config.list_as_any", library, "LB.Subset.ListAsAny", selectors + "}", selectors + ", list_as_any: true}"},
		{"lb_subset_config.metadata_fallback_policy", library, "LB.Subset.MetadataFallback", selectors + "}", selectors + ", metadata_fallback_policy: FALLBACK_LIST}"},

		{"ring_hash_lb_config.minimum_ring_size", library, "LB.RingHash.MinimumSize", "lb_policy: RING_HASH", "lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 7}"},
		{"ring_hash_lb_config.maximum_ring_size", library, "LB.RingHash.MaximumSize", "lb_policy: RING_HASH", "lb_policy: RING_HASH\nring_hash_lb_config: {maximum_ring_size: 7000}"},
		{"ring_hash_lb_config.hash_function", library, "LB.RingHash.Function", "lb_policy: RING_HASH", "lb_policy: RING_HASH\nring_hash_lb_config: {hash_function: MURMUR_HASH_2}"},
		{"maglev_lb_config.table_size", library, "LB.Maglev.TableSize", "lb_policy: MAGLEV", "lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 7}"},
		{"least_request_lb_config.choice_count", library, "LB.LeastRequest.ChoiceCount", "lb_policy: LEAST_REQUEST", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {choice_count: 7}"},
		{"least_request_lb_config.active_request_bias", library, "LB.LeastRequest.Bias", "lb_policy: LEAST_REQUEST", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {active_request_bias: {default_value: 7, runtime_key: k}}"},
		{"least_request_lb_config.slow_start_config.slow_start_window", library, "LB.SlowStart.Window", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {}}", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {slow_start_window: 7s}}"},
		{"least_request_lb_config.slow_start_config.aggression", library, "LB.SlowStart.Aggression", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {}}", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {aggression: {default_value: 7, runtime_key: k}}}"},
		{"least_request_lb_config.slow_start_config.min_weight_percent", library, "LB.SlowStart.MinWeightPercent", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {}}", "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {slow_start_config: {min_weight_percent: {value: 7}}}"},
		{"round_robin_lb_config.slow_start_config.slow_start_window", library, "LB.SlowStart.Window", "round_robin_lb_config: {slow_start_config: {}}", "round_robin_lb_config: {slow_start_config: {slow_start_window: 7s}}"},
		{"round_robin_lb_config.slow_start_config.aggression", library, "LB.SlowStart.Aggression", "round_robin_lb_config: {slow_start_config: {}}", "round_robin_lb_config: {slow_start_config: {aggression: {default_value: 7, runtime_key: k}}}"},
		{"round_robin_lb_config.slow_start_config.min_weight_percent", library, "LB.SlowStart.MinWeightPercent", "round_robin_lb_config: {slow_start_config: {}}", "round_robin_lb_config: {slow_start_config: {min_weight_percent: {value: 7}}}"},
		simple(library, "LB.OriginalDst.UseHTTPHeader", "original_dst_lb_config.use_http_header", "true"),
		simple(library, "LB.OriginalDst.PortOverride", "original_dst_lb_config.upstream_port_override", "7"),
		simple(library, "LB.OriginalDst.MetadataKey", "original_dst_lb_config.metadata_key", "{key: k, path: [{key: a}]}"),
		{"original_dst_lb_config.http_header_name", library, "LB.OriginalDst.HeaderName", "original_dst_lb_config: {use_http_header: true}", "original_dst_lb_config: {use_http_header: true, http_header_name: h}"},

		simple(library, "LB.PanicThreshold", "common_lb_config.healthy_panic_threshold", "{value: 7}"),
		simple(library, "LB.ZoneAware.RoutingEnabled", "common_lb_config.zone_aware_lb_config.routing_enabled", "{value: 7}"),
		simple(library, "LB.ZoneAware.MinClusterSize", "common_lb_config.zone_aware_lb_config.min_cluster_size", "7"),
		simple(library, "LB.ZoneAware.FailTrafficOnPanic", "common_lb_config.zone_aware_lb_config.fail_traffic_on_panic", "true"),
		simple(library, "LB.LocalityWeighted", "common_lb_config.locality_weighted_lb_config", "{}"),
		simple(library, "LB.UpdateMergeWindow", "common_lb_config.update_merge_window", "7s"),
		simple(library, "LB.IgnoreNewHostsUntilHC", "common_lb_config.ignore_new_hosts_until_first_hc", "true"),
		simple(library, "LB.CloseOnHostSetChange", "common_lb_config.close_connections_on_host_set_change", "true"),
		{"common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing", library, "LB.UseHostnameForHashing", "type: STRICT_DNS", "type: STRICT_DNS\ncommon_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true}}"},
		simple(library, "LB.HashBalanceFactor", "common_lb_config.consistent_hashing_lb_config.hash_balance_factor", "700"),
		simple(asked, "LB.OverrideHostStatusDefined", "common_lb_config.override_host_status", "{}"),
		simple(library, "LB.Policy", "load_balancing_policy", "{policies: [{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}}]}"),

		simple(handed, "Metadata", "metadata", "{filter_metadata: {x: {}}}"),
		simple(library, "Keepalive", "upstream_connection_options.tcp_keepalive", "{}"),
		simple(asked, "SetLocalInterfaceName", "upstream_connection_options.set_local_interface_name_on_upstream_connections", "true"),
		simple(library, "HappyEyeballs", "upstream_connection_options.happy_eyeballs_config", "{}"),
		simple(library, "CloseOnHealthFailure", "close_connections_on_host_health_failure", "true"),
		simple(library, "IgnoreHealthOnHostRemoval", "drain_connections_on_host_removal", "true"),
		simple(library, "IgnoreHealthOnHostRemoval", "ignore_health_on_host_removal", "true"),
		simple(asked, "Filters", "filters", "[{name: f}]"),
		simple(library, "Track.TimeoutBudgets", "track_timeout_budgets", "true"),
		simple(library, "Track.TimeoutBudgets", "track_cluster_stats.timeout_budgets", "true"),
		simple(asked, "Track.RequestResponseSizes", "track_cluster_stats.request_response_sizes", "true"),
		simple(asked, "Track.PerEndpointStats", "track_cluster_stats.per_endpoint_stats", "true"),
		simple(asked, "Preconnect", "preconnect_policy.per_upstream_preconnect_ratio", "2"),
		simple(asked, "Preconnect", "preconnect_policy.predictive_preconnect_ratio", "2"),
		simple(asked, "PerDownstreamConnection", "connection_pool_per_downstream_connection", "true"),
		simple(library, "WaitForWarmOnInit", "wait_for_warm_on_init", "false"),
		simple(asked, "BufferHighWatermarkWait", "per_connection_buffer_high_watermark_timeout", "7s"),
		simple(asked, "Sockets.Matcher", "transport_socket_matcher", "{}"),
	}
	for field, value := range unreadCases() {
		list = append(list, simple(asked, "Unread", field, value))
	}
	return slices.Concat(list, breakerCases(), outlierCases(), checkCases())
}

// breakerCases are the fields of circuit breakers.
func breakerCases() (list []fieldCase) {
	add := func(by force, path, field, before, after string) {
		list = append(list, fieldCase{"circuit_breakers." + field, by, "CircuitBreakers." + path, "circuit_breakers: {" + before + "}", "circuit_breakers: {" + after + "}"})
	}
	for field, name := range map[string]string{
		"max_connections": "MaxConnections", "max_pending_requests": "MaxPendingRequests", "max_requests": "MaxRequests",
		"max_retries": "MaxRetries", "max_connection_pools": "MaxConnectionPools",
	} {
		add(library, "Default."+name, "thresholds."+field, "", "thresholds: [{"+field+": 7}]")
	}
	const budget = "thresholds: [{retry_budget: {%s}}]"
	add(library, "Default.TrackRemaining", "thresholds.track_remaining", "", "thresholds: [{track_remaining: true}]")
	add(library, "High.MaxRetries", "thresholds.priority", "thresholds: [{max_retries: 7}]", "thresholds: [{priority: HIGH, max_retries: 7}]")
	add(library, "Default.RetryBudget.BudgetPercent", "thresholds.retry_budget.budget_percent", fmt.Sprintf(budget, ""), fmt.Sprintf(budget, "budget_percent: {value: 7}"))
	add(library, "Default.RetryBudget.MinRetryConcurrency", "thresholds.retry_budget.min_retry_concurrency", fmt.Sprintf(budget, ""), fmt.Sprintf(budget, "min_retry_concurrency: 7"))
	add(asked, "Default.RetryBudget.BudgetInterval", "thresholds.retry_budget.budget_interval", fmt.Sprintf(budget, ""), fmt.Sprintf(budget, "budget_interval: 7s"))
	add(library, "PerHostDefault", "per_host_thresholds.max_connections", "", "per_host_thresholds: [{max_connections: 7}]")
	add(library, "PerHostHigh", "per_host_thresholds.priority", "per_host_thresholds: [{max_connections: 7}]", "per_host_thresholds: [{priority: HIGH, max_connections: 7}]")
	return list
}

// outlierCases are the fields of outlier detection.
func outlierCases() (list []fieldCase) {
	add := func(by force, name, field, value string) {
		list = append(list, fieldCase{"outlier_detection." + field, by, "Outlier." + name, "outlier_detection: {}", "outlier_detection: {" + field + ": " + value + "}"})
	}
	for field, name := range map[string]string{
		"consecutive_5xx": "Consecutive5xx", "consecutive_gateway_failure": "ConsecutiveGatewayFailure",
		"consecutive_local_origin_failure": "ConsecutiveLocalFailure", "max_ejection_percent": "MaxEjectionPercent",
		"enforcing_consecutive_5xx": "EnforcingConsecutive5xx", "enforcing_consecutive_gateway_failure": "EnforcingConsecutiveGatewayFailure",
		"enforcing_consecutive_local_origin_failure": "EnforcingConsecutiveLocalFailure", "enforcing_success_rate": "EnforcingSuccessRate",
		"enforcing_local_origin_success_rate": "EnforcingLocalSuccessRate", "enforcing_failure_percentage": "EnforcingFailurePercentage",
		"enforcing_failure_percentage_local_origin": "EnforcingLocalFailurePercentage", "success_rate_minimum_hosts": "SuccessRateMinimumHosts",
		"success_rate_request_volume": "SuccessRateRequestVolume", "success_rate_stdev_factor": "SuccessRateStdevFactor",
		"failure_percentage_threshold": "FailurePercentageThreshold", "failure_percentage_minimum_hosts": "FailurePercentageMinimumHosts",
		"failure_percentage_request_volume": "FailurePercentageRequestVolume",
	} {
		add(library, name, field, "7")
	}
	for field, name := range map[string]string{
		"interval": "Interval", "base_ejection_time": "BaseEjectionTime", "max_ejection_time": "MaxEjectionTime", "max_ejection_time_jitter": "MaxEjectionTimeJitter",
	} {
		add(library, name, field, "70s")
	}
	add(library, "SplitLocalErrors", "split_external_local_origin_errors", "true")
	add(library, "UnejectOnCheck", "successful_active_health_check_uneject_host", "false")
	add(library, "AlwaysEjectOne", "always_eject_one_host", "true")
	add(asked, "DetectDegraded", "detect_degraded_hosts", "true")
	add(asked, "MonitorExtensions", "monitors", "[{name: m, typed_config: "+emptyAny+"}]")
	return list
}

// checkCases are the fields of health checks.
func checkCases() (list []fieldCase) {
	text := func(kind, field, value string) string {
		fields := map[string]string{"timeout": "1s", "interval": "1s", "unhealthy_threshold": "1", "healthy_threshold": "1"}
		own := map[string]string{"http_health_check": "path: /", "custom_health_check": "name: ping"}[kind]
		switch name, of, _ := strings.Cut(field, "."); {
		case of == "":
			fields[kind] = "{" + own + "}"
			if field != "" {
				fields[field] = value
			}
		case of == "path" || of == "name":
			fields[name] = "{" + of + ": " + value + "}"
		default:
			fields[name] = "{" + strings.TrimPrefix(own+", ", ", ") + of + ": " + value + "}"
		}
		var b []string
		for name, value := range fields {
			b = append(b, name+": "+value)
		}
		return "http2_protocol_options: {}\nhealth_checks: [{" + strings.Join(b, ", ") + "}]"
	}
	add := func(by force, path, field, value string) {
		kind, _, nested := strings.Cut(field, ".")
		if !nested {
			kind = "tcp_health_check"
		}
		if path != "Unread" {
			path = "HealthChecks.0." + path
		}
		list = append(list, fieldCase{"health_checks." + field, by, path, text(kind, "", ""), text(kind, field, value)})
	}
	for field, name := range map[string]string{
		"timeout": "Timeout", "interval": "Interval", "initial_jitter": "InitialJitter", "interval_jitter": "IntervalJitter", "no_traffic_interval": "NoTrafficInterval",
		"no_traffic_healthy_interval": "NoTrafficHealthyInterval", "unhealthy_interval": "UnhealthyInterval", "unhealthy_edge_interval": "UnhealthyEdgeInterval", "healthy_edge_interval": "HealthyEdgeInterval",
	} {
		add(library, name, field, "7s")
	}
	add(library, "IntervalJitterPercent", "interval_jitter_percent", "7")
	add(library, "UnhealthyThreshold", "unhealthy_threshold", "7")
	add(library, "HealthyThreshold", "healthy_threshold", "7")
	add(asked, "HasAltPort", "alt_port", "7")
	add(library, "ReuseConnection", "reuse_connection", "false")
	add(library, "AlwaysLogFailures", "always_log_health_check_failures", "true")
	add(library, "AlwaysLogSuccess", "always_log_health_check_success", "true")
	add(library, "ALPN", "tls_options", "{alpn_protocols: [x]}")
	add(library, "TransportSocketMatch", "transport_socket_match_criteria", "{k: v}")
	add(library, "EventLogs", "event_log_path", "/x")
	add(asked, "Unread", "event_service", "{grpc_service: {envoy_grpc: {cluster_name: x}}}")
	add(handed, "Name", "name", "x")
	add(library, "EventSinks", "event_logger", "[{name: x, typed_config: "+emptyAny+"}]")

	add(library, "HTTP.Host", "http_health_check.host", "x")
	add(library, "HTTP.Path", "http_health_check.path", "/x")
	add(library, "HTTP.Method", "http_health_check.method", "HEAD")
	add(library, "HTTP.Send", "http_health_check.send", "{text: aa}")
	add(library, "HTTP.Receive", "http_health_check.receive", "[{text: bb}]")
	add(library, "HTTP.ResponseBufferSize", "http_health_check.response_buffer_size", "7")
	add(library, "HTTP.HeadersToAdd", "http_health_check.request_headers_to_add", "[{header: {key: a}}]")
	add(library, "HTTP.HeadersToRemove", "http_health_check.request_headers_to_remove", "[a]")
	add(library, "HTTP.Expected", "http_health_check.expected_statuses", "[{start: 300, end: 301}]")
	add(library, "HTTP.Retriable", "http_health_check.retriable_statuses", "[{start: 300, end: 301}]")
	add(library, "HTTP.HTTP2", "http_health_check.codec_client_type", "HTTP2")
	add(library, "HTTP.HTTP2", "http_health_check.use_http2", "true")
	add(library, "HTTP.ServiceName", "http_health_check.service_name", "x")
	add(library, "HTTP.ServiceName", "http_health_check.service_name_matcher", "{exact: x}")
	add(asked, "HTTP.UseALPN", "http_health_check.use_alpn_protocol", "true")

	add(library, "TCP.Send", "tcp_health_check.send", "{text: aa}")
	add(library, "TCP.Receive", "tcp_health_check.receive", "[{text: aa}]")
	add(asked, "TCP.ProxyProtocol", "tcp_health_check.proxy_protocol_config", "{}")
	add(library, "GRPC.ServiceName", "grpc_health_check.service_name", "x")
	add(library, "GRPC.Authority", "grpc_health_check.authority", "x")
	add(library, "GRPC.Metadata", "grpc_health_check.initial_metadata", "[{header: {key: a}}]")
	add(handed, "Custom.Name", "custom_health_check.name", "pong")
	add(handed, "Custom.Config", "custom_health_check.typed_config", "{'@type': type.googleapis.com/google.protobuf.BoolValue, value: true}")
	add(handed, "CustomUntyped", "custom_health_check.config", "{a: b}")
	return list
}

// unreadCases are the fields that have no place in a compiled cluster.
func unreadCases() map[string]string {
	return map[string]string{
		"http_protocol_options.use_balsa_parser":                      "true",
		"http_protocol_options.ignore_http_11_upgrade":                "[{exact: x}]",
		"upstream_bind_config.local_address_selector":                 "{name: x, typed_config: " + emptyAny + "}",
		"upstream_bind_config.validate_network_namespaces":            "true",
		"common_http_protocol_options.max_connection_duration_jitter": "{value: 7}",
		"preconnect_policy.preconnect_enabled_metadata":               "{filter: f, path: [{key: a}], value: {present_match: true}}",
		"lrs_server":                  "{ads: {}}",
		"upstream_config":             "{name: x, typed_config: " + emptyAny + "}",
		"lrs_report_endpoint_metrics": "[x]",
		"stats_matcher":               "{reject_all: true}",
		"queuing_policies":            "{}",
	}
}

// leaves returns the fields of a cluster message, including nested messages: true for
// the innermost ones.
func leaves(prefix string, m protoreflect.MessageDescriptor, out map[string]bool) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		name := prefix + string(f.Name())
		if d := f.Message(); d != nil && !f.IsMap() && d.Fields().Len() > 0 && described(d) {
			leaves(name+".", d, out)
			out[name] = false // its fields say how it is in effect
			continue
		}
		out[name] = true
	}
}

func described(m protoreflect.MessageDescriptor) bool {
	name := strings.TrimPrefix(string(m.FullName()), string(m.ParentFile().Package())+".")
	switch name {
	case "UpstreamConnectionOptions", "BindConfig", "HttpProtocolOptions", "Http1ProtocolOptions", "UpstreamHttpProtocolOptions", "TrackClusterStats":
		return true
	case "Cluster.QueuingPolicies":
		return false
	}
	if name == "HealthCheck.Payload" || name == "HealthCheck.TlsOptions" {
		return false
	}
	return slices.Contains([]string{"Cluster", "CircuitBreakers", "OutlierDetection", "HealthCheck"}, strings.Split(name, ".")[0])
}

func TestEveryFieldOfClustersIsInForce(t *testing.T) {
	d := decode.NewDecoder(decode.Options{
		V2: v2form.Messages(), ClusterTypes: map[string]bool{"mine": false}, ProtocolFilters: map[string]bool{"takes.options": true},
		HealthCheckers: []string{"ping", "pong"},
	})
	forms := map[config.Form]map[string]bool{config.FormV2: {}, config.FormV3: {}}
	for form, m := range map[config.Form]proto.Message{config.FormV2: v2form.Messages().Cluster(), config.FormV3: &clusterv3.Cluster{}} {
		leaves("", m.ProtoReflect().Descriptor(), forms[form])
	}
	schema := jsonschema.Load(t, "../docs/bootstrap.schema.json")
	rows := map[string]bool{}
	read := map[force]map[string]bool{library: selected(t, ".", "../server"), program: selected(t, "httptransport", "../examples/reverse-proxy")}
	for _, c := range fieldCases() {
		rows[c.field] = true
		known := false
		for form, fields := range forms {
			if _, ok := fields[c.field]; !ok {
				continue
			}
			known = true
			if form == config.FormV2 && c.field == "load_balancing_policy" { // it named policies otherwise, none of which is known
				_, err := d.ClusterText("", []byte("name: c\nload_balancing_policy: {policies: [{name: x}]}\n"), form)
				if err == nil {
					t.Errorf("%s, form %d: not refused", c.field, form)
				}
				continue
			}
			compile := func(text string) *config.Cluster {
				if !strings.HasPrefix(text, "name:") {
					text = "name: c\n" + text
				}
				if form == config.FormV2 {
					text = strings.Replace(text, "receive: [{text: bb}]", "receive: {text: bb}", 1) // no list there
				}
				p, err := d.ClusterText("", []byte(text+"\n"), form)
				if err != nil {
					t.Fatalf("%s: %v", c.field, err)
				}
				return p.Cluster
			}
			before, after := compile(c.before), compile(c.after)
			checkSchema(t, schema, c.after)
			if was, is := fieldAt(before, c.path), fieldAt(after, c.path); reflect.DeepEqual(was, is) {
				t.Errorf("%s, form %d: %s stays %v, so the field has no effect", c.field, form, c.path, is)
			}
			given := false
			for i, a := range asks(after) {
				given = given || a.given && (i >= len(asks(before)) || !asks(before)[i].given)
			}
			if given != (c.by == asked) {
				t.Errorf("%s, form %d: the proxy is asked for it: %t", c.field, form, given)
			}
		}
		last := c.path[strings.LastIndexByte(c.path, '.')+1:]
		if who := read[c.by]; who != nil && !who[last] {
			t.Errorf("%s: no code that should reads %s", c.field, c.path)
		}
		if !known {
			t.Errorf("%s: no such field", c.field)
		}
	}
	for form, fields := range forms {
		for name, leaf := range fields {
			refused := strings.HasPrefix(name, "circuit_breakers.per_host_thresholds.") // by the decoder, but for the two of breakerCases
			if leaf && !rows[name] && !refused {
				t.Errorf("%s, form %d: nothing says how it is in effect", name, form)
			}
		}
	}
}

// checkSchema compares a cluster with the schema of the bootstrap.
func checkSchema(t *testing.T, schema map[string]any, text string) {
	t.Helper()
	var c map[string]any
	if err := yaml.Unmarshal(clusterOf(text), &c); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"static_resources": map[string]any{"clusters": []any{c}}})
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	for _, fault := range jsonschema.Validate(schema, v) {
		t.Errorf("the schema does not allow %q: %s", text, fault)
	}
}

// fieldAt returns a field within fields; numbers are indexes. It is nil below a nil one.
func fieldAt(c *config.Cluster, path string) any {
	v := reflect.ValueOf(c)
	for _, name := range strings.Split(path, ".") {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		if i, err := strconv.Atoi(name); err == nil {
			v = v.Index(i)
		} else {
			v = v.FieldByName(name)
		}
	}
	return v.Interface()
}

// selected returns the names that code below directories selects, but for tests
// and for the package config itself.
func selected(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && e.Name() == "config":
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || e.Name() == "accept.go":
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					names[s.Sel.Name] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
