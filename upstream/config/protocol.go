package config

import "time"

// Protocol selects the HTTP version of upstream connections.
type Protocol uint8

// The protocol choices.
const (
	HTTP1 Protocol = iota
	HTTP2
	HTTP3
	UseDownstream // as the downstream connection
	AutoALPN      // by negotiation
)

// HTTPOptions are the HTTP settings of upstream connections, from the fields of
// the cluster or, in the v3 form, from its typed protocol options.
type HTTPOptions struct {
	Protocol Protocol

	MaxRequestsPerConnection uint32        // 0 means no limit
	IdleTimeout              time.Duration // default 1h; 0 means never
	MaxConnectionDuration    time.Duration // 0 means no limit
	MaxStreamDuration        time.Duration // 0 means no limit
	MaxHeadersCount          uint32        // default 100
	MaxResponseHeadersKB     uint32        // default 60
	HeadersWithUnderscores   UnderscoreAction

	AutoSNI               bool
	AutoSANValidation     bool
	OverrideAutoSNIHeader string

	HTTP1Options HTTP1Options
	HTTP2Options HTTP2Options
}

// UnderscoreAction selects the treatment of headers with an underscore.
type UnderscoreAction uint8

// The actions.
const (
	AllowUnderscores UnderscoreAction = iota
	RejectRequest
	DropHeader
)

// HTTP1Options are settings of HTTP/1 connections.
type HTTP1Options struct {
	AllowAbsoluteURL    bool // default true
	AcceptHTTP10        bool
	DefaultHostHTTP10   string
	EnableTrailers      bool
	AllowChunkedLength  bool
	ProperCaseHeaders   bool
	StreamErrorOnBadMsg bool
	SendFullURL         bool
	AllowCustomMethods  bool
}

// HTTP2Options are settings of HTTP/2 connections.
type HTTP2Options struct {
	HpackTableSize                      uint32 // default 4096
	MaxConcurrentStreams                uint32 // default 1024; 2147483647 in the v2 form
	InitialStreamWindow                 uint32 // default 16 MiB; 256 MiB in the v2 form
	InitialConnectionWindow             uint32 // default 24 MiB; 256 MiB in the v2 form
	AllowConnect, AllowMetadata         bool
	MaxOutboundFrames                   uint32 // default 10000
	MaxOutboundControlFrames            uint32 // default 1000
	MaxInboundEmptyFrames               uint32 // default 1
	MaxInboundPriorityFrames            uint32 // per stream, default 100
	MaxInboundWindowUpdatesPerData      uint32 // default 10
	StreamErrorOnBadMsg                 bool
	Custom                              []HTTP2Setting
	KeepaliveInterval, KeepaliveTimeout time.Duration // an interval of 0 disables keepalive
	KeepaliveJitterPercent              float64
	KeepaliveIdleInterval               time.Duration
}

// HTTP2Setting is one further setting sent to the peer.
type HTTP2Setting struct{ Identifier, Value uint32 }

// LookupFamily selects the address families that are resolved.
type LookupFamily uint8

// The lookup families.
const (
	FamilyAuto LookupFamily = iota // IPv6, and IPv4 if there is none
	FamilyV4Only
	FamilyV6Only
	FamilyV4Preferred // IPv4, and IPv6 if there is none
	FamilyAll         // both
)

// DNS holds the settings of the DNS types; other types ignore them.
type DNS struct {
	RefreshRate       time.Duration // default 5s
	Jitter            time.Duration
	FailureBase       time.Duration // first delay after a failure; RefreshRate if HasFailureRate is false
	FailureMax        time.Duration // largest delay; equals FailureBase for a constant delay
	HasFailureRate    bool          // failures back off between FailureBase and FailureMax
	RespectTTL        bool
	LeastRefresh      time.Duration // lower limit of delays with RespectTTL; 0 means none
	Family            LookupFamily
	Resolvers         []AddressSpec // literal IP addresses, default port 53; empty means the resolvers of the system
	UseTCP            bool
	NoDefaultSearch   bool
	ResolverExtension Extension // custom resolver; none without a name
}
