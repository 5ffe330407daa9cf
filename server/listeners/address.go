package listeners

import (
	"net"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// FromNet returns the address of a bound listener or packet connection. Addresses of
// other kinds are stored as text in Pipe.
func FromNet(addr net.Addr) config.Address {
	switch addr := addr.(type) {
	case *net.TCPAddr:
		return config.Address{IP: unmapped(addr.AddrPort())}
	case *net.UDPAddr:
		return config.Address{IP: unmapped(addr.AddrPort())}
	case *net.UnixAddr:
		return config.Address{Pipe: addr.Name}
	}
	return config.Address{Pipe: addr.String()}
}

// unmapped converts an IPv4-mapped IPv6 address to IPv4.
func unmapped(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
