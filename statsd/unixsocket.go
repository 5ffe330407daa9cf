package statsd

import (
	"errors"
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
	err := unixsock.CheckStale(a.network, a.location)
	if err == nil {
		err = os.Remove(a.location)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// privately binds unix sockets that are open to no one whom mode excludes, also before
// setRights.
func privately(mode fs.FileMode) *net.ListenConfig {
	return &net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = setMode(fd, uint32(mode)) }) // elsewhere the umask decides until then
	}}
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
