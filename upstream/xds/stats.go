package xds

import (
	"errors"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
)

// updateStats are the statistics of one subscription. An attempt is counted when the
// subscription begins to wait for a response: at its start and after each outcome.
type updateStats struct {
	attempt, success, failure, rejected, initTimeout, reload *store.Counter

	version     *store.Gauge // 63 bits of a hash of the version
	versionText *store.TextReadout
	updateTime  *store.Gauge // Unix milliseconds
	duration    *store.Histogram
}

func newUpdateStats(sc *store.Scope) updateStats {
	return updateStats{
		attempt: sc.Counter("update_attempt"), success: sc.Counter("update_success"),
		failure: sc.Counter("update_failure"), rejected: sc.Counter("update_rejected"),
		initTimeout: sc.Counter("init_fetch_timeout"), reload: sc.Counter("config_reload"),
		version: sc.GaugeWithMode("version", store.NeverImport), versionText: sc.Text("version_text"),
		updateTime: sc.GaugeWithMode("update_time", store.NeverImport),
		duration:   sc.Histogram("update_duration", store.Milliseconds),
	}
}

// controlStats are the statistics of one stream.
type controlStats struct {
	connected, pending *store.Gauge
	limited            *store.Counter
	identifier         *store.TextReadout
}

func newControlStats(sc *store.Scope) controlStats {
	return controlStats{
		connected:  sc.GaugeWithMode("control_plane.connected_state", store.NeverImport),
		pending:    sc.GaugeWithMode("control_plane.pending_requests", store.NeverImport),
		limited:    sc.Counter("control_plane.rate_limit_enforced"),
		identifier: sc.Text("control_plane.identifier"),
	}
}

// sink receives the updates of a subscription.
type sink interface {
	// apply applies the good resources of u and returns the errors of the others.
	// changed reports whether anything is different now.
	apply(u *update) (changed bool, faults []fault)
	// started is called once: after the first response, good or bad, or when it timed
	// out.
	started()
}

// subscription delivers updates to a sink and counts them. One goroutine calls its
// methods; its timer runs in another one.
type subscription struct {
	kind  kind
	name  string // empty for all resources
	sink  sink
	stats updateStats
	// polled marks a subscription of a file, which is not waiting between two reads.
	// The reader counts all attempts but the first.
	polled bool

	place, freshPlace int // in the lists of its entry; guarded by the mux's mu

	guard guard.Guard
	once  sync.Once
	timer *time.Timer
}

// newSubscription returns a subscription that waits for its first response. A timeout
// of 0 never fires.
func newSubscription(k kind, name string, to sink, stats updateStats, timeout time.Duration, g guard.Guard) *subscription {
	s := &subscription{kind: k, name: name, sink: to, stats: stats, guard: g}
	s.stats.attempt.Inc()
	if timeout > 0 {
		s.timer = time.AfterFunc(timeout, func() {
			s.stats.initTimeout.Inc()
			g.Run("late discovery", s.start)
		})
	}
	return s
}

// start calls the sink's started once, even if that panics.
func (s *subscription) start() { s.once.Do(s.sink.started) }

// answered stops waiting for a first response.
func (s *subscription) answered() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// errPanic is the error of an update or stream whose handler panicked.
var errPanic = errors.New("xds: panic")

// apply applies an update. A panic counts as an error in it.
func (s *subscription) apply(u *update) (changed bool, faults []fault) {
	if !s.guard.Run("discovery update", func() { changed, faults = s.sink.apply(u) }) {
		faults = []fault{{s.name, errPanic}}
	}
	return changed, faults
}

func (s *subscription) update(u *update) []fault {
	s.answered()
	begin := time.Now()
	changed, faults := s.apply(u)
	if len(faults) > 0 {
		s.stats.rejected.Inc()
	} else {
		now := time.Now()
		s.stats.success.Inc()
		s.stats.version.Set(xxhash.Sum64String(u.version) &^ (1 << 63)) // a gauge with the highest bit shows as negative
		s.stats.versionText.Set(oneline.Clean(u.version))
		s.stats.updateTime.Set(uint64(max(now.UnixMilli(), 0)))
		s.stats.duration.Record(uint64(max(now.Sub(begin), 0).Milliseconds()))
	}
	if changed {
		s.stats.reload.Inc()
	}
	s.next()
	s.start()
	return faults
}

// expire applies an update that only removes expired resources.
func (s *subscription) expire(u *update) {
	if changed, _ := s.apply(u); changed {
		s.stats.reload.Inc()
	}
}

// next counts the attempt that follows a response.
func (s *subscription) next() {
	if !s.polled {
		s.stats.attempt.Inc()
	}
}

// reject counts an update that could not be decoded.
func (s *subscription) reject() {
	s.answered()
	s.stats.rejected.Inc()
	s.next()
	s.start()
}

// failed counts a failure to reach the server or to read the file.
func (s *subscription) failed() {
	s.stats.failure.Inc()
	s.next()
}
