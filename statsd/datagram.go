package statsd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// Timeouts while a server stops.
const (
	drainTotal = 250 * time.Millisecond // limit on reading the input that sockets hold
	drainIdle  = 20 * time.Millisecond  // a connection without input for this long is closed
)

// retryPause is the delay of a reader after a temporary error.
const retryPause = time.Millisecond

// source identifies the sender of a packet or line. It is cheap to create
// because it is rarely needed.
type source struct {
	batch *batch // nil for a stream
	index int    // of the packet in batch
	name  string // address of a stream's client
}

// String returns the sender's address, or "".
func (s source) String() string {
	if s.batch == nil {
		return s.name
	}
	if a := s.batch.sender(s.index); a.IsValid() {
		return a.String()
	}
	return ""
}

// readPackets receives datagrams from a socket until the listener stops, then
// reads the datagrams that are still queued.
func (s *Server) readPackets(l *listener, so *socket) {
	for !l.stopping() {
		if l.wait() {
			continue
		}
		n, err := so.batch.read()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				l.metrics.readErrors.Inc()
				s.pause(retryPause)
			}
			continue
		}
		so.worker.batch(l, so, n)
	}
	for end := time.Now().Add(drainTotal); time.Now().Before(end); {
		n := so.batch.poll()
		if n == 0 {
			break
		}
		so.worker.batch(l, so, n)
	}
	s.watchQueue(l, so)
}

// watchQueue reads the state of a socket's receive queue and counts new drops.
func (s *Server) watchQueue(l *listener, so *socket) (used, size int) {
	q, ok := queue(so.raw)
	if !ok {
		return 0, 0
	}
	l.metrics.drops.Add(so.drops.observe(q.dropped))
	return q.used, q.size
}

// allowed reports whether addr is an accepted sender.
func (l *listener) allowed(addr netip.Addr) bool {
	if len(l.cfg.Allowed) == 0 || l.addr.unix() {
		return true
	}
	addr = addr.WithZone("").Unmap()
	for _, p := range l.cfg.Allowed {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
