//go:build linux

package statsd

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharePort allows several sockets on one UDP port.
func sharePort(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

// tuneSocket requests a receive buffer, beyond the system limit if the process
// has the privilege, and the count of dropped datagrams. It returns the granted
// size.
func tuneSocket(c packetConn, rcvbuf int) (granted int, err error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sockErr error
	err = conn.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvbuf) != nil {
			if sockErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, rcvbuf); sockErr != nil {
				return
			}
		}
		// Datagrams that were dropped are counted even if this is refused: see queue.
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
		granted, sockErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		granted /= 2 // the kernel reports it doubled
	})
	return granted, errors.Join(err, sockErr)
}

const rcvbufHint = "set net.core.rmem_max to allow more: sysctl -w net.core.rmem_max="

// queueState is the kernel's state of a socket's receive queue.
type queueState struct {
	used    int    // memory of waiting datagrams, in bytes
	size    int    // limit of used
	dropped uint32 // datagrams dropped since the socket was made; wraps
}

// queue reads the state of a socket's receive queue.
func queue(c syscall.RawConn) (q queueState, ok bool) {
	const (
		meminfoRmem   = 0
		meminfoRcvbuf = 1
		meminfoDrops  = 8
	)
	var mem [16]uint32
	err := c.Control(func(fd uintptr) {
		size := uint32(unsafe.Sizeof(mem))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&mem)), uintptr(unsafe.Pointer(&size)), 0)
		ok = errno == 0 && size > meminfoDrops*4
	})
	return queueState{int(mem[meminfoRmem]), int(mem[meminfoRcvbuf]), mem[meminfoDrops]}, ok && err == nil
}

// unixQueue returns how many datagrams can wait in a unix socket, or 0 if
// unknown.
func unixQueue() int {
	b, err := os.ReadFile("/proc/sys/net/unix/max_dgram_qlen")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(bytes.TrimSpace(b))) // 0 if it is no number
	return n
}
