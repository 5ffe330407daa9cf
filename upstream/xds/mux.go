package xds

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// mux carries subscriptions over one stream, which it opens again whenever it
// fails. One goroutine, that of run, speaks on the stream and hands out what
// comes.
type mux struct {
	method  string
	delta   bool
	alone   bool // the stream is for one kind only
	nodeAll bool // requests carry the node, not only the first
	open    func(ctx context.Context) (stream, error)
	node    *node
	stats   controlStats
	limit   limiter
	backoff backoff
	log     *slog.Logger
	guard   guard.Guard

	wake   chan struct{} // holds one note that something is to be done
	expiry *time.Timer   // of the entry that expires next; the goroutine of run has it

	mu     sync.Mutex // guards what follows, and what topics hold; not held while updates are applied
	topics []*topic   // in the order in which they were first asked for

	expiring  bool // some entry expires
	newcomers bool // some entry has a latest that fresh followers were not told of
}

// stream is a stream that is open. Send and Recv may be called at once.
type stream interface {
	Send(proto.Message) error
	Recv() (*response, error)
	Close() // waits until nothing of it runs any more
}

// topic is what is asked for of one kind.
type topic struct {
	kind    kind
	entries map[string]*entry // by name; of a wildcard kind those that were delivered
	all     *subscription     // of a wildcard kind; nil: nobody follows
	version string            // of the last response that was accepted

	changed bool // followers came or went since the topic was last looked at
	settled bool // they did before that, and the server may have to know

	// What the server knows on this stream.
	opened bool
	nonce  string
	asked  map[string]bool
	reply  *reply // owed to the server; nil: none

	refused bool    // the last response was
	pace    backoff // of refusals that follow each other
}

// reply is the answer to a response.
type reply struct {
	nonce   string
	problem string // empty: accepted
	after   time.Time
}

// entry is one resource.
type entry struct {
	subscribers []*subscription
	fresh       []*subscription  // of them those that were not told of latest yet
	latest      *decode.Resource // as accepted; nil: nothing came
	version     string           // of the latest; empty: nothing came
	expires     time.Time        // zero: never
}

// follow adds s until stop is called.
func (m *mux) follow(s *subscription) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topicLocked(s.kind)
	if s.name == "" {
		t.all = s
	} else {
		e := t.entries[s.name]
		if e == nil {
			e = new(entry)
			t.entries[s.name] = e
		}
		e.subscribers = append(e.subscribers, s)
		e.fresh = append(e.fresh, s)
		m.newcomers = m.newcomers || e.latest != nil
	}
	t.changed = true
	m.notify()
	return func() { m.leave(s) }
}

// leave takes s out. Its entry stays until the server was told.
func (m *mux) leave(s *subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topicLocked(s.kind)
	if t.all == s {
		t.all = nil
	}
	if e := t.entries[s.name]; e != nil {
		is := func(x *subscription) bool { return x == s }
		e.subscribers = slices.DeleteFunc(e.subscribers, is)
		e.fresh = slices.DeleteFunc(e.fresh, is)
	}
	t.changed = true
	m.notify()
}

// topicLocked returns the topic of a kind. m.mu is held.
func (m *mux) topicLocked(k kind) *topic {
	for _, t := range m.topics {
		if t.kind == k {
			return t
		}
	}
	t := &topic{kind: k, entries: make(map[string]*entry), pace: backoff{rand: m.backoff.rand, first: firstDelay, last: lastRefusal}}
	m.topics = append(m.topics, t)
	return t
}

func (m *mux) notify() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run follows until ctx is done. It connects once something is asked for.
func (m *mux) run(ctx context.Context) {
	m.expiry = stoppedTimer()
	defer m.expiry.Stop()
	for ctx.Err() == nil {
		if !m.wanted() {
			select {
			case <-ctx.Done():
			case <-m.wake:
			}
			continue
		}
		answered, err := m.guarded(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered {
			m.backoff.reset()
		}
		m.guard.Run("failed discovery stream", func() { m.fail(err) })
		if !m.guard.Run("pause after a discovery stream", func() { m.idle(ctx, m.backoff.next()) }) {
			select { // not at once, whatever it is that panics
			case <-ctx.Done():
			case <-time.After(lastDelay):
			}
		}
	}
}

// guarded is session, in which a panic is a failure.
func (m *mux) guarded(ctx context.Context) (answered bool, err error) {
	if !m.guard.Run("discovery stream", func() { answered, err = m.session(ctx) }) {
		err = errPanic
	}
	return answered, err
}

// wanted tells whether anything is asked for.
func (m *mux) wanted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.topics, (*topic).wantedLocked)
}

// fail tells all subscriptions that the server could not be asked.
func (m *mux) fail(err error) {
	m.log.Warn("discovery stream failed", "method", m.method, "error", err.Error())
	m.mu.Lock()
	var list []*subscription
	for _, t := range m.topics {
		if t.all != nil {
			list = append(list, t.all)
		}
		for _, e := range t.entries {
			list = append(list, e.subscribers...)
		}
	}
	m.mu.Unlock()
	for _, s := range list {
		s.failed()
	}
}

// idle waits, and serves newcomers from what is known meanwhile.
func (m *mux) idle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case <-m.expiry.C:
			m.expire()
		case <-m.wake:
			m.welcome()
		}
	}
}

// wantedLocked tells whether anybody follows t. The mux's mu is held.
func (t *topic) wantedLocked() bool {
	if t.kind.service().wildcard {
		return t.all != nil
	}
	for _, e := range t.entries {
		if len(e.subscribers) > 0 {
			return true
		}
	}
	return false
}

// forgetLocked drops what nobody follows any more. The mux's mu is held.
func (t *topic) forgetLocked() {
	if t.kind.service().wildcard {
		return
	}
	for name, e := range t.entries {
		if len(e.subscribers) == 0 {
			delete(t.entries, name)
		}
	}
}
