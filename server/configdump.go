package server

import (
	"maps"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/admin"
)

// endpointKey is the key of the endpoints section of /config_dump, which is shown
// only on request.
const endpointKey = "endpoint"

// ConfigDump holds the sections of /config_dump. It is safe for concurrent use.
type ConfigDump struct {
	mu      sync.Mutex // guards sources
	sources map[string]func() admin.ConfigSection
}

// Set sets the source of a section, replacing any earlier one; nil removes the
// section. The source is called for each dump without a lock held, and need not set
// Key. If it returns no message, the section is omitted.
func (d *ConfigDump) Set(key string, source func() admin.ConfigSection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if source == nil {
		delete(d.sources, key)
		return
	}
	if d.sources == nil {
		d.sources = make(map[string]func() admin.ConfigSection)
	}
	d.sources[key] = source
}

// Sections returns the sections in key order, and the endpoints section only on
// request.
func (d *ConfigDump) Sections(endpoints bool) []admin.ConfigSection {
	d.mu.Lock()
	sources := maps.Clone(d.sources)
	d.mu.Unlock()
	var out []admin.ConfigSection
	for _, key := range slices.Sorted(maps.Keys(sources)) {
		if key == endpointKey && !endpoints {
			continue
		}
		if s := sources[key](); s.Message != nil {
			s.Key = key
			out = append(out, s)
		}
	}
	return out
}

// ConfigDump returns the sections of /config_dump. A proxy adds its listeners and
// routes to them. Keys and passwords are masked in the output.
func (s *Server) ConfigDump() *ConfigDump { return &s.dump }
