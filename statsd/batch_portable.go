//go:build !linux || purego

package statsd

import (
	"net"
	"net/netip"
	"syscall"
	"time"
)

const batchSize = 1

// batch reads one datagram at a time. It belongs to one goroutine.
type batch struct {
	conn packetConn
	buf  []byte // one byte longer than the limit, to detect longer datagrams
	size int
	n    int
	from netip.AddrPort

	waited bool // always false: whether a read had to wait is unknown
}

// packetConn is the common part of *net.UDPConn and *net.UnixConn.
type packetConn interface {
	net.PacketConn
	syscall.Conn
	SetReadBuffer(bytes int) error
	Read(b []byte) (int, error)
}

// newBatch returns a batch that reads datagrams of up to size bytes from c.
func newBatch(c packetConn, size int) (*batch, error) {
	return &batch{conn: c, buf: make([]byte, size+1), size: size}, nil
}

// read waits for a datagram and returns 1 unless there is an error.
func (b *batch) read() (int, error) {
	var err error
	b.from = netip.AddrPort{}
	if u, ok := b.conn.(*net.UDPConn); ok {
		b.n, b.from, err = u.ReadFromUDPAddrPort(b.buf)
	} else {
		b.n, err = b.conn.Read(b.buf)
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// poll is read with a short timeout. It returns 0 if no datagram is queued or none can
// be read.
func (b *batch) poll() int {
	_ = b.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails if it is closed
	n, _ := b.read()
	return n
}

// packet returns datagram i of the last read and reports whether it was
// truncated because the buffer is too small.
func (b *batch) packet(int) (p []byte, cut bool) {
	return b.buf[:min(b.n, b.size)], b.n > b.size
}

// sender returns the source address of datagram i, if it has one.
func (b *batch) sender(int) netip.AddrPort {
	return netip.AddrPortFrom(b.from.Addr().Unmap(), b.from.Port())
}

// dropped has no count on this system.
func (b *batch) dropped() (count uint32, ok bool) { return 0, false }
