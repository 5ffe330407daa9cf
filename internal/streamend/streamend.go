// Package streamend detects that the other end of a stream socket was closed. The
// system accepts one more write to such a socket, whose data is lost.
package streamend

import (
	"net"
	"syscall"
)

// Closed reports whether the other end of c was closed, or whether c is broken. It
// reads nothing. It returns false for a connection that is not a socket.
func Closed(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	var end bool
	err = raw.Read(func(fd uintptr) bool {
		end = atEnd(fd)
		return true
	})
	return err != nil || end
}
