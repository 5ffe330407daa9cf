package hotrestart

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
)

// Config holds the names under which processes find each other. Path is
// required.
type Config struct {
	// Path is the prefix of the names of sockets; a leading @ makes them
	// abstract.
	Path string
	// Mode is the mode of sockets in the file system. Default 0600.
	Mode fs.FileMode
	// BaseID distinguishes servers that run side by side.
	BaseID uint32
	// Epoch is 0 for the first process, and one higher for each successor.
	Epoch uint32
	// Timeout is how long to wait for the other process. Default 10 s.
	Timeout time.Duration
	// Logger receives log messages. If nil, nothing is logged.
	Logger *slog.Logger

	spare *spare // of a process that has neighbors
}

func (c Config) withDefaults() Config {
	c.Mode = cmp.Or(c.Mode, 0o600)
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// epochs is the number of processes in succession with distinct names.
const epochs = 3

// address returns where the process of an epoch listens.
func (c Config) address(epoch uint32) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("%s_parent_%d", c.Path, uint64(c.BaseID)*10+uint64(epoch)%epochs)}
}

// Check returns an error if the name of the socket is longer than an address may be.
func (c Config) Check() error {
	if n := len(c.address(c.Epoch).Name); n > maxAddress {
		return c.listenError(fmt.Errorf("the name has %d bytes, more than the %d of an address", n, maxAddress))
	}
	return nil
}

// listenError adds the name of the socket to an error.
func (c Config) listenError(err error) error {
	return fmt.Errorf("hotrestart: base id %d, socket %s: %w", c.BaseID, c.address(c.Epoch).Name, err)
}

// ErrInUse is wrapped by the error of [Listen] when another process has the
// name.
var ErrInUse = errors.New("the base id is in use by another server; use a restart epoch one higher to take over from it, or another base id to run beside it")

// maxAddress is how long the address of a socket may be.
const maxAddress = 107

// listener is a socket where a successor asks.
type listener interface {
	AcceptUnix() (*net.UnixConn, error)
	Close() error
}

// bind binds the socket of cfg's epoch. One in the file system is at no moment
// open to others, and is removed when it is closed unless another one has taken
// its place.
func bind(cfg Config) (listener, error) {
	addr := cfg.address(cfg.Epoch)
	var ln listener
	var err error
	if strings.HasPrefix(addr.Name, "@") {
		ln, err = net.ListenUnix("unix", addr)
	} else {
		ln, err = unixsock.Listen(addr.Name, cfg.Mode, "")
	}
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, unixsock.ErrInUse) {
		err = ErrInUse
	}
	return ln, err
}
