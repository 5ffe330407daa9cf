package statsdsink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/streamend"
)

// conn is a connection that is opened again after errors. One goroutine uses it.
type conn struct {
	network Network
	address string
	timeout time.Duration
	limit   int               // longest datagram, halved when the system refuses one
	lost    func(packets int) // called for datagrams that did not arrive

	net.Conn
}

func (c *conn) close() {
	if c.Conn != nil {
		_ = c.Conn.Close()
		c.Conn = nil
	}
}

// dial opens the connection unless it is open. It opens a stream again whose other
// end was closed, since the system would accept data for it.
func (c *conn) dial(ctx context.Context) error {
	if c.Conn != nil && c.network.stream() && streamend.Closed(c.Conn) {
		c.close()
	}
	if c.Conn != nil {
		return nil
	}
	network := string(c.network)
	if c.network == Unixstream || c.network == Unixlines {
		network = "unix"
	}
	d := net.Dialer{Timeout: c.timeout}
	opened, err := d.DialContext(ctx, network, c.address)
	if err != nil {
		return err
	}
	c.Conn = opened
	return nil
}

// send makes one attempt to send a packet; see [sinkqueue.Config].
func (c *conn) send(ctx context.Context, data []byte) (sent int, err error) {
	if err := c.dial(ctx); err != nil {
		return 0, err
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		c.close()
		return 0, err
	}
	if c.network.stream() {
		return c.sendStream(data)
	}
	for sent < len(data) {
		n := len(data) - sent
		if n > c.limit {
			n = cut(data[sent:], c.limit)
		}
		err := c.sendDatagram(data[sent : sent+n])
		switch {
		case err == nil:
			sent += n
		case errors.Is(err, syscall.EMSGSIZE) && n > 1 && cut(data[sent:], n/2) < n:
			c.limit = max(n/2, 1)
		case errors.Is(err, syscall.EMSGSIZE):
			return sent, fmt.Errorf("a line of %d bytes: %w: %w", n, err, sinkqueue.ErrRefused)
		default:
			return sent, err
		}
	}
	return sent, nil
}

func (c *conn) sendStream(data []byte) (int, error) {
	whole := data
	if c.network == Unixstream {
		whole = binary.LittleEndian.AppendUint32(make([]byte, 0, len(data)+4), uint32(len(data)))
		whole = append(whole, data...)
	}
	n, err := c.Write(whole)
	if err == nil {
		return len(data), nil
	}
	c.close()
	if n > 0 {
		return 0, fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	}
	return 0, err
}

// sendDatagram sends one datagram. A refused connection is about a datagram before
// it, which is lost, and this one was not sent yet.
func (c *conn) sendDatagram(b []byte) error {
	b = bytes.TrimPrefix(b, []byte("\n"))
	_, err := c.Write(b)
	if c.network == UDP && errors.Is(err, syscall.ECONNREFUSED) {
		c.lost(1)
		_, err = c.Write(b)
	}
	if err == nil || errors.Is(err, syscall.EMSGSIZE) {
		return err
	}
	c.close() // the name may have another address by now
	if errors.Is(err, io.ErrShortWrite) {
		return fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	}
	return err
}

// cut returns the length of the longest run of whole lines in data that fits into
// limit bytes, or of the first line. It does not separate a negative gauge from the
// line before it. The line feed at a cut belongs to the lines after it.
func cut(data []byte, limit int) int {
	best := 0
	for at := 1; at < len(data); {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		end := at + i
		next, _, _ := bytes.Cut(data[end+1:], []byte("\n"))
		if len(next) > 0 && !bytes.Contains(next, []byte(":-")) {
			if best > 0 && end > limit {
				return best
			}
			best = end
		}
		at = end + 1
	}
	if best == 0 || len(data) <= limit {
		return len(data)
	}
	return best
}
