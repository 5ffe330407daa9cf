package statsd

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

const (
	streamBuffer  = 64 << 10
	lineSlack     = 64 << 10  // beyond the longest line, before a stream without line ends is given up
	fairShare     = 256 << 10 // bytes of one connection before others get a turn
	crowdedIdle   = 60 * time.Second
	lengthPrefix  = 4
	acceptedPause = 5 * time.Millisecond // after an error of accept, such as too many open files

	// Clients that make a connection for each line can have many before the
	// server gets to the first, so one that is too many waits so long.
	placePatience = 500 * time.Millisecond
)

// connSet are the connections of a listener.
type connSet struct {
	total, perAddr int           // limits
	patience       time.Duration // how long a connection waits that is one too many

	// draining is set when the server stops: see stream.arm.
	draining atomic.Bool
	// taker gets the connections that wait for input, nil unless they are to
	// be handed over.
	taker atomic.Pointer[func(*stream) bool]

	freed chan struct{} // holds something when a place was freed since it was looked at

	mu    sync.Mutex // guards the rest
	conns map[*stream]struct{}
	from  map[netip.Addr]int
	// lasting are the addresses, the invalid one for all, for whose places it
	// is no use to wait: somebody did, and since then none was freed.
	lasting map[netip.Addr]bool
}

func (c *connSet) init() {
	c.patience = placePatience
	c.freed = make(chan struct{}, 1)
	c.conns = make(map[*stream]struct{})
	c.from = make(map[netip.Addr]int)
	c.lasting = make(map[netip.Addr]bool)
}

// add takes in st unless that is too many. Otherwise it says what the limit is,
// and whose places are taken.
func (c *connSet) add(st *stream) (limit string, whose netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= c.total {
		return "connections", netip.Addr{}
	}
	if st.addr.IsValid() && c.from[st.addr] >= c.perAddr {
		return "per_address", st.addr
	}
	c.takeLocked(st)
	return "", netip.Addr{}
}

// take takes in st, even if that is too many.
func (c *connSet) take(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeLocked(st)
}

// takeLocked is take with c.mu held.
func (c *connSet) takeLocked(st *stream) {
	if st.addr.IsValid() {
		c.from[st.addr]++
	}
	c.conns[st] = struct{}{}
}

// await takes in st as soon as there is a place. It says what the limit is if
// there is none for some time, or was none when somebody else waited. When stop
// is closed meanwhile there is no limit any more. Only one goroutine may wait.
func (c *connSet) await(st *stream, stop <-chan struct{}) (limit string) {
	if limit, _ = c.add(st); limit == "" {
		return ""
	}
	select {
	case <-stop:
		stop = nil // the limit holds for those that come after the end has begun
	default:
	}
	patience := time.NewTimer(c.patience)
	defer patience.Stop()
	for {
		limit, whose := c.add(st)
		if limit == "" || c.lasts(whose) {
			return limit
		}
		select {
		case <-c.freed:
		case <-stop:
			c.take(st)
			return ""
		case <-patience.C:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lasting[whose] = true
			return limit
		}
	}
}

// lasts reports whether it is no use to wait for a place.
func (c *connSet) lasts(whose netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lasting[whose]
}

func (c *connSet) remove(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, st)
	delete(c.lasting, netip.Addr{})
	delete(c.lasting, st.addr)
	select {
	case c.freed <- struct{}{}:
	default:
	}
	if st.addr.IsValid() {
		if c.from[st.addr]--; c.from[st.addr] == 0 {
			delete(c.from, st.addr)
		}
	}
}

// crowded reports whether more than half of the places are taken.
func (c *connSet) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > c.total/2
}

// rearm makes every connection look again how long it may wait.
func (c *connSet) rearm() {
	c.mu.Lock()
	all := make([]*stream, 0, len(c.conns))
	for st := range c.conns {
		all = append(all, st)
	}
	c.mu.Unlock()
	for _, st := range all {
		st.arm()
	}
}

// drain lets the connections read what is there and end.
func (c *connSet) drain() {
	c.draining.Store(true)
	c.rearm()
}

// stream is one connection.
type stream struct {
	server *Server
	l      *listener
	conn   net.Conn
	addr   netip.Addr // of the other end, if it has one
	from   source
	lane   *lane
	buf    []byte
	n      int // bytes of buf in use
	share  int // bytes read since others got a turn

	mu    sync.Mutex // orders changes of the read deadline
	armed bool       // a deadline is set
	kept  bool       // cannot be handed over
	end   time.Time  // of draining
}

// arm sets how long the next read, or the one that is under way, may wait.
func (st *stream) arm() {
	st.mu.Lock()
	defer st.mu.Unlock()
	var until time.Time
	idle := st.l.cfg.IdleTimeout
	switch {
	case st.l.conns.taker.Load() != nil && !st.kept:
		until = time.Unix(1, 0) // at once
	case st.l.conns.draining.Load():
		now := time.Now()
		if st.end.IsZero() {
			st.end = now.Add(st.l.linger)
		}
		until = now.Add(drainIdle)
		if until.After(st.end) {
			until = st.end
		}
	case idle > 0:
		until = time.Now().Add(idle)
	case idle == 0 && st.l.conns.crowded():
		until = time.Now().Add(crowdedIdle)
	case !st.armed:
		return
	}
	st.armed = !until.IsZero()
	_ = st.conn.SetReadDeadline(until) // fails only when the connection is closed, which Read says
}

// idled reports whether a read that timed out ends the connection.
func (st *stream) idled() (why string) {
	switch {
	case st.l.conns.draining.Load():
		if st.more() {
			return ""
		}
		return "shutdown"
	case st.l.cfg.IdleTimeout > 0, st.l.cfg.IdleTimeout == 0 && st.l.conns.crowded():
		return "idle"
	}
	return ""
}

// more reports whether st, which has not read for some time, could.
func (st *stream) more() bool {
	conn := st.conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	st.mu.Lock()
	ended := !time.Now().Before(st.end)
	st.mu.Unlock()
	return ok && !ended && waits(c)
}

// acceptStreams takes in connections until the listener is closed, or is to end
// and none waits.
func (s *Server) acceptStreams(l *listener) {
	for {
		c, err := l.accept.Accept()
		switch {
		case err == nil:
			s.admit(l, c)
		case errors.Is(err, net.ErrClosed):
			return
		case l.stopping() && errors.Is(err, os.ErrDeadlineExceeded):
			if !l.acceptsMore() {
				return
			}
		default:
			l.figures.readErrors.Inc()
			s.pause(acceptedPause)
		}
	}
}

// newStream returns the stream of c. What was read from c before is in read.
func (s *Server) newStream(l *listener, c net.Conn, read []byte) *stream {
	l.figures.connections.Inc()
	st := &stream{server: s, l: l, conn: c, lane: s.nextStreamLane(), buf: read, n: len(read)}
	from := c.RemoteAddr()
	if from == nil || l.addr.unix() { // nil if it was adopted and the other end is gone; what it sent is there
		return st
	}
	if a, err := netip.ParseAddrPort(from.String()); err == nil {
		st.addr = a.Addr().Unmap()
		st.from.name = a.String()
	}
	return st
}

// admit serves c or refuses it.
func (s *Server) admit(l *listener, c net.Conn) {
	st := s.newStream(l, c, nil)
	why := ""
	if st.addr.IsValid() && !l.allowed(st.addr) {
		why = "address"
	} else {
		why = l.conns.await(st, l.stop)
	}
	if why != "" {
		l.figures.end("refused", why)
		_ = c.Close()
		return
	}
	st.start()
}

// start serves st, which has a place, in a goroutine of its own.
func (st *stream) start() {
	s, l, c := st.server, st.l, st.conn
	l.figures.active.Inc()
	if l.conns.crowded() {
		l.conns.rearm()
	}
	l.streams.Add(1)
	go func() {
		defer l.streams.Done()
		why := "panic"
		defer func() {
			_ = c.Close()
			l.conns.remove(st)
			l.figures.active.Dec()
			l.figures.end("closed", why)
		}()
		s.guard("connection", func() { why = st.serve() })
	}()
}

// serve reads st to its end and says why it ended.
func (st *stream) serve() (why string) {
	st.buf = append(make([]byte, 0, max(streamBuffer, 2*st.n)), st.buf...)
	st.buf = st.buf[:cap(st.buf)]
	take := st.takeLines
	if st.l.addr.framing == frames {
		take = st.takeFrames
	}
	for {
		st.arm()
		n, err := st.conn.Read(st.buf[st.n:])
		if n > 0 {
			st.n += n
			if why := take(n); why != "" {
				return why
			}
			if st.share += n; st.share >= fairShare {
				st.share = 0
				runtime.Gosched()
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if st.handOver() {
				return "handed_over"
			}
			if why = st.idled(); why == "" {
				continue
			}
		} else if why = "error"; errors.Is(err, io.EOF) {
			why = "eof"
		}
		st.finish(why == "eof")
		return why
	}
}

// takeLines applies the complete lines of st.buf, of which the last n bytes
// are new.
func (st *stream) takeLines(n int) (why string) {
	end := bytes.LastIndexByte(st.buf[st.n-n:st.n], '\n') + 1
	if end > 0 {
		end += st.n - n
		st.lane.chunk(st.l, st.buf[:end], st.from)
		st.n = copy(st.buf, st.buf[end:st.n])
	}
	if st.n < len(st.buf) {
		return ""
	}
	// A full buffer without a line end.
	most := st.server.cfg.Limits.LineBytes + lineSlack
	if len(st.buf) < most {
		st.buf = append(make([]byte, 0, most), st.buf...)[:most]
		return ""
	}
	st.lane.reject(st.l, line.LineTooLong, st.buf[:st.n], st.from)
	return line.LineTooLong.String()
}

// takeFrames applies the complete frames of st.buf.
func (st *stream) takeFrames(int) (why string) {
	used, need, bad := st.lane.frames(st.l, st.buf[:st.n], st.from)
	if bad {
		head := st.buf[used:st.n]
		if printable(head[:lengthPrefix]) {
			st.server.cfg.Log.Warn("statsd: a client sends plain lines to a socket that expects frames with a length; it should use a unixlines:// or tcp:// listener",
				"listener", st.l.name)
		}
		st.lane.reject(st.l, line.BadFrame, head, st.from)
		return line.BadFrame.String()
	}
	st.n = copy(st.buf, st.buf[used:st.n])
	if need > len(st.buf) {
		st.buf = append(make([]byte, 0, need), st.buf...)[:need]
	}
	return ""
}

// finish deals with what is left when no more bytes come. A last line needs no
// line end if the client said that it was complete by closing.
func (st *stream) finish(complete bool) {
	rest := st.buf[:st.n]
	switch {
	case len(rest) == 0:
	case st.l.addr.framing == frames:
		st.lane.reject(st.l, line.BadFrame, rest, st.from)
	case complete:
		st.lane.chunk(st.l, rest, st.from)
	case len(line.Trim(rest)) > 0:
		st.lane.reject(st.l, line.Truncated, rest, st.from)
	}
}

// nextFrame looks at the frame that b begins with: its length with the prefix,
// 0 if b is too short to tell.
func nextFrame(b []byte) int {
	if len(b) < lengthPrefix {
		return 0
	}
	n := binary.LittleEndian.Uint32(b)
	if n > maxPacketBytes {
		return maxPacketBytes + lengthPrefix + 1
	}
	return int(n) + lengthPrefix
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}
