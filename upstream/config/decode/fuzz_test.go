package decode_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// seedTexts are clusters that use most of what a cluster can hold.
func seedTexts() []string {
	return []string{
		"name: c\n",
		"name: c\ntype: strict_dns\nhosts: [{socket_address: {address: a, port_value: 1}}]\ntls_context: {sni: s}\n",
		"name: c\ntype: LOGICAL_DNS\nload_assignment: {cluster_name: c, endpoints: [{priority: 1, lb_endpoints: [{endpoint: {address: {socket_address: {address: a, port_value: 1}}}, metadata: {filter_metadata: {envoy.lb: {canary: true, x: [1, {y: null}]}}}}]}]}\n",
		"name: c\nhealth_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, http_health_check: {path: /, receive: {text: aa}, service_name: s, use_http2: true, expected_statuses: [{start: 200, end: 300}]}}]\n",
		"name: c\ntype: EDS\neds_cluster_config: {eds_config: {api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: x}}]}}}\n",
		"name: c\ntype: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\ndrain_connections_on_host_removal: true\n",
		"name: c\nlb_policy: MAGLEV\nmaglev_lb_config: {table_size: 11}\ncircuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 5}}}]}\noutlier_detection: {}\n",
		"name: &a c\nalt_stat_name: *a\nmetadata: {filter_metadata: {<<: {k: {v: 0x10}}, l: {w: .5}}}\n",
		"name: c\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{private_key: {inline_bytes: YQ==}}], validation_context: {trusted_ca: {filename: /x}}}}}\n",
		"name: c\ntransport_socket: {name: tls, config: {sni: x}}\nload_assignment: {cluster_name: c, policy: {disable_overprovisioning: true, drop_overloads: [{category: x, drop_percentage: {numerator: 3}}]}}\n",
		"name: c\ntyped_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, auto_config: {}}}\n",
		"name: c\nload_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}}]}\n",
		`{"name":"c","connectTimeout":"0.25s","lbSubsetConfig":{"subsetSelectors":[{"keys":["a","b"],"fallbackPolicy":"KEYS_SUBSET","fallbackKeysSubset":["a"]}]}}`,
		"name: c\ndns_refresh_rate: 1s\ndns_failure_refresh_rate: {base_interval: 1s}\ndns_resolvers: [{socket_address: {address: 1.1.1.1, port_value: 53}}]\nupstream_bind_config: {source_address: {address: 1.2.3.4, port_value: 0}}\n",
		"name: c\nhosts: []\nmaglev_lb_config: {}\n",
		byType("envoy.cluster.dns", ", dns_lookup_family: ALL, dns_refresh_rate: 2s, dns_failure_refresh_rate: {base_interval: 1s}", "use_tcp_for_dns_lookups: true\n"),
		"name: c\nlb_subset_config: {subset_selectors: [{keys: [a], single_host_per_subset: true}]}\nstats_matcher: {reject_all: true}\n",
		"- a\n",
		"name: [",
	}
}

// fuzzCompare also takes NaN, which a number that only this program reads may
// be, as equal to itself.
var fuzzCompare = cmp.Options{compare, cmpopts.EquateNaNs()}

// checkAccepted checks what holds for every cluster that was accepted.
func checkAccepted(t *testing.T, d *decode.Decoder, p *decode.ParsedCluster) {
	t.Helper()
	again, err := d.ClusterWire(p.TypeURL(), p.Any().Value, 0)
	if err != nil {
		t.Fatalf("the bytes of an accepted message are refused: %v", err)
	}
	if diff := cmp.Diff(p.Cluster, again.Cluster, fuzzCompare); diff != "" {
		t.Fatalf("the bytes compile to something else\n%s", diff)
	}
	if again.Hash() != p.Hash() {
		t.Fatal("the bytes hash to something else")
	}
	if !proto.Equal(p.Message(), again.Message()) && proto.Equal(p.Message(), p.Message()) {
		t.Fatal("the bytes hold another message")
	}
	c := p.Cluster
	switch {
	case c.Name == "" || c.StatName == "" || strings.Contains(c.StatName, ":"):
		t.Fatalf("names %q, %q", c.Name, c.StatName)
	case c.ConnectTimeout <= 0 || c.DNS.RefreshRate <= 0 || c.DNS.FailureBase <= 0 || c.DNS.FailureMax < c.DNS.FailureBase || c.CleanupInterval <= 0:
		t.Fatalf("timers of %+v", c)
	case c.LB.PanicThreshold > 100 || c.LB.RingHash.MinimumSize < 1 || c.LB.LeastRequest.ChoiceCount < 1 || c.LB.Maglev.TableSize < 2:
		t.Fatalf("load balancing %+v", c.LB)
	case c.LB.LocalityWeighted && c.LB.ZoneAware != nil:
		t.Fatal("both localities and zones")
	case len(c.HealthChecks) > 1:
		t.Fatalf("%d health checks", len(c.HealthChecks))
	}
}

// checkRefused checks what holds for every error.
func checkRefused(t *testing.T, err error) {
	t.Helper()
	var list *decode.Errors
	if !errors.As(err, &list) || len(list.List) == 0 || len(list.List) > 100 {
		t.Fatalf("error %v is %T", err, err)
	}
	for _, e := range list.List {
		if e.Message == "" || strings.ContainsAny(e.Error(), "\n\x00") {
			t.Fatalf("error %q", e.Error())
		}
	}
}

// FuzzClusterYAML checks that no text causes a panic, that errors are typed and have
// one line each, and that an accepted cluster compiles to the same values from its
// wire bytes.
func FuzzClusterYAML(f *testing.F) {
	for _, s := range seedTexts() {
		f.Add([]byte(s), uint8(0))
	}
	for _, s := range bombs() {
		if len(s) < 1500 { // the larger ones only slow the search down
			f.Add([]byte(s), uint8(1))
		}
	}
	d := newDecoder()
	f.Fuzz(func(t *testing.T, text []byte, form uint8) {
		p, err := d.ClusterText("f.yaml", text, config.Form(form%3))
		if err != nil {
			checkRefused(t, err)
			return
		}
		checkAccepted(t, d, p)
	})
}

// FuzzClusterProto checks the same of any bytes, and that the JSON form of what
// is accepted, read by the walk over its text, means the same.
func FuzzClusterProto(f *testing.F) {
	d := newDecoder()
	for _, s := range seedTexts() {
		if p, err := d.ClusterText("", []byte(s), config.FormUnknown); err == nil {
			f.Add(p.Any().Value, p.Cluster.Form == config.FormV2)
		}
	}
	f.Fuzz(func(t *testing.T, value []byte, old bool) {
		form := config.FormV3
		if old {
			form = config.FormV2
		}
		p, err := d.ClusterBytes(value, form, 0)
		if err != nil {
			checkRefused(t, err)
			return
		}
		checkAccepted(t, d, p)
		text, err := protojson.Marshal(p.Message())
		if err != nil || p.UnknownFields() > 0 {
			return // not all bytes have a JSON form
		}
		again, err := d.ClusterText("", text, form)
		if err != nil {
			t.Fatalf("the JSON form is refused: %v\n%s", err, text)
		}
		if diff := cmp.Diff(p.Cluster, again.Cluster, fuzzCompare, ignoreExtensionBytes()); diff != "" {
			t.Fatalf("the JSON form compiles to something else\n%s\n%s", diff, text)
		}
	})
}

// ignoreExtensionBytes leaves out the bytes of extensions, which may be encoded
// in more than one way.
func ignoreExtensionBytes() cmp.Option {
	return cmp.Comparer(func(a, b config.Any) bool { return a.TypeURL == b.TypeURL })
}

// FuzzAssignmentProto checks the same of load assignments.
func FuzzAssignmentProto(f *testing.F) {
	d := newDecoder()
	for _, s := range []string{
		"cluster_name: c\n",
		"cluster_name: c\nendpoints: [{locality: {zone: z}, load_balancing_weight: 3, lb_endpoints: [{health_status: DRAINING, endpoint: {hostname: h, address: {socket_address: {address: 1.2.3.4, port_value: 5}}, health_check_config: {port_value: 6}}}]}]\n",
		"cluster_name: c\npolicy: {disable_overprovisioning: true}\n",
		"cluster_name: c\nnamed_endpoints: {a: {address: {pipe: {path: /x}}}}\nendpoints: [{lb_endpoints: [{endpoint_name: a}]}]\n",
	} {
		p, err := d.AssignmentText("", []byte(s), config.FormUnknown)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Any().Value, strings.Contains(p.TypeURL(), "v2"))
	}
	f.Fuzz(func(t *testing.T, value []byte, old bool) {
		url := "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
		if old {
			url = "type.googleapis.com/envoy.api.v2.ClusterLoadAssignment"
		}
		p, err := d.AssignmentWire(url, value, 0)
		if err != nil {
			checkRefused(t, err)
			return
		}
		again, err := d.AssignmentWire(url, p.Any().Value, 0)
		if err != nil {
			t.Fatalf("the bytes of an accepted message are refused: %v", err)
		}
		if diff := cmp.Diff(p.Assignment, again.Assignment, fuzzCompare); diff != "" {
			t.Fatalf("the bytes compile to something else\n%s", diff)
		}
		for _, l := range p.Assignment.Localities {
			for _, e := range l.Endpoints {
				if e.Address.IsZero() || e.Weight == 0 || e.Address.Kind == config.SocketAddress && !e.Address.IP.IsValid() {
					t.Fatalf("endpoint %+v", e)
				}
			}
		}
	})
}
