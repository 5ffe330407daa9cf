package config

import (
	"net/netip"
	"time"
)

// Assignment is a set of endpoints by locality and priority.
type Assignment struct {
	ClusterName            string
	Localities             []LocalityEndpoints
	OverprovisioningFactor uint32        // percent, default 140
	EndpointStaleAfter     time.Duration // 0 means never
	WeightedPriorityHealth bool
	DropOverload           float64 // percent of requests to drop, 0 to 100
}

// LocalityEndpoints are the endpoints of one locality and priority.
type LocalityEndpoints struct {
	Locality  Locality
	Weight    uint32 // 0 means no traffic with locality weighting
	Priority  uint32 // 0 to 128, 0 is used first
	Metadata  Metadata
	Endpoints []Endpoint
}

// Endpoint is one member of a cluster.
type Endpoint struct {
	Address    AddressSpec
	Additional []AddressSpec // further addresses of the same host
	Hostname   string
	Health     HealthStatus
	Weight     uint32 // at least 1
	Canary     bool   // key "canary" of the load balancing metadata
	Metadata   Metadata

	HealthCheckAddress       AddressSpec // zero means Address
	HealthCheckHostname      string      // empty if not set
	DisableActiveHealthCheck bool
}

// HealthStatus is the health of an endpoint in its assignment.
type HealthStatus uint8

// The health states of an assignment.
const (
	HealthUnknown HealthStatus = iota // taken as healthy
	HealthHealthy
	HealthUnhealthy
	HealthDraining
	HealthTimeout
	HealthDegraded
)

// AddressKind selects the fields of an [AddressSpec] that are in use.
type AddressKind uint8

// The kinds of addresses.
const (
	NoAddress AddressKind = iota
	SocketAddress
	PipeAddress
	InternalAddress
)

// AddressSpec is an address as configured: an IP address or a host name with a
// port, the path of a unix socket, or the name of a listener inside the process.
// The zero AddressSpec is no address. Values are comparable.
type AddressSpec struct {
	Kind AddressKind

	Host      string     // SocketAddress: as written, an IP address or a name
	IP        netip.Addr // SocketAddress: valid if Host is a literal IP address
	Port      uint16
	NamedPort string // SocketAddress: port by name; Port is 0 then
	UDP       bool
	Resolver  string // SocketAddress: name of a resolver, empty: the default

	Path string // PipeAddress

	Listener string // InternalAddress
}

// IsZero reports whether a is no address.
func (a AddressSpec) IsZero() bool { return a.Kind == NoAddress }

// AddrPort returns the literal IP address with its port; ok is false if a is
// something else.
func (a AddressSpec) AddrPort() (ap netip.AddrPort, ok bool) {
	return netip.AddrPortFrom(a.IP, a.Port), a.Kind == SocketAddress && a.IP.IsValid()
}

// Bind is the local address of new upstream connections.
type Bind struct {
	Source     AddressSpec // zero means any
	Freebind   bool
	Options    []SocketOption
	Additional []AddressSpec
}

// SocketState is the time at which a socket option is set.
type SocketState uint8

// The states of a socket.
const (
	StatePrebind SocketState = iota
	StateBound
	StateListening
)

// SocketOption is an option passed to setsockopt.
type SocketOption struct {
	Level, Name int64
	IsInt       bool
	Int         int64
	Buf         string // used unless IsInt
	State       SocketState
}

// Keepalive holds the TCP keepalive settings; 0 means the system's default.
type Keepalive struct {
	Probes   uint32
	Time     time.Duration
	Interval time.Duration
}

// HappyEyeballs configures the order in which the addresses of a host are tried.
type HappyEyeballs struct {
	FirstFamilyV4    bool
	FirstFamilyV6    bool
	FirstFamilyCount uint32 // default 1
}
