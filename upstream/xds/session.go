package xds

import (
	"context"
	"sync"
	"time"
)

// gatherTime is how long changes of subscriptions are collected, so that many
// clusters added together cause one request.
const gatherTime = 10 * time.Millisecond

// session is one open stream.
type session struct {
	m      *mux
	st     stream
	in     chan *response
	broken chan error // receives the error of the stream

	spoken    bool        // a request was sent
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
	s := &session{m: m, st: st, in: make(chan *response), broken: make(chan error, 1), retry: stoppedTimer(), gather: stoppedTimer()}
	m.stats.connected.Set(1)
	defer m.stats.connected.Set(0)
	m.begin()
	var reading sync.WaitGroup
	reading.Go(func() {
		if !m.guard.Run("reading of a discovery stream", func() { s.read(ctx) }) {
			s.broken <- errPanic
		}
	})
	defer func() {
		cancel()
		st.Close()
		reading.Wait()
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

// speak sends requests and handles responses until the stream fails.
func (s *session) speak(ctx context.Context) error {
	for {
		s.m.welcome()
		if err := s.say(ctx); err != nil {
			return err
		}
		select {
		case r := <-s.in:
			s.answered = true
			if err := s.m.handle(r); err != nil {
				return err
			}
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

// say sends the requests that are due, as fast as the rate limit permits.
func (s *session) say(ctx context.Context) error {
	m := s.m
	for !s.limited {
		waiting, wait := m.due()
		m.stats.pending.Set(uint64(waiting))
		if waiting == 0 {
			if wait > 0 {
				s.retry.Reset(wait)
			}
			return nil
		}
		if d := m.limit.take(); d > 0 {
			m.stats.limited.Inc()
			s.limited = true
			s.retry.Reset(d)
			return nil
		}
		q := m.next(!s.spoken)
		if q == nil {
			return nil // its subscribers have left meanwhile
		}
		if s.st.Send(q) != nil {
			return s.reason(ctx)
		}
		s.spoken = true
	}
	return nil
}

// reason returns the error of a failed stream, which its reader receives.
func (s *session) reason(ctx context.Context) error {
	for {
		select {
		case <-s.in:
		case err := <-s.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
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
