package deltastream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Defaults of [Config], and limits.
const (
	DefaultInterval    = time.Second
	DefaultClients     = 64
	DefaultRingBytes   = 8 << 20
	DefaultClientBytes = 4 << 20
	DefaultHeartbeat   = 10 * time.Second
	DefaultLinger      = 30 * time.Second
	MaxRequestInterval = 30 * time.Second // of Request.Interval

	maxTicks  = 300             // in the ring
	beginTime = 2 * time.Minute // for the values of all stats to be read
)

// Config are the settings of a [Stream]. A zero field means its default.
type Config struct {
	// Store is the store to follow. Required.
	Store *store.Store
	// Interval is the time between two polls of the store. Default 1 s.
	Interval time.Duration
	// Clients limits the number of clients. Default 64; negative means no limit.
	Clients int
	// RingBytes limits the memory for recent changes. Default 8 MiB.
	RingBytes int
	// ClientBytes limits the memory of a client: a few bits for each stat, and
	// a buffer. A client that reaches it is sent names again. Default 4 MiB.
	ClientBytes int
	// Heartbeat is the time without an event after which a client gets a comment.
	// Default 10 s.
	Heartbeat time.Duration
	// Linger is how long changes are collected after the last client left, so that
	// it can resume. Default 30 s.
	Linger time.Duration
	// Epoch distinguishes the event ids of this stream and of other processes.
	// Default: the time of New in milliseconds.
	Epoch uint64
}

// Stream follows the changes of a store for its clients. Create it with [New];
// its methods are safe for concurrent use.
type Stream struct {
	cfg    Config
	closed chan struct{}
	wake   chan struct{} // signaled when the first client subscribes

	polling sync.Mutex   // guards watch and idle; taken before mu
	watch   *store.Watch // nil: no client
	idle    time.Duration

	mu      sync.Mutex // guards the rest
	clients int
	ring    []tick
	bytes   int           // of ring
	seq     uint64        // of the last tick
	now     time.Time     // of the last tick
	ticked  chan struct{} // closed at the next tick
	ended   bool
}

// tick is one look at the store.
type tick struct {
	seq     uint64
	changes *store.Changes
}

// New returns a stream without clients.
func New(cfg Config) *Stream {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.Interval, DefaultInterval}, {&cfg.Heartbeat, DefaultHeartbeat}, {&cfg.Linger, DefaultLinger}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if cfg.RingBytes <= 0 {
		cfg.RingBytes = DefaultRingBytes
	}
	if cfg.ClientBytes <= 0 {
		cfg.ClientBytes = DefaultClientBytes
	}
	cfg.Clients = cmp.Or(cfg.Clients, DefaultClients)
	if cfg.Epoch == 0 {
		cfg.Epoch = uint64(time.Now().UnixMilli())
	}
	return &Stream{cfg: cfg, closed: make(chan struct{}), wake: make(chan struct{}, 1), ticked: make(chan struct{})}
}

// Interval returns the time between two polls of the store.
func (s *Stream) Interval() time.Duration { return s.cfg.Interval }

// Clients returns how many clients there are.
func (s *Stream) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}

// Run calls [Stream.Tick] at a fixed rate while there are clients, until ctx ends. Then it
// closes the stream, and the store, which can outlive it, is no longer followed.
func (s *Stream) Run(ctx context.Context) error {
	defer s.end()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		if err := s.tickUntilIdle(ctx); err != nil {
			return nil
		}
	}
}

func (s *Stream) tickUntilIdle(ctx context.Context) error {
	timer := time.Tick(s.cfg.Interval)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer:
		}
		if !s.Tick() {
			return nil
		}
	}
}

// Tick polls the store once and wakes the clients. It returns false if there
// have been none for Config.Linger.
func (s *Stream) Tick() (more bool) {
	s.polling.Lock()
	defer s.polling.Unlock()
	if s.watch == nil {
		return false
	}
	if s.Clients() > 0 {
		s.idle = 0
	} else if s.idle += s.cfg.Interval; s.idle > s.cfg.Linger {
		s.leave()
		return false
	}
	changes := s.watch.Poll()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	s.now = changes.Time
	s.ring = append(s.ring, tick{s.seq, changes})
	s.bytes += changes.Bytes()
	for len(s.ring) > 1 && (s.bytes > s.cfg.RingBytes || len(s.ring) > maxTicks) {
		s.bytes -= s.ring[0].changes.Bytes()
		s.ring[0] = tick{}
		s.ring = s.ring[1:]
	}
	close(s.ticked)
	s.ticked = make(chan struct{})
	return true
}

// leave ends the watch, if there is one. s.polling must be held.
func (s *Stream) leave() {
	if s.watch == nil {
		return
	}
	s.watch.Close()
	s.watch = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring, s.bytes = nil, 0
	s.seq++ // so that no id of before can be resumed from
}

// end closes the stream and ends the watch.
func (s *Stream) end() {
	s.Close()
	s.polling.Lock()
	defer s.polling.Unlock()
	s.leave()
}

// Close ends the streams of all clients, present and future.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.closed)
	}
}

// Request selects stats for a client. The zero value is all stats.
type Request struct {
	// Options select the stats; see [render.Options].
	Options render.Options
	// Refs, unless nil, selects only stats with these references.
	Refs []uint64
	// Interval is the minimum time between two events, at most 30 s. 0 and
	// anything below the interval of the stream mean that interval.
	Interval time.Duration
	// ChangesOnly omits the initial values.
	ChangesOnly bool
	// Began, if set, is called when the initial values have been sent.
	Began func()
	// LastEventID is the id of the last event that the client has, or "".
	LastEventID string
}

// FullError is the error of [Stream.Subscribe] when the limit of clients is
// reached.
type FullError struct{ Clients int }

func (e *FullError) Error() string {
	return fmt.Sprintf("deltastream: %d clients listen, which is the limit", e.Clients)
}

// ErrLastEventID is the error of [Stream.Subscribe] for a LastEventID that no
// stream sends.
var ErrLastEventID = errors.New("deltastream: malformed Last-Event-ID")

// Subscribe adds a client. The caller must close it. The error is a *[FullError]
// or [ErrLastEventID].
func (s *Stream) Subscribe(r Request) (*Client, error) {
	epoch, last, err := parseID(r.LastEventID)
	if err != nil {
		return nil, err
	}
	s.polling.Lock()
	defer s.polling.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Clients > 0 && s.clients >= s.cfg.Clients {
		return nil, &FullError{s.cfg.Clients}
	}
	if s.watch == nil && !s.ended {
		s.watch, s.idle = s.cfg.Store.Watch(), 0
		s.seq++
		s.now = s.watch.Time()
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.clients++
	c := newClient(s, r)
	c.at, c.sent = s.seq, s.now
	switch {
	case r.LastEventID == "":
		c.reset = "start"
	case epoch != s.cfg.Epoch:
		c.reset = "restart"
	case last > s.seq || last < s.oldestLocked():
		c.reset = "expired"
	default:
		c.at, c.sent, c.resumed = last, time.Time{}, true
	}
	return c, nil
}

// oldestLocked returns the oldest position from which a client can continue.
// Stream.mu must be held.
func (s *Stream) oldestLocked() uint64 {
	if len(s.ring) == 0 {
		return s.seq
	}
	return s.ring[0].seq - 1
}

// since returns the changes after position at, the last position, and the channel
// that the next tick closes. ok is false if changes are missing.
func (s *Stream) since(at uint64) (list []*store.Changes, seq uint64, next <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.oldestLocked() {
		return nil, s.seq, s.ticked, false
	}
	for _, t := range s.ring {
		if t.seq > at {
			list = append(list, t.changes)
		}
	}
	return list, s.seq, s.ticked, true
}

// position returns the last position and the time of its tick.
func (s *Stream) position() (seq uint64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq, s.now
}

// parseID returns the parts of an event id, "epoch.seq".
func parseID(id string) (epoch, seq uint64, err error) {
	if id == "" {
		return 0, 0, nil
	}
	a, b, _ := strings.Cut(id, ".")
	if epoch, err = strconv.ParseUint(a, 10, 64); err == nil {
		seq, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %.40q is not of the form 1700000000000.12", ErrLastEventID, id)
	}
	return epoch, seq, nil
}
