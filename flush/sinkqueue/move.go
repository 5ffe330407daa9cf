package sinkqueue

import (
	"context"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
)

// form identifies the encoding of packets: sinks of a kind can send each other's packets if
// both or neither send increments.
func (q *Queue) form() string {
	if q.cfg.Increments != nil {
		return q.cfg.Kind + " increments"
	}
	return q.cfg.Kind
}

// Hold removes everything that is not delivered, and shards send nothing until
// [Queue.Release]. It waits for attempts that are under way, at most until ctx ends. An
// attempt that goes on keeps its packet. A second Hold returns only later packets.
func (q *Queue) Hold(ctx context.Context) []flush.Parcel {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.settled.Broadcast()
	})()
	q.held = true
	for ctx.Err() == nil && slices.ContainsFunc(q.shards, func(s *shard) bool { return !s.sending.IsZero() }) {
		q.settled.Wait()
	}
	p, now, before := flush.Parcel{Sink: q.cfg.Name, Form: q.form()}, time.Now(), len(q.removed)
	for i, s := range q.shards {
		p.Shard = i
		for s.queue.len() > 0 {
			next := s.pop()
			q.size -= len(next.data)
			q.waiting -= next.metrics
			p.Data, p.Metrics, p.Age = next.data, next.metrics, now.Sub(next.queued)
			q.removed = append(q.removed, p)
		}
	}
	p.Shard, p.Metrics, p.Age = 0, 0, 0
	for key, n := range q.owed {
		p.Data, p.Increments = []byte(key), n
		q.removed = append(q.removed, p)
	}
	q.forget()
	q.trim()
	return q.removed[before:]
}

// Release ends Hold. If moved is false, everything returns; after the end of Run it is
// lost.
func (q *Queue) Release(moved bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !moved {
		for _, p := range q.removed {
			q.put(p)
		}
	}
	q.held, q.removed = false, nil
	if q.ended {
		q.lose()
	}
	for _, s := range q.shards {
		s.signal()
	}
	q.trim()
}

// Inherit queues a parcel of the same sink in another process, ordered by its age. It
// returns false if the name or the form differs. After the end of Run the parcel is lost.
func (q *Queue) Inherit(p flush.Parcel) bool {
	if p.Sink != q.cfg.Name || p.Form != q.form() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put(p)
	q.trim()
	if q.ended {
		q.lose()
	}
	return true
}

// put queues a parcel. The caller holds q.mu.
func (q *Queue) put(p flush.Parcel) {
	if p.Increments > 0 {
		q.owe(p.Data, p.Increments)
		q.owedGauge.Set(uint64(len(q.owed)))
		return
	}
	s := q.shards[0]
	if p.Shard < len(q.shards) {
		s = q.shards[p.Shard]
	}
	queued := time.Now().Add(-max(p.Age, 0))
	at, _ := slices.BinarySearchFunc(s.queue.all(), queued, func(have packet, queued time.Time) int {
		if have.queued.After(queued) {
			return 1
		}
		return -1 // equal ones keep their order
	})
	s.queue.insert(at, packet{p.Data, p.Metrics, queued, 0})
	q.size += len(p.Data)
	q.waiting += p.Metrics
	s.signal()
}
