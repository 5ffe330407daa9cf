package statsd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// Times of the end of a server.
const (
	drainTotal = 250 * time.Millisecond // what sockets hold is read for so long
	drainIdle  = 20 * time.Millisecond  // a connection that is silent for so long has nothing
)

// retryPause is how long a reader waits after an error that may go away.
const retryPause = time.Millisecond

// source says where a packet or line came from. It is kept as cheap as
// possible: hardly anybody asks.
type source struct {
	batch *batch // nil: a stream
	index int    // of the packet in batch
	name  string // of a stream's other end
}

// String returns the sender's address, "" if it has none.
func (s source) String() string {
	if s.batch == nil {
		return s.name
	}
	if a := s.batch.sender(s.index); a.IsValid() {
		return a.String()
	}
	return ""
}

// readPackets takes in what arrives at a socket until the server stops, then
// what the socket still holds.
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
		n, err := so.batch.poll()
		if err != nil || n == 0 {
			break
		}
		so.worker.batch(l, so, n)
	}
	s.watchQueue(l, so)
}

// watchQueue reads what the kernel knows about a socket's queue.
func (s *Server) watchQueue(l *listener, so *socket) (used, size int) {
	q, ok := queue(so.raw)
	if !ok {
		return 0, 0
	}
	l.metrics.drops.Add(so.drops.observe(q.dropped))
	return q.used, q.size
}

// allowed reports whether addr may send.
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
