package statsd

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// ReceivedEvent is an event and when it came.
type ReceivedEvent struct {
	Received time.Time
	line.Notice
}

// ReceivedCheck is the last state of a service check and when it came.
type ReceivedCheck struct {
	Received time.Time
	line.State
}

// notices keeps the last events and the states of service checks.
type notices struct {
	maxChecks int

	mu     sync.Mutex // guards the rest
	events ring[ReceivedEvent]
	checks map[string]*list.Element // by name, host and tags
	order  *list.List               // of ReceivedCheck, the last updated at the back
}

func newNotices(events, checks int) *notices {
	return &notices{
		maxChecks: checks,
		events:    newRing[ReceivedEvent](events),
		checks:    make(map[string]*list.Element),
		order:     list.New(),
	}
}

func (n *notices) event(e line.Notice, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events.add(ReceivedEvent{now, e})
}

func (n *notices) check(c line.State, now time.Time) {
	key := checkKey(&c)
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.checks[key]; e != nil {
		e.Value = ReceivedCheck{now, c}
		n.order.MoveToBack(e)
		return
	}
	if n.maxChecks == 0 {
		return
	}
	if n.order.Len() >= n.maxChecks {
		old := n.order.Remove(n.order.Front()).(ReceivedCheck)
		delete(n.checks, checkKey(&old.State))
	}
	n.checks[key] = n.order.PushBack(ReceivedCheck{now, c})
}

func checkKey(c *line.State) string {
	// None of the parts holds a control byte.
	return c.Name + "\x00" + c.Host + "\x00" + strings.Join(c.Tags, "\x00")
}

func (n *notices) listEvents() []ReceivedEvent {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.events.list()
}

func (n *notices) listChecks() []ReceivedCheck {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]ReceivedCheck, 0, n.order.Len())
	for e := n.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(ReceivedCheck))
	}
	return out
}
