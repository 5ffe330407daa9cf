package discovery

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// ErrNoAddress is returned by a [Resolver] for a name that does not exist or
// has no address of the wanted family.
var ErrNoAddress = errors.New("discovery: no address")

// Query asks for the addresses of a name.
type Query struct {
	// Name is a host name; one that ends in a dot is taken as it is.
	Name   string
	Family config.LookupFamily
	// Servers are asked in this order in place of those of the system.
	Servers []netip.AddrPort
	// TCP asks over TCP only.
	TCP bool
	// NoSearch looks up the name alone, without the search list of the system.
	NoSearch bool
}

// Record is one address of a name.
type Record struct {
	Addr netip.Addr
	// TTL is how long the answer may be kept; 0 says nothing about that.
	TTL time.Duration
}

// A Resolver looks up names. It is called concurrently.
type Resolver interface {
	// Lookup returns the addresses in the order of the answer, at least one
	// unless there is an error. It must end soon after ctx is done, and should
	// give up in reasonable time by itself.
	Lookup(ctx context.Context, q Query) ([]Record, error)
}
