package sinkqueue_test

import (
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

// sink is the smallest sink with a Sender.
type sink struct{ sinkqueue.Sender }

func (sink) Flush(*store.Snapshot) error { return nil }

var _ interface {
	flush.Movable
	flush.IntervalSink
	flush.Reporter
} = sink{}
