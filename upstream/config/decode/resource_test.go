package decode

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func TestResponseTextGivesItsResources(t *testing.T) {
	d := NewDecoder(Options{})
	const text = `"@type": type.googleapis.com/envoy.service.discovery.v3.DiscoveryResponse
version_info: "7"
type_url: type.googleapis.com/envoy.config.cluster.v3.Cluster
resources:
- &a
  "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: b
  version: "8"
  resource: {<<: *a, name: b}
- {"@type": x/envoy.config.endpoint.v3.ClusterLoadAssignment, clusterName: c}
- {"@type": x/envoy.service.discovery.v3.Resource, name: d, resource: {"@type": x/envoy.config.endpoint.v3.ClusterLoadAssignment, clusterName: other}}
- {"@type": x/envoy.service.discovery.v3.Resource, resource: {"@type": x/envoy.config.endpoint.v3.ClusterLoadAssignment, clusterName: e}}
`
	version, list, err := d.ResponseText("cds.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := version
	for i := range list {
		got += fmt.Sprintf(" %d:%s:%s", list[i].Index, list[i].Name, list[i].Version)
	}
	if want := "7 0:a: 1:b:8 2:c: 3:d: 4:e:"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range 2 {
		p, err := d.ClusterResource(&list[i])
		if err != nil {
			t.Fatal(err)
		}
		if p.Cluster.Name != list[i].Name {
			t.Errorf("cluster %q, want %q", p.Cluster.Name, list[i].Name)
		}
		if !proto.Equal(list[i].Any(), p.Any()) {
			t.Errorf("packed as %v, want %v", list[i].Any(), p.Any())
		}
	}
	a, err := d.AssignmentResource(&list[2])
	if err != nil || a.Assignment.ClusterName != "c" {
		t.Errorf("assignment %v, error %v", a, err)
	}
}

func TestResponseTextMistakes(t *testing.T) {
	d := NewDecoder(Options{})
	tests := []struct{ name, text, want string }{
		{"syntax", "version_info: [", "f.yaml:2:1: discovery response: not valid YAML: did not find expected node content while parsing a flow node"},
		{"list", "[]", "f.yaml:1:1: discovery response: a list is not a discovery response"},
		{"field", "resource: []", "f.yaml:1:1: discovery response: resource: unknown field, known are version_info, resources, type_url, nonce, canary and control_plane"},
		{"version", "version_info: 7", "f.yaml:1:15: discovery response: version_info: 7 is not a string"},
		{"resources", "resources: a", `f.yaml:1:12: discovery response: resources: "a" is not a list`},
		{"resource", "resources:\n- a", `f.yaml:2:3: discovery response: resources: "a" is not a mapping`},
		{"type", "resources:\n- name: a", `f.yaml:2:3: discovery response: resources: a resource needs "@type"`},
		{"envelope", "resources:\n- {\"@type\": x/envoy.service.discovery.v3.Resource}", `f.yaml:2:3: discovery response: resources: the envelope of a resource needs "resource"`},
		{"two", "resources: a\nresource: []", "f.yaml:1:12: discovery response: resources: \"a\" is not a list\nf.yaml:2:1: discovery response: resource: unknown field, known are version_info, resources, type_url, nonce, canary and control_plane"},
		{"twice", "nonce: a\nnonce: b", `f.yaml:2:1: discovery response: nonce: duplicate key "nonce", first used in line 1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := d.ResponseText("f.yaml", []byte(tt.text))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	_, list, err := d.ResponseText("f.yaml", []byte("resources:\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, name: a}"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `f.yaml:2:3: load assignment "a": @type: "x/envoy.config.cluster.v3.Cluster" is not envoy.config.endpoint.v3.ClusterLoadAssignment or envoy.api.v2.ClusterLoadAssignment`
	if _, err := d.AssignmentResource(&list[0]); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestNamesOfWireResources: the name of a resource is the last text in its first field, if
// its type is known to have it there and all of it can be read.
func TestNamesOfWireResources(t *testing.T) {
	const a, b, number = "\x0a\x01a", "\x0a\x01b", "\x08\x07"
	for _, tt := range []struct{ typeURL, value, want string }{
		{"envoy.config.cluster.v3.Cluster", a, "a"},
		{"envoy.api.v2.Cluster", a, "a"},
		{"envoy.config.endpoint.v3.ClusterLoadAssignment", a, "a"},
		{"envoy.api.v2.ClusterLoadAssignment", a, "a"},
		{"envoy.service.runtime.v3.Runtime", a, "a"},
		{"envoy.extensions.transport_sockets.tls.v3.Secret", a, "a"},
		{"envoy.api.v2.auth.Secret", a, "a"},
		{"type.googleapis.com/envoy.api.v2.Cluster", a, "a"},
		{"google.protobuf.StringValue", a, ""},
		{"envoy.api.v2.Cluster", "", ""},
		{"envoy.api.v2.Cluster", a + b, "b"},
		{"envoy.api.v2.Cluster", number + a + number, "a"},
		{"envoy.api.v2.Cluster", "\x12\x01x" + a + "\x12\x01y", "a"},
		{"envoy.api.v2.Cluster", a + "\x0a\x01\xff", "a"},
		{"envoy.api.v2.Cluster", a + "\x0a\x02b", ""},
		{"envoy.api.v2.Cluster", a + "\xff", ""},
		{"envoy.api.v2.Cluster", a + "\x12\x05y", ""},
	} {
		if r := WireResource(tt.typeURL, []byte(tt.value), 3); r.Name != tt.want || r.Index != 3 || r.TypeURL != tt.typeURL || string(r.Bytes()) != tt.value {
			t.Errorf("%s with %q: %+v, want the name %q", tt.typeURL, tt.value, r, tt.want)
		}
	}
}

func TestMessageResource(t *testing.T) {
	d := NewDecoder(Options{})
	_, list, err := d.ResponseText("f.yaml", []byte("resources:\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, name: \"\", nam: 1}\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, name: b}"))
	if err != nil {
		t.Fatal(err)
	}
	var m clusterv3.Cluster
	const want = `f.yaml:2:58: resource "": nam: unknown field of Cluster; did you mean name?`
	if err := d.MessageResource(&list[0], &m); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := d.MessageResource(&list[1], &m); err != nil || m.GetName() != "b" {
		t.Errorf("name %q, error %v", m.GetName(), err)
	}
	if list[0].Any() == nil || list[1].Any() == nil {
		t.Error("a resource with an unknown field cannot be packed")
	}
	_, unknown, err := d.ResponseText("f.yaml", []byte("resources:\n- {\"@type\": x/none.Such, name: a}"))
	if err != nil || unknown[0].Any() != nil {
		t.Errorf("a resource of an unknown type is packed: %v, %v", unknown[0].Any(), err)
	}
	wire := WireResource("x/google.protobuf.Value", []byte{0xff}, 0)
	const bad = `resource "": the bytes are not a google.protobuf.Value`
	if err := d.MessageResource(&wire, new(structpb.Value)); err == nil || err.Error() != bad {
		t.Errorf("error %v, want %s", err, bad)
	}
	const other = `resource "": type URL "x/google.protobuf.Value" is not envoy.config.cluster.v3.Cluster`
	if err := d.MessageResource(&wire, &m); err == nil || err.Error() != other {
		t.Errorf("error %v, want %s", err, other)
	}
}

func TestNamesInStatisticsAreClean(t *testing.T) {
	d := NewDecoder(Options{})
	for name, want := range map[string]string{"a:b": "a_b", "a\nserver.live: 0\x1b": "a_server.live_ 0_", "größe": "größe"} {
		p, err := d.ClusterMessage(&clusterv3.Cluster{Name: name}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Cluster.StatName != want || p.Cluster.Name != name {
			t.Errorf("name %q in statistics %q, want %q", p.Cluster.Name, p.Cluster.StatName, want)
		}
	}
}

func TestTargetsOfAPISources(t *testing.T) {
	d := NewDecoder(Options{})
	p, err := d.ClusterText("c.yaml", []byte(`
name: c
type: EDS
eds_cluster_config: {eds_config: {api_config_source: {api_type: GRPC, grpc_services: [
  {envoy_grpc: {cluster_name: x, authority: a, max_receive_message_length: 9, retry_policy: {retry_back_off: {base_interval: 0.1s, max_interval: 2s}}},
   initial_metadata: [{key: k, value: v}, {key: raw-bin, raw_value: AQI=}]},
  {google_grpc: {target_uri: "h:1", stat_prefix: s}, retry_policy: {retry_back_off: {base_interval: 3s}}},
  {google_grpc: {target_uri: "h:2", stat_prefix: s, channel_credentials: {ssl_credentials: {}}}},
  {google_grpc: {target_uri: "h:3", stat_prefix: s, call_credentials: [{access_token: t}]}}]}}}
`), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.GRPCService{
		{
			ClusterName: "x", Authority: "a", MaxReceiveBytes: 9, RetryBase: 100 * time.Millisecond, RetryMax: 2 * time.Second,
			Metadata: []config.HeaderToAdd{{Name: "k", Value: "v"}, {Name: "raw-bin", Value: "\x01\x02"}},
		},
		{TargetURI: "h:1", RetryBase: 3 * time.Second, RetryMax: 30 * time.Second},
		{TargetURI: "h:2", Credentials: true},
		{TargetURI: "h:3", Credentials: true},
	}
	if got := p.Cluster.EDS.Source.API.GRPC; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// FuzzResponseText checks of any text: it is split or refused with a place; the
// resources have types, and each is decoded or refused.
func FuzzResponseText(f *testing.F) {
	for _, s := range []string{
		"", "{}", "version_info: '1'", "resources: [{'@type': x/envoy.config.cluster.v3.Cluster, name: a}]",
		"resources:\n- &x {'@type': x/envoy.service.discovery.v3.Resource, name: b, resource: {'@type': x/envoy.config.endpoint.v3.ClusterLoadAssignment}}\n- *x",
		`{"resources": [{"@type": "x/envoy.service.discovery.v3.Resource", "resource": {"@type": "x/envoy.service.discovery.v3.Resource"}}]}`,
	} {
		f.Add(s)
	}
	d := NewDecoder(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		_, list, err := d.ResponseText("f", []byte(text))
		if err != nil && len(list) > 0 {
			t.Fatal("both resources and an error")
		}
		for i := range list {
			r := &list[i]
			if r.node == nil || r.Bytes() != nil {
				t.Fatal("a resource of a text has no tree")
			}
			if p, err := d.ClusterResource(r); err == nil && p.Cluster.Name == "" {
				t.Fatal("a cluster without a name")
			}
			if p, err := d.AssignmentResource(r); err == nil && p.Assignment.ClusterName == "" {
				t.Fatal("a load assignment without a name")
			}
			_ = r.Any()
		}
	})
}
