package hotrestart

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const available = true

// checkPeer refuses processes of other users: who can ask for sockets can read
// all that is sent to them.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, credErr); err != nil {
		return err
	}
	return checkUser(cred, os.Geteuid())
}

// checkUser refuses users other than root and one's own.
func checkUser(cred *unix.Ucred, own int) error {
	if int(cred.Uid) != own && cred.Uid != 0 {
		return fmt.Errorf("hotrestart: process %d belongs to user %d, not to %d", cred.Pid, cred.Uid, own)
	}
	return nil
}
