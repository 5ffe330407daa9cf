package admin

import (
	"iter"
	"net"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// Sources are what the endpoints read and change. All are optional; an endpoint
// whose source is missing says so. They are called by many goroutines at a
// time.
type Sources struct {
	// State names the state of the server: LIVE, DRAINING, PRE_INITIALIZING or
	// INITIALIZING. Default: always LIVE.
	State func() string
	// Info is what /server_info shows; its State is that of State.
	Info func() ServerInfo
	// HotRestartVersion is the version of the hot restart protocol. Default
	// "disabled".
	HotRestartVersion func() string
	// Memory is what /memory shows. Default: that of the process.
	Memory func() Memory
	// Contention reports how long goroutines waited for mutexes, and false if
	// that is not traced. Default: it is not.
	Contention func() (Contention, bool)
	// Quit begins the shutdown of the program. It is called after the answer
	// was sent and must not wait for the server to end.
	Quit func()

	Health       Health
	Listeners    func() []Listener
	Drains       Drains
	Certificates func() []certinfo.Context
	// Unready lists what the server waits for before it is live.
	Unready func() []Unready

	Runtime Runtime
	Loggers Loggers
	// ReopenLogs opens all log files anew.
	ReopenLogs func() error

	CPUProfiler  Profiler
	HeapProfiler Profiler

	Ingest Ingest

	Clusters Clusters
	// ConfigDump returns the sections of /config_dump, with endpoints if they
	// are asked for. The order does not matter.
	ConfigDump func(endpoints bool) []ConfigSection
}

// Clusters are the upstream clusters of a proxy, which /clusters shows.
type Clusters interface {
	// Version is that of the last update of the set of clusters, "" if there
	// was none.
	Version() string
	// All calls yield with each active cluster, in byte order of the names,
	// until it returns false. It is called while an answer is on its way to a
	// client, so it must not hold a lock. What yield is given is valid until it
	// returns, so that one variable can serve for all clusters.
	All(yield func(*Cluster) bool)
	// WithHostStats is All for the clusters that show the statistics of each of
	// their hosts among the stats. Each request for stats asks for them, so it
	// should not look at all others. A method that does nothing shows none.
	WithHostStats(yield func(*Cluster) bool)
}

// Cluster is one upstream cluster.
type Cluster struct {
	Name              string
	ObservabilityName string // the alternative name for statistics, or Name
	AddedViaAPI       bool   // false: it came with the static configuration
	EDSServiceName    string // "" unless its hosts come by another name
	Outlier           *OutlierRates
	Breakers          [2]BreakerLimits // of the default and of the high priority
	// Hosts calls yield with each host: in order, and those of a priority
	// before those of the next. The rules of [Clusters] hold. Nil: no hosts.
	Hosts func(yield func(*Host) bool)
}

// OutlierRates are what an outlier detector found in its last interval, in
// percent; -1 where there was too little to tell. Without a detector a cluster
// has none.
type OutlierRates struct{ Average, Threshold, LocalAverage, LocalThreshold float64 }

// BreakerLimits are the circuit breaker limits of a priority.
type BreakerLimits struct{ MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries uint64 }

// Host is one host of a cluster.
type Host struct {
	Address               netip.AddrPort
	Pipe                  string // path of a unix socket; Address is not valid then
	Hostname              string
	Health                HostHealth
	Weight                uint32
	Region, Zone, SubZone string
	Canary                bool
	Priority              uint32
	// SuccessRate and LocalOriginSuccessRate are in percent, -1 for unknown.
	SuccessRate, LocalOriginSuccessRate float64
	Stats                               []HostStat // ascending by name
}

// HostStat is a counter or a gauge of a host.
type HostStat struct {
	Name  string
	Gauge bool
	Value uint64
}

// HostHealth is what is known of the health of a host; 0 is healthy.
type HostHealth uint32

// The reasons for which a host is not plainly healthy. /clusters shows them in
// this order.
const (
	FailedActiveHC             HostHealth = 1 << iota // failed active health checks
	FailedOutlierCheck                                // ejected by the outlier detector
	FailedEDSHealth                                   // discovery says unhealthy
	DegradedActiveHC                                  // degraded by active health checks
	DegradedEDSHealth                                 // discovery says degraded
	PendingDynamicRemoval                             // gone from discovery, but healthy
	PendingActiveHC                                   // not checked yet
	ExcludedViaImmediateHCFail                        // asked to be excluded
	ActiveHCTimeout                                   // the last failed check was a timeout
	EDSStatusDraining                                 // discovery says draining
)

// healthy reports whether nothing speaks against the host.
func (h HostHealth) healthy() bool {
	return h&(FailedActiveHC|FailedOutlierCheck|FailedEDSHealth|EDSStatusDraining|DegradedActiveHC|DegradedEDSHealth) == 0
}

// ConfigSection is one message of /config_dump.
type ConfigSection struct {
	// Key is the place of the section: they come in byte order of their keys.
	// Usual are "bootstrap", "clusters", "endpoint", "listeners",
	// "route_scopes", "routes" and "secrets".
	Key string
	// Message is the message, such as a ClustersConfigDump. It is not changed.
	Message proto.Message
	// Lists are repeated fields of Message, by name, that come one by one
	// instead of in Message: with each element the name that name_regex is
	// compared with. They are read while the answer is on its way, so they must
	// not hold locks, and may be read twice. The elements belong to who reads.
	// What is in Message has the name of its field "name" or of the message
	// packed in it.
	Lists map[string]iter.Seq2[string, proto.Message]
}

// Health is the switch of the inbound health checks.
type Health interface {
	FailHealth()
	RestoreHealth()
}

// Drains stops listeners.
type Drains interface {
	// Drain stops all listeners, or those of inbound traffic, now.
	Drain(inboundOnly bool)
	// DrainGracefully starts a drain and returns at once. When it is over the
	// listeners stop, unless skipExit is set.
	DrainGracefully(inboundOnly, skipExit bool)
}

// Profiler writes a profile to a file.
type Profiler interface {
	// Start reports false if the profiler runs already.
	Start() (bool, error)
	// Stop reports false if the profiler does not run.
	Stop() (bool, error)
	// Path is the file.
	Path() string
}

// Runtime is the runtime values of the server.
type Runtime interface {
	Dump() RuntimeDump
	// Modify sets values of the admin layer, all in one step. An empty value
	// takes back what was set before. The text of the error is shown.
	Modify(values map[string]string) error
	// Bool returns a value as a boolean.
	Bool(key string, byDefault bool) bool
}

// RuntimeDump is the runtime values at one moment.
type RuntimeDump struct {
	Layers  []string
	Entries []RuntimeEntry // ascending by key
}

// RuntimeEntry is one runtime value.
type RuntimeEntry struct {
	Key    string
	Values []string // for each layer, "" where it has none
	Final  string
}

// Loggers are the loggers of the server. The texts of errors are shown; after
// an error no level has changed.
type Loggers interface {
	List() []LogLevel
	Set(name, level string) error
	SetAll(level string) error
	// SetPaths sets several levels: name:level or name=level, separated by
	// commas.
	SetPaths(paths string) error
}

// LogLevel is a logger and its level.
type LogLevel struct{ Name, Level string }

// Listener is a listener of the server.
type Listener struct {
	Name      string
	Addresses []net.Addr // where it really listens
}

// Unready is what a manager of init targets waits for.
type Unready struct {
	Component string   // "listener", "cluster" or what the program calls its own
	Name      string   // "init manager …"
	Targets   []string // "target …"
}

// Contention is how often and how long goroutines waited for mutexes.
type Contention struct{ Contentions, CurrentWaitCycles, LifetimeWaitCycles uint64 }

// Memory is the memory of the process in bytes.
type Memory struct {
	Allocated          uint64 // in use
	HeapSize           uint64 // reserved by the heap
	PageheapUnmapped   uint64 // given back, but still mapped
	PageheapFree       uint64 // mapped and free
	TotalThreadCache   uint64 // in caches of threads
	TotalPhysicalBytes uint64
}

// ServerInfo is what /server_info shows.
type ServerInfo struct {
	Version                string
	UptimeCurrentEpoch     time.Duration
	UptimeAllEpochs        time.Duration
	CommandLine            CommandLine
	Node                   *Node
	HotRestartInitializing bool
}

// CommandLine is the command line options in effect.
type CommandLine struct {
	BaseID                     uint64
	Concurrency                uint32
	ConfigPath                 string
	ConfigYAML                 string
	AllowUnknownStaticFields   bool
	AdminAddressPath           string
	LocalAddressIPVersion      string // v4 or v6
	LogLevel                   string
	ComponentLogLevel          string
	LogFormat                  string
	LogPath                    string
	HotRestartVersion          bool
	ServiceCluster             string
	ServiceNode                string
	ServiceZone                string
	FileFlushInterval          time.Duration
	DrainTime                  time.Duration
	ParentShutdownTime         time.Duration
	Mode                       string // Serve, Validate or InitOnly
	DisableHotRestart          bool
	EnableMutexTracing         bool
	RestartEpoch               uint32
	CPUSetThreads              bool
	RejectUnknownDynamicFields bool
	LogFormatEscaped           bool
	DisabledExtensions         []string
	IgnoreUnknownDynamicFields bool
	UseDynamicBaseID           bool
	BaseIDPath                 string
	DrainStrategy              string // Gradual or Immediate
	EnableFineGrainLogging     bool
	SocketPath                 string
	SocketMode                 uint32
	EnableCoreDump             bool
	StatsTags                  []string // name:value
	SkipHotRestartOnNoParent   bool
	SkipHotRestartParentStats  bool
	SkipDeprecatedLogs         bool
	FileFlushMinSize           uint32
	LogStacktraceSingleEntry   bool
}

// Node tells who the server is.
type Node struct {
	ID, Cluster                   string
	Metadata                      map[string]any // as of encoding/json; nil: none
	Region, Zone, SubZone         string
	UserAgentName                 string
	MajorNumber, MinorNumber, Fix uint32 // of the build
	Extensions                    []string
	ClientFeatures                []string
	ListeningAddresses            []string
}
