package config

import (
	"math"
	"time"
)

// HealthCheckKind is the protocol of a health check.
type HealthCheckKind uint8

// The kinds of health checks.
const (
	HTTPCheck HealthCheckKind = iota
	TCPCheck
	GRPCCheck
	CustomCheck
)

// HealthCheck is an active health check.
type HealthCheck struct {
	Kind   HealthCheckKind
	Name   string
	HTTP   HTTPHealthCheck // Kind is HTTPCheck
	TCP    TCPHealthCheck
	GRPC   GRPCHealthCheck
	Custom Extension
	// CustomUntyped is the free-form configuration of a custom check in the v2 form
	// without a typed one.
	CustomUntyped map[string]any

	Timeout, Interval                    time.Duration // > 0
	InitialJitter, IntervalJitter        time.Duration
	IntervalJitterPercent                uint32
	UnhealthyThreshold, HealthyThreshold uint32 // at least 1
	HasAltPort                           bool
	ReuseConnection                      bool          // default true
	NoTrafficInterval                    time.Duration // default 60s
	NoTrafficHealthyInterval             time.Duration // default NoTrafficInterval
	UnhealthyInterval                    time.Duration // default Interval
	UnhealthyEdgeInterval                time.Duration // default UnhealthyInterval
	HealthyEdgeInterval                  time.Duration // default Interval
	EventLogs                            []string      // event log files
	EventSinks                           []Extension   // other event sinks
	AlwaysLogFailures, AlwaysLogSuccess  bool
	ALPN                                 []string       // TLS protocols to offer; empty: the protocols of the socket
	TransportSocketMatch                 map[string]any // nil means the metadata of the endpoint
}

// StatusRange is a half-open range of HTTP status codes.
type StatusRange struct{ Start, End int }

// HTTPHealthCheck holds the options of a check by HTTP.
type HTTPHealthCheck struct {
	Host               string // empty: the cluster name
	Path               string
	Method             string // default GET
	Send               []byte
	Receive            [][]byte
	ResponseBufferSize uint64 // bytes of the body that are checked, default 1024; 0 means all
	HeadersToAdd       []HeaderToAdd
	HeadersToRemove    []string
	Expected           []StatusRange // default [200,201)
	Retriable          []StatusRange
	HTTP2, HTTP3       bool
	UseALPN            bool
	ServiceName        *StringMatcher // nil disables the check
}

// HeaderToAdd is a header that is added to a request.
type HeaderToAdd struct {
	Name, Value string
	Append      HeaderAppend
	KeepEmpty   bool // add it even when the value is empty
}

// HeaderAppend selects the effect on an existing header.
type HeaderAppend uint8

// The ways to add a header.
const (
	AppendOrAdd HeaderAppend = iota
	AddIfAbsent
	OverwriteOrAdd
	OverwriteIfExists
)

// TCPHealthCheck holds the options of a check by TCP connection.
type TCPHealthCheck struct {
	Send          []byte
	Receive       [][]byte
	ProxyProtocol bool
}

// GRPCHealthCheck holds the options of a check by the gRPC health service.
type GRPCHealthCheck struct {
	ServiceName string
	Authority   string
	Metadata    []HeaderToAdd
}

// MatchKind is the kind of a string match.
type MatchKind uint8

// The kinds of string matches.
const (
	MatchExact MatchKind = iota
	MatchPrefix
	MatchSuffix
	MatchRegex // the whole text
	MatchContains
	MatchCustom // by an extension; Pattern is its name
)

// StringMatcher tests a text.
type StringMatcher struct {
	Kind       MatchKind
	Pattern    string
	IgnoreCase bool
}

// Outlier holds the settings of outlier detection.
type Outlier struct {
	Interval              time.Duration // default 10s
	BaseEjectionTime      time.Duration // default 30s
	MaxEjectionTime       time.Duration // default the larger of 300s and BaseEjectionTime
	MaxEjectionTimeJitter time.Duration
	MaxEjectionPercent    uint32 // default 10

	Consecutive5xx            uint32 // default 5
	ConsecutiveGatewayFailure uint32 // default 5
	ConsecutiveLocalFailure   uint32 // default 5

	// Percentages of detected cases that lead to an ejection.
	EnforcingConsecutive5xx            uint32 // default 100
	EnforcingConsecutiveGatewayFailure uint32 // default 0
	EnforcingConsecutiveLocalFailure   uint32 // default 100
	EnforcingSuccessRate               uint32 // default 100
	EnforcingLocalSuccessRate          uint32 // default 100
	EnforcingFailurePercentage         uint32 // default 0
	EnforcingLocalFailurePercentage    uint32 // default 0

	SuccessRateMinimumHosts  uint32 // default 5
	SuccessRateRequestVolume uint32 // default 100
	SuccessRateStdevFactor   uint32 // thousandths, default 1900

	FailurePercentageThreshold     uint32 // default 85
	FailurePercentageMinimumHosts  uint32 // default 5
	FailurePercentageRequestVolume uint32 // default 50

	SplitLocalErrors  bool
	UnejectOnCheck    bool // a successful active check ends an ejection; default true, false in the v2 form
	AlwaysEjectOne    bool // default false, true in the v2 form
	DetectDegraded    bool
	MonitorExtensions []Extension
}

// NoLimit is the maximum of an unbounded resource.
const NoLimit uint64 = math.MaxUint64

// CircuitBreakers are the limits of both request priorities.
type CircuitBreakers struct {
	Default, High Thresholds
	// The largest number of connections to one host, by priority.
	PerHostDefault, PerHostHigh uint64 // default NoLimit
}

// Thresholds are the limits of one request priority.
type Thresholds struct {
	MaxConnections     uint64 // default 1024
	MaxPendingRequests uint64 // default 1024
	MaxRequests        uint64 // default 1024
	MaxRetries         uint64 // default 3; ignored with a RetryBudget
	MaxConnectionPools uint64 // default NoLimit
	RetryBudget        *RetryBudget
	TrackRemaining     bool
}

// RetryBudget bounds retries by the number of requests.
type RetryBudget struct {
	BudgetPercent       float64       // default 20
	MinRetryConcurrency uint32        // default 3
	BudgetInterval      time.Duration // 0 counts only requests in flight
}
