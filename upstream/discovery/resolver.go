package discovery

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// ErrNoAddress is returned by a [Resolver] if a name does not exist or has no
// address of the requested family.
var ErrNoAddress = errors.New("discovery: no address")

// Query asks for the addresses of a name.
type Query struct {
	// Name is a host name. A name with a trailing dot is absolute.
	Name   string
	Family config.LookupFamily
	// Servers replace the servers of the system, in order of preference.
	Servers []netip.AddrPort
	// TCP asks over TCP only.
	TCP bool
	// NoSearch disables the search list.
	NoSearch bool
}

// Record is one address of a name.
type Record struct {
	Addr netip.Addr
	// TTL is how long the answer can be cached; 0 means unknown.
	TTL time.Duration
}

// A Resolver looks up names. It must be safe for concurrent use.
type Resolver interface {
	// Lookup returns the addresses in the order of the answer, at least one unless
	// there is an error. It must return soon after ctx is done, and should time out by
	// itself.
	Lookup(ctx context.Context, q Query) ([]Record, error)
}
