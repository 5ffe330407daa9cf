package statsd

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// eventLog keeps the last events and the last state of each service check.
type eventLog struct {
	maxChecks int

	mu     sync.Mutex // guards the rest
	events ring[report.Event]
	checks map[string]*list.Element // by name, host and tags
	order  *list.List               // of report.ServiceCheck, the last updated at the back
}

func newEventLog(events, checks int) *eventLog {
	return &eventLog{
		maxChecks: checks,
		events:    newRing[report.Event](events),
		checks:    make(map[string]*list.Element),
		order:     list.New(),
	}
}

func (l *eventLog) event(e line.Event, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events.add(report.Event{Received: now, Event: e})
}

func (l *eventLog) check(c line.ServiceCheck, now time.Time) {
	key := checkKey(&c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.checks[key]; e != nil {
		e.Value = report.ServiceCheck{Received: now, ServiceCheck: c}
		l.order.MoveToBack(e)
		return
	}
	if l.maxChecks == 0 {
		return
	}
	if l.order.Len() >= l.maxChecks {
		old := l.order.Remove(l.order.Front()).(report.ServiceCheck)
		delete(l.checks, checkKey(&old.ServiceCheck))
	}
	l.checks[key] = l.order.PushBack(report.ServiceCheck{Received: now, ServiceCheck: c})
}

func checkKey(c *line.ServiceCheck) string {
	// The parts hold no control characters.
	return c.Name + "\x00" + c.Host + "\x00" + strings.Join(c.Tags, "\x00")
}

func (l *eventLog) listEvents() []report.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events.list()
}

func (l *eventLog) listChecks() []report.ServiceCheck {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]report.ServiceCheck, 0, l.order.Len())
	for e := l.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(report.ServiceCheck))
	}
	return out
}
