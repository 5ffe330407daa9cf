package transport

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// supported returns an error if a setting is not available on this system.
func (s *source) supported(string) error { return nil }

// prepare sets options of a socket and binds it.
func (s *source) prepare(fd int, remote netip.Addr) error {
	if err := setOptions(fd, s.prebind); err != nil {
		return err
	}
	if a, ok := s.address(remote); ok {
		if err := s.bind(fd, a, remote); err != nil {
			return &bindError{a, err}
		}
	}
	return setOptions(fd, s.bound)
}

func (s *source) bind(fd int, a netip.AddrPort, remote netip.Addr) error {
	if s.freebind {
		if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1); err != nil {
			return fmt.Errorf("freebind: %w", err)
		}
	}
	if a.Port() == 0 {
		// The port is chosen at connect, so that many connections to different hosts
		// can share it. Systems without this option choose it at bind.
		_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	}
	ip := a.Addr().Unmap()
	if remote.Unmap().Is4() {
		if !ip.Is4() {
			return fmt.Errorf("cannot reach %s: not of the same family", remote)
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()})
	}
	if ip.Is4() {
		return fmt.Errorf("cannot reach %s: not of the same family", remote)
	}
	to := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	var err error
	if to.ZoneId, err = zoneID(ip.Zone()); err != nil {
		return err
	}
	return unix.Bind(fd, to)
}

// zoneID returns the index of an interface with that name or number, 0 for "".
func zoneID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("zone %q: no such interface", zone)
	}
	return uint32(i.Index), nil
}

func setOptions(fd int, list []config.SocketOption) error {
	for _, o := range list {
		var err error
		if o.IsInt {
			err = unix.SetsockoptInt(fd, int(o.Level), int(o.Name), int(int32(o.Int)))
		} else {
			err = unix.SetsockoptString(fd, int(o.Level), int(o.Name), o.Buf)
		}
		if err != nil {
			return fmt.Errorf("socket option level %d name %d: %w", o.Level, o.Name, err)
		}
	}
	return nil
}
