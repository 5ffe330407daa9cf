//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apiv2 "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// positioned returns the lines of an error.
func positioned(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestTextMistakesHavePositions(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"syntax", "name: [", one(`f:2:1: cluster #0: not valid YAML: did not find expected node content while parsing a flow node`)},
		{"two-documents", "name: a\n---\nname: b\n", one(`f: cluster #0: not valid YAML: expected single document, found multiple`)},
		{"not-a-mapping", "- a", one(`f:1:1: cluster #0: a list is not a mapping with fields of Cluster`)},
		{"unknown-field", "name: c\nnome: d", one(`f:2:1: cluster "c": nome: unknown field of Cluster; did you mean name?`)},
		{"unknown-nested", "name: c\ncommon_lb_config:\n  foo: 1\n", one(`f:3:3: cluster "c": common_lb_config.foo: unknown field of Cluster.CommonLbConfig; allowed: close_connections_on_host_set_change, consistent_hashing_lb_config, healthy_panic_threshold, ignore_new_hosts_until_first_hc, locality_weighted_lb_config, override_host_status, update_merge_window, zone_aware_lb_config`)},
		{"indented-too-far", "name: c\nload_assignment:\n  cluster_name: c\n  lb_policy: RANDOM\n", one(`f:4:3: cluster "c": load_assignment.lb_policy: unknown field of ClusterLoadAssignment; it is a field of Cluster`)},
		{"duplicate", "name: c\ntype: STATIC\ntype: EDS", one(`f:3:1: cluster "c": type: duplicate key "type", first used in line 2`)},
		{"two-spellings", "name: c\nlb_policy: RANDOM\nlbPolicy: MAGLEV", one(`f:3:1: cluster "c": lb_policy: set twice, as lb_policy and as lbPolicy`)},
		{"number-for-text", "name: 123", one(`f:1:7: cluster "123": name: 123 is not a string; put it in quotes`)},
		{"yes-is-text", "name: c\nrespect_dns_ttl: yes", one(`f:2:18: cluster "c": respect_dns_ttl: "yes" is not a boolean (true or false)`)},
		{"text-for-number", "name: c\nper_connection_buffer_limit_bytes: many", one(`f:2:36: cluster "c": per_connection_buffer_limit_bytes: "many" is not an integer between 0 and 4294967295`)},
		{"fraction-for-number", "name: c\nper_connection_buffer_limit_bytes: 1.5", one(`f:2:36: cluster "c": per_connection_buffer_limit_bytes: 1.5 is not an integer between 0 and 4294967295`)},
		{"negative-number", "name: c\nper_connection_buffer_limit_bytes: -1", one(`f:2:36: cluster "c": per_connection_buffer_limit_bytes: -1 is not an integer between 0 and 4294967295`)},
		{"number-too-large", "name: c\nper_connection_buffer_limit_bytes: 4294967296", one(`f:2:36: cluster "c": per_connection_buffer_limit_bytes: 4294967296 is not an integer between 0 and 4294967295`)},
		{"duration", "name: c\nconnect_timeout: 250ms", one(`f:2:18: cluster "c": connect_timeout: "250ms" is not a duration in seconds, written like 5s or 0.25s`)},
		{"duration-number", "name: c\nconnect_timeout: 5", one(`f:2:18: cluster "c": connect_timeout: 5 is not a duration in seconds, written like 5s or 0.25s`)},
		{"list-for-message", "name: c\ncommon_lb_config: []", one(`f:2:19: cluster "c": common_lb_config: a list is not a mapping with fields of Cluster.CommonLbConfig`)},
		{"message-for-list", "name: c\nhealth_checks: {}", one(`f:2:16: cluster "c": health_checks: a mapping is not a list`)},
		{"null-element", "name: c\nhealth_checks: [null]", one(`f:2:17: cluster "c": health_checks[0]: null is not an element`)},
		{"tag", "name: !mine c", one(`f:1:7: cluster "c": name: tag "!mine" is not supported; values have no tags here`)},
		{"binary-tag", "name: !!binary Yw==", one(`f:1:7: cluster "Yw==": name: tag "!!binary" is not supported; values have no tags here`)},
		{"key-of-list", "name: c\n? [a]\n: b", one(`f:2:3: cluster "c": a key must be text, not a list or a mapping`)},
		{"merge-of-text", "name: c\n<<: b", one(`f:2:5: cluster "c": a merge key (<<) needs a mapping or a list of mappings`)},
		{"any-without-type", "name: c\ntransport_socket: {name: tls, typed_config: {sni: x}}", one(`f:2:45: cluster "c": transport_socket.typed_config: needs @type with the name of the message`)},
		{"any-unknown-type", "name: c\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/no.such.Type}}", one(`f:2:55: cluster "c": transport_socket.typed_config: @type "type.googleapis.com/no.such.Type" is not a known message`)},
		{"inside-any", "name: c\ntransport_socket:\n  name: tls\n  typed_config:\n    '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\n    common_tls_context:\n      tls_params: {tls_minimum_protocol_version: SSL}", one(`f:7:50: cluster "c": transport_socket.typed_config.common_tls_context.tls_params.tls_minimum_protocol_version: "SSL" is not one of TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3`)},
		{"base64", "name: c\nupstream_bind_config: {socket_options: [{state: STATE_BOUND, buf_value: '***'}]}", one(`f:2:73: cluster "c": upstream_bind_config.socket_options[0].buf_value: "***" is not base64`)},
		{"infinite-metadata", "name: c\nmetadata: {filter_metadata: {x: {a: .inf}}}", one(`f:2:37: cluster "c": metadata.filter_metadata["x"]: .inf is not a number that JSON can hold`)},
		{"field-rule", "name: c\n\nconnect_timeout: 0s", one(`f:3:1: cluster "c": connect_timeout: 0s must be greater than 0s`)},
		{"absent-field-rule", "name: c\nhealth_checks:\n- timeout: 1s\n  interval: 1s\n  healthy_threshold: 1\n  tcp_health_check: {}", one(`f:3:3: cluster "c": health_checks[0].unhealthy_threshold: must be set`)},
		{"map-entry", "name: c\nextension_protocol_options:\n  a.b:\n    c: d", one(`f:3:3: cluster "c": extension_protocol_options["a.b"]: no such filter`)},
		{"wrong-type-url", "'@type': type.googleapis.com/x.Y\nname: c", one(`f:1:10: cluster "c": @type: "type.googleapis.com/x.Y" is not envoy.config.cluster.v3.Cluster or envoy.api.v2.Cluster`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newDecoder().ClusterText("f", []byte(tt.text), config.FormUnknown)
			if diff := cmp.Diff(tt.want, positioned(err)); diff != "" {
				t.Errorf("errors in\n%s\n(-want +got)\n%s", tt.text, diff)
			}
		})
	}
}

// TestTimesHaveARange uses a time of the right form that no message can hold.
func TestTimesHaveARange(t *testing.T) {
	text := "name: &n c\n\n# a comment\nfilters:\n- name: *n\n  typed_config:\n    '@type': type.googleapis.com/google.protobuf.Timestamp\n    value: 0000-01-01T00:00:00Z\n"
	_, err := newDecoder().ClusterText("f", []byte(text), v3)
	if diff := cmp.Diff(one(`f:8:12: cluster "c": filters[0].typed_config.value: "0000-01-01T00:00:00Z" is not a time, written like 2025-03-04T05:06:07Z`), positioned(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestManyErrorsAtOnce(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"errors-v3", `# A cluster with an error in most of its fields.
name: "backend"
type: STRICT_DNS
connect_timeout: 0s
lb_policy: RING_HASH
least_request_lb_config:
  choice_count: 1
load_assignment:
  endpoints:
  - locality: {zone: a}
    load_balancing_weight: 0
    lb_endpoints:
    - endpoint:
        address:
          socket_address: {address: "", port_value: 70000}
    - endpoint:
        address:
          pipe: {path: /run/x}
health_checks:
- timeout: 1s
  interval: -1s
  http_health_check:
    path: ""
    expected_statuses:
    - {start: 700, end: 600}
- timeout: 1s
outlier_detection:
  max_ejection_percent: 200
dns_refresh_rate: 0s
dns_failure_refresh_rate:
  base_interval: 5s
  max_interval: 1s
common_lb_config:
  healthy_panic_threshold: {value: 120}
transport_socket:
  name: tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    common_tls_context:
      tls_certificates:
      - private_key_provider: {}
`},
		{"errors-v2", `name: ""
type: LOGICAL_DNS
hosts:
- socket_address: {address: a.example, port_value: 80}
- pipe: {path: ""}
lb_policy: ORIGINAL_DST_LB
tls_context:
  sni: "` + strings.Repeat("s", 300) + `"
http_protocol_options: {}
http2_protocol_options: {}
extension_protocol_options:
  some.filter: {a: b}
typed_extension_protocol_options:
  takes.options:
    "@type": type.googleapis.com/google.protobuf.Struct
    value: {}
lb_subset_config:
  subset_selectors:
  - keys: [a, b]
    fallback_policy: KEYS_SUBSET
    fallback_keys_subset: [c]
upstream_bind_config: {}
`},
		{"errors-decoding", `name: backend
typo: 1
type: dynamic
connect_timeout: 250ms
lb_policy: ROUND_ROBIN
lbPolicy: RANDOM
health_checks: {}
circuit_breakers:
  thresholds:
  - max_connections: many
    max_connections: 5
respect_dns_ttl: yes
ring_hash_lb_config: {}
maglev_lb_config: {}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newDecoder().ClusterText(tt.name+".yaml", []byte(tt.text), config.FormUnknown)
			if err == nil {
				t.Fatal("no error")
			}
			golden.Check(t, tt.name, []byte(err.Error()+"\n"))
		})
	}
}

func TestWhatPeopleWrite(t *testing.T) {
	tests := []struct {
		name, text, plain string
	}{
		{"lower-case-enums", "name: c\ntype: strict_dns\nlb_policy: round_robin\n", "name: c\ntype: STRICT_DNS\nlb_policy: ROUND_ROBIN\n"},
		{"json-names", "name: c\nlbPolicy: RANDOM\nconnectTimeout: 1s\n", "name: c\nlb_policy: RANDOM\nconnect_timeout: 1s\n"},
		{"null-is-absent", "connect_timeout: null\nname: c\nhealth_checks: ~\n", "name: c\n"},
		{"hexadecimal", "name: c\nper_connection_buffer_limit_bytes: 0x10\n", "name: c\nper_connection_buffer_limit_bytes: 16\n"},
		{"hexadecimal-fraction", "name: c\ncommon_lb_config: {healthy_panic_threshold: {value: 0x10}}\n", "name: c\ncommon_lb_config: {healthy_panic_threshold: {value: 16}}\n"},
		{"quoted-number", "name: c\nper_connection_buffer_limit_bytes: '16'\n", "name: c\nper_connection_buffer_limit_bytes: 16\n"},
		{"exponent", "name: c\nper_connection_buffer_limit_bytes: 1e3\n", "name: c\nper_connection_buffer_limit_bytes: 1000\n"},
		{"alias", "name: &n c\nalt_stat_name: *n\n", "name: c\nalt_stat_name: c\n"},
		{"merge", "name: c\ncommon_lb_config:\n  <<: {update_merge_window: 3s, ignore_new_hosts_until_first_hc: true}\n  update_merge_window: 2s\n", "name: c\ncommon_lb_config: {update_merge_window: 2s, ignore_new_hosts_until_first_hc: true}\n"},
		{"merge-list", "name: c\ncommon_lb_config:\n  <<: [{update_merge_window: 3s}, {update_merge_window: 4s, close_connections_on_host_set_change: true}]\n", "name: c\ncommon_lb_config: {update_merge_window: 3s, close_connections_on_host_set_change: true}\n"},
		{"json", `{"name": "c\ud83d\ude00", "connectTimeout": "1s"}`, "name: c😀\nconnect_timeout: 1s\n"},
		{"number-key", "name: c\nmetadata: {filter_metadata: {1: {2: x}}}\n", "name: c\nmetadata: {filter_metadata: {'1': {'2': x}}}\n"},
		{"date-is-text", "name: 2001-01-01\n", "name: '2001-01-01'\n"},
		{"type-url", "'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c\n", "name: c\n"},
		{"enum-number", "name: c\ntype: 1\n", "name: c\ntype: STRICT_DNS\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, want := mustParse(t, tt.text), mustParse(t, tt.plain)
			if !proto.Equal(got.Message(), want.Message()) {
				t.Errorf("message of %q = %v, want %v", tt.text, got.Message(), want.Message())
			}
			if diff := cmp.Diff(want.Cluster, got.Cluster, compare); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestFormIsFoundOut(t *testing.T) {
	const check = "health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, http_health_check: {path: /, %s}}]\n"
	tests := []struct {
		name, text string
		want       config.Form
	}{
		{"neither", "name: c\n", config.FormV3},
		{"hosts", "name: c\nhosts: [{pipe: {path: /x}}]\n", config.FormV2},
		{"tls-context", "name: c\ntls_context: {}\n", config.FormV2},
		{"json-name", `{"name": "c", "tlsContext": {}}`, config.FormV2},
		{"drain", "name: c\ndrain_connections_on_host_removal: true\n", config.FormV2},
		{"ignore-health", "name: c\nignore_health_on_host_removal: true\n", config.FormV3},
		{"enum-v2", "name: c\ntype: ORIGINAL_DST\nlb_policy: original_dst_lb\n", config.FormV2},
		{"enum-v3", "name: c\ndns_lookup_family: V4_PREFERRED\n", config.FormV3},
		{"single-receive", "name: c\n" + fmt.Sprintf(check, "receive: {text: aa}"), config.FormV2},
		{"list-receive", "name: c\n" + fmt.Sprintf(check, "receive: [{text: aa}]"), config.FormV3},
		{"nested-v2", "name: c\n" + fmt.Sprintf(check, "use_http2: true"), config.FormV2},
		{"nested-v3", "name: c\n" + fmt.Sprintf(check, "response_buffer_size: 5"), config.FormV3},
		{"any-v2", "name: c\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext}}\n", config.FormV2},
		{"type-url-v2", "'@type': type.googleapis.com/envoy.api.v2.Cluster\nname: c\n", config.FormV2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustParse(t, tt.text).Cluster.Form; got != tt.want {
				t.Errorf("form of %q = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
	for _, tt := range []struct{ text, want string }{
		{"ignore_health_on_host_removal: true", "1: ignore_health_on_host_removal"},
		{"dns_lookup_family: V4_PREFERRED", "20: dns_lookup_family: V4_PREFERRED"},
		{strings.TrimSuffix(fmt.Sprintf(check, "receive: [{text: aa}]"), "\n"), "129: health_checks.http_health_check.receive: receive"},
		{strings.TrimSuffix(fmt.Sprintf(check, "response_buffer_size: 5"), "\n"), "120: health_checks.http_health_check: response_buffer_size"},
		{"transport_socket: {typed_config: {'@type': x/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}", "44: transport_socket.typed_config: envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"},
	} {
		_, err := newDecoder().ClusterText("f", []byte("name: c\nhosts: []\n"+tt.text+"\ntls_context: {}\ntyped_dns_resolver_config: {}\n"), config.FormUnknown)
		want := one("f:3:" + strings.Replace(tt.want, ": ", `: cluster "c": `, 1) + " belongs to the v3 form, but hosts in line 2 to the v2 form")
		if diff := cmp.Diff(want, positioned(err)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.text, diff)
		}
	}
}

func TestV2NeedsItsMessages(t *testing.T) {
	d := decode.NewDecoder(decode.Options{})
	const want = "the v2 form is not part of this program"
	for name, parse := range map[string]func() error{
		"form":     func() error { _, err := d.ClusterText("", []byte("name: c"), config.FormV2); return err },
		"type":     func() error { _, err := d.ClusterText("", []byte("'@type': x/envoy.api.v2.Cluster"), 0); return err },
		"type-url": func() error { _, err := d.ClusterWire("x/envoy.api.v2.Cluster", nil, 0); return err },
		"bytes":    func() error { _, err := d.ClusterBytes(nil, config.FormV2, 0); return err },
	} {
		if err := parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestUnknownFieldsCanBeAllowed(t *testing.T) {
	o := options()
	o.AllowUnknown = true
	p, err := decode.NewDecoder(o).ClusterText("f", []byte("name: c\nnome: d\ncommon_lb_config: {x: 1}\n"), config.FormUnknown)
	if err != nil {
		t.Fatal(err)
	}
	if p.UnknownFields() != 2 {
		t.Errorf("UnknownFields = %d, want 2", p.UnknownFields())
	}
}

func TestUnknownFieldsOnTheWireAreCounted(t *testing.T) {
	for _, m := range []proto.Message{
		&clusterv3.Cluster{Name: "c", CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{}},
		&apiv2.Cluster{Name: "c", CommonLbConfig: &apiv2.Cluster_CommonLbConfig{}},
	} {
		extra := protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1)
		m.ProtoReflect().SetUnknown(extra)
		nested := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName("common_lb_config")).Message()
		nested.SetUnknown(extra)
		p, err := newDecoder().ClusterMessage(m, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.UnknownFields() != 2 {
			t.Errorf("%T: UnknownFields = %d, want 2", m, p.UnknownFields())
		}
		if !proto.Equal(p.Message(), m) {
			t.Errorf("%T: unknown fields are lost in the message as given", m)
		}
	}
}

func TestUnknownFieldsAreDecidedOn(t *testing.T) {
	o := options()
	o.AllowUnknown = true
	var got []string
	d := decode.NewDecoder(o).WithUnknown(func(resource string, n int) error {
		got = append(got, fmt.Sprint(resource, " ", n))
		if n > 1 {
			return fmt.Errorf("%d fields are too new", n)
		}
		return nil
	})
	for text, refused := range map[string]bool{"name: c\n": false, "name: c\nnome: d\n": false, "name: c\nnome: d\ncommon_lb_config: {x: 1}\n": true} {
		_, err := d.ClusterText("f", []byte(text), config.FormUnknown)
		if (err != nil) != refused || refused && err.Error() != `f:1:1: cluster "c": 2 fields are too new` {
			t.Errorf("%q: %v", text, err)
		}
	}
	a := &endpointv3.ClusterLoadAssignment{ClusterName: "a"}
	a.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1))
	if _, err := d.AssignmentMessage(a, 0); err != nil {
		t.Error(err)
	}
	slices.Sort(got)
	if want := []string{`cluster "c" 1`, `cluster "c" 2`, `load assignment "a" 1`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestV3FieldsInV2BytesHaveNoEffect(t *testing.T) {
	value, err := proto.Marshal(&clusterv3.Cluster{
		Name: "c", DnsJitter: durationpb.New(time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newDecoder().ClusterBytes(value, config.FormV2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Cluster.DNS.Jitter != 0 || p.UnknownFields() != 1 {
		t.Errorf("Jitter = %v, UnknownFields = %d, want 0 and 1", p.Cluster.DNS.Jitter, p.UnknownFields())
	}
}

func TestWireMistakes(t *testing.T) {
	d := newDecoder()
	for name, tt := range map[string]struct {
		parse func() error
		want  string
	}{
		"bytes":    {func() error { _, err := d.ClusterBytes([]byte{0xff}, config.FormV3, 7); return err }, "cluster #7: the bytes are not a envoy.config.cluster.v3.Cluster"},
		"type-url": {func() error { _, err := d.ClusterWire("a/b", nil, 2); return err }, `cluster #2: type URL "a/b" is not envoy.config.cluster.v3.Cluster or envoy.api.v2.Cluster`},
		"nil":      {func() error { _, err := d.ClusterMessage(nil, 1); return err }, "cluster #1: no message"},
		"nil-v3":   {func() error { _, err := d.ClusterMessage((*clusterv3.Cluster)(nil), 1); return err }, "cluster #1: no message"},
		"no-name":  {func() error { _, err := d.ClusterMessage(&clusterv3.Cluster{}, 3); return err }, "cluster #3: name: must not be empty"},
		"named":    {func() error { _, err := d.ClusterMessage(&clusterv3.Cluster{Name: "n", LbPolicy: 99}, 3); return err }, `cluster "n": lb_policy: 99 is not a load balancing policy (ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG)`},
		"any-content": {func() error {
			_, err := d.ClusterMessage(&clusterv3.Cluster{Name: "n", Filters: []*clusterv3.Filter{{Name: "f", TypedConfig: &anypb.Any{TypeUrl: "x/envoy.config.core.v3.Pipe", Value: []byte{0xff}}}}}, 0)
			return err
		}, `cluster "n": filters[0].typed_config: the value is not a "envoy.config.core.v3.Pipe"`},
		"assignment": {func() error { _, err := d.AssignmentWire("a/b", nil, 2); return err }, `load assignment #2: type URL "a/b" is not envoy.config.endpoint.v3.ClusterLoadAssignment or envoy.api.v2.ClusterLoadAssignment`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.parse(); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestUnlinkedExtensionsPassOnTheWire(t *testing.T) {
	m := &clusterv3.Cluster{Name: "c", Filters: []*clusterv3.Filter{{Name: "f", TypedConfig: &anypb.Any{TypeUrl: "x/no.such.Type", Value: []byte("abc")}}}}
	p, err := newDecoder().ClusterMessage(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Filter{{Name: "f", Config: config.Any{TypeURL: "x/no.such.Type", Value: "abc"}}}
	if diff := cmp.Diff(want, p.Cluster.Filters, cmp.AllowUnexported()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSecretsAreNotInErrors(t *testing.T) {
	const canary, number = "c4n4ry-value", "987654321"
	const tls = "name: c\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{%s}]}}}\n"
	const provider = "private_key_provider: {provider_name: p, typed_config: {'@type': type.googleapis.com/envoy.config.%s}}"
	for name, text := range map[string]string{
		"bytes-in-key":      fmt.Sprintf(tls, "private_key: {inline_bytes: '"+canary+"!'}"),
		"number-for-key":    fmt.Sprintf(tls, "private_key: "+number),
		"number-for-bytes":  fmt.Sprintf(tls, "private_key: {inline_bytes: "+number+"}"),
		"list-for-key":      fmt.Sprintf(tls, "private_key: ["+canary+"]"),
		"number-for-text":   fmt.Sprintf(tls, "password: {inline_string: ["+canary+"]}"),
		"port":              fmt.Sprintf(tls, fmt.Sprintf(provider, "core.v3.SocketAddress, address: a, port_value: "+number)),
		"port-in-list":      fmt.Sprintf(tls, fmt.Sprintf(provider, "core.v3.BindConfig, additional_source_addresses: [{address: a, port_value: "+number+"}]")),
		"port-in-map":       fmt.Sprintf(tls, fmt.Sprintf(provider, "endpoint.v3.ClusterLoadAssignment, cluster_name: c, named_endpoints: {a: {address: {socket_address: {address: a, port_value: "+number+"}}}}")),
		"pem-in-name":       "name: c\nalt_stat_name: [x]\ntype: '-----BEGIN PRIVATE KEY-----" + canary + "'\n",
		"pem-as-field":      "name: c\n'-----BEGIN PRIVATE KEY-----" + canary + "': 1\n",
		"token-as-duration": "name: c\nconnect_timeout: eyJ" + canary + ".b.c\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newDecoder().ClusterText("f", []byte(text), config.FormUnknown)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), number) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

// bombs are small texts that stand for very many values.
func bombs() map[string]string {
	out := make(map[string]string)
	for _, wide := range []int{2, 3, 5, 9, 20} {
		for _, shape := range []string{"list", "map", "merge", "flow"} {
			var b strings.Builder
			b.WriteString("name: c\nx0: &x0 {a: b}\n")
			for i := 1; i < 40; i++ {
				fmt.Fprintf(&b, "x%d: &x%d ", i, i)
				switch shape {
				case "list", "flow":
					b.WriteString("[" + strings.Repeat(fmt.Sprintf("*x%d,", i-1), wide) + "]\n")
				case "map":
					b.WriteString("{")
					for j := range wide {
						fmt.Fprintf(&b, "k%d: *x%d,", j, i-1)
					}
					b.WriteString("}\n")
				case "merge":
					b.WriteString("{<<: [" + strings.Repeat(fmt.Sprintf("*x%d,", i-1), wide) + "], ")
					for j := range wide {
						fmt.Fprintf(&b, "k%d_%d: *x%d,", i, j, i-1)
					}
					b.WriteString("}\n")
				}
			}
			if shape == "flow" {
				b.WriteString("health_checks: *x39\n")
			} else {
				b.WriteString("metadata: {filter_metadata: {a: {b: *x39}}}\n")
			}
			out[fmt.Sprintf("%s-%d", shape, wide)] = b.String()
		}
	}
	var wide strings.Builder
	wide.WriteString("name: c\nx: &x {")
	for i := range 5000 {
		fmt.Fprintf(&wide, "k%d: 1, ", i)
	}
	wide.WriteString("}\nmetadata: {filter_metadata: {a: {<<: [" + strings.Repeat("*x, ", 20000) + "]}}}\n")
	out["merge-wide"] = wide.String()
	return out
}

func TestAliasBombsAreRefused(t *testing.T) {
	o := options()
	o.AllowUnknown = true // the anchors stand under unknown names
	d := decode.NewDecoder(o)
	for name, text := range bombs() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.ClusterText("f", []byte(text), config.FormUnknown)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: allocated %d MiB", name, grown>>20)
		}
	}
}

func TestSelfContainingAliasIsRefused(t *testing.T) {
	for _, text := range []string{
		"name: c\nmetadata: {filter_metadata: {a: &x {b: *x}}}\n",
		"name: c\nmetadata: {filter_metadata: {a: &x {b: [*x]}}}\n",
		"name: c\ncommon_lb_config: &x {<<: *x}\n",
	} {
		if _, err := newDecoder().ClusterText("f", []byte(text), config.FormUnknown); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestDepthIsLimited(t *testing.T) {
	nested := func(n int) string {
		return `{"name": "c", "metadata": {"filter_metadata": {"a": {"b": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}}}`
	}
	d := newDecoder()
	if _, err := d.ClusterText("", []byte(nested(20)), config.FormUnknown); err != nil {
		t.Errorf("20 levels are refused: %v", err)
	}
	for _, n := range []int{120, 5000} {
		if _, err := d.ClusterText("", []byte(nested(n)), config.FormUnknown); err == nil || !strings.Contains(err.Error(), "nested deeper than 100 levels") {
			t.Errorf("%d levels of JSON: %v", n, err)
		}
		if _, err := d.ClusterText("", []byte("# YAML\n"+nested(n)), config.FormUnknown); err == nil || n == 120 && !strings.Contains(err.Error(), "nested deeper than 100 levels") {
			t.Errorf("%d levels of YAML: %v", n, err)
		}
	}
}

func TestSizeIsLimited(t *testing.T) {
	d, large := newDecoder(), make([]byte, 64<<20+1)
	if _, err := d.ClusterBytes(large[1:], config.FormV3, 0); err == nil || !strings.Contains(err.Error(), "the bytes are not a") {
		t.Errorf("bytes at the limit: %v", err)
	}
	for name, parse := range map[string]func() error{
		"text":  func() error { _, err := d.ClusterText("", large, config.FormV3); return err },
		"bytes": func() error { _, err := d.ClusterBytes(large, config.FormV3, 0); return err },
	} {
		if err := parse(); err == nil || !strings.Contains(err.Error(), "67108865 bytes are more than the limit of 67108864") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDepthOfMessagesIsLimited nests values of two messages each.
func TestDepthOfMessagesIsLimited(t *testing.T) {
	nested := func(n int) *structpb.Struct {
		v := structpb.NewNullValue()
		for range n {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		return &structpb.Struct{Fields: map[string]*structpb.Value{"a": v}}
	}
	pack := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	withMetadata := func(n int) *clusterv3.Cluster {
		return &clusterv3.Cluster{Name: "c", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": nested(n)}}}
	}
	d := newDecoder()
	for name, tt := range map[string]struct {
		parse func(n int) error
		want  string
	}{
		"bytes": {func(n int) error {
			_, err := d.ClusterBytes(pack(withMetadata(n)).Value, config.FormV3, 0)
			return err
		}, "cluster #0: the bytes are not a envoy.config.cluster.v3.Cluster"},
		"bytes-v2": {func(n int) error {
			_, err := d.ClusterBytes(pack(withMetadata(n)).Value, config.FormV2, 0)
			return err
		}, "cluster #0: the bytes are not a envoy.api.v2.Cluster"},
		"message": {func(n int) error { _, err := d.ClusterMessage(withMetadata(n), 0); return err }, "cluster #0: the bytes are not a envoy.config.cluster.v3.Cluster"},
		"packed-in-packed": {func(n int) error {
			c := &clusterv3.Cluster{Name: "c"}
			for range n {
				c = &clusterv3.Cluster{Name: "c", Filters: []*clusterv3.Filter{{Name: "f", TypedConfig: pack(c)}}}
			}
			_, err := d.ClusterMessage(c, 0)
			return err
		}, "nested deeper than 100 levels"},
		"packed": {func(n int) error {
			_, err := d.ClusterMessage(&clusterv3.Cluster{Name: "c", Filters: []*clusterv3.Filter{{Name: "f", TypedConfig: pack(nested(n))}}}, 0)
			return err
		}, `filters[0].typed_config: the value is not a "google.protobuf.Struct"`},
		"resource": {func(n int) error {
			a := pack(&runtimev3.Runtime{Name: "r", Layer: nested(n)})
			r := decode.WireResource(a.TypeUrl, a.Value, 0)
			return d.MessageResource(&r, new(runtimev3.Runtime))
		}, "the bytes are not a envoy.service.runtime.v3.Runtime"},
	} {
		if err := tt.parse(30); err != nil {
			t.Errorf("%s: 30 values: %v", name, err)
		}
		if err := tt.parse(60); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: 60 values: %v, want %s", name, err, tt.want)
		}
	}
}

func TestResultSharesNothingWithItsInput(t *testing.T) {
	text := []byte("name: cluster-name\nmetadata: {filter_metadata: {a: {b: [c]}}}\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\nhealth_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {send: {binary: YWJj}}}]\n")
	want := mustParse(t, string(text))
	p, err := newDecoder().ClusterText("", text, config.FormUnknown)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = 'x'
	}
	value := bytes.Clone(p.Any().Value)
	fromWire, err := newDecoder().ClusterWire(p.TypeURL(), value, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range value {
		value[i] = 0
	}
	m := proto.Clone(p.Message()).(*clusterv3.Cluster)
	fromMessage, err := newDecoder().ClusterMessage(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	copied := proto.Clone(fromMessage.Message())
	m.HealthChecks[0].GetTcpHealthCheck().GetSend().GetBinary()[0] = 'x'
	m.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetPipe().Path = "/y"
	m.Metadata.FilterMetadata["a"].Fields["b"].GetListValue().Values[0] = nil
	if !proto.Equal(copied, fromMessage.Message()) {
		t.Error("the message as given changes with the message it was made of")
	}
	compiledMessage := fromMessage.Message().(*clusterv3.Cluster)
	compiledMessage.HealthChecks[0].GetTcpHealthCheck().GetSend().GetBinary()[0] = 'x'
	for name, got := range map[string]*config.Cluster{"text": p.Cluster, "wire": fromWire.Cluster, "message": fromMessage.Cluster} {
		if diff := cmp.Diff(want.Cluster, got, compare); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestHashTellsChanges(t *testing.T) {
	a, same, other := mustParse(t, "name: c\ntype: STATIC\n"), mustParse(t, "type: static\nname: c\n"), mustParse(t, "name: c\nconnect_timeout: 1s\n")
	old := mustParse(t, "'@type': type.googleapis.com/envoy.api.v2.Cluster\nname: c\ntype: STATIC\n")
	if a.Hash() != same.Hash() {
		t.Error("equal messages hash differently")
	}
	if a.Hash() == other.Hash() || a.Hash() == old.Hash() {
		t.Error("different messages hash alike")
	}
}

func TestMessageIsKeptAsGiven(t *testing.T) {
	p := mustParse(t, "name: c\ntype: STRICT_DNS\nhosts: [{socket_address: {address: a, port_value: 1}}]\ntls_context: {sni: s}\n")
	m, ok := p.Message().(*apiv2.Cluster)
	if !ok {
		t.Fatalf("message is %T", p.Message())
	}
	if len(m.Hosts) != 1 || m.TlsContext.GetSni() != "s" || m.LoadAssignment != nil || m.TransportSocket != nil || m.ConnectTimeout != nil {
		t.Errorf("message = %v", m)
	}
	if want := "type.googleapis.com/envoy.api.v2.Cluster"; p.TypeURL() != want || p.Any().TypeUrl != want {
		t.Errorf("type URL = %s, want %s", p.TypeURL(), want)
	}
	var again apiv2.Cluster
	if err := proto.Unmarshal(p.Any().Value, &again); err != nil || !proto.Equal(&again, m) {
		t.Errorf("Any holds %v, %v", &again, err)
	}
}

func TestListOfClusters(t *testing.T) {
	var doc yaml.Node
	text := "- name: a\n- name: b\n  type: EDS\n- {}\n- name: a\n- name: c\n  name: d\n"
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	locate := func(n *yaml.Node) decode.Position {
		return decode.Position{File: "boot", Line: n.Line + 100, Column: n.Column}
	}
	var list []*decode.ParsedCluster
	var got []string
	for i, n := range doc.Content[0].Content {
		p, err := newDecoder().ClusterNode(n, decode.Source{Locate: locate, Index: i}, config.FormUnknown)
		if err != nil {
			got = append(got, positioned(err)...)
			continue
		}
		list = append(list, p)
	}
	got = append(got, positioned(decode.CheckNames(list))...)
	want := []string{
		`boot:102:3: cluster "b": eds_cluster_config: must be set for type EDS`,
		`boot:104:3: cluster #2: name: must not be empty`,
		`boot:107:3: cluster "c": name: duplicate key "name", first used in line 6`,
		`boot:105:3: cluster "a": name: "a" is already used by another cluster`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := newDecoder().ClusterText("", []byte("name: c\nfilters: ["+strings.Repeat("{},", 500)+"]\n"), config.FormV3)
	var list *decode.Errors
	if !errors.As(err, &list) || len(list.List) != 100 || list.Dropped != 400 {
		t.Fatalf("%d errors and %d dropped, want 100 and 400", len(list.List), list.Dropped)
	}
	if lines := positioned(err); !slices.Contains(lines, "and 400 more") {
		t.Errorf("last line is %q", lines[len(lines)-1])
	}
}
