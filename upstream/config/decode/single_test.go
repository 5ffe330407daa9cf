package decode_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestEachFieldOfPerHostThresholds: every field but priority and max_connections is
// refused, also if it is the only one.
func TestEachFieldOfPerHostThresholds(t *testing.T) {
	for field, refused := range map[string]bool{
		"priority: HIGH": false, "max_connections: 1": false,
		"max_pending_requests: 1": true, "max_requests: 1": true, "max_retries: 1": true, "retry_budget: {}": true,
		"max_connection_pools: 1": true, "track_remaining: true": true,
	} {
		_, err := newDecoder().ClusterText("c", []byte("name: c\ncircuit_breakers: {per_host_thresholds: [{"+field+"}]}\n"), v3)
		if got := strings.Contains(fmt.Sprint(err), "per_host_thresholds[0]: only priority and max_connections may be set"); got != refused {
			t.Errorf("%s: refused %t, %v", field, got, err)
		}
	}
}

// TestSourceAddresses: both lists of further addresses are taken, in their order.
func TestSourceAddresses(t *testing.T) {
	p := mustParse(t, "name: c\nupstream_bind_config: {source_address: {address: 10.0.0.1, port_value: 0}, additional_source_addresses: [{address: 10.0.0.2, port_value: 0}, {address: '::2', port_value: 7}],"+
		" extra_source_addresses: [{address: {address: '::1', port_value: 9}}]}\n")
	var got []netip.AddrPort
	for _, a := range append([]config.AddressSpec{p.Cluster.Bind.Source}, p.Cluster.Bind.Additional...) {
		ap, _ := a.AddrPort()
		got = append(got, ap)
	}
	var want []netip.AddrPort
	for _, s := range []string{"10.0.0.1:0", "10.0.0.2:0", "[::2]:7", "[::1]:9"} {
		want = append(want, netip.MustParseAddrPort(s))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEndpointMistakes has one mistake of an endpoint each.
func TestEndpointMistakes(t *testing.T) {
	for _, tt := range []struct{ endpoint, want string }{
		{"{}", "address: must be set"},
		{"{address: {socket_address: {address: 10.0.0.1, port_value: 1}}, health_check_config: {address: {socket_address: {address: a.example, port_value: 1}}}}", `health_check_config.address.socket_address.address: "a.example" is not an IP address`},
		{"{address: {socket_address: {address: 10.0.0.1, port_value: 1}}, health_check_config: {address: {socket_address: {address: 10.0.0.2, port_value: 1}}}}", ""},
		{"{address: {pipe: {path: /s}}, health_check_config: {port_value: 1}}", "health_check_config.port_value: 1 needs a socket address"},
		{"{address: {socket_address: {address: 10.0.0.1, port_value: 1}}, health_check_config: {port_value: 1}}", ""},
	} {
		_, err := newDecoder().AssignmentText("a", []byte("cluster_name: c\nendpoints: [{lb_endpoints: [{endpoint: "+tt.endpoint+"}]}]\n"), v3)
		if (err == nil) != (tt.want == "") || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %q", tt.endpoint, err, tt.want)
		}
	}
}

// TestTooManyWeightsAreReportedOnce: the locality that exceeds the sum is reported, and
// none behind it.
func TestTooManyWeightsAreReportedOnce(t *testing.T) {
	const host = "lb_endpoints: [{load_balancing_weight: %d, endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}}}]"
	heavy, light := fmt.Sprintf(host, uint32(1<<32-1)), fmt.Sprintf(host, 1)
	for _, tt := range []struct {
		text string
		want int
	}{
		{"{" + heavy + "}", 0},
		{"{" + heavy + "}, {" + light + "}", 1},
		{"{" + heavy + "}, {" + light + "}, {" + light + "}", 1},
		{"{" + heavy + "}, {priority: 1, " + light + "}", 0},
		{"{load_balancing_weight: 4294967295, " + light + "}, {load_balancing_weight: 1, " + light + "}, {load_balancing_weight: 1, " + light + "}", 1},
	} {
		_, err := newDecoder().AssignmentText("a", []byte("cluster_name: c\nendpoints: ["+tt.text+"]\n"), v3)
		if n := strings.Count(fmt.Sprint(err), "sum of weights exceeds 4294967295"); n != tt.want {
			t.Errorf("%s: %d errors, want %d: %v", tt.text, n, tt.want, err)
		}
	}
}

// TestWholeNumbersWithAPoint: up to 2^53 a number with a point or an exponent is a whole
// one; beyond, not every whole number has such a form.
func TestWholeNumbersWithAPoint(t *testing.T) {
	for text, ok := range map[string]bool{
		"5.0": true, "5e2": true, "5.5": false, "9007199254740991.0": true, "9007199254740992.0": false, "-5.0": false, "0x1p4": false,
	} {
		_, err := newDecoder().ClusterText("c", []byte("name: c\nlb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 1, maximum_ring_size: "+text+"}\n"), v3)
		if number := !strings.Contains(fmt.Sprint(err), "an integer"); number != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOnlyTheSecretIsHidden: an error about a field behind a secret one quotes its value.
func TestOnlyTheSecretIsHidden(t *testing.T) {
	const tls = "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{%s}]}}}\n"
	_, err := newDecoder().ClusterText("c", fmt.Appendf(nil, "name: c\n"+tls+"lb_policy: OPEN\n", "private_key: {inline_string: [hidden]}"), v3)
	if text := fmt.Sprint(err); strings.Contains(text, "hidden") || !strings.Contains(text, `"OPEN"`) {
		t.Error(err)
	}
}

// TestResponseThatIsNone says what the text has instead.
func TestResponseThatIsNone(t *testing.T) {
	for _, text := range []string{"[a]", "word"} {
		version, list, err := newDecoder().ResponseText("r", []byte(text))
		if version != "" || list != nil || err == nil || !strings.Contains(err.Error(), "is not a discovery response") {
			t.Errorf("%s: %q, %v, %v", text, version, list, err)
		}
	}
}

// TestUnknownFieldsAreCountedEverywhere has one in a list, in a map and below both.
func TestUnknownFieldsAreCountedEverywhere(t *testing.T) {
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1)
	endpoint := func() *endpointv3.Endpoint {
		a := &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/s"}}}
		a.ProtoReflect().SetUnknown(extra)
		e := &endpointv3.Endpoint{Address: a}
		e.ProtoReflect().SetUnknown(extra)
		return e
	}
	m := &endpointv3.ClusterLoadAssignment{ClusterName: "c",
		NamedEndpoints: map[string]*endpointv3.Endpoint{"a": endpoint()},
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint()},
		}}}},
	}
	m.ProtoReflect().SetUnknown(extra)
	m.Endpoints[0].ProtoReflect().SetUnknown(extra)
	p, err := newDecoder().AssignmentMessage(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.UnknownFields(); n != 6 {
		t.Errorf("%d unknown fields, want 6", n)
	}
}
