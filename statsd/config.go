package statsd

import (
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

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// Config are the settings of a [Server]. Zero values mean the defaults; a
// negative limit means no limit, and [New] warns of those in Limits.
type Config struct {
	// Store takes the stats: those that arrive, in a name space of their own,
	// and the server's own under "ingest.". Required.
	Store *store.Store

	Listeners []ListenerConfig
	Parse     ParseConfig
	Limits    Limits
	TTL       TTL

	// Prefix is put in front of every received name, with a dot. Default none.
	Prefix string
	// ExtractTags lets the store's tag rules have names that come without tags.
	// Default: they are for the program's own names, and a received one that
	// looks like one of those is not.
	ExtractTags bool
	// GaugeBacked, given the name of a counter as it is received, without tags,
	// reports whether it may fall: it is then a gauge from the beginning, which
	// its samples change, and takes negative ones. Default: none may.
	GaugeBacked func(name string) bool
	// RejectConflicts rejects samples whose name belongs to a stat of another
	// kind. Default: the later kind gets a suffix, such as "_histogram".
	RejectConflicts bool
	// Events is how many events are kept. Default 100, negative none.
	Events int
	// Checks is how many states of service checks are kept. Default 1000,
	// negative none.
	Checks int
	// CheckGauges makes each service check a gauge too, with its name and
	// tags and the status as value. Default off.
	CheckGauges bool
	// ForgetRejected turns off keeping the last rejected lines. Default: the
	// last 20 of each reason are kept.
	ForgetRejected bool

	// ExporterMetrics publishes the metrics of the server also under the names
	// that statsd_exporter has for its own, behind [ExporterNamespace], as of
	// the last flush. Default off.
	ExporterMetrics bool

	// Tap, asked once for each batch of lines, returns who is to get a copy of
	// each accepted one, nil if nobody. Neither may block or call the server.
	// Default: nobody is asked.
	Tap func() func(Tapped)

	// Logger takes messages; those about rejected lines are limited to one per
	// second and reason. Default: none are written.
	Logger *slog.Logger
	// Now tells the time. Default time.Now.
	Now func() time.Time
}

// Tapped is an accepted line.
type Tapped struct {
	Listener string // its name
	Local    string // its address, with the real port
	Sender   string // address of the other end, "" if it has none
	Line     []byte // valid during the call
}

// ListenerConfig describes one address to listen on. Fields that do not belong
// to its protocol are ignored.
type ListenerConfig struct {
	// Address is protocol://place: udp://, udp4://, udp6://, tcp://, tcp4://,
	// tcp6://, tls:// with host:port; unixgram://, unixstream:// (frames with a
	// length), unixlines:// with an absolute path, or "@name" for an abstract
	// socket. An empty host means all addresses, port 0 any free port.
	Address string
	// Name is what metrics and pages call the listener. Default: the address,
	// with the real port.
	Name string

	// Datagrams.

	Readers     int            // UDP sockets that share the port; default min(4, CPUs)
	RcvBuf      int            // receive buffer to ask for, in bytes; default 4 MiB
	PacketBytes int            // longest datagram or frame; default 65535
	Allowed     []netip.Prefix // senders to listen to; default all
	// ShareUDP lets other processes hold the port at the same time, as a
	// successor does. Default: a held port is an error.
	ShareUDP bool

	// Streams.

	Connections int           // most connections at a time; default 1024
	PerAddress  int           // most connections of one address; default 64
	IdleTimeout time.Duration // 0: 60 s, but only while more than half of Connections are in use; negative: never
	TLS         *tls.Config   // nil: plain; tls:// needs it

	// Unix sockets.

	Mode  fs.FileMode // of the socket; default 0666: the directory's rights decide
	Owner string      // user name or number; default unchanged
	Group string      // group name or number; default unchanged

	// Sockets are inherited sockets to use instead of binding Address, which
	// then only tells the protocol. For UDP each gets a reader. The server
	// closes them.
	Sockets []*os.File
	// TakePath says that the path of an inherited unix socket is inherited
	// too: the server removes it in the end, once it ran. Default: somebody
	// else does.
	TakePath bool
}

// ParseConfig says which dialects are understood.
type ParseConfig struct {
	Off            line.Styles // tag styles that are switched off
	AbsoluteGauges bool        // a sign makes a gauge's value negative, not relative
	TagContainer   bool        // the container option becomes a tag
}

// Limits bound what senders can cause. See also [line.Config].
type Limits struct {
	LineBytes       int // default 8192
	LinesPerPacket  int // default 4096
	NameBytes       int // default 1024
	Segments        int // default 32
	Tags            int // default 32
	TagKeyBytes     int // default 128
	TagValueBytes   int // default 512
	Series          int // stats at a time; default 1,000,000
	FirstSegment    int // stats whose names begin with the same segment; default 200,000
	SeriesPerName   int // combinations of tags of one name; default 50,000
	NewPerSecond    int // stats made in one second; default 50,000
	Sets            int // sets at a time; default 10,000
	ValuesPerTagKey int // different values of a tag, over all names; default no limit
	CacheEntries    int // cached line keys per reader; default 4 × Series
	// MemoryBytes bounds the memory of received series, estimated. Default: a
	// quarter of the memory of the container or machine, at least 64 MiB.
	MemoryBytes     int
	OverflowedNames int // names that get an overflow stat of their own; default 1000
}

// DefaultLimits returns the limits that replace zeros, -1 where there is none.
// The default of CacheEntries follows from Series.
func DefaultLimits() Limits {
	return Limits{
		LineBytes: 8192, LinesPerPacket: 4096, NameBytes: 1024, Segments: 32, Tags: 32, TagKeyBytes: 128, TagValueBytes: 512,
		Series: 1_000_000, FirstSegment: 200_000, SeriesPerName: 50_000, NewPerSecond: 50_000, Sets: 10_000,
		ValuesPerTagKey: -1, OverflowedNames: 1000,
	}
}

// absent returns the names of the limits that are switched off.
func (l Limits) absent() (names []string) {
	for f, v := range reflect.ValueOf(l).Fields() {
		if v.Int() < 0 && f.Name != "ValuesPerTagKey" { // there is none of those by default
			names = append(names, f.Name)
		}
	}
	return names
}

// TTL is how long stats live without an update. Default: for ever.
type TTL struct {
	Counter, Gauge, Histogram, Set time.Duration
}

// String returns a sentence about what t does, for pages.
func (t TTL) String() string {
	if t == (TTL{}) {
		return "off: series stay until they are forgotten or the server stops; statsd.ttl sets how long they stay without samples"
	}
	var kinds []string
	for g, ttl := range [groups]time.Duration{t.Counter, t.Gauge, t.Histogram, t.Set} {
		when := " never"
		if ttl != 0 {
			when = " after " + ttl.String()
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

// withDefaults checks c and returns it with the defaults filled in.
func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("statsd: no store")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, d := range []time.Duration{c.TTL.Counter, c.TTL.Gauge, c.TTL.Histogram, c.TTL.Set} {
		if d < 0 {
			return c, fmt.Errorf("statsd: ttl %v is negative", d)
		}
	}
	if c.Events == 0 {
		c.Events = 100
	}
	if c.Checks == 0 {
		c.Checks = 1000
	}
	c.Events, c.Checks = max(c.Events, 0), max(c.Checks, 0)
	if names := c.Limits.absent(); len(names) > 0 {
		c.Logger.Warn("statsd: no limit: senders may cause as much as they like of " + strings.Join(names, ", "))
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
		l.MemoryBytes = int(min(max(minMemory, availableMemory()/4), math.MaxInt-1))
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
	if l.Readers == 0 {
		l.Readers = min(4, runtime.GOMAXPROCS(0))
	}
	if l.Readers < 0 || l.Readers > 256 {
		return fmt.Errorf("statsd: %q: readers %d not in [1,256]", l.Address, l.Readers)
	}
	if l.RcvBuf == 0 {
		l.RcvBuf = defaultRcvBuf
	}
	if l.RcvBuf < 0 || l.RcvBuf > 1<<30 {
		return fmt.Errorf("statsd: %q: rcvbuf %d not in [1,%d]", l.Address, l.RcvBuf, 1<<30)
	}
	if l.PacketBytes == 0 {
		l.PacketBytes = defaultPacketBytes
	}
	if l.PacketBytes < 64 || l.PacketBytes > maxPacketBytes {
		return fmt.Errorf("statsd: %q: max_packet_bytes %d not in [64,%d]", l.Address, l.PacketBytes, maxPacketBytes)
	}
	orDefault(&l.Connections, 1024)
	orDefault(&l.PerAddress, 64)
	if l.Mode == 0 {
		l.Mode = 0o666
	}
	if l.Mode&^0o777 != 0 {
		return fmt.Errorf("statsd: %q: mode %#o not in [0001,0777]", l.Address, uint32(l.Mode))
	}
	return nil
}

// lineConfig returns the settings of the line parser.
func (c *Config) lineConfig() line.Config {
	return line.Config{
		Off:           c.Parse.Off,
		TagContainer:  c.Parse.TagContainer,
		LineBytes:     c.Limits.LineBytes,
		NameBytes:     c.Limits.NameBytes,
		Segments:      c.Limits.Segments,
		Tags:          c.Limits.Tags,
		TagKeyBytes:   c.Limits.TagKeyBytes,
		TagValueBytes: c.Limits.TagValueBytes,
	}
}
