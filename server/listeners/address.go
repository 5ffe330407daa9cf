package listeners

import (
	"net"
	"net/netip"
)

// Address is where a listener listens: an IP address and the real port, or the
// path of a unix socket.
type Address struct {
	IP   netip.AddrPort
	Pipe string // @name is abstract
}

// String returns ip:port, [ip]:port, or the path.
func (a Address) String() string {
	if a.Pipe != "" {
		return a.Pipe
	}
	return a.IP.String()
}

// FromNet returns the address of a bound listener or packet connection. Other
// kinds of addresses are kept as text in Pipe.
func FromNet(addr net.Addr) Address {
	switch addr := addr.(type) {
	case *net.TCPAddr:
		return Address{IP: unmapped(addr.AddrPort())}
	case *net.UDPAddr:
		return Address{IP: unmapped(addr.AddrPort())}
	case *net.UnixAddr:
		return Address{Pipe: addr.Name}
	}
	return Address{Pipe: addr.String()}
}

// unmapped shows an IPv4 address as one, though a socket may store it in the
// form of IPv6.
func unmapped(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
