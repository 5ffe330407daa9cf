package eventstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// Defaults of [Config].
const (
	DefaultBuckets    = 10
	DefaultClients    = 16
	DefaultQueueBytes = 256 << 10
	DefaultMaxPending = 1024
	DefaultHeartbeat  = 5 * time.Second
)

// Config are the settings of a [Stream]. The zero value means all defaults.
type Config struct {
	// Interval is the flush interval, which events show. Default 5 s.
	Interval time.Duration
	// Buckets is the length of the rolling window in flushes. Default 10.
	Buckets int
	// Clients limits the number of clients. Default 16; negative means no limit.
	Clients int
	// QueueBytes limits the bytes queued for a client. A client is dropped if
	// its queue is not empty and would exceed the limit. Default 256 KiB.
	QueueBytes int
	// Heartbeat is the time without an event after which a client gets a
	// comment. Default 5 s. If it is not above Interval, it is raised to 1.25 ×
	// Interval.
	Heartbeat time.Duration
	// Cluster returns the name of the cluster with a stat name, and its limit on
	// pending requests at the default priority. Default: the stat name, and 1024.
	Cluster func(statName string) (name string, maxPending uint64)
	// Now returns the time that events show. Default time.Now.
	Now func() time.Time
}

// Stream is a sink that turns flushes into events. Create it with [New]; its
// methods are safe for concurrent use.
type Stream struct {
	cfg Config

	mu      sync.Mutex // guards the rest
	clients []*Client
	session uint64 // incremented when the first client subscribes
	closed  chan struct{}
	ended   bool

	flushing sync.Mutex // guards what follows; taken before mu
	sampled  uint64     // the session that clusters is of
	flush    uint64     // number of the flush
	clusters map[string]*cluster
	scalars  store.Selection
	times    store.Selection
	room     []byte
	size     int // of the last payload
}

var _ flush.Sink = (*Stream)(nil)

// New returns a stream without clients.
func New(cfg Config) *Stream {
	if cfg.Interval <= 0 {
		cfg.Interval = flush.DefaultInterval
	}
	if cfg.Buckets <= 0 {
		cfg.Buckets = DefaultBuckets
	}
	cfg.Clients = cmp.Or(cfg.Clients, DefaultClients)
	if cfg.QueueBytes <= 0 {
		cfg.QueueBytes = DefaultQueueBytes
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = DefaultHeartbeat
	}
	if late := cfg.Interval + cfg.Interval/4; cfg.Interval <= cfg.Heartbeat {
		cfg.Heartbeat = max(cfg.Heartbeat, late)
	}
	if cfg.Cluster == nil {
		cfg.Cluster = func(statName string) (string, uint64) { return statName, DefaultMaxPending }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Stream{cfg: cfg, closed: make(chan struct{})}
}

// Name is the name of the sink.
func (s *Stream) Name() string { return "circuit_stream" }

// Close ends the streams of all clients, present and future.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.closed)
	}
}

// FullError is the error of [Stream.Subscribe] when the limit on clients is
// reached.
type FullError struct{ Clients int }

func (e *FullError) Error() string {
	return fmt.Sprintf("eventstream: %d clients listen, which is the limit", e.Clients)
}

// Subscribe adds a client, which gets the events of all flushes from now on.
// The caller must close it. The error is a *[FullError].
func (s *Stream) Subscribe() (*Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Clients > 0 && len(s.clients) >= s.cfg.Clients {
		return nil, &FullError{s.cfg.Clients}
	}
	if len(s.clients) == 0 {
		s.session++
	}
	c := &Client{stream: s, more: make(chan struct{}, 1)}
	s.clients = append(s.clients, c)
	return c, nil
}

// listeners returns the clients and their session.
func (s *Stream) listeners() ([]*Client, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.clients), s.session
}

// Flush sends every client the events of a flush. Counters and gauges have
// their current values, histograms their state as of the flush.
func (s *Stream) Flush(snap *store.Snapshot) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	clients, session := s.listeners()
	if len(clients) == 0 || session != s.sampled {
		// Samples for earlier clients are of no use to others.
		s.clusters, s.scalars, s.times = nil, store.Selection{}, store.Selection{}
		s.sampled = session
	}
	if len(clients) == 0 {
		return nil
	}
	payload := s.payload(snap.View().Store())
	for _, c := range clients {
		c.offer(payload)
	}
	return nil
}

// payload samples all clusters and returns the events about them.
func (s *Stream) payload(st *store.Store) []byte {
	if s.clusters == nil {
		s.clusters = make(map[string]*cluster)
	}
	s.flush++
	v := st.View()
	defer v.Close()
	s.sample(v.ByNameIn(store.Scalars, &s.scalars, s.judge))
	s.sample(v.ByNameIn(store.Histograms, &s.times, s.judge))

	live := make([]*cluster, 0, len(s.clusters))
	for name, c := range s.clusters {
		if c.seen != s.flush || !c.visible() {
			delete(s.clusters, name)
			continue
		}
		live = append(live, c)
	}
	slices.SortFunc(live, func(a, b *cluster) int { return cmp.Compare(a.name, b.name) })
	f := frame{now: s.cfg.Now().Unix(), window: uint64(s.cfg.Interval.Milliseconds())}
	b := make([]byte, 0, s.size+s.size/8)
	for _, c := range live {
		grown := c.roll(s.cfg.Buckets)
		name, pending := s.cfg.Cluster(c.name)
		if c.quoted == nil || name != c.shown {
			c.shown = name
			c.quoted, _ = json.Marshal(name) // strings can always be encoded
		}
		b = c.appendCommand(b, f, &grown, pending)
		b = c.appendThreadPool(b, f, pending)
	}
	b = append(b, ping...)
	s.size = len(b)
	return b
}

// judge selects the stats that the stream shows. Network input cannot make
// clusters.
func (s *Stream) judge(c *store.Cursor) (bool, error) {
	if c.Network() {
		return false, nil
	}
	s.room = c.AppendName(s.room[:0])
	_, f := parseName(s.room)
	return f != noFeed && (f == feedTime) == (c.Kind() == store.KindHistogram) &&
		(f == feedMembers) == (c.Kind() == store.KindGauge), nil
}

// sample takes the values of the stats that the cursor walks.
func (s *Stream) sample(cur store.Cursor) {
	for cur.Next() {
		s.room = cur.AppendName(s.room[:0])
		name, f := parseName(s.room)
		c := s.clusters[string(name)]
		if c == nil {
			c = &cluster{name: string(name)}
			s.clusters[c.name] = c
		}
		if c.seen != s.flush {
			c.seen, c.listed, c.hosts, c.times = s.flush, false, 0, nil
			c.values = [feedMembers]uint64{}
		}
		c.take(f, &cur)
	}
}
