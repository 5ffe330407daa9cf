package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/unixsock"
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
	case cfg.Socket != nil:
		return inherited(cfg.Socket, "")
	case strings.HasPrefix(addr.unix, "@"):
		ln, err = net.Listen("unix", addr.unix)
	case addr.unix != "":
		ln, err = unixsock.Listen(addr.unix, cmp.Or(cfg.SocketMode, 0o600), cfg.SocketGroup)
	default:
		ln, err = listenTCP(addr.tcp.String(), cfg.SocketOptions)
	}
	if err == nil && addr.unix != "" {
		err = setAllOptions(ln, cfg.SocketOptions)
	}
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, unixsock.ErrInUse) {
		err = ErrAddressInUse
	}
	if errors.Is(err, ErrAddressInUse) {
		return nil, fmt.Errorf("admin: cannot listen on %s: %w (another program uses it; choose another address, or port 0 for a free one)", text, err)
	}
	if err != nil {
		return nil, fmt.Errorf("admin: cannot listen on %s: %w", text, err)
	}
	return ln, nil
}

// inherited returns the listener of a socket bound by another process, with its path.
func inherited(f *os.File, path string) (net.Listener, error) {
	ln, err := unixsock.Inherit(f, path)
	if err != nil {
		return nil, fmt.Errorf("admin: the inherited socket %s: %w", f.Name(), err)
	}
	return ln, nil
}

func kindOf(addr net.Addr) listenerKind {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return listenerKind{unix: true}
	case *net.TCPAddr:
		return listenerKind{open: !a.IP.IsLoopback()}
	}
	return listenerKind{open: true}
}
