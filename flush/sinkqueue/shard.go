package sinkqueue

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// shard sends its packets one after the other. Queue.mu guards the fields below it.
type shard struct {
	q     *Queue
	more  chan struct{} // has an element if packets may be queued
	now   chan struct{} // has an element if the next attempt must not wait
	taken []packet      // of SendAll
	data  [][]byte      // of taken

	queue   fifo
	sending time.Time // when the packet that is being sent was queued; zero: none is
	retry   time.Time // of the next attempt after an error, or zero
}

// signal makes the shard look for packets.
func (s *shard) signal() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// oldest returns when the oldest packet was queued, zero if there is none.
func (s *shard) oldest() time.Time {
	if s.sending.IsZero() && s.queue.len() > 0 {
		return s.queue.all()[0].queued
	}
	return s.sending
}

// pop removes the oldest packet. The caller holds Queue.mu.
func (s *shard) pop() packet {
	p := s.queue.all()[0]
	s.queue.drop(1)
	return p
}

// take removes the oldest packet in order to send it.
func (s *shard) take() (p packet, ok bool) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.trim()
	if s.queue.len() == 0 || s.q.held {
		return packet{}, false
	}
	p = s.pop()
	s.sending = p.queued
	return p, true
}

// takeRun removes packets that SendAll can send, oldest first. It returns none if Send
// is to send the next one.
func (s *shard) takeRun() []packet {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trim()
	if s.queue.len() == 0 || q.held {
		return nil
	}
	n := runLength(s.queue.all())
	if n == 1 {
		return nil
	}
	s.taken = append(s.taken[:0], s.queue.all()[:n]...)
	s.queue.drop(n)
	s.sending = s.taken[n-1].queued
	return s.taken
}

// sendRun sends packets that wait by SendAll, if that is possible. It reports whether they
// left the queue.
func (s *shard) sendRun() bool {
	q := s.q
	run := s.takeRun()
	if run == nil {
		return false
	}
	size, metrics := 0, 0
	for _, p := range run {
		s.data = append(s.data, p.data)
		size += len(p.data)
		metrics += p.metrics
	}
	sent, ended := false, false
	guard.New(q.cfg.Logger).Run("send of many packets of a sink", func() { sent, ended = q.cfg.SendAll(s.data), true })
	clear(s.data)
	s.data = s.data[:0]
	switch {
	case sent:
		q.bytes.Add(uint64(size))
		q.packets.Add(uint64(len(run)))
		q.metrics.Add(uint64(metrics))
	case !ended: // it panicked
		q.errs.Inc()
		for _, p := range run {
			q.unsure(p)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer clear(run)
	s.sending = time.Time{}
	q.settled.Broadcast()
	if sent {
		q.sent()
	}
	if sent || !ended && !q.cfg.Resend {
		q.size -= size
		q.waiting -= metrics
		q.trim()
		return true
	}
	for i := range run {
		run[i].group = 0 // sent with Send
	}
	s.queue.putBack(run...)
	return false
}

// settle ends the attempt to send a packet: before is the packet as it was taken, and p
// its rest, which is queued again as the oldest packet if back is set.
func (s *shard) settle(p, before packet, back bool, err error, retry time.Time) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	s.sending, s.retry = time.Time{}, retry
	q.settled.Broadcast()
	q.size -= len(before.data)
	q.waiting -= before.metrics
	if back {
		p.group = 0 // its size may have changed
		s.queue.putBack(p)
		q.size += len(p.data)
		q.waiting += p.metrics
	}
	if err != nil {
		q.lastErr, q.errAt = err, time.Now()
	} else {
		q.sent()
	}
	q.trim()
}

// sent notes that a packet was sent now. The caller holds q.mu.
func (q *Queue) sent() {
	q.sentAt = time.Now()
	q.lastSent.Set(uint64(q.sentAt.Unix()))
}

// run sends packets until ctx ends or the queue is closed and the shard is empty.
func (s *shard) run(ctx context.Context) {
	q := s.q
	pause := MinRetry
	var failing time.Time // start of the outage
	for {
		closing := q.closing() // before take, so that nothing queued before Close is left
		if q.cfg.SendAll != nil && failing.IsZero() && s.sendRun() {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		p, ok := s.take()
		if !ok {
			if closing {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-q.closed:
			case <-s.more:
			}
			continue
		}
		if !failing.IsZero() {
			q.retries.Inc()
		}
		before := p
		err := s.send(ctx, &p)
		refused := errors.Is(err, ErrRefused)
		again := err != nil && !refused && (q.cfg.Resend || !errors.Is(err, ErrAmbiguous))
		if err != nil && !again {
			q.warnLoss(err)
		}
		if err == nil || refused { // the next packet may be better
			s.settle(p, before, false, err, time.Time{})
			if err == nil {
				if !failing.IsZero() && q.failing.Add(-1) == 0 {
					q.log(slog.LevelInfo, "sending again", "after", time.Since(failing))
				}
				failing, pause = time.Time{}, MinRetry
			}
			if ctx.Err() != nil {
				return
			}
			continue
		}
		first := failing.IsZero()
		if first {
			failing = time.Now()
			if q.failing.Add(1) == 1 && again {
				q.log(slog.LevelWarn, "cannot send, retrying", "error", err)
			}
		}
		wait := time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
		asked := (*Wait)(nil)
		if errors.As(err, &asked) {
			wait = max(wait, min(asked.After, q.cfg.QueueAge))
		}
		s.settle(p, before, again, err, time.Now().Add(wait))
		// The first error can be about a connection that was of no use any more.
		if closing && (!first || asked != nil) || ctx.Err() != nil {
			return
		}
		pause = min(2*pause, MaxRetry)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.now:
			pause = MinRetry
		case <-q.closed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// send makes one attempt to send p, counts the result, and leaves the rest in p.
func (s *shard) send(ctx context.Context, p *packet) error {
	q := s.q
	var sent int
	err := errors.Join(ErrAmbiguous, errors.New("the sender panicked"))
	guard.New(q.cfg.Logger).Run("send of a sink", func() { sent, err = q.cfg.Send(ctx, p.data) })
	if err == nil {
		sent = len(p.data)
	}
	q.bytes.Add(uint64(sent))
	if err == nil {
		q.packets.Inc()
		q.metrics.Add(uint64(p.metrics))
		return nil
	}
	if q.cfg.Count != nil && sent > 0 {
		n := q.cfg.Count(p.data[:sent])
		q.metrics.Add(uint64(n))
		p.metrics -= n
	}
	p.data = p.data[sent:]
	q.errs.Inc()
	switch {
	case errors.Is(err, ErrAmbiguous):
		q.unsure(*p)
	case errors.Is(err, ErrRefused):
		q.lostPackets.Inc()
		q.rejected.Add(uint64(p.metrics))
		q.increments(p.data, func(_ []byte, n uint64) { q.lostIn.Add(n) })
		q.lostValues.Add(q.observations(p.data))
	}
	return err
}

// unsure counts a packet whose delivery is unknown.
func (q *Queue) unsure(p packet) {
	q.ambiguous.Inc()
	q.ambiguousMetrics.Add(uint64(p.metrics))
	q.increments(p.data, func(_ []byte, n uint64) { q.ambiguousIn.Add(n) })
	q.ambiguousValues.Add(q.observations(p.data))
}
