//go:build unix

package streamend

import (
	"errors"
	"syscall"
)

// atEnd reports whether a stream socket was closed by the other end.
func atEnd(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
}
