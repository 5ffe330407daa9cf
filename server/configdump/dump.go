package configdump

import (
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/admin/dump"
)

// Dump holds the sections of /config_dump. The zero value has none. It is safe for
// concurrent use.
type Dump struct {
	mu      sync.Mutex // guards sources
	sources map[string]func() Section
}

// Set sets the source of a section, replacing any earlier one; nil removes the
// section. The source is called for each dump without a lock held, and need not set
// Key. If it returns no message, the section is omitted.
func (d *Dump) Set(key string, source func() Section) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if source == nil {
		delete(d.sources, key)
		return
	}
	if d.sources == nil {
		d.sources = make(map[string]func() Section)
	}
	d.sources[key] = source
}

// Write implements admin.ConfigDump; see [Source.Write].
func (d *Dump) Write(w io.Writer, q dump.Query) error { return Source(d.sections).Write(w, q) }

// Sections implements admin.ConfigDump; see [Source.Sections].
func (d *Dump) Sections(endpoints bool) []dump.Section {
	return Source(d.sections).Sections(endpoints)
}

// sections returns the sections, that of endpoints only on request.
func (d *Dump) sections(endpoints bool) []Section {
	d.mu.Lock()
	sources := maps.Clone(d.sources)
	d.mu.Unlock()
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
