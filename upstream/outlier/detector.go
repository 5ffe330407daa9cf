package outlier

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Stats are the statistics of a detector. Members may be nil.
type Stats struct {
	EjectionsActive          *store.Gauge
	EjectionsEnforcedTotal   *store.Counter
	EjectionsOverflow        *store.Counter
	EjectionsDetected        [7]*store.Counter // by Kind
	EjectionsEnforced        [7]*store.Counter // by Kind
	EjectionsTotal           *store.Counter    // of 5xx and success rate, enforced or not
	EjectionsConsecutive5xx  *store.Counter
	EjectionsSuccessRateSeen *store.Counter
}

// Config configures a [Detector].
type Config struct {
	Settings *config.Outlier
	Stats    Stats
	// Runtime overrides numbers by key, "outlier_detection.…". It is called
	// concurrently. Nil overrides nothing.
	Runtime config.Runtime
	// Rand returns uniform random numbers; nil means math/rand/v2.
	Rand func() uint64
	// Changed is called with each host that is ejected or returns and its flags before
	// that, unless it is nil. No lock is held, so it can call the detector.
	Changed func(h *host.Host, before status.Flags)
	// Log is called for each return and each ejection, enforced or not, without a lock
	// held, unless it is nil.
	Log func(Event)
}

// Event is an ejection or a return.
type Event struct {
	Time      time.Time
	Host      *host.Host
	Eject     bool // false: the host came back
	Kind      Kind // of an ejection
	Enforced  bool // false: an ejection was only logged
	Ejections uint64
	// SinceLast is the time since the last event of the opposite kind, negative if
	// there was none.
	SinceLast time.Duration

	// Rate is the success rate of the host in percent, Average that of all compared
	// hosts, and Threshold the rate below which hosts are ejected. Rate is set for
	// success rate and failure percentage, the others for success rate.
	Rate, Average, Threshold float64
}

// Detector watches the hosts of a cluster. All methods are safe for concurrent
// use.
type Detector struct {
	c     Config
	rates atomic.Pointer[status.OutlierRates]

	mu       sync.Mutex
	monitors []*monitor // in the order they were added; removed ones stay until the next tick
	byHost   map[*host.Host]*monitor
	active   int // ejected ones
}

// New returns a detector without hosts.
func New(c Config) *Detector {
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	if c.Runtime == nil {
		c.Runtime = config.NoRuntime{}
	}
	if c.Changed == nil {
		c.Changed = func(*host.Host, status.Flags) {}
	}
	if c.Log == nil {
		c.Log = func(Event) {}
	}
	d := &Detector{c: c, byHost: make(map[*host.Host]*monitor)}
	d.rates.Store(&status.OutlierRates{Average: -1, Threshold: -1, LocalAverage: -1, LocalThreshold: -1})
	return d
}

// Rates returns the success rates of the last interval.
func (d *Detector) Rates() status.OutlierRates { return *d.rates.Load() }

// number returns the value of a setting, including the runtime.
func (d *Detector) number(s setting) uint64 {
	return d.c.Runtime.Uint("outlier_detection."+s.key, s.get(d.c.Settings))
}

// duration returns a setting in milliseconds as a duration.
func (d *Detector) duration(s setting) time.Duration {
	return time.Duration(min(d.number(s), math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// Interval returns the time between calls of [Detector.Tick].
func (d *Detector) Interval() time.Duration { return max(d.duration(intervalMS), time.Millisecond) }

// Run calls [Detector.Tick] once per interval until ctx is done.
func (d *Detector) Run(ctx context.Context) error {
	t := time.NewTimer(d.Interval())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			d.Tick(time.Now())
			t.Reset(d.Interval())
		}
	}
}

// Add starts to watch h.
func (d *Detector) Add(h *host.Host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byHost[h] != nil {
		return
	}
	m := &monitor{d: d, host: h}
	d.byHost[h] = m
	d.monitors = append(d.monitors, m)
	h.SetMonitor(m)
}

// Remove stops watching h. Late results do not eject it.
func (d *Detector) Remove(h *host.Host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.byHost[h]
	if m == nil {
		return
	}
	h.SetMonitor(nil)
	delete(d.byHost, h)
	m.removed = true
	if m.ejected {
		d.active--
		d.c.Stats.EjectionsActive.Dec()
	}
}

// Close stops watching all hosts.
func (d *Detector) Close() {
	d.mu.Lock()
	all := slices.Collect(maps.Keys(d.byHost))
	d.mu.Unlock()
	for _, h := range all {
		d.Remove(h)
	}
}

// after collects notifications to send once the lock is released.
type after struct {
	events  []Event
	changed []changed
}

// changed is a host whose flags were changed.
type changed struct {
	host   *host.Host
	before status.Flags
}

func (d *Detector) notify(a after) {
	for _, x := range a.changed {
		d.c.Changed(x.host, x.before)
	}
	for _, e := range a.events {
		d.c.Log(e)
	}
}

// fire handles a run of errors that has reached its limit.
func (d *Detector) fire(m *monitor, k Kind, run *atomic.Uint64) {
	var a after
	defer func() { d.notify(a) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.ejected || m.removed {
		return
	}
	run.Store(0)
	d.detect(m, Event{Time: time.Now(), Kind: k}, &a)
}

// detect counts a detection and ejects the host if that is allowed and enforced. e
// holds the time, kind and rates. d.mu must be held.
func (d *Detector) detect(m *monitor, e Event, a *after) {
	s, k, now := &d.c.Stats, e.Kind, e.Time
	s.EjectionsDetected[k].Inc()
	switch k {
	case Consecutive5xx:
		s.EjectionsConsecutive5xx.Inc()
	case SuccessRate:
		s.EjectionsSuccessRateSeen.Inc()
	}
	percent := min(d.number(maxPercent), 100)
	allowed := 100*float64(d.active+1) <= float64(percent)*float64(len(d.byHost)) ||
		d.c.Settings.AlwaysEjectOne && d.active == 0
	if !allowed {
		s.EjectionsOverflow.Inc()
		return
	}
	if k == Consecutive5xx || k == SuccessRate {
		s.EjectionsTotal.Inc()
	}
	e.Host, e.Eject, e.Ejections, e.SinceLast = m.host, true, m.ejections, -1
	if !m.returnedAt.IsZero() {
		e.SinceLast = max(now.Sub(m.returnedAt), 0)
	}
	if d.c.Rand()%100 >= d.number(enforcing[k]) {
		a.events = append(a.events, e)
		return
	}
	d.active++
	s.EjectionsActive.Inc()
	s.EjectionsEnforcedTotal.Inc()
	s.EjectionsEnforced[k].Inc()
	m.ejected = true
	m.ejections++
	m.ejectedAt = now
	m.jitter = 0
	if j := d.duration(jitterMS); j > 0 {
		m.jitter = time.Duration(d.c.Rand() % (uint64(j) + 1))
	}
	base := d.duration(baseMS)
	if times(base, m.backoff) < saturatingAdd(d.duration(maxMS), base) {
		m.backoff++
	}
	a.changed = append(a.changed, changed{m.host, m.host.SetFlags(status.FailedOutlierCheck)})
	e.Enforced, e.Ejections = true, m.ejections
	a.events = append(a.events, e)
}

func times(d time.Duration, n uint64) time.Duration {
	if d > 0 && n > uint64(math.MaxInt64)/uint64(d) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// release returns m to service. d.mu must be held.
func (d *Detector) release(m *monitor, now time.Time, a *after) {
	m.ejected = false
	d.active--
	d.c.Stats.EjectionsActive.Dec()
	m.errors5xx.Store(0)
	m.gateway.Store(0)
	m.localFailures.Store(0)
	m.returnedAt = now
	a.changed = append(a.changed, changed{m.host, m.host.ClearFlags(status.FailedOutlierCheck)})
	a.events = append(a.events, Event{Time: now, Host: m.host, Ejections: m.ejections, SinceLast: max(now.Sub(m.ejectedAt), 0)})
}

// CheckPassed returns an ejected host to service, unless that is disabled or the host
// still fails active checks. Call it when an active check of h has passed.
func (d *Detector) CheckPassed(h *host.Host) {
	if !d.c.Settings.UnejectOnCheck || h.Flags()&(status.FailedOutlierCheck|status.FailedActiveHC) != status.FailedOutlierCheck {
		return
	}
	var a after
	defer func() { d.notify(a) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.byHost[h]; m != nil && m.ejected {
		d.release(m, time.Now(), &a)
	}
}

// Tick ends an interval: hosts whose ejection time is over return, then rates are
// compared, then the backoff of healthy hosts decreases.
func (d *Detector) Tick(now time.Time) {
	var a after
	defer func() { d.notify(a) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.monitors = slices.DeleteFunc(d.monitors, func(m *monitor) bool { return m.removed })
	base, longest := d.duration(baseMS), d.duration(maxMS)
	for _, m := range d.monitors {
		if m.ejected && now.Sub(m.ejectedAt) >= saturatingAdd(min(times(base, m.backoff), longest), m.jitter) {
			d.release(m, now, &a)
		}
	}
	external := d.judge(func(m *monitor) *stream { return &m.external }, SuccessRate, FailurePercentage, now, &a)
	local := d.judge(func(m *monitor) *stream { return &m.local }, LocalOriginSuccessRate, LocalOriginFailurePercentage, now, &a)
	for i, m := range d.monitors {
		m.host.SetSuccessRates(external.host(i), local.host(i))
	}
	d.rates.Store(&status.OutlierRates{
		Average: external.average, Threshold: external.threshold,
		LocalAverage: local.average, LocalThreshold: local.threshold,
	})
	interval := d.Interval()
	for _, m := range d.monitors {
		if !m.ejected && m.backoff > 0 && !m.returnedAt.IsZero() && now.Sub(m.returnedAt) >= interval {
			m.backoff--
		}
	}
}

// verdict is the result of judge.
type verdict struct {
	average, threshold float64
	hosts              []float64 // by monitor; nil: nothing computed
}

func (v *verdict) host(i int) float64 {
	if v.hosts == nil {
		return -1
	}
	return v.hosts[i]
}

// judge compares the rates of the last interval. d.mu must be held.
func (d *Detector) judge(of func(*monitor) *stream, rateKind, failureKind Kind, now time.Time, a *after) verdict {
	v := verdict{average: -1, threshold: -1}
	n := uint64(len(d.monitors))
	minRate, minFailure := d.number(rateHosts), d.number(failureHosts)
	compute := n >= minRate || n >= minFailure
	rateVol, failVol := d.number(rateVolume), d.number(failVolume)
	type judged struct {
		m    *monitor
		rate float64
	}
	var byRate, byFailure []judged
	if compute {
		v.hosts = make([]float64, n)
	}
	sum := 0.0
	for i, m := range d.monitors {
		rate, volume := of(m).interval() // also when nothing is computed
		if !compute {
			continue
		}
		v.hosts[i] = -1
		if m.ejected || volume == 0 || volume < min(rateVol, failVol) {
			continue
		}
		v.hosts[i] = rate
		if volume >= rateVol {
			byRate = append(byRate, judged{m, rate})
			sum += rate
		}
		if volume >= failVol {
			byFailure = append(byFailure, judged{m, rate})
		}
	}
	if len(byRate) > 0 && uint64(len(byRate)) >= minRate {
		v.average = sum / float64(len(byRate))
		variance := 0.0
		for _, j := range byRate {
			variance += (j.rate - v.average) * (j.rate - v.average)
		}
		v.threshold = v.average - float64(d.number(rateFactor))/1000*math.Sqrt(variance/float64(len(byRate)))
		for _, j := range byRate {
			if j.rate < v.threshold {
				d.detect(j.m, Event{Time: now, Kind: rateKind, Rate: j.rate, Average: v.average, Threshold: v.threshold}, a)
			}
		}
	}
	if len(byFailure) > 0 && uint64(len(byFailure)) >= minFailure {
		limit := float64(d.number(failPercent))
		for _, j := range byFailure {
			if !j.m.ejected && 100-j.rate >= limit {
				d.detect(j.m, Event{Time: now, Kind: failureKind, Rate: j.rate}, a)
			}
		}
	}
	return v
}
