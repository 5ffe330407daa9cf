package admin

import (
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// Ingest is what takes in StatsD lines. Without one the endpoints about it do
// not exist. Texts that come from the network may hold any bytes.
type Ingest interface {
	Report() IngestReport
	// Explain says what would become of a line, without applying it.
	Explain(line []byte) IngestExplanation
	// Forget ends the received stats whose full name satisfies match, and
	// returns how many they were.
	Forget(match func(name string) bool) int
}

// IngestReport is what there is to tell about the lines received so far.
type IngestReport struct {
	Listeners []IngestListener
	Rejected  []IngestRejected
	Limits    []IngestLimit
	Series    []IngestKind
	Expiry    string // what becomes of series without samples, "" if that needs no word

	RawEntries, RawHits, RawMisses, RawEvicted uint64 // of the table of known spellings

	Collisions, TypeConflicts uint64
	Clashes                   []IngestClash

	TopSeries  []IngestCount // names with the most series
	TopSamples []IngestRate  // names with the most samples in the last minute
	Newest     []IngestSeries
	TopTags    []IngestCount // tag keys with the most values

	Events []IngestEvent
	Checks []IngestCheck

	StreamBusySeconds float64 // spent on what came by connections
	UnixQueue         int     // datagrams that may wait in a unix socket; 0 if nobody tells
}

// IngestListener are the figures of one listener.
type IngestListener struct {
	Name, Protocol, Address        string
	Readers                        int // of datagrams; 0: connections are accepted
	TLS                            bool
	Packets, Bytes, Lines, Samples uint64
	Applied, Notices, Limited      uint64
	Rejected                       map[string]uint64
	TagErrors, UnknownFields       uint64
	ValuesOutOfRange               uint64 // observations beyond what histograms hold
	Truncated, KernelDrops         uint64
	PacketsRefused, ReadErrors     uint64
	QueueBytes, QueueLimit         uint64 // memory of waiting datagrams, and most that they may take; 0 if nobody tells
	RcvBufAsked, RcvBufBytes       uint64 // receive buffers: as configured, and as granted
	Connections, ConnectionsTotal  uint64
	Ended                          map[string]uint64
	LinesPerPacket                 *store.Histogram // nil: there are no packets
	BusySeconds                    float64
}

// IngestRejected is a reason for which lines were rejected.
type IngestRejected struct {
	Reason string
	Count  uint64
	Last   []IngestLine
}

// IngestLine is a line that was rejected.
type IngestLine struct {
	Time     time.Time
	Listener string
	Source   string
	Line     string
}

// IngestLimit is a limit and how much of it is used.
type IngestLimit struct {
	Name    string
	Max     int // negative: none
	Use     int
	Limited uint64
}

// IngestKind counts the series of one kind.
type IngestKind struct {
	Kind             string
	Series           int
	Created, Expired uint64
}

// IngestClash is a series that could not have its name, or shares a series of
// the exposition with another one.
type IngestClash struct {
	Time  time.Time
	Name  string
	Group string
	Other string
	What  string
}

// IngestCount is a name and a number.
type IngestCount struct {
	Name  string
	Count uint64
}

// IngestRate is a name and its samples a second.
type IngestRate struct {
	Name      string
	PerSecond float64
}

// IngestSeries is a series that was made.
type IngestSeries struct {
	Time             time.Time
	Name, Kind, Tags string
}

// IngestEvent is an event that was received.
type IngestEvent struct {
	Received    time.Time
	Title, Text string
	Time        int64 // unix seconds; 0: none
	Host, Key   string
	Priority    string
	Source      string
	Alert       string
	Tags        []string
}

// IngestCheck is the last state of a service check.
type IngestCheck struct {
	Received time.Time
	Name     string
	Status   int   // 0 OK, 1 warning, 2 critical, 3 unknown
	Time     int64 // unix seconds; 0: none
	Host     string
	Message  string
	Tags     []string
}

// IngestExplanation says what a line means.
type IngestExplanation struct {
	Kind   string // "blank", "metric", "event" or "service_check"
	Reason string // why the line is rejected, "" if it is not
	Offset int    // where parsing stopped if there is a reason

	Name          string
	Tags          []IngestTag
	TagErrors     int
	UnknownFields int
	Samples       []IngestSample
	Event         *IngestEvent
	Check         *IngestCheck
}

// IngestTag is a tag of a line.
type IngestTag struct{ Name, Value string }

// IngestSample is one sample of a line.
type IngestSample struct {
	Type   string // as written
	Kind   string // counter, gauge, histogram or set
	Rate   float64
	Values []string
	Member string // of a set
	Stat   string // full name of the stat
	Series string // in the exposition
	Known  bool   // the stat exists
	Limit  string // that would keep a new stat from being made
}
