package lb

import (
	"cmp"
	"math/rand/v2"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// A Balancer picks hosts. Pick is safe for concurrent use; calls of Update must
// not overlap each other.
type Balancer interface {
	// Pick returns a host, or nil if none is available.
	Pick(ctx *Context) *host.Host
	// Update sets the hosts: the set of each priority, and the first set of the
	// cluster that this process belongs to, or nil if that is unknown.
	Update(sets []*host.Set, local *host.Set)
}

// Context holds the parameters of a pick. The zero value has none.
type Context struct {
	// Hash selects the host for the hash policies if HasHash is set.
	Hash    uint64
	HasHash bool
	// Criteria select a subset; nil means none.
	Criteria *Criteria
	// Reject reports whether to draw another candidate in place of the given one. At
	// most Retries further candidates are drawn, and the last one is returned even if
	// it is rejected. Nil rejects none.
	Reject  func(*host.Host) bool
	Retries int
	// Loads replace the loads of the priorities; nil keeps them.
	Loads *Loads
	// Destination is the original destination of the connection, for [OriginalDst].
	Destination config.Address
	// DestinationHeader is the value of the header that overrides Destination.
	// HasDestinationHeader is set if the request has that header: an empty value is
	// then an invalid address like any other.
	DestinationHeader    string
	HasDestinationHeader bool
	// DestinationMetadata is the metadata value that overrides Destination if the
	// header does not, empty if there is none.
	DestinationMetadata string
	// DestinationOverride has precedence over the other destinations.
	DestinationOverride config.Address
}

// Config configures a [Balancer]. The zero value is round robin with defaults.
type Config struct {
	Policy config.Policy  // any but ClusterProvidedPolicy
	Subset *config.Subset // nil: no subsets
	Stats  Stats
	// Rand returns uniform random numbers and is called concurrently. Nil means
	// math/rand/v2.
	Rand func() uint64

	// PanicThreshold returns the threshold in percent at each update. Nil means 50.
	PanicThreshold func() uint32
	// FailOnPanic makes picks fail in a priority in panic mode.
	FailOnPanic bool

	// LocalityWeighted spreads load over localities by their weights.
	LocalityWeighted bool
	// Zone is for zone-aware routing, which needs a local set.
	Zone ZoneConfig

	// Seed is the position at which round robin starts, and the number of picks that
	// weighted schedules skip, so that processes that start together do not run in
	// step.
	Seed uint64

	// ChoiceCount is the number of candidates of least request; 0 means 2.
	ChoiceCount int
	// ActiveRequestBias returns the bias of least request; nil means 1.
	ActiveRequestBias func() float64

	// SlowStart is for round robin and least request.
	SlowStart SlowStart

	// Done ends the construction of a ring when it is closed, which can take seconds;
	// then picks return nil. Nil means never.
	Done <-chan struct{}

	// Ring configures RingHash, MaglevTableSize (a prime; 0 means 65537) Maglev.
	Ring            config.RingHash
	MaglevTableSize uint64
	// UseHostname hashes host names instead of addresses.
	UseHostname bool
	// HashBalanceFactor bounds the load of each host of the hash policies, in percent
	// of the average; 0 means no bound. ActiveRequests returns the active requests of
	// all hosts; it must be set with a factor.
	HashBalanceFactor uint32
	ActiveRequests    func() uint64
	// MetadataNamespace holds hash keys and subset values of hosts, such as "proxy.lb".
	// AltNamespace is the fallback for hosts without it.
	MetadataNamespace, AltNamespace string

	// Slots is the number of scheduler slots with their own weighted schedule. A
	// negative number means none: all share one schedule, behind a lock and in
	// deterministic order. 0 means one for each current slot.
	Slots int
}

// ZoneConfig configures zone-aware routing.
type ZoneConfig struct {
	// Enabled returns the percentage of picks to route by zone. Nil means 100.
	Enabled func() uint32
	// ForceLocal is the number of healthy hosts in the local zone at which all
	// traffic stays local. 0 means that only the local zone's share does.
	ForceLocal uint32
	// MinClusterSize returns the number of healthy hosts below which there is no
	// zone-aware routing, at each update. Nil means 6.
	MinClusterSize func() uint64
}

// Stats are the statistics of a balancer. Members may be nil.
type Stats struct {
	HealthyPanic *store.Counter

	RecalculateZoneStructures *store.Counter
	LocalClusterNotOK         *store.Counter
	ZoneClusterTooSmall       *store.Counter
	ZoneNoCapacityLeft        *store.Counter
	ZoneRoutingAllDirectly    *store.Counter
	ZoneRoutingSampled        *store.Counter
	ZoneRoutingCrossZone      *store.Counter

	RingSize, RingMinHashes, RingMaxHashes *store.Gauge
	MaglevMinEntries, MaglevMaxEntries     *store.Gauge

	// SubsetsDuplicates is the number of hosts outside of all subsets because their
	// subsets have one host only.
	SubsetsActive, SubsetsDuplicates                       *store.Gauge
	SubsetsCreated, SubsetsRemoved                         *store.Counter
	SubsetsSelected, SubsetsFallback, SubsetsFallbackPanic *store.Counter
}

// complete fills in the defaults.
func (c *Config) complete() {
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	if c.PanicThreshold == nil {
		c.PanicThreshold = func() uint32 { return 50 }
	}
	if c.Zone.Enabled == nil {
		c.Zone.Enabled = func() uint32 { return 100 }
	}
	if c.Zone.MinClusterSize == nil {
		c.Zone.MinClusterSize = func() uint64 { return 6 }
	}
	c.ChoiceCount = cmp.Or(c.ChoiceCount, 2)
	c.Ring.MinimumSize = cmp.Or(c.Ring.MinimumSize, 1024)
	c.Ring.MaximumSize = cmp.Or(c.Ring.MaximumSize, 8<<20)
	c.MaglevTableSize = cmp.Or(c.MaglevTableSize, 65537)
}

// New returns a balancer without hosts.
func New(c Config) Balancer {
	c.complete()
	if c.Subset != nil && len(c.Subset.Selectors) > 0 {
		return newSubset(c)
	}
	return newPlain(c)
}

// newPlain returns a balancer of c.Policy without subsets.
func newPlain(c Config) Balancer {
	switch c.Policy {
	case config.RingHashPolicy:
		return newHashed(c, func(e []entry) placer { return buildRing(e, c.Ring, &c.Stats, c.Done) })
	case config.MaglevPolicy:
		return newHashed(c, func(e []entry) placer { return buildMaglev(e, c.MaglevTableSize, &c.Stats) })
	}
	return newWeighted(c)
}
