package transport

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestLocalErrorsTellThemselvesApart(t *testing.T) {
	for _, tt := range []struct {
		stage Stage
		err   error
		want  bool
	}{
		{Connect, syscall.EMFILE, true}, {Connect, syscall.ENFILE, true}, {Connect, syscall.ENOBUFS, true},
		{Connect, syscall.EADDRNOTAVAIL, true}, {Bind, syscall.EADDRNOTAVAIL, true}, {Bind, syscall.EADDRINUSE, true},
		{Connect, &bindError{err: syscall.EADDRINUSE}, true}, {Connect, &bindError{err: syscall.EACCES}, true},
		{Connect, syscall.ECONNREFUSED, false}, {Connect, syscall.ECONNRESET, false}, {Connect, syscall.EHOSTUNREACH, false},
		{Connect, syscall.ENETUNREACH, false}, {Connect, syscall.ETIMEDOUT, false}, {Connect, context.Canceled, false},
		{Connect, os.ErrDeadlineExceeded, false}, {Handshake, syscall.EMFILE, false},
	} {
		// As the net package wraps them.
		err := error(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", tt.err)})
		for _, err := range []error{tt.err, err, plain(err), fmt.Errorf("why: %w", err)} {
			if got := local(tt.stage, err); got != tt.want {
				t.Errorf("%s, %#v: local %t, want %t", tt.stage, err, got, tt.want)
			}
		}
	}
}
