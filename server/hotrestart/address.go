package hotrestart

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Config says where processes find each other. Path is required.
type Config struct {
	// Path is what the names of sockets begin with; @ in front makes them
	// abstract.
	Path string
	// Mode is that of sockets in the file system. Default 0600.
	Mode fs.FileMode
	// BaseID tells lines of processes apart that run side by side.
	BaseID uint32
	// Epoch is the number of this process in its line, from 0.
	Epoch uint32
	// Timeout is how long to wait for the other process. Default 10 s.
	Timeout time.Duration
	// Log takes messages. Default: none.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Mode == 0 {
		c.Mode = 0o600
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// epochs is how many processes of a line have names of their own.
const epochs = 3

// address returns where the process of an epoch listens.
func (c Config) address(epoch uint32) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("%s_parent_%d", c.Path, uint64(c.BaseID)*10+uint64(epoch)%epochs)}
}

// ErrInUse is wrapped by what [Listen] returns when another process has the
// name.
var ErrInUse = errors.New("the base id is in use by another server")

// bind binds the socket of cfg's epoch. One in the file system is made in a
// directory that only this user can enter, gets its mode there and is then
// moved, so that it is never open to others. info is nil for abstract ones.
func bind(cfg Config) (ln *net.UnixListener, info fs.FileInfo, err error) {
	addr := cfg.address(cfg.Epoch)
	if strings.HasPrefix(addr.Name, "@") {
		ln, err = net.ListenUnix("unix", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = ErrInUse
		}
		return ln, nil, err
	}
	if err := makeWay(addr); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(addr.Name), ".hot-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, "s")
	if ln, err = net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"}); err != nil {
		return nil, nil, err
	}
	ln.SetUnlinkOnClose(false)
	if err = os.Chmod(temp, cfg.Mode.Perm()); err == nil {
		if err = os.Rename(temp, addr.Name); err == nil {
			if info, err = os.Lstat(addr.Name); err == nil {
				return ln, info, nil
			}
		}
	}
	_ = ln.Close() // nothing was accepted
	return nil, nil, err
}

// makeWay makes way at the path of a socket that nobody answers on.
func makeWay(addr *net.UnixAddr) error {
	info, err := os.Lstat(addr.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", addr.Name)
	}
	c, err := net.DialUnix("unix", nil, addr)
	if err == nil {
		_ = c.Close() // nothing was sent
		return ErrInUse
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(addr.Name)
}
