package outlier

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestStatusesAtTheEdgesOfErrors has the statuses next to the ones counted as errors and as
// failures of a gateway.
func TestStatusesAtTheEdgesOfErrors(t *testing.T) {
	for code, want := range map[int]struct{ errors, gateway uint64 }{
		499: {0, 0}, 500: {1, 0}, 501: {1, 0}, 502: {1, 1}, 503: {1, 1}, 504: {1, 1}, 505: {1, 0}, 599: {1, 0}, 600: {0, 0},
	} {
		r := newRig(1, func(s *config.Outlier) { s.Consecutive5xx, s.ConsecutiveGatewayFailure = 1, 1 }, nil)
		codes(r.hosts[0], code)
		if e, g := r.detected[Consecutive5xx].Value(), r.detected[ConsecutiveGatewayFailure].Value(); e != want.errors || g != want.gateway {
			t.Errorf("%d: %d errors and %d gateway failures, want %d and %d", code, e, g, want.errors, want.gateway)
		}
	}
}

// TestResultsWithoutAStatus has each result, alone, with a limit of one error of each kind.
func TestResultsWithoutAStatus(t *testing.T) {
	type found struct{ errors, gateway, local uint64 }
	for result, want := range map[host.Result]struct{ joined, split found }{
		host.ConnectTimeout: {found{1, 1, 0}, found{0, 0, 1}},
		host.ConnectFailed:  {found{1, 1, 0}, found{0, 0, 1}},
		host.ConnectSuccess: {},
		host.RequestTimeout: {found{1, 1, 0}, found{0, 0, 1}},
		host.RequestFailed:  {found{1, 0, 0}, found{1, 1, 0}},
		host.RequestSuccess: {},
	} {
		for _, split := range []bool{false, true} {
			r := newRig(1, func(s *config.Outlier) {
				s.Consecutive5xx, s.ConsecutiveGatewayFailure, s.ConsecutiveLocalFailure, s.SplitLocalErrors = 1, 1, 1, split
			}, nil)
			r.hosts[0].ReportResult(result, 0)
			got := found{r.detected[Consecutive5xx].Value(), r.detected[ConsecutiveGatewayFailure].Value(), r.detected[ConsecutiveLocalOriginFailure].Value()}
			if expected := map[bool]found{false: want.joined, true: want.split}[split]; got != expected {
				t.Errorf("result %d, split %v: %+v, want %+v", result, split, got, expected)
			}
		}
	}
}

// TestStatusesOfResults: the status of a complete answer counts, not that it came.
func TestStatusesOfResults(t *testing.T) {
	for _, split := range []bool{false, true} {
		r := newRig(1, func(s *config.Outlier) {
			s.Consecutive5xx, s.ConsecutiveGatewayFailure, s.SplitLocalErrors = 1, 1, split
		}, nil)
		r.hosts[0].ReportResult(host.RequestSuccess, 503)
		if a, b := r.detected[Consecutive5xx].Value(), r.detected[ConsecutiveGatewayFailure].Value(); a != 1 || b != 1 {
			t.Errorf("split %v: detected %d and %d, want 1 and 1", split, a, b)
		}
	}
}

// TestFewHostsKeepNoResults: the results of an interval with too few hosts for rates do
// not count in the next one.
func TestFewHostsKeepNoResults(t *testing.T) {
	r := newRig(4, func(s *config.Outlier) { s.Consecutive5xx = 1e6 }, nil)
	now := time.Now()
	for _, h := range r.hosts {
		results(h, 0, 200)
	}
	r.d.Tick(now)
	added := upstreamtest.Host(4)
	r.d.Add(added)
	for _, h := range append(r.hosts, added) {
		results(h, 200, 0)
	}
	r.d.Tick(now.Add(10 * time.Second))
	if got := r.d.Rates().Average; got != 100 {
		t.Errorf("average %v, want 100", got)
	}
}

// TestSuccessfulResultsCount has the volume of results that are no errors.
func TestSuccessfulResultsCount(t *testing.T) {
	for _, split := range []bool{false, true} {
		r := newRig(5, func(s *config.Outlier) { s.SplitLocalErrors = split }, nil)
		for _, h := range r.hosts {
			for range 100 {
				h.ReportResult(host.RequestSuccess, 0)
				h.ReportResult(host.ConnectSuccess, 0)
			}
		}
		r.d.Tick(time.Now())
		want := map[bool]float64{false: -1, true: 100}[split]
		if g := r.d.Rates(); g.Average != 100 || g.LocalAverage != want {
			t.Errorf("split %v: %+v, want averages of 100 and %v", split, g, want)
		}
	}
}

// TestEnforcingPercentage draws numbers around the percentage.
func TestEnforcingPercentage(t *testing.T) {
	for drawn, want := range map[uint64]bool{0: true, 49: true, 50: false, 99: false, 149: true, 150: false} {
		r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent, s.EnforcingConsecutive5xx = 100, 50 }, func() uint64 { return drawn })
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		if ejected(r.hosts[0]) != want || len(r.events) != 1 || r.events[0].Enforced != want {
			t.Errorf("number %d: ejected %v, events %+v", drawn, !want, r.events)
		}
	}
}

// TestJitterIsAtMostTheLimit draws numbers around the limit.
func TestJitterIsAtMostTheLimit(t *testing.T) {
	const limit = uint64(10 * time.Second)
	for drawn, want := range map[uint64]time.Duration{0: 0, limit: 10 * time.Second, limit + 1: 0, limit + 2: 1} {
		r := newRig(1, func(s *config.Outlier) {
			s.MaxEjectionPercent, s.MaxEjectionTimeJitter, s.EnforcingConsecutive5xx = 100, 10*time.Second, 100
		}, func() uint64 { return drawn })
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		if got := r.d.monitors[0].jitter; got != want {
			t.Errorf("number %d: %v, want %v", drawn, got, want)
		}
	}
}

// TestJitterOfAnEarlierEjectionEnds has a jitter that is turned off.
func TestJitterOfAnEarlierEjectionEnds(t *testing.T) {
	r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent, s.MaxEjectionTimeJitter = 100, 10*time.Second }, func() uint64 { return 7 })
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	r.d.Tick(time.Now().Add(time.Hour))
	r.runtime["outlier_detection.max_ejection_time_jitter_ms"] = 0
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	if got := r.d.monitors[0].jitter; got != 0 || !ejected(r.hosts[0]) {
		t.Errorf("jitter %v, ejected %v", got, ejected(r.hosts[0]))
	}
}

// TestVolumesAtTheMinimum has hosts with one request less than each minimum, and with as
// many.
func TestVolumesAtTheMinimum(t *testing.T) {
	for _, tt := range []struct {
		hosts, volume       int
		minHosts, minVolume uint32 // of success rates
		average, shown      bool
	}{
		{5, 100, 5, 100, true, true}, {5, 99, 5, 100, false, true}, {5, 50, 5, 100, false, true}, {5, 49, 5, 100, false, false},
		{4, 100, 5, 100, false, false}, {4, 100, 4, 100, true, true}, {5, 100, 6, 100, false, true}, {5, 30, 5, 30, true, true}, {5, 29, 5, 30, false, false},
		{5, 0, 0, 0, false, false}, {1, 1, 0, 0, true, true},
	} {
		r := newRig(tt.hosts, func(s *config.Outlier) {
			s.SuccessRateMinimumHosts, s.SuccessRateRequestVolume = tt.minHosts, tt.minVolume
		}, nil)
		for _, h := range r.hosts {
			results(h, tt.volume, 0)
		}
		r.d.Tick(time.Now())
		if got := r.d.Rates().Average; (got == 100) != tt.average || !tt.average && got != -1 {
			t.Errorf("%+v: average %v", tt, got)
		}
		if got := r.hosts[0].SuccessRate(); (got == 100) != tt.shown || !tt.shown && got != -1 {
			t.Errorf("%+v: rate of a host %v", tt, got)
		}
	}
}

// TestFailuresAtTheMinimum is the same for failure percentages.
func TestFailuresAtTheMinimum(t *testing.T) {
	for _, tt := range []struct {
		hosts, volume int
		want          uint64
	}{{5, 50, 1}, {5, 49, 0}, {4, 50, 0}} {
		r := newRig(tt.hosts, func(s *config.Outlier) {
			s.Consecutive5xx, s.SuccessRateRequestVolume, s.SuccessRateMinimumHosts, s.EnforcingFailurePercentage, s.MaxEjectionPercent = 0, 1, 50, 100, 100
		}, nil)
		for _, h := range r.hosts[1:] {
			results(h, tt.volume, 0)
		}
		results(r.hosts[0], 0, tt.volume)
		r.d.Tick(time.Now())
		if got := r.detected[FailurePercentage].Value(); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestEqualRatesEjectNoHost has rates that equal their threshold.
func TestEqualRatesEjectNoHost(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) { s.Consecutive5xx, s.MaxEjectionPercent = 0, 100 }, nil)
	for _, h := range r.hosts {
		results(h, 50, 50)
	}
	r.d.Tick(time.Now())
	if g := r.d.Rates(); g.Average != 50 || g.Threshold != 50 || r.detected[SuccessRate].Value() != 0 {
		t.Errorf("%+v, %d detected", g, r.detected[SuccessRate].Value())
	}
}

// TestRatesBelongToTheirHosts removes the first of some hosts with rates of their own, and
// ejects another, which is compared no more.
func TestRatesBelongToTheirHosts(t *testing.T) {
	r := newRig(7, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
	r.d.Remove(r.hosts[0])
	r.d.Add(r.hosts[3]) // again: no change
	codes(r.hosts[2], 500, 500, 500, 500, 500)
	for i, h := range r.hosts[1:] {
		results(h, 100-i, 0)
		results(h, 0, min(i, 4))
	}
	r.d.Tick(time.Now())
	for i, h := range r.hosts[1:] {
		want := 100 * float64(100-i) / float64(100-i+min(i, 4))
		if i == 1 {
			want = -1 // ejected
		}
		if got := h.SuccessRate(); got != want {
			t.Errorf("host %d: %v, want %v", i+1, got, want)
		}
	}
}

// TestBackoffStopsAtTheLongestEjection has ejections of 30 s, 60 s and no more. Their
// effect fades in three good intervals.
func TestBackoffStopsAtTheLongestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent, s.MaxEjectionTime = 100, time.Minute }, nil)
		h := r.hosts[0]
		eject := func() time.Duration {
			start := time.Now()
			codes(h, 500, 500, 500, 500, 500)
			for ejected(h) {
				time.Sleep(10 * time.Second)
				r.d.Tick(time.Now())
			}
			return time.Since(start)
		}
		for i, want := range []time.Duration{30, 60, 60, 60, 60} {
			if got := eject(); got != want*time.Second {
				t.Errorf("ejection %d: %v, want %v", i, got, want*time.Second)
			}
		}
		if got := r.d.monitors[0].backoff; got != 3 {
			t.Errorf("%d times the base, want 3", got)
		}
		for range 3 {
			time.Sleep(10 * time.Second)
			r.d.Tick(time.Now())
		}
		if got := eject(); got != 30*time.Second {
			t.Errorf("after three good intervals: %v", got)
		}
	})
}

// TestLongTimesDoNotOverflow has settings near the end of their range.
func TestLongTimesDoNotOverflow(t *testing.T) {
	r := newRig(1, nil, nil)
	r.runtime["outlier_detection.interval_ms"] = math.MaxUint64
	if got, want := r.d.Interval(), time.Duration(math.MaxInt64/1_000_000*1_000_000); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	r.runtime["outlier_detection.interval_ms"] = 0
	if got := r.d.Interval(); got != time.Millisecond {
		t.Errorf("no interval: %v", got)
	}
	for _, tt := range []struct {
		d    time.Duration
		n    uint64
		want time.Duration
	}{{0, math.MaxUint64, 0}, {1, math.MaxInt64, math.MaxInt64}, {1, math.MaxInt64 + 1, math.MaxInt64}, {2, math.MaxInt64 / 2, math.MaxInt64 - 1}, {2, math.MaxInt64/2 + 1, math.MaxInt64}, {3, 7, 21}} {
		if got := times(tt.d, tt.n); got != tt.want {
			t.Errorf("%d times %d: %d, want %d", tt.n, tt.d, got, tt.want)
		}
	}
	for _, tt := range [][3]time.Duration{{1, 2, 3}, {math.MaxInt64 - 2, 2, math.MaxInt64}, {math.MaxInt64 - 1, 2, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64}} {
		if got := saturatingAdd(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d and %d: %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}

// TestPercentagesInTheLog has rates outside of their range.
func TestPercentagesInTheLog(t *testing.T) {
	for rate, want := range map[float64]uint32{-1: 0, 0: 0, 0.5: 0, 1: 1, 99.9: 99, 100: 100, 100.5: 100, 1e300: 100} {
		if got := percent(rate); got != want {
			t.Errorf("%v: %d, want %d", rate, got, want)
		}
	}
	e := Event{Host: newRig(1, nil, nil).hosts[0]}
	if got := string(e.AppendJSON(nil, "c")); !strings.Contains(got, `"secs_since_last_action":"0"`) {
		t.Errorf("no time since the last event: %s", got)
	}
	e.SinceLast = -1
	if got := string(e.AppendJSON(nil, "c")); strings.Contains(got, "secs_since_last_action") {
		t.Errorf("no earlier event: %s", got)
	}
}

// TestTimeSinceTheLastEvent has an ejection, a return and an ejection, 40 and 7 seconds
// apart.
func TestTimeSinceTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		time.Sleep(40 * time.Second)
		r.d.Tick(time.Now())
		time.Sleep(7 * time.Second)
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		for i, want := range []time.Duration{-1, 40 * time.Second, 7 * time.Second} {
			if len(r.events) != 3 || r.events[i].SinceLast != want || r.events[i].Ejections != uint64(1+i/2) {
				t.Fatalf("event %d of %+v, want %v", i, r.events, want)
			}
		}
	})
}

// TestRemovalOfManyHosts: hosts leave one by one, so one must not cost a look at all
// others; the next tick drops them together.
func TestRemovalOfManyHosts(t *testing.T) {
	r := newRig(100, nil, nil)
	for _, h := range r.hosts[1:] {
		r.d.Remove(h)
	}
	if n := len(r.d.monitors); n != 100 {
		t.Errorf("%d monitors before the tick, want 100", n)
	}
	if r.d.Tick(time.Now()); len(r.d.monitors) != 1 || r.d.monitors[0].host != r.hosts[0] {
		t.Errorf("%d monitors after the tick, want that of the host that stays", len(r.d.monitors))
	}
}
