package config

import "time"

// LoadBalancing configures how a host is picked.
type LoadBalancing struct {
	Policy Policy

	RingHash     RingHash     // in effect when Policy is RingHashPolicy
	Maglev       Maglev       // in effect when Policy is MaglevPolicy
	LeastRequest LeastRequest // in effect when Policy is LeastRequestPolicy
	OriginalDst  OriginalDstOptions
	SlowStart    *SlowStart // for round robin and least request; nil means none
	Subset       *Subset    // nil without a usable selector

	PanicThreshold            uint32 // percentage of healthy hosts below which all hosts are used; 0 means never
	ZoneAware                 *ZoneAware
	LocalityWeighted          bool          // ZoneAware is nil then
	UpdateMergeWindow         time.Duration // 0 disables merging
	IgnoreNewHostsUntilHC     bool
	CloseOnHostSetChange      bool
	UseHostnameForHashing     bool
	HashBalanceFactor         uint32 // percent; 0 means unbounded load
	OverrideHostStatus        []HealthStatus
	OverrideHostStatusDefined bool // OverrideHostStatus is set, possibly empty
}

// Policy is the load balancing policy.
type Policy uint8

// The policies.
const (
	RoundRobinPolicy Policy = iota
	LeastRequestPolicy
	RingHashPolicy
	RandomPolicy
	MaglevPolicy
	ClusterProvidedPolicy
)

// HashFunction is the hash of ring hash balancing.
type HashFunction uint8

// The hash functions.
const (
	XXHash HashFunction = iota
	MurmurHash2
)

// RingHash holds the options of ring hash balancing.
type RingHash struct {
	MinimumSize, MaximumSize uint64 // at least 1; defaults 1024 and 8388608
	Function                 HashFunction
}

// Maglev holds the options of Maglev balancing.
type Maglev struct {
	TableSize uint64 // a prime, default 65537
}

// LeastRequest holds the options of least request balancing.
type LeastRequest struct {
	ChoiceCount uint32        // default 2
	Bias        RuntimeDouble // default 1.0
}

// SlowStart configures how traffic to new hosts grows.
type SlowStart struct {
	Window           time.Duration
	Aggression       RuntimeDouble // default 1.0
	MinWeightPercent float64       // default 10
}

// OriginalDstOptions configure the source of the original destination.
type OriginalDstOptions struct {
	UseHTTPHeader bool
	HeaderName    string // empty: x-<product>-original-dst-host
	PortOverride  uint16 // 0: that of the destination
	MetadataKey   string
	MetadataPath  []string
}

// ZoneAware holds the options of zone aware routing.
type ZoneAware struct {
	RoutingEnabled     uint32 // percent, default 100
	MinClusterSize     uint64 // default 6
	FailTrafficOnPanic bool
	ForceLocal         *ForceLocal
}

// ForceLocal keeps traffic in the local zone while it has enough hosts.
type ForceLocal struct{ MinSize uint32 }

// Fallback selects the hosts for requests without a matching subset.
type Fallback uint8

// The fallback policies. The first and the last are for selectors only.
const (
	FallbackNotDefined Fallback = iota // the top-level policy is used
	FallbackNone
	FallbackAnyEndpoint
	FallbackDefaultSubset
	FallbackKeysSubset
)

// Subset holds the options of subset balancing.
type Subset struct {
	Fallback            Fallback // never FallbackNotDefined or FallbackKeysSubset
	DefaultSubset       map[string]any
	Selectors           []SubsetSelector // all with at least one key
	LocalityWeightAware bool
	ScaleLocalityWeight bool
	PanicModeAny        bool
	ListAsAny           bool
	MetadataFallback    bool // try the list of criteria in the key fallback_list
}

// SubsetSelector makes one subset for each combination of the values of its
// keys.
type SubsetSelector struct {
	Keys                []string // sorted, unique
	Fallback            Fallback
	FallbackKeys        []string // sorted, unique; only with FallbackKeysSubset
	SingleHostPerSubset bool     // each subset is its first host; requires a single key
}
