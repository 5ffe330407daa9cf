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
	"sync"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

const (
	streamBuffer  = 64 << 10
	lineSlack     = 64 << 10 // beyond the longest line, before a stream without line feeds is closed
	crowdedIdle   = 60 * time.Second
	lengthPrefix  = 4
	acceptedPause = 5 * time.Millisecond // after an error of accept, such as too many open files
)

// stream is one connection.
type stream struct {
	server *Server
	l      *listener
	conn   net.Conn
	addr   netip.Addr // of the client, if it has one
	from   source
	worker *worker
	buf    []byte
	n      int // bytes of buf in use

	mu    sync.Mutex // orders changes of the read deadline
	armed bool       // a deadline is set
	kept  bool       // cannot be handed off
	end   time.Time  // of draining
}

// arm sets the deadline of the current or next read.
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
	_ = st.conn.SetReadDeadline(until) // fails only on a closed connection, which Read reports
}

// armFirst is arm for a stream without a deadline. The deadline of another stays, so that
// new connections do not extend the time of idle ones.
func (st *stream) armFirst() {
	st.mu.Lock()
	armed := st.armed
	st.mu.Unlock()
	if !armed {
		st.arm()
	}
}

// idled returns why a read that timed out ends the connection, or "".
func (st *stream) idled() (why string) {
	switch {
	case st.more():
		return ""
	case st.l.conns.draining.Load():
		return "shutdown"
	case st.l.cfg.IdleTimeout > 0, st.l.cfg.IdleTimeout == 0 && st.l.conns.crowded(), st.handshaking():
		return "idle"
	}
	return ""
}

// handshaking reports whether st uses TLS and its handshake is not complete. After a
// timeout it never will be: each further read returns the same error at once.
func (st *stream) handshaking() bool {
	t, ok := st.conn.(*tls.Conn)
	return ok && !t.ConnectionState().HandshakeComplete
}

// more reports whether st, which was idle, has input that can still be read. A read
// that is late for its deadline does not return input that has arrived.
func (st *stream) more() bool {
	conn := st.conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	st.mu.Lock()
	ended := !st.end.IsZero() && !time.Now().Before(st.end)
	st.mu.Unlock()
	return ok && !ended && !st.handshaking() && waits(c)
}

// acceptStreams accepts connections until the listener is closed, or is
// stopping and none waits.
func (s *Server) acceptStreams(l *listener) {
	for {
		c, err := l.accept.Accept()
		switch {
		case err == nil:
			if !s.guard.Run("accepted connection", func() { s.admit(l, c) }) {
				_ = c.Close()
			}
		case errors.Is(err, net.ErrClosed):
			return
		case l.stopping() && errors.Is(err, os.ErrDeadlineExceeded):
			if !l.acceptsMore() {
				return
			}
		default:
			l.metrics.readErrors.Inc()
			s.pause(acceptedPause)
		}
	}
}

// newStream returns the stream of c. read holds the input that was already read
// from c.
func (s *Server) newStream(l *listener, c net.Conn, read []byte) *stream {
	l.metrics.connections.Inc()
	worker := s.streamWorkers[int(s.nextWorker.Add(1))%len(s.streamWorkers)]
	_, plain := c.(syscall.Conn)
	st := &stream{server: s, l: l, conn: c, worker: worker, buf: read, n: len(read), kept: !plain}
	from := c.RemoteAddr()
	if from == nil || l.addr.unix() { // nil if c was adopted and the client is gone; its input remains
		return st
	}
	if a, err := netip.ParseAddrPort(from.String()); err == nil {
		st.addr = a.Addr().Unmap()
		st.from.name = a.String()
	}
	return st
}

// admit serves c or refuses it, now or later.
func (s *Server) admit(l *listener, c net.Conn) {
	st := s.newStream(l, c, nil)
	if st.addr.IsValid() && !l.allowed(st.addr) {
		st.refuse("address")
		return
	}
	l.accepter.Add(1) // the accepter has finished when its waiting connections have
	l.conns.await(st, func(limit string) {
		defer l.accepter.Done()
		s.guard.Run("admission", func() {
			if limit != "" {
				st.refuse(limit)
				return
			}
			st.start()
		})
	})
}

// refuse closes st, which got no slot.
func (st *stream) refuse(why string) {
	st.l.metrics.end("refused", why)
	_ = st.conn.Close()
}

// start serves st in a new goroutine.
func (st *stream) start() {
	s, l, c := st.server, st.l, st.conn
	l.metrics.active.Inc()
	if l.conns.crowded() {
		l.conns.each((*stream).armFirst)
	}
	l.streams.Go(func() {
		why := "panic"
		s.guard.Run("connection", func() { why = st.serve() })
		s.guard.Run("end of a connection", func() {
			defer func() {
				l.conns.remove(st)
				l.metrics.active.Dec()
				l.metrics.end("closed", why)
			}()
			_ = c.Close()
		})
	})
}

// serve reads st until it ends and returns the reason.
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

// takeLines applies the complete lines of st.buf, whose last n bytes are new.
func (st *stream) takeLines(n int) (why string) {
	end := bytes.LastIndexByte(st.buf[st.n-n:st.n], '\n') + 1
	if end > 0 {
		end += st.n - n
		st.worker.chunk(st.l, st.buf[:end], st.from)
		st.n = copy(st.buf, st.buf[end:st.n])
	}
	if st.n < len(st.buf) {
		return ""
	}
	// The buffer is full and has no line feed.
	most := st.server.cfg.Limits.LineBytes + lineSlack
	if len(st.buf) < most {
		st.grow(most)
		return ""
	}
	st.worker.reject(st.l, line.LineTooLong, st.buf[:st.n], st.from)
	return line.LineTooLong.String()
}

// takeFrames applies the complete frames of st.buf.
func (st *stream) takeFrames(int) (why string) {
	used, need, bad := st.worker.frames(st.l, st.buf[:st.n], st.from)
	if bad {
		head := st.buf[used:st.n]
		if printable(head[:lengthPrefix]) {
			st.server.cfg.Logger.Warn("statsd: a client sends plain lines to a socket that expects frames with a length; it should use a unixlines:// or tcp:// listener",
				"listener", st.l.name)
		}
		st.worker.reject(st.l, line.BadFrame, head, st.from)
		return line.BadFrame.String()
	}
	st.n = copy(st.buf, st.buf[used:st.n])
	if st.n == len(st.buf) {
		st.grow(need)
	}
	return ""
}

// grow doubles the buffer, which is full, to up to most bytes. What a client announces
// takes memory only as it arrives.
func (st *stream) grow(most int) {
	st.buf = append(make([]byte, 0, min(most, 2*len(st.buf))), st.buf...)
	st.buf = st.buf[:cap(st.buf)]
}

// finish handles the rest of the input. A last line needs no line feed if the
// client closed the connection in an orderly way.
func (st *stream) finish(complete bool) {
	rest := st.buf[:st.n]
	switch {
	case len(rest) == 0:
	case st.l.addr.framing == frames:
		st.worker.reject(st.l, line.BadFrame, rest, st.from)
	case complete:
		st.worker.chunk(st.l, rest, st.from)
	case len(line.Trim(rest)) > 0:
		st.worker.reject(st.l, line.Truncated, rest, st.from)
	}
}

// nextFrame returns the length of the frame that b starts with, prefix
// included, or 0 if b is too short.
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
