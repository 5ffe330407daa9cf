package lb

import (
	"math/rand/v2"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// A Balancer picks hosts. Pick may be called from any number of goroutines at
// any time; Update calls must not overlap each other.
type Balancer interface {
	// Pick returns a host, or nil if there is none to be had.
	Pick(ctx *Context) *host.Host
	// Update changes what is balanced over: the set of each priority, indexed
	// by priority, and the first set of the cluster this process belongs to,
	// nil if that is not known.
	Update(sets []*host.Set, local *host.Set)
}

// Context is what one request asks of a pick. The zero value asks nothing.
type Context struct {
	// Hash places the request for the hash policies, if HasHash.
	Hash    uint64
	HasHash bool
	// Criteria select a subset; nil means none.
	Criteria *Criteria
	// Reject is asked about each candidate. As long as it says true and no more
	// than Retries further candidates were drawn, another one is drawn. The last
	// one is returned even if refused. Nil refuses nothing.
	Reject  func(*host.Host) bool
	Retries int
	// Loads replace the loads of the priorities; nil keeps them.
	Loads *Loads
	// Destination is where the connection was going, for [OriginalDst].
	Destination config.Address
	// DestinationHeader is the value of the header that overrides Destination.
	// HasDestinationHeader is set if the request has that header: an empty value is
	// then an invalid address like any other.
	DestinationHeader    string
	HasDestinationHeader bool
	// DestinationMetadata is the value of the metadata that overrides Destination
	// where the header does not, empty if there is none.
	DestinationMetadata string
	// DestinationOverride is what the proxy itself decided; it goes before all.
	DestinationOverride config.Address
}

// Config says how to balance. The zero value is a round robin with all
// defaults.
type Config struct {
	Policy config.Policy  // any but ClusterProvidedPolicy
	Subset *config.Subset // nil: no subsets
	Stats  Stats
	// Rand returns uniform random numbers and is called concurrently. Nil means
	// those of math/rand/v2.
	Rand func() uint64

	// PanicThreshold in percent; it is asked at every update. Nil means 50.
	PanicThreshold func() uint32
	// FailOnPanic finds no host in a priority that panics.
	FailOnPanic bool

	// LocalityWeighted spreads load over localities by their weights.
	LocalityWeighted bool
	// Zone is for zone-aware routing, which needs a local set.
	Zone ZoneConfig

	// Seed is where round robin starts and how many picks weighted schedules
	// skip, so that processes started together do not run in step.
	Seed uint64

	// ChoiceCount is the number of candidates of least request; 0 means 2.
	ChoiceCount int
	// ActiveRequestBias is asked when least request needs it; nil means 1.
	ActiveRequestBias func() float64

	// SlowStart is for round robin and least request.
	SlowStart SlowStart

	// Ring is for RingHash, MaglevTableSize (a prime; 0 means 65537) for Maglev.
	Ring            config.RingHash
	MaglevTableSize uint64
	// UseHostname hashes host names in place of addresses.
	UseHostname bool
	// HashBalanceFactor bounds the load of each host of the hash policies, in
	// percent of the average; 0 means no bound. ActiveRequests is the number of
	// requests that all hosts have, asked at picks; it must be set with a factor.
	HashBalanceFactor uint32
	ActiveRequests    func() uint64
	// MetadataNamespace holds hash keys and subset values of hosts, such as
	// "proxy.lb". AltNamespace is read where a host has none of the first.
	MetadataNamespace, AltNamespace string

	// Slots is the number of scheduler slots that get a weighted schedule of
	// their own. Negative means none: all share one, behind a lock, whose order
	// is deterministic. 0 means one for each slot there is now.
	Slots int
}

// ZoneConfig is for zone-aware routing.
type ZoneConfig struct {
	// Enabled is the percentage of picks to consider, asked at every pick. Nil
	// means 100.
	Enabled func() uint32
	// ForceLocal is the number of healthy hosts in the own zone from which on all
	// traffic stays there, however much that is for them. 0 means that only what
	// is their share stays.
	ForceLocal uint32
	// MinClusterSize is the number of healthy hosts below which there is no
	// zone-aware routing, asked at every update. Nil means 6.
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

	// SubsetsDuplicates is the number of hosts that are in no subset because theirs
	// have one host only.
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
	if c.ChoiceCount == 0 {
		c.ChoiceCount = 2
	}
	if c.Ring.MinimumSize == 0 {
		c.Ring.MinimumSize = 1024
	}
	if c.Ring.MaximumSize == 0 {
		c.Ring.MaximumSize = 8 << 20
	}
	if c.MaglevTableSize == 0 {
		c.MaglevTableSize = 65537
	}
}

// New returns a balancer. It finds no host before its first Update.
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
		return newHashed(c, func(e []entry) placer { return buildRing(e, c.Ring, &c.Stats) })
	case config.MaglevPolicy:
		return newHashed(c, func(e []entry) placer { return buildMaglev(e, c.MaglevTableSize, &c.Stats) })
	}
	return newWeighted(c)
}
