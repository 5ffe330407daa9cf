package xds

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// gatherTime is how long changes of subscriptions are collected, so that many
// clusters added together cause one request.
const gatherTime = 10 * time.Millisecond

// unsent is how many requests may wait for a server that does not read.
const unsent = 8

// session is one open stream.
type session struct {
	m      *mux
	st     stream
	in     chan *response
	out    chan proto.Message // requests to send
	sent   chan struct{}      // signals that out has room; capacity 1
	broken chan error         // receives the errors of the stream; capacity 2

	spoken    bool        // a request was issued
	answered  bool        // a response was received
	limited   bool        // requests wait for retry
	retry     *time.Timer // fires when a delayed request can be due
	gathering bool        // subscription changes are collected until gather fires
	gather    *time.Timer
}

// session opens a stream and serves it until it fails. answered reports whether the
// server sent a response.
func (m *mux) session(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := m.open(ctx)
	if err != nil {
		return false, err
	}
	s := &session{m: m, st: st, in: make(chan *response), out: make(chan proto.Message, unsent), sent: make(chan struct{}, 1), broken: make(chan error, 2), retry: stoppedTimer(), gather: stoppedTimer()}
	m.stats.connected.Set(1)
	defer m.stats.connected.Set(0)
	m.begin()
	var running sync.WaitGroup
	start := func(where string, run func(context.Context)) {
		running.Go(func() {
			if !m.guard.Run(where, func() { run(ctx) }) {
				s.broken <- errPanic
			}
		})
	}
	start("reading of a discovery stream", s.read)
	start("writing to a discovery stream", s.write)
	defer func() {
		cancel()
		st.Close()
		running.Wait()
	}()
	err = s.speak(ctx)
	return s.answered, err
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// read receives responses until the stream fails.
func (s *session) read(ctx context.Context) {
	for {
		r, err := s.st.Recv()
		if err != nil {
			s.broken <- err
			return
		}
		select {
		case s.in <- r:
		case <-ctx.Done():
			return
		}
	}
}

// write sends requests. A server may stop reading until its own responses are taken, so
// Send must not hold up speak.
func (s *session) write(ctx context.Context) {
	for {
		select {
		case q := <-s.out:
			if s.st.Send(q) != nil {
				return // the reader receives the reason
			}
			select {
			case s.sent <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

// speak issues requests and handles responses until the stream fails.
func (s *session) speak(ctx context.Context) error {
	for {
		s.m.welcome()
		s.say()
		select {
		case r := <-s.in:
			s.answered = true
			if err := s.m.handle(r); err != nil {
				return err
			}
		case <-s.sent: // there is room for another request
		case <-s.m.wake:
			if !s.gathering {
				s.gathering = true
				s.gather.Reset(gatherTime)
			}
		case <-s.gather.C:
			s.gathering = false
			s.m.settle()
		case <-s.retry.C:
			s.limited = false
		case <-s.m.expiry.C:
			s.m.expire()
		case err := <-s.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// say issues the requests that are due, as fast as the rate limit permits. If the
// server does not read them, replies to older responses give way to newer ones; of the
// delta variant, one refusal stays until it is sent.
func (s *session) say() {
	m := s.m
	for !s.limited && len(s.out) < cap(s.out) {
		waiting, wait := m.due()
		m.stats.pending.Set(uint64(waiting))
		if waiting == 0 {
			if wait > 0 {
				s.retry.Reset(wait)
			}
			return
		}
		if d := m.limit.take(); d > 0 {
			m.stats.limited.Inc()
			s.limited = true
			s.retry.Reset(d)
			return
		}
		q := m.next(!s.spoken)
		if q == nil {
			return // its subscribers have left meanwhile
		}
		s.out <- q
		s.spoken = true
	}
}

// settle marks collected subscription changes as ready to send.
func (m *mux) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		t.settled = t.settled || t.changed
		t.changed = false
	}
}

// begin resets the state that belongs to the previous stream.
func (m *mux) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		t.opened, t.nonce, t.asked, t.reply, t.settled = false, "", nil, nil, true
		t.forgetLocked()
	}
}
