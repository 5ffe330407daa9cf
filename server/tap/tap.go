package tap

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Config are the settings of a [Tap]. The zero value means all defaults.
type Config struct {
	// QueueBytes is the size of the queue for a slow client, including overhead.
	// Default 1 MiB.
	QueueBytes int
	// Dropped counts traces that did not fit in the queue. If nil, they are not
	// counted.
	Dropped interface{ Inc() }
	// Heartbeat is the interval after which a JSON client without traces is sent an
	// empty line, which detects disconnected clients. Default 5 s.
	Heartbeat time.Duration
	// Now returns the time of traces. Default time.Now.
	Now func() time.Time
}

// bufferedBytes limits the size of a buffered stream.
const bufferedBytes = 8 << 20

// Tap holds the sources and the attached stream, if any. Use [New]. Its methods are
// safe for concurrent use.
type Tap struct {
	cfg Config

	mu       sync.Mutex // guards the rest
	sources  map[string]*Source
	attached *Session
}

// New returns a tap without sources.
func New(cfg Config) *Tap {
	if cfg.QueueBytes <= 0 {
		cfg.QueueBytes = 1 << 20
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Tap{cfg: cfg, sources: make(map[string]*Source)}
}

// Source is a source of traces.
type Source struct{ session atomic.Pointer[Session] }

// Session returns the stream attached to the source, or nil. It costs one atomic
// load.
func (s *Source) Session() *Session { return s.session.Load() }

// Register returns the source with the given ID, which requests refer to. Registering
// an ID again returns the same source, so an attached stream continues.
func (t *Tap) Register(id string) *Source {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sources[id]
	if s == nil {
		s = new(Source)
		t.sources[id] = s
	}
	return s
}

// Attach starts the stream that a request body describes. The error text is sent to
// the client. The caller must close the session when the client is gone.
func (t *Tap) Attach(body []byte) (*Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached != nil {
		//lint:ignore ST1005 the text is part of the interface
		return nil, errors.New("An attached /tap admin stream already exists. Detach it.")
	}
	if len(body) == 0 {
		return nil, errors.New("/tap requires a JSON/YAML body")
	}
	set, err := parse(body)
	if err != nil {
		return nil, err
	}
	source := t.sources[set.id]
	if source == nil {
		return nil, errors.New("Unknown config id '" + set.id + "'. No extension has registered with this id.")
	}
	s := &Session{tap: t, source: source, settings: set, more: make(chan struct{}, 1)}
	t.attached = s
	source.session.Store(s)
	return s, nil
}

// Session is an attached stream.
type Session struct {
	tap      *Tap
	source   *Source
	settings *settings
	more     chan struct{} // signals that a trace was queued
	last     atomic.Uint64 // number of the last trace

	mu     sync.Mutex // guards the rest
	queue  []trace
	bytes  int // size of queue
	closed bool
}

// Close detaches the session from its source.
func (s *Session) Close() {
	t := s.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attached == s {
		t.attached = nil
		s.source.session.Store(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue = true, nil
}

// traceBytes is the approximate overhead of a trace.
const traceBytes = 256

// offer queues a trace or drops it.
func (s *Session) offer(t trace) {
	size := t.size() + traceBytes
	s.mu.Lock()
	fits := !s.closed && s.bytes+size <= s.tap.cfg.QueueBytes
	if fits {
		s.queue = append(s.queue, t)
		s.bytes += size
	}
	s.mu.Unlock()
	if !fits {
		if s.tap.cfg.Dropped != nil {
			s.tap.cfg.Dropped.Inc()
		}
		return
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// take returns the queued traces.
func (s *Session) take() []trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue
	s.queue, s.bytes = nil, 0
	return q
}

// Writer receives the bytes of a stream.
type Writer interface {
	io.Writer
	// Flush sends the written bytes.
	Flush() error
}

// Serve writes traces to w until closing is closed or a buffered stream is complete,
// and then returns nil. Any error it returns is from w.
func (s *Session) Serve(w Writer, closing <-chan struct{}) error {
	if s.settings.buffered {
		return s.serveBuffered(w, closing)
	}
	if err := w.Flush(); err != nil { // send the headers, so that the client knows it is attached
		return err
	}
	beat := time.NewTimer(s.tap.cfg.Heartbeat)
	var b []byte
	for {
		select {
		case <-s.more:
			for _, t := range s.take() {
				b = s.append(b[:0], &t)
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
		case <-beat.C:
			if _, err := io.WriteString(w, s.blank()); err != nil {
				return err
			}
		case <-closing:
			return nil
		}
		if err := w.Flush(); err != nil {
			return err
		}
		beat.Reset(s.tap.cfg.Heartbeat)
	}
}

// serveBuffered collects traces and writes them at the end.
func (s *Session) serveBuffered(w Writer, closing <-chan struct{}) error {
	var timeout <-chan time.Time
	if s.settings.timeout > 0 {
		timeout = time.After(s.settings.timeout)
	}
	beat := time.NewTimer(s.tap.cfg.Heartbeat)
	var b []byte
	var n uint64
	for n < s.settings.traces && len(b) < bufferedBytes {
		select {
		case <-beat.C:
			if _, err := io.WriteString(w, s.blank()); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
			beat.Reset(s.tap.cfg.Heartbeat)
			continue
		case <-s.more:
			for _, t := range s.take() {
				if n < s.settings.traces && len(b) < bufferedBytes {
					b, n = s.append(b, &t), n+1
				}
			}
			continue
		case <-timeout:
		case <-closing:
		}
		break
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.Flush()
}
