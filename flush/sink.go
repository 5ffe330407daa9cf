package flush

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Sink sends the stats of each interval somewhere.
//
// Flush is called with the snapshots in order, always from the same goroutine,
// which belongs to this sink: a slow call delays neither the next flush nor
// other sinks. It must not keep the snapshot or its cursors. Errors are counted
// and logged; the sink still gets the next snapshot. While a call does not return, stats
// that end take memory; see [Config.QueueBytes].
type Sink interface {
	Name() string
	Flush(*store.Snapshot) error
}

// TotalsSink is a [Sink] that needs snapshots with the values of all stats, see
// [store.FlushOptions], and the list of ended ones, see [store.Snapshot.Ended].
type TotalsSink interface {
	Sink
	NeedsTotals() bool
}

func needsTotals(s Sink) bool {
	t, ok := s.(TotalsSink)
	return ok && t.NeedsTotals()
}

// IntervalSink is a [Sink] that is called once per Interval, a multiple of the
// scheduler's, with the changes of that time as one snapshot. The last snapshot
// can cover less. 0 means every flush.
type IntervalSink interface {
	Sink
	Interval() time.Duration
}

// Runner is a [Sink] that sends from a separate goroutine.
//
// [Scheduler.Run] calls Run once, in a new goroutine. After the last snapshot it
// calls Close: Run then sends the queue and returns, and returns at once
// when ctx ends.
type Runner interface {
	Sink
	Run(ctx context.Context)
	Close()
}

// shared is a snapshot that several sinks read.
type shared struct {
	*store.Snapshot
	bytes   int // the memory of its changes
	holders atomic.Int32
}

func (s *shared) release() {
	if s.holders.Add(-1) == 0 {
		s.Snapshot.Close()
	}
}

// worker runs one sink.
type worker struct {
	sink  Sink
	limit int           // of snapshots in queue
	most  int           // bytes of them
	every time.Duration // between two calls of the sink
	slack time.Duration // how much less is enough
	onErr func(sink string, err error)
	guard guard.Guard
	scope *store.Scope // of its metrics, which have the tag
	tag   tags.Tag
	held  held // used by run alone

	flushes, errors, joined, dropped *store.Counter
	queued, lastSuccess              *store.Gauge
	took                             *store.Histogram

	mu     sync.Mutex
	queue  []held
	closed bool
	asked  []chan struct{} // by idle; closed when all snapshots have been passed on
	more   sync.Cond       // signaled when there is something new above
}

func newWorker(sink Sink, c *Config) (*worker, error) {
	every := c.Interval
	if p, ok := sink.(IntervalSink); ok && p.Interval() != 0 {
		every = p.Interval()
	}
	switch {
	case every == c.Interval:
	case c.OnAdmin:
		return nil, fmt.Errorf("flush: sink %q: an interval of %v cannot be used with stats_flush_on_admin", sink.Name(), every)
	case every < c.Interval || every%c.Interval != 0:
		return nil, fmt.Errorf("flush: sink %q: interval %v is not a multiple of stats_flush_interval %v", sink.Name(), every, c.Interval)
	}
	tag := tags.Tag{Name: "sink", Value: sink.Name()}
	sc := c.Store.Own().Scope("sink")
	sc.Help(map[string]string{
		"flushes": "Snapshots that the sink got.", "errors": "Snapshots that the sink failed to encode.",
		"joined":  "Snapshots that the sink gets as one with the one before because it is slow.",
		"dropped": "Snapshots that the sink did not get: it was stuck, or had ended.", "queued": "Snapshots that wait for the sink.",
		"last_success_seconds": "Unix time of the last encoded snapshot.", "flush_ms": "Time to encode a snapshot.",
	})
	w := &worker{
		sink: sink, limit: c.Queue, most: c.QueueBytes, every: every, slack: c.Interval / 4, onErr: c.OnError, guard: guard.New(c.Logger),
		scope: sc, tag: tag,

		flushes:     sc.Counter("flushes", tag),
		errors:      sc.Counter("errors", tag),
		joined:      sc.Counter("joined", tag),
		dropped:     sc.Counter("dropped", tag),
		queued:      sc.GaugeWithMode("queued", store.NeverImport, tag),
		lastSuccess: sc.GaugeWithMode("last_success_seconds", store.NeverImport, tag),
		took:        sc.Histogram("flush_ms", store.Milliseconds, tag),
	}
	if every == c.Interval {
		w.slack = every // off the schedule too
	}
	w.more.L = &w.mu
	return w, nil
}

// put queues a snapshot. If too many wait, it joins the last of them, so that a slow sink
// loses no increments, and if they take too much memory, all of them. If even their changes
// as one do, since stats come and go, it drops them and returns an error. After close it
// drops s.
func (w *worker) put(s *shared) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.dropped.Inc()
		s.release()
		return nil
	}
	w.queue = append(w.queue, held{joined: s.Snapshot, first: s, count: 1, bytes: s.bytes})
	bytes := 0
	for i := range w.queue {
		bytes += w.queue[i].bytes
	}
	switch last := len(w.queue) - 1; {
	case bytes > w.most:
		w.join(0)
		if h := &w.queue[0]; h.count > 1 && h.bytes > max(w.most, 2*s.bytes) { // one can be large
			return w.drop()
		}
	case last == w.limit:
		w.join(last - 1)
	}
	w.queued.Set(uint64(len(w.queue)))
	w.more.Signal()
	return nil
}

// join makes the snapshots in the queue from i on one.
func (w *worker) join(i int) {
	for _, next := range w.queue[i+1:] {
		w.queue[i].add(next)
		w.joined.Inc()
	}
	clear(w.queue[i+1:])
	w.queue = w.queue[:i+1]
}

// drop drops the only element of the queue.
func (w *worker) drop() error {
	h := w.queue[0]
	defer h.release()
	w.queue = nil
	w.queued.Set(0)
	w.dropped.Add(h.count)
	if !needsTotals(w.sink) {
		increments, values := h.joined.Recorded()
		w.scope.Counter("lost_increments", w.tag).Add(increments)
		w.scope.Counter("lost_values", w.tag).Add(values)
	}
	return fmt.Errorf("flush: sink %q is stuck: dropped %d snapshots of %d bytes, at most %d can wait", w.sink.Name(), h.count, h.bytes, w.most)
}

// run passes snapshots to the sink until close is called and the queue is empty.
func (w *worker) run() {
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && len(w.asked) == 0 && !w.closed {
			w.more.Wait()
		}
		if len(w.queue) == 0 {
			closed, asked := w.closed, w.asked
			w.asked = nil
			w.mu.Unlock()
			w.takeHeld()
			for _, done := range asked {
				close(done)
			}
			if !closed {
				continue
			}
			if r, ok := w.sink.(Runner); ok {
				w.guard.Run("close of a sink", r.Close)
			}
			return
		}
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.queued.Set(uint64(len(w.queue)))
		w.mu.Unlock()

		w.held.add(next)
		if w.held.joined.Last || w.held.joined.Interval >= w.every-w.slack {
			w.takeHeld()
		}
	}
}

// idle returns a channel that is closed when the sink has got all snapshots.
func (w *worker) idle() <-chan struct{} {
	done := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, done)
	w.more.Signal()
	return done
}

// takeHeld passes the held snapshots to the sink, if there are any.
func (w *worker) takeHeld() {
	if w.held.joined == nil {
		return
	}
	w.guard.Run("report of a sink", func() { w.take(w.held.joined) })
	w.held.release()
}

// held are snapshots in a row that wait for a sink or for the end of its interval.
type held struct {
	joined      *store.Snapshot // their changes; nil if there are none
	first, last *shared         // what joined needs; last is nil for a single snapshot
	count       uint64          // snapshots
	bytes       int             // the memory of their changes
}

// add adds the snapshots in next.
func (h *held) add(next held) {
	if h.joined == nil {
		*h = next
		return
	}
	h.joined = h.joined.Join(next.joined)
	h.count += next.count
	h.bytes = h.joined.Bytes()
	if h.last != nil {
		h.last.release()
	}
	if h.last = next.first; next.last != nil {
		h.last.release()
		h.last = next.last
	}
}

func (h *held) release() {
	h.first.release()
	if h.last != nil {
		h.last.release()
	}
	*h = held{}
}

// take passes s to the sink and counts the result.
func (w *worker) take(s *store.Snapshot) {
	began := time.Now()
	err := w.flush(s)
	ended := time.Now()
	w.flushes.Inc()
	w.took.Record(uint64(ended.Sub(began).Milliseconds()))
	if err != nil {
		w.errors.Inc()
		w.onErr(w.sink.Name(), err)
		return
	}
	w.lastSuccess.Set(uint64(ended.Unix()))
}

// flush calls the sink and turns a panic into an error.
func (w *worker) flush(s *store.Snapshot) (err error) {
	if !w.guard.Run("sink", func() { err = w.sink.Flush(s) }) {
		err = fmt.Errorf("flush: sink %q panicked", w.sink.Name())
	}
	return err
}

func (w *worker) close() {
	w.mu.Lock()
	w.closed = true
	w.more.Signal()
	w.mu.Unlock()
}
