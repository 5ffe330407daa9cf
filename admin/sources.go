package admin

import (
	"io"
	"time"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Sources are the data that the endpoints read and change. All are optional; an
// endpoint whose source is missing says so. Sources must be safe for concurrent
// use.
type Sources struct {
	// State returns the state of the server: LIVE, DRAINING, PRE_INITIALIZING or
	// INITIALIZING. Default: always LIVE.
	State func() string
	// Info returns the contents of /server_info, with the State filled in by State.
	Info func() ServerInfo
	// HotRestartVersion returns the version of the hot restart protocol. Default
	// "disabled".
	HotRestartVersion func() string
	// Memory returns the contents of /memory. Default: the memory of the process.
	Memory func() Memory
	// Contention returns the wait times for mutexes, and false if they are not
	// traced. Default: not traced.
	Contention func() (Contention, bool)
	// FlushTime returns how long the last flush of the stats took, 0 before the first.
	FlushTime func() time.Duration
	// Quit starts the shutdown of the program. It is called after the response
	// has been sent, and must not wait for the server to stop.
	Quit func()

	Health       Health
	Listeners    func() []listeners.Listener
	Drains       Drains
	Certificates func() []certinfo.Context
	// Unready returns the pending init targets.
	Unready func() []lifecycle.Unready

	Runtime Runtime
	Loggers Loggers
	// ReopenLogs reopens all log files.
	ReopenLogs func() error

	CPUProfiler  Profiler
	HeapProfiler Profiler

	Ingest Ingest
	// ReloadMapping reloads the mapping rules of Ingest. If nil, there is no endpoint
	// for that.
	ReloadMapping func() error
	// Sinks returns the states of the sinks of flushed stats. If nil, there is no
	// endpoint for them.
	Sinks func() []flush.SinkStatus

	// StatsStream is the source of /stats/stream. If nil, there is no such endpoint.
	StatsStream *deltastream.Stream
	// History is the source of /stats/history and of the parameters at, since and
	// rate of /stats. If nil, there are none.
	History *history.History

	Clusters Clusters
	// ConfigDump is the source of /config_dump. If nil, a dump is {}.
	ConfigDump ConfigDump
}

// withDefaults returns the sources that the endpoints read with a default in place of the
// missing ones, if they have one.
func (src Sources) withDefaults() Sources {
	if src.State == nil {
		src.State = func() string { return stateLive }
	}
	if src.HotRestartVersion == nil {
		src.HotRestartVersion = func() string { return "disabled" }
	}
	if src.Memory == nil {
		src.Memory = ProcessMemory
	}
	if src.Contention == nil {
		src.Contention = func() (c Contention, traced bool) { return c, false }
	}
	if src.Listeners == nil {
		src.Listeners = func() []listeners.Listener { return nil }
	}
	if src.Certificates == nil {
		src.Certificates = func() []certinfo.Context { return nil }
	}
	if src.Clusters == nil {
		src.Clusters = noClusters{}
	}
	return src
}

// noClusters is a set of clusters that is always empty.
type noClusters struct{}

func (noClusters) Version() string                     { return "static" }
func (noClusters) Statuses(func(*status.Cluster) bool) {}
func (noClusters) Tracked(func(*status.Cluster) bool)  {}

// Clusters is the source of /clusters.
type Clusters interface {
	// Version returns the version of the last update of the set of clusters, "" before
	// the first one, and "static" if nothing updates the set.
	Version() string
	// Statuses calls yield with each active cluster, in byte order of the names,
	// until it returns false. It must not hold a lock, since the response is being
	// sent meanwhile. The value is valid until yield returns, so an implementation
	// can reuse one variable for all clusters and one for all hosts.
	Statuses(yield func(*status.Cluster) bool)
	// Tracked is like Statuses, but visits only clusters that show per-host
	// statistics among the stats. It is called for each request for stats. A method
	// that does nothing shows none.
	Tracked(yield func(*status.Cluster) bool)
}

// ConfigDump is the source of /config_dump. The sections are messages of Envoy, so a
// program has them only if it links those: server/envoyapi.Add sets the source of a
// server, and package server/configdump has one for any protobuf messages.
type ConfigDump interface {
	// Write writes a dump as JSON, or returns a [dump.Error] before it writes
	// anything. It redacts secrets.
	Write(w io.Writer, q dump.Query) error
	// Sections returns the lists of resources of each section, in order of the keys.
	Sections(endpoints bool) []dump.Section
}

// Health switches the inbound health checks.
type Health interface {
	FailHealth()
	RestoreHealth()
	HealthFailed() bool
}

// Drains stops listeners.
type Drains interface {
	// Drain stops all listeners, or only inbound ones, immediately.
	Drain(inboundOnly bool)
	// DrainGracefully starts a drain and returns immediately. When it ends, the
	// listeners stop, unless skipExit is set.
	DrainGracefully(inboundOnly, skipExit bool)
}

// Profiler writes a profile to a file.
type Profiler interface {
	// Start reports false if the profiler is already running.
	Start() (bool, error)
	// Stop reports false if the profiler is not running.
	Stop() (bool, error)
	// Path returns the output file.
	Path() string
}

// Runtime holds the runtime values of the server.
type Runtime interface {
	Snapshot() *layers.Snapshot
	// Modify atomically sets values of the admin layer. An empty value removes an
	// earlier override. The error text is sent to the client.
	Modify(values map[string]string) error
	// Preview returns the snapshot that Modify would make, or its error.
	Preview(values map[string]string) (*layers.Snapshot, error)
}

// Loggers holds the loggers of the server. Error texts are sent to clients; after an
// error no level has changed.
type Loggers interface {
	List() []logctl.LoggerLevel
	Set(name, level string) error
	SetAll(level string) error
	// SetPaths sets several levels from a comma-separated list of name:level or
	// name=level.
	SetPaths(paths string) error
	// Clone returns a copy whose changes have no effect.
	Clone() *logctl.Registry
	// Settings returns all levels by name, and Restore sets some of these. See
	// [logctl.Registry.Settings].
	Settings() map[string]string
	Restore(map[string]string) error
}

// Contention describes how often and how long goroutines waited for mutexes.
type Contention struct {
	Contentions        uint64 `json:"num_contentions"`
	CurrentWaitCycles  uint64 `json:"current_wait_cycles"`
	LifetimeWaitCycles uint64 `json:"lifetime_wait_cycles"`
}

// Memory is the memory of the process in bytes.
type Memory struct {
	Allocated          uint64 `json:"allocated"`          // in use
	HeapSize           uint64 `json:"heap_size"`          // reserved by the heap
	PageheapUnmapped   uint64 `json:"pageheap_unmapped"`  // given back, but still mapped
	PageheapFree       uint64 `json:"pageheap_free"`      // mapped and free
	TotalThreadCache   uint64 `json:"total_thread_cache"` // in caches of threads
	TotalPhysicalBytes uint64 `json:"total_physical_bytes"`
}

// ServerInfo holds the contents of /server_info.
type ServerInfo struct {
	Version                string
	UptimeCurrentEpoch     time.Duration
	UptimeAllEpochs        time.Duration
	CommandLine            CommandLine
	DefaultCommandLine     CommandLine // what CommandLine is without arguments; not in /server_info
	Node                   *Node
	HotRestartInitializing bool
	// PortableCounters is set if counters use atomics only, instead of words for each
	// processor. It is shown only if it is set.
	PortableCounters bool
}

// CommandLine holds the effective command line options.
type CommandLine struct {
	BaseID                     uint64        `json:"base_id"`
	Concurrency                uint32        `json:"concurrency"`
	ConfigPath                 string        `json:"config_path"`
	ConfigYAML                 string        `json:"config_yaml"`
	AllowUnknownStaticFields   bool          `json:"allow_unknown_static_fields"`
	AdminAddressPath           string        `json:"admin_address_path"`
	LocalAddressIPVersion      string        `json:"local_address_ip_version"` // v4 or v6
	LogLevel                   string        `json:"log_level"`
	ComponentLogLevel          string        `json:"component_log_level"`
	LogFormat                  string        `json:"log_format"`
	LogPath                    string        `json:"log_path"`
	HotRestartVersion          bool          `json:"hot_restart_version"`
	ServiceCluster             string        `json:"service_cluster"`
	ServiceNode                string        `json:"service_node"`
	ServiceZone                string        `json:"service_zone"`
	FileFlushInterval          time.Duration `json:"file_flush_interval"`
	DrainTime                  time.Duration `json:"drain_time"`
	ParentShutdownTime         time.Duration `json:"parent_shutdown_time"`
	Mode                       string        `json:"mode"` // Serve, Validate or InitOnly
	DisableHotRestart          bool          `json:"disable_hot_restart"`
	EnableMutexTracing         bool          `json:"enable_mutex_tracing"`
	RestartEpoch               uint32        `json:"restart_epoch"`
	CPUSetThreads              bool          `json:"cpuset_threads"`
	RejectUnknownDynamicFields bool          `json:"reject_unknown_dynamic_fields"`
	LogFormatEscaped           bool          `json:"log_format_escaped"`
	DisabledExtensions         []string      `json:"disabled_extensions"`
	IgnoreUnknownDynamicFields bool          `json:"ignore_unknown_dynamic_fields"`
	UseDynamicBaseID           bool          `json:"use_dynamic_base_id"`
	BaseIDPath                 string        `json:"base_id_path"`
	DrainStrategy              string        `json:"drain_strategy"` // Gradual or Immediate
	EnableFineGrainLogging     bool          `json:"enable_fine_grain_logging"`
	SocketPath                 string        `json:"socket_path"`
	SocketMode                 uint32        `json:"socket_mode"`
	EnableCoreDump             bool          `json:"enable_core_dump"`
	StatsTags                  []string      `json:"stats_tag"` // name:value
	SkipHotRestartOnNoParent   bool          `json:"skip_hot_restart_on_no_parent"`
	SkipHotRestartParentStats  bool          `json:"skip_hot_restart_parent_stats"`
	SkipDeprecatedLogs         bool          `json:"skip_deprecated_logs"`
	FileFlushMinSize           uint32        `json:"file_flush_min_size"`
	LogStacktraceSingleEntry   bool          `json:"log_stacktrace_single_entry"`
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
