// Package accept accepts connections across temporary failures: a process
// without free file descriptors, or a machine without free memory, must not
// lose its listeners.
package accept

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// Delays before the next attempt: the first, and the longest.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// Next returns the next connection from accept. If accept fails with an error for
// which passing returns true, Next logs it and retries after a pause, which doubles
// up to a second. Any other error is returned, and so is the last one after stop is
// closed; stop may be nil.
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

// Transient reports whether accepting can succeed again soon: a resource ran
// out, or the connection itself failed. Linux reports earlier errors of a
// connection, and decisions of a firewall, as errors of accept (accept(2),
// "Error handling").
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

// Open reports whether the listener that returned err is still open. A [Next]
// with Open retries until the listener is closed.
func Open(err error) bool { return !errors.Is(err, net.ErrClosed) }
