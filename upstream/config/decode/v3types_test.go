package decode

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestConfigurationsInV3FindNoV2Names: finding them parses all linked descriptors, which
// is a large part of a start.
func TestConfigurationsInV3FindNoV2Names(t *testing.T) {
	d := NewDecoder(Options{V2: &V2{
		Cluster:    func() proto.Message { return &clusterv3.Cluster{} },
		Assignment: func() proto.Message { return &endpointv3.ClusterLoadAssignment{} },
	}})
	d.v3Types = func() map[protoreflect.FullName]protoreflect.MessageType {
		t.Error("looked for v2 names")
		return nil
	}
	_, err := d.ClusterText("c.yaml", []byte(`
name: c
connect_timeout: 1s
load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
transport_socket:
  name: tls
  typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: c}
typed_extension_protocol_options: {}
metadata: {filter_metadata: {x: {a: 1}}}
`), config.FormV3)
	if err != nil {
		t.Error(err)
	}
}
