package config

import "time"

// Cluster is the validated configuration of one upstream cluster with all defaults
// filled in. Percentages are rounded down where Envoy rounds them, and timers
// between 0 and one millisecond are one millisecond.
//
// A Cluster shares no memory with the message it was decoded from. It is immutable,
// so any number of goroutines can read it.
type Cluster struct {
	Form     Form   // the message form it was written in
	Name     string // never empty
	StatName string // the alternative name if given, else Name; ":" and control characters are replaced by "_"
	// AltStatName is the alternative name as configured, empty if there is none. It
	// is shown; statistics use StatName.
	AltStatName string

	Type       DiscoveryType
	CustomType *CustomType // set only when Type is CustomDiscovery
	EDS        *EDS        // set only when Type is EDS

	Assignment *Assignment // nil without static endpoints

	ConnectTimeout            time.Duration // > 0
	BufferLimitBytes          uint32        // soft limit of the read and write buffers of a connection
	BufferHighWatermarkWait   time.Duration // 0 means no limit
	PerDownstreamConnection   bool          // one connection pool per downstream connection
	WaitForWarmOnInit         bool          // default true
	CloseOnHealthFailure      bool          // close all connections of a host that turns unhealthy
	IgnoreHealthOnHostRemoval bool          // remove hosts at once, however healthy they are
	CleanupInterval           time.Duration // ORIGINAL_DST: minimum lifetime of an unused host

	LB              LoadBalancing
	HTTP            HTTPOptions
	DNS             DNS
	HealthChecks    []HealthCheck // at most one
	Outlier         *Outlier      // nil disables outlier detection
	CircuitBreakers CircuitBreakers
	Sockets         Sockets
	Bind            *Bind      // nil if the cluster does not bind
	Keepalive       *Keepalive // nil disables keepalive
	Preconnect      *Preconnect

	SetLocalInterfaceName bool           // publish the name of the local interface of a connection
	HappyEyeballs         *HappyEyeballs // nil means the dialer's defaults

	Track    Track
	Metadata Metadata
	Filters  []Filter

	// ExtensionOptions are the typed options of extensions by filter name,
	// UntypedExtensionOptions the free-form options of the v2 form. They are never
	// both set.
	ExtensionOptions        map[string]Any
	UntypedExtensionOptions map[string]map[string]any

	// Unread lists the configured fields that have no counterpart here, so that
	// callers can reject them.
	Unread []string
}

// Form is a message form.
type Form uint8

// The message forms.
const (
	FormUnknown Form = iota // detected by the decoder
	FormV3
	FormV2
)

// Any is the message of an extension as configured.
type Any struct {
	TypeURL string // empty if absent
	Value   string // wire bytes
}

// String returns the type URL; the value may hold secrets.
func (a Any) String() string { return a.TypeURL }

// Extension is a named extension with its configuration.
type Extension struct {
	Name   string
	Config Any
}

// Metadata is a tree of free-form values by namespace. Values have the types of
// JSON: nil, bool, float64, string, []any and map[string]any.
//
// In the metadata of endpoints and localities, the namespaces that the cluster reads
// always have the product's names: "<product>.lb" and
// "<product>.transport_socket_match". They also hold the values of "envoy.lb",
// "envoy.transport_socket_match" and "<product>.transport_socket".
type Metadata map[string]map[string]any

// DiscoveryType is the source of a cluster's hosts.
type DiscoveryType uint8

// The discovery types.
const (
	Static DiscoveryType = iota
	StrictDNS
	LogicalDNS
	EDSDiscovery
	OriginalDst
	CustomDiscovery // see Cluster.CustomType
)

// CustomType is a cluster type of an extension. Names of built-in types such as
// "envoy.cluster.dns" are not custom types.
type CustomType struct {
	Name   string
	Config Any
}

// EDS configures the source of assignments of an EDS cluster.
type EDS struct {
	ServiceName string // defaults to the cluster name
	Source      ConfigSource
}

// ConfigSourceKind is a way to fetch resources.
type ConfigSourceKind uint8

// The kinds of config sources.
const (
	SourceUnset ConfigSourceKind = iota
	SourcePath                   // a file
	SourceAPI                    // an API server
	SourceADS                    // the aggregated stream
	SourceSelf                   // the server that sent this configuration
)

// ConfigSource is the source of resources.
type ConfigSource struct {
	Kind                ConfigSourceKind
	Path                string // SourcePath
	WatchedDirectory    string // SourcePath: directory whose moves trigger a reload; defaults to that of the file
	API                 *APISource
	InitialFetchTimeout time.Duration // default 15s; 0 means no limit
}

// APIType is the protocol spoken with an API server.
type APIType uint8

// The API types.
const (
	APIDeprecatedREST APIType = iota
	APIREST
	APIGRPC
	APIDeltaGRPC
	APIAggregatedGRPC
	APIAggregatedDeltaGRPC
)

// APISource is an API server that delivers resources.
type APISource struct {
	Type                      APIType
	GRPC                      []GRPCService
	RateLimit                 *RateLimit
	SetNodeOnFirstMessageOnly bool
}

// GRPCService is one gRPC target.
type GRPCService struct {
	ClusterName string // target by cluster
	Authority   string
	TargetURI   string // target by URI, for the other gRPC client

	Metadata        []HeaderToAdd // sent with each call; values may be secret
	MaxReceiveBytes uint32        // of one message; 0 if not set
	RetryBase       time.Duration // first delay after a failed stream; 0 if not set
	RetryMax        time.Duration // largest delay; 0 if not set
	// Credentials reports whether a target URI has channel, call or other
	// credentials.
	Credentials bool
}

// RateLimit bounds requests to an API server.
type RateLimit struct {
	MaxTokens uint32  // default 100
	FillRate  float64 // tokens per second, default 10
}

// Filter is a network filter of upstream connections.
type Filter struct {
	Name   string
	Config Any
}

// Track selects optional statistics of the cluster.
type Track struct {
	TimeoutBudgets       bool
	RequestResponseSizes bool
	PerEndpointStats     bool
}

// Preconnect configures connections that are opened ahead of need.
type Preconnect struct {
	PerUpstreamRatio float64 // 1 to 3; 1 opens none ahead
	PredictiveRatio  float64 // 1 to 3; 0 if not set
}
