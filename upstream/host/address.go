package host

import (
	"net/netip"
	"strings"
)

// Address is where a host listens: an IP address with a port, or the path of
// a unix socket. Addresses are comparable; the zero Address is none.
type Address struct {
	IP   netip.AddrPort
	Pipe string
}

// IsZero tells whether a is no address.
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

// Locality is where a host stands. Localities are comparable.
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

// Metadata is the metadata of a host by namespace. Values are those of JSON:
// nil, bool, float64, string, []any and map[string]any. Metadata is not
// changed once a host has it.
type Metadata map[string]map[string]any
