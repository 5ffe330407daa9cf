package admin

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// Config configures a [Server]. The zero value of each field means its default.
type Config struct {
	// Address is where [Server.Listen] binds: "127.0.0.1:9901", "[::1]:0",
	// "unix:/run/admin.sock" or "unix:@name" for an abstract socket. Host
	// names are not resolved. If empty, Listen fails; [Server.Serve],
	// [Server.ServeHTTP] and [Server.Request] work.
	Address string
	// Socket is a listening socket to use instead of binding Address; the path
	// of a unix one stays. [Server.Listen] closes it.
	Socket *os.File
	// SocketMode and SocketGroup are the permissions of a unix socket.
	// Default 0600 and the group of the process.
	SocketMode  fs.FileMode
	SocketGroup string

	// Product is the name in the server header, in titles and where the
	// interface has it in an identifier. Default and only valid value: the
	// product name of Store, or any name if Store is nil. With "envoy" the
	// server is a drop-in for tools made for it.
	Product string

	// PreferOpenMetrics answers scrapes in OpenMetrics if the client accepts it
	// beside the text format. By default only clients that do not accept the
	// text format get OpenMetrics.
	PreferOpenMetrics bool

	// Mode says how much of the interface exists. Default [ModeFull].
	Mode Mode
	// AllowPaths, unless empty, refuses requests whose path and query match
	// none of the matchers.
	AllowPaths []Matcher
	// HostCheck and AllowedHosts say which host names requests may be
	// addressed to. An allowed host is a name, or *.suffix.
	HostCheck    HostMode
	AllowedHosts []string
	// AllowedOrigins are the web origins, scheme://host[:port], whose pages
	// may send requests with side effects.
	AllowedOrigins []string
	// ReadOrigins are the web origins whose scripts may read the answers of
	// endpoints without side effects.
	ReadOrigins []string

	// Auth configures authentication. If nil, every client may do everything.
	Auth *Auth
	// TLS, unless nil, configures connections over TCP. The lowest version is
	// 1.2. If GetConfigForClient decides on client certificates, set ClientAuth
	// to the same.
	TLS *tls.Config

	// SocketOptions are set on the listening socket of Address.
	SocketOptions []SocketOption
	// Admit reports whether to accept a new connection; open is the number of
	// open ones. If nil, only Limits count.
	Admit func(open int) bool

	// DebugEndpoints adds /debug/pprof/profile, /debug/pprof/trace and those
	// of the runtime's profiles, for callers with RoleAdmin.
	DebugEndpoints bool

	// Limits bound what requests may cost.
	Limits Limits

	// ShowUntyped leaves values in /config_dump that are secret by name or look
	// only: entries of free-form settings called password, token and so on,
	// values of headers such as authorization, texts with private keys or signed
	// tokens. What the definition of a message calls secret is never shown.
	ShowUntyped bool

	// Sources are what the endpoints read and change.
	Sources Sources

	// Store holds the stats to show, including the server's own. Default:
	// an own, empty one.
	Store *store.Store
	// Flusher flushes the stats before they are shown, if the settings say
	// so. Default: none does.
	Flusher Flusher

	// AccessLog is called after each request. If nil, requests are not logged.
	AccessLog func(Access)
	// Logger receives the log of the server. If nil, nothing is logged.
	Logger *slog.Logger
	// Now returns the time for responses and logs. Default time.Now.
	Now func() time.Time
}

// Mode selects how much of the interface exists.
type Mode uint8

// The modes.
const (
	ModeFull        Mode = iota
	ModeReadOnly         // mutations are answered with 403
	ModeMetricsOnly      // only the stats, /ready and /live exist
)

// Matcher matches the path and query of a request.
type Matcher interface{ Match(target string) bool }

// Flusher ends the interval of the stats before they are shown.
type Flusher interface {
	// FlushForAdmin flushes if stats are to be flushed when they are asked
	// for, and does nothing otherwise.
	FlushForAdmin()
}

// Limits bounds the cost of requests. In each field 0 means the default, and a
// negative value no limit, which [New] logs as a warning.
type Limits struct {
	HeaderBytes int // of all header fields; default 8 KiB
	TargetBytes int // of the request target; default 8 KiB
	BodyBytes   int // default 64 KiB
	Headers     int // header fields; default 64
	QueryParams int // default 128
	QueryValue  int // bytes of one value; default 4 KiB

	Connections        int // default 1024, besides those reserved for /ready
	ConnectionsPerPeer int // from one address; default 256, not on unix sockets

	ReadTimeout  time.Duration // for a request to arrive; default 5 s
	IdleTimeout  time.Duration // between requests; default 60 s
	StreamStall  time.Duration // for 64 KiB of an answer to leave; default 10 s
	ResponseTime time.Duration // for a whole answer; default 120 s
	ShutdownTime time.Duration // for running requests at the end; default 5 s

	HeavyRunning int           // large answers at a time; default 4
	HeavyWaiting int           // that may wait for their turn; default 16
	HeavyWait    time.Duration // how long; default 2 s
	Compressors  int           // default 4; below 0 none

	RegexBytes    int           // of a filter; default 1024
	RegexProgram  int           // instructions of a filter; default 10,000
	RegexBudget   time.Duration // of a request with a filter; default 2 s
	RegexParallel int           // requests with a filter at a time; default 4

	AuditEntries int // kept in memory; default 1000
}

// reservedConnections are kept free for /ready, /live and /server_info when
// all others are taken.
const reservedConnections = 16

// DefaultLimits returns the limits in effect when [Config.Limits] is zero.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	ints := []struct {
		field *int
		value int
	}{
		{&l.HeaderBytes, 8 << 10}, {&l.TargetBytes, 8 << 10}, {&l.BodyBytes, 64 << 10},
		{&l.Headers, 64}, {&l.QueryParams, 128}, {&l.QueryValue, 4 << 10},
		{&l.Connections, 1024}, {&l.ConnectionsPerPeer, 256},
		{&l.HeavyRunning, 4}, {&l.HeavyWaiting, 16}, {&l.Compressors, 4},
		{&l.RegexBytes, 1024}, {&l.RegexProgram, 10_000}, {&l.RegexParallel, 4},
		{&l.AuditEntries, 1000},
	}
	for _, i := range ints {
		if *i.field == 0 {
			*i.field = i.value
		}
	}
	times := []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.ReadTimeout, 5 * time.Second}, {&l.IdleTimeout, time.Minute},
		{&l.StreamStall, 10 * time.Second}, {&l.ResponseTime, 2 * time.Minute},
		{&l.ShutdownTime, 5 * time.Second}, {&l.HeavyWait, 2 * time.Second},
		{&l.RegexBudget, 2 * time.Second},
	}
	for _, t := range times {
		if *t.field == 0 {
			*t.field = t.value
		}
	}
	return l
}

// absent returns the names of the limits that are off.
func (l Limits) absent() (names []string) {
	for f, v := range reflect.ValueOf(l).Fields() {
		if v.Int() < 0 && f.Name != "Compressors" { // without those nothing is compressed
			names = append(names, f.Name)
		}
	}
	return names
}

// bound returns a limit for code that has no notion of "no limit": without
// stands for that.
func bound[T int | time.Duration](limit, without T) T {
	if limit < 0 {
		return without
	}
	return limit
}
