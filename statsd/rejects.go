package statsd

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

const (
	rejectedKept  = 20  // lines of each reason
	rejectedBytes = 512 // of each line
	loggedBytes   = 200
)

// RejectedLine is a line that was rejected.
type RejectedLine struct {
	Time     time.Time
	Listener string
	Source   string // address of the sender, "" if it has none
	Line     string // the first 512 bytes, as they came
}

// rejects remembers the last rejected lines of each reason and logs some.
type rejects struct {
	log  *slog.Logger
	now  func() time.Time
	keep bool

	mu         sync.Mutex // guards the rest
	last       [line.Reasons]ring[keptLine]
	logged     [line.Reasons]time.Time
	suppressed [line.Reasons]uint64
}

// keptLine is a RejectedLine whose memory is used again and again.
type keptLine struct {
	time     time.Time
	listener string
	source   string
	text     []byte
}

func newRejects(cfg *Config) *rejects {
	r := &rejects{log: cfg.Log, now: cfg.Now, keep: !cfg.ForgetRejected}
	for i := range r.last {
		r.last[i] = newRing[keptLine](rejectedKept)
	}
	return r
}

// note remembers a line, and logs it unless one of the same reason was logged
// less than a second ago.
func (r *rejects) note(listener string, reason line.Reason, text []byte, from source) {
	now := r.now()
	r.mu.Lock()
	suppressed := r.suppressed[reason]
	quiet := !r.logged[reason].IsZero() && now.Sub(r.logged[reason]) < time.Second
	if quiet {
		r.suppressed[reason]++
	} else {
		r.logged[reason] = now
		r.suppressed[reason] = 0
	}
	if r.keep {
		k := r.last[reason].oldest()
		k.time, k.listener, k.source = now, listener, from.String()
		k.text = append(k.text[:0], text[:min(len(text), rejectedBytes)]...)
		r.last[reason].add(k)
	}
	r.mu.Unlock()
	if !quiet {
		r.log.Info("statsd: line rejected", "reason", reason.String(), "listener", listener,
			"source", from.String(), "line", strconv.QuoteToASCII(string(text[:min(len(text), loggedBytes)])), "suppressed", suppressed)
	}
}

// list returns the last lines of a reason, oldest first.
func (r *rejects) list(reason line.Reason) []RejectedLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []RejectedLine
	for _, k := range r.last[reason].list() {
		out = append(out, RejectedLine{k.time, k.listener, k.source, string(k.text)})
	}
	return out
}
