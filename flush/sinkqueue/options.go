package sinkqueue

import (
	"errors"
	"log/slog"
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
