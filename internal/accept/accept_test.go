package accept

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// listener gives errors, one after the other, and then connections.
type listener struct {
	errs  []error
	calls []time.Time
}

func (l *listener) accept() (net.Conn, error) {
	l.calls = append(l.calls, time.Now())
	if len(l.errs) == 0 {
		return &net.TCPConn{}, nil
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Err: err}
}

func repeat(err error, n int) (list []error) {
	for range n {
		list = append(list, err)
	}
	return list
}

// TestNextWaits: errors that pass are waited for, longer and longer.
func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &listener{errs: repeat(syscall.EMFILE, 10)}
		c, err := Next(l.accept, Transient, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if c == nil || err != nil {
			t.Fatalf("%v, %v", c, err)
		}
		var waits []string
		for i := range l.calls[1:] {
			waits = append(waits, l.calls[i+1].Sub(l.calls[i]).String())
		}
		if got, want := strings.Join(waits, " "), "5ms 10ms 20ms 40ms 80ms 160ms 320ms 640ms 1s 1s"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
		if n := strings.Count(log.String(), `msg="accept failed" error="accept: too many open files" retry=`); n != 10 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

// TestNextEnds: other errors end it at once, and so does stop.
func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		for _, tt := range []struct {
			errs    []error
			passing func(error) bool
			want    error
			calls   int
		}{
			{[]error{net.ErrClosed}, Transient, net.ErrClosed, 1},
			{[]error{syscall.EMFILE, syscall.EBADF}, Transient, syscall.EBADF, 2},
			{[]error{net.ErrClosed}, Open, net.ErrClosed, 1},
			{[]error{syscall.EBADF, errors.New("odd"), net.ErrClosed}, Open, net.ErrClosed, 3},
		} {
			l := &listener{errs: tt.errs}
			if c, err := Next(l.accept, tt.passing, nil, quiet); c != nil || !errors.Is(err, tt.want) || len(l.calls) != tt.calls {
				t.Errorf("%v: %v, %v after %d calls, want %v after %d", tt.errs, c, err, len(l.calls), tt.want, tt.calls)
			}
		}
		stop, begin := make(chan struct{}), time.Now()
		time.AfterFunc(17*time.Millisecond, func() { close(stop) }) // in the third pause
		l := &listener{errs: repeat(syscall.ENOMEM, 100)}
		if c, err := Next(l.accept, Transient, stop, quiet); c != nil || !errors.Is(err, syscall.ENOMEM) || time.Since(begin) != 17*time.Millisecond {
			t.Errorf("stopped: %v, %v after %v", c, err, time.Since(begin))
		}
		var log bytes.Buffer
		if c, err := Next(l.accept, Transient, stop, slog.New(slog.NewTextHandler(&log, nil))); c != nil || err == nil || log.Len() > 0 {
			t.Errorf("stopped before: %v, %v, log %q", c, err, log.String())
		}
		l = new(listener)
		if c, err := Next(l.accept, Transient, stop, quiet); c == nil || err != nil {
			t.Errorf("a connection that is there: %v, %v", c, err)
		}
	})
}

func TestTransient(t *testing.T) {
	for _, err := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.ETIMEDOUT,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	} {
		if !Transient(fmt.Errorf("accept: %w", err)) {
			t.Errorf("%v does not pass", err)
		}
	}
	for _, err := range []error{net.ErrClosed, syscall.EBADF, syscall.EINVAL, errors.New("odd")} {
		if Transient(err) {
			t.Errorf("%v passes", err)
		}
	}
}
