package sinkqueue

import (
	"context"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
)

// Sender has the methods that sinks with a queue share. A sink embeds it and adds
// Flush.
type Sender struct{ q *Queue }

// Sender returns the methods of a sink that sends from q.
func (q *Queue) Sender() Sender { return Sender{q} }

// Name returns the name of the sink.
func (s Sender) Name() string { return s.q.cfg.Name }

// Interval returns how often the sink sends; 0 means every flush.
func (s Sender) Interval() time.Duration { return s.q.cfg.Interval }

// Delivery returns the state of the queue.
func (s Sender) Delivery() flush.SinkDelivery { return s.q.Delivery() }

// Run sends queued packets until ctx ends, or until the queue is empty after Close.
func (s Sender) Run(ctx context.Context) { s.q.Run(ctx) }

// Close makes Run send the rest and return.
func (s Sender) Close() { s.q.Close() }

// Hold stops sending and removes all undelivered packets.
func (s Sender) Hold(ctx context.Context) []flush.Parcel { return s.q.Hold(ctx) }

// Release ends Hold.
func (s Sender) Release(moved bool) { s.q.Release(moved) }

// Inherit queues a parcel that the sink of another process has not delivered.
func (s Sender) Inherit(p flush.Parcel) bool { return s.q.Inherit(p) }
