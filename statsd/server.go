package statsd

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// Server receives lines. Create one with [New], then call Listen, then Run. The
// other methods are safe for concurrent use at any time.
type Server struct {
	cfg      Config
	parser   *line.Parser
	metrics  *serverMetrics
	guard    guard.Guard // counts and logs panics
	registry *registry
	rejects  *rejects
	relay    *relay.Relay // nil if there is none
	events   *eventLog
	setSeed  maphash.Seed
	seconds  bool // timers are shown in seconds

	lastReload atomic.Pointer[reload]

	streamWorkers []*worker // shared by stream connections
	nextWorker    atomic.Uint32

	stop chan struct{} // closed when the server stops

	mu        sync.Mutex // guards the rest
	state     state
	listeners []*listener
	workers   []*worker // of stream connections and of sockets

	flushMu sync.Mutex // serializes Flush and guards the rest
	flushed time.Time
	recent  topWindow
	peer    *exporterMetrics // nil if disabled
}

// state is the stage of a server's life.
type state uint8

const (
	made state = iota
	listening
	running
	ended
)

// New validates cfg and returns a server. Nothing is bound before Listen. A
// store can have one server.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, l := range cfg.Listeners {
		a, err := parseAddress(l.Address)
		if err != nil {
			return nil, err
		}
		if a.scheme == "tls" && l.TLS == nil {
			return nil, fmt.Errorf("statsd: %q needs TLS settings with a certificate", l.Address)
		}
	}
	s := &Server{
		cfg:     cfg,
		parser:  line.New(cfg.lineConfig()),
		metrics: newServerMetrics(cfg.Store.Own()),
		rejects: newRejects(&cfg),
		events:  newEventLog(cfg.Events, cfg.Checks),
		setSeed: maphash.MakeSeed(),
		seconds: cfg.Store.Naming().NetworkSeconds,
		stop:    make(chan struct{}),
		flushed: cfg.Now(),
	}
	s.cfg.Logger = guard.Observe(cfg.Logger, func(string, any) { s.metrics.panics.Inc() })
	s.guard = guard.New(s.cfg.Logger)
	s.registry = newRegistry(&s.cfg, s.metrics)
	s.metrics.memoryLimit.Set(uint64(max(s.registry.memory.limit(), 0)))
	if len(cfg.Relay) > 0 {
		if s.relay, err = relay.New(relay.Config{Store: cfg.Store, Parser: s.parser, Routes: cfg.Relay, LoopCheck: cfg.RelayLoopCheck, Logger: s.cfg.Logger}); err != nil {
			return nil, err
		}
	}
	if cfg.Rules != nil {
		s.SetRules(cfg.Rules)
	}
	if cfg.ExporterMetrics {
		s.peer = newExporterMetrics(&cfg)
	}
	for i := range runtime.GOMAXPROCS(0) {
		s.streamWorkers = append(s.streamWorkers, s.newWorker(fmt.Sprint("streams/", i)))
	}
	return s, nil
}

// newWorker adds a worker; reader is its name in metrics. s.mu must be held, or
// s not shared yet.
func (s *Server) newWorker(reader string) *worker {
	w := &worker{
		server:   s,
		registry: s.registry,
		parser:   s.parser,
		cache:    newSeriesCache(s.cfg.Limits.CacheEntries, &s.registry.memory.caches),
		busy:     newBusyTime(s.cfg.Store.Own(), reader),
	}
	w.gauge = w.targetGauge
	if s.relay != nil {
		w.relay = s.relay.NewWriter(&w.mu)
	}
	s.workers = append(s.workers, w)
	return w
}

// Listen binds all listeners. If one fails, none stays bound. Input waits in
// the sockets until Run.
func (s *Server) Listen() error {
	var logs []message
	err := s.listen(&logs)
	s.logAll(logs)
	return err
}

func (s *Server) listen(logs *[]message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != made {
		return errors.New("statsd: Listen was called before")
	}
	var bound []*listener
	fail := func(err error) error {
		for _, b := range bound {
			b.close()
		}
		for _, l := range s.cfg.Listeners {
			for _, f := range l.Sockets {
				_ = f.Close() // some are closed
			}
		}
		return err
	}
	for _, cfg := range s.cfg.Listeners {
		l, err := bind(cfg, logs)
		if err != nil {
			return fail(err)
		}
		bound = append(bound, l)
	}
	if s.relay != nil {
		var addresses []string
		for _, l := range bound {
			addresses = append(addresses, l.local)
		}
		if err := s.relay.SetListeners(addresses); err != nil {
			return fail(err)
		}
	}
	names := make(map[string]bool)
	for _, l := range bound {
		for base, n := l.name, 2; names[l.name]; n++ {
			l.name = fmt.Sprint(base, "#", n) // two listeners must not share metrics
		}
		names[l.name] = true
		l.metrics = newListenerMetrics(s.cfg.Store.Own(), l.name, l.addr)
		if s.cfg.RelayOnly {
			l.metrics.countRelayOnly()
		}
		l.conns.total, l.conns.perAddr = l.cfg.Connections, l.cfg.PerAddress
		l.conns.init()
		granted := 0
		for i, so := range l.sockets {
			so.worker = s.newWorker(fmt.Sprint(l.name, "/", i))
			granted += so.granted
		}
		if granted > 0 {
			l.metrics.rcvbuf.Set(uint64(granted))
		}
	}
	if r := s.cfg.Rules; s.cfg.TTL == (TTL{}) && (r == nil || r.Config().TTL == 0) {
		*logs = append(*logs, message{slog.LevelInfo, "statsd: no time to live is set: series stay until they are forgotten or the process exits, and gauges keep their last value", nil})
	}
	s.listeners, s.state = bound, listening
	return nil
}

// Run receives lines until ctx ends. Then it stops accepting connections, reads
// pending input for up to 250 ms, closes the sockets, sends lines queued for
// relay targets for up to 5 s, and returns. Run can be called once, after
// Listen.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.state != listening {
		s.mu.Unlock()
		return errors.New("statsd: Run must be called once, after Listen")
	}
	s.state = running
	all := s.listeners
	s.mu.Unlock()

	stopRelay := func() {}
	if s.relay != nil {
		stopRelay = s.relay.Start()
	}
	for _, l := range all {
		l.takePath()
		for _, so := range l.sockets {
			l.readers.Go(func() { s.keep("reader", func() { s.readPackets(l, so) }) })
		}
		if l.accept != nil {
			l.accepter.Go(func() { s.keep("accepter", func() { s.acceptStreams(l) }) })
		}
	}
	<-ctx.Done()
	close(s.stop)
	var ending sync.WaitGroup
	for _, l := range all {
		ending.Go(func() { s.guard.Run("end of a listener", l.end) })
	}
	ending.Wait()
	stopRelay() // no worker has input any more
	s.Close()
	return nil
}

// StopListener stops one listener of a running server as Run stops all of them,
// and returns when it has stopped. The others continue. It reports false if no
// listener has that name.
func (s *Server) StopListener(name string) bool {
	for _, l := range s.snapshotListeners() {
		if l.name == name {
			l.end()
			return true
		}
	}
	return false
}

// end reads the pending input and closes the listener. It returns when that is
// done; concurrent calls wait too.
func (l *listener) end() {
	l.ending.Do(func() {
		l.halt(true)
		l.conns.drain()
		l.accepter.Wait()
		l.readers.Wait()
		l.streams.Wait()
		l.close()
	})
}

// halt stops reading datagrams and accepting connections. If linger is set,
// connections that wait already are still accepted for some time. It does not
// wait for the goroutines.
func (l *listener) halt(linger bool) {
	l.halting.Do(func() {
		l.adopting.Lock()
		l.acceptUntil = time.Now().Add(l.linger)
		close(l.stop)
		l.adopting.Unlock()
		switch {
		case l.accept == nil:
		case linger && l.paused.Load() == nil:
			l.acceptBefore(time.Unix(1, 0)) // wakes the accepter
		default:
			_ = l.accept.Close() // ends the accepter
		}
		for _, so := range l.sockets {
			_ = so.conn.SetReadDeadline(time.Unix(1, 0)) // ends the wait of its reader
		}
		l.conns.takeWaiting()
	})
}

// acceptBefore sets the deadline for accepting.
func (l *listener) acceptBefore(t time.Time) {
	_ = l.plain.(interface{ SetDeadline(time.Time) error }).SetDeadline(t) // fails only when it is closed
}

// acceptsMore reports whether a stopping listener should accept once more.
func (l *listener) acceptsMore() bool {
	now := time.Now()
	if c, ok := l.plain.(syscall.Conn); !ok || !now.Before(l.acceptUntil) || !waits(c) {
		return false
	}
	l.acceptBefore(now.Add(drainIdle))
	return true
}

func (l *listener) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// Close closes the sockets that Listen bound. It is only needed if Run is not
// called.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return
	}
	s.state = ended
	for _, l := range s.listeners {
		l.close()
	}
	s.cfg.Store.OnNetworkEnd(nil)
}

// pause waits for d or until the server stops.
func (s *Server) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.stop:
	}
}

// keep calls f until it returns without a panic.
func (s *Server) keep(where string, f func()) {
	for !s.guard.Run(where, f) {
		s.pause(retryPause)
	}
}

// logAll logs messages. No lock may be held.
func (s *Server) logAll(logs []message) {
	for _, m := range logs {
		s.cfg.Logger.Log(context.Background(), m.level, m.text, m.args...)
	}
}

func (s *Server) snapshotListeners() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners
}

func (s *Server) allWorkers() []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers
}

// Flush prepares a flush of the store at the time now: it publishes the counts
// of sets and starts their next interval, updates the server's own gauges, and
// lets series beyond a limit be checked against it again.
func (s *Server) Flush(now time.Time) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	for _, l := range s.snapshotListeners() {
		if len(l.sockets) == 0 {
			continue
		}
		used := 0
		for _, so := range l.sockets {
			u, _ := s.watchQueue(l, so)
			used += u
		}
		l.metrics.queueBytes.Set(uint64(used))
	}
	if s.registry.pending.Load() {
		s.registry.dropEnded()
	}
	s.replaceReshaped()
	s.registry.dropHelp()
	retired := s.registry.takeRetired()
	entries, counts := 0, make(map[uint32]uint64)
	for _, w := range s.allWorkers() {
		entries += w.takeTop(counts)
	}
	s.registry.recycle(retired)
	s.metrics.cacheEntries.Set(uint64(entries))
	s.recent.add(s.registry.named(counts), now.Sub(s.flushed))
	s.flushed = now
	s.registry.flush(now)
	if s.peer != nil {
		s.peer.update(s)
	}
}

// Sweep removes expired stats as [store.Store.Sweep] does, while no sample is
// being applied, so that no sample is lost.
func (s *Server) Sweep(evict bool) {
	s.holdAll(func() { s.cfg.Store.Sweep(evict) })
}

// Forget removes the received stats whose full name satisfies match and returns
// their number. A later sample creates a new stat. Samples wait for the removal, but not
// for match.
func (s *Server) Forget(match func(name string) bool) (n int) {
	refs := s.cfg.Store.NetworkRefs(match)
	s.holdAll(func() { n = s.cfg.Store.RemoveRefs(refs) })
	return n
}

// Matching returns the number of received stats whose full name satisfies match.
func (s *Server) Matching(match func(name string) bool) int {
	return len(s.cfg.Store.NetworkRefs(match))
}

// holdAll calls f while all workers are idle.
func (s *Server) holdAll(f func()) {
	workers := s.allWorkers()
	for _, w := range workers {
		w.mu.Lock()
	}
	defer func() {
		for _, w := range workers {
			w.mu.Unlock()
		}
	}()
	f()
	if s.registry.pending.Load() {
		s.registry.dropEnded()
	}
	shrink := s.registry.recycle(s.registry.takeRetired())
	for _, w := range workers {
		if shrink || w.cache.stale(w.valid) {
			w.cache.prune(w.valid)
			clear(w.targets[:cap(w.targets)])
		}
	}
	if shrink {
		s.registry.shrink()
	}
}

// Scope returns the scope of received stats.
func (s *Server) Scope() *store.Scope { return s.registry.scope }
