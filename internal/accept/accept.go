// Package accept takes connections from a listener through times in which there
// are none to be had: a process that has no file descriptors left, or a machine
// without memory, must not lose its listeners.
package accept

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// How long to wait before the next attempt: at first, and at most.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// Next returns the next connection that accept gives. While that fails with an
// error that passes according to passing, it logs to log, waits a moment, twice
// as long each time up to a second, and tries again. Any other error is
// returned, and so is the last one once stop is closed; a nil stop never is.
func Next(accept func() (net.Conn, error), passing func(error) bool, stop <-chan struct{}, log *slog.Logger) (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		c, err := accept()
		if err == nil {
			return c, nil
		}
		select {
		case <-stop:
			return nil, err
		default:
		}
		if !passing(err) {
			return nil, err
		}
		log.Warn("accept failed", "error", err, "retry", pause)
		select {
		case <-time.After(pause):
		case <-stop:
			return nil, err
		}
	}
}

// Transient reports whether accepting may work again in a moment: something ran
// out, or it was the connection that failed. Linux reports what happened to a
// connection before it was accepted, and what a firewall does with it, as an
// error of accept (accept(2), "Error handling").
func Transient(err error) bool {
	for _, e := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.ETIMEDOUT,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Open reports whether the listener that gave err is still open. To a
// [Next] that passes all else, nothing but closing the listener is an end.
func Open(err error) bool { return !errors.Is(err, net.ErrClosed) }
