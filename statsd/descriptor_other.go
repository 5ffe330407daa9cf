//go:build !unix

package statsd

import (
	"errors"
	"syscall"
)

// duplicateFD would return another descriptor of what fd stands for.
func duplicateFD(uintptr) (int, error) {
	return -1, errors.New("sockets are handed over on unix systems only")
}

// waits would report whether a socket has something to accept or to read.
func waits(syscall.Conn) bool { return false }

func setMode(uintptr, uint32) error { return errors.ErrUnsupported }
