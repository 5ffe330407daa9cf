package sinkqueue

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"time"

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
	// QueueBytes limits the queued bytes, and the memory that packets take beside them:
	// about 64 bytes each. Default 16 MiB.
	QueueBytes int
	// QueueAge is how long a packet can wait. Default 10 minutes.
	QueueAge time.Duration
	// Resend sends packets again whose delivery is unknown, at the risk that
	// their increments count twice.
	Resend bool
	// Logger logs outages and panics. If nil, nothing is logged.
	Logger *slog.Logger

	values [][]byte // of Tags, set by Check
}

// Check sets the default name, kind. If a setting is wrong it returns an error that
// begins with the name of a package.
func (o *Options) Check(pkg, kind string) error {
	o.Name = cmp.Or(o.Name, kind)
	if o.Store == nil {
		return errors.New(pkg + ": no store")
	}
	if o.Interval < 0 {
		return errors.New(pkg + ": the interval is negative")
	}
	o.values = nil
	for _, t := range o.Tags {
		o.values = append(o.values, []byte(t.Value))
	}
	return nil
}

// AppendName appends the prefix and the name of the stat under c without its tags. It
// appends nothing if the stat has no name.
func (o *Options) AppendName(dst []byte, c *store.Cursor) []byte {
	start := len(dst)
	if o.Prefix != "" {
		dst = append(append(dst, o.Prefix...), '.')
	}
	at := len(dst)
	if f := c.Family(); f != nil {
		dst = append(dst, f.String()...)
	} else {
		dst = c.AppendName(dst)
	}
	if len(dst) == at {
		return dst[:start]
	}
	return dst
}

// EachTag calls yield with the tags of the stat under c, and then with the Tags
// that the stat does not have. Names are unique. Check must have been called.
func (o *Options) EachTag(c *store.Cursor, yield func(name string, value []byte)) {
	labels := c.Labels()
	for i, l := range labels {
		if !has(labels[:i], l.Name.String()) {
			yield(l.Name.String(), l.Value)
		}
	}
	for i, t := range o.Tags {
		if !has(labels, t.Name) {
			yield(t.Name, o.values[i])
		}
	}
}

func has(labels []store.Label, name string) bool {
	return slices.ContainsFunc(labels, func(l store.Label) bool { return l.Name.String() == name })
}
