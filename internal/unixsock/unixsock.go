// Package unixsock binds unix sockets in the file system that are never accessible to
// more processes than intended.
package unixsock

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrInUse is wrapped by the errors of [Listen] and [CheckStale] when another program
// serves the path.
var ErrInUse = errors.New("address already in use")

// Path is the path of a socket of this user, for as long as no other file takes it.
type Path struct {
	name string
	file fs.FileInfo
}

// Claim returns the path of the socket that is there now.
func Claim(name string) (*Path, error) {
	file, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	return &Path{name, file}, nil
}

// Remove removes the socket unless another file has replaced it. A socket that cannot
// be removed is replaced by the next [Listen]. Remove of a nil Path does nothing.
func (p *Path) Remove() {
	if p == nil {
		return
	}
	if now, err := os.Lstat(p.name); err == nil && os.SameFile(now, p.file) {
		_ = os.Remove(p.name)
	}
}

// Listener listens on a unix socket with a path. Closing it removes the socket unless
// another one has replaced it.
type Listener struct {
	*net.UnixListener
	path *Path
	kept atomic.Bool
}

// Listen binds a unix socket. It creates the socket in a directory that only this
// user can enter, sets its mode and group there, and then moves it to its path. An
// existing socket that no process serves is replaced; anything else at the path is an
// error. group is a name or a number, empty for that of the process.
func Listen(path string, mode fs.FileMode, group string) (*Listener, error) {
	if err := CheckStale("unix", path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".bind-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, "s")
	ln, err := bind(temp)
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	if err = prepare(temp, mode, group); err == nil {
		err = os.Rename(temp, path)
	}
	var l *Listener
	if err == nil {
		l, err = Adopt(ln, path)
	}
	if err != nil {
		_ = ln.Close() // nothing was accepted
		return nil, err
	}
	return l, nil
}

// maxAddress is the maximum length of an address on Linux. The longest paths leave no
// space for the name of the directory in which they are bound.
const maxAddress = 107

// bind binds a socket to a path, which may exceed the length of an address where the
// system has a shorter name for its directory.
func bind(path string) (*net.UnixListener, error) {
	at := path
	if len(path) > maxAddress {
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		at = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
}

// Adopt returns a listener for a socket that was bound by another process.
func Adopt(ln *net.UnixListener, path string) (*Listener, error) {
	p, err := Claim(path)
	if err != nil {
		return nil, err
	}
	return &Listener{UnixListener: ln, path: p}, nil
}

// Inherit returns the listener of a socket that another process has bound, and takes
// ownership of the file. path is that of a unix socket; closing the listener leaves it to
// the other process unless [Listener.Keep] changes that.
func Inherit(file *os.File, path string) (net.Listener, error) {
	ln, err := net.FileListener(file)
	_ = file.Close() // ln has a duplicate
	if err != nil {
		return nil, err
	}
	u, ok := ln.(*net.UnixListener)
	if !ok || path == "" || path[0] == '@' {
		return ln, nil
	}
	l, err := Adopt(u, path)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	l.Keep(true)
	return l, nil
}

func prepare(path string, mode fs.FileMode, group string) error {
	if group != "" {
		gid, err := GroupID(group)
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode.Perm())
}

// GroupID returns the number of a group that is given by its name or number.
func GroupID(group string) (int, error) {
	if gid, err := strconv.ParseUint(group, 10, 32); err == nil && gid < 1<<32-1 { // the highest means no change
		return int(gid), nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// CheckStale returns an error if there is something other than a socket at path, or
// if a process serves the socket, which wraps [ErrInUse]. network is that of the
// socket: unix or unixgram.
func CheckStale(network, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	c, err := net.DialTimeout(network, path, time.Second)
	if err == nil {
		_ = c.Close() // nothing was sent
		return ErrInUse
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return err
}

// Addr returns the path.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path.name, Net: "unix"} }

// Keep sets whether Close leaves the path to another process that has the socket
// too.
func (l *Listener) Keep(keep bool) { l.kept.Store(keep) }

// Close stops listening.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if err == nil && !l.kept.Load() {
		l.path.Remove()
	}
	return err
}
