package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type counts struct {
	attempt, success, failure, network, passive, verify, healthy, degraded upstreamtest.Count
}

func (c *counts) stats() Stats {
	return Stats{
		c.attempt.Counter(), c.success.Counter(), c.failure.Counter(), c.network.Counter(),
		c.passive.Counter(), c.verify.Counter(), c.healthy.Gauge(), c.degraded.Gauge(),
	}
}

// script is a prober that answers one outcome after the other, and the last
// one for ever. A nil step hangs until the check times out.
type script struct {
	mu      sync.Mutex
	steps   []*Outcome
	at      []time.Time
	last    context.Context // of the last check
	running int
	closed  int
}

func (s *script) Probe(ctx context.Context) Outcome {
	s.mu.Lock()
	s.at, s.last = append(s.at, time.Now()), ctx
	o := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.mu.Unlock()
	if o == nil {
		s.mu.Lock()
		s.running++
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
		return Outcome{Kind: Network}
	}
	return *o
}

func (s *script) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func settings() config.HealthCheck {
	return config.HealthCheck{
		Timeout: time.Second, Interval: 10 * time.Second, UnhealthyThreshold: 3, HealthyThreshold: 2, ReuseConnection: true,
		NoTrafficInterval: 60 * time.Second, NoTrafficHealthyInterval: 50 * time.Second,
		UnhealthyInterval: 20 * time.Second, UnhealthyEdgeInterval: 5 * time.Second, HealthyEdgeInterval: 3 * time.Second,
	}
}

var (
	ok        = &Outcome{}
	bad       = &Outcome{Kind: Active}
	retriable = &Outcome{Kind: Active, Retriable: true}
	broken    = &Outcome{Kind: Network}
	shaky     = &Outcome{Degraded: true}
	lacking   = &Outcome{Kind: Local}
)

// TestResults writes down, check by check, the time since the start, the flags
// and the transition.
func TestResults(t *testing.T) {
	tests := []struct {
		name  string
		flags status.Flags
		steps []*Outcome
		want  string
	}{
		{"first check heals at once", status.FailedActiveHC, []*Outcome{ok, ok}, `
0s healthy 2
10s healthy 0`},
		{"later it takes the threshold", status.FailedActiveHC, []*Outcome{bad, ok, ok, ok}, `
0s /failed_active_hc 0
20s /failed_active_hc 1
23s healthy 2
33s healthy 0`},
		{"a failure in between starts again", status.FailedActiveHC, []*Outcome{bad, ok, bad, ok, ok}, `
0s /failed_active_hc 0
20s /failed_active_hc 1
23s /failed_active_hc 0
43s /failed_active_hc 1
46s healthy 2`},
		{"a bad answer fails at once", 0, []*Outcome{ok, bad, bad}, `
0s healthy 0
10s /failed_active_hc 2
30s /failed_active_hc 0`},
		{"network failures wait", 0, []*Outcome{broken, broken, broken, broken}, `
0s healthy 1
5s healthy 1
10s /failed_active_hc 2
30s /failed_active_hc 0`},
		{"retriable answers wait", 0, []*Outcome{retriable, retriable, ok, retriable, retriable, retriable}, `
0s healthy 1
5s healthy 1
10s healthy 0
20s healthy 1
25s healthy 1
30s /failed_active_hc 2`},
		{"timeouts wait and show", 0, []*Outcome{nil, nil, nil, broken, nil, ok, ok}, `
1s healthy 1
7s healthy 1
13s /failed_active_hc/active_hc_timeout 2
33s /failed_active_hc 0
54s /failed_active_hc/active_hc_timeout 0
1m14s /failed_active_hc/active_hc_timeout 1
1m17s healthy 2`},
		{"degraded at once", 0, []*Outcome{shaky, shaky, ok}, `
0s /degraded_active_hc 2
10s /degraded_active_hc 0
20s healthy 2`},
		{"degraded to the end", 0, []*Outcome{shaky}, `
0s /degraded_active_hc 2`},
		{"pending goes with any result", status.FailedActiveHC | status.PendingActiveHC, []*Outcome{broken, ok, ok}, `
0s /failed_active_hc 2
20s /failed_active_hc 1
23s healthy 2`},
		{"a lack of this machine fails nobody", 0, []*Outcome{ok, lacking, lacking, lacking, lacking, ok}, `
0s healthy 0
10s healthy 0
20s healthy 0
30s healthy 0
40s healthy 0
50s healthy 0`},
		{"nor does it count in a row", 0, []*Outcome{broken, broken, lacking, broken}, `
0s healthy 1
5s healthy 1
10s healthy 0
20s /failed_active_hc 2`},
		{"nor is it a first result", status.FailedActiveHC | status.PendingActiveHC, []*Outcome{lacking, lacking, ok, ok}, `
0s /failed_active_hc/pending_active_hc 0
20s /failed_active_hc/pending_active_hc 0
40s healthy 2
50s healthy 0`},
		{"nor does it undo a good one", status.FailedActiveHC, []*Outcome{bad, ok, lacking, ok}, `
0s /failed_active_hc 0
20s /failed_active_hc 1
23s /failed_active_hc 0
43s healthy 2`},
		{"asks to be excluded", 0, []*Outcome{{Kind: Active, Exclude: true}, ok, ok}, `
0s /failed_active_hc/excluded_via_immediate_hc_fail 2
20s /failed_active_hc/excluded_via_immediate_hc_fail 1
23s healthy 2`},
		{"asks to be excluded before it fails", 0, []*Outcome{{Kind: Active, Retriable: true, Exclude: true}, ok, ok}, `
0s /excluded_via_immediate_hc_fail 2
20s healthy 2
30s healthy 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c counts
				var got strings.Builder
				start := time.Now()
				left := len(tt.steps)
				done := make(chan struct{})
				p := &script{steps: slices.Clone(tt.steps)}
				k, err := New(Config{Check: settings(), Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Done: func(r Report) {
					if left == 0 {
						return
					}
					fmt.Fprintf(&got, "\n%v %s %d", time.Since(start), r.Host.Flags(), r.Transition)
					if left--; left == 0 {
						close(done)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				h := upstreamtest.Host(1)
				h.SetFlags(tt.flags)
				k.Add(h)
				<-done
				synctest.Wait()
				if got.String() != tt.want {
					t.Errorf("got%s\nwant%s", got.String(), tt.want)
				}
				healthy := uint64(1)
				if h.Flags()&status.FailedActiveHC != 0 {
					healthy = 0
				}
				degraded := uint64(0)
				if h.Flags()&status.DegradedActiveHC != 0 {
					degraded = 1
				}
				if c.healthy.Value() != healthy || c.degraded.Value() != degraded {
					t.Errorf("health_check.healthy = %d, degraded = %d with %s", c.healthy.Value(), c.degraded.Value(), h.Flags())
				}
				if c.attempt.Value() != c.success.Value()+c.failure.Value() {
					t.Errorf("attempt %d, success %d, failure %d", c.attempt.Value(), c.success.Value(), c.failure.Value())
				}
				k.Close()
				if c.healthy.Value() != 0 || c.degraded.Value() != 0 {
					t.Errorf("gauges %d, %d after the end", c.healthy.Value(), c.degraded.Value())
				}
				if p.closed == 0 {
					t.Error("the prober was not closed")
				}
			})
		})
	}
}

// TestLastCheck expects each host to know when it was checked last, with which result, and
// since when checks have failed or passed.
func TestLastCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := &script{steps: []*Outcome{ok, shaky, bad, broken, nil, lacking}}
		var got []string
		k, _ := New(Config{Check: settings(), Custom: func(*host.Host) Prober { return p }, Done: func(r Report) {
			c := r.Host.LastCheck()
			got = append(got, fmt.Sprint(c.Time.Sub(start), " ", c.Result, ", ", c.Failed, " since ", c.Since.Sub(start)))
		}})
		h := upstreamtest.Host(1)
		if h.LastCheck() != nil {
			t.Error("a new host was checked")
		}
		k.Add(h)
		time.Sleep(85 * time.Second)
		k.ReportImmediateFailure(h) // is reported, but no check
		k.Close()
		want := []string{"0s passed, false since 0s", "10s degraded, false since 0s", "20s bad answer, true since 20s", "40s no connection, true since 20s",
			"1m1s timeout, true since 20s", "1m21s could not run, true since 20s", "1m21s could not run, true since 20s"}
		if !slices.Equal(got, want) {
			t.Errorf("the last checks are %q, want %q", got, want)
		}
		if next := host.Replace(h, host.Spec{Address: h.Address()}, true); next.LastCheck() != h.LastCheck() {
			t.Error("the host that takes its place does not inherit it")
		}
	})
}

func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		p := &script{steps: []*Outcome{ok, bad, broken, nil, ok, lacking}}
		k, _ := New(Config{Check: settings(), Stats: c.stats(), Custom: func(*host.Host) Prober { return p }})
		k.Add(upstreamtest.Host(1))
		time.Sleep(75 * time.Second) // checks at 0, 10, 30, 50, 71, 74
		k.Close()
		got := []uint64{c.attempt.Value(), c.success.Value(), c.failure.Value(), c.network.Value(), c.passive.Value()}
		if want := []uint64{6, 2, 4, 3, 0}; !slices.Equal(got, want) {
			t.Errorf("attempt, success, failure, network, passive = %v, want %v", got, want)
		}
	})
}

func TestACheckIsAwaitedOnce(t *testing.T) {
	for _, o := range []*Outcome{ok, bad, lacking} {
		synctest.Test(t, func(t *testing.T) {
			var c counts
			s := settings()
			s.InitialJitter = 2 * time.Second
			p := &script{steps: []*Outcome{o}}
			k, _ := New(Config{Check: s, Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Rand: func() uint64 { return uint64(time.Second) }})
			h := upstreamtest.Host(1)
			if !k.Add(h) || k.Add(h) {
				t.Error("want the host to be added once")
			}
			if !k.Awaited(h) || c.healthy.Value() != 1 {
				t.Errorf("%+v: not awaited before the first check, or not counted: %d", o, c.healthy.Value())
			}
			time.Sleep(2 * time.Second)
			if k.Awaited(h) {
				t.Errorf("%+v: awaited after the first check", o)
			}
			if p.last.Err() != context.Canceled {
				t.Errorf("%+v: the context of a check that has ended still runs", o)
			}
			k.Close()
		})
	}
}

func TestImmediateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var mu sync.Mutex
		var reports []Report // guarded by mu
		p := &script{steps: []*Outcome{ok}}
		s := settings()
		s.InitialJitter = 5 * time.Second
		k, _ := New(Config{Check: s, Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Rand: func() uint64 { return uint64(2 * time.Second) },
			Done: func(r Report) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, r)
			}})
		h := upstreamtest.Host(1)
		k.Add(h)
		k.ReportImmediateFailure(h)
		if h.Flags() != status.FailedActiveHC|status.ExcludedViaImmediateHCFail || c.passive.Value() != 1 || c.failure.Value() != 1 || c.attempt.Value() != 0 {
			t.Errorf("flags %s, passive %d, failure %d, attempt %d", h.Flags(), c.passive.Value(), c.failure.Value(), c.attempt.Value())
		}
		// The first-check rule is used up: it takes two good checks, at 2s and 5s.
		time.Sleep(3 * time.Second)
		if h.Flags()&status.FailedActiveHC == 0 {
			t.Error("healed by one check")
		}
		time.Sleep(3 * time.Second)
		if h.Flags() != 0 {
			t.Errorf("flags %s after two good checks", h.Flags())
		}
		k.Close()
		if len(reports) != 3 || reports[0].Outcome.Kind != Passive || reports[0].Transition != Changed {
			t.Errorf("reports %+v", reports)
		}
	})
}

func TestDelay(t *testing.T) {
	traffic := true
	run := map[string]uint64{}
	s := settings()
	k, err := New(Config{Check: s, Custom: func(*host.Host) Prober { return nil }, Traffic: func() bool { return traffic },
		Runtime: upstreamtest.Runtime(run), Rand: func() uint64 { return uint64(700*time.Millisecond) + uint64(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	healthy, failed := upstreamtest.Host(1), upstreamtest.Host(1)
	failed.SetFlags(status.FailedActiveHC)
	tests := []struct {
		name    string
		traffic bool
		h       *host.Host
		passed  bool
		t       Transition
		want    time.Duration
	}{
		{"good", true, healthy, true, Unchanged, 10 * time.Second},
		{"good, changed", true, healthy, true, Changed, 10 * time.Second},
		{"good, pending", true, failed, true, ChangePending, 3 * time.Second},
		{"bad", true, failed, false, Changed, 20 * time.Second},
		{"bad, pending", true, healthy, false, ChangePending, 5 * time.Second},
		{"quiet, healthy", false, healthy, true, Unchanged, 50 * time.Second},
		{"quiet, pending", false, healthy, false, ChangePending, 60 * time.Second},
		{"quiet, failed", false, failed, false, Unchanged, 60 * time.Second},
	}
	for _, tt := range tests {
		traffic = tt.traffic
		if got := k.delay(tt.h, tt.passed, tt.t); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	traffic = true
	k.c.Check.IntervalJitterPercent = 20 // 2 s of 10 s
	k.c.Check.IntervalJitter = time.Second
	// The number modulo 2s is 0.7 s, modulo 1 s as well.
	if got, want := k.delay(healthy, true, Unchanged), 11400*time.Millisecond; got != want {
		t.Errorf("with jitter: %v, want %v", got, want)
	}
	run["health_check.max_interval"] = 4000
	if got := k.delay(healthy, true, Unchanged); got != 4*time.Second {
		t.Errorf("max_interval 4000: %v", got)
	}
	run["health_check.min_interval"] = 7000
	if got := k.delay(healthy, true, Unchanged); got != 7*time.Second {
		t.Errorf("min_interval 7000: %v", got)
	}
	run["health_check.max_interval"], run["health_check.min_interval"] = 0, 0
	if got := k.delay(healthy, true, Unchanged); got != time.Millisecond {
		t.Errorf("max_interval 0: %v, want 1ms", got)
	}
}

// TestFirstCheckAfterItsJitter waits for a random part of it, within the bounds.
func TestFirstCheckAfterItsJitter(t *testing.T) {
	for _, tt := range []struct {
		jitter  time.Duration
		runtime map[string]uint64
		want    time.Duration
	}{
		{0, nil, 0},
		{0, map[string]uint64{"health_check.min_interval": 7000}, 0}, // there is nothing to wait for
		{5 * time.Second, nil, 3 * time.Second},
		{2 * time.Second, nil, time.Second}, // the number is 3 s
		{5 * time.Second, map[string]uint64{"health_check.max_interval": 1500}, 1500 * time.Millisecond},
		{5 * time.Second, map[string]uint64{"health_check.min_interval": 7000}, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var c counts
			s := settings()
			s.InitialJitter = tt.jitter
			p := &script{steps: []*Outcome{ok}}
			k, _ := New(Config{
				Check: s, Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Rand: func() uint64 { return uint64(3 * time.Second) },
				Runtime: upstreamtest.Runtime(tt.runtime),
			})
			start := time.Now()
			k.Add(upstreamtest.Host(1))
			time.Sleep(8 * time.Second)
			k.Close()
			if got := p.at[0].Sub(start); got != tt.want {
				t.Errorf("jitter %v, %v: first check after %v, want %v", tt.jitter, tt.runtime, got, tt.want)
			}
		})
	}
}

func TestRemovedDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		p := &script{steps: []*Outcome{nil}}
		k, _ := New(Config{Check: settings(), Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Done: func(Report) { t.Error("a removed host was reported") }})
		h := upstreamtest.Host(1)
		k.Add(h)
		time.Sleep(500 * time.Millisecond)
		k.Remove(h)
		k.Remove(h)
		synctest.Wait()
		if p.closed != 1 || c.healthy.Value() != 0 {
			t.Errorf("closed %d times, healthy = %d", p.closed, c.healthy.Value())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if c.attempt.Value() != 1 || p.closed != 1 {
			t.Errorf("%d attempts, closed %d times", c.attempt.Value(), p.closed)
		}
		if k.Awaited(h) || !k.Add(h) {
			t.Error("the host cannot come back")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if p.running != 1 {
			t.Error("no check is under way")
		}
		k.Close()
		if p.running != 0 || p.closed != 2 {
			t.Errorf("%d checks are under way after Close, closed %d times", p.running, p.closed)
		}
		k.Close()
		if p.closed != 2 {
			t.Error("closed again")
		}
		if k.Add(h) {
			t.Error("a closed checker took a host")
		}
	})
}

// TestRemovedByItsReport removes a host while its report is delivered.
func TestRemovedByItsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var k *Checker
		p := &script{steps: []*Outcome{ok}}
		k, _ = New(Config{Check: settings(), Stats: c.stats(), Custom: func(*host.Host) Prober { return p }, Done: func(r Report) { k.Remove(r.Host) }})
		k.Add(upstreamtest.Host(1))
		time.Sleep(time.Hour)
		synctest.Wait()
		if p.closed != 1 || c.attempt.Value() != 1 || c.healthy.Value() != 0 {
			t.Errorf("closed %d times, %d attempts, healthy = %d", p.closed, c.attempt.Value(), c.healthy.Value())
		}
		k.Close()
	})
}

func TestHostsThatAreNotChecked(t *testing.T) {
	var c counts
	k, _ := New(Config{Check: settings(), Stats: c.stats(), Custom: func(*host.Host) Prober { panic("no prober wanted") }})
	if k.Add(upstreamtest.Host(1, func(s *host.Spec) { s.DisableActiveHC = true })) || c.healthy.Value() != 0 {
		t.Error("a host with checks disabled is checked")
	}
}

func TestUnknownCustomCheck(t *testing.T) {
	s := settings()
	s.Kind, s.Custom.Name = config.CustomCheck, "redis"
	if _, err := New(Config{Check: s}); err == nil || !strings.Contains(err.Error(), `"redis"`) {
		t.Errorf("err = %v", err)
	}
}
