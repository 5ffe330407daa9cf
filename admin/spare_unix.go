//go:build unix

package admin

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// speaks reports whether data, or the end of the connection, is there or arrives within
// limit. It reads nothing.
func speaks(nc net.Conn, limit time.Duration) bool {
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true // closed, as the next read says
	}
	there := func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN)
	}
	already := true
	_ = raw.Control(func(fd uintptr) { already = there(fd) }) // fails only if the connection is closed
	if already || nc.SetReadDeadline(time.Now().Add(limit)) != nil {
		return true
	}
	defer nc.SetReadDeadline(time.Time{}) // fails only if the connection is closed
	return raw.Read(there) == nil
}
