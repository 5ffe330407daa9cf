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

// mux multiplexes subscriptions over one stream and reopens it when it fails. The
// goroutine of run alone uses the stream and delivers responses.
type mux struct {
	method  string
	delta   bool
	alone   bool // the stream serves one kind
	nodeAll bool // every request carries the node, not only the first
	open    func(ctx context.Context) (stream, error)
	node    *node
	stats   controlStats
	limit   limiter
	kept    *budget
	backoff backoff
	log     *slog.Logger
	guard   guard.Guard

	wake   chan struct{} // signals run; capacity 1
	expiry *time.Timer   // of the entry that expires next; used by run alone

	mu     sync.Mutex // guards the fields below and the topics; not held while updates are applied
	topics []*topic   // in the order of their first request

	expiring  bool // some entry expires
	newcomers bool // some entry has fresh subscribers and a latest version
}

// stream is an open stream. Send and Recv can be called concurrently.
type stream interface {
	Send(proto.Message) error
	Recv() (*response, error)
	Close() // returns once its goroutines have stopped
}

// topic is the state of one kind on a stream.
type topic struct {
	kind    kind
	kept    *budget
	entries map[string]*entry // by name; of a wildcard kind the delivered ones
	all     *subscription     // subscriber of a wildcard kind; nil if there is none
	version string            // of the last accepted response

	changed bool // subscribers changed since the topic was last checked
	settled bool // they changed before that, so a request can be due

	// State of the current stream.
	opened bool
	nonce  string
	asked  map[string]bool
	reply  *reply // to be sent; nil if none is due

	refused bool    // the last response was refused
	pace    backoff // of consecutive refusals
}

// reply acknowledges or refuses a response.
type reply struct {
	nonce   string
	problem string // error text; empty if accepted
	after   time.Time
	first   *reply // an unsent refusal of an earlier response; delta only
}

// unsentRefusal returns the refusal that must be sent before a newer reply, or nil. The
// server must see that the newest refused response was refused, though a later one is
// accepted.
func (r *reply) unsentRefusal(accepted bool) *reply {
	switch {
	case r == nil:
		return nil
	case r.problem != "" && accepted:
		return &reply{nonce: r.nonce, problem: r.problem}
	}
	return r.first
}

// entry is one resource.
type entry struct {
	subscribers []*subscription
	fresh       []*subscription  // subscribers that have not received latest
	latest      *decode.Resource // accepted version; nil if there is none
	charge      charge           // of latest, or of an update that is being applied
	version     string           // of latest
	expires     time.Time        // zero means never
}

// follow adds subscription s until stop is called.
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
		s.place, s.freshPlace = len(e.subscribers), len(e.fresh)
		e.subscribers = append(e.subscribers, s)
		e.fresh = append(e.fresh, s)
		m.newcomers = m.newcomers || e.latest != nil
	}
	t.changed = true
	m.notify()
	return func() { m.leave(s) }
}

// leave removes s. Its entry stays until the server was notified.
func (m *mux) leave(s *subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topicLocked(s.kind)
	if t.all == s {
		t.all = nil
	}
	if e := t.entries[s.name]; e != nil {
		e.subscribers = removed(e.subscribers, s, func(s *subscription) *int { return &s.place })
		e.fresh = removed(e.fresh, s, func(s *subscription) *int { return &s.freshPlace })
	}
	t.changed = true
	m.notify()
}

// removed returns list without x, if that is at its place. The last member takes the
// place, so that many can leave one after another.
func removed[T any](list []*T, x *T, place func(*T) *int) []*T {
	i, last := *place(x), len(list)-1
	if i > last || list[i] != x {
		return list
	}
	list[i] = list[last]
	*place(list[i]) = i
	list[last] = nil
	return list[:last]
}

// topicLocked returns the topic of a kind. m.mu is held.
func (m *mux) topicLocked(k kind) *topic {
	for _, t := range m.topics {
		if t.kind == k {
			return t
		}
	}
	t := &topic{kind: k, kept: m.kept, entries: make(map[string]*entry), pace: backoff{rand: m.backoff.rand, first: firstDelay, last: lastRefusal}}
	m.topics = append(m.topics, t)
	return t
}

func (m *mux) notify() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run serves the subscriptions until ctx is done. It connects once there is one.
func (m *mux) run(ctx context.Context) {
	m.expiry = stoppedTimer()
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
			select { // a panic must not become a busy loop
			case <-ctx.Done():
			case <-time.After(lastDelay):
			}
		}
	}
}

// guarded runs session and turns a panic into an error.
func (m *mux) guarded(ctx context.Context) (answered bool, err error) {
	if !m.guard.Run("discovery stream", func() { answered, err = m.session(ctx) }) {
		err = errPanic
	}
	return answered, err
}

// wanted reports whether any topic has subscribers.
func (m *mux) wanted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.topics, (*topic).wantedLocked)
}

// fail counts a failure of the stream in all subscriptions.
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

// idle waits for d and meanwhile serves new subscribers from memory.
func (m *mux) idle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
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

// wantedLocked reports whether t has subscribers. The mux's mu is held.
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

// forgetLocked drops entries without subscribers. The mux's mu is held.
func (t *topic) forgetLocked() {
	if t.kind.service().wildcard {
		return
	}
	for name, e := range t.entries {
		if len(e.subscribers) == 0 {
			t.kept.restore(&e.charge, charge{})
			delete(t.entries, name)
		}
	}
}
