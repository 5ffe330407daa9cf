package statsd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// Config configures a [Server]. Zero values mean the defaults. A negative limit
// means no limit; [New] logs a warning about each one in Limits.
type Config struct {
	// Store receives the stats from the network, in a separate name space, and
	// the self-metrics of the server under "ingest.". Required.
	Store *store.Store

	Listeners []ListenerConfig
	Parse     ParseConfig
	Limits    Limits
	TTL       TTL

	// Filters drop samples and tags. Default: none.
	Filters Filters
	// Rules map received names; see [Server.SetRules]. Package bootstrap parses mapping
	// files with ParseMapping. Unlike in the daemon, rules change neither the unit of
	// timers nor their form: see naming.Rules.NetworkSeconds and Histograms. Default none.
	Rules *mapping.Rules
	// Prefix and a dot are prepended to every received name. Default none.
	Prefix string
	// ExtractTags applies the store's tag rules to received names without tags.
	// Default off: the rules are meant for the names of the program.
	ExtractTags bool
	// GaugeBacked reports whether the counter with a received name, without
	// tags, is kept as a gauge, so that negative samples can decrease it.
	// Default: none is.
	GaugeBacked func(name string) bool
	// Histograms is the form of timers and histograms. Default: buckets.
	Histograms *store.HistogramForm
	// SetWindow is the time that the shown count of a set covers, in five steps;
	// a rule can have its own. Default 10 minutes; negative: the last interval.
	SetWindow time.Duration
	// RejectConflicts rejects samples for a name that belongs to a stat of
	// another kind. Default: the later kind gets a suffix, such as
	// "_histogram".
	RejectConflicts bool
	// Events is the number of events to keep. Default 100; negative for none.
	Events int
	// Checks is the number of service checks to keep. Default 1000; negative
	// for none.
	Checks int
	// CheckGauges also creates a gauge for each service check, with its name
	// and tags and the status as value. Default off.
	CheckGauges bool
	// OnEvent gets the line of each accepted event and service check, without the line
	// feed, which is valid during the call. It is called at the same time by several
	// goroutines and may not block. Not with RelayOnly. Default: none.
	OnEvent func(line []byte)
	// ForgetRejected disables keeping rejected lines. Default: the last 20 of
	// each reason are kept.
	ForgetRejected bool

	// Relay forwards accepted lines to other servers. Default: none.
	Relay []relay.Route
	// RelayLoopCheck is how often the relay looks for loops over several relays, see
	// [relay.Config]. Default 1 minute; negative means never.
	RelayLoopCheck time.Duration
	// RelayOnly makes no stats of received lines, which are only checked and
	// relayed.
	RelayOnly bool

	// ExporterMetrics also publishes the self-metrics under the names that
	// statsd_exporter uses, below [ExporterNamespace], as of the last flush.
	// Default off.
	ExporterMetrics bool
	// Version and Revision of the program are labels of the metric
	// statsd_exporter_build_info. Default: it lacks them.
	Version, Revision string

	// Tap is called once for each batch of lines. It returns the receiver of a
	// copy of each accepted line, or nil. Neither function may block or call
	// the server. Default: no lines are copied.
	Tap func() func(Tapped)

	// ProcessMemory is a limit that the program sets to its memory, such as that of
	// GOMEMLIMIT, for the default of Limits.MemoryBytes. Default: none.
	ProcessMemory int64

	// Logger receives messages; those about rejected lines are limited to one
	// per second and reason. If nil, nothing is logged.
	Logger *slog.Logger
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

// Tapped is an accepted line.
type Tapped struct {
	Listener string // name of the listener
	Local    string // address of the listener, with the real port
	Sender   string // address of the client, or ""
	Line     []byte // valid during the call
}

// ListenerConfig describes one address to listen on. Fields that do not apply
// to its protocol are ignored.
type ListenerConfig struct {
	// Address is protocol://location: udp://, udp4://, udp6://, tcp://,
	// tcp4://, tcp6:// and tls:// with host:port; unixgram://, unixstream://
	// (length-prefixed frames) and unixlines:// with an absolute path, or
	// "@name" for an abstract socket. An empty host means all addresses, port 0
	// any free port.
	Address string
	// Name identifies the listener in metrics and on pages. Default: the
	// address, with the real port.
	Name string

	// Datagrams.

	Readers     int            // UDP sockets that share the port; default min(4, CPUs)
	RcvBuf      int            // receive buffer to request, in bytes; default 4 MiB
	PacketBytes int            // longest datagram or frame; default 65535
	Allowed     []netip.Prefix // accepted senders; default all
	// ShareUDP allows other processes, such as a successor, to bind the port at
	// the same time. Default: a port in use is an error.
	ShareUDP bool

	// Streams.

	Connections int           // open connections; default 1024
	PerAddress  int           // open connections per client address; default 64
	IdleTimeout time.Duration // 0: 60 s, but only while more than half of Connections are in use; negative: never
	TLS         *tls.Config   // nil for plain TCP; required by tls://

	// Unix sockets.

	Mode  fs.FileMode // of the socket; default 0666, so that the directory decides who can connect
	Owner string      // user name or number; default unchanged
	Group string      // group name or number; default unchanged

	// Sockets are inherited sockets to use instead of binding Address, which
	// then only determines the protocol. Each UDP socket gets a reader. The
	// server closes them.
	Sockets []*os.File
	// TakePath transfers the ownership of the path of an inherited unix socket:
	// the server removes it at the end of Run. Default off.
	TakePath bool
}

// ParseConfig selects the dialects.
type ParseConfig struct {
	Off            line.Styles // disabled tag styles
	AbsoluteGauges bool        // a signed gauge value is absolute, not relative
	TagContainer   bool        // the container option becomes a tag
	// Exporter reads lines as statsd_exporter does: dots at the end of a name
	// become underscores, tags without a value are ignored and counted, tag
	// keys become label names, and timers can be negative. Metrics without a
	// help text get that of statsd_exporter. The naming rules of the store
	// should have NetworkRunes.
	Exporter bool
}

// Limits bound the state that senders can create. See also [line.Config].
type Limits struct {
	LineBytes       int // default 8192
	LinesPerPacket  int // default 4096
	NameBytes       int // default 1024
	Segments        int // default 32
	Tags            int // default 32
	TagKeyBytes     int // default 128
	TagValueBytes   int // default 512
	Series          int // live stats; default 1,000,000
	FirstSegment    int // stats whose names share the first segment; default 200,000
	SeriesPerName   int // tag combinations of one name; default 50,000
	NewPerSecond    int // stats created per second; default 50,000
	Sets            int // live sets; default 10,000
	ValuesPerTagKey int // different values of a tag key, over all names; default no limit
	CacheEntries    int // cached line keys per reader; default 4 × Series
	// MemoryBytes bounds the estimated memory of received series. Default: a
	// quarter of the memory of the container or machine or of ProcessMemory,
	// whichever is less, at least 64 MiB.
	MemoryBytes     int
	OverflowedNames int // names with an overflow stat each; default 1000
}

// DefaultLimits returns the limits that replace zeros; -1 means no limit. The
// defaults of CacheEntries and MemoryBytes depend on Series and the machine.
func DefaultLimits() Limits {
	return Limits{
		LineBytes: 8192, LinesPerPacket: 4096, NameBytes: 1024, Segments: 32, Tags: 32, TagKeyBytes: 128, TagValueBytes: 512,
		Series: 1_000_000, FirstSegment: 200_000, SeriesPerName: 50_000, NewPerSecond: 50_000, Sets: 10_000,
		ValuesPerTagKey: -1, OverflowedNames: 1000,
	}
}

// absent returns the names of the disabled limits.
func (l Limits) absent() (names []string) {
	for f, v := range reflect.ValueOf(l).Fields() {
		if v.Int() < 0 && f.Name != "ValuesPerTagKey" { // unlimited by default
			names = append(names, f.Name)
		}
	}
	return names
}

// TTL is how long stats live without an update. Default: forever.
type TTL struct {
	Counter, Gauge, Histogram, Set time.Duration
}

// String returns a sentence that describes t, for pages.
func (t TTL) String() string {
	if t == (TTL{}) {
		return "off; series stay until they are forgotten or the server stops; statsd.ttl sets how long they stay without samples"
	}
	var kinds []string
	for g, ttl := range [groups]time.Duration{t.Counter, t.Gauge, t.Histogram, t.Set} {
		when := " never"
		if ttl != 0 {
			when = " after " + ttl.String()
			for _, zero := range [...]string{"m0s", "h0m"} {
				if strings.HasSuffix(when, zero) {
					when = when[:len(when)-2]
				}
			}
		}
		kinds = append(kinds, group(g).String()+when)
	}
	return "series without samples expire: " + strings.Join(kinds, ", ")
}

const (
	defaultRcvBuf      = 4 << 20
	defaultPacketBytes = 65535
	maxPacketBytes     = 16 << 20
)

func orDefault(v *int, def int) {
	if *v == 0 {
		*v = def
	} else if *v < 0 {
		*v = unlimited
	}
}

// withDefaults validates c and returns it with the defaults filled in.
func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("statsd: no store")
	}
	if c.RelayOnly && len(c.Relay) == 0 {
		return c, errors.New("statsd: relay only, but there is no relay")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, d := range []time.Duration{c.TTL.Counter, c.TTL.Gauge, c.TTL.Histogram, c.TTL.Set} {
		if d < 0 {
			return c, fmt.Errorf("statsd: ttl %v is negative", d)
		}
	}
	c.Events = cmp.Or(c.Events, 100)
	c.Checks = cmp.Or(c.Checks, 1000)
	c.Events, c.Checks = max(c.Events, 0), max(c.Checks, 0)
	if names := c.Limits.absent(); len(names) > 0 {
		c.Logger.Warn("statsd: unlimited, so that senders can cause any amount: " + strings.Join(names, ", "))
	}
	l, d := &c.Limits, DefaultLimits()
	orDefault(&l.LineBytes, d.LineBytes)
	orDefault(&l.LinesPerPacket, d.LinesPerPacket)
	orDefault(&l.NameBytes, d.NameBytes)
	orDefault(&l.Segments, d.Segments)
	orDefault(&l.Tags, d.Tags)
	orDefault(&l.TagKeyBytes, d.TagKeyBytes)
	orDefault(&l.TagValueBytes, d.TagValueBytes)
	orDefault(&l.Series, d.Series)
	orDefault(&l.FirstSegment, d.FirstSegment)
	orDefault(&l.SeriesPerName, d.SeriesPerName)
	orDefault(&l.NewPerSecond, d.NewPerSecond)
	orDefault(&l.Sets, d.Sets)
	orDefault(&l.ValuesPerTagKey, unlimited)
	orDefault(&l.CacheEntries, 4*min(l.Series, 1<<26))
	orDefault(&l.OverflowedNames, d.OverflowedNames)
	if l.MemoryBytes == 0 {
		available := availableMemory()
		if c.ProcessMemory > 0 && (available == 0 || c.ProcessMemory < available) {
			available = c.ProcessMemory
		}
		l.MemoryBytes = int(min(max(minMemory, available/4), math.MaxInt-1))
	} else if l.MemoryBytes < 0 {
		l.MemoryBytes = math.MaxInt
	}
	c.Listeners = append([]ListenerConfig(nil), c.Listeners...)
	for i := range c.Listeners {
		if err := c.Listeners[i].setDefaults(); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (l *ListenerConfig) setDefaults() error {
	l.Readers = cmp.Or(l.Readers, min(4, runtime.GOMAXPROCS(0)))
	if l.Readers < 1 || l.Readers > 256 {
		return fmt.Errorf("statsd: %q: readers %d not in [1,256]", l.Address, l.Readers)
	}
	l.RcvBuf = cmp.Or(l.RcvBuf, defaultRcvBuf)
	if l.RcvBuf < 1 || l.RcvBuf > 1<<30 {
		return fmt.Errorf("statsd: %q: rcvbuf %d not in [1,%d]", l.Address, l.RcvBuf, 1<<30)
	}
	l.PacketBytes = cmp.Or(l.PacketBytes, defaultPacketBytes)
	if l.PacketBytes < 64 || l.PacketBytes > maxPacketBytes {
		return fmt.Errorf("statsd: %q: max_packet_bytes %d not in [64,%d]", l.Address, l.PacketBytes, maxPacketBytes)
	}
	orDefault(&l.Connections, 1024)
	orDefault(&l.PerAddress, 64)
	l.Mode = cmp.Or(l.Mode, 0o666)
	if l.Mode&^0o777 != 0 {
		return fmt.Errorf("statsd: %q: mode %#o not in [0001,0777]", l.Address, uint32(l.Mode))
	}
	return nil
}

// lineConfig returns the settings of the line parser.
func (c *Config) lineConfig() line.Config {
	l := line.Config{
		Off:           c.Parse.Off,
		TagContainer:  c.Parse.TagContainer,
		LineBytes:     c.Limits.LineBytes,
		NameBytes:     c.Limits.NameBytes,
		Segments:      c.Limits.Segments,
		Tags:          c.Limits.Tags,
		TagKeyBytes:   c.Limits.TagKeyBytes,
		TagValueBytes: c.Limits.TagValueBytes,
	}
	if l.Exporter = c.Parse.Exporter; l.Exporter {
		rules := naming.Rules{NetworkRunes: true}
		l.AppendKey = func(dst, key []byte) []byte {
			dst, _ = rules.AppendMetricBytes(dst, key, true, false)
			return dst
		}
	}
	return l
}
