package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"github.com/statsd-admin/statsd-admin/internal/wire"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

// documented is a field of the tables that describe the cluster resource.
type documented struct {
	field string // of a row of fieldCases; of those that only group others, the first below it
	// absent is the value without the field, if only required fields are set.
	absent string
	// rejected are texts with errors, each followed by the expected error.
	rejected []string
}

// documentedFields lists the fields of those tables in their order.
func documentedFields() []documented {
	const (
		subset = "lb_subset_config: {subset_selectors: [{keys: [a, b]%s}]}"
		keys   = "lb_subset_config.subset_selectors[0].fallback_keys_subset: "
		dns    = "dns_failure_refresh_rate: "
	)
	selector := func(more string) string { return fmt.Sprintf(subset, more) }
	return []documented{
		{"name", "c", []string{"name: ''", "name: must not be empty", "name:", "name: must not be empty"}},
		{"alt_stat_name", "c", nil},
		{"transport_socket_matches.name", "a", []string{"transport_socket_matches: [{}]", "transport_socket_matches[0].name: must not be empty"}},
		{"type", "0", []string{"type: DNS", `type: "DNS" is not a discovery type (STATIC, STRICT_DNS, LOGICAL_DNS, EDS, ORIGINAL_DST)`,
			"{type: STATIC, cluster_type: {name: mine}}", "type: cannot be combined with cluster_type"}},
		{"cluster_type.name", "", []string{"cluster_type: {}", "cluster_type.name: must not be empty",
			"cluster_type: {name: other}", `cluster_type.name: "other" is not a known cluster type; known: mine, proxy.cluster.dns, proxy.cluster.eds, proxy.cluster.logical_dns, proxy.cluster.original_dst, proxy.cluster.static, proxy.cluster.strict_dns`}},
		{"eds_cluster_config.eds_config", "{Kind:3 Path: WatchedDirectory: API:<nil> InitialFetchTimeout:15s}", []string{"eds_cluster_config: {eds_config: {ads: {}}}", "eds_cluster_config: only allowed for type EDS, got STATIC"}},
		{"connect_timeout", "5s", []string{"connect_timeout: 0s", "connect_timeout: 0s must be greater than 0s"}},
		{"per_connection_buffer_limit_bytes", "1048576", []string{"per_connection_buffer_limit_bytes: -1", "per_connection_buffer_limit_bytes: -1 is not an integer between 0 and 4294967295"}},
		{"lb_policy", "0", []string{"lb_policy: CLUSTER_PROVIDED", "lb_policy: CLUSTER_PROVIDED, but type STATIC brings no load balancer"}},
		{"hosts", "<nil>", []string{"hosts: [{}]", "hosts[0]: needs one of socket_address, pipe",
			"{type: LOGICAL_DNS, hosts: []}", "load_assignment: type LOGICAL_DNS takes exactly one endpoint, got 0"}},
		{"load_assignment", "<nil>", []string{"load_assignment: {}", "load_assignment.cluster_name: must not be empty"}},
		{"health_checks", "[]", []string{"health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1}]",
			"health_checks[0]: needs one of http_health_check, tcp_health_check, grpc_health_check, custom_health_check"}},
		{"max_requests_per_connection", "0", []string{"max_requests_per_connection: many", `max_requests_per_connection: "many" is not an integer between 0 and 4294967295`}},
		{"circuit_breakers", "{MaxConnections:1024 MaxPendingRequests:1024 MaxRequests:1024 MaxRetries:3 MaxConnectionPools:18446744073709551615 RetryBudget:<nil> TrackRemaining:false}",
			[]string{"circuit_breakers: {thresholds: [{priority: LOW}]}", `circuit_breakers.thresholds[0].priority: "LOW" is not one of DEFAULT, HIGH`}},
		{"tls_context", "plaintext", []string{"tls_context: {sni: " + strings.Repeat("s", 256) + "}", `tls_context.sni: "` + strings.Repeat("s", 80) + `"… is longer than 255 bytes`}},
		{"upstream_http_protocol_options.auto_sni", "false", nil},
		{"common_http_protocol_options.idle_timeout", "1h0m0s", nil},
		{"http_protocol_options.allow_absolute_url", "true", nil},
		{"http2_protocol_options", "0", []string{"{http_protocol_options: {}, http2_protocol_options: {}}",
			"http2_protocol_options: cannot be combined with http_protocol_options under USE_CONFIGURED_PROTOCOL"}},
		{"extension_protocol_options", "map[]", []string{"extension_protocol_options: {x: {}}", `extension_protocol_options["x"]: no such filter`}},
		{"typed_extension_protocol_options", "map[]", []string{"typed_extension_protocol_options: {x: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}",
			`typed_extension_protocol_options["x"]: no such filter`}},
		{"dns_refresh_rate", "5s", []string{"dns_refresh_rate: 0.0009s", "dns_refresh_rate: 900µs is below the minimum of 1ms"}},
		{"dns_failure_refresh_rate.base_interval", "5s", []string{dns + "{}", "dns_failure_refresh_rate.base_interval: must be set",
			dns + "{base_interval: 0s}", "dns_failure_refresh_rate.base_interval: 0s must be greater than 0s"}},
		{"dns_failure_refresh_rate.max_interval", "10s", []string{dns + "{base_interval: 2s, max_interval: 1s}", "dns_failure_refresh_rate.max_interval: 1s is below base_interval 2s"}},
		{"respect_dns_ttl", "false", []string{"respect_dns_ttl: yes", `respect_dns_ttl: "yes" is not a boolean (true or false)`}},
		{"dns_lookup_family", "0", nil},
		{"dns_resolvers", "[]", []string{"dns_resolvers: [{socket_address: {address: dns.example, port_value: 53}}]", `dns_resolvers[0]: "dns.example" is not an IP address`}},
		{"use_tcp_for_dns_lookups", "false", nil},
		{"outlier_detection", "<nil>", []string{"outlier_detection: {max_ejection_percent: 101}", "outlier_detection.max_ejection_percent: 101 exceeds 100"}},
		{"cleanup_interval", "5s", []string{"cleanup_interval: 0s", "cleanup_interval: 0s must be greater than 0s"}},
		{"upstream_bind_config.source_address", "", []string{"upstream_bind_config: {source_address: {port_value: 1}}", "upstream_bind_config.source_address.address: must not be empty"}},
		{"transport_socket", "plaintext", []string{"transport_socket: {name: x}", `transport_socket.name: "x" is not a known transport socket; known: raw_buffer, tls`}},
		{"metadata", "map[]", nil},
		{"protocol_selection", "0", nil},
		{"upstream_connection_options.tcp_keepalive", "<nil>", nil},
		{"close_connections_on_host_health_failure", "false", nil},
		{"drain_connections_on_host_removal", "false", nil},
		{"filters", "[]", []string{"filters: [{}]", "filters[0].name: must not be empty"}},
		{"track_timeout_budgets", "false", nil},

		{"transport_socket_matches.match", "map[]", nil},
		{"transport_socket_matches.transport_socket", "plaintext", []string{"transport_socket_matches: [{name: m, transport_socket: {}}]",
			"transport_socket_matches[0].transport_socket.name: must not be empty"}},
		{"cluster_type.typed_config", "", nil},
		{"eds_cluster_config.service_name", "c", nil},

		{"lb_subset_config.fallback_policy", "1", nil},
		{"lb_subset_config.default_subset", "map[]", nil},
		{"lb_subset_config.subset_selectors.keys", "[a b]", nil},
		{"lb_subset_config.subset_selectors.fallback_policy", "0", nil},
		{"lb_subset_config.subset_selectors.fallback_keys_subset", "[]", []string{
			selector(", fallback_keys_subset: [a]"), keys + "only allowed with fallback_policy KEYS_SUBSET",
			selector(", fallback_policy: KEYS_SUBSET"), keys + "must not be empty with fallback_policy KEYS_SUBSET",
			selector(", fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c]"), keys + `"c" is not one of the selector's keys`,
			selector(", fallback_policy: KEYS_SUBSET, fallback_keys_subset: [b, a]"), keys + "must be smaller than keys"}},
		{"lb_subset_config.locality_weight_aware", "false", nil},
		{"lb_subset_config.scale_locality_weight", "false", nil},
		{"lb_subset_config.panic_mode_any", "false", nil},
		{"lb_subset_config.list_as_any", "false", nil},

		{"least_request_lb_config.choice_count", "2", []string{"{lb_policy: RANDOM, least_request_lb_config: {}}", "least_request_lb_config: needs lb_policy LEAST_REQUEST, got RANDOM"}},
		{"ring_hash_lb_config.minimum_ring_size", "1024", []string{"ring_hash_lb_config: {}", "ring_hash_lb_config: needs lb_policy RING_HASH, got ROUND_ROBIN",
			"{lb_policy: RING_HASH, ring_hash_lb_config: {minimum_ring_size: 8388609}}", "ring_hash_lb_config.minimum_ring_size: 8388609 exceeds 8388608"}},
		{"ring_hash_lb_config.hash_function", "0", nil},
		{"ring_hash_lb_config.maximum_ring_size", "8388608", []string{
			"{lb_policy: RING_HASH, ring_hash_lb_config: {maximum_ring_size: 8388609}}", "ring_hash_lb_config.maximum_ring_size: 8388609 exceeds 8388608"}},
		{"original_dst_lb_config.use_http_header", "false", []string{"{original_dst_lb_config: {}, ring_hash_lb_config: {}}", "ring_hash_lb_config and original_dst_lb_config cannot both be set",
			"{least_request_lb_config: {}, ring_hash_lb_config: {}}", "ring_hash_lb_config and least_request_lb_config cannot both be set",
			"{least_request_lb_config: {}, original_dst_lb_config: {}}", "original_dst_lb_config and least_request_lb_config cannot both be set"}},

		{"common_lb_config.healthy_panic_threshold", "50", []string{"common_lb_config: {healthy_panic_threshold: {value: 101}}",
			"common_lb_config.healthy_panic_threshold: 101 is not a percentage between 0 and 100"}},
		{"common_lb_config.zone_aware_lb_config.routing_enabled", "100", []string{"common_lb_config: {zone_aware_lb_config: {routing_enabled: {value: -1}}}",
			"common_lb_config.zone_aware_lb_config.routing_enabled: -1 is not a percentage between 0 and 100"}},
		{"common_lb_config.locality_weighted_lb_config", "false", []string{"common_lb_config: {zone_aware_lb_config: {}, locality_weighted_lb_config: {}}",
			"common_lb_config.zone_aware_lb_config: cannot be combined with locality_weighted_lb_config"}},
		{"common_lb_config.update_merge_window", "1s", nil},
		{"common_lb_config.ignore_new_hosts_until_first_hc", "false", nil},
		{"common_lb_config.close_connections_on_host_set_change", "false", nil},
		{"common_lb_config.zone_aware_lb_config.min_cluster_size", "6", nil},
		{"common_lb_config.zone_aware_lb_config.fail_traffic_on_panic", "false", nil},
	}
}

// olderOnly are the fields that only the older form has.
func olderOnly() []string {
	return []string{"hosts", "tls_context", "extension_protocol_options", "drain_connections_on_host_removal"}
}

// documentDecoder reads clusters as a proxy does that knows one type of its own
// and one filter that takes options.
func documentDecoder() *decode.Decoder {
	return decode.NewDecoder(decode.Options{
		V2: v2form.Messages(), ClusterTypes: map[string]bool{"mine": false}, ProtocolFilters: map[string]bool{"takes.options": true},
	})
}

// clusterOf returns the text of a cluster with some fields, in block or flow style.
func clusterOf(fields string) []byte {
	switch {
	case strings.HasPrefix(fields, "{"):
		return []byte("{name: c, " + fields[1:] + "\n")
	case strings.HasPrefix(fields, "name:"):
		return []byte(fields + "\n")
	}
	return []byte("name: c\n" + fields + "\n")
}

// TestDocumentedFields checks the documented fields in both forms: their defaults,
// rejected values, and that the configuration dump shows them in the form they were
// given in. [TestEveryFieldOfClustersIsInForce] checks their effect.
func TestDocumentedFields(t *testing.T) {
	d := documentDecoder()
	cases := map[string]fieldCase{}
	for _, c := range fieldCases() {
		cases[c.field] = c
	}
	for _, row := range documentedFields() {
		t.Run(row.field, func(t *testing.T) {
			c, ok := cases[row.field]
			if !ok {
				t.Fatal("nothing says how it is in effect")
			}
			for _, form := range []config.Form{config.FormV2, config.FormV3} {
				if form == config.FormV3 && slices.Contains(olderOnly(), row.field) {
					continue
				}
				before, err := d.ClusterText("", clusterOf(c.before), form)
				if err != nil {
					t.Fatal(err)
				}
				if got := shownValue(fieldAt(before.Cluster, c.path)); got != row.absent {
					t.Errorf("form %d: %s is %s without it, want %s", form, c.path, got, row.absent)
				}
				after, err := d.ClusterText("", clusterOf(c.after), form)
				if err != nil {
					t.Fatal(err)
				}
				if shown := dumped(t, after); !leadsTo(shown, strings.Split(row.field, ".")) {
					t.Errorf("form %d: the dump does not show it: %v", form, shown)
				}
				for i := 0; i < len(row.rejected); i += 2 {
					_, err := d.ClusterText("", clusterOf(row.rejected[i]), form)
					if want := row.rejected[i+1]; err == nil || !strings.HasSuffix(strings.Split(err.Error(), "\n")[0], ": "+wantIn(form, want)) {
						t.Errorf("form %d: %s\ngives %v,\nwant  %s", form, row.rejected[i], err, want)
					}
				}
			}
		})
	}
}

// wantIn returns a text as it is in a form: addresses of the newer one are of one
// more kind.
func wantIn(form config.Form, want string) string {
	if form == config.FormV3 {
		return strings.Replace(want, "one of socket_address, pipe", "one of socket_address, pipe, envoy_internal_address", 1)
	}
	return want
}

// shownValue is a compiled value in words.
func shownValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case config.Socket:
		if v.Kind == config.RawBuffer {
			return "plaintext"
		}
	}
	return fmt.Sprintf("%+v", v)
}

// dumped returns the cluster in the configuration dump as plain values. It expects that
// the dump reads back as the given message.
func dumped(t *testing.T, p *decode.ParsedCluster) map[string]any {
	t.Helper()
	section := configdump.Clusters("", func(yield func(configdump.Cluster) bool) {
		yield(configdump.Cluster{Name: p.Cluster.Name, Message: p.Any(), Updated: time.Unix(1, 0)})
	}, noClusters, noClusters)
	var w wire.Writer
	for _, m := range section.Lists["static_clusters"] {
		w.Message(m, wire.OmitDefaults)
	}
	var back adminv3.ClustersConfigDump_StaticCluster
	if err := protojson.Unmarshal(w.Bytes(), &back); err != nil {
		t.Fatalf("%v in %s", err, w.Bytes())
	}
	if m, err := back.GetCluster().UnmarshalNew(); err != nil || !proto.Equal(m, p.Message()) {
		t.Errorf("the dump %s is %v (%v), want %v", w.Bytes(), m, err, p.Message())
	}
	var out struct{ Cluster map[string]any }
	if err := json.Unmarshal(w.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Cluster
}

func noClusters(func(configdump.Cluster) bool) {}

// leadsTo reports whether names lead to a value, through all elements of lists.
func leadsTo(v any, names []string) bool {
	if len(names) == 0 {
		return true
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if leadsTo(e, names) {
				return true
			}
		}
	case map[string]any:
		if next, ok := v[names[0]]; ok {
			return leadsTo(next, names[1:])
		}
	}
	return false
}

// TestDocumentedEnumerations gives each value by its name, in lower case and by its
// number, in both forms. The first value of each is the default.
func TestDocumentedEnumerations(t *testing.T) {
	const (
		ring = "lb_policy: RING_HASH\nring_hash_lb_config: {hash_function: %s}"
		fell = "lb_subset_config: {subset_selectors: [{keys: [a, b]}], fallback_policy: %s}"
		sel  = "lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: %s}]}"
		keys = "lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: %s, fallback_keys_subset: [a]}]}"
	)
	more := map[string]string{ // what a value needs beside it
		"EDS": "\neds_cluster_config: {eds_config: {ads: {}}}", "ORIGINAL_DST": "\nlb_policy: CLUSTER_PROVIDED",
		"LOGICAL_DNS": "\n" + member, "ORIGINAL_DST_LB": "\ntype: ORIGINAL_DST", "CLUSTER_PROVIDED": "\ntype: ORIGINAL_DST",
		"USE_CONFIGURED_PROTOCOL": "\nhttp2_protocol_options: {}", "USE_DOWNSTREAM_PROTOCOL": "\nhttp2_protocol_options: {}",
	}
	tests := []struct {
		text, path string
		values     string // those that both forms have; number 0 first, "-" for a number without one
		older      string // a value of the older form alone, and its number
	}{
		{"type: %s", "Type", "STATIC STRICT_DNS LOGICAL_DNS EDS ORIGINAL_DST", ""},
		{"lb_policy: %s", "LB.Policy", "ROUND_ROBIN LEAST_REQUEST RING_HASH RANDOM - MAGLEV CLUSTER_PROVIDED", "ORIGINAL_DST_LB 4"},
		{"dns_lookup_family: %s", "DNS.Family", "AUTO V4_ONLY V6_ONLY", ""},
		{"protocol_selection: %s", "HTTP.Protocol", "USE_CONFIGURED_PROTOCOL USE_DOWNSTREAM_PROTOCOL", ""},
		{fell, "LB.Subset.Fallback", "NO_FALLBACK ANY_ENDPOINT DEFAULT_SUBSET", ""},
		{sel, "LB.Subset.Selectors.0.Fallback", "NOT_DEFINED NO_FALLBACK ANY_ENDPOINT DEFAULT_SUBSET", ""},
		{keys, "LB.Subset.Selectors.0.Fallback", "- - - - KEYS_SUBSET", ""},
		{ring, "LB.RingHash.Function", "XX_HASH MURMUR_HASH_2", ""},
	}
	d := documentDecoder()
	for _, tt := range tests {
		for _, form := range []config.Form{config.FormV2, config.FormV3} {
			compile := func(text string) any {
				p, err := d.ClusterText("", clusterOf(text), form)
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				return fieldAt(p.Cluster, tt.path)
			}
			seen := map[any]string{}
			try := func(value string, number int) {
				got := compile(fmt.Sprintf(tt.text, value) + more[value])
				for _, same := range []string{strings.ToLower(value), fmt.Sprint(number)} {
					if also := compile(fmt.Sprintf(tt.text, same) + more[value]); also != got {
						t.Errorf("form %d: %s is %v, but %s is %v", form, value, got, same, also)
					}
				}
				if other, ok := seen[got]; ok && value != "ORIGINAL_DST_LB" { // which means the same as its successor
					t.Errorf("form %d: %s and %s are both %v", form, value, other, got)
				}
				seen[got] = value
			}
			for n, value := range strings.Fields(tt.values) {
				if value != "-" {
					try(value, n)
				}
			}
			if value, number, ok := strings.Cut(tt.older, " "); ok && form == config.FormV2 {
				n, err := strconv.Atoi(number)
				if err != nil {
					t.Fatal(err)
				}
				try(value, n)
			}
			first := strings.Fields(tt.values)[0]
			if first == "-" {
				continue
			}
			without := strings.Replace(strings.Replace(tt.text, ", fallback_policy: %s", "", 1), "hash_function: %s", "", 1)
			if strings.HasSuffix(without, ": %s") {
				without = strings.TrimPrefix(more[first], "\n")
			}
			if got := compile(without); seen[got] != first {
				t.Errorf("form %d: without it %s is %v, want that of %s", form, tt.path, got, first)
			}
		}
	}
}

// TestDocumentedPrecedence: of two fields for one thing the newer one counts.
func TestDocumentedPrecedence(t *testing.T) {
	const host = "hosts: [{socket_address: {address: 10.0.0.9, port_value: 9}}]\n"
	d := documentDecoder()
	for text, want := range map[string]string{
		host:                           "10.0.0.9 plaintext",
		host + member:                  "10.0.0.1 plaintext",
		host + "tls_context: {sni: x}": "10.0.0.9 x",
		host + "tls_context: {sni: x}\ntransport_socket: " + strings.Replace(tlsSocket, "sni: x", "sni: y", 1): "10.0.0.9 y",
		host + "tls_context: {sni: x}\ntransport_socket: {name: raw_buffer}":                                   "10.0.0.9 plaintext",
	} {
		p, err := d.ClusterText("", clusterOf(text), config.FormV2)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Cluster.Assignment.Localities[0].Endpoints[0].Address.Host + " plaintext"
		if s := p.Cluster.Sockets.Default; s.Kind == config.TLSSocket {
			got = strings.Replace(got, "plaintext", s.TLS.SNI, 1)
		}
		if got != want {
			t.Errorf("%s\nis %s, want %s", text, got, want)
		}
	}
}

// TestNamesInStatistics: the alternative name replaces the name there, and colons
// become underscores in both.
func TestNamesInStatistics(t *testing.T) {
	for _, tt := range []struct{ text, name, want string }{
		{"name: a:b:c", "a:b:c", "cluster.a_b_c."},
		{"name: a:b\nalt_stat_name: c:d", "a:b", "cluster.c_d."},
		{"name: a\nalt_stat_name: ''", "a", "cluster.a."},
	} {
		for _, form := range []config.Form{config.FormV2, config.FormV3} {
			p, err := documentDecoder().ClusterText("", clusterOf(tt.text), form)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, nil)
			if err := r.AddStatic(p); err != nil {
				t.Fatal(err)
			}
			r.Cluster(tt.name).Current().Stats().CxTotal.Inc()
			r.check(tt.want, map[string]uint64{"upstream_cx_total": 1})
		}
	}
}
