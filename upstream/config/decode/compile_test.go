package decode_test

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

const check = "health_checks: [{timeout: 1s, interval: 2s, healthy_threshold: 1, unhealthy_threshold: 1, http_health_check: {path: /}}]\n"

func TestEffectiveDefaults(t *testing.T) {
	text := "name: a:b\noutlier_detection: {}\ncircuit_breakers: {thresholds: [{priority: HIGH, retry_budget: {}}]}\n" + check +
		"lb_subset_config: {subset_selectors: [{keys: [k]}]}\nhttp2_protocol_options: {}\n" +
		"load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n"
	c := mustParse(t, text).Cluster
	h, o, lb := c.HealthChecks[0], c.Outlier, c.LB
	locality := c.Assignment.Localities[0]
	forever := config.NoLimit
	tests := []struct {
		field     string
		got, want any
	}{
		{"StatName", c.StatName, "a_b"},
		{"Type", c.Type, config.Static},
		{"LB.Policy", lb.Policy, config.RoundRobinPolicy},
		{"ConnectTimeout", c.ConnectTimeout, 5 * time.Second},
		{"BufferLimitBytes", c.BufferLimitBytes, uint32(1048576)},
		{"MaxRequestsPerConnection", c.HTTP.MaxRequestsPerConnection, uint32(0)},
		{"IdleTimeout", c.HTTP.IdleTimeout, time.Hour},
		{"WaitForWarmOnInit", c.WaitForWarmOnInit, true},
		{"Thresholds", c.CircuitBreakers.Default, config.Thresholds{MaxConnections: 1024, MaxPendingRequests: 1024, MaxRequests: 1024, MaxRetries: 3, MaxConnectionPools: forever}},
		{"Thresholds high", c.CircuitBreakers.High, config.Thresholds{MaxConnections: 1024, MaxPendingRequests: 1024, MaxRequests: 1024, MaxRetries: 3, MaxConnectionPools: forever, RetryBudget: &config.RetryBudget{BudgetPercent: 20, MinRetryConcurrency: 3}}},
		{"PerHostDefault", c.CircuitBreakers.PerHostDefault, forever},
		{"DNS", c.DNS, config.DNS{RefreshRate: 5 * time.Second, FailureBase: 5 * time.Second, FailureMax: 5 * time.Second}},
		{"CleanupInterval", c.CleanupInterval, 5 * time.Second},
		{"PanicThreshold", lb.PanicThreshold, uint32(50)},
		{"ZoneAware", lb.ZoneAware, &config.ZoneAware{RoutingEnabled: 100, MinClusterSize: 6}},
		{"UpdateMergeWindow", lb.UpdateMergeWindow, time.Second},
		{"OverprovisioningFactor", c.Assignment.OverprovisioningFactor, uint32(140)},
		{"RingHash", lb.RingHash, config.RingHash{MinimumSize: 1024, MaximumSize: 8388608, Function: config.XXHash}},
		{"LeastRequest", lb.LeastRequest, config.LeastRequest{ChoiceCount: 2, Bias: config.RuntimeDouble{Default: 1}}},
		{"Maglev", lb.Maglev, config.Maglev{TableSize: 65537}},
		{"Subset", lb.Subset, &config.Subset{Fallback: config.FallbackNone, Selectors: []config.SubsetSelector{{Keys: []string{"k"}, Fallback: config.FallbackNotDefined}}}},
		{"Weight", locality.Endpoints[0].Weight, uint32(1)},
		{"locality Weight", locality.Weight, uint32(0)},
		{"Health", locality.Endpoints[0].Health, config.HealthUnknown},
		{"HealthCheck", h, config.HealthCheck{
			Timeout: time.Second, Interval: 2 * time.Second, UnhealthyThreshold: 1, HealthyThreshold: 1, ReuseConnection: true,
			NoTrafficInterval: time.Minute, NoTrafficHealthyInterval: time.Minute,
			UnhealthyInterval: 2 * time.Second, UnhealthyEdgeInterval: 2 * time.Second, HealthyEdgeInterval: 2 * time.Second,
			HTTP: config.HTTPHealthCheck{Path: "/", Method: "GET", ResponseBufferSize: 1024, Expected: []config.StatusRange{{Start: 200, End: 201}}},
		}},
		{"Outlier", o, &config.Outlier{
			Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionTime: 300 * time.Second, MaxEjectionPercent: 10,
			Consecutive5xx: 5, ConsecutiveGatewayFailure: 5, ConsecutiveLocalFailure: 5,
			EnforcingConsecutive5xx: 100, EnforcingConsecutiveGatewayFailure: 0, EnforcingConsecutiveLocalFailure: 100,
			EnforcingSuccessRate: 100, EnforcingLocalSuccessRate: 100, EnforcingFailurePercentage: 0, EnforcingLocalFailurePercentage: 0,
			SuccessRateMinimumHosts: 5, SuccessRateRequestVolume: 100, SuccessRateStdevFactor: 1900,
			FailurePercentageThreshold: 85, FailurePercentageMinimumHosts: 5, FailurePercentageRequestVolume: 50,
			UnejectOnCheck: true,
		}},
		{"Protocol", c.HTTP.Protocol, config.HTTP2},
		{"Protocol without options", mustParse(t, "name: c\n").Cluster.HTTP.Protocol, config.HTTP1},
		{"socket", c.Sockets.Default, config.Socket{Kind: config.RawBuffer}},
		{"Outlier absent", mustParse(t, "name: c\n").Cluster.Outlier == nil, true},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got, compare); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.field, diff)
		}
	}
}

func TestDefaultsThatFollowOthers(t *testing.T) {
	outlier := func(text string) *config.Outlier {
		return mustParse(t, "name: c\noutlier_detection: "+text+"\n").Cluster.Outlier
	}
	health := func(text string) config.HealthCheck {
		return mustParse(t, "name: c\nhealth_checks: [{timeout: 1s, interval: 2s, healthy_threshold: 0, unhealthy_threshold: 0, tcp_health_check: {}, "+text+"}]\n").Cluster.HealthChecks[0]
	}
	failure := func(text string) config.DNS {
		return mustParse(t, "name: c\ndns_refresh_rate: 2s\n"+text+"\n").Cluster.DNS
	}
	old := mustParse(t, "'@type': type.googleapis.com/envoy.api.v2.Cluster\nname: c\noutlier_detection: {}\n").Cluster
	tests := []struct {
		field     string
		got, want any
	}{
		{"max ejection follows a long base", outlier("{base_ejection_time: 400s}").MaxEjectionTime, 400 * time.Second},
		{"max ejection as given", outlier("{max_ejection_time: 60s}").MaxEjectionTime, 60 * time.Second},
		{"always eject one in v2", old.Outlier.AlwaysEjectOne, true},
		{"uneject on check in v2", old.Outlier.UnejectOnCheck, false},
		{"uneject on check off", outlier("{successful_active_health_check_uneject_host: false}").UnejectOnCheck, false},
		{"always eject one on", outlier("{always_eject_one_host: true}").AlwaysEjectOne, true},
		{"unhealthy edge follows unhealthy", health("unhealthy_interval: 7s").UnhealthyEdgeInterval, 7 * time.Second},
		{"no traffic healthy follows no traffic", health("no_traffic_interval: 9s").NoTrafficHealthyInterval, 9 * time.Second},
		{"threshold 0 counts as 1", health("alt_port: 1").HealthyThreshold, uint32(1)},
		{"failure max is ten times base", failure("dns_failure_refresh_rate: {base_interval: 3s}").FailureMax, 30 * time.Second},
		{"failure rate given", failure("dns_failure_refresh_rate: {base_interval: 3s}").HasFailureRate, true},
		{"failure base follows refresh", failure("").FailureBase, 2 * time.Second},
		{"failure max without overflow", failure("dns_failure_refresh_rate: {base_interval: 300000000000s}").FailureMax, time.Duration(math.MaxInt64)},
	}
	for _, tt := range tests {
		if got, want := tt.got, tt.want; got != want {
			t.Errorf("%s: got %v, want %v", tt.field, got, want)
		}
	}
}

func TestExplicitZeros(t *testing.T) {
	c := mustParse(t, `name: c
max_requests_per_connection: 0
common_http_protocol_options: {idle_timeout: 0s}
common_lb_config: {update_merge_window: 0s, healthy_panic_threshold: {}}
circuit_breakers: {thresholds: [{max_connections: 0, max_retries: 0, max_connection_pools: 0}]}
outlier_detection: {consecutive_5xx: 0, max_ejection_percent: 0}
health_checks: [{timeout: 1s, interval: 2s, healthy_threshold: 1, unhealthy_threshold: 1, reuse_connection: false, http_health_check: {path: /, response_buffer_size: 0}}]
`).Cluster
	if c.HTTP.IdleTimeout != 0 || c.LB.UpdateMergeWindow != 0 || c.LB.PanicThreshold != 0 {
		t.Errorf("IdleTimeout %v, UpdateMergeWindow %v, PanicThreshold %d, want 0", c.HTTP.IdleTimeout, c.LB.UpdateMergeWindow, c.LB.PanicThreshold)
	}
	b := c.CircuitBreakers.Default
	if b.MaxConnections != 0 || b.MaxRetries != 0 || b.MaxConnectionPools != 0 || b.MaxRequests != 1024 {
		t.Errorf("Thresholds = %+v", b)
	}
	if c.Outlier.Consecutive5xx != 0 || c.Outlier.MaxEjectionPercent != 0 {
		t.Errorf("Outlier = %+v", c.Outlier)
	}
	if h := c.HealthChecks[0]; h.ReuseConnection || h.HTTP.ResponseBufferSize != 0 {
		t.Errorf("HealthCheck = %+v", h)
	}
}

func TestPercentsAreCutToWholePercent(t *testing.T) {
	for _, tt := range []struct {
		given string
		want  uint32
	}{{"29", 29}, {"57", 57}, {"58", 58}, {"0.9", 0}, {"99.99", 99}, {"100", 100}} {
		c := mustParse(t, "name: c\ncommon_lb_config: {healthy_panic_threshold: {value: "+tt.given+"}, zone_aware_lb_config: {routing_enabled: {value: "+tt.given+"}}}\n").Cluster
		if c.LB.PanicThreshold != tt.want || c.LB.ZoneAware.RoutingEnabled != tt.want {
			t.Errorf("%s percent: threshold %d, routing %d, want %d", tt.given, c.LB.PanicThreshold, c.LB.ZoneAware.RoutingEnabled, tt.want)
		}
	}
}

func TestShortTimersAreOneMillisecond(t *testing.T) {
	c := mustParse(t, "name: c\nconnect_timeout: 0.0001s\ncommon_lb_config: {update_merge_window: 0.000000001s}\ncleanup_interval: 0.0015s\n").Cluster
	if c.ConnectTimeout != time.Millisecond || c.LB.UpdateMergeWindow != time.Millisecond {
		t.Errorf("ConnectTimeout %v, UpdateMergeWindow %v, want 1ms", c.ConnectTimeout, c.LB.UpdateMergeWindow)
	}
	if c.CleanupInterval != 1500*time.Microsecond {
		t.Errorf("CleanupInterval = %v, want 1.5ms", c.CleanupInterval)
	}
}

func TestWholeClusterIsCompiled(t *testing.T) {
	c := mustParse(t, `name: c
alt_stat_name: other:name
type: STRICT_DNS
connect_timeout: 0.25s
per_connection_buffer_limit_bytes: 32768
lb_policy: RING_HASH
ring_hash_lb_config: {minimum_ring_size: 8, maximum_ring_size: 16, hash_function: MURMUR_HASH_2}
max_requests_per_connection: 7
dns_refresh_rate: 3s
dns_failure_refresh_rate: {base_interval: 1s, max_interval: 4s}
respect_dns_ttl: true
dns_lookup_family: V6_ONLY
dns_resolvers: [{socket_address: {address: 1.1.1.1, port_value: 0}}, {socket_address: {address: "::1", port_value: 5353}}]
use_tcp_for_dns_lookups: true
cleanup_interval: 9s
close_connections_on_host_health_failure: true
ignore_health_on_host_removal: true
track_timeout_budgets: true
metadata: {filter_metadata: {proxy.router: {a: [1, true, null, {b: c}]}}}
upstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, freebind: true, socket_options: [{level: 1, name: 2, int_value: 3, state: STATE_BOUND}]}
upstream_connection_options: {tcp_keepalive: {keepalive_probes: 3, keepalive_time: 4, keepalive_interval: 5}}
common_lb_config:
  locality_weighted_lb_config: {}
  ignore_new_hosts_until_first_hc: true
  close_connections_on_host_set_change: true
  consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 150}
lb_subset_config:
  fallback_policy: DEFAULT_SUBSET
  default_subset: {stage: prod}
  subset_selectors:
  - {keys: [b, a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a]}
  - {keys: []}
  locality_weight_aware: true
  scale_locality_weight: true
  panic_mode_any: true
  list_as_any: true
load_assignment:
  cluster_name: c
  policy: {overprovisioning_factor: 150, endpoint_stale_after: 60s, drop_overloads: [{category: x, drop_percentage: {numerator: 25, denominator: TEN_THOUSAND}}]}
  endpoints:
  - locality: {region: r, zone: z, sub_zone: s}
    priority: 1
    load_balancing_weight: 5
    lb_endpoints:
    - endpoint:
        hostname: h
        address: {socket_address: {address: a.example, port_value: 80}}
        health_check_config: {port_value: 81, hostname: hc}
      health_status: DRAINING
      load_balancing_weight: 3
      metadata: {filter_metadata: {proxy.lb: {canary: true}, envoy.lb: {x: y}, proxy.transport_socket: {tls: "yes"}}}
transport_socket_matches:
- name: secure
  match: {tls: "yes"}
  transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: s, common_tls_context: {alpn_protocols: [h2], tls_params: {tls_minimum_protocol_version: TLSv1_2}, tls_certificates: [{certificate_chain: {filename: /c.pem}, private_key: {inline_string: secret}}], combined_validation_context: {default_validation_context: {trusted_ca: {filename: /ca.pem}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: a}}]}, validation_context_sds_secret_config: {name: v, sds_config: {ads: {}}}}}}}
- {name: plain, match: {}, transport_socket: {name: proxy.transport_sockets.raw_buffer}}
filters: [{name: f}]
preconnect_policy: {predictive_preconnect_ratio: 2}
`).Cluster
	type m = map[string]any
	tests := []struct {
		field     string
		got, want any
	}{
		{"names", c.Name + " " + c.StatName + " " + c.AltStatName, "c other_name other:name"},
		{"form", c.Form, config.FormV3},
		{"type", c.Type, config.StrictDNS},
		{"times", []time.Duration{c.ConnectTimeout, c.CleanupInterval}, []time.Duration{250 * time.Millisecond, 9 * time.Second}},
		{"switches", []bool{c.CloseOnHealthFailure, c.IgnoreHealthOnHostRemoval, c.Track.TimeoutBudgets}, []bool{true, true, true}},
		{"buffer", c.BufferLimitBytes, uint32(32768)},
		{"requests", c.HTTP.MaxRequestsPerConnection, uint32(7)},
		{"ring", c.LB.RingHash, config.RingHash{MinimumSize: 8, MaximumSize: 16, Function: config.MurmurHash2}},
		{"policy", c.LB.Policy, config.RingHashPolicy},
		{"locality weighted", c.LB.LocalityWeighted && c.LB.ZoneAware == nil, true},
		{"hashing", c.LB.UseHostnameForHashing, true},
		{"hash balance", c.LB.HashBalanceFactor, uint32(150)},
		{"dns", c.DNS, config.DNS{
			RefreshRate: 3 * time.Second, FailureBase: time.Second, FailureMax: 4 * time.Second, HasFailureRate: true,
			RespectTTL: true, Family: config.FamilyV6Only, UseTCP: true,
			Resolvers: []config.AddressSpec{
				{Kind: config.SocketAddress, Host: "1.1.1.1", IP: netip.MustParseAddr("1.1.1.1"), Port: 53},
				{Kind: config.SocketAddress, Host: "::1", IP: netip.MustParseAddr("::1"), Port: 5353},
			},
		}},
		{"metadata", c.Metadata, config.Metadata{"proxy.router": {"a": []any{1.0, true, nil, m{"b": "c"}}}}},
		{"bind", c.Bind, &config.Bind{
			Source:   config.AddressSpec{Kind: config.SocketAddress, Host: "10.0.0.1", IP: netip.MustParseAddr("10.0.0.1")},
			Freebind: true, Options: []config.SocketOption{{Level: 1, Name: 2, IsInt: true, Int: 3, State: config.StateBound}},
		}},
		{"keepalive", c.Keepalive, &config.Keepalive{Probes: 3, Time: 4 * time.Second, Interval: 5 * time.Second}},
		{"subset", c.LB.Subset, &config.Subset{
			Fallback: config.FallbackDefaultSubset, DefaultSubset: m{"stage": "prod"},
			Selectors:           []config.SubsetSelector{{Keys: []string{"a", "b"}, Fallback: config.FallbackKeysSubset, FallbackKeys: []string{"a"}}},
			LocalityWeightAware: true, ScaleLocalityWeight: true, PanicModeAny: true, ListAsAny: true,
		}},
		{"assignment", c.Assignment, &config.Assignment{
			ClusterName: "c", OverprovisioningFactor: 150, EndpointStaleAfter: time.Minute, DropOverload: 0.25,
			Localities: []config.LocalityEndpoints{{
				Locality: config.Locality{Region: "r", Zone: "z", SubZone: "s"}, Weight: 5, Priority: 1,
				Endpoints: []config.Endpoint{{
					Address:  config.AddressSpec{Kind: config.SocketAddress, Host: "a.example", Port: 80},
					Hostname: "h", Health: config.HealthDraining, Weight: 3, Canary: true,
					Metadata: config.Metadata{
						"proxy.lb":                     {"canary": true},
						"proxy.transport_socket_match": {"tls": "yes"},
					},
					HealthCheckAddress:  config.AddressSpec{Kind: config.SocketAddress, Host: "a.example", Port: 81},
					HealthCheckHostname: "hc",
				}},
			}},
		}},
		{"socket match", c.Sockets.Matches[0].Match, m{"tls": "yes"}},
		{"socket plain", c.Sockets.Matches[1], config.SocketMatch{Name: "plain", Socket: config.Socket{Kind: config.RawBuffer, Name: "proxy.transport_sockets.raw_buffer"}}},
		{"tls", c.Sockets.Matches[0].Socket.TLS, &config.TLS{
			SNI: "s", MaxSessionKeys: 1, EnforceRSAKeyUsage: true,
			TLSCommon: config.TLSCommon{
				MinVersion: config.TLS12, ALPN: []string{"h2"},
				Certificates: []config.Certificate{{Chain: config.Data{Kind: config.DataFile, Name: "/c.pem"}, PrivateKey: config.Data{Kind: config.DataInline, Inline: "secret"}}},
				Validation: &config.Validation{
					TrustedCA: config.Data{Kind: config.DataFile, Name: "/ca.pem"}, MaxVerifyDepth: 100,
					SANs: []config.SAN{{Type: config.DNSSAN, Matcher: config.StringMatcher{Kind: config.MatchExact, Pattern: "a"}}},
				},
				ValidationSecret: &config.SecretSource{Name: "v", Source: &config.ConfigSource{Kind: config.SourceADS, InitialFetchTimeout: 15 * time.Second}},
			},
		}},
		{"filters", c.Filters, []config.Filter{{Name: "f"}}},
		{"preconnect", c.Preconnect, &config.Preconnect{PerUpstreamRatio: 1, PredictiveRatio: 2}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got, compare); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.field, diff)
		}
	}
}

func TestLoadBalancingPolicyOfV3(t *testing.T) {
	policy := func(entries string) config.LoadBalancing {
		return mustParse(t, "name: c\nload_balancing_policy: {policies: ["+entries+"]}\n").Cluster.LB
	}
	entry := func(name, message, fields string) string {
		return "{typed_extension_config: {name: " + name + ", typed_config: {'@type': type.googleapis.com/" + message + ", " + fields + "}}},"
	}
	const at = "envoy.extensions.load_balancing_policies."
	unknown := "{typed_extension_config: {name: u, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}},"
	lb := policy(unknown + entry("l", at+"least_request.v3.LeastRequest", "choice_count: 5, slow_start_config: {slow_start_window: 9s}, locality_lb_config: {locality_weighted_lb_config: {}}") + entry("r", at+"random.v3.Random", ""))
	if lb.Policy != config.LeastRequestPolicy || lb.LeastRequest.ChoiceCount != 5 || !lb.LocalityWeighted || lb.ZoneAware != nil {
		t.Errorf("the first known policy is not in effect: %+v", lb)
	}
	if lb.SlowStart == nil || lb.SlowStart.Window != 9*time.Second || lb.SlowStart.MinWeightPercent != 10 {
		t.Errorf("SlowStart = %+v", lb.SlowStart)
	}
	if lb := policy(entry("r", at+"ring_hash.v3.RingHash", "minimum_ring_size: 9, hash_function: MURMUR_HASH_2, consistent_hashing_lb_config: {hash_balance_factor: 120}")); lb.Policy != config.RingHashPolicy || lb.RingHash.MinimumSize != 9 || lb.RingHash.Function != config.MurmurHash2 || lb.HashBalanceFactor != 120 {
		t.Errorf("ring hash = %+v", lb)
	}
	if lb := policy(entry("m", at+"maglev.v3.Maglev", "table_size: 11")); lb.Policy != config.MaglevPolicy || lb.Maglev.TableSize != 11 {
		t.Errorf("maglev = %+v", lb)
	}
	if lb := policy(entry("r", at+"round_robin.v3.RoundRobin", "locality_lb_config: {zone_aware_lb_config: {min_cluster_size: 3, force_local_zone: {min_size: 2}}}")); lb.Policy != config.RoundRobinPolicy || lb.ZoneAware.MinClusterSize != 3 || lb.ZoneAware.ForceLocal.MinSize != 2 {
		t.Errorf("round robin = %+v", lb)
	}
}

func TestTypedHTTPOptionsOfV3(t *testing.T) {
	http := func(fields string) config.HTTPOptions {
		return mustParse(t, "name: c\ntyped_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, "+fields+"}}\n").Cluster.HTTP
	}
	tests := []struct {
		fields string
		want   config.Protocol
	}{
		{"explicit_http_config: {http_protocol_options: {}}", config.HTTP1},
		{"explicit_http_config: {http2_protocol_options: {}}", config.HTTP2},
		{"explicit_http_config: {http3_protocol_options: {}}", config.HTTP3},
		{"use_downstream_protocol_config: {}", config.UseDownstream},
		{"auto_config: {}", config.AutoALPN},
	}
	for _, tt := range tests {
		if got := http(tt.fields).Protocol; got != tt.want {
			t.Errorf("%s: protocol %d, want %d", tt.fields, got, tt.want)
		}
	}
	h := http("explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 9}}, common_http_protocol_options: {idle_timeout: 4s, max_requests_per_connection: 3}, upstream_http_protocol_options: {auto_sni: true}")
	if h.HTTP2Options.MaxConcurrentStreams != 9 || h.IdleTimeout != 4*time.Second || h.MaxRequestsPerConnection != 3 || !h.AutoSNI {
		t.Errorf("options = %+v", h)
	}
}

func TestAssignments(t *testing.T) {
	d := newDecoder()
	const v3text = "cluster_name: c\nendpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: '::1', port_value: 80}}}}]}]\n"
	a, err := d.AssignmentText("", []byte(v3text), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	old, err := d.AssignmentText("", []byte(v3text), config.FormV2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Assignment, old.Assignment, compare); diff != "" {
		t.Errorf("the forms differ (-v3 +v2)\n%s", diff)
	}
	for _, p := range []*decode.ParsedAssignment{a, old} {
		again, err := d.AssignmentWire(p.TypeURL(), p.Any().Value, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.Assignment, again.Assignment, compare); diff != "" {
			t.Errorf("%s from the wire (-text +wire)\n%s", p.TypeURL(), diff)
		}
		again, err = d.AssignmentMessage(p.Message(), 0)
		if err != nil || again.Hash() != p.Hash() {
			t.Errorf("%s as message: %v", p.TypeURL(), err)
		}
	}
	if e := a.Assignment.Localities[0].Endpoints[0]; e.Address.IP != netip.IPv6Loopback() || e.Address.Port != 80 {
		t.Errorf("endpoint = %+v", e)
	}
	disabled, err := d.AssignmentText("", []byte("cluster_name: c\npolicy: {disable_overprovisioning: true}\n"), config.FormUnknown)
	if err != nil || disabled.Assignment.OverprovisioningFactor != 100 {
		t.Errorf("without overprovisioning: %+v, %v", disabled, err)
	}
	_, err = d.AssignmentText("f", []byte("cluster_name: c\nendpoints: [{priority: 200, lb_endpoints: [{endpoint: {address: {socket_address: {address: name, port_value: 80}}}}]}]\n"), config.FormUnknown)
	want := []string{
		`f:2:14: load assignment "c": endpoints[0].priority: 200 exceeds 128`,
		`f:2:83: load assignment "c": endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: "name" is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names`,
	}
	if diff := cmp.Diff(want, positioned(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
