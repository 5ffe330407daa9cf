package sinkqueue

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence sets the limit silence for a socket.
func limitSilence(_, _ string, c syscall.RawConn) (err error) {
	if failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	}); failed != nil {
		return failed
	}
	return err
}
