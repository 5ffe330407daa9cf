package decode_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestLessCommonFieldsAreCompiled(t *testing.T) {
	check := func(fields string) config.HealthCheck {
		return mustParse(t, "name: c\nhttp2_protocol_options: {}\nhealth_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, "+fields+"}]\n").Cluster.HealthChecks[0]
	}
	cluster := func(text string) *config.Cluster { return mustParse(t, "name: c\n"+text+"\n").Cluster }
	eds := func(fields string) config.ConfigSource {
		return cluster("type: EDS\neds_cluster_config: {eds_config: {" + fields + "}}").EDS.Source
	}
	const fetch = 15 * time.Second
	prefix := config.StringMatcher{Kind: config.MatchPrefix, Pattern: "p", IgnoreCase: true}
	tests := []struct {
		field     string
		got, want any
	}{
		{"headers", check("http_health_check: {path: /, request_headers_to_remove: [r], request_headers_to_add: [{header: {key: a, value: b}}, {header: {key: a, raw_value: Yg==}, append: false}, {header: {key: a}, append_action: ADD_IF_ABSENT, keep_empty_value: true}]}").HTTP.HeadersToAdd,
			[]config.HeaderToAdd{{Name: "a", Value: "b"}, {Name: "a", Value: "b", Append: config.OverwriteOrAdd}, {Name: "a", Append: config.AddIfAbsent, KeepEmpty: true}}},
		{"service name", check("http_health_check: {path: /, service_name_matcher: {prefix: p, ignore_case: true}}").HTTP.ServiceName, &prefix},
		{"payload", check("http_health_check: {path: /, receive: [{text: 00fF}, {binary: YWI=}]}").HTTP.Receive, [][]byte{{0, 255}, []byte("ab")}},
		{"method", check("http_health_check: {path: /, method: HEAD, codec_client_type: http2}").HTTP.Method, "HEAD"},
		{"tcp", check("tcp_health_check: {send: {text: aa}, receive: [{text: bb}]}").TCP, config.TCPHealthCheck{Send: []byte{0xaa}, Receive: [][]byte{{0xbb}}}},
		{"grpc", check("grpc_health_check: {service_name: s, authority: a}").GRPC, config.GRPCHealthCheck{ServiceName: "s", Authority: "a"}},
		{"kinds", []config.HealthCheckKind{check("tcp_health_check: {}").Kind, check("grpc_health_check: {}").Kind, check("custom_health_check: {name: known.checker}").Kind}, []config.HealthCheckKind{config.TCPCheck, config.GRPCCheck, config.CustomCheck}},
		{"socket of checks", check("tcp_health_check: {}, transport_socket_match_criteria: {a: b}").TransportSocketMatch, map[string]any{"a": "b"}},
		{"eds by file", eds("path: /eds.yaml"), config.ConfigSource{Kind: config.SourcePath, Path: "/eds.yaml", InitialFetchTimeout: fetch}},
		{"eds by file and directory", eds("path_config_source: {path: /eds.yaml, watched_directory: {path: /dir}}"), config.ConfigSource{Kind: config.SourcePath, Path: "/eds.yaml", WatchedDirectory: "/dir", InitialFetchTimeout: fetch}},
		{"eds by itself", eds("self: {}, initial_fetch_timeout: 0s"), config.ConfigSource{Kind: config.SourceSelf}},
		{"eds by api", eds("api_config_source: {api_type: DELTA_GRPC, refresh_delay: 2s, grpc_services: [{envoy_grpc: {cluster_name: x}, timeout: 3s}], rate_limit_settings: {fill_rate: 2.5}}"),
			config.ConfigSource{Kind: config.SourceAPI, InitialFetchTimeout: fetch, API: &config.APISource{
				Type: config.APIDeltaGRPC, GRPC: []config.GRPCService{{ClusterName: "x"}}, RateLimit: &config.RateLimit{MaxTokens: 100, FillRate: 2.5},
			}}},
		{"eds name", cluster("type: EDS\neds_cluster_config: {eds_config: {ads: {}}}").EDS.ServiceName, "c"},
		{"eds service name", cluster("type: EDS\neds_cluster_config: {service_name: s, eds_config: {ads: {}}}").EDS.ServiceName, "s"},
		{"resolvers by config", cluster("dns_resolution_config: {resolvers: [{socket_address: {address: 1.2.3.4, port_value: 5}}], dns_resolver_options: {use_tcp_for_dns_lookups: true, no_default_search_domain: true}}").DNS.UseTCP, true},
		{"resolvers by extension", len(cluster("typed_dns_resolver_config: {name: r, typed_config: {'@type': type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: [{socket_address: {address: 1.2.3.4, port_value: 5}}]}}").DNS.Resolvers), 1},
		{"resolver of another kind", cluster("typed_dns_resolver_config: {name: r, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}").DNS.ResolverExtension.Name, "r"},
		{"http2", cluster("http2_protocol_options: {initial_stream_window_size: 65535, custom_settings_parameters: [{identifier: 7, value: 8}], connection_keepalive: {interval: 3s, timeout: 2s}}").HTTP.HTTP2Options,
			config.HTTP2Options{
				HpackTableSize: 4096, MaxConcurrentStreams: 1024, InitialStreamWindow: 65535, InitialConnectionWindow: 24 << 20,
				MaxOutboundFrames: 10000, MaxOutboundControlFrames: 1000, MaxInboundEmptyFrames: 1, MaxInboundPriorityFrames: 100, MaxInboundWindowUpdatesPerData: 10,
				Custom: []config.HTTP2Setting{{Identifier: 7, Value: 8}}, KeepaliveInterval: 3 * time.Second, KeepaliveTimeout: 2 * time.Second, KeepaliveJitterPercent: 15,
			}},
		{"slow start", cluster("round_robin_lb_config: {slow_start_config: {slow_start_window: 4s, aggression: {default_value: 2, runtime_key: k}, min_weight_percent: {value: 20}}}").LB.SlowStart,
			&config.SlowStart{Window: 4 * time.Second, Aggression: config.RuntimeDouble{Default: 2, Key: "k"}, MinWeightPercent: 20}},
		{"bias", cluster("lb_policy: LEAST_REQUEST\nleast_request_lb_config: {active_request_bias: {default_value: 0.5, runtime_key: k}}").LB.LeastRequest.Bias, config.RuntimeDouble{Default: 0.5, Key: "k"}},
		{"original dst", cluster("type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {use_http_header: true, http_header_name: h, upstream_port_override: 7, metadata_key: {key: k, path: [{key: a}, {key: b}]}}").LB.OriginalDst,
			config.OriginalDstOptions{UseHTTPHeader: true, HeaderName: "h", PortOverride: 7, MetadataKey: "k", MetadataPath: []string{"a", "b"}}},
		{"custom type", cluster("cluster_type: {name: no.balancer, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}").CustomType, &config.CustomType{Name: "no.balancer", Config: config.Any{TypeURL: "type.googleapis.com/google.protobuf.Struct"}}},
		{"per host", cluster("circuit_breakers: {per_host_thresholds: [{max_connections: 3}, {priority: HIGH, max_connections: 4}]}").CircuitBreakers.PerHostHigh, uint64(4)},
		{"first thresholds count", cluster("circuit_breakers: {thresholds: [{max_requests: 3}, {max_requests: 4}]}").CircuitBreakers.Default.MaxRequests, uint64(3)},
		{"retry budget", cluster("circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 25.5}, min_retry_concurrency: 9}}]}").CircuitBreakers.Default.RetryBudget, &config.RetryBudget{BudgetPercent: 25.5, MinRetryConcurrency: 9}},
		{"override status", cluster("common_lb_config: {override_host_status: {statuses: [HEALTHY, DEGRADED]}}").LB.OverrideHostStatus, []config.HealthStatus{config.HealthHealthy, config.HealthDegraded}},
		{"happy eyeballs", cluster("upstream_connection_options: {happy_eyeballs_config: {first_address_family_version: V4}}").HappyEyeballs, &config.HappyEyeballs{FirstFamilyV4: true, FirstFamilyCount: 1}},
		{"track", cluster("track_cluster_stats: {timeout_budgets: true, request_response_sizes: true}").Track, config.Track{TimeoutBudgets: true, RequestResponseSizes: true}},
		{"internal address", cluster("load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {server_listener_name: l}}}}]}]}").Assignment.Localities[0].Endpoints[0].Address, config.AddressSpec{Kind: config.InternalAddress, Listener: "l"}},
		{"named endpoint", cluster("load_assignment: {cluster_name: c, named_endpoints: {a: {address: {pipe: {path: /x}}}}, endpoints: [{lb_endpoints: [{endpoint_name: a}]}]}").Assignment.Localities[0].Endpoints[0].Address, config.AddressSpec{Kind: config.PipeAddress, Path: "/x"}},
		{"old metadata key", cluster("load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}, metadata: {filter_metadata: {envoy.transport_socket_match: {a: b}, proxy.transport_socket: {c: d}, other: {}}}}]}]}").Assignment.Localities[0].Endpoints[0].Metadata,
			config.Metadata{"proxy.transport_socket_match": {"a": "b"}, "other": {}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got, compare); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.field, diff)
		}
	}
}

func TestWellKnownMessagesInText(t *testing.T) {
	at := time.Date(2025, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	list, err := structpb.NewList([]any{1.0, "a", nil, map[string]any{"b": true}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, value string
		want        proto.Message
	}{
		{"Timestamp", "2025-03-04T05:06:07.089Z", timestamppb.New(at)},
		{"Timestamp", "'2025-03-04T05:06:07.089Z'", timestamppb.New(at)},
		{"Duration", "1.5s", durationpb.New(1500 * time.Millisecond)},
		{"FieldMask", "'a.b,c'", &fieldmaskpb.FieldMask{Paths: []string{"a.b", "c"}}},
		{"ListValue", "[1, a, null, {b: true}]", list},
		{"Value", "[1, a, null, {b: true}]", structpb.NewListValue(list)},
		{"Struct", "{b: true}", list.Values[3].GetStructValue()},
		{"UInt32Value", "7", wrapperspb.UInt32(7)},
		{"Int64Value", "-0x10", wrapperspb.Int64(-16)},
		{"DoubleValue", ".inf", wrapperspb.Double(positiveInfinity())},
		{"FloatValue", "'1.5'", wrapperspb.Float(1.5)},
		{"BytesValue", "YWI=", wrapperspb.Bytes([]byte("ab"))},
		{"StringValue", "'7'", wrapperspb.String("7")},
		{"BoolValue", "True", wrapperspb.Bool(true)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustParse(t, "name: c\nfilters: [{name: f, typed_config: {'@type': type.googleapis.com/google.protobuf."+tt.name+", value: "+tt.value+"}}]\n")
			got, err := p.Message().(*clusterv3.Cluster).Filters[0].TypedConfig.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, tt.want) {
				t.Errorf("%s reads as %v, want %v", tt.value, got, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, value, want string }{
		{"Timestamp", "yesterday", `"yesterday" is not a time, written like 2025-03-04T05:06:07Z`},
		{"FieldMask", "[a]", "a list is not a list of field names separated by commas"},
		{"ListValue", "{a: .nan}", "a mapping is not a list"},
		{"Struct", "[.nan]", "a list is not a mapping"},
		{"UInt32Value", "x", `"x" is not an integer between 0 and 4294967295`},
		{"DoubleValue", "x", `"x" is not a number`},
		{"Int64Value", "1.5", "1.5 is not an integer"},
	} {
		_, err := newDecoder().ClusterText("", []byte("name: c\nfilters: [{name: f, typed_config: {'@type': type.googleapis.com/google.protobuf."+tt.name+", value: "+tt.value+"}}]\n"), v3)
		if diff := cmp.Diff(one("filters[0].typed_config.value: "+tt.want), faults(t, err)); diff != "" {
			t.Errorf("%s %s (-want +got)\n%s", tt.name, tt.value, diff)
		}
	}
}

func positiveInfinity() float64 {
	var zero float64
	return 1 / zero
}

func TestNodesDecodeLikeText(t *testing.T) {
	d := newDecoder()
	node := func(text string) *yaml.Node {
		var doc yaml.Node
		if err := yaml.Load([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return &doc
	}
	doc := node("name: c\nalt_stat_name: &a x\nmetadata: {filter_metadata: {m: {k: *a}}}\n")
	before, err := yaml.Dump(doc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.ClusterNode(doc.Content[0], decode.Source{File: "f"}, config.FormUnknown)
	if err != nil || p.Cluster.Metadata["m"]["k"] != "x" {
		t.Errorf("ClusterNode = %+v, %v", p, err)
	}
	after, err := yaml.Dump(doc)
	if err != nil || string(after) != string(before) {
		t.Errorf("the tree was changed from\n%s\nto\n%s", before, after)
	}
	_, err = d.ClusterNode(node("{}").Content[0], decode.Source{File: "f", Index: 4}, v3)
	if diff := cmp.Diff(one("f:1:1: cluster #4: name: must not be empty"), positioned(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDecoderIsSharedByGoroutines(t *testing.T) {
	d := newDecoder()
	want := mustParse(t, seedTexts()[3])
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				p, err := d.ClusterText("", []byte(seedTexts()[3]), config.FormUnknown)
				if err != nil || p.Hash() != want.Hash() {
					t.Errorf("ClusterText = %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := mustParse(t, "name: c\ntls_context: {common_tls_context: {tls_certificates: [{certificate_chain: {filename: /c.pem}, private_key: {inline_string: canary}, password: {inline_bytes: Y2FuYXJ5}}]}}\n").Cluster
	key := c.Sockets.Default.TLS.Certificates[0]
	for _, tt := range []struct{ got, want string }{
		{key.PrivateKey.String(), "<inline>"},
		{key.Chain.String(), "/c.pem"},
		{config.Data{Kind: config.DataEnvironment, Name: "KEY"}.String(), "$KEY"},
		{config.Data{}.String(), ""},
		{c.Sockets.Default.Config.String(), "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"},
	} {
		if tt.got != tt.want {
			t.Errorf("String = %q, want %q", tt.got, tt.want)
		}
	}
	if key.PrivateKey.Inline != "canary" || key.Password.Inline != "canary" {
		t.Errorf("inline data %q, %q", key.PrivateKey.Inline, key.Password.Inline)
	}
}

func TestExtensionsOfMapsAreChecked(t *testing.T) {
	inner := &clusterv3.Cluster{Name: "c", LoadAssignment: nil, TypedExtensionProtocolOptions: map[string]*anypb.Any{
		"takes.options": {TypeUrl: "x/envoy.config.core.v3.Pipe", Value: nil},
	}}
	_, err := newDecoder().ClusterMessage(inner, 0)
	if diff := cmp.Diff(one(`typed_extension_protocol_options["takes.options"].path: must not be empty`), faults(t, err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
