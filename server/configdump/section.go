package configdump

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Section is one message of the dump.
type Section struct {
	// Key is the sort key of the section. The usual keys are "bootstrap", "clusters",
	// "endpoint", "listeners", "route_scopes", "routes" and "secrets".
	Key string
	// Message is the message, such as a ClustersConfigDump. It is not modified.
	Message proto.Message
	// Lists maps repeated fields of Message to sequences that replace them: each
	// yields an element and the name that name_regex is matched against. They are
	// read while the response is being sent, possibly twice, and must not hold locks.
	// The caller owns the elements. Elements in Message are named by their field
	// "name" or by the message packed in it.
	Lists map[string]iter.Seq2[string, proto.Message]
}

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
