package graphite

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/streamend"
)

// conn is a connection that is opened again after errors. One goroutine uses it.
type conn struct {
	address string
	timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	open net.Conn
}

func (c *conn) close() {
	if c.open != nil {
		_ = c.open.Close()
		c.open = nil
	}
}

// send makes one attempt to send a packet without its mark; see [sinkqueue.Config].
func (c *conn) send(ctx context.Context, data []byte) (int, error) {
	if c.open != nil && streamend.Closed(c.open) {
		c.close()
	}
	if c.open == nil {
		opened, err := c.dial(ctx, "tcp", c.address)
		if err != nil {
			return 0, err
		}
		c.open = opened
	}
	err := c.open.SetWriteDeadline(time.Now().Add(c.timeout))
	if err == nil {
		var n int
		if n, err = c.open.Write(data[1:]); err != nil && n > 0 {
			err = fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
		}
	}
	if err != nil {
		c.close()
		return 0, err
	}
	return len(data), nil
}
