package sinkqueue

import (
	"errors"
	"log/slog"
	"time"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Options are the settings that all sinks share.
type Options struct {
	// Name of the sink in metrics and logs. Default: the kind of the sink.
	Name string
	// Store is the store that is flushed. Required.
	Store *store.Store
	// Filter selects the stats to send.
	Filter Filter
	// Prefix and a dot are prepended to every name. Sinks for Prometheus use an
	// underscore in place of the dot.
	Prefix string
	// Tags are added to every stat.
	Tags []tags.Tag
	// Interval is how often the sink sends, a multiple of the flush interval.
	// Default: at every flush.
	Interval time.Duration
	// QueueBytes limits the queued bytes. Default 16 MiB.
	QueueBytes int
	// QueueAge is how long a packet can wait. Default 10 minutes.
	QueueAge time.Duration
	// Resend sends packets again whose delivery is unknown, at the risk that
	// their increments count twice.
	Resend bool
	// Logger logs outages and panics. If nil, nothing is logged.
	Logger *slog.Logger
}

// Check sets the default name, kind. If a setting is wrong it returns an error that
// begins with the name of a package.
func (o *Options) Check(pkg, kind string) error {
	if o.Name == "" {
		o.Name = kind
	}
	if o.Store == nil {
		return errors.New(pkg + ": no store")
	}
	if o.Interval < 0 {
		return errors.New(pkg + ": the interval is negative")
	}
	return nil
}

// Filter selects the stats that a sink sends. The zero value selects all.
type Filter struct {
	Include match.List   // full names; empty means all
	Exclude match.List   // full names, takes precedence
	Kinds   []store.Kind // empty means all
}

// Allows reports whether the sink sends a stat.
func (f *Filter) Allows(kind store.Kind, name string) bool {
	return f.AllowsKind(kind) && (len(f.Include) == 0 || f.Include.Match(name)) && !f.Exclude.Match(name)
}

// AllowsKind reports whether the sink sends stats of a kind at all.
func (f *Filter) AllowsKind(kind store.Kind) bool {
	allowed := len(f.Kinds) == 0
	for _, k := range f.Kinds {
		allowed = allowed || k == kind
	}
	return allowed
}

// AllowsStat is Allows for the stat under c.
func (f *Filter) AllowsStat(kind store.Kind, c *store.Cursor) bool {
	name := ""
	if f.NeedsName() {
		name = c.Name()
	}
	return f.Allows(kind, name)
}

// NeedsName reports whether Allows looks at names.
func (f *Filter) NeedsName() bool { return len(f.Include)+len(f.Exclude) > 0 }
