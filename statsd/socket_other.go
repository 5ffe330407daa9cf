//go:build !linux

package statsd

import (
	"errors"
	"syscall"
)

// sharePort would let several sockets be bound to one UDP port.
func sharePort(uintptr) error {
	return errors.New("several readers of one port are supported on Linux only; set readers to 1")
}

// tuneSocket asks for a receive buffer.
func tuneSocket(c packetConn, rcvbuf int) (granted int, err error) {
	return rcvbuf, c.SetReadBuffer(rcvbuf)
}

const rcvbufHint = "the system allows no more than "

// queueState is the kernel's state of a socket's receive queue.
type queueState struct {
	used, size int
	dropped    uint32
}

// queue would read the state of a socket's receive queue.
func queue(syscall.RawConn) (q queueState, ok bool) { return q, false }

// unixQueue would return how many datagrams may wait in a unix socket.
func unixQueue() int { return 0 }
