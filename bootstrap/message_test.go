package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// messageYAML is a configuration that the message has fields for.
const messageYAML = `
node: {id: n, cluster: c, locality: {zone: z}, metadata: {a: [1, x]}}
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 9902}}
  access_log:
  - name: file
    typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /tmp/a.log}
  profile_path: /tmp/x.prof
  allow_paths: [{exact: /ready}, {safe_regex: {regex: "/c.*"}}]
stats_config:
  stats_tags: [{tag_name: site, fixed_value: x}]
  use_all_default_tags: false
  histogram_bucket_settings: [{match: {prefix: a}, buckets: [0.5, 10]}]
stats_flush_interval: 0.25s
stats_server_version_override: 42
stats_sinks:
- {name: hystrix, typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.HystrixSink, num_buckets: 5}}
layered_runtime:
  layers: [{name: base, static_layer: {a: {b: 1}}}, {name: admin, admin_layer: {}}]
static_resources:
  clusters:
  - {name: web, connect_timeout: 1.5s, lb_policy: LEAST_REQUEST, load_assignment: {cluster_name: web}}
flags_path: /tmp/flags
header_prefix: x-mine
`

// messageOf returns the message of a configuration.
func messageOf(t *testing.T, c *Config) *bootstrapv3.Bootstrap {
	t.Helper()
	d := &decoder{doc: &document{}}
	m := new(bootstrapv3.Bootstrap)
	if err := protojson.Unmarshal(jsonText(t, d.plain(c.Root.Node, "")), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// wireOf returns the wire form of a message.
func wireOf(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMessagesAndYAMLAgree reads one configuration in all forms.
func TestMessagesAndYAMLAgree(t *testing.T) {
	want := mustParse(t, messageYAML)
	m := messageOf(t, want)
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.pb": wireOf(t, m), "a.pb_text": text} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(Source{Path: path}, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(Raw{}), sameMessages(), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}),
			cmpopts.IgnoreFields(Config{}, "Warnings"), cmpopts.IgnoreUnexported(Config{})); diff != "" {
			t.Errorf("%s (-yaml +message)\n%s", name, diff)
		}
		// Settings that the message has no fields for come from the other text.
		got, err = Load(Source{Path: path, YAML: "statsd: {}\nflags_path: /over"}, Options{})
		if err != nil || !got.StatsD.Enabled || got.FlagsPath != "/over" || got.Admin.ProfilePath != "/tmp/x.prof" {
			t.Errorf("%s, merged: %v", name, err)
		}
	}
}

// TestWrongMessages expects the same errors as for other files, without positions.
func TestWrongMessages(t *testing.T) {
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1)
	unknown := &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{}, Admin: &bootstrapv3.Admin{ProfilePath: "/p"}}
	unknown.FlagsPath = "/f" // a field without fields comes before the message
	unknown.Admin.ProtoReflect().SetUnknown(append(extra, extra...))
	listed := &bootstrapv3.Bootstrap{StatsSinks: []*metricsv3.StatsSink{{Name: "hystrix"}, {Name: "hystrix"}}}
	listed.StatsSinks[1].ProtoReflect().SetUnknown(extra)
	bad := messageOf(t, mustParse(t, "admin: {profile_path: /p}\nstats_flush_interval: 0.001s\n"))
	bad.StatsFlushInterval.Seconds = 4000
	odd := &bootstrapv3.Bootstrap{StatsSinks: []*metricsv3.StatsSink{{Name: "a", ConfigType: &metricsv3.StatsSink_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: "a/none"}}}}}
	for name, tt := range map[string]struct {
		file, text string
		want       []string
	}{
		"packed":       {"a.pb", string(wireOf(t, odd)), []string{"1 error in", "a.pb: proto: google.protobuf.Any: unable to resolve \"a/none\""}},
		"deep-text":    {"a.pb_text", "node { metadata { fields { key: 'a' value " + strings.Repeat("{ list_value { values ", 120) + "{ bool_value: true }" + strings.Repeat("} }", 120) + "} } }", []string{"1 error in", "a.pb_text: nested deeper than 100 levels"}},
		"nothing":      {"a.pb", "", nil},
		"no-wire":      {"a.pb", "\xff\xff", []string{"a.pb: not the message envoy.config.bootstrap.v3.Bootstrap in wire form"}},
		"no-text":      {"a.pb_text", "node {\n  id: 5\n}", []string{"a.pb_text:2:7: invalid value for string type"}},
		"unknown-text": {"a.pb_text", "nodes {}", []string{"a.pb_text:1:1: unknown field"}},
		"unknown":      {"a.pb", string(wireOf(t, unknown)), []string{"a.pb: admin.field 5000: unknown field; allowed: access_log, "}},
		"unknown-list": {"a.pb", string(wireOf(t, listed)), []string{"a.pb: stats_sinks[1].field 5000: unknown field; allowed: "}},
		"value":        {"a.pb", string(wireOf(t, bad)), []string{"a.pb: stats_flush_interval: \"4000.001s\" is not a duration in seconds in [1ms, "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tt.file, []byte(tt.text), Options{})
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
		})
	}
	c, err := Parse("a.pb", wireOf(t, unknown), Options{AllowUnknownFields: true})
	if err != nil || !slices.Equal(c.UnknownFields, []string{"a.pb: admin.field 5000"}) || c.Admin.ProfilePath != "/p" {
		t.Errorf("unknown fields that are allowed: %v, %v", c, err)
	}
}

// TestDepthOfMessages nests values of two messages each.
func TestDepthOfMessages(t *testing.T) {
	for n, ok := range map[int]bool{40: true, 60: false} {
		v := structpb.NewNullValue()
		for range n {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		m := &bootstrapv3.Bootstrap{Node: &corev3.Node{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": v}}}}
		_, err := Parse("a.pb", wireOf(t, m), Options{})
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "a.pb: not the message envoy.config.bootstrap.v3.Bootstrap in wire form") {
			t.Errorf("%d values: %v", n, err)
		}
	}
}

// TestUnknownFieldsOfTextForm: fields that are not known may have any value, at any
// level; with leave for them they are skipped, and each is listed.
func TestUnknownFieldsOfTextForm(t *testing.T) {
	const known = "flags_path: \"/f\"\nadmin {\n  profile_path: \"/p\"\n%s\n}\nheader_prefix: 'x-mine'\n"
	for text, want := range map[string]string{
		"":                                    "",
		"  a: 1":                              "4:3: field a",
		"a:-\t1.5e3":                          "4:1: field a",
		"a: - inf b: c":                       "4:1: field a;4:10: field b",
		"az_09AZ: 1.5e-9 b: c":                "4:1: field az_09AZ;4:17: field b",
		"a: az09AZ_ b: c":                     "4:1: field a;4:12: field b",
		"a: 'x' \"y\\\"}\"\n 'z', b: [1, 2];": "4:1: field a;5:7: field b",
		"a { b: 1 c <d: '}'> # }\n}":          "4:1: field a",
		"a: <b: [{}, {}]>":                    "4:1: field a",
		"a # x: 1\n: # }\n {}":                "4:1: field a",
		"[a.b/c]: {} [d.e]: 1":                "4:1: field [a.b/c];4:13: field [d.e]",
		"[d.e]: 1":                            "4:1: field [d.e]",
		"99: 5 99: 6":                         "4:1: field 99;4:7: field 99",
		"access_log { typed_config { w: 1 [type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog] { path: '/l' x {} } } name: 'file' u: 2 } profile: ''": "4:29: field w;4:123: field x;4:145: field u;4:152: field profile",
		"allow_paths { exact: 'ü' u: 1 }": "4:26: field u",
	} {
		c, err := Parse("a.pb_text", fmt.Appendf(nil, known, text), Options{AllowUnknownFields: true})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := strings.ReplaceAll(strings.Join(c.UnknownFields, ";"), "a.pb_text:", "")
		if got != want || c.FlagsPath != "/f" || c.Admin.ProfilePath != "/p" || c.HeaderPrefix != "x-mine" {
			t.Errorf("%q: unknown %q, want %q; known ones %q %q %q", text, got, want, c.FlagsPath, c.Admin.ProfilePath, c.HeaderPrefix)
		}
	}
	many := func(n int) error {
		_, err := Parse("a.pb_text", []byte(strings.Repeat("a: 1\n", n)), Options{AllowUnknownFields: true})
		return err
	}
	if err := many(100); err != nil {
		t.Errorf("100: %v", err)
	}
	if err := many(101); err == nil || !strings.Contains(err.Error(), "a.pb_text:101:1: more than 100 fields are not known") {
		t.Errorf("101: %v", err)
	}
}

// FuzzBootstrapMessage: whatever a file holds, reading it ends with a
// configuration or with errors that name the file.
func FuzzBootstrapMessage(f *testing.F) {
	f.Add(true, wireOf(f, &bootstrapv3.Bootstrap{FlagsPath: "/f", Admin: &bootstrapv3.Admin{ProfilePath: "/p"}}))
	f.Add(false, []byte("flags_path: \"/f\"\nadmin { profile_path: \"/p\" }"))
	f.Add(false, []byte("stats_sinks { name: \"hystrix\" typed_config { [type.googleapis.com/envoy.config.metrics.v3.HystrixSink] { num_buckets { value: 3 } } } }"))
	f.Fuzz(func(t *testing.T, wire bool, data []byte) {
		name := "a.pb_text"
		if wire {
			name = "a.pb"
		}
		_, err := Parse(name, data, Options{AllowUnknownFields: true})
		var errs *Errors
		if err != nil && (!errors.As(err, &errs) || len(errs.List) == 0 || errs.List[0].Position.File != name) {
			t.Errorf("%v", err)
		}
	})
}
