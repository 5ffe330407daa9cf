// Package v2form adds the v2 message form to what a decoder of
// upstream/config/decode accepts. It is a separate package because its messages
// are heavy: they link gRPC into the program.
//
//	d := decode.NewDecoder(decode.Options{V2: v2form.Messages()})
package v2form

import (
	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Messages returns constructors of the v2 messages.
func Messages() *decode.V2 {
	return &decode.V2{
		Cluster:    func() proto.Message { return &api.Cluster{} },
		Assignment: func() proto.Message { return &api.ClusterLoadAssignment{} },
	}
}
