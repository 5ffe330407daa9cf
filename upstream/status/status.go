// Package status holds plain values that describe upstream clusters and their
// hosts, as /clusters and the statistics per endpoint show them.
//
// The values are snapshots without locks. Producers may reuse one variable for all
// clusters and one for all hosts of a walk, so a reader must copy values to keep them.
package status

import (
	"net/netip"
	"time"
)

// Cluster is the status of one upstream cluster.
type Cluster struct {
	Name              string
	ObservabilityName string        // the alternative name for statistics, or Name
	AddedViaAPI       bool          // false for clusters of the static configuration
	Version           string        // of the configuration that added it by API; empty if static
	EDSServiceName    string        // empty unless EDS knows the cluster by another name
	Outlier           *OutlierRates // nil without an outlier detector
	Breakers          [2]BreakerLimits
	InUse             [2]BreakerUse
	// Hosts calls yield with each host in order, priority by priority, until yield
	// returns false. The host is valid until yield returns. Nil means no hosts.
	Hosts func(yield func(*Host) bool)
}

// OutlierRates are the success rates, in percent, that an outlier detector computed
// in its last interval. A rate is -1 if there was too little traffic.
type OutlierRates struct{ Average, Threshold, LocalAverage, LocalThreshold float64 }

// BreakerLimits are the circuit breaker limits of one request priority.
type BreakerLimits struct{ MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries uint64 }

// BreakerUse is how much of the limits of one request priority is in use.
type BreakerUse struct{ Connections, PendingRequests, Requests, Retries uint64 }

// Host is the status of one host of a cluster.
type Host struct {
	Address               netip.AddrPort
	Pipe                  string // path of a unix socket, if Address is not valid
	Hostname              string
	Health                Flags
	Weight                uint32
	Region, Zone, SubZone string
	Canary                bool
	Priority              uint32
	// SuccessRate and LocalOriginSuccessRate are in percent, -1 if unknown.
	SuccessRate, LocalOriginSuccessRate float64
	Check                               *Check // the last active health check; nil if there was none
	// Stats are in ascending order of their names. Stats that repeat a name are added
	// up where they are shown as series, and "healthy" is left out there.
	Stats []HostStat
}

// Check is a completed active health check of a host.
type Check struct {
	Time   time.Time
	Result string // in words: passed, degraded, status 503, …
	Failed bool
	Since  time.Time // the first check of those in a row that failed, or passed
}

// HostStat is a counter or a gauge of a host.
type HostStat struct {
	Name  string
	Gauge bool
	Value uint64
}
