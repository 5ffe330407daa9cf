// Package streamend looks at what a stream socket received without reading it. The
// system accepts one more write to a socket whose other end was closed, and loses its
// data.
package streamend

import (
	"net"
	"syscall"
)

// Closed reports whether the other end of c was closed, or whether c is broken. It
// reads nothing. It returns false for a connection that is not a socket.
func Closed(c net.Conn) bool {
	end := false
	err := control(c, func(fd uintptr) { _, end = peek(fd) })
	return err != nil || end
}

// Quiet reports whether there is nothing to read from c, not even its end. It returns
// true for a connection that is not a socket, and where the system cannot tell.
func Quiet(c net.Conn) (quiet bool, err error) {
	quiet = true
	err = control(c, func(fd uintptr) { quiet, _ = peek(fd) })
	return quiet && err == nil, err
}

func control(c net.Conn, f func(fd uintptr)) error {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(f)
}
