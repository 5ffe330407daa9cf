package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// address is a parsed Config.Address.
type address struct {
	unix string // path of a socket, or @name
	tcp  netip.AddrPort
}

func parseAddress(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" || path == "@" {
			return address{}, fmt.Errorf("admin: address %q has no path", text)
		}
		return address{unix: path}, nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return address{}, fmt.Errorf("admin: address %q is neither ip:port, such as 127.0.0.1:9901 or [::1]:9901, nor unix:path", text)
	}
	return address{tcp: ap}, nil
}

// listen binds an address of the configuration.
func listen(cfg *Config) (net.Listener, error) {
	text := cfg.Address
	addr, err := parseAddress(text)
	if err != nil {
		return nil, err
	}
	var ln net.Listener
	switch {
	case strings.HasPrefix(addr.unix, "@"):
		ln, err = net.Listen("unix", addr.unix)
	case addr.unix != "":
		ln, err = listenPath(addr.unix, cfg.SocketMode, cfg.SocketGroup)
	default:
		ln, err = listenTCP(addr.tcp.String(), cfg.SocketOptions)
	}
	if err == nil && addr.unix != "" {
		err = setAllOptions(ln, cfg.SocketOptions)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = ErrAddressInUse
	}
	if errors.Is(err, ErrAddressInUse) {
		return nil, fmt.Errorf("admin: cannot listen on %s: %w (another program serves it; choose another address, or port 0 for a free one)", text, err)
	}
	if err != nil {
		return nil, fmt.Errorf("admin: cannot listen on %s: %w", text, err)
	}
	return ln, nil
}

// listenPath binds a unix socket. The socket is made in a directory that only
// this process can enter, gets its mode there, and is then moved to its path,
// so that at no moment it is open to more than it should be. A socket that is
// there already and that nobody serves is replaced.
func listenPath(path string, mode fs.FileMode, group string) (net.Listener, error) {
	if mode == 0 {
		mode = 0o600
	}
	if err := checkStale(path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".admin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, "s")
	raw, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	raw.SetUnlinkOnClose(false)
	err = prepareSocket(temp, mode, group)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &pathListener{raw, &net.UnixAddr{Name: path, Net: "unix"}, info}, nil
}

func prepareSocket(path string, mode fs.FileMode, group string) error {
	if group != "" {
		gid, err := groupID(group)
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode.Perm())
}

func groupID(group string) (int, error) {
	if gid, err := strconv.Atoi(group); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// checkStale reports why path cannot be taken: it is something other than a
// socket, or somebody serves it.
func checkStale(path string) error {
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
		return ErrAddressInUse
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return err
}

// pathListener is a listener on a unix socket that has been moved. Closing it
// removes the socket, unless another one has taken its place.
type pathListener struct {
	*net.UnixListener
	addr *net.UnixAddr
	file fs.FileInfo
}

func (l *pathListener) Addr() net.Addr { return l.addr }

func (l *pathListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		if now, err := os.Lstat(l.addr.Name); err == nil && os.SameFile(now, l.file) {
			_ = os.Remove(l.addr.Name)
		}
	}
	return err
}

// placeOf tells what matters about a listener's address.
func placeOf(addr net.Addr) place {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return place{unix: true}
	case *net.TCPAddr:
		return place{open: !a.IP.IsLoopback()}
	}
	return place{open: true}
}

// transient reports whether accepting may work again in a moment.
func transient(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
