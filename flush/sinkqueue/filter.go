package sinkqueue

import (
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// Filter selects the stats that a sink sends. The zero value selects all.
type Filter struct {
	Include match.List   // full names; empty means all
	Exclude match.List   // full names, takes precedence
	Kinds   []store.Kind // empty means all
}

// Allows reports whether the sink sends a stat.
func (f *Filter) Allows(kind store.Kind, name string) bool {
	allowed := len(f.Kinds) == 0
	for _, k := range f.Kinds {
		allowed = allowed || k == kind
	}
	return allowed && (len(f.Include) == 0 || f.Include.Match(name)) && !f.Exclude.Match(name)
}

// NeedsName reports whether Allows looks at names.
func (f *Filter) NeedsName() bool { return len(f.Include)+len(f.Exclude) > 0 }
