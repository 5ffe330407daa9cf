package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
)

// SocketOption is an option of a listening socket, as passed to setsockopt.
type SocketOption struct {
	Level, Name int
	Int         int
	Bytes       []byte // in place of Int, unless nil
	// Prebind sets the option before the socket is bound. Otherwise it is set once
	// the socket is listening.
	Prebind bool
}

// listenTCP binds a TCP socket and sets its options.
func listenTCP(addr string, options []SocketOption) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return setOptions(raw, options, true) }}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	late := slices.DeleteFunc(slices.Clone(options), func(o SocketOption) bool { return o.Prebind })
	if err := setAllOptions(ln, late); err != nil {
		return nil, err
	}
	return ln, nil
}

// setAllOptions sets the options of a listening socket. On error it closes the
// socket.
func setAllOptions(ln net.Listener, options []SocketOption) error {
	socket, ok := ln.(syscall.Conn)
	if !ok || len(options) == 0 {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err == nil {
		err = errors.Join(setOptions(raw, options, true), setOptions(raw, options, false))
	}
	if err != nil {
		_ = ln.Close() // nothing was accepted
	}
	return err
}

// setOptions sets the options for the given phase.
func setOptions(raw syscall.RawConn, options []SocketOption, prebind bool) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		for _, o := range options {
			if o.Prebind != prebind || failed != nil {
				continue
			}
			if err := setOption(fd, o); err != nil {
				failed = fmt.Errorf("socket option %d of level %d: %w", o.Name, o.Level, err)
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}
