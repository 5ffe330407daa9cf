package config

import (
	"net/netip"
	"strings"
)

// Address is an address to connect to or to listen on: an IP address with a port,
// or the path of a unix socket. The zero Address is no address. Addresses are
// comparable.
type Address struct {
	IP   netip.AddrPort
	Pipe string
}

// IsZero reports whether a is no address.
func (a Address) IsZero() bool { return a == Address{} }

// String returns ip:port, [ip]:port for IPv6, or the path of the pipe.
func (a Address) String() string {
	if a.Pipe != "" || !a.IP.IsValid() {
		return a.Pipe
	}
	return a.IP.String()
}

// Network returns the network to dial the address on: "tcp" or "unix".
func (a Address) Network() string {
	if a.Pipe != "" {
		return "unix"
	}
	return "tcp"
}

// WithPort returns a with another port. A pipe stays as it is.
func (a Address) WithPort(port uint16) Address {
	if a.Pipe == "" {
		a.IP = netip.AddrPortFrom(a.IP.Addr(), port)
	}
	return a
}

// Locality is the location of an endpoint, a host or this process. Localities are
// comparable.
type Locality struct {
	Region, Zone, SubZone string
}

// Compare orders localities by region, then zone, then sub-zone.
func (l Locality) Compare(m Locality) int {
	if c := strings.Compare(l.Region, m.Region); c != 0 {
		return c
	}
	if c := strings.Compare(l.Zone, m.Zone); c != 0 {
		return c
	}
	return strings.Compare(l.SubZone, m.SubZone)
}
