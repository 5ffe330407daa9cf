package lifecycle

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newGauge(name string) *store.Gauge {
	return store.New(store.Options{}).Root().Gauge(name)
}

func TestStateNumbersAndNames(t *testing.T) {
	want := map[State]string{0: "LIVE", 1: "DRAINING", 2: "PRE_INITIALIZING", 3: "INITIALIZING", 4: "UNKNOWN"}
	for s, name := range want {
		if s.String() != name {
			t.Errorf("state %d is %q, want %q", s, s, name)
		}
	}
}

func TestStateMoves(t *testing.T) {
	live, state := newGauge("live"), newGauge("state")
	s := New(Config{Live: live, State: state})
	step := func(name string, want State, liveValue uint64) {
		t.Helper()
		if got := s.State(); got != want || live.Value() != liveValue {
			t.Fatalf("%s: state %v, live %d; want %v, %d", name, got, live.Value(), want, liveValue)
		}
		if got := State(state.Value()); !s.Initialized() && got != want {
			t.Errorf("%s: server.state is %v, want %v", name, got, want)
		}
	}
	step("new", PreInitializing, 1)
	s.FailHealth()
	step("failed before init", PreInitializing, 0)
	target := s.NewManager(Listener, "a").Add("t", nil)
	s.Initialize(nil)
	step("waits for a target", Initializing, 0)
	if s.Initialized() {
		t.Error("initialized too early")
	}
	target.Ready()
	step("ready, health failed", Draining, 0)
	s.RestoreHealth()
	step("restored", Live, 1)
	s.RestoreHealth()
	step("restored again", Live, 1)
	s.FailHealth()
	s.FailHealth()
	step("failed", Draining, 0)
	if !s.Initialized() || !s.HealthFailed() {
		t.Error("flags do not follow the state")
	}
}

func TestDrainFile(t *testing.T) {
	dir := t.TempDir()
	if New(Config{FlagsPath: dir}).HealthFailed() {
		t.Error("failed without the file")
	}
	if New(Config{FlagsPath: filepath.Join(dir, "none")}).HealthFailed() {
		t.Error("failed without the directory")
	}
	if err := os.WriteFile(filepath.Join(dir, "drain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	live := newGauge("live")
	s := New(Config{FlagsPath: dir, Live: live})
	s.Initialize(nil)
	if s.State() != Draining || live.Value() != 0 {
		t.Errorf("state %v, live %d", s.State(), live.Value())
	}
}

func TestInitializeWithoutTargetsIsLiveAtOnce(t *testing.T) {
	s := New(Config{})
	calls := 0
	s.NewManager(Listener, "empty")
	s.Initialize(func() { calls++ })
	s.Initialize(func() { calls += 100 })
	if s.State() != Live || calls != 1 {
		t.Errorf("state %v, %d calls", s.State(), calls)
	}
}

func TestUnreadyTargets(t *testing.T) {
	s := New(Config{})
	var started []string
	start := func(name string) func() { return func() { started = append(started, name) } }
	a, b := s.NewManager(Listener, "Listener-local-init-manager ingress 57"), s.NewManager("cluster", "b")
	a1, a2 := a.Add("RdsRouteConfigSubscription main", start("a1")), a.Add("second", start("a2"))
	b1 := b.Add("cds", nil)
	want := []Unready{
		{Listener, "init manager Listener-local-init-manager ingress 57", []string{"target RdsRouteConfigSubscription main", "target second"}},
		{"cluster", "init manager b", []string{"target cds"}},
	}
	if diff := cmp.Diff(want, s.Unready()); diff != "" {
		t.Error(diff)
	}
	a2.Ready() // before the start counts as well
	s.Initialize(nil)
	if diff := cmp.Diff([]string{"a1", "a2"}, started); diff != "" {
		t.Error(diff)
	}
	want[0].Targets = want[0].Targets[:1]
	if diff := cmp.Diff(want, s.Unready()); diff != "" {
		t.Error(diff)
	}
	late := a.Add("late", start("late"))
	if len(started) != 3 {
		t.Error("a target added to a started manager was not started at once")
	}
	a1.Ready()
	a1.Ready()
	b1.Ready()
	if s.State() != Initializing {
		t.Fatalf("state %v while one target is not ready", s.State())
	}
	late.Ready()
	if s.State() != Live || s.Unready() != nil {
		t.Errorf("state %v, unready %v", s.State(), s.Unready())
	}
	warming := s.NewManager(Listener, "warming")
	warm := warming.Add("x", start("warm"))
	if s.State() != Live || len(s.Unready()) != 1 || len(started) != 4 {
		t.Errorf("state %v, unready %v, started %q", s.State(), s.Unready(), started)
	}
	warm.Ready()
	if s.Unready() != nil {
		t.Error("still unready")
	}
}

func TestRemovedManagerIsNotWaitedFor(t *testing.T) {
	s := New(Config{})
	before, after := s.NewManager(Listener, "before"), s.NewManager(Listener, "after")
	before.Add("never", nil)
	after.Add("never", nil)
	before.Remove()
	s.Initialize(nil)
	if s.State() != Initializing || len(s.Unready()) != 1 {
		t.Errorf("state %v, unready %v", s.State(), s.Unready())
	}
	after.Remove()
	if s.State() != Live || s.Unready() != nil {
		t.Errorf("state %v, unready %v", s.State(), s.Unready())
	}
}

// TestInitializeUnderLoad adds, completes and removes targets from many goroutines:
// the server becomes live exactly once, and only when none is pending.
func TestInitializeUnderLoad(t *testing.T) {
	s := New(Config{})
	var outstanding, live atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		m := s.NewManager(Listener, "m")
		for range 50 {
			outstanding.Add(1)
			target := m.Add("t", nil)
			wg.Go(func() { outstanding.Add(-1); target.Ready(); target.Ready() })
		}
		wg.Go(func() { s.Unready() })
	}
	s.Initialize(func() {
		live.Add(1)
		if left := outstanding.Load(); left != 0 {
			t.Errorf("live with %d targets left", left)
		}
	})
	wg.Wait()
	if live.Load() != 1 || s.State() != Live {
		t.Errorf("%d calls, state %v", live.Load(), s.State())
	}
}

func TestDrainCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{DrainTime: time.Minute})
		var done []string
		var mu sync.Mutex
		note := func(name string) func() { return func() { mu.Lock(); done = append(done, name); mu.Unlock() } }
		check := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, done); diff != "" {
				t.Error(diff)
			}
		}
		if s.Draining(true) || s.Draining(false) {
			t.Error("drains from the start")
		}
		if !s.StartDrain(true, note("inbound")) {
			t.Error("inbound drain not started")
		}
		if !s.Draining(true) || s.Draining(false) {
			t.Error("wrong direction drains")
		}
		if s.StartDrain(true, note("again")) {
			t.Error("covered drain started again")
		}
		time.Sleep(30 * time.Second)
		if !s.StartDrain(false, note("all")) {
			t.Error("wider drain not started")
		}
		if s.StartDrain(true, note("narrower")) || s.StartDrain(false, note("same")) {
			t.Error("covered drain started again")
		}
		check()
		time.Sleep(31 * time.Second)
		check("inbound")
		time.Sleep(30 * time.Second)
		check("inbound", "all")
		if s.StartDrain(false, note("after the end")) || !s.Draining(true) || !s.Draining(false) {
			t.Error("draining must stay")
		}
		if s.State() != PreInitializing {
			t.Errorf("state %v: draining must not change it", s.State())
		}
	})
}

func TestCloseCancelsDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{DrainTime: time.Minute})
		s.StartDrain(true, func() { t.Error("called after Close") })
		s.Close()
		time.Sleep(time.Hour)
		if s.StartDrain(false, nil) {
			t.Error("started after Close")
		}
	})
}

func TestShouldClose(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := Clock{Now: func() time.Time { return now }, AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } }}
	rng := rand.New(rand.NewPCG(1, 2))
	share := func(s *Server, inbound bool) float64 {
		n := 0
		for range 20000 {
			if s.ShouldClose(inbound) {
				n++
			}
		}
		return float64(n) / 20000
	}
	near := func(t *testing.T, got, want float64) {
		t.Helper()
		if got < want-0.02 || got > want+0.02 || (want == 0 || want == 1) && got != want {
			t.Errorf("closed %.3f of the connections, want %.3f", got, want)
		}
	}
	t.Run("gradual", func(t *testing.T) {
		s := New(Config{DrainTime: 100 * time.Second, Clock: clock, Random: rng.Uint64})
		near(t, share(s, true), 0)
		s.StartDrain(true, nil)
		if in, out := s.DrainEnd(true), s.DrainEnd(false); !in.Equal(now.Add(100*time.Second)) || !out.IsZero() {
			t.Errorf("the drains end at %v and %v", in, out)
		}
		for _, elapsed := range []float64{0, 10, 50, 90, 100, 1000} {
			now = time.Unix(1000, 0).Add(time.Duration(elapsed * float64(time.Second)))
			near(t, share(s, true), min(1, elapsed/100))
			near(t, share(s, false), 0)
		}
		now = time.Unix(1000, 0)
	})
	t.Run("immediate", func(t *testing.T) {
		s := New(Config{DrainTime: 100 * time.Second, Strategy: Immediate, Clock: clock})
		near(t, share(s, false), 0)
		s.StartDrain(false, nil)
		near(t, share(s, false), 1)
		near(t, share(s, true), 1)
	})
	t.Run("no-time", func(t *testing.T) {
		s := New(Config{DrainTime: -1, Clock: clock})
		s.StartDrain(false, nil)
		near(t, share(s, true), 1)
	})
	t.Run("health-failed", func(t *testing.T) {
		s := New(Config{Clock: clock})
		s.FailHealth()
		near(t, share(s, false), 1)
		s.RestoreHealth()
		near(t, share(s, false), 0)
	})
}

// TestDrainWhenTheClockIsSet: a drain goes on as time passes, whatever the time of day.
func TestDrainWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		now := time.Now()
		s := New(Config{DrainTime: 100 * time.Second, Clock: Clock{
			Now: func() time.Time { return now }, AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
		}, Random: func() uint64 { return uint64(50 * time.Second) }})
		s.StartDrain(false, nil)
		now = clocktest.Set(now, by)
		for _, closes := range []bool{false, true} { // 40 and 80 seconds after the start
			now = now.Add(40 * time.Second)
			if got := s.ShouldClose(true); got != closes {
				t.Errorf("clock set by %v: closes %t after %v", by, got, now.Sub(s.made))
			}
		}
	}
}

func TestStrategyNames(t *testing.T) {
	if Gradual.String() != "Gradual" || Immediate.String() != "Immediate" || New(Config{}).DrainTime() != 10*time.Minute {
		t.Error("names or default drain time wrong")
	}
}

func TestHealthSwitchUnderLoad(t *testing.T) {
	live := newGauge("live")
	s := New(Config{Live: live})
	s.Initialize(nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				if i%2 == 0 {
					s.FailHealth()
				} else {
					s.RestoreHealth()
				}
				s.State()
				s.ShouldClose(true)
			}
		})
	}
	wg.Wait()
	if (live.Value() == 0) != s.HealthFailed() {
		t.Error("gauge and flag disagree")
	}
}

// TestNoFlagsPath: without a directory of flags, the working directory is not used
// instead.
func TestNoFlagsPath(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drain", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if New(Config{}).HealthFailed() || !New(Config{FlagsPath: "."}).HealthFailed() {
		t.Error("want the health check to fail only where the path says so")
	}
}

// TestDrainTime: 0 means the default, and a negative time none.
func TestDrainTime(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, 1: 1, -1: 0, time.Hour: time.Hour} {
		if got := New(Config{DrainTime: given}).DrainTime(); got != want {
			t.Errorf("%v: %v, want %v", given, got, want)
		}
	}
}

func BenchmarkShouldClose(b *testing.B) {
	for _, draining := range []bool{false, true} {
		b.Run(map[bool]string{false: "draining=false", true: "draining=true"}[draining], func(b *testing.B) {
			s := New(Config{})
			if draining {
				s.StartDrain(false, nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.ShouldClose(true)
			}
		})
	}
}

// TestEndOfDrainPanics: a panic of a function called at the end of a drain is logged.
func TestEndOfDrainPanics(t *testing.T) {
	panics := guardtest.New(t)
	s := New(Config{DrainTime: -1, Logger: panics.Logger()})
	defer s.Close()
	if !s.StartDrain(false, func() { panic(guardtest.Canary) }) {
		t.Fatal("no drain")
	}
	panics.Caught("end of a drain")
}

// TestCommitComesBeforeLive: the server becomes live only when the commit allows it,
// which starts when all targets are ready.
func TestCommitComesBeforeLive(t *testing.T) {
	var live func()
	s := New(Config{Commit: func(f func()) { live = f }})
	target := s.NewManager(Listener, "a").Add("t", nil)
	done := 0
	s.Initialize(func() { done++ })
	if live != nil {
		t.Fatal("the commit begins before the targets are ready")
	}
	target.Ready()
	if live == nil || s.State() != Initializing || done != 0 {
		t.Fatalf("before the commit: state %v, done %d", s.State(), done)
	}
	live()
	live()
	if s.State() != Live || done != 1 {
		t.Errorf("after the commit: state %v, done %d", s.State(), done)
	}
}

// TestHandoff: a handoff that ends without a successor closes no connections any more,
// and leaves the drains that were asked for, before it or meanwhile, as they are.
func TestHandoff(t *testing.T) {
	now := time.Unix(1000, 0)
	s := New(Config{DrainTime: time.Minute, Random: func() uint64 { return uint64(30 * time.Second) }, Clock: Clock{
		Now:       func() time.Time { return now },
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { t.Error("canceled"); return true } },
	}})
	check := func(when string, in, out, close bool) {
		t.Helper()
		if s.Draining(true) != in || s.Draining(false) != out || s.ShouldClose(true) != close {
			t.Errorf("%s: draining %t and %t, connections close %t", when, s.Draining(true), s.Draining(false), s.ShouldClose(true))
		}
	}
	s.StartHandoff()
	check("handoff", true, true, false)
	now = now.Add(40 * time.Second)
	check("40 s of it", true, true, true)
	s.EndHandoff()
	check("after it", false, false, false)
	s.StartHandoff()
	if !s.StartDrain(true, func() {}) {
		t.Error("no drain during a handoff")
	}
	now = now.Add(20 * time.Second)
	s.EndHandoff()
	check("drain since a handoff", true, false, false)
	now = now.Add(20 * time.Second)
	s.StartHandoff()
	check("handoff during a drain", true, true, true)
	s.EndHandoff()
	check("drain since 40 s", true, false, true)
	if s.StartDrain(true, nil) || !s.StartDrain(false, nil) {
		t.Error("the drain is not what it was")
	}
}
