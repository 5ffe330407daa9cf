package admin

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// conn is a connection to the server. The HTTP library reads requests from it. Writes
// of the library are dropped: an exchange has already written the response, and the
// library's own is always empty.
type conn struct {
	net.Conn
	listener  listenerKind
	peer      netip.Addr // of TCP
	principal Principal  // as far as the connection identifies it

	below net.Conn // without TLS

	// With TLS: the TLS connection, and a buffer for writes, since each write becomes a
	// record. Else nil.
	tls *tls.Conn
	out *bufio.Writer

	// reserved is set if all other connections were taken. The connection gets one
	// response, from the few critical endpoints.
	reserved bool

	busy   atomic.Bool // a handler runs
	line   bool        // a line has arrived since the last answer
	bytes  bool        // a byte has arrived since the last answer
	linger bool        // the client may still be sending the refused request

	begin [3]byte // the last bytes of the first header
	ended bool    // the first header has arrived
	bare  bool    // an empty line ended it, but with a bare LF
}

// errBareLF ends a wait for the rest of a header, which the client has sent already.
var errBareLF = errors.New("lines end in a bare LF")

// Write drops p; see conn.
func (c *conn) Write(p []byte) (int, error) { return len(p), nil }

// Read records whether a byte and a line have arrived, to classify errors. The library
// waits for CR LF CR LF; Read ends that wait if the first header of the connection ends
// in another way. In later headers it cannot, as the library may have read ahead.
func (c *conn) Read(p []byte) (int, error) {
	if c.bare {
		return 0, errBareLF
	}
	n, err := c.Conn.Read(p)
	c.bytes = c.bytes || n > 0
	c.line = c.line || bytes.IndexByte(p[:n], '\n') >= 0
	if !c.ended {
		c.watch(p[:n])
	}
	return n, err
}

// watch looks for the end of the first header in p.
func (c *conn) watch(p []byte) {
	b := append(c.begin[:], p...)
	c.ended = bytes.Contains(b, []byte("\r\n\r\n"))
	c.bare = !c.ended && (bytes.Contains(b, []byte("\n\n")) || bytes.Contains(b, []byte("\n\r\n")))
	copy(c.begin[:], b[len(b)-len(c.begin):])
}

// reset discards unsent data and resets the TCP connection. On TLS it sends no
// close_notify, so the client sees a truncated stream.
func (c *conn) reset() {
	if tcp, ok := c.below.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the connection is gone either way
	}
	c.cut()
}

// cut closes the connection at once. On TLS it sends no close_notify: the client
// might not read, and closing would block.
func (c *conn) cut() { _ = c.below.Close() }

// send writes chunks of a response.
func (c *conn) send(chunks net.Buffers) error {
	if c.out == nil {
		_, err := chunks.WriteTo(c.Conn)
		return err
	}
	for _, p := range chunks {
		if _, err := c.out.Write(p); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// Close closes the connection. If a request was refused before it was read, Close
// first closes the sending side and keeps reading for a moment: closing at once would
// reset the connection, and the client might lose the response.
func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); c.linger && ok {
		c.linger = false
		_ = half.CloseWrite()
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
		var scrap [4096]byte
		for left := lingerBytes; left > 0; {
			n, err := c.Conn.Read(scrap[:])
			if err != nil {
				break
			}
			left -= n
		}
	}
	return c.Conn.Close()
}

// Limits for reading from a client whose request was refused.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// returnTime is how long handlers have to return after their connections were closed.
const returnTime = time.Second

// connections tracks the connections of a server and decides which to accept.
type connections struct {
	limits *Limits
	guard  guard.Guard

	mu       sync.Mutex
	all      map[*conn]struct{}
	general  int
	perPeer  map[netip.Addr]int
	reserved []*conn // oldest first
	closed   bool
	hurried  []map[*conn]struct{} // to be cut at the end of a grace period: see hurry
	idle     sync.Cond            // signalled when all becomes empty
}

func newConnections(l *Limits, g guard.Guard) *connections {
	c := &connections{limits: l, guard: g, all: make(map[*conn]struct{}), perPeer: make(map[netip.Addr]int)}
	c.idle.L = &c.mu
	return c
}

// enter admits c, or reports false. Past the limits c takes a reserved slot. If those
// are taken too, it evicts the oldest one without a running request, so that silent
// connections cannot hold them.
func (s *connections) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	crowded := !c.listener.unix && over(s.perPeer[c.peer]+1, s.limits.ConnectionsPerPeer)
	if c.reserved || crowded || over(s.general+1, s.limits.Connections) {
		c.reserved = true
		if len(s.reserved) >= reservedConnections && !s.evictLocked() {
			return false
		}
		s.reserved = append(s.reserved, c)
	} else {
		s.general++
		s.perPeer[c.peer]++
	}
	s.all[c] = struct{}{}
	return true
}

// evictLocked closes the oldest reserved connection that waits for a request. s.mu
// must be held.
func (s *connections) evictLocked() bool {
	for i, old := range s.reserved {
		if !old.busy.Load() {
			s.reserved = append(s.reserved[:i:i], s.reserved[i+1:]...)
			old.cut()
			return true
		}
	}
	return false
}

// leave removes c.
func (s *connections) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	if c.reserved {
		s.reserved = slices.DeleteFunc(s.reserved, func(r *conn) bool { return r == c })
	} else {
		s.general--
		if s.perPeer[c.peer]--; s.perPeer[c.peer] == 0 {
			delete(s.perPeer, c.peer)
		}
	}
	if len(s.all) == 0 {
		s.idle.Broadcast()
	}
}

// endIdleLocked closes idle connections, and makes the others close after their
// request. s.mu must be held.
func (s *connections) endIdleLocked() {
	for c := range s.all {
		go func() { // closing TLS waits for a client that does not read
			s.guard.Run("closing of a connection", func() {
				if !c.busy.Load() {
					_ = c.Conn.Close()
				} else {
					_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the watch of its client, if there is one
				}
			})
		}()
	}
}

// cutLocked cuts all open connections. s.mu must be held.
func (s *connections) cutLocked(which map[*conn]struct{}) {
	for c := range which {
		if _, open := s.all[c]; open {
			s.guard.Run("cut of a connection", c.cut)
		}
	}
}

// count returns the number of open connections.
func (s *connections) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// close refuses new connections, closes idle ones at once and the others after their
// current request, but no later than after grace. It returns the number of handlers
// that had still not returned shortly after that. Without grace it waits for them.
func (s *connections) close(grace time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.endIdleLocked()
	enough := false
	if grace > 0 {
		defer time.AfterFunc(grace, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cutLocked(s.all)
		}).Stop()
		defer time.AfterFunc(grace+returnTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			enough = true
			s.idle.Broadcast()
		}).Stop()
	}
	for len(s.all) > 0 && !enough {
		s.idle.Wait()
	}
	return len(s.all)
}
