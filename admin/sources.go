package admin

import (
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/upstream/status"
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
	Listeners    func() []listeners.Listener
	Drains       Drains
	Certificates func() []certinfo.Context
	// Unready lists the targets that the server waits for before it is live.
	Unready func() []lifecycle.Unready

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
	// Statuses calls yield with each active cluster, in byte order of the names,
	// until it returns false. It is called while a response is being sent, so it
	// must not hold a lock. The value is valid until yield returns, so one variable
	// can serve all clusters, and one all hosts.
	Statuses(yield func(*status.Cluster) bool)
	// Tracked is like Statuses for the clusters that show the statistics of each of
	// their hosts among the stats. It is called for each request for stats, so it
	// should not visit other clusters. A method that does nothing shows none.
	Tracked(yield func(*status.Cluster) bool)
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
	// Elements in Message are named by their field "name" or by the message
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
	// Drain stops all listeners, or only inbound ones, now.
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

// Runtime holds the runtime values of the server.
type Runtime interface {
	Snapshot() *layers.Snapshot
	// Modify sets values of the admin layer, all in one step. An empty value
	// removes an earlier override. The client sees the text of the error.
	Modify(values map[string]string) error
}

// Loggers holds the loggers of the server. Clients see the texts of errors;
// after an error no level has changed.
type Loggers interface {
	List() []logctl.LoggerLevel
	Set(name, level string) error
	SetAll(level string) error
	// SetPaths sets several levels: name:level or name=level, separated by
	// commas.
	SetPaths(paths string) error
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

// Node identifies the server.
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
