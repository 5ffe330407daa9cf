package lifecycle

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
)

// Config configures a [Server]. The zero value means all defaults.
type Config struct {
	// FlagsPath is a directory. A file named "drain" in it makes the server start
	// with a failed health check. If empty, there is none.
	FlagsPath string
	// DrainTime is the duration of a graceful drain. The default is 10 minutes;
	// negative means 0.
	DrainTime time.Duration
	// Strategy determines when connections close during a drain. The default is
	// Gradual.
	Strategy Strategy
	// Live and State are the gauges server.live and server.state. New sets both.
	// Live follows the health check, and State the initialization, at once; a
	// failed health check shows in State when the owner sets it, at a flush.
	Live, State *store.Gauge
	// Commit is called when all targets are ready, before the server is live. It
	// calls live, now or later, to make it so. If nil, the server is live at once.
	Commit func(live func())
	// Clock is the source of time. The zero value is the real one.
	Clock Clock
	// Random returns uniform random numbers. The default is that of math/rand/v2.
	Random func() uint64
	// Logger logs panics in functions called at the end of a drain. If nil, nothing is logged.
	Logger *slog.Logger
}

// Clock is a source of time. Nil functions mean the real time.
type Clock struct {
	Now func() time.Time
	// AfterFunc calls f in its own goroutine after d, unless stop is called
	// before; stop reports whether it prevented the call.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

func (c Clock) withDefaults() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return c
}

// Server tracks the state of one server. Create it with [New].
type Server struct {
	clock     Clock
	random    func() uint64
	gauges    struct{ live, state *store.Gauge }
	commit    func(live func())
	strategy  Strategy
	guard     guard.Guard
	drainTime time.Duration

	// phase is PreInitializing, Initializing or Live, in this order; failed is set
	// while the health check is failed manually. Both are written under healthMu.
	phase  atomic.Uint32
	failed atomic.Bool

	made time.Time // creation of the server

	// draining holds the start of the drain of each direction as Server.now returned it,
	// 0 without a drain. Written under drainMu.
	draining [2]atomic.Int64

	healthMu sync.Mutex // makes the state and its gauges change together

	drainMu sync.Mutex
	drains  [2]int64      // when StartDrain started a drain of each direction, or 0
	handoff int64         // when StartHandoff was called, or 0
	timers  []func() bool // stop functions of running drains
	closed  bool

	managersMu sync.Mutex
	managers   []*Manager // in creation order
	waiting    int        // managers that are not ready, and one for Initialize while it runs
	initDone   func()
}

const defaultDrainTime = 10 * time.Minute

// New returns a server in state PreInitializing.
func New(cfg Config) *Server {
	s := &Server{
		clock: cfg.Clock.withDefaults(), random: cfg.Random, commit: cfg.Commit,
		strategy: cfg.Strategy, drainTime: cfg.DrainTime, guard: guard.New(cfg.Logger),
	}
	s.gauges.live, s.gauges.state = cfg.Live, cfg.State
	s.made = s.clock.Now()
	if s.random == nil {
		s.random = rand.Uint64
	}
	s.drainTime = cmp.Or(s.drainTime, defaultDrainTime)
	s.drainTime = max(0, s.drainTime)
	s.phase.Store(uint32(PreInitializing))
	s.gauges.state.Set(uint64(PreInitializing))
	s.setHealth(cfg.FlagsPath != "" && exists(filepath.Join(cfg.FlagsPath, "drain")))
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// State returns the state to show.
func (s *Server) State() State {
	phase := State(s.phase.Load())
	if phase == Live && s.failed.Load() {
		return Draining
	}
	return phase
}

// Initialized reports whether the server has finished initializing, whatever its
// health.
func (s *Server) Initialized() bool { return State(s.phase.Load()) == Live }

// FailHealth makes inbound health checks fail until [Server.RestoreHealth].
func (s *Server) FailHealth() { s.setHealth(true) }

// RestoreHealth undoes FailHealth.
func (s *Server) RestoreHealth() { s.setHealth(false) }

// HealthFailed reports whether inbound health checks must fail.
func (s *Server) HealthFailed() bool { return s.failed.Load() }

func (s *Server) setHealth(failed bool) {
	s.healthMu.Lock()
	defer s.healthMu.Unlock()
	s.failed.Store(failed)
	if failed {
		s.gauges.live.Set(0)
	} else {
		s.gauges.live.Set(1)
	}
}

// move changes the phase, and reports false if it is not from.
func (s *Server) move(from, to State) bool {
	s.healthMu.Lock()
	defer s.healthMu.Unlock()
	if !s.phase.CompareAndSwap(uint32(from), uint32(to)) {
		return false
	}
	s.gauges.state.Set(uint64(s.State()))
	return true
}
