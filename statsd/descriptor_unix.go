//go:build unix

package statsd

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func duplicateFD(fd uintptr) (int, error) {
	return unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
}

// setMode gives a socket the mode of its path to be. Systems that have no such mode refuse.
func setMode(fd uintptr, mode uint32) error { return unix.Fchmod(int(fd), mode) }

// waits reports whether a socket has a connection to accept or input to read,
// end of file included.
func waits(c syscall.Conn) (ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		ok = err == nil && n == 1
	})
	return ok && err == nil
}
