package admin

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

// Config configures a [Server]. The zero value of each field means its default.
type Config struct {
	// Address is where [Server.Listen] binds: "127.0.0.1:9901", "[::1]:0",
	// "unix:/run/admin.sock" or "unix:@name" for an abstract socket. Host
	// names are not resolved. If empty, Listen fails; [Server.Serve],
	// [Server.ServeHTTP] and [Server.Request] work.
	Address string
	// Socket is a listening socket to use instead of binding Address. [Server.Listen]
	// closes it, but keeps the path of a unix socket.
	Socket *os.File
	// SocketMode and SocketGroup are the permissions of a unix socket.
	// Default 0600 and the group of the process.
	SocketMode  fs.FileMode
	SocketGroup string

	// PreferOpenMetrics answers scrapes in OpenMetrics if the client accepts both it
	// and the text format. By default only clients that do not accept the text format
	// get OpenMetrics.
	PreferOpenMetrics bool
	// OmitCreated omits the samples _created, which say when a series was created,
	// in OpenMetrics.
	OmitCreated bool

	// Mode selects which part of the interface is available. Default
	// [ModeFull].
	Mode Mode
	// AllowPaths, unless empty, restricts requests to paths that match, with
	// their queries.
	AllowPaths match.List
	// HostCheck and AllowedHosts restrict the host names in requests. An allowed host
	// is a name or *.suffix.
	HostCheck    HostMode
	AllowedHosts []string
	// AllowedOrigins are the web origins, scheme://host[:port], whose pages can send
	// requests with side effects.
	AllowedOrigins []string
	// ReadOrigins are the web origins whose scripts can read responses of endpoints
	// without side effects.
	ReadOrigins []string

	// Auth configures authentication. If nil, every client may do everything.
	Auth *Auth
	// TLS, unless nil, configures connections over TCP. The minimum version is
	// 1.2. If GetConfigForClient requests client certificates, set ClientAuth
	// here too.
	TLS *tls.Config
	// MetricsAddress is another address, ip:port, at which only the endpoints of
	// ModeMetricsOnly exist, in any Mode. It has the same TLS, authentication and
	// limits. Needs Address. Default: none.
	MetricsAddress string
	// SocketOptions are set on the listening socket of Address.
	SocketOptions []SocketOption
	// Admit reports whether to accept a new connection; open is the number of
	// open connections. If nil, only Limits apply.
	Admit func(open int) bool

	// DebugEndpoints adds /debug/pprof/profile, /debug/pprof/trace and the profiles
	// of the Go runtime, for clients with RoleAdmin.
	DebugEndpoints bool

	// Limits bounds the cost of requests.
	Limits Limits

	// ShowUntyped shows values in /config_dump that only look secret: free-form
	// settings with names such as password or token, headers such as authorization,
	// and texts with private keys or signed tokens. Fields that a message definition
	// marks as sensitive are always hidden.
	ShowUntyped bool

	// Sources are the data that the endpoints read and change.
	Sources Sources

	// Store holds the stats to show, including the server's own. If nil, the server
	// creates one.
	Store *store.Store
	// Flusher flushes the stats before they are shown, if so configured. Optional.
	Flusher Flusher

	// AccessLog is called after each request. If nil, requests are not logged.
	AccessLog func(Access)
	// Logger receives the log of the server. If nil, nothing is logged.
	Logger *slog.Logger
	// Now returns the time for responses and logs. Default time.Now.
	Now func() time.Time
}

// Mode selects the available part of the interface.
type Mode uint8

// The modes.
const (
	ModeFull        Mode = iota
	ModeReadOnly         // mutations are answered with 403
	ModeMetricsOnly      // only the stats, /ready and /live exist
)

// Flusher ends the current interval before the stats are shown.
type Flusher interface {
	// FlushForAdmin flushes if flushing on request is configured, and otherwise does
	// nothing.
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
	StreamStall  time.Duration // to send 64 KiB of a response; default 10 s
	ResponseTime time.Duration // for a whole response; default 120 s
	ShutdownTime time.Duration // for running requests at shutdown; default 5 s

	HeavyRunning int           // concurrent large responses; default 4
	HeavyWaiting int           // queued large responses; default 16
	HeavyWait    time.Duration // maximum wait in the queue; default 2 s
	Compressors  int           // default 4; negative disables compression

	RegexBytes    int           // of a filter; default 1024
	RegexProgram  int           // instructions of a filter; default 10,000
	RegexBudget   time.Duration // of a request with a filter; default 2 s
	RegexParallel int           // concurrent requests with a filter; default 4

	StatsStreams int // concurrent streams of stats; default 64

	AuditEntries int // kept in memory; default 1000
	AuditBytes   int // of these; default 1 MiB
}

// reservedConnections is the number of connections reserved for /ready, /live and
// /server_info once all others are taken.
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
		{&l.StatsStreams, deltastream.DefaultClients}, {&l.AuditEntries, 1000}, {&l.AuditBytes, 1 << 20},
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

// absent returns the names of the disabled limits.
func (l Limits) absent() (names []string) {
	for f, v := range reflect.ValueOf(l).Fields() {
		if v.Int() < 0 && f.Name != "Compressors" { // without those nothing is compressed
			names = append(names, f.Name)
		}
	}
	return names
}

// bound returns a limit for code that cannot represent "no limit"; without is
// returned in that case.
func bound[T int | time.Duration](limit, without T) T {
	if limit < 0 {
		return without
	}
	return limit
}
