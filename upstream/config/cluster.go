package config

import "time"

// Cluster is the checked configuration of one upstream cluster with everything
// in force written out: absent fields hold their effective defaults, percents
// are cut to whole percent where the resource says so, and timers that were
// given as something between 0 and one millisecond are one millisecond.
//
// A Cluster and all it points to is never changed after it was made and shares
// no memory with the message it came from, so it may be read by any number of
// goroutines. Readers must not change it either.
type Cluster struct {
	Form     Form   // the message form it was written in
	Name     string // never empty
	StatName string // the alternative name if given, else Name; ":" and control characters are replaced by "_"
	// AltStatName is the alternative name as given, empty if there is none. It is
	// shown; statistics have StatName.
	AltStatName string

	Type       DiscoveryType
	CustomType *CustomType // set only when Type is CustomDiscovery
	EDS        *EDS        // set only when Type is EDS

	Assignment *Assignment // nil when the cluster brings no endpoints of its own

	ConnectTimeout            time.Duration // > 0
	BufferLimitBytes          uint32        // soft limit of the read and write buffers of a connection
	BufferHighWatermarkWait   time.Duration // 0: wait for ever
	PerDownstreamConnection   bool          // one connection pool per downstream connection
	WaitForWarmOnInit         bool          // default true
	CloseOnHealthFailure      bool          // close all connections of a host that turns unhealthy
	IgnoreHealthOnHostRemoval bool          // remove hosts at once, however healthy they are
	CleanupInterval           time.Duration // ORIGINAL_DST: how long an unused host stays, at least

	LB              LoadBalancing
	HTTP            HTTPOptions
	DNS             DNS
	HealthChecks    []HealthCheck // at most one
	Outlier         *Outlier      // nil: no outlier detection
	CircuitBreakers CircuitBreakers
	Sockets         Sockets
	Bind            *Bind      // nil: no bind of its own
	Keepalive       *Keepalive // nil: keepalive stays off
	Preconnect      *Preconnect

	SetLocalInterfaceName bool           // publish the name of the local interface of a connection
	HappyEyeballs         *HappyEyeballs // nil: defaults of whoever dials

	Track    Track
	Metadata Metadata
	Filters  []Filter

	// ExtensionOptions are the typed options of extensions by filter name, and
	// UntypedExtensionOptions the free-form ones of the v2 form. At most one of
	// the two has entries.
	ExtensionOptions        map[string]Any
	UntypedExtensionOptions map[string]map[string]any

	// Unread are the fields that were given and have no place here, for those who
	// must not ignore them.
	Unread []string
}

// Form tells in which of the two message forms a resource was written.
type Form uint8

// The message forms.
const (
	FormUnknown Form = iota // let the decoder find out
	FormV3
	FormV2
)

// Any is a message of an extension as it was given.
type Any struct {
	TypeURL string // empty: absent
	Value   string // wire bytes
}

// String returns the type URL; the value may hold secrets.
func (a Any) String() string { return a.TypeURL }

// Extension is a named extension with its configuration.
type Extension struct {
	Name   string
	Config Any
}

// Metadata is a tree of free-form values by namespace. Values are those of
// JSON: nil, bool, float64, string, []any and map[string]any.
//
// In the metadata of endpoints and localities the namespaces that the cluster
// itself reads always have the product's spelling: "<product>.lb" and
// "<product>.transport_socket_match". What was written as "envoy.lb",
// "envoy.transport_socket_match" or "<product>.transport_socket" is found there.
type Metadata map[string]map[string]any

// DiscoveryType says where the members of a cluster come from.
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

// CustomType is a cluster type provided by an extension. The types
// "envoy.cluster.dns", "envoy.cluster.strict_dns" and "envoy.cluster.logical_dns",
// also with the product's name in front, are not among them: such clusters are
// StrictDNS or LogicalDNS.
type CustomType struct {
	Name   string
	Config Any
}

// EDS tells where assignments of an EDS cluster come from.
type EDS struct {
	ServiceName string // the name to ask for; the cluster name if none was given
	Source      ConfigSource
}

// ConfigSourceKind is the way resources are fetched.
type ConfigSourceKind uint8

// The kinds of config sources.
const (
	SourceUnset ConfigSourceKind = iota
	SourcePath                   // a file
	SourceAPI                    // an API server
	SourceADS                    // the aggregated stream
	SourceSelf                   // the server that sent this configuration
)

// ConfigSource says where resources are fetched from.
type ConfigSource struct {
	Kind                ConfigSourceKind
	Path                string // SourcePath
	WatchedDirectory    string // SourcePath: directory whose moves trigger a reload; empty: the file's own
	API                 *APISource
	InitialFetchTimeout time.Duration // default 15s; 0: wait for ever
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
	ClusterNames              []string
	GRPC                      []GRPCService
	RefreshDelay              time.Duration
	RequestTimeout            time.Duration // default 1s
	RateLimit                 *RateLimit
	SetNodeOnFirstMessageOnly bool
}

// GRPCService is one gRPC target.
type GRPCService struct {
	ClusterName string // target by cluster
	Authority   string
	TargetURI   string // target by URI, for the other gRPC client
	StatPrefix  string
	Timeout     time.Duration // 0: none

	Metadata        []HeaderToAdd // sent with each call; values may be secret
	MaxReceiveBytes uint32        // of one message; 0: not given
	RetryBase       time.Duration // first delay after a stream failed; 0: not given
	RetryMax        time.Duration // largest delay after it; 0: not given
	// Credentials tells that a target by URI was given with channel or call
	// credentials, or others.
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

// Track tells which extra numbers are kept for the cluster.
type Track struct {
	TimeoutBudgets       bool
	RequestResponseSizes bool
	PerEndpointStats     bool
}

// Preconnect says how eagerly connections are opened ahead of need.
type Preconnect struct {
	PerUpstreamRatio float64 // 1 to 3; 1: none ahead
	PredictiveRatio  float64 // 1 to 3; 0: unset
}
