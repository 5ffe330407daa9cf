package admin

import (
	"net"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// exchange sends one response over a connection. It bypasses the HTTP library, so
// that it controls every byte on the wire: lower-case header names, a deadline for
// each chunk, a stream that can be cut.
type exchange struct {
	conn    *conn
	limits  *Limits
	limit   time.Time // by when the answer must be complete; zero: any time
	stop    <-chan struct{}
	http10  bool
	closing bool // the connection ends with this answer
	chunked bool

	head  []byte // not sent yet; goes out with the first chunk of the body
	size  [18]byte
	parts [5][]byte
}

func (x *exchange) begin(w *Response, length int) error {
	x.closing = x.closing || isClosed(x.stop)
	if length < 0 {
		x.chunked = !x.http10 && !w.endless
		x.closing = x.closing || !x.chunked
	}
	if w.endless {
		x.limit = time.Time{}
	}
	x.head = w.appendHead(x.head[:0], length, x.http10, x.chunked, x.closing)
	if length != 0 && !w.withoutBody {
		return nil
	}
	return x.write(nil, nil)
}

func (x *exchange) hangUp() { x.closing = true }

// watch discards further input of the client.
func (x *exchange) watch(g guard.Guard) <-chan struct{} {
	x.closing = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Run("watch of a client", x.awaitEnd)
	}()
	return ended
}

// awaitEnd reads until the input ends. At shutdown stop is closed before a deadline
// in the past is set, so either order of events is noticed.
func (x *exchange) awaitEnd() {
	if x.conn.SetReadDeadline(time.Time{}) != nil || isClosed(x.stop) {
		return
	}
	var scrap [512]byte
	for {
		if _, err := x.conn.Conn.Read(scrap[:]); err != nil {
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (x *exchange) body(a, b []byte) error { return x.write(a, b) }

// write sends the head, if still pending, and a chunk of the body.
func (x *exchange) write(a, b []byte) error {
	bufs := net.Buffers(x.parts[:0])
	if len(x.head) > 0 {
		bufs = append(bufs, x.head)
	}
	switch n := len(a) + len(b); {
	case n == 0:
	case x.chunked:
		size := strconv.AppendUint(x.size[:0], uint64(n), 16)
		bufs = append(bufs, append(size, "\r\n"...), a, b, crlf)
	default:
		bufs = append(bufs, a, b)
	}
	if len(bufs) == 0 {
		return nil
	}
	x.head = x.head[:0]
	return x.sendAll(bufs)
}

var (
	crlf      = []byte("\r\n")
	lastChunk = []byte("0\r\n\r\n")
)

func (x *exchange) sendAll(bufs net.Buffers) error {
	now := time.Now()
	if !x.limit.IsZero() && now.After(x.limit) {
		return ErrGone
	}
	if err := x.conn.SetWriteDeadline(x.limits.chunkDeadline(now, x.limit)); err != nil {
		return ErrGone
	}
	if err := x.conn.send(bufs); err != nil {
		return ErrGone
	}
	return nil
}

func (x *exchange) end() error {
	if !x.chunked {
		return x.write(nil, nil)
	}
	return x.sendAll(net.Buffers{x.head, lastChunk})
}

// abort ends the connection. Without chunked encoding, only a reset shows the client
// that the response is incomplete.
func (x *exchange) abort() {
	x.closing = true
	_ = x.write(nil, nil) // the head, if it was kept; the connection ends either way
	if !x.chunked {
		x.conn.reset()
	}
}

// chunkDeadline returns the deadline for the next chunk of a response that has to be
// complete by limit. Zero means no limit.
func (l *Limits) chunkDeadline(now, limit time.Time) time.Time {
	var deadline time.Time
	if l.StreamStall > 0 {
		deadline = now.Add(l.StreamStall)
	}
	if !limit.IsZero() && (deadline.IsZero() || limit.Before(deadline)) {
		deadline = limit
	}
	return deadline
}

// Reply is the response to [Server.Request].
type Reply struct {
	Status int
	Header []Field
	Body   []byte
	// Err is set if the response was aborted, so that Body is incomplete.
	Err error
}

// Get returns the value of a header field, or "" if it is absent. Names are lower
// case.
func (r *Reply) Get(name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// memory is the transport of [Server.Request]. It keeps the response.
type memory struct {
	reply *Reply
	stop  <-chan struct{}
}

func (m memory) begin(w *Response, length int) error {
	m.reply.Status = w.status
	w.visitHead(func(name, value string) { m.reply.Header = append(m.reply.Header, Field{name, value}) })
	if length >= 0 {
		m.reply.Header = append(m.reply.Header, Field{"content-length", strconv.Itoa(length)})
	}
	return nil
}

func (m memory) body(a, b []byte) error {
	m.reply.Body = append(append(m.reply.Body, a...), b...)
	return nil
}

func (m memory) end() error { return nil }

func (m memory) abort() {}

func (m memory) hangUp() {}

func (m memory) watch(guard.Guard) <-chan struct{} { return m.stop }
