package flush

import "time"

// SinkStatus describes the state of a sink.
type SinkStatus struct {
	Name     string
	Interval time.Duration // between two reports of the sink; 0 if admin requests flush

	Snapshots int           // waiting for the sink
	Flushes   uint64        // snapshots that the sink got
	Errors    uint64        // snapshots for which it returned an error
	Joined    uint64        // snapshots that it gets as one with the one before because it is slow
	Dropped   uint64        // snapshots that it did not get because it was stuck, or had ended
	Delivery  *SinkDelivery // nil for a sink that is not a [Reporter]
}

// SinkDelivery describes the packets of a sink that sends over a network or to a
// file.
type SinkDelivery struct {
	Kind   string // such as "statsd"
	Target string // where packets go, without secrets

	Packets, Bytes int           // queued
	LimitBytes     int           // of the queue
	Metrics        int           // queued or being sent
	Age            time.Duration // of the oldest packet in the queue
	Owed           int           // series with undelivered increments outside the queue

	Sent                             uint64 // packets
	SentMetrics                      uint64
	SentBytes                        uint64
	Failed                           uint64 // attempts
	Retries                          uint64
	Dropped                          uint64 // packets that exceeded a limit of the queue
	Ambiguous                        uint64 // packets whose delivery is unknown
	DroppedMetrics, AmbiguousMetrics uint64
	Lost                             uint64 // packets that cannot be delivered
	Rejected                         uint64 // metrics that the receiver did not accept
	LostCounts                       uint64 // counter increments that cannot be delivered

	LastSent    time.Time // zero if nothing was sent
	LastError   error     // nil if no attempt failed
	LastErrorAt time.Time // of LastError
	NextRetry   time.Time // zero unless the sink waits after an error
}

// Reporter is a [Sink] that reports on its packets. Delivery must be safe for
// concurrent use.
type Reporter interface {
	Sink
	Delivery() SinkDelivery
}

// Sinks returns the states of the sinks, in the order of Config.Sinks.
func (s *Scheduler) Sinks() []SinkStatus {
	all := make([]SinkStatus, len(s.workers))
	for i, w := range s.workers {
		all[i] = SinkStatus{
			Name: w.sink.Name(), Interval: w.every, Snapshots: int(w.queued.Value()),
			Flushes: w.flushes.Total(), Errors: w.errors.Total(), Joined: w.joined.Total(), Dropped: w.dropped.Total(),
		}
		if s.cfg.OnAdmin {
			all[i].Interval = 0
		}
		if r, ok := w.sink.(Reporter); ok {
			d := r.Delivery()
			all[i].Delivery = &d
		}
	}
	return all
}
