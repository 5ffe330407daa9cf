package admin

import (
	"net"

	"golang.org/x/sys/unix"
)

// peersKnown reports whether the system can identify the peer of a unix socket.
const peersKnown = true

// peerUser returns the user and the group of the process at the other end of a unix
// socket at the time it connected.
func peerUser(c net.Conn) (uid, gid uint32, ok bool) {
	u, isUnix := c.(*net.UnixConn)
	if !isUnix {
		return 0, 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, gid, ok = cred.Uid, cred.Gid, true
		}
	})
	return uid, gid, ok && err == nil
}
