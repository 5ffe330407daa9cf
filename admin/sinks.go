package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// sinkRows returns the endpoint for the sinks of flushed stats.
func (s *Server) sinkRows() []Endpoint {
	if s.src.Sinks == nil {
		return nil
	}
	return []Endpoint{{
		Path: "/sinks", Group: groupStats, Help: "show the sinks of flushed stats: queues, sent and failed packets, last error", Serve: s.sinks,
		Params: []Param{textOrJSON, {Name: "name", Help: "only this sink"}},
	}}
}

func (s *Server) sinks(w *Response, r *Request) error {
	all := s.src.Sinks()
	if name := r.query.Value("name"); name != "" {
		all = slices.DeleteFunc(all, func(x flush.SinkStatus) bool { return x.Name != name })
	}
	slices.SortStableFunc(all, func(a, b flush.SinkStatus) int { return cmp.Compare(a.Name, b.Name) })
	p := newFacts(r)
	listOf(p, "sinks", all, p.sink)
	return p.send(w)
}

func (p *facts) sink(x flush.SinkStatus) {
	p.string("name", x.Name)
	d := x.Delivery
	if d != nil {
		p.string("kind", d.Kind)
		p.string("target", d.Target)
	}
	if x.Interval > 0 {
		p.float("interval_seconds", x.Interval.Seconds())
	}
	p.number("snapshots", x.Flushes)
	p.number("snapshots_waiting", uint64(x.Snapshots))
	p.number("snapshots_joined", x.Joined)
	p.number("snapshots_dropped", x.Dropped)
	p.number("snapshot_errors", x.Errors)
	if d == nil {
		return
	}
	p.object("queue", func() {
		p.number("packets", uint64(d.Packets))
		p.number("bytes", uint64(d.Bytes))
		p.number("limit_bytes", uint64(d.LimitBytes))
		p.float("age_seconds", d.Age.Seconds())
		p.number("owed_series", uint64(d.Owed))
	})
	p.object("sent", func() {
		p.number("packets", d.Sent)
		p.number("metrics", d.SentMetrics)
		p.number("bytes", d.SentBytes)
		p.moment("last", d.LastSent)
	})
	p.number("failed", d.Failed)
	p.number("retries", d.Retries)
	p.number("dropped", d.Dropped)
	p.number("ambiguous", d.Ambiguous)
	p.number("lost", d.Lost)
	p.number("rejected_metrics", d.Rejected)
	p.number("lost_increments", d.LostCounts)
	if d.LastError == nil {
		return
	}
	p.lastError(d.LastError.Error(), d.LastErrorAt)
	p.moment("next_retry", d.NextRetry)
}

// lastError writes an error and its time, which can be zero.
func (p *facts) lastError(text string, at time.Time) {
	p.object("last_error", func() {
		p.moment("time", at)
		text = strings.ToValidUTF8(text, "\ufffd")
		if redact.LooksSecret(text) {
			text = redact.Mark
		}
		p.string("text", text)
	})
}
