//go:build unix

package streamend

import (
	"syscall"
)

// peek reports whether there is nothing to read from a stream socket, and whether it was
// closed by the other end.
func peek(fd uintptr) (quiet, end bool) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	return quiet, n == 0 && err == nil || err != nil && !quiet && err != syscall.EINTR
}
