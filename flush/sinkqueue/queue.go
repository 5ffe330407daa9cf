// Package sinkqueue queues the packets of a sink that sends over a network and
// keeps the contract that all such sinks share.
//
// A queue is bounded in bytes and in age, and drops its oldest packets first. Its packets
// take at most as much memory again beside their bytes, which limits how many small ones
// wait. The counter increments of packets that were certainly not delivered return to the
// sink, which adds them to a later flush, so an outage delays increments but does not lose
// them. A packet whose delivery is unknown is counted and, by default, not sent again, so
// that nothing is counted twice.
//
// A queue has one or more shards. Each has its own order and its own sender, so
// packets of different shards are sent concurrently.
package sinkqueue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Defaults of [Config] and the limits of the time between two attempts.
const (
	DefaultBytes  = 16 << 20
	DefaultAge    = 10 * time.Minute
	DefaultSeries = 1 << 20
	minPackets    = 1 << 10 // that any queue can hold
	owedKeyBytes  = 256     // on average
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

// Wait is an error of a receiver that asks for a pause before the next attempt.
type Wait struct {
	After time.Duration
	Err   error
}

func (w *Wait) Error() string { return w.Err.Error() }

func (w *Wait) Unwrap() error { return w.Err }

// Config are the settings of a [Queue].
type Config struct {
	// Options are the settings of the sink.
	Options
	// Kind and Target are shown by [Queue.Delivery]. Target must not contain
	// secrets.
	Kind, Target string
	// Words are the parts of the metric names of a queue that does not belong
	// to a sink. Such a queue has no metrics for increments and values.
	Words Words
	// Shards is the number of shards. Default 1.
	Shards int
	// Series limits the series that keep undelivered increments outside the
	// queue, and their keys to 256 bytes each on average. Increments of further
	// series are lost and counted. Default 1 Mi.
	Series int
	// Send sends a packet and returns how many of its bytes, in whole lines,
	// were sent. After an error, the rest counts as not delivered and is sent
	// again, unless the error wraps [ErrAmbiguous] or [ErrRefused]. A shard pauses
	// after an error, unless it wraps ErrRefused. Shards call it concurrently.
	// Required.
	Send func(ctx context.Context, data []byte) (sent int, err error)
	// SendAll sends packets of one [Queue.AddAll] that are equally long, except
	// the last, which can be shorter. If it returns false, it has certainly
	// sent none, and Send is called for each. It may be nil.
	SendAll func(packets [][]byte) bool
	// Increments calls yield for each counter increment in a packet, with a key
	// of the series. Nil means that packets have none.
	Increments func(data []byte, yield func(key []byte, n uint64))
	// Count returns the number of metrics in whole lines of a packet. Nil means
	// that all metrics of a packet count once the last of them is sent.
	Count func(data []byte) int
	// Observations returns how many values of histograms a packet reports. Nil
	// means none.
	Observations func(data []byte) uint64
	// Ended is called at the end of Run, after the last call of Send. It may be
	// nil.
	Ended func()
	// Keeps reports whether packets that are left at the end of Run are kept for
	// Hold. Nil means that they are lost.
	Keeps func() bool
}

// Words are the words in the names of metrics: the metric "relay.lines" with the tag
// "target" has the words Words{"relay", "target", "lines"}. Default: sink, sink,
// metrics.
type Words struct{ Scope, Tag, Unit string }

// help returns the help texts of the metrics.
func (w Words) help() map[string]string {
	texts := map[string]string{
		"packets": "Sent packets.", w.Unit: "Sent " + w.Unit + ".", "bytes": "Sent bytes.",
		"send_errors": "Failed attempts to send a packet.", "retries": "Attempts to send after a failed one.",
		"dropped_packets": "Packets dropped because the queue was full or they were too old.", "dropped_" + w.Unit: "The " + w.Unit + " in dropped packets.",
		"ambiguous_packets": "Packets that may or may not have been delivered.", "ambiguous_" + w.Unit: "The " + w.Unit + " in packets that may or may not have been delivered.",
		"lost_packets": "Packets that were refused for good.", "rejected_" + w.Unit: "The " + w.Unit + " that the receiver did not accept.",
		"queue_bytes": "Bytes in the queue.", "queue_age_seconds": "Age of the oldest packet in the queue.",
		"last_sent_seconds": "Unix time of the last sent packet.",
	}
	if w.Scope == "sink" {
		maps.Copy(texts, map[string]string{
			"ambiguous_increments": "Counter increments in packets that may or may not have been delivered.",
			"ambiguous_values":     "Histogram values in packets that may or may not have been delivered.",
			"lost_increments":      "Counter increments that were lost.", "lost_values": "Histogram values that were lost.",
			"owed_series": "Series with increments that wait for a later packet.", "skipped_names": "Stats not sent because nothing is left of their name.",
		})
	}
	return texts
}

// Queue sends packets in order, from one goroutine per shard. Create it with [New];
// its methods are safe for concurrent use.
type Queue struct {
	cfg    Config
	shards []*shard

	failing atomic.Int32 // shards whose last send failed; its changes from and to 0 are logged

	packets, metrics, bytes, errs, retries    *store.Counter
	dropped, ambiguous, lostPackets, lostIn   *store.Counter
	ambiguousIn, ambiguousValues, lostValues  *store.Counter
	rejected, droppedMetrics                  *store.Counter
	ambiguousMetrics, skipped                 *store.Counter
	queueBytes, queueAge, lastSent, owedGauge *store.Gauge

	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex // guards the rest and the queues of shards
	size    int        // bytes queued or being sent
	waiting int        // metrics queued or being sent
	groups  uint64     // calls of AddAll
	owed    Owed
	keys    int // bytes of the keys in owed
	lastErr error
	errAt   time.Time
	sentAt  time.Time
	held    bool           // by Hold: shards take no packets
	removed []flush.Parcel // by Hold
	settled sync.Cond      // signaled when an attempt ends
	ended   bool           // Run has returned
	warned  time.Time      // when warnLoss last logged
	quiet   int            // its calls since then
}

// New returns an empty queue. Nothing is sent before Run.
func New(cfg Config) *Queue {
	if cfg.QueueBytes <= 0 {
		cfg.QueueBytes = DefaultBytes
	}
	if cfg.QueueAge <= 0 {
		cfg.QueueAge = DefaultAge
	}
	if cfg.Series <= 0 {
		cfg.Series = DefaultSeries
	}
	sink := cfg.Words == Words{}
	if sink {
		cfg.Words = Words{"sink", "sink", "metrics"}
	}
	unit, tag := cfg.Words.Unit, tags.Tag{Name: cfg.Words.Tag, Value: cfg.Name}
	sc := cfg.Store.Own().Scope(cfg.Words.Scope)
	sc.Help(cfg.Words.help())
	q := &Queue{
		cfg:              cfg,
		packets:          sc.Counter("packets", tag),
		metrics:          sc.Counter(unit, tag),
		bytes:            sc.Counter("bytes", tag),
		errs:             sc.Counter("send_errors", tag),
		retries:          sc.Counter("retries", tag),
		dropped:          sc.Counter("dropped_packets", tag),
		ambiguous:        sc.Counter("ambiguous_packets", tag),
		ambiguousMetrics: sc.Counter("ambiguous_"+unit, tag),
		lostPackets:      sc.Counter("lost_packets", tag),
		droppedMetrics:   sc.Counter("dropped_"+unit, tag),
		rejected:         sc.Counter("rejected_"+unit, tag),
		queueBytes:       sc.GaugeWithMode("queue_bytes", store.NeverImport, tag),
		queueAge:         sc.GaugeWithMode("queue_age_seconds", store.NeverImport, tag),
		lastSent:         sc.GaugeWithMode("last_sent_seconds", store.NeverImport, tag),
		closed:           make(chan struct{}),
		owed:             Owed{},
	}
	if sink {
		q.ambiguousIn = sc.Counter("ambiguous_increments", tag)
		q.ambiguousValues = sc.Counter("ambiguous_values", tag)
		q.lostIn = sc.Counter("lost_increments", tag)
		q.lostValues = sc.Counter("lost_values", tag)
		q.owedGauge = sc.GaugeWithMode("owed_series", store.NeverImport, tag)
		q.skipped = sc.Counter("skipped_names", tag)
	}
	q.settled.L = &q.mu
	for range max(cfg.Shards, 1) {
		q.shards = append(q.shards, &shard{q: q, more: make(chan struct{}, 1), now: make(chan struct{}, 1)})
	}
	return q
}

// Add queues a packet with a number of metrics on the first shard and returns at
// once. The queue keeps data.
func (q *Queue) Add(data []byte, metrics int) { q.AddTo(0, data, metrics) }

// AddAll is Add for packets whose order does not matter. It reorders them.
func (q *Queue) AddAll(packets []Packed) {
	largestFirst(packets)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.groups++
	q.add(q.shards[0], q.groups, packets...)
}

// AddTo is Add for a shard.
func (q *Queue) AddTo(n int, data []byte, metrics int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(q.shards[n], 0, Packed{data, metrics})
}

// add queues packets on a shard. The caller holds q.mu.
func (q *Queue) add(s *shard, group uint64, packets ...Packed) {
	empty, now := s.queue.len() == 0, time.Now()
	for _, p := range packets {
		s.queue.push(packet{p.Data, p.Metrics, now, group})
		q.size += len(p.Data)
		q.waiting += p.Metrics
	}
	q.trim()
	if q.ended {
		q.lose()
	}
	if empty { // the shard continues as long as there is more
		s.signal()
	}
}

// Take removes the waiting packets, oldest first, and calls yield for each. The
// caller owns them from then on. Packets that are being sent stay.
func (q *Queue) Take(yield func(data []byte, metrics int)) {
	var all []packet
	q.mu.Lock()
	for _, s := range q.shards {
		for s.queue.len() > 0 {
			p := s.pop()
			q.size -= len(p.data)
			q.waiting -= p.metrics
			all = append(all, p)
		}
	}
	q.trim()
	q.mu.Unlock()
	slices.SortStableFunc(all, func(a, b packet) int { return a.queued.Compare(b.queued) })
	for _, p := range all {
		yield(p.data, p.metrics)
	}
}

// Retry ends the pauses after errors: the next attempts are made immediately.
func (q *Queue) Retry() {
	for _, s := range q.shards {
		select {
		case s.now <- struct{}{}:
		default:
		}
	}
}

// Shards returns the number of shards.
func (q *Queue) Shards() int { return len(q.shards) }

// Owed are increments that wait for a later packet, by the key of their series.
type Owed map[string]uint64

// Take removes the increments of a series and returns them.
func (o Owed) Take(key []byte) uint64 {
	n, ok := o[string(key)]
	if ok {
		delete(o, string(key))
	}
	return n
}

// Owed returns the increments of undelivered packets that were dropped. They belong
// to the caller from then on.
func (q *Queue) Owed() Owed {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trim()
	if len(q.owed) == 0 {
		return nil
	}
	owed := q.owed
	q.forget()
	return owed
}

// Lost counts packets that were sent and, according to a later error, not
// received.
func (q *Queue) Lost(packets int) { q.lostPackets.Add(uint64(packets)) }

// Rejected counts metrics of sent packets that the receiver did not accept.
func (q *Queue) Rejected(metrics int) { q.rejected.Add(uint64(metrics)) }

// Skipped counts a stat that is not sent because its name would be empty.
func (q *Queue) Skipped() { q.skipped.Inc() }

// Dropped counts metrics that are dropped before they are in a packet.
func (q *Queue) Dropped(metrics int) { q.droppedMetrics.Add(uint64(metrics)) }

// Delivery returns the state of the queue.
func (q *Queue) Delivery() flush.SinkDelivery {
	d := flush.SinkDelivery{
		Kind: q.cfg.Kind, Target: q.cfg.Target, LimitBytes: q.cfg.QueueBytes,
		Sent: q.packets.Total(), SentMetrics: q.metrics.Total(), SentBytes: q.bytes.Total(),
		Failed: q.errs.Total(), Retries: q.retries.Total(), Dropped: q.dropped.Total(),
		Ambiguous: q.ambiguous.Total(), Lost: q.lostPackets.Total(), Rejected: q.rejected.Total(), LostCounts: q.lostIn.Total(),
		DroppedMetrics: q.droppedMetrics.Total(), AmbiguousMetrics: q.ambiguousMetrics.Total(),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	d.Bytes, d.Metrics, d.Owed, d.LastSent, d.LastError, d.LastErrorAt = q.size, q.waiting, len(q.owed), q.sentAt, q.lastErr, q.errAt
	now := time.Now()
	for _, s := range q.shards {
		d.Packets += s.queue.len()
		if at := s.oldest(); !at.IsZero() {
			d.Age = max(d.Age, now.Sub(at))
		}
		if s.retry.After(now) && (d.NextRetry.IsZero() || s.retry.Before(d.NextRetry)) {
			d.NextRetry = s.retry
		}
	}
	return d
}

// trim drops packets that exceed the limits, oldest first. The caller holds q.mu.
func (q *Queue) trim() {
	now := time.Now()
	for {
		var oldest *shard
		var queued time.Time
		packets := 0
		for _, s := range q.shards {
			packets += s.queue.len()
			if waiting := s.queue.all(); len(waiting) > 0 && (oldest == nil || waiting[0].queued.Before(queued)) {
				oldest, queued = s, waiting[0].queued
			}
		}
		if oldest == nil || q.size <= q.cfg.QueueBytes && packets <= max(q.cfg.QueueBytes/packetCost, minPackets) && now.Sub(queued) <= q.cfg.QueueAge {
			break
		}
		q.drop(oldest.pop())
	}
	var age time.Duration
	for _, s := range q.shards {
		if at := s.oldest(); !at.IsZero() {
			age = max(age, now.Sub(at))
		}
	}
	q.queueBytes.Set(uint64(q.size))
	q.queueAge.Set(uint64(age / time.Second))
}

// drop drops a packet and keeps its increments. The caller holds q.mu.
func (q *Queue) drop(p packet) {
	q.size -= len(p.data)
	q.waiting -= p.metrics
	q.dropped.Inc()
	q.droppedMetrics.Add(uint64(p.metrics))
	q.lostValues.Add(q.observations(p.data))
	q.increments(p.data, q.owe)
	q.owedGauge.Set(uint64(len(q.owed)))
}

// owe keeps increments of a series outside the queue. The caller holds q.mu.
func (q *Queue) owe(key []byte, n uint64) {
	if _, ok := q.owed[string(key)]; !ok {
		if len(q.owed) >= q.cfg.Series || q.keys+len(key) > q.cfg.Series*owedKeyBytes {
			q.lostIn.Add(n)
			return
		}
		q.keys += len(key)
	}
	q.owed[string(key)] += n
}

// forget empties owed. The caller holds q.mu.
func (q *Queue) forget() {
	q.owed, q.keys = Owed{}, 0
	q.owedGauge.Set(0)
}

func (q *Queue) increments(data []byte, yield func(key []byte, n uint64)) {
	if q.cfg.Increments != nil {
		q.cfg.Increments(data, yield)
	}
}

func (q *Queue) observations(data []byte) uint64 {
	if q.cfg.Observations == nil {
		return 0
	}
	return q.cfg.Observations(data)
}

// Close makes Run return once everything is sent, at the second error in a row, or at one
// that asks for a pause. Packets that are left then are counted as dropped, their
// increments and values as lost, and logged.
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
	defer q.end()
	if q.cfg.Ended != nil {
		defer q.cfg.Ended()
	}
	var all sync.WaitGroup
	for _, s := range q.shards[1:] {
		all.Go(func() { guard.New(q.cfg.Logger).Run("shard of a sink", func() { s.run(ctx) }) })
	}
	q.shards[0].run(ctx)
	all.Wait()
}

// end drops the packets that are left when Run returns.
func (q *Queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	if q.cfg.Keeps == nil || !q.cfg.Keeps() {
		q.lose()
	}
}

// lose drops all packets, and the increments that wait for another one, since there
// will be none. The caller holds q.mu.
func (q *Queue) lose() {
	metrics, increments, values := q.waiting, q.lostIn.Total(), q.lostValues.Total()
	for _, s := range q.shards {
		for s.queue.len() > 0 {
			q.drop(s.pop())
		}
	}
	for _, n := range q.owed {
		q.lostIn.Add(n)
	}
	q.forget()
	q.trim()
	increments, values = q.lostIn.Total()-increments, q.lostValues.Total()-values
	switch {
	case metrics == 0 && increments == 0:
	case q.lostIn == nil:
		q.log(slog.LevelWarn, "stopped with unsent data", q.cfg.Words.Unit, metrics)
	default:
		q.log(slog.LevelWarn, "stopped with unsent data", q.cfg.Words.Unit, metrics, "increments", increments, "values", values)
	}
}

// lossInterval is the least time between two warnings about packets that are not
// retried.
const lossInterval = time.Minute

// warnLoss logs that a packet is not retried after err, at most once in a while: a
// receiver that refuses one packet often refuses all.
func (q *Queue) warnLoss(err error) {
	q.mu.Lock()
	q.quiet++
	n, now := q.quiet, time.Now()
	silent := !q.warned.IsZero() && now.Sub(q.warned) < lossInterval
	if !silent {
		q.warned, q.quiet = now, 0
	}
	q.mu.Unlock()
	if !silent {
		q.log(slog.LevelWarn, "packets are not retried", "packets", n, "error", err)
	}
}

func (q *Queue) log(level slog.Level, msg string, args ...any) {
	if q.cfg.Logger != nil {
		q.cfg.Logger.Log(context.Background(), level, q.cfg.Words.Scope+": "+msg, append([]any{q.cfg.Words.Tag, q.cfg.Name}, args...)...)
	}
}
