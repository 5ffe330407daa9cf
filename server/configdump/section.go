package configdump

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"github.com/statsd-admin/statsd-admin/admin"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Section is one message of the dump.
type Section = admin.ConfigSection

// EndpointKey is the key of the section of endpoints.
const EndpointKey = "endpoint"

// Usual returns the sections that every dump has, empty, by key.
func Usual() map[string]Section {
	return map[string]Section{
		"route_scopes": {Message: &adminv3.ScopedRoutesConfigDump{}},
		"routes":       {Message: &adminv3.RoutesConfigDump{}},
		"secrets":      {Message: &adminv3.SecretsConfigDump{}},
	}
}

// millis returns a time with the precision of dumps, nil for the zero time.
func millis(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Truncate(time.Millisecond))
}
