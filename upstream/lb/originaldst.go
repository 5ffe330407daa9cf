package lb

import (
	"hash/maphash"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// OriginalDst balances to the original destination of each connection. Hosts are
// created on demand and live between one and two intervals after their last use: call
// [OriginalDst.Sweep] once per interval.
type OriginalDst struct {
	c      OriginalDstConfig
	seed   maphash.Seed
	shards [256]originalShard
	made   atomic.Int64 // hosts there are, and those about to be made
}

// OriginalDstConfig configures an [OriginalDst].
type OriginalDstConfig struct {
	// UseHeader lets Context.DestinationHeader override the destination.
	UseHeader bool
	// Port replaces the port of the destination if it is not 0.
	Port uint16
	// ClusterName is the prefix of host names.
	ClusterName string
	// Limit bounds the number of hosts, which clients decide; 0 means no limit.
	Limit int
	// Invalid counts headers and metadata that are not an address, Overflow picks
	// without a host because of Limit. They can be nil.
	Invalid, Overflow *store.Counter
	// Added is called with each new host before it is picked, possibly concurrently,
	// unless it is nil.
	Added func(*host.Host)
}

type originalShard struct {
	hosts atomic.Pointer[map[netip.AddrPort]*originalHost] // replaced, never changed
	mu    sync.Mutex                                       // held while hosts are replaced
}

type originalHost struct {
	host  *host.Host
	used  atomic.Bool
	added atomic.Bool // Added has returned; Sweep skips the host before that
}

// NewOriginalDst returns a balancer without hosts.
func NewOriginalDst(c OriginalDstConfig) *OriginalDst {
	if c.Added == nil {
		c.Added = func(*host.Host) {}
	}
	b := &OriginalDst{c: c, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].hosts.Store(&map[netip.AddrPort]*originalHost{})
	}
	return b
}

// Update implements [Balancer]; there is nothing to balance over.
func (b *OriginalDst) Update([]*host.Set, *host.Set) {}

// Pick implements [Balancer].
func (b *OriginalDst) Pick(ctx *Context) *host.Host {
	if ctx == nil {
		return nil
	}
	to := ctx.DestinationOverride.IP
	if !to.IsValid() && b.c.UseHeader && (ctx.HasDestinationHeader || ctx.DestinationHeader != "") {
		to = b.parse(ctx.DestinationHeader)
	}
	if !to.IsValid() && ctx.DestinationMetadata != "" {
		to = b.parse(ctx.DestinationMetadata)
	}
	if !to.IsValid() {
		to = ctx.Destination.IP
	}
	if !to.IsValid() {
		return nil
	}
	if b.c.Port != 0 {
		to = netip.AddrPortFrom(to.Addr(), b.c.Port)
	}
	s := &b.shards[maphash.Comparable(b.seed, to)%uint64(len(b.shards))]
	if o := (*s.hosts.Load())[to]; o != nil {
		if !o.used.Load() {
			o.used.Store(true)
		}
		return o.host
	}
	return b.create(s, to)
}

// maxZone is the longest name of a network interface on any system, in bytes. A host
// keeps the text of its address.
const maxZone = 15

// parse parses an address, and counts an invalid one.
func (b *OriginalDst) parse(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil || len(a.Addr().Zone()) > maxZone {
		b.c.Invalid.Inc()
		return netip.AddrPort{}
	}
	return a
}

// create creates a host. It returns nil if there are too many.
func (b *OriginalDst) create(s *originalShard, to netip.AddrPort) *host.Host {
	s.mu.Lock()
	old := *s.hosts.Load()
	if o := old[to]; o != nil {
		s.mu.Unlock()
		o.used.Store(true)
		return o.host
	}
	if n := b.made.Add(1); b.c.Limit > 0 && n > int64(b.c.Limit) {
		b.made.Add(-1)
		s.mu.Unlock()
		b.c.Overflow.Inc()
		return nil
	}
	a := config.Address{IP: to}
	o := &originalHost{host: host.New(host.Spec{Address: a, Hostname: b.c.ClusterName + a.String()})}
	o.used.Store(true)
	hosts := make(map[netip.AddrPort]*originalHost, len(old)+1)
	maps.Copy(hosts, old)
	hosts[to] = o
	s.hosts.Store(&hosts)
	s.mu.Unlock()
	b.c.Added(o.host)
	o.added.Store(true)
	return o.host
}

// Sweep removes and returns the hosts that were not used since the last Sweep.
func (b *OriginalDst) Sweep() []*host.Host {
	var removed []*host.Host
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		keep := make(map[netip.AddrPort]*originalHost)
		for a, o := range *s.hosts.Load() {
			if !o.added.Load() || o.used.Swap(false) {
				keep[a] = o
			} else {
				removed = append(removed, o.host)
			}
		}
		s.hosts.Store(&keep)
		s.mu.Unlock()
	}
	b.made.Add(-int64(len(removed)))
	return removed
}
