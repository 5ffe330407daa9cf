package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/product"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Stats are the statistics of a checker. Members may be nil.
type Stats struct {
	Attempt, Success, Failure, NetworkFailure, PassiveFailure, VerifyCluster *store.Counter
	Healthy, Degraded                                                        *store.Gauge
}

// Kind is the kind of result of a check.
type Kind uint8

// The kinds of outcomes.
const (
	Passed  Kind = iota
	Active       // a bad answer
	Network      // no connection, or it broke
	Timeout      // no answer in time
	Passive      // the answer to a normal request asked for it
	// Local is a check that could not run because this machine lacks a
	// resource. It counts as failed but does not change the state of the host.
	Local
)

// Outcome is the result of a check.
type Outcome struct {
	Kind Kind
	// Retriable makes an Active failure wait for the threshold.
	Retriable bool
	// Degraded marks a Passed host as degraded.
	Degraded bool
	// Exclude marks a failed host as excluded from the number of hosts.
	Exclude bool
	// Why names the fault in the answer of an Active failure, in a few words.
	Why string
}

// words returns the result of an active check as people read it.
func (o Outcome) words() string {
	switch o.Kind {
	case Passed:
		if o.Degraded {
			return "degraded"
		}
		return "passed"
	case Network:
		return "no connection"
	case Timeout:
		return "timeout"
	case Local:
		return "could not run"
	}
	return cmp.Or(o.Why, "bad answer")
}

// Prober checks one host, one check at a time.
type Prober interface {
	// Probe runs a check and returns, at the latest when ctx is done.
	Probe(ctx context.Context) Outcome
	// Close releases resources kept between checks.
	Close()
}

// Transition is the effect of a check on the state of its host.
type Transition uint8

// The transitions.
const (
	Unchanged     Transition = iota
	ChangePending            // a threshold is not reached yet
	Changed                  // the flags of the host changed
)

// Report is one completed check.
type Report struct {
	Host       *host.Host
	Outcome    Outcome
	Transition Transition
	Before     status.Flags // of the host, before the check was applied
}

// Config configures a [Checker].
type Config struct {
	Check   config.HealthCheck
	Cluster string // host of requests that name no other
	Product string // in header names; default "proxy"
	Stats   Stats

	// Dial connects to a host, with TLS if the host uses it. Nil dials in plain
	// text.
	Dial func(ctx context.Context, h *host.Host, a config.Address) (net.Conn, error)
	// IsLocal reports whether an error of Dial is due to this machine rather than the
	// host. Nil means that none is.
	IsLocal func(error) bool
	// ProtocolError is called for each answer that violates the protocol, unless it is
	// nil.
	ProtocolError func()
	// Custom makes the probers of a custom check.
	Custom func(h *host.Host) Prober
	// Traffic reports whether the cluster ever had traffic. Without traffic,
	// checks are less frequent. Nil means that it had.
	Traffic func() bool
	// Runtime overrides numbers by key, "health_check.…". Nil overrides nothing.
	Runtime config.Runtime
	// Rand returns uniform random numbers; nil means math/rand/v2.
	Rand func() uint64
	// Done is called with the report of each completed check, without a lock held,
	// unless it is nil.
	Done func(Report)
	// Log is called with events for the event log, in order and without a lock held,
	// unless it is nil.
	Log func(Event)
	// Logger logs panics in checks, in Done and in Log. A check that panics
	// does not affect its host. If nil, nothing is logged.
	Logger *slog.Logger
}

// Checker checks the hosts of a cluster. All methods are safe for concurrent
// use.
type Checker struct {
	c      Config
	prober func(h *host.Host) Prober

	mu       sync.Mutex
	sessions map[*host.Host]*session
	closed   bool
	running  sync.WaitGroup // checks under way
}

func (k *Checker) guard() guard.Guard { return guard.New(k.c.Logger) }

// New returns a checker without hosts.
func New(c Config) (*Checker, error) {
	c.Product = cmp.Or(c.Product, product.Default)
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	if c.Runtime == nil {
		c.Runtime = config.NoRuntime{}
	}
	if c.Traffic == nil {
		c.Traffic = func() bool { return true }
	}
	if c.Done == nil {
		c.Done = func(Report) {}
	}
	if c.IsLocal == nil {
		c.IsLocal = func(error) bool { return false }
	}
	if c.ProtocolError == nil {
		c.ProtocolError = func() {}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, _ *host.Host, a config.Address) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, a.Network(), a.String())
		}
	}
	k := &Checker{c: c, sessions: make(map[*host.Host]*session)}
	switch {
	case c.Custom != nil:
		k.prober = c.Custom
	case c.Check.Kind == config.HTTPCheck:
		var service *match.Matcher
		if s := c.Check.HTTP.ServiceName; s != nil {
			m, err := matcher(s)
			if err != nil {
				return nil, err
			}
			service = &m
		}
		k.prober = func(h *host.Host) Prober {
			return &httpProber{newTransport(&k.c, h, c.Check.HTTP.HTTP2), service}
		}
	case c.Check.Kind == config.TCPCheck:
		k.prober = func(h *host.Host) Prober { return &tcpProber{c: &k.c, host: h} }
	case c.Check.Kind == config.GRPCCheck:
		k.prober = func(h *host.Host) Prober { return newGRPCProber(&k.c, h) }
	default:
		return nil, fmt.Errorf("health: no prober for the custom check %q", c.Check.Custom.Name)
	}
	return k, nil
}

func matcher(s *config.StringMatcher) (match.Matcher, error) {
	var kind match.Kind
	switch s.Kind {
	case config.MatchExact:
		kind = match.KindExact
	case config.MatchPrefix:
		kind = match.KindPrefix
	case config.MatchSuffix:
		kind = match.KindSuffix
	case config.MatchContains:
		kind = match.KindContains
	case config.MatchRegex:
		kind = match.KindRegex
	default:
		return match.Matcher{}, errors.New("health: custom matchers of service names are not supported")
	}
	return match.New(kind, s.Pattern, s.IgnoreCase)
}

// Add starts to check h. It returns false if active checks are disabled for h.
func (k *Checker) Add(h *host.Host) bool {
	if h.DisableActiveHC() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.sessions[h] != nil {
		return false
	}
	s := &session{k: k, host: h, prober: k.prober(h), first: true}
	k.sessions[h] = s
	s.start()
	return true
}

// Awaited reports whether the first check of h has not completed yet.
func (k *Checker) Awaited(h *host.Host) bool {
	k.mu.Lock()
	s := k.sessions[h]
	k.mu.Unlock()
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.tried
}

// Remove stops checking h. A running check is cancelled and not reported.
func (k *Checker) Remove(h *host.Host) {
	k.mu.Lock()
	s := k.sessions[h]
	delete(k.sessions, h)
	k.mu.Unlock()
	if s != nil {
		s.stop()
	}
}

// Close stops all checks and waits for running ones. It must not be called from the
// Done callback.
func (k *Checker) Close() {
	k.mu.Lock()
	k.closed = true
	sessions := k.sessions
	k.sessions = make(map[*host.Host]*session)
	k.mu.Unlock()
	for _, s := range sessions {
		s.stop()
	}
	k.running.Wait()
}

// ReportImmediateFailure marks h as failed and excluded until it is healthy again. Call
// it when a response of h carries the header for immediate failure.
func (k *Checker) ReportImmediateFailure(h *host.Host) {
	k.mu.Lock()
	s := k.sessions[h]
	k.mu.Unlock()
	if s != nil {
		s.passive()
	}
}

// errPanic stands for a panic, which says nothing about a host.
var errPanic = errors.New("health: panic while connecting")

// unreachable returns the outcome of a check that failed to connect.
func (c *Config) unreachable(err error) Outcome {
	if errors.Is(err, errPanic) || c.IsLocal(err) {
		return Outcome{Kind: Local}
	}
	return c.broken(err)
}

// broken returns the outcome of a check whose connection broke.
func (c *Config) broken(err error) Outcome {
	if isProtocol(err) {
		c.ProtocolError()
	}
	return Outcome{Kind: Network}
}

// isProtocol reports whether err of net/http is a protocol error of the peer. The types
// are not exported, so it looks at the text.
func isProtocol(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"malformed", "invalid byte in chunk length", "PROTOCOL_ERROR", "FRAME_SIZE_ERROR", "COMPRESSION_ERROR"},
		func(s string) bool { return strings.Contains(text, s) })
}

// delay returns the time to the next check.
func (k *Checker) delay(h *host.Host, passed bool, t Transition) time.Duration {
	c := &k.c.Check
	var base time.Duration
	switch pending := t == ChangePending; {
	case !k.c.Traffic():
		base = c.NoTrafficInterval
		if h.Flags()&status.FailedActiveHC == 0 && !pending {
			base = c.NoTrafficHealthyInterval
		}
	case passed && pending:
		base = c.HealthyEdgeInterval
	case passed:
		base = c.Interval
	case pending:
		base = c.UnhealthyEdgeInterval
	default:
		base = c.UnhealthyInterval
	}
	// Parts first, so that long intervals do not overflow.
	spread := base / 100 * time.Duration(c.IntervalJitterPercent)
	return k.clamp(base + k.random(spread) + k.random(c.IntervalJitter))
}

// random returns a random duration in [0, d).
func (k *Checker) random(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(k.c.Rand() % uint64(d))
}

// clamp applies the bounds of the runtime.
func (k *Checker) clamp(d time.Duration) time.Duration {
	const longest = math.MaxInt64 / uint64(time.Millisecond)
	bound := func(key string, ms uint64) time.Duration {
		return time.Duration(min(k.c.Runtime.Uint(key, ms), longest)) * time.Millisecond
	}
	d = min(d, bound("health_check.max_interval", longest))
	return max(d, bound("health_check.min_interval", 0), time.Millisecond)
}
