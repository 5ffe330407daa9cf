package configdump

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Section is one message of the dump.
type Section struct {
	// Key is its place: sections come in byte order of their keys.
	Key string
	// Message is the message. Nil: there is no such section at present.
	Message proto.Message
	// Lists are repeated fields of Message, by name, whose elements come one by
	// one, each with the name of what it configures. They can be read any number
	// of times; an element belongs to who reads it.
	Lists map[string]iter.Seq2[string, proto.Message]
}

// EndpointKey is the key of the section that is shown on demand only.
const EndpointKey = "endpoint"

// Registry holds the sections of a server. Make it with [New]; its methods are
// safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	sources map[string]func() Section
}

// New returns a registry whose sections are those that every dump has, without
// content: routes and secrets.
func New() *Registry {
	r := &Registry{sources: make(map[string]func() Section)}
	for key, message := range map[string]proto.Message{
		"route_scopes": &adminv3.ScopedRoutesConfigDump{},
		"routes":       &adminv3.RoutesConfigDump{},
		"secrets":      &adminv3.SecretsConfigDump{},
	} {
		r.Set(key, func() Section { return Section{Message: message} })
	}
	return r
}

// Set makes source the one of a section, in place of what was there. It is
// called for each dump, without a lock held, and may leave out the key. Nil
// takes the section away.
func (r *Registry) Set(key string, source func() Section) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if source == nil {
		delete(r.sources, key)
		return
	}
	r.sources[key] = source
}

// Sections returns the sections in order, that of endpoints only if it is asked
// for.
func (r *Registry) Sections(endpoints bool) []Section {
	r.mu.Lock()
	sources := maps.Clone(r.sources)
	r.mu.Unlock()
	var out []Section
	for _, key := range slices.Sorted(maps.Keys(sources)) {
		if key == EndpointKey && !endpoints {
			continue
		}
		if s := sources[key](); s.Message != nil {
			s.Key = key
			out = append(out, s)
		}
	}
	return out
}

// millis returns a time as dumps show it, nil for the zero time.
func millis(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Truncate(time.Millisecond))
}
