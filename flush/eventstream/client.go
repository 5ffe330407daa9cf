package eventstream

import (
	"cmp"
	"io"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/internal/sse"
)

// Client is one listener of a [Stream].
type Client struct {
	stream *Stream
	more   chan struct{} // something was queued, or the client was dropped

	mu      sync.Mutex // guards the rest
	queue   [][]byte   // not sent yet; shared with other clients
	bytes   int        // in queue
	dropped bool
}

// Writer takes the bytes of a stream.
type Writer interface {
	io.Writer
	// Flush sends the bytes written so far.
	Flush() error
}

// farewell is the last event of a client that was too slow.
const farewell = ": dropped: this client reads too slowly\n\n"

// offer queues a payload, which must not change from then on.
func (c *Client) offer(payload []byte) {
	c.mu.Lock()
	if c.bytes > 0 && c.bytes+len(payload) > c.stream.cfg.QueueBytes {
		c.dropped, c.queue, c.bytes = true, nil, 0
	}
	if !c.dropped {
		c.queue = append(c.queue, payload)
		c.bytes += len(payload)
	}
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// first returns the oldest payload that was not sent yet.
func (c *Client) first() (payload []byte, dropped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil, c.dropped
	}
	return c.queue[0], c.dropped
}

// sent removes the first payload from the queue after it was sent.
func (c *Client) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 {
		c.bytes -= len(c.queue[0])
		c.queue[0] = nil
		c.queue = c.queue[1:]
	}
}

// Serve sends events to w until closing or the stream is closed or the client
// was dropped for being too slow, and then returns nil. It returns errors of w.
func (c *Client) Serve(w Writer, closing <-chan struct{}) error {
	return sse.Stream{
		Heartbeat: c.stream.cfg.Heartbeat,
		Closed:    c.stream.closed,
		Beat:      func() error { return send(w, []byte(ping)) },
		Next: func() (sent bool, more <-chan struct{}, err error) {
			payload, dropped := c.first()
			switch {
			case dropped:
				return false, nil, cmp.Or(send(w, []byte(farewell)), io.EOF)
			case payload == nil:
				return false, c.more, nil
			}
			if err := send(w, payload); err != nil {
				return false, nil, err
			}
			c.sent()
			return true, nil, nil
		},
	}.Serve(w, closing)
}

func send(w Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.Flush()
}

// Close removes the client from the stream. Closing twice does nothing.
func (c *Client) Close() {
	s := c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = slices.DeleteFunc(s.clients, func(o *Client) bool { return o == c })
}
