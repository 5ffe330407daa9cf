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
	"github.com/statsd-admin/statsd-admin/store"
)

// Server takes in lines. Make one with [New], then Listen, then Run. Its other
// methods may be called at any time from any goroutine.
type Server struct {
	cfg      Config
	parser   *line.Parser
	metrics  *serverMetrics
	guard    guard.Guard // counts and logs panics
	registry *registry
	rejects  *rejects
	events   *eventLog
	setSeed  maphash.Seed

	streamWorkers []*worker // shared by stream connections
	nextWorker    atomic.Uint32

	stop chan struct{} // closed when the server stops

	mu        sync.Mutex // guards the rest
	state     state
	listeners []*listener
	workers   []*worker // all: those of stream connections and of sockets

	flushMu sync.Mutex // serializes Flush and guards the rest
	flushed time.Time
	recent  topWindow
	peer    *exporterMetrics // nil unless they are asked for
}

// state is how far a server has come.
type state uint8

const (
	made state = iota
	listening
	running
	ended
)

// New checks cfg and returns a server. Nothing is bound before Listen. A store
// has one server.
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
			return nil, fmt.Errorf("statsd: %q needs TLS settings: a certificate at least", l.Address)
		}
	}
	s := &Server{
		cfg:     cfg,
		parser:  line.New(cfg.lineConfig()),
		metrics: newServerMetrics(cfg.Store.Root()),
		rejects: newRejects(&cfg),
		events:  newEventLog(cfg.Events, cfg.Checks),
		setSeed: maphash.MakeSeed(),
		stop:    make(chan struct{}),
		flushed: cfg.Now(),
	}
	s.guard = guard.New(guard.Observe(cfg.Logger, func(string, any) { s.metrics.panics.Inc() }))
	s.registry = newRegistry(&s.cfg, s.metrics)
	if cfg.ExporterMetrics {
		s.peer = newExporterMetrics(cfg.Store)
	}
	for i := range runtime.GOMAXPROCS(0) {
		s.streamWorkers = append(s.streamWorkers, s.newWorker(fmt.Sprint("streams/", i)))
	}
	return s, nil
}

// newWorker adds a worker; reader is its name in metrics. s.mu must be held, or s
// not be shared yet.
func (s *Server) newWorker(reader string) *worker {
	w := &worker{
		server:   s,
		registry: s.registry,
		parser:   s.parser,
		cache:    newSeriesCache(s.cfg.Limits.CacheEntries, &s.registry.memory.caches),
		busy:     newBusyTime(s.cfg.Store.Root(), reader),
	}
	w.gauge = w.targetGauge
	s.workers = append(s.workers, w)
	return w
}

func (s *Server) nextStreamWorker() *worker {
	return s.streamWorkers[int(s.nextWorker.Add(1))%len(s.streamWorkers)]
}

// Listen binds all listeners. If one cannot be bound none is, and the error
// says why. What arrives from then on waits until Run.
func (s *Server) Listen() error {
	var said []message
	err := s.listen(&said)
	s.say(said)
	return err
}

func (s *Server) listen(said *[]message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != made {
		return errors.New("statsd: Listen was called before")
	}
	var bound []*listener
	for _, cfg := range s.cfg.Listeners {
		l, err := bind(cfg, said)
		if err != nil {
			for _, b := range bound {
				b.close()
			}
			return err
		}
		bound = append(bound, l)
	}
	names := make(map[string]bool)
	for _, l := range bound {
		for base, n := l.name, 2; names[l.name]; n++ {
			l.name = fmt.Sprint(base, "#", n) // metrics of two listeners must not mix
		}
		names[l.name] = true
		l.metrics = newListenerMetrics(s.cfg.Store.Root(), l.name, l.addr)
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
	if s.cfg.TTL == (TTL{}) {
		*said = append(*said, message{slog.LevelInfo, "statsd: series stay until they are forgotten or the process ends, since no time to live is set; gauges show the last value for ever", nil})
	}
	s.listeners, s.state = bound, listening
	return nil
}

// Run takes in lines until ctx ends. Then it stops accepting connections,
// reads for up to 250 ms what sockets hold, closes them, and returns. Listen
// must have been called; Run once.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.state != listening {
		s.mu.Unlock()
		return errors.New("statsd: Run needs Listen before it, and runs once")
	}
	s.state = running
	all := s.listeners
	s.mu.Unlock()

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
	s.Close()
	return nil
}

// StopListener ends one listener of a running server as Run ends all of them,
// and returns when that is done. The others go on. It reports false if there
// is no listener of that name.
func (s *Server) StopListener(name string) bool {
	for _, l := range s.snapshotListeners() {
		if l.name == name {
			l.end()
			return true
		}
	}
	return false
}

// end lets the accepter, readers and connections take in what is there, and
// closes the listener. It returns when that is done, also to those who come
// second.
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

// halt ends accepting, of connections that wait already only after some time if
// linger is set, and reading of datagrams. It does not wait for that.
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

// acceptsMore reports whether a listener that is to end should accept once more.
func (l *listener) acceptsMore() bool {
	now := time.Now()
	if c, ok := l.plain.(syscall.Conn); !ok || !now.Before(l.acceptUntil) || !waits(c) {
		return false
	}
	l.acceptBefore(now.Add(drainIdle))
	return true
}

// stopping reports whether the listener is to end.
func (l *listener) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// Close closes what Listen bound. It is for servers that do not get to Run,
// which does it in the end.
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

// pause waits for d or the end.
func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stop:
	}
}

// keep calls f until it returns without a panic.
func (s *Server) keep(where string, f func()) {
	for !s.guard.Run(where, f) {
		s.pause(retryPause)
	}
}

// say logs messages. No lock may be held.
func (s *Server) say(said []message) {
	s.guard.Run("log", func() {
		for _, m := range said {
			s.cfg.Logger.Log(context.Background(), m.level, m.text, m.args...)
		}
	})
}

// snapshotListeners returns the listeners as of now.
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

// Flush prepares a flush of the store at the time now: sets show the count of
// the interval that ends and begin anew, gauges about the server are
// refreshed, and limits look again at what they kept out.
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
	retired := s.registry.takeRetired()
	entries, counts := 0, make(map[uint32]uint64)
	for _, w := range s.allWorkers() {
		entries += w.takeTop(counts)
	}
	s.registry.recycle(retired)
	s.metrics.cacheEntries.Set(uint64(entries))
	s.recent.add(s.registry.named(counts), now.Sub(s.flushed))
	s.flushed = now
	s.registry.flush()
	if s.peer != nil {
		s.peer.update(s)
	}
}

// Sweep ends the stats that have outlived their time, as [store.Store.Sweep]
// does, while no sample is under way: none goes into a stat that ends.
func (s *Server) Sweep(evict bool) {
	s.holdAll(func() { s.cfg.Store.Sweep(evict) })
}

// Forget ends the received stats whose full name satisfies match and returns
// how many they were. A sample that comes later begins a new one.
func (s *Server) Forget(match func(name string) bool) (n int) {
	s.holdAll(func() { n = s.cfg.Store.RemoveNetwork(match) })
	return n
}

// holdAll calls f while no worker is at work.
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
	s.registry.recycle(s.registry.takeRetired())
	shrink := s.registry.shrinkable()
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

// Scope returns the scope that received stats are made in.
func (s *Server) Scope() *store.Scope { return s.registry.scope }
