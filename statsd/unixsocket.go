package statsd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
)

// clearPath removes an unused socket at a.location. It returns an error for
// anything else.
func clearPath(a address) error {
	fi, err := os.Lstat(a.location)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way: it is not a socket", a.location)
	}
	c, err := net.Dial(a.network, a.location)
	if err == nil {
		_ = c.Close() // nothing was sent
		return fmt.Errorf("%w: a process answers on %s", syscall.EADDRINUSE, a.location)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s is in the way: %w", a.location, err)
	}
	return os.Remove(a.location)
}

// setRights applies the configured mode, owner and group to the path of a
// socket.
func setRights(path string, c *ListenerConfig) error {
	uid, gid := -1, -1
	if c.Owner != "" {
		n, err := userID(c.Owner)
		if err != nil {
			return err
		}
		uid = n
	}
	if c.Group != "" {
		n, err := unixsock.GroupID(c.Group)
		if err != nil {
			return err
		}
		gid = n
	}
	if uid >= 0 || gid >= 0 {
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, c.Mode)
}

func userID(name string) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(u.Uid)
}
