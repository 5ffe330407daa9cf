// Package v2form adds the v2 message form to what a decoder of upstream/config
// accepts. It is a package of its own because its messages are heavy: they
// bring gRPC into the program.
//
//	d := config.NewDecoder(config.Options{V2: v2form.Messages()})
package v2form

import (
	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Messages returns the messages of the v2 form.
func Messages() *config.V2 {
	return &config.V2{
		Cluster:    func() proto.Message { return &api.Cluster{} },
		Assignment: func() proto.Message { return &api.ClusterLoadAssignment{} },
	}
}
