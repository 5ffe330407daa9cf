//go:build !linux

package hotrestart

import (
	"errors"
	"net"
)

const available = false

// checkPeer refuses all: the other process cannot be known.
func checkPeer(*net.UnixConn) error {
	return errors.New("hotrestart: not available on this system")
}
