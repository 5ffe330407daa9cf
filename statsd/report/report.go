// Package report holds plain values that describe StatsD input: a [Report] of
// the lines received so far, and an [Explanation] of a single line.
//
// Package statsd produces them and the administration port renders them. Texts
// that come from the network can hold any bytes.
package report

import (
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Report describes the input of a server since its start.
type Report struct {
	Time      time.Time
	Listeners []Listener // in the order of the configuration
	Rejected  []Rejected // reasons that occurred, in the order of parsing steps
	Limits    []Limit
	Series    []Kind
	Expiry    string // when series without samples expire, as a sentence

	Cache Cache

	Collisions    uint64 // series whose full name or exposition another series had first
	TypeConflicts uint64 // names whose later kinds got a suffix
	Conflicts     []Conflict

	TopSeries  []NameCount // names with the most series
	TopSamples []NameRate  // names with the most samples in the last minute of flush intervals
	Newest     []NewSeries // oldest first
	TopTags    []NameCount // tag keys with the most different values, estimated from 16 on

	Relay []RelayTarget // in the order of the configuration

	Events []Event        // oldest first
	Checks []ServiceCheck // least recently updated first

	// StreamBusySeconds estimates the time that all stream listeners together
	// spent on parsing and applying lines.
	StreamBusySeconds float64

	// UnixQueue is how many datagrams can wait in a unix socket before the
	// sender blocks, or 0 if unknown. 512 is a good value.
	UnixQueue int
}

// ListenerInfo identifies a bound listener.
type ListenerInfo struct {
	Name     string // in metrics
	Protocol string // the part of the address before "://"
	Address  string // the whole address, with the real port
	Readers  int    // sockets of a datagram listener; 0 for streams
	TLS      bool
}

// Listener counts the input of one listener since its start.
//
// Lines = Applied + Dropped + Limited + RelayOnly + the sum of Rejected. On loopback, Packets +
// KernelDrops is the number of datagrams sent.
type Listener struct {
	ListenerInfo
	Packets, Bytes, Lines, Samples uint64
	Applied                        uint64 // lines, events and service checks included
	Events                         uint64 // events and service checks
	Dropped                        uint64 // lines whose samples filters or mapping rules drop
	Limited                        uint64 // lines to which a limit refused a separate series
	RelayOnly                      uint64 // lines that create no stats here
	Rejected                       map[string]uint64
	TagErrors, UnknownFields       uint64
	ValuesOutOfRange               uint64 // observations beyond store.NetworkMax, recorded as that
	FutureTimestamps               uint64 // samples of gauges that take effect at once although dated ahead of the clock
	Truncated, KernelDrops         uint64
	PacketsRefused, ReadErrors     uint64
	QueueBytes, QueueLimit         uint64 // memory of waiting datagrams and its limit; 0 if unknown
	RcvBufAsked, RcvBufBytes       uint64 // receive buffers of all readers: configured, and granted by the system
	Connections                    uint64 // open now
	ConnectionsTotal               uint64
	Ended                          map[string]uint64 // connections by how and why: "closed eof", "refused per_address"
	LinesPerPacket                 *Quantiles        // nil for streams of lines
	BusySeconds                    float64           // estimated time that a datagram listener spent on parsing and applying lines
}

// RelayTarget describes a server to which lines are relayed. Counts are of lines
// unless they say otherwise.
//
// Accepted + MovedIn = Sent + Dropped + Ambiguous + Rejected + Long + MovedOut + Queued.
type RelayTarget struct {
	Name, Address string
	Mode          string // such as "copy"
	Up            bool

	Accepted  uint64 // that belong to the target
	MovedIn   uint64 // of targets that were down
	MovedOut  uint64 // to other targets, because this one was down
	Sent      uint64
	Dropped   uint64 // because the queue was full, or at the end
	Ambiguous uint64 // in packets that were sent in part
	Rejected  uint64 // that the system refuses to send
	Long      uint64 // that fit into no datagram

	Packets, Bytes uint64 // sent
	LostPackets    uint64 // datagrams that were refused after they were sent
	Failed         uint64 // attempts to send
	Connections    uint64 // opened

	Queued     int // waiting or being sent
	QueueBytes int
	QueueLimit int // bytes
	QueueAge   time.Duration

	LastError   string    // "" if there is none
	LastErrorAt time.Time // zero for a health check
}

// Quantiles summarizes a histogram.
type Quantiles struct {
	Count         uint64
	P50, P99, Max float64 // 0 if Count is 0
}

// Rejected counts the lines rejected for one reason.
type Rejected struct {
	Reason string
	Count  uint64
	Last   []RejectedLine // the last 20, oldest first
}

// RejectedLine is a line that was rejected.
type RejectedLine struct {
	Time     time.Time
	Listener string
	Source   string // address of the sender, "" if it has none
	Line     string // the first 512 bytes, as received
}

// Limit is a limit and its use.
type Limit struct {
	Name    string
	Max     int    // negative if there is no limit, or none that can be measured
	Use     int    // now; for limits per name or segment, the largest use
	Limited uint64 // lines
}

// Kind counts the received series of one kind.
type Kind struct {
	Kind             string
	Series           int
	Created, Expired uint64
}

// Cache counts the use of the caches that map line keys to series.
type Cache struct{ Entries, Hits, Misses, Evicted uint64 }

// NameCount is a name and a number.
type NameCount struct {
	Name  string
	Count uint64
}

// NameRate is a name and its samples per second.
type NameRate struct {
	Name      string
	PerSecond float64
}

// NewSeries is a series that was created.
type NewSeries struct {
	Time             time.Time
	Name, Kind, Tags string
	Sender           string // address whose line created it, "" if unknown
}

// Recent is the part of a [Report] that needs no walk over the names. Names are
// as in the store, without tags.
type Recent struct {
	Limits     []Limit     // nearly reached
	Samples    []NameRate  // as Report.TopSamples
	Newest     []NewSeries // as Report.Newest
	Overflowed []string    // names whose samples a limit sent to a stat overflow.*
}

// Conflict is a series that could not have its name, or that shares a series
// of the exposition with another one.
type Conflict struct {
	Time  time.Time
	Name  string
	Group string // kind of the later series
	Other string // name of the earlier series, if it differs
	What  string // what both share: "kind", "full name", "exposition", or "own stat" for the name of a stat of the program
}

// Event is a received event.
type Event struct {
	Received time.Time
	line.Event
}

// ServiceCheck is the last received state of a service check.
type ServiceCheck struct {
	Received time.Time
	line.ServiceCheck
}

// Explanation describes what a line means to a server, or why it is rejected.
type Explanation struct {
	Kind   string // "blank", "metric", "event" or "service_check"
	Reason string // why the line is rejected, or ""
	Offset int    // of a rejected line: where parsing stopped, in bytes

	Name          string
	Tags          []tags.Tag // in byte order of the names; a tag without a value has an empty one
	TagErrors     int
	UnknownFields int
	Samples       []Sample
	Event         *line.Event
	Check         *line.ServiceCheck
}

// Sample is one sample of an explained line.
type Sample struct {
	Type   string // as written
	Kind   string // counter, gauge, histogram or set
	Rate   float64
	Values []string // decimal; a relative gauge value keeps its sign
	Member string   // of a set
	Stat   string   // full name of the stat
	Series string   // in the exposition
	Unit   string   // of a timer in the exposition: seconds or milliseconds
	Known  bool     // the stat exists
	Limit  string   // that would prevent a new stat, or ""

	Rule    *Rule  // mapping rule that applies, or nil
	Filter  string // that drops it: allow, deny or ""
	Dropped bool   // by Filter or Rule, or because no rule applies
}

// Rule identifies a mapping rule.
type Rule struct {
	Number   int    // in the file, from 1
	Match    string // as written
	Position string // file:line:column, or "" if unknown
	// Scale multiplies values. Nil if the rule does not change them.
	Scale *float64
}

// RuleUse is a mapping rule and its use.
type RuleUse struct {
	Rule
	Regex      bool
	Kind       string // of the samples that it is for; "" for all
	Name       string // of the metric, as written
	Drops      bool
	Matches    uint64
	Last       time.Time // of the last match; zero if there was none
	ShadowedBy int       // number of an earlier rule that leaves nothing to this one, or 0
}

// Mapping describes the mapping rules and their use.
type Mapping struct {
	Rules         []RuleUse
	MostLiteral   bool
	DropUnmatched bool

	Mapped, Dropped        uint64    // samples since the start
	Unmatched              uint64    // samples since the start that were dropped because no rule matches
	Reloads, FailedReloads uint64    // since the start
	Reloaded               time.Time // last reload; zero if there was none
	Error                  string    // why the last reload failed, or ""
}
