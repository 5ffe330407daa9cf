package statsd

import (
	"log/slog"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

const (
	rejectedKept  = 20  // lines of each reason
	rejectedBytes = 512 // of each line
	loggedBytes   = 200
)

// message is a log message, kept until no lock is held.
type message struct {
	level slog.Level
	text  string
	args  []any
}

// rejects keeps the last rejected lines of each reason and limits how many are
// logged.
type rejects struct {
	now  func() time.Time
	keep bool

	mu         sync.Mutex // guards the rest
	last       [line.Reasons]ring[keptLine]
	logged     [line.Reasons]time.Time
	suppressed [line.Reasons]uint64
}

// keptLine is a report.RejectedLine with reusable memory.
type keptLine struct {
	time     time.Time
	listener string
	source   string
	text     []byte
}

func newRejects(cfg *Config) *rejects {
	r := &rejects{now: cfg.Now, keep: !cfg.ForgetRejected}
	for i := range r.last {
		r.last[i] = newRing[keptLine](rejectedKept)
	}
	return r
}

// note records a line and returns the message to log, if no line of the same
// reason was logged in the last second.
func (r *rejects) note(listener string, reason line.Reason, text []byte, from source) (m message, ok bool) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keep {
		k := r.last[reason].oldest()
		k.time, k.listener, k.source = now, listener, from.String()
		k.text = append(k.text[:0], text[:min(len(text), rejectedBytes)]...)
		r.last[reason].add(k)
	}
	if !r.logged[reason].IsZero() && now.Sub(r.logged[reason]) < time.Second {
		r.suppressed[reason]++
		return message{}, false
	}
	suppressed := r.suppressed[reason]
	r.logged[reason], r.suppressed[reason] = now, 0
	args := []any{
		"reason", reason.String(), "listener", listener, "source", from.String(),
		"line", string(text[:min(len(text), loggedBytes)]),
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	return message{slog.LevelInfo, "statsd: line rejected", args}, true
}

// list returns the last lines of a reason, oldest first.
func (r *rejects) list(reason line.Reason) []report.RejectedLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []report.RejectedLine
	for _, k := range r.last[reason].list() {
		out = append(out, report.RejectedLine{Time: k.time, Listener: k.listener, Source: k.source, Line: string(k.text)})
	}
	return out
}
