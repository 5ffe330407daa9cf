//go:build linux && !purego

package statsd

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is the number of datagrams that one system call reads.
const batchSize = 32

const (
	nameBytes    = unix.SizeofSockaddrInet6
	controlBytes = 64
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// batch reads datagrams with recvmmsg(2). It belongs to one goroutine. Its
// buffers take no memory until a datagram touches them.
type batch struct {
	conn     syscall.RawConn
	hdrs     [batchSize]mmsghdr
	iovs     [batchSize]unix.Iovec
	names    [batchSize][nameBytes]byte
	controls [batchSize][controlBytes]byte
	control  int // bytes of controls in use
	buf      []byte
	size     int

	try   func(fd uintptr) bool // bound once: a closure per read would be an allocation
	tryNo func(fd uintptr)
	n     int
	errno syscall.Errno

	waited bool // the last read found no datagram at first
}

// newBatch returns a batch that reads datagrams of up to size bytes from c.
func newBatch(c packetConn, size int) (*batch, error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{conn: conn, buf: make([]byte, batchSize*size), size: size}
	if _, ok := c.(*net.UDPConn); ok { // senders to a unix socket could fill it with open files
		b.control = controlBytes
	}
	for i := range b.hdrs {
		b.iovs[i].Base = &b.buf[i*size]
		b.iovs[i].SetLen(size)
		h := &b.hdrs[i].hdr
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
		h.Name = &b.names[i][0]
		h.Control = &b.controls[i][0]
	}
	b.try = func(fd uintptr) bool {
		b.recv(fd)
		if b.errno == syscall.EAGAIN {
			b.waited = true
		}
		return b.errno != syscall.EAGAIN
	}
	b.tryNo = b.recv
	return b, nil
}

func (b *batch) recv(fd uintptr) {
	for i := range b.hdrs {
		h := &b.hdrs[i].hdr
		h.Namelen = nameBytes
		h.SetControllen(b.control)
	}
	// A call that does not wait is not interrupted either.
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.hdrs[0])), batchSize, unix.MSG_DONTWAIT, 0, 0)
	b.n, b.errno = int(n), errno
	if errno != 0 {
		b.n = 0
	}
}

// read waits for datagrams and returns their number, at least one unless there
// is an error.
func (b *batch) read() (int, error) {
	b.waited = false
	if err := b.conn.Read(b.try); err != nil {
		return 0, err
	}
	if b.errno != 0 {
		return 0, b.errno
	}
	return b.n, nil
}

// poll is read without waiting. It returns 0 if no datagram is queued or none can be
// read.
func (b *batch) poll() int {
	if b.conn.Control(b.tryNo) != nil {
		return 0
	}
	return b.n
}

// packet returns datagram i of the last read and reports whether it was
// truncated because the buffer is too small.
func (b *batch) packet(i int) (p []byte, cut bool) {
	h := &b.hdrs[i]
	return b.buf[i*b.size : i*b.size+int(h.n)], h.hdr.Flags&unix.MSG_TRUNC != 0
}

// sender returns the source address of datagram i, if it has one.
func (b *batch) sender(i int) netip.AddrPort {
	name := &b.names[i]
	n := b.hdrs[i].hdr.Namelen
	if n < unix.SizeofSockaddrInet4 {
		return netip.AddrPort{}
	}
	port := binary.BigEndian.Uint16(name[2:])
	switch binary.NativeEndian.Uint16(name[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(name[4:8])), port)
	case unix.AF_INET6:
		if n >= unix.SizeofSockaddrInet6 {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(name[8:24])).Unmap(), port)
		}
	}
	return netip.AddrPort{}
}

// dropped returns the kernel's 32-bit count of datagrams dropped on this
// socket, as of the last datagram of the last read. ok is false if the kernel
// has not reported a drop.
func (b *batch) dropped() (count uint32, ok bool) {
	if b.n == 0 {
		return 0, false
	}
	h := &b.hdrs[b.n-1].hdr
	c := b.controls[b.n-1][:min(int(h.Controllen), controlBytes)]
	for len(c) >= unix.SizeofCmsghdr {
		cm := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
		n := int(cm.Len)
		if n < unix.SizeofCmsghdr || n > len(c) {
			return 0, false
		}
		if cm.Level == unix.SOL_SOCKET && cm.Type == unix.SO_RXQ_OVFL && n >= unix.CmsgLen(4) {
			return binary.NativeEndian.Uint32(c[unix.CmsgLen(0):]), true
		}
		c = c[min(unix.CmsgSpace(n-unix.SizeofCmsghdr), len(c)):]
	}
	return 0, false
}

// packetConn is the common part of *net.UDPConn and *net.UnixConn.
type packetConn interface {
	net.PacketConn
	syscall.Conn
	SetReadBuffer(bytes int) error
}
