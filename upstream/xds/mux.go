package xds

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/upstream/config"
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

	wake chan struct{} // holds one note that something is to be done

	mu     sync.Mutex // guards topics and what they hold; not held while updates are applied
	topics []*topic   // in the order in which they were first asked for
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
	latest      *config.Resource // as accepted; nil: nothing came
	version     string           // of the latest; empty: nothing came
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
	for ctx.Err() == nil {
		if !m.wanted() {
			select {
			case <-ctx.Done():
			case <-m.wake:
			}
			continue
		}
		answered, err := m.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered {
			m.backoff.reset()
		}
		m.fail(err)
		m.idle(ctx, m.backoff.next())
	}
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
		case <-m.wake:
			m.welcome()
		}
	}
}

// session opens a stream and speaks on it until it fails. answered tells whether
// the server said anything.
func (m *mux) session(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := m.open(ctx)
	if err != nil {
		return false, err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer st.Close()
	defer cancel()
	m.stats.connected.Set(1)
	defer m.stats.connected.Set(0)
	m.begin()
	in, broken := make(chan *response), make(chan error, 1)
	reading.Go(func() {
		for {
			r, err := st.Recv()
			if err != nil {
				broken <- err
				return
			}
			select {
			case in <- r:
			case <-ctx.Done():
				return
			}
		}
	})
	first := true
	retry := time.NewTimer(0)
	defer retry.Stop()
	<-retry.C
	limited := false
	gather := time.NewTimer(0)
	defer gather.Stop()
	<-gather.C
	gathering := false
	for {
		m.welcome()
		for !limited {
			waiting, wait := m.due()
			m.stats.pending.Set(uint64(waiting))
			if waiting == 0 {
				if wait > 0 {
					retry.Reset(wait)
				}
				break
			}
			if d := m.limit.take(); d > 0 {
				m.stats.limited.Inc()
				limited = true
				retry.Reset(d)
				break
			}
			q := m.next(first)
			if q == nil {
				break // whoever wanted it has left meanwhile
			}
			if st.Send(q) != nil {
				for { // the reason is what the reader gets at last
					select {
					case <-in:
						continue
					case err = <-broken:
					case <-ctx.Done():
						err = ctx.Err()
					}
					return answered, err
				}
			}
			first = false
		}
		select {
		case r := <-in:
			answered = true
			if err := m.handle(r); err != nil {
				return answered, err
			}
		case <-m.wake:
			if !gathering {
				gathering = true
				gather.Reset(gatherTime)
			}
		case <-gather.C:
			gathering = false
			m.settle()
		case <-retry.C:
			limited = false
		case err := <-broken:
			return answered, err
		case <-ctx.Done():
			return answered, ctx.Err()
		}
	}
}

// gatherTime is how long changes of what is asked for are gathered, so that many
// clusters that come together make one request.
const gatherTime = 10 * time.Millisecond

// settle lets the server know of the changes so far.
func (m *mux) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		t.settled = t.settled || t.changed
		t.changed = false
	}
}

// begin forgets what the server of another stream knew.
func (m *mux) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		t.opened, t.nonce, t.asked, t.reply, t.settled = false, "", nil, nil, true
		t.forgetLocked()
	}
}

// welcome tells newcomers what is known already.
func (m *mux) welcome() {
	type visit struct {
		s *subscription
		u *update
	}
	var list []visit
	m.mu.Lock()
	for _, t := range m.topics {
		for _, e := range t.entries {
			if e.latest != nil {
				for _, s := range e.fresh {
					list = append(list, visit{s, &update{version: e.version, resources: []config.Resource{*e.latest}, cached: true}})
				}
				e.fresh = nil
			}
		}
	}
	m.mu.Unlock()
	for _, v := range list {
		v.s.update(v.u)
	}
}

// handle puts a response in force and owes the server a reply.
func (m *mux) handle(r *response) error {
	m.welcome() // or a newcomer might see nothing but a bad update
	if r.identifier != "" {
		m.stats.identifier.Set(r.identifier)
	}
	m.mu.Lock()
	var t *topic
	for _, x := range m.topics {
		if r.typeURL == x.kind.typeURL() || r.typeURL == "" && m.alone {
			t = x
		}
	}
	if t == nil || !t.opened {
		m.mu.Unlock()
		m.log.Debug("discovery response of a type that nobody asked for", "method", m.method, "type", r.typeURL)
		if m.alone {
			return errors.New("xds: a response of another type on a stream for one type")
		}
		return nil
	}
	targets, faults := m.routeLocked(t, r)
	m.mu.Unlock()
	for _, x := range targets {
		faults = append(faults, x.s.update(&x.u)...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.nonce = r.nonce
	t.reply = &reply{nonce: r.nonce, problem: summary(faults)}
	switch {
	case len(faults) == 0:
		t.version = r.version
		t.pace.reset()
	case t.refused:
		t.reply.after = time.Now().Add(t.pace.next())
	}
	t.refused = len(faults) > 0
	t.rememberLocked(r, faults)
	return nil
}

// target is an update on its way to a subscription.
type target struct {
	s *subscription
	u update
}

// routeLocked finds out who is told what. m.mu is held.
func (m *mux) routeLocked(t *topic, r *response) (list []target, faults []fault) {
	if t.kind.service().wildcard {
		if t.all != nil {
			list = append(list, target{t.all, r.update})
		}
		return list, nil
	}
	part := update{full: r.full, version: r.version}
	tell := func(e *entry, u update) {
		for _, s := range e.subscribers {
			list = append(list, target{s, u})
		}
		e.fresh = nil
	}
	seen := make(map[string]bool, len(r.resources))
	for i := range r.resources {
		x := &r.resources[i]
		e := t.entries[x.Name]
		switch {
		case x.Name == "":
			faults = append(faults, fault{"", unnamed(x)})
		case seen[x.Name]:
			faults = append(faults, fault{x.Name, duplicate(x)})
		case e == nil && m.alone:
			faults = append(faults, fault{x.Name, unasked(x)})
		case e == nil, heartbeat(x):
		default:
			u := part
			u.resources = r.resources[i : i+1]
			tell(e, u)
		}
		seen[x.Name] = true
	}
	if len(faults) > 0 && m.alone {
		for _, e := range t.entries { // one subscription, which gets nothing of this
			for _, s := range e.subscribers {
				if !slices.ContainsFunc(list, func(x target) bool { return x.s == s }) {
					s.reject()
				}
			}
		}
	}
	if r.full && len(r.resources) == 0 {
		for _, name := range sortedNames(t.entries) {
			tell(t.entries[name], part)
		}
	}
	for _, name := range r.removed {
		if e := t.entries[name]; e != nil {
			u := part
			u.removed = []string{name}
			tell(e, u)
		}
	}
	return list, faults
}

// rememberLocked keeps what was accepted. m.mu is held.
func (t *topic) rememberLocked(r *response, faults []fault) {
	bad := make(map[string]bool, len(faults))
	for _, f := range faults {
		bad[f.name] = true
	}
	wildcard := t.kind.service().wildcard
	if wildcard && r.full && len(faults) == 0 {
		clear(t.entries)
	}
	for i := range r.resources {
		x := &r.resources[i]
		if bad[x.Name] || x.Name == "" || heartbeat(x) {
			continue
		}
		e := t.entries[x.Name]
		switch {
		case e == nil && !wildcard:
			continue
		case e == nil:
			e = new(entry)
			t.entries[x.Name] = e
		}
		e.version = x.Version
		if !wildcard {
			e.latest = keep(x)
		}
	}
	for _, name := range r.removed {
		switch e := t.entries[name]; {
		case e == nil:
		case wildcard:
			delete(t.entries, name)
		default:
			e.version, e.latest = "", nil
		}
	}
}

// keep returns a copy of r that does not hold on to the response it came in.
func keep(r *config.Resource) *config.Resource {
	c := config.WireResource(strings.Clone(r.TypeURL), slices.Clone(r.Bytes()), r.Index)
	c.Name, c.Version = r.Name, r.Version
	return &c
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
