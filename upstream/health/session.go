package health

import (
	"context"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// session runs the checks of one host.
type session struct {
	k      *Checker
	host   *host.Host
	prober Prober // used by one check at a time

	mu      sync.Mutex
	timer   *time.Timer
	cancel  context.CancelFunc // of the check under way until it is reported, else nil
	stopped bool
	first   bool   // no result yet
	tried   bool   // a check was completed, maybe without a result
	passes  uint32 // in a row while failed
	fails   uint32 // in a row while healthy

	countedHealthy, countedDegraded bool // in the gauges
}

// start schedules the first check.
func (s *session) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gauges()
	var wait time.Duration
	if j := s.k.c.Check.InitialJitter; j > 0 {
		wait = s.k.clamp(s.k.random(j))
	}
	s.timer = time.AfterFunc(wait, s.check)
}

// stop ends the session and cancels a running check.
func (s *session) stop() {
	s.mu.Lock()
	s.stopped = true
	s.timer.Stop()
	idle := s.cancel == nil
	if !idle {
		s.cancel()
	}
	if s.countedHealthy {
		s.k.c.Stats.Healthy.Dec()
	}
	if s.countedDegraded {
		s.k.c.Stats.Degraded.Dec()
	}
	s.mu.Unlock()
	if idle {
		s.close()
	}
}

// check runs one check. The timer calls it, so checks do not overlap.
func (s *session) check() {
	ctx, cancel := context.WithTimeout(context.Background(), s.k.c.Check.Timeout)
	defer cancel()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.cancel = cancel
	s.k.running.Add(1)
	s.mu.Unlock()
	defer s.k.running.Done()
	if !s.k.guard().Run("round of health checks", func() { s.round(ctx) }) {
		s.arrange(s.k.clamp(s.k.c.Check.Interval)) // as if all were well
	}
}

// arrange schedules the next check, unless the session has ended.
func (s *session) arrange(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.close()
		return
	}
	s.cancel = nil
	s.timer.Reset(wait)
}

// round makes one check, reports it and schedules the next one.
func (s *session) round(ctx context.Context) {
	s.k.c.Stats.Attempt.Inc()
	o := Outcome{Kind: Local}
	s.k.guard().Run("health check", func() { o = s.prober.Probe(ctx) })
	if o.Kind == Network && ctx.Err() == context.DeadlineExceeded {
		o.Kind = Timeout
	}

	r, events, ok := s.judge(o)
	if !ok {
		s.close()
		return
	}
	passed := o.Kind == Passed
	if o.Kind == Local {
		passed = s.host.Flags()&status.FailedActiveHC == 0 // as if the check had found the known state
	}
	now := time.Now()
	check := &status.Check{Time: now, Result: o.words(), Failed: !passed, Since: now}
	if last := s.host.LastCheck(); last != nil && last.Failed == check.Failed {
		check.Since = last.Since
	}
	s.host.SetLastCheck(check)
	// Reported before the next check is scheduled, so reports are in order.
	s.report(r, events)
	s.arrange(s.k.delay(s.host, passed, r.Transition))
}

// judge applies an outcome, unless the session was stopped.
func (s *session) judge(o Outcome) (r Report, events []Event, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return r, nil, false
	}
	r = Report{Host: s.host, Outcome: o, Before: s.host.Flags()}
	r.Transition, events = s.apply(o)
	return r, events, true
}

// passive records a failure that was not found by a check.
func (s *session) passive() {
	o := Outcome{Kind: Passive, Exclude: true}
	if r, events, ok := s.judge(o); ok {
		s.report(r, events)
	}
}

func (s *session) close() { s.k.guard().Run("end of health checks", s.prober.Close) }

// report reports a completed check to the callbacks.
func (s *session) report(r Report, events []Event) {
	s.k.guard().Run("what follows a health check", func() {
		s.k.c.Done(r)
		for _, e := range events {
			s.k.c.Log(e)
		}
	})
}

// apply updates counts and flags with an outcome. s.mu must be held.
func (s *session) apply(o Outcome) (Transition, []Event) {
	s.tried = true
	if o.Kind == Local {
		return Unchanged, s.unchecked()
	}
	before, first := s.host.Flags(), s.first
	var pending bool
	if o.Kind == Passed {
		pending = s.passed(o)
	} else {
		pending = s.failed(o)
	}
	s.first = false
	s.host.ClearFlags(status.PendingActiveHC)
	s.gauges()
	const shown = status.FailedActiveHC | status.DegradedActiveHC | status.PendingActiveHC | status.ExcludedViaImmediateHCFail
	after := s.host.Flags()
	var events []Event
	if s.k.c.Log != nil {
		events = s.events(o, before, after, first)
	}
	switch {
	case before&shown != after&shown:
		return Changed, events
	case pending:
		return ChangePending, events
	}
	return Unchanged, events
}

// unchecked counts a check that could not be made. s.mu must be held.
func (s *session) unchecked() []Event {
	s.k.c.Stats.Failure.Inc()
	s.k.c.Stats.NetworkFailure.Inc()
	if s.k.c.Log == nil || !s.k.c.Check.AlwaysLogFailures {
		return nil
	}
	return []Event{{Kind: CheckFailed, Time: time.Now(), Host: s.host, Failure: Local, First: s.first}}
}

// passed applies a good check and reports whether its threshold is not reached yet.
func (s *session) passed(o Outcome) (pending bool) {
	s.k.c.Stats.Success.Inc()
	s.fails = 0
	if s.host.Flags()&status.FailedActiveHC != 0 {
		s.passes++
		if s.first || s.passes >= s.k.c.Check.HealthyThreshold {
			s.host.ClearFlags(status.FailedActiveHC | status.ActiveHCTimeout)
		} else {
			pending = true
		}
	}
	if !pending {
		s.host.ClearFlags(status.ExcludedViaImmediateHCFail) // it may be there without a failure
	}
	if o.Degraded {
		s.host.SetFlags(status.DegradedActiveHC)
	} else {
		s.host.ClearFlags(status.DegradedActiveHC)
	}
	return pending
}

// failed is like passed for a bad check.
func (s *session) failed(o Outcome) (pending bool) {
	st := &s.k.c.Stats
	st.Failure.Inc()
	switch o.Kind {
	case Network, Timeout:
		st.NetworkFailure.Inc()
	case Passive:
		st.PassiveFailure.Inc()
	}
	s.passes = 0
	if s.host.Flags()&status.FailedActiveHC == 0 {
		wait := o.Kind == Network || o.Kind == Timeout || o.Retriable
		if s.fails++; !wait || s.fails >= s.k.c.Check.UnhealthyThreshold {
			s.host.SetFlags(status.FailedActiveHC)
		} else {
			pending = true
		}
	}
	if o.Exclude {
		s.host.SetFlags(status.ExcludedViaImmediateHCFail)
	}
	if o.Kind == Timeout && s.host.Flags()&status.FailedActiveHC != 0 {
		s.host.SetFlags(status.ActiveHCTimeout)
	} else {
		s.host.ClearFlags(status.ActiveHCTimeout)
	}
	return pending
}

// gauges updates the gauges from the flags. s.mu must be held.
func (s *session) gauges() {
	put := func(counted *bool, is bool, g *store.Gauge) {
		switch {
		case is && !*counted:
			g.Inc()
		case !is && *counted:
			g.Dec()
		}
		*counted = is
	}
	f := s.host.Flags()
	put(&s.countedHealthy, f&status.FailedActiveHC == 0, s.k.c.Stats.Healthy)
	put(&s.countedDegraded, f&status.DegradedActiveHC != 0, s.k.c.Stats.Degraded)
}
