package healthlistener

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of connections and requests.
const (
	maxConnections = 1024
	requestTime    = 5 * time.Second // for a request to arrive, and for its answer to leave
	idleTime       = time.Minute     // between requests
	partingTime    = time.Second     // for a request to arrive when the listener was stopped
	lateRead       = 50 * time.Millisecond
	shutdownTime   = 2 * time.Second // for all connections to end
	requestBytes   = 8 << 10
)

// conn is a client connection.
type conn struct {
	net.Conn
	limit io.LimitedReader // what a request may have
	r     *bufio.Reader

	// waiting is the turn of the connection since it waits for a request: the lower, the
	// longer. It is 0 while a request is answered.
	waiting atomic.Int64
	turns   *atomic.Int64 // of the listener

	mu      sync.Mutex
	hurried bool // the next request must come soon
}

func (l *Listener) newConn(nc net.Conn) *conn {
	c := &conn{Conn: nc, turns: &l.turns, limit: io.LimitedReader{R: nc}}
	c.r = bufio.NewReaderSize(&c.limit, 1<<10)
	return c
}

// wait marks the connection as waiting for a request.
func (c *conn) wait() { c.waiting.Store(c.turns.Add(1)) }

// expect sets the deadline for the next read.
func (c *conn) expect(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hurried {
		d = min(d, partingTime)
	}
	_ = c.SetReadDeadline(time.Now().Add(d)) // of a dead connection, which the read notices
}

// hurry closes the connection soon unless a request arrives.
func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurried = true
	_ = c.SetReadDeadline(time.Now().Add(partingTime)) // as in expect
}

// serve answers requests until the client disconnects or the listener stops.
func (l *Listener) serve(c *conn) {
	for {
		if l.leaving() {
			c.hurry()
		}
		c.limit.N = requestBytes
		c.expect(idleTime)
		_, err := c.r.Peek(1)
		if errors.Is(err, os.ErrDeadlineExceeded) { // perhaps before the read began: what has arrived counts
			_ = c.SetReadDeadline(time.Now().Add(lateRead)) // as in expect
			_, err = c.r.Peek(1)
		}
		if err != nil {
			return
		}
		c.expect(requestTime)
		r, err := http.ReadRequest(c.r)
		c.waiting.Store(0)
		a := answer{closing: true}
		switch {
		case err != nil && c.limit.N <= 0:
			a.status = http.StatusRequestHeaderFieldsTooLarge
		case err != nil:
			if _, ok := errors.AsType[*net.OpError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
				return // it will not get better
			}
			a.status = http.StatusBadRequest
		default:
			a = l.answer(r)
			a.closing = a.closing || l.leaving()
		}
		_ = c.SetWriteDeadline(time.Now().Add(requestTime)) // as in expect
		if _, err := c.Write(a.append(nil)); err != nil || a.closing {
			return
		}
		c.wait()
	}
}

// answer is the answer to one request.
type answer struct {
	status  int
	fields  [][2]string
	body    string
	bare    bool // without its body
	closing bool // the connection ends
}

// answer determines the answer to a check.
func (l *Listener) answer(r *http.Request) answer {
	l.cfg.Stats.Requests.Inc()
	a := answer{bare: r.Method == http.MethodHead}
	// Data after a body is ignored: checks have none.
	a.closing = r.Close || r.ContentLength != 0 || l.cfg.Closing != nil && l.cfg.Closing()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		a.status, a.fields = http.StatusMethodNotAllowed, [][2]string{{"allow", "GET, HEAD"}}
		return a
	}
	if l.cfg.Cluster != "" {
		a.fields = append(a.fields, [2]string{l.cfg.HeaderPrefix + "-upstream-healthchecked-cluster", l.cfg.Cluster})
	}
	state, healthy := l.cfg.State()
	a.status, a.body = http.StatusOK, state+"\n"
	if healthy {
		l.cfg.Stats.Passed.Inc()
		return a
	}
	l.cfg.Stats.Failed.Inc()
	a.status = http.StatusServiceUnavailable
	a.fields = append(a.fields, [2]string{l.cfg.HeaderPrefix + "-immediate-health-check-fail", "true"})
	return a
}

func (a *answer) append(dst []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(a.status)...)
	dst = append(dst, "\r\ncontent-type: text/plain; charset=UTF-8\r\ncache-control: no-cache, max-age=0\r\nx-content-type-options: nosniff\r\n"...)
	for _, f := range a.fields {
		dst = append(dst, f[0]+": "+f[1]+"\r\n"...)
	}
	dst = append(dst, "date: "+time.Now().UTC().Format(http.TimeFormat)+"\r\n"...)
	if a.closing {
		dst = append(dst, "connection: close\r\n"...)
	}
	dst = append(dst, "content-length: "+strconv.Itoa(len(a.body))+"\r\n\r\n"...)
	if !a.bare {
		dst = append(dst, a.body...)
	}
	return dst
}
