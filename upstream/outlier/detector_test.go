package outlier

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// rig is a detector with everything it counts.
type rig struct {
	d                                                     *Detector
	hosts                                                 []*host.Host
	active, enforcedTotal, overflow, total, old5, oldRate upstreamtest.Count
	detected, enforced                                    [7]upstreamtest.Count
	runtime                                               map[string]uint64

	mu      sync.Mutex // guards what follows
	events  []Event
	changed []*host.Host
}

// defaults are the settings of an empty configuration.
func defaults() config.Outlier {
	return config.Outlier{
		Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionTime: 300 * time.Second, MaxEjectionPercent: 10,
		Consecutive5xx: 5, ConsecutiveGatewayFailure: 5, ConsecutiveLocalFailure: 5,
		EnforcingConsecutive5xx: 100, EnforcingSuccessRate: 100, EnforcingConsecutiveLocalFailure: 100, EnforcingLocalSuccessRate: 100,
		SuccessRateMinimumHosts: 5, SuccessRateRequestVolume: 100, SuccessRateStdevFactor: 1900,
		FailurePercentageThreshold: 85, FailurePercentageMinimumHosts: 5, FailurePercentageRequestVolume: 50,
		UnejectOnCheck: true,
	}
}

func newRig(n int, change func(*config.Outlier), rnd func() uint64) *rig {
	s := defaults()
	if change != nil {
		change(&s)
	}
	r := &rig{runtime: map[string]uint64{}}
	st := Stats{
		EjectionsActive: r.active.Gauge(), EjectionsEnforcedTotal: r.enforcedTotal.Counter(), EjectionsOverflow: r.overflow.Counter(),
		EjectionsTotal: r.total.Counter(), EjectionsConsecutive5xx: r.old5.Counter(), EjectionsSuccessRateSeen: r.oldRate.Counter(),
	}
	for k := range r.detected {
		st.EjectionsDetected[k], st.EjectionsEnforced[k] = r.detected[k].Counter(), r.enforced[k].Counter()
	}
	r.d = New(Config{
		Settings: &s, Stats: st, Rand: rnd,
		Runtime: upstreamtest.Runtime(r.runtime),
		Changed: func(h *host.Host, _ status.Flags) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed = append(r.changed, h)
		},
		Log: func(e Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	})
	for i := range n {
		h := upstreamtest.Host(i)
		r.hosts = append(r.hosts, h)
		r.d.Add(h)
	}
	return r
}

func ejected(h *host.Host) bool { return h.Flags()&status.FailedOutlierCheck != 0 }

func codes(h *host.Host, list ...int) {
	for _, c := range list {
		h.ReportCode(c)
	}
}

func results(h *host.Host, good, bad int) {
	for range good {
		h.ReportCode(200)
	}
	for range bad {
		h.ReportCode(500)
	}
}

func TestRunsOfErrors(t *testing.T) {
	oneHost := func(s *config.Outlier) { s.MaxEjectionPercent = 100 }
	both := func(s *config.Outlier) { oneHost(s); s.EnforcingConsecutiveGatewayFailure = 100 }
	split := func(s *config.Outlier) { oneHost(s); s.SplitLocalErrors = true }
	type res struct {
		r host.Result
		n int
	}
	tests := []struct {
		name    string
		change  func(*config.Outlier)
		codes   []int
		results []res
		found   map[Kind]uint64
		ejected bool
	}{
		{"four", oneHost, []int{500, 500, 500, 500}, nil, nil, false},
		{"five", oneHost, []int{500, 500, 500, 500, 500}, nil, map[Kind]uint64{Consecutive5xx: 1}, true},
		{"broken by success", oneHost, []int{500, 500, 500, 500, 404, 500, 500, 500, 500}, nil, nil, false},
		{"gateway not enforced", oneHost, []int{503, 503, 502, 504, 503}, nil, map[Kind]uint64{ConsecutiveGatewayFailure: 1, Consecutive5xx: 1}, true},
		{"gateway broken by 500", both, []int{503, 503, 500, 503, 503}, nil, map[Kind]uint64{Consecutive5xx: 1}, true},
		{"gateway broken by 500 again", func(s *config.Outlier) { both(s); s.Consecutive5xx = 0 }, []int{503, 503, 503, 500, 503, 503, 503, 503}, nil, nil, false},
		{"gateway broken by 200", both, []int{503, 503, 503, 503, 200, 503, 503, 503, 503}, nil, nil, false},
		{"gateway enforced first", both, []int{503, 503, 503, 503, 503}, nil, map[Kind]uint64{ConsecutiveGatewayFailure: 1}, true},
		{"results become codes", oneHost, nil, []res{{host.ConnectTimeout, 0}, {host.ConnectFailed, 0}, {host.RequestFailed, 0}, {host.RequestTimeout, 0}, {host.ConnectSuccess, 0}, {host.ConnectFailed, 0}}, map[Kind]uint64{Consecutive5xx: 1}, true},
		{"a code decides", oneHost, nil, []res{{host.ConnectFailed, 200}, {host.ConnectFailed, 200}, {host.ConnectFailed, 200}, {host.ConnectFailed, 200}, {host.ConnectFailed, 200}}, nil, false},
		{"split: local failures", split, nil, []res{{host.ConnectTimeout, 0}, {host.ConnectFailed, 0}, {host.ConnectFailed, 0}, {host.ConnectFailed, 0}, {host.RequestFailed, 0}, {host.ConnectFailed, 0}}, map[Kind]uint64{ConsecutiveLocalOriginFailure: 1}, true},
		{"split: connected", split, nil, []res{{host.ConnectFailed, 0}, {host.ConnectFailed, 0}, {host.ConnectFailed, 0}, {host.ConnectFailed, 0}, {host.ConnectSuccess, 0}, {host.ConnectFailed, 0}}, nil, false},
		{"split: answers", split, nil, []res{{host.RequestFailed, 0}, {host.RequestFailed, 0}, {host.RequestFailed, 0}, {host.RequestFailed, 0}, {host.RequestFailed, 0}}, map[Kind]uint64{ConsecutiveGatewayFailure: 1, Consecutive5xx: 1}, true},
		{"limit 0 never fires", func(s *config.Outlier) { oneHost(s); s.Consecutive5xx, s.ConsecutiveGatewayFailure = 0, 0 }, []int{503, 503, 503, 503, 503, 503, 503}, nil, nil, false},
		{"not enforced", func(s *config.Outlier) { oneHost(s); s.EnforcingConsecutive5xx = 0 }, []int{500, 500, 500, 500, 500, 500, 500, 500, 500, 500}, nil, map[Kind]uint64{Consecutive5xx: 2}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(1, tt.change, nil)
			codes(r.hosts[0], tt.codes...)
			for _, x := range tt.results {
				r.hosts[0].ReportResult(x.r, x.n)
			}
			for k := range r.detected {
				if got, want := r.detected[k].Value(), tt.found[Kind(k)]; got != want {
					t.Errorf("detected_%s = %d, want %d", Kind(k), got, want)
				}
			}
			if ejected(r.hosts[0]) != tt.ejected || (r.active.Value() == 1) != tt.ejected || (r.enforcedTotal.Value() == 1) != tt.ejected {
				t.Errorf("flags %s, active %d, enforced %d; want ejected=%t", r.hosts[0].Flags(), r.active.Value(), r.enforcedTotal.Value(), tt.ejected)
			}
			if (len(r.changed) == 1) != tt.ejected {
				t.Errorf("told of %d changes", len(r.changed))
			}
		})
	}
}

func TestMaxEjectionPercent(t *testing.T) {
	bad := []int{500, 500, 500, 500, 500}
	tests := []struct {
		hosts    int
		percent  uint32
		one      bool
		bad      int
		want     uint64
		overflow uint64
	}{
		{10, 10, false, 3, 1, 2},
		{9, 10, false, 2, 0, 2},
		{9, 10, true, 2, 1, 1},
		{4, 50, false, 4, 2, 2},
		{3, 0, true, 3, 1, 2},
		{3, 0, false, 1, 0, 1},
		{2, 100, false, 2, 2, 0},
	}
	for _, tt := range tests {
		r := newRig(tt.hosts, func(s *config.Outlier) { s.MaxEjectionPercent, s.AlwaysEjectOne = tt.percent, tt.one }, nil)
		for _, h := range r.hosts[:tt.bad] {
			codes(h, bad...)
		}
		if r.active.Value() != tt.want || r.overflow.Value() != tt.overflow {
			t.Errorf("%+v: active %d, overflow %d", tt, r.active.Value(), r.overflow.Value())
		}
		if got := r.detected[Consecutive5xx].Value(); got != uint64(tt.bad) || r.old5.Value() != got {
			t.Errorf("%+v: detected %d, %d", tt, got, r.old5.Value())
		}
		if r.total.Value() != tt.want {
			t.Errorf("%+v: ejections_total %d", tt, r.total.Value())
		}
	}
}

func TestSuccessRate(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) { s.Consecutive5xx = 0; s.MaxEjectionPercent = 50 }, nil)
	for i, rate := range []int{98, 97, 99, 98, 60} {
		results(r.hosts[i], rate, 100-rate)
	}
	r.d.Tick(time.Now())
	got := r.d.Rates()
	if math.Abs(got.Average-90.4) > 1e-9 || math.Abs(got.Threshold-61.495) > 1e-3 {
		t.Errorf("average %v, threshold %v; want 90.4, 61.495", got.Average, got.Threshold)
	}
	if got.LocalAverage != -1 || got.LocalThreshold != -1 {
		t.Errorf("local figures %v, %v without data", got.LocalAverage, got.LocalThreshold)
	}
	for i, h := range r.hosts {
		if ejected(h) != (i == 4) {
			t.Errorf("host %d: %s", i, h.Flags())
		}
	}
	if r.hosts[4].SuccessRate() != 60 || r.hosts[4].LocalOriginSuccessRate() != -1 {
		t.Errorf("rates %v, %v", r.hosts[4].SuccessRate(), r.hosts[4].LocalOriginSuccessRate())
	}
	if r.enforced[SuccessRate].Value() != 1 || r.oldRate.Value() != 1 || r.total.Value() != 1 {
		t.Errorf("enforced %d, old %d, total %d", r.enforced[SuccessRate].Value(), r.oldRate.Value(), r.total.Value())
	}
	// Nothing in the next interval: no figures.
	r.d.Tick(time.Now())
	if got := r.d.Rates(); got.Average != -1 || got.Threshold != -1 || r.hosts[0].SuccessRate() != -1 {
		t.Errorf("figures %+v, host %v after a quiet interval", got, r.hosts[0].SuccessRate())
	}
}

func TestSuccessRateNeedsHostsAndVolume(t *testing.T) {
	quiet := func(s *config.Outlier) { s.Consecutive5xx = 0; s.MaxEjectionPercent = 100 }
	r := newRig(4, quiet, nil) // below both minima
	for _, h := range r.hosts {
		results(h, 100, 0)
	}
	r.d.Tick(time.Now())
	if r.d.Rates().Average != -1 || r.hosts[0].SuccessRate() != -1 {
		t.Errorf("four hosts: average %v, host %v", r.d.Rates().Average, r.hosts[0].SuccessRate())
	}
	r = newRig(5, quiet, nil)
	for i, h := range r.hosts {
		results(h, 60-i*5, 0) // 60, 55, 50: enough to be shown; 45, 40: not
	}
	r.d.Tick(time.Now())
	if r.d.Rates().Average != -1 {
		t.Errorf("low volume: average %v", r.d.Rates().Average)
	}
	for i, h := range r.hosts {
		want := 100.0
		if i > 2 {
			want = -1
		}
		if h.SuccessRate() != want {
			t.Errorf("host %d: rate %v, want %v", i, h.SuccessRate(), want)
		}
	}
}

func TestFailurePercentage(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) {
		s.Consecutive5xx, s.EnforcingFailurePercentage, s.MaxEjectionPercent = 0, 100, 100
		s.EnforcingSuccessRate = 100
		s.SuccessRateStdevFactor = 1000
	}, nil)
	for i, good := range []int{15, 16, 100, 100, 100} {
		results(r.hosts[i], good, 100-good)
	}
	r.d.Tick(time.Now())
	// Host 0 is below both thresholds; it is ejected once, by its success rate.
	if !ejected(r.hosts[0]) || r.hosts[1].Flags() != r.hosts[0].Flags() {
		t.Fatalf("flags %s and %s", r.hosts[0].Flags(), r.hosts[1].Flags())
	}
	if n := r.active.Value(); n != 2 {
		t.Errorf("active = %d, want 2", n)
	}
	if n := r.detected[FailurePercentage].Value(); n != 0 {
		t.Errorf("%d hosts were ejected twice", n)
	}

	r = newRig(5, func(s *config.Outlier) {
		s.Consecutive5xx, s.EnforcingFailurePercentage, s.MaxEjectionPercent = 0, 100, 100
		s.SuccessRateRequestVolume = 1000
	}, nil)
	for i, good := range []int{15, 16, 100, 100, 100} {
		results(r.hosts[i], good, 100-good)
	}
	r.d.Tick(time.Now())
	for i, h := range r.hosts {
		if ejected(h) != (i == 0) {
			t.Errorf("host %d: %s; 85 percent is the limit", i, h.Flags())
		}
	}
}

func TestLocalOriginRates(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) {
		s.SplitLocalErrors, s.ConsecutiveLocalFailure, s.MaxEjectionPercent = true, 0, 100
	}, nil)
	for i, h := range r.hosts {
		for n := range 100 {
			if i == 4 && n < 40 {
				h.ReportResult(host.ConnectFailed, 0)
			} else {
				h.ReportResult(host.ConnectSuccess, 0)
			}
		}
	}
	r.d.Tick(time.Now())
	if !ejected(r.hosts[4]) || r.enforced[LocalOriginSuccessRate].Value() != 1 || r.hosts[4].LocalOriginSuccessRate() != 60 {
		t.Errorf("flags %s, enforced %d, rate %v", r.hosts[4].Flags(), r.enforced[LocalOriginSuccessRate].Value(), r.hosts[4].LocalOriginSuccessRate())
	}
	if g := r.d.Rates(); math.Abs(g.LocalAverage-92) > 1e-9 || g.Average != -1 {
		t.Errorf("figures %+v", g)
	}
}

func TestEjectionTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, func(s *config.Outlier) {
			s.MaxEjectionPercent = 100
			s.MaxEjectionTime = 70 * time.Second
		}, func() uint64 { return 0 })
		h := r.hosts[0]
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.d.Run(ctx) }()
		// Just off the ticks, so that each ejection is seen at the next but one.
		time.Sleep(time.Second)
		eject := func() time.Duration {
			t.Helper()
			start := time.Now()
			codes(h, 500, 500, 500, 500, 500)
			if !ejected(h) {
				t.Fatal("not ejected")
			}
			for ejected(h) {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			return time.Since(start)
		}
		// Ticks are at whole tens of seconds: 30 s become 39, 60 become 60+, and
		// the cap of 70 holds from then on.
		for i, want := range []time.Duration{39, 60, 70, 70} {
			if got := eject(); got < want*time.Second || got >= (want+11)*time.Second {
				t.Errorf("ejection %d took %v, want %v rounded up to a tick", i, got, want*time.Second)
			}
		}
		// The memory fades by one each interval.
		time.Sleep(10 * 10 * time.Second)
		if got := eject(); got < 30*time.Second || got > 41*time.Second {
			t.Errorf("after a good time: %v, want 30s rounded up", got)
		}
		if r.active.Value() != 0 {
			t.Errorf("active = %d", r.active.Value())
		}
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestEjectionJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, func(s *config.Outlier) {
			s.MaxEjectionPercent, s.MaxEjectionTimeJitter = 100, 10*time.Second
		}, func() uint64 { return uint64(9 * time.Second) })
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		start := time.Now()
		r.d.Tick(start.Add(38 * time.Second))
		if !ejected(r.hosts[0]) {
			t.Error("back before 30s and 9s of jitter")
		}
		r.d.Tick(start.Add(39 * time.Second))
		if ejected(r.hosts[0]) {
			t.Error("not back after 39s")
		}
	})
}

func TestReturnResetsRuns(t *testing.T) {
	r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
	h := r.hosts[0]
	codes(h, 500, 500, 500, 500, 500)
	codes(h, 503, 503, 503, 503) // traffic in panic
	r.d.Tick(time.Now().Add(time.Hour))
	if ejected(h) {
		t.Fatal("still ejected")
	}
	codes(h, 503)
	if ejected(h) || r.detected[ConsecutiveGatewayFailure].Value() != 0 {
		t.Error("errors from before the return counted")
	}
	if len(r.events) != 2 || !r.events[0].Eject || r.events[1].Eject || r.events[1].Ejections != 1 {
		t.Errorf("events %+v", r.events)
	}
}

// TestTickOfAnotherClock: there was an event before, also if a tick had a later time.
func TestTickOfAnotherClock(t *testing.T) {
	r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	r.d.Tick(time.Now().Add(time.Hour))
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	if len(r.events) != 3 || r.events[0].SinceLast != -1 || r.events[1].SinceLast < time.Hour || r.events[2].SinceLast != 0 {
		t.Errorf("events %+v", r.events)
	}
}

func TestReturnResetsLocalFailures(t *testing.T) {
	r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent, s.SplitLocalErrors = 100, true }, nil)
	h := r.hosts[0]
	for range 7 {
		h.ReportResult(host.ConnectFailed, 0)
	}
	r.d.Tick(time.Now().Add(time.Hour))
	for range 4 {
		h.ReportResult(host.ConnectFailed, 0)
	}
	if ejected(h) || r.detected[ConsecutiveLocalOriginFailure].Value() != 1 {
		t.Errorf("ejected again: %t; detected %d, want 1", ejected(h), r.detected[ConsecutiveLocalOriginFailure].Value())
	}
}

func TestPassingCheckBringsBack(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent = 100; s.UnejectOnCheck = on }, nil)
		h := r.hosts[0]
		codes(h, 500, 500, 500, 500, 500)
		h.SetFlags(status.FailedActiveHC)
		r.d.CheckPassed(h)
		if !ejected(h) {
			t.Error("came back while failing active checks")
		}
		h.ClearFlags(status.FailedActiveHC)
		r.d.CheckPassed(h)
		r.d.Tick(time.Now()) // not while it is locked
		if ejected(h) == on {
			t.Errorf("uneject=%t: %s", on, h.Flags())
		}
		if want := 1; on {
			want = 2
			if len(r.changed) != want || len(r.events) != want || r.events[1].Eject {
				t.Errorf("the return is reported as %+v, changes of %d hosts", r.events, len(r.changed))
			}
		} else if len(r.changed) != want || len(r.events) != want {
			t.Errorf("a host that stays is reported as %+v", r.events)
		}
	}
}

func TestRuntimeOverrides(t *testing.T) {
	r := newRig(2, nil, nil)
	r.runtime["outlier_detection.consecutive_5xx"] = 2
	r.runtime["outlier_detection.max_ejection_percent"] = 500 // capped at 100
	r.runtime["outlier_detection.base_ejection_time_ms"] = 5
	r.runtime["outlier_detection.interval_ms"] = 250
	codes(r.hosts[0], 500, 500)
	codes(r.hosts[1], 500, 500)
	if r.active.Value() != 2 {
		t.Fatalf("active = %d, want 2", r.active.Value())
	}
	if r.d.Interval() != 250*time.Millisecond {
		t.Errorf("interval %v", r.d.Interval())
	}
	r.d.Tick(time.Now().Add(5 * time.Millisecond))
	if r.active.Value() != 0 {
		t.Errorf("active = %d after the shorter time", r.active.Value())
	}
	r.runtime["outlier_detection.enforcing_consecutive_5xx"] = 0
	codes(r.hosts[0], 500, 500)
	if r.active.Value() != 0 || r.detected[Consecutive5xx].Value() != 3 {
		t.Errorf("active %d, detected %d", r.active.Value(), r.detected[Consecutive5xx].Value())
	}
}

// TestEverySettingIsByRuntimeToo has each setting of the configuration, and then its
// key, name a number of its own.
func TestEverySettingIsByRuntimeToo(t *testing.T) {
	c := config.Outlier{
		Interval: 1 * time.Millisecond, BaseEjectionTime: 2 * time.Millisecond, MaxEjectionTime: 3 * time.Millisecond,
		MaxEjectionTimeJitter: 4 * time.Millisecond, MaxEjectionPercent: 5,
		Consecutive5xx: 6, ConsecutiveGatewayFailure: 7, ConsecutiveLocalFailure: 8,
		EnforcingConsecutive5xx: 9, EnforcingConsecutiveGatewayFailure: 10, EnforcingSuccessRate: 11,
		EnforcingConsecutiveLocalFailure: 12, EnforcingLocalSuccessRate: 13, EnforcingFailurePercentage: 14, EnforcingLocalFailurePercentage: 15,
		SuccessRateMinimumHosts: 16, SuccessRateRequestVolume: 17, SuccessRateStdevFactor: 18,
		FailurePercentageThreshold: 19, FailurePercentageMinimumHosts: 20, FailurePercentageRequestVolume: 21,
	}
	settings := []struct {
		key string
		s   setting
	}{
		{"interval_ms", intervalMS}, {"base_ejection_time_ms", baseMS}, {"max_ejection_time_ms", maxMS},
		{"max_ejection_time_jitter_ms", jitterMS}, {"max_ejection_percent", maxPercent},
		{"consecutive_5xx", limit5xx}, {"consecutive_gateway_failure", limitGateway}, {"consecutive_local_origin_failure", limitLocal},
		{"enforcing_consecutive_5xx", enforcing[Consecutive5xx]},
		{"enforcing_consecutive_gateway_failure", enforcing[ConsecutiveGatewayFailure]},
		{"enforcing_success_rate", enforcing[SuccessRate]},
		{"enforcing_consecutive_local_origin_failure", enforcing[ConsecutiveLocalOriginFailure]},
		{"enforcing_local_origin_success_rate", enforcing[LocalOriginSuccessRate]},
		{"enforcing_failure_percentage", enforcing[FailurePercentage]},
		{"enforcing_failure_percentage_local_origin", enforcing[LocalOriginFailurePercentage]},
		{"success_rate_minimum_hosts", rateHosts}, {"success_rate_request_volume", rateVolume}, {"success_rate_stdev_factor", rateFactor},
		{"failure_percentage_threshold", failPercent}, {"failure_percentage_minimum_hosts", failureHosts}, {"failure_percentage_request_volume", failVolume},
	}
	runtime := map[string]uint64{}
	d := New(Config{Settings: &c, Runtime: upstreamtest.Runtime(runtime)})
	for i, tt := range settings {
		if got, want := d.number(tt.s), uint64(i+1); got != want {
			t.Errorf("%s: %d by the configuration, want %d", tt.key, got, want)
		}
		runtime["outlier_detection."+tt.key] = 1000
		if got := d.number(tt.s); got != 1000 {
			t.Errorf("%s: %d, want 1000 by its key", tt.key, got)
		}
	}
}

func TestRemovedHosts(t *testing.T) {
	r := newRig(2, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	r.d.Remove(r.hosts[0])
	r.d.Remove(r.hosts[0])
	if r.active.Value() != 0 {
		t.Errorf("active = %d after the ejected host went", r.active.Value())
	}
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	if r.detected[Consecutive5xx].Value() != 1 {
		t.Error("a removed host is still watched")
	}
	// It does not count among the hosts that can be ejected.
	r2 := newRig(3, func(s *config.Outlier) { s.MaxEjectionPercent = 50 }, nil)
	codes(r2.hosts[0], 500, 500, 500, 500, 500)
	r2.d.Remove(r2.hosts[0])
	codes(r2.hosts[1], 500, 500, 500, 500, 500)
	if r2.active.Value() != 1 || !ejected(r2.hosts[1]) {
		t.Errorf("active %d, %s; want one of two ejected", r2.active.Value(), r2.hosts[1].Flags())
	}
	r.d.Close()
	codes(r.hosts[1], 500, 500, 500, 500, 500)
	if r.detected[Consecutive5xx].Value() != 1 {
		t.Error("a closed detector still watches")
	}
}

// TestConcurrentReports: however results come, each run of errors is found
// exactly once.
func TestConcurrentReports(t *testing.T) {
	r := newRig(3, func(s *config.Outlier) { s.EnforcingConsecutive5xx, s.ConsecutiveGatewayFailure = 0, 0 }, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				codes(r.hosts[0], 500)
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			r.d.Tick(time.Now())
		}
	})
	wg.Wait()
	if n := r.detected[Consecutive5xx].Value(); n < 1 || n > 400 {
		t.Errorf("detected %d runs of 5 in 2000 errors", n)
	}
}

func BenchmarkReportCode(b *testing.B) {
	r := newRig(1, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		r.hosts[0].ReportCode(200)
	}
}

func TestLocalFailurePercentage(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) {
		s.SplitLocalErrors, s.ConsecutiveLocalFailure, s.MaxEjectionPercent = true, 0, 100
		s.EnforcingLocalSuccessRate, s.EnforcingLocalFailurePercentage = 0, 100
	}, nil)
	for i, bad := range []int{85, 84, 0, 0, 0} {
		for n := range 100 {
			result := host.ConnectSuccess
			if n < bad {
				result = host.ConnectTimeout
			}
			r.hosts[i].ReportResult(result, 0)
		}
	}
	r.d.Tick(time.Now())
	for i, h := range r.hosts {
		if ejected(h) != (i == 0) {
			t.Errorf("host %d: %s; 85 percent is the limit", i, h.Flags())
		}
	}
	if d, e := r.detected[LocalOriginFailurePercentage].Value(), r.enforced[LocalOriginFailurePercentage].Value(); d != 1 || e != 1 {
		t.Errorf("detected %d, enforced %d", d, e)
	}
	if d, e := r.detected[FailurePercentage].Value(), r.detected[SuccessRate].Value(); d != 0 || e != 0 {
		t.Errorf("what connections did is held against answers: %d, %d", d, e)
	}
}

// TestDeprecatedCounters count whether it is enforced or not, and nothing but runs of
// 5xx and success rates.
func TestDeprecatedCounters(t *testing.T) {
	for _, enforcing := range []uint32{0, 100} {
		r := newRig(5, func(s *config.Outlier) {
			s.MaxEjectionPercent, s.EnforcingConsecutive5xx, s.EnforcingSuccessRate, s.EnforcingConsecutiveGatewayFailure = 100, enforcing, enforcing, enforcing
		}, nil)
		codes(r.hosts[0], 500, 500, 500, 500, 500)
		codes(r.hosts[1], 503, 503, 503, 503, 500)
		for i, h := range r.hosts[2:] {
			for range 50 {
				codes(h, 200, 200, 200, 200)
			}
			if i == 0 {
				for range 30 {
					codes(h, 500, 500, 500, 200)
				}
			}
		}
		if r.total.Value() != 2 || r.old5.Value() != 2 || r.oldRate.Value() != 0 {
			t.Errorf("enforcing %d: ejections_total %d, ejections_consecutive_5xx %d, ejections_success_rate %d, want 2, 2, 0", enforcing, r.total.Value(), r.old5.Value(), r.oldRate.Value())
		}
		if want := uint64(enforcing / 50); r.enforced[Consecutive5xx].Value() != want || r.enforcedTotal.Value() != want || r.active.Value() != want {
			t.Errorf("enforcing %d: enforced %d, in all %d, active %d, want %d", enforcing, r.enforced[Consecutive5xx].Value(), r.enforcedTotal.Value(), r.active.Value(), want)
		}
	}
}

// TestTickBringsBackFirst has a host that has served its time, and was no better
// meanwhile: it comes back and goes again at once.
func TestTickBringsBackFirst(t *testing.T) {
	r := newRig(5, func(s *config.Outlier) {
		s.MaxEjectionPercent, s.EnforcingFailurePercentage, s.SuccessRateRequestVolume = 100, 100, 1000
	}, nil)
	codes(r.hosts[0], 500, 500, 500, 500, 500)
	results(r.hosts[0], 0, 100)
	for _, h := range r.hosts[1:] {
		results(h, 100, 0)
	}
	r.d.Tick(time.Now().Add(time.Hour))
	if len(r.events) != 3 || !r.events[0].Eject || r.events[1].Eject || !r.events[2].Eject || r.events[2].Kind != FailurePercentage || !ejected(r.hosts[0]) {
		t.Errorf("events %+v, want an ejection, a return and an ejection by failure percentage", r.events)
	}
}

// TestBackoffFades follows the times of ejections, tick by tick.
func TestBackoffFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
		h := r.hosts[0]
		tick := func() {
			time.Sleep(10 * time.Second)
			r.d.Tick(time.Now())
		}
		eject := func() (ticks int) {
			codes(h, 500, 500, 500, 500, 500)
			for ejected(h) {
				tick()
				ticks++
			}
			return ticks
		}
		for i, want := range []int{3, 6, 9} {
			if got := eject(); got != want {
				t.Errorf("ejection %d: %d ticks, want %d", i, got, want)
			}
		}
		// The tick at which it came back was no good interval. Each after it is one.
		tick()
		if got := eject(); got != 9 {
			t.Errorf("after one good interval: %d ticks, want 9", got)
		}
		for range 20 {
			tick()
		}
		if got := eject(); got != 3 {
			t.Errorf("after many good intervals: %d ticks, want 3", got)
		}
	})
}

// TestLateResultsEjectNoRemovedHost reports the results that complete a run after
// the host was removed, through a monitor that the proxy loaded before.
func TestLateResultsEjectNoRemovedHost(t *testing.T) {
	r := newRig(2, func(s *config.Outlier) { s.MaxEjectionPercent = 100 }, nil)
	h := r.hosts[0]
	late := r.d.byHost[h]
	r.d.Add(h) // is watched already
	codes(h, 500, 500, 500, 500)
	r.d.Remove(h)
	if r.d.Tick(time.Now()); len(r.d.monitors) != 1 || len(r.d.byHost) != 1 {
		t.Errorf("%d monitors and %d hosts are left of one", len(r.d.monitors), len(r.d.byHost))
	}
	for range 10 {
		late.PutCode(500)
		late.PutResult(host.ConnectFailed, 0)
	}
	if ejected(h) || r.active.Value() != 0 || r.detected[Consecutive5xx].Value() != 0 || r.enforcedTotal.Value() != 0 {
		t.Errorf("flags %s, active %d, detected %d, enforced %d; want no ejection",
			h.Flags(), r.active.Value(), r.detected[Consecutive5xx].Value(), r.enforcedTotal.Value())
	}
}

// TestRateOfAResultBetweenIntervals: a result counts in two steps, and an interval can end
// in between.
func TestRateOfAResultBetweenIntervals(t *testing.T) {
	var s stream
	s.total.Add(2)
	s.success.Add(1)
	s.interval()
	s.total.Add(1)
	s.success.Add(2)
	if rate, volume := s.interval(); rate != 100 || volume != 1 {
		t.Errorf("%g %% of %d, want 100 %% of 1", rate, volume)
	}
}
