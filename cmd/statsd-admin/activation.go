package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

// A service manager can open sockets before it starts the program, and keep
// them while the program is replaced. It describes them in three variables:
// LISTEN_FDS is their number, from descriptor 3 on, LISTEN_PID the process that
// they are for, and LISTEN_FDNAMES their names.

// adminSocket is the name that a socket for the administration port has.
const adminSocket = "admin"

// passedSocket is a socket that was opened for the program.
type passedSocket struct {
	name    string // given by the service manager
	file    *os.File
	network string   // tcp, udp, unix or unixgram
	addr    net.Addr // where it is bound
}

const (
	firstPassed = 3
	mostPassed  = 256
)

// passedSockets returns the sockets that are for the process pid, according to
// its environment. file opens a descriptor.
func passedSockets(env func(string) string, pid int, file func(fd uintptr, name string) *os.File) ([]passedSocket, error) {
	if env("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, nil
	}
	n, err := strconv.Atoi(env("LISTEN_FDS"))
	if err != nil || n < 0 || n > mostPassed {
		return nil, fmt.Errorf("error: LISTEN_FDS is %q, not a number of sockets in [0,%d]", env("LISTEN_FDS"), mostPassed)
	}
	names := make([]string, n)
	if text := env("LISTEN_FDNAMES"); text != "" {
		if names = strings.Split(text, ":"); len(names) != n {
			return nil, fmt.Errorf("error: LISTEN_FDNAMES has %d names for %d sockets", len(names), n)
		}
	}
	all := make([]passedSocket, n)
	for i := range all {
		f := file(uintptr(firstPassed+i), names[i])
		if f == nil {
			return nil, fmt.Errorf("error: descriptor %d, which LISTEN_FDS announces, is not open", firstPassed+i)
		}
		all[i] = passedSocket{name: names[i], file: f}
		if err := all[i].inspect(); err != nil {
			return nil, fmt.Errorf("error: descriptor %d (%s), which LISTEN_FDS announces: %w", firstPassed+i, names[i], err)
		}
	}
	return all, nil
}

// inspect finds out what kind of socket s is.
func (s *passedSocket) inspect() error {
	if l, err := net.FileListener(s.file); err == nil {
		s.addr = l.Addr()
		s.network = s.addr.Network()
		return l.Close() // a duplicate
	}
	c, err := net.FilePacketConn(s.file)
	if err != nil {
		return errors.New("neither a listening socket nor a datagram socket")
	}
	s.addr = c.LocalAddr()
	s.network = s.addr.Network()
	return c.Close()
}

// activate assigns the sockets to the administration port and the StatsD listeners,
// by name or else by address.
func activate(cfg *server.Config, c *bootstrap.Config, sockets []passedSocket) error {
	for _, s := range sockets {
		ok := s.toAdmin(cfg, c, s.name == adminSocket)
		if !ok && s.name != adminSocket {
			ok = s.toListener(cfg, c, func(l *bootstrap.StatsDListener) bool { return l.Name != "" && l.Name == s.name }) ||
				s.toListener(cfg, c, func(l *bootstrap.StatsDListener) bool { return s.at(l.Host, l.Port, l.Path) })
		}
		if !ok {
			return fmt.Errorf("error: no listener uses the socket %q (%s %s) that was passed on: "+
				"it needs the name of a StatsD listener of its kind, or %q, or an address of the configuration", s.name, s.network, s.addr, adminSocket)
		}
	}
	return nil
}

// toAdmin gives s to the administration port if s has its name or its address.
func (s *passedSocket) toAdmin(cfg *server.Config, c *bootstrap.Config, named bool) bool {
	a := &c.Admin.Address
	if cfg.Admin.Address == "" || cfg.Admin.Socket != nil || s.network != "tcp" && s.network != "unix" || !named && !s.at(a.IP.Addr(), a.IP.Port(), a.Pipe) {
		return false
	}
	cfg.Admin.Socket = s.file
	return true
}

// toListener gives s to the first StatsD listener of its network that is meant and has no
// socket. Only UDP listeners can have several.
func (s *passedSocket) toListener(cfg *server.Config, c *bootstrap.Config, meant func(*bootstrap.StatsDListener) bool) bool {
	if cfg.StatsD == nil {
		return false
	}
	for i := range c.StatsD.Listeners {
		l, to := &c.StatsD.Listeners[i], &cfg.StatsD.Listeners[i].Sockets
		network := string(l.Network)
		if network == "unixstream" || network == "unixlines" {
			network = "unix"
		}
		if network == s.network && meant(l) && (len(*to) == 0 || s.network == "udp") {
			*to = append(*to, s.file)
			return true
		}
	}
	return false
}

// at reports whether s is bound to an address of the configuration. No host is
// the same as the unspecified address of either family.
func (s *passedSocket) at(host netip.Addr, port uint16, path string) bool {
	switch a := s.addr.(type) {
	case *net.UnixAddr:
		return path != "" && a.Name == path
	case *net.TCPAddr:
		return sameHost(a.AddrPort(), host, port) && path == ""
	case *net.UDPAddr:
		return sameHost(a.AddrPort(), host, port) && path == ""
	}
	return false
}

func sameHost(have netip.AddrPort, host netip.Addr, port uint16) bool {
	own := have.Addr().Unmap().WithZone("")
	return have.Port() == port && (own == host.Unmap() || own.IsUnspecified() && (!host.IsValid() || host.IsUnspecified()))
}
