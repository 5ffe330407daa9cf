// Package flush ends the intervals of a store: it takes a snapshot every
// stats_flush_interval, or whenever the admin interface serves stats, and
// passes it to the sinks.
//
// Flushes start at a fixed rate. If a flush takes too long, the starts that it
// misses are skipped and counted in server.dropped_stat_flushes. Every sink has
// its own goroutine and a bounded queue, so none of them can delay the next
// flush.
package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
)

// Limits and defaults of the flush interval.
const (
	DefaultInterval = 5 * time.Second
	MinInterval     = time.Millisecond // allowed
	MaxInterval     = 5 * time.Minute  // not allowed: it must be less
	defaultQueue    = 16               // snapshots
	defaultBytes    = 256 << 20        // of them
	defaultLinger   = 5 * time.Second  // for all sinks together, at the end
	abandon         = time.Second      // afterwards, to count the rest
)

// Config are the settings of a [Scheduler].
type Config struct {
	// Store is the store to flush. Required.
	Store *store.Store
	// Interval is stats_flush_interval: at least 1 ms, less than 5 minutes.
	// 0 means 5 s.
	Interval time.Duration
	// OnAdmin is stats_flush_on_admin: no timer, flushes happen through
	// [Scheduler.FlushForAdmin]. It cannot be combined with Interval.
	OnAdmin bool
	// EvictionInterval is stats_eviction_interval: how often stats without
	// updates are removed from evicting scopes. It must be a multiple of the
	// interval. 0 means never.
	EvictionInterval time.Duration
	// Sinks get the snapshots. Their names are not empty and differ, since their
	// metrics and admin requests go by name.
	Sinks []Sink
	// Queue limits the number of snapshots that wait for a slow sink. Later ones
	// become one with the last of them. 0 means 16.
	Queue int
	// QueueBytes limits the memory of the changes in these snapshots. Beyond it they become
	// one, and if that is still too large, since the sink is stuck while stats come and go, it
	// is dropped, and counted. 0 means 256 MiB.
	QueueBytes int
	// Linger is how long [Scheduler.Run] waits for the sinks after the last
	// flush. 0 means 5 s.
	Linger time.Duration
	// Initialized reports whether the server is initialized. Until then,
	// flushes do not merge histograms, except for [Scheduler.FlushNow] and the last one. Nil
	// means that it always is.
	Initialized func() bool
	// Before is called before each snapshot is taken, to refresh gauges.
	Before []func(now time.Time)
	// After is called with each snapshot, before the sinks get it. It must be
	// quick and must not keep the snapshot.
	After []func(*store.Snapshot)
	// Sweep removes expired stats after each flush; evict is set once per
	// eviction interval. Nil means the store's Sweep.
	Sweep func(evict bool)
	// OnError is called with errors of sinks. Nil ignores them; errors are
	// counted in any case.
	OnError func(sink string, err error)
	// Logger logs panics in sinks, in OnError, and in the functions around a
	// snapshot. If nil, nothing is logged.
	Logger *slog.Logger
}

// Scheduler flushes a store.
type Scheduler struct {
	cfg     Config
	totals  bool
	workers []*worker
	dropped *store.Counter
	ended   atomic.Uint64 // see Ended
	took    atomic.Int64  // see Took

	flushing  sync.Mutex // held during a flush; guards the rest
	count     uint64     // flushes so far
	suspended bool
}

// New checks cfg and returns a scheduler. Nothing is flushed before Run.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Store == nil {
		return nil, errors.New("flush: no store")
	}
	if cfg.OnAdmin && cfg.Interval != 0 {
		//lint:ignore ST1005 the text is part of the interface
		return nil, errors.New("flush: Only one of stats_flush_interval or stats_flush_on_admin should be set!")
	}
	cfg.Interval = cmp.Or(cfg.Interval, DefaultInterval)
	if cfg.Interval < MinInterval || cfg.Interval >= MaxInterval {
		return nil, fmt.Errorf("flush: stats_flush_interval %v not in [%v, %v)", cfg.Interval, MinInterval, MaxInterval)
	}
	if e := cfg.EvictionInterval; e < 0 || e%cfg.Interval != 0 {
		return nil, fmt.Errorf("flush: stats_eviction_interval %v is not a multiple of stats_flush_interval %v", e, cfg.Interval)
	}
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.QueueBytes <= 0 {
		cfg.QueueBytes = defaultBytes
	}
	if cfg.Linger <= 0 {
		cfg.Linger = defaultLinger
	}
	if cfg.Sweep == nil {
		cfg.Sweep = func(evict bool) { cfg.Store.Sweep(evict) }
	}
	if cfg.OnError == nil {
		cfg.OnError = func(string, error) {}
	}
	cfg.Store.KeepEnded()
	cfg.Store.Own().Help(map[string]string{"server.dropped_stat_flushes": "Flushes that were skipped because the one before took too long."})
	s := &Scheduler{cfg: cfg, dropped: cfg.Store.Own().Counter("server.dropped_stat_flushes")}
	names := make(map[string]int, len(cfg.Sinks))
	for i, sink := range cfg.Sinks {
		if sink == nil {
			return nil, fmt.Errorf("flush: sink %d is nil", i)
		}
		switch first, named := names[sink.Name()]; {
		case sink.Name() == "":
			return nil, fmt.Errorf("flush: sink %d has no name", i)
		case named:
			return nil, fmt.Errorf("flush: sinks %d and %d have the same name %q", first, i, sink.Name())
		}
		names[sink.Name()] = i
		w, err := newWorker(sink, &cfg)
		if err != nil {
			return nil, err
		}
		s.workers = append(s.workers, w)
		if needsTotals(sink) {
			cfg.Store.KeepNames()
			s.totals = true
		}
	}
	return s, nil
}

// Interval returns stats_flush_interval, or 5 s if admin requests flush.
func (s *Scheduler) Interval() time.Duration { return s.cfg.Interval }

// OnAdmin reports whether admin requests flush instead of a timer.
func (s *Scheduler) OnAdmin() bool { return s.cfg.OnAdmin }

// Run flushes until ctx ends, then flushes a last time and waits for the sinks,
// up to Config.Linger. It returns an error if they do not finish. Call it once.
func (s *Scheduler) Run(ctx context.Context) error {
	var sinks, senders sync.WaitGroup
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for _, w := range s.workers {
		sinks.Go(w.run)
		if r, ok := w.sink.(Runner); ok {
			senders.Go(func() { w.guard.Run("sender of a sink", func() { r.Run(sending) }) })
		}
	}
	s.tick(ctx)
	s.flush(true)
	for _, w := range s.workers {
		w.close()
	}
	sent, idle := make(chan struct{}), make(chan struct{})
	go func() { senders.Wait(); close(sent); sinks.Wait(); close(idle) }()
	linger := time.NewTimer(s.cfg.Linger)
	select {
	case <-idle:
		return nil
	case <-linger.C:
	}
	stop()
	linger.Reset(abandon) // senders count the rest
	select {
	case <-sent:
	case <-linger.C:
	}
	return fmt.Errorf("flush: sinks did not take the last snapshots within %v", s.cfg.Linger)
}

// tick flushes at a fixed rate until ctx ends.
func (s *Scheduler) tick(ctx context.Context) {
	if s.cfg.OnAdmin {
		<-ctx.Done()
		return
	}
	next := time.Now().Add(s.cfg.Interval)
	timer := time.NewTimer(s.cfg.Interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.tryFlush()
		next = next.Add(s.cfg.Interval)
		for now := time.Now(); next.Before(now); next = next.Add(s.cfg.Interval) {
			s.dropped.Inc()
		}
		timer.Reset(time.Until(next))
	}
}

// FlushForAdmin flushes if stats_flush_on_admin is set and does nothing
// otherwise. When it returns, readers see the new state. If another flush is
// running, it only counts a dropped flush.
func (s *Scheduler) FlushForAdmin() {
	if s.cfg.OnAdmin {
		s.tryFlush()
	}
}

// FlushNow flushes outside the schedule, after any flush in progress, and merges
// histograms even if the server is not initialized. When it returns, readers see the new
// state. Sinks get the snapshot in goroutines that [Scheduler.Run] starts.
func (s *Scheduler) FlushNow() { s.flush(false) }

// Suspend flushes a last time and leaves all stats but histograms to a
// successor: until [Scheduler.Resume], flushes report only histograms, even the
// last flush of Run. If flushes are already suspended, it does nothing.
func (s *Scheduler) Suspend() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if !s.suspended {
		s.flushOrReport(false, false)
		s.suspended = true
	}
}

// Resume ends a Suspend.
func (s *Scheduler) Resume() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.suspended = false
}

// Ended returns how many flushes have ended so far, including those while flushes
// are suspended. A watchdog compares it to see whether the timer still flushes.
func (s *Scheduler) Ended() uint64 { return s.ended.Load() }

// Took returns how long the last flush took, 0 before the first. Sinks that send
// afterwards are not included.
func (s *Scheduler) Took() time.Duration { return time.Duration(s.took.Load()) }

// tryFlush is flush, unless another flush is in progress: then it only counts a dropped
// one.
func (s *Scheduler) tryFlush() {
	if !s.flushing.TryLock() {
		s.dropped.Inc()
		return
	}
	defer s.flushing.Unlock()
	s.flushOrReport(false, false)
}

// flush takes a snapshot and passes it to the sinks. last is set at the end of Run.
func (s *Scheduler) flush(last bool) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.flushOrReport(last, true)
}

// flushOrReport flushes, or reports only histograms while flushes are suspended. merge is
// set if histograms are merged before the server is initialized. After a panic the next flush
// goes on. s.flushing must be held.
func (s *Scheduler) flushOrReport(last, merge bool) {
	ended := guard.New(s.cfg.Logger).Run("flush", func() {
		if s.suspended { // not even the end of Run is the end of stats that a successor has
			s.report(store.FlushOptions{HistogramsOnly: true})
		} else {
			s.flushLocked(last, merge)
		}
	})
	if ended {
		s.ended.Add(1)
	}
}

// flushLocked flushes; see flushOrReport. s.flushing must be held.
func (s *Scheduler) flushLocked(last, merge bool) {
	now := time.Now()
	defer func() { s.took.Store(int64(time.Since(now))) }()
	recovered := guard.New(s.cfg.Logger)
	for _, f := range s.cfg.Before {
		recovered.Run("before a flush", func() { f(now) })
	}
	skip := !merge && s.cfg.Initialized != nil && !s.cfg.Initialized()
	s.report(store.FlushOptions{SkipHistograms: skip, Last: last})
	s.count++
	every := uint64(s.cfg.EvictionInterval / s.cfg.Interval)
	recovered.Run("sweep", func() { s.cfg.Sweep(every != 0 && s.count%every == 0) })
}

// report takes a snapshot and queues it for the sinks. s.flushing must be held.
func (s *Scheduler) report(o store.FlushOptions) {
	o.Totals = s.totals
	snap := &shared{Snapshot: s.cfg.Store.Flush(o)}
	if len(s.workers) > 0 {
		snap.bytes = snap.Bytes()
	}
	recovered := guard.New(s.cfg.Logger)
	for _, f := range s.cfg.After {
		recovered.Run("after a flush", func() { f(snap.Snapshot) })
	}
	snap.holders.Store(int32(len(s.workers)) + 1)
	for _, w := range s.workers {
		if err := w.put(snap); err != nil {
			recovered.Run("report of a stuck sink", func() { w.onErr(w.sink.Name(), err) })
		}
	}
	snap.release()
}
