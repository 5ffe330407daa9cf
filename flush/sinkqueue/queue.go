// Package sinkqueue queues the packets of a sink that sends over a network and
// keeps the contract that all such sinks share.
//
// A queue is bounded in bytes and in age, and drops its oldest packets first. The
// counter increments of packets that were surely not delivered return to the
// sink, which adds them to a later flush, so an outage delays increments
// but does not lose them. A packet whose delivery is unknown is counted and, by
// default, not sent again, so that nothing is counted twice.
package sinkqueue

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Defaults of [Config] and the limits of the time between two attempts.
const (
	DefaultBytes  = 16 << 20
	DefaultAge    = 10 * time.Minute
	DefaultSeries = 1 << 20
	MinRetry      = 100 * time.Millisecond
	MaxRetry      = 30 * time.Second
)

var (
	// ErrAmbiguous is wrapped by errors after which the rest of the packet may or
	// may not have been delivered.
	ErrAmbiguous = errors.New("delivery unknown")
	// ErrRefused is wrapped by errors that another attempt cannot change. The
	// rest of the packet is lost.
	ErrRefused = errors.New("cannot be sent")
)

// Config are the settings of a [Queue].
type Config struct {
	// Name is the name of the sink, which tags its metrics. Required.
	Name string
	// Store gets the metrics of the sink. Required.
	Store *store.Store
	// Bytes limits the queued bytes. Default 16 MiB.
	Bytes int
	// Age is how long a packet can wait. Default 10 minutes.
	Age time.Duration
	// Series limits the series that keep undelivered increments outside the
	// queue. Increments of further series are lost and counted. Default 1 Mi.
	Series int
	// Send sends a packet and returns how many of its bytes, in whole lines, are
	// sent. After an error the rest was surely not delivered and is tried
	// again, unless the error wraps [ErrAmbiguous] or [ErrRefused]. Required.
	Send func(ctx context.Context, data []byte) (sent int, err error)
	// Increments calls yield for each counter increment in a packet, with a key
	// of the series. Nil means that packets have none.
	Increments func(data []byte, yield func(key []byte, n uint64))
	// Resend sends ambiguous packets again.
	Resend bool
	// Logger logs the begin and end of outages, and panics. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// Status describes the state of a queue.
type Status struct {
	Packets, Bytes int       // queued
	Series         int       // with undelivered increments outside the queue
	LastError      error     // nil if no attempt failed
	LastErrorAt    time.Time // of LastError
	NextRetry      time.Time // zero unless the queue waits after an error
}

type packet struct {
	data    []byte
	metrics int
	queued  time.Time
}

// Queue sends packets in order from one goroutine. Create it with [New]; its
// methods are safe for concurrent use.
type Queue struct {
	cfg Config

	packets, metrics, bytes, errs, retries  *store.Counter
	dropped, ambiguous, lostPackets, lostIn *store.Counter
	queueBytes, lastSent                    *store.Gauge

	more   chan struct{} // has an element if packets may be queued
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex // guards the rest
	queue   []packet
	sending int // bytes of the packet that is being sent
	size    int // bytes of queue
	owed    map[string]uint64
	status  Status
}

// New returns an empty queue. Nothing is sent before Run.
func New(cfg Config) *Queue {
	if cfg.Bytes <= 0 {
		cfg.Bytes = DefaultBytes
	}
	if cfg.Age <= 0 {
		cfg.Age = DefaultAge
	}
	if cfg.Series <= 0 {
		cfg.Series = DefaultSeries
	}
	tag := tags.Tag{Name: "sink", Value: cfg.Name}
	sc := cfg.Store.Own().Scope("sink")
	return &Queue{
		cfg:         cfg,
		packets:     sc.Counter("packets", tag),
		metrics:     sc.Counter("metrics", tag),
		bytes:       sc.Counter("bytes", tag),
		errs:        sc.Counter("send_errors", tag),
		retries:     sc.Counter("retries", tag),
		dropped:     sc.Counter("dropped_packets", tag),
		ambiguous:   sc.Counter("ambiguous_packets", tag),
		lostPackets: sc.Counter("lost_packets", tag),
		lostIn:      sc.Counter("lost_increments", tag),
		queueBytes:  sc.GaugeWithMode("queue_bytes", store.NeverImport, tag),
		lastSent:    sc.GaugeWithMode("last_sent_seconds", store.NeverImport, tag),
		more:        make(chan struct{}, 1),
		closed:      make(chan struct{}),
		owed:        map[string]uint64{},
	}
}

// Add queues a packet with a number of metrics and returns at once. The queue keeps
// data.
func (q *Queue) Add(data []byte, metrics int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, packet{data, metrics, time.Now()})
	q.size += len(data)
	q.trim()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// Owed returns the increments of undelivered packets that were dropped, by the key
// of the series. They belong to the caller from then on.
func (q *Queue) Owed() map[string]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.owed) == 0 {
		return nil
	}
	owed := q.owed
	q.owed = map[string]uint64{}
	return owed
}

// Lost counts packets that were sent and, as an error shows later, not received.
func (q *Queue) Lost(packets int) { q.lostPackets.Add(uint64(packets)) }

// Status returns the state of the queue.
func (q *Queue) Status() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.status
	s.Packets, s.Bytes, s.Series = len(q.queue), q.size+q.sending, len(q.owed)
	return s
}

// trim drops packets that exceed the limits, oldest first. The caller holds q.mu.
func (q *Queue) trim() {
	for len(q.queue) > 0 && (q.size+q.sending > q.cfg.Bytes || time.Since(q.queue[0].queued) > q.cfg.Age) {
		q.drop()
	}
	q.queueBytes.Set(uint64(q.size + q.sending))
}

// drop drops the oldest packet and keeps its increments. The caller holds q.mu.
func (q *Queue) drop() {
	p := q.queue[0]
	q.queue[0] = packet{}
	q.queue = q.queue[1:]
	q.size -= len(p.data)
	q.dropped.Inc()
	q.increments(p.data, func(key []byte, n uint64) {
		if _, ok := q.owed[string(key)]; !ok && len(q.owed) >= q.cfg.Series {
			q.lostIn.Add(n)
			return
		}
		q.owed[string(key)] += n
	})
}

func (q *Queue) increments(data []byte, yield func(key []byte, n uint64)) {
	if q.cfg.Increments != nil {
		q.cfg.Increments(data, yield)
	}
}

// take removes the oldest packet.
func (q *Queue) take() (p packet, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trim()
	if len(q.queue) == 0 {
		return packet{}, false
	}
	p = q.queue[0]
	q.queue[0] = packet{}
	q.queue = q.queue[1:]
	q.size -= len(p.data)
	q.sending = len(p.data)
	return p, true
}

// settle ends the attempt to send p. If back is set it queues p again, as the
// oldest packet.
func (q *Queue) settle(p packet, back bool, err error, retry time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = 0
	if back {
		q.queue = append([]packet{p}, q.queue...)
		q.size += len(p.data)
	}
	q.status.NextRetry = retry
	if err != nil {
		q.status.LastError, q.status.LastErrorAt = err, time.Now()
	}
	q.trim()
}

// Close makes Run return once everything is sent, or at the next error. Packets
// that are left then are counted as dropped.
func (q *Queue) Close() { q.once.Do(func() { close(q.closed) }) }

func (q *Queue) closing() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}

// Run sends packets until ctx ends or the queue is closed and empty. Call it once.
func (q *Queue) Run(ctx context.Context) {
	defer q.abandon()
	pause := MinRetry
	var failing time.Time // start of the outage
	for {
		closing := q.closing() // before take, so that nothing queued before Close is left
		p, ok := q.take()
		if !ok {
			if closing {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-q.closed:
			case <-q.more:
			}
			continue
		}
		if !failing.IsZero() {
			q.retries.Inc()
		}
		err := q.send(ctx, &p)
		again := err != nil && !errors.Is(err, ErrRefused) && (q.cfg.Resend || !errors.Is(err, ErrAmbiguous))
		if err == nil || !again {
			q.settle(packet{}, false, err, time.Time{})
			if err == nil {
				if !failing.IsZero() {
					q.log(slog.LevelInfo, "sink sends again", "after", time.Since(failing))
				}
				failing, pause = time.Time{}, MinRetry
			}
			if ctx.Err() != nil {
				return
			}
			continue
		}
		if failing.IsZero() {
			failing = time.Now()
			q.log(slog.LevelWarn, "sink cannot send", "error", err)
		}
		wait := time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
		q.settle(p, true, err, time.Now().Add(wait))
		if closing || ctx.Err() != nil {
			return
		}
		pause = min(2*pause, MaxRetry)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-q.closed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// send makes one attempt to send p, counts the result, and leaves the rest in p.
func (q *Queue) send(ctx context.Context, p *packet) error {
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
		q.lastSent.Set(uint64(time.Now().Unix()))
		return nil
	}
	p.data = p.data[sent:]
	q.errs.Inc()
	switch {
	case errors.Is(err, ErrAmbiguous):
		q.ambiguous.Inc()
	case errors.Is(err, ErrRefused):
		q.lostPackets.Inc()
		q.increments(p.data, func(_ []byte, n uint64) { q.lostIn.Add(n) })
	}
	return err
}

// abandon drops what is left when Run returns.
func (q *Queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		q.drop()
	}
	q.trim()
}

func (q *Queue) log(level slog.Level, msg string, args ...any) {
	if q.cfg.Logger != nil {
		q.cfg.Logger.Log(context.Background(), level, msg, append([]any{"sink", q.cfg.Name}, args...)...)
	}
}
