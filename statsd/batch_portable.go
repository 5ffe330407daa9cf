//go:build !linux || purego

package statsd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

const batchSize = 1

// batch reads datagrams one at a time. It belongs to one goroutine.
type batch struct {
	conn packetConn
	buf  []byte // one byte longer than a datagram may be, to see that one is
	size int
	n    int
	from netip.AddrPort
}

// packetConn is what *net.UDPConn and *net.UnixConn have in common.
type packetConn interface {
	net.PacketConn
	syscall.Conn
	SetReadBuffer(bytes int) error
	Read(b []byte) (int, error)
}

// newBatch prepares reading from c datagrams of up to size bytes.
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

// poll is read that waits a moment only: 0 if nothing is there.
func (b *batch) poll() (int, error) {
	if err := b.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0, err
	}
	n, err := b.read()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

// packet returns datagram i of the last read and whether it was cut because
// the buffer is too small.
func (b *batch) packet(int) (p []byte, cut bool) {
	return b.buf[:min(b.n, b.size)], b.n > b.size
}

// sender returns the address that datagram i came from, if it has one.
func (b *batch) sender(int) netip.AddrPort {
	return netip.AddrPortFrom(b.from.Addr().Unmap(), b.from.Port())
}

// dropped would return the kernel's count of dropped datagrams.
func (b *batch) dropped() (count uint32, ok bool) { return 0, false }
