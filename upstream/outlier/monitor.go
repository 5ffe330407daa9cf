package outlier

import (
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// monitor collects the results of one host.
type monitor struct {
	d    *Detector
	host *host.Host

	external, local stream

	errors5xx, gateway, localFailures atomic.Uint64 // in a row

	// The rest is guarded by the detector's mu.
	ejected    bool
	ejections  uint64
	ejectedAt  time.Time
	returnedAt time.Time // zero: never
	backoff    uint64
	jitter     time.Duration
	removed    bool
}

// stream counts results. The counts only increase; an interval is the difference to the
// counts at its start.
type stream struct {
	total, success         atomic.Uint64
	totalSeen, successSeen uint64 // guarded by the detector's mu
}

// interval returns the success rate in percent and the volume since the last
// call.
func (s *stream) interval() (rate float64, volume uint64) {
	// Load success first, so that it does not exceed the total. A result that was added
	// to the total before the last call can have been added to success after it.
	success, total := s.success.Load(), s.total.Load()
	volume = total - s.totalSeen
	if volume > 0 {
		rate = min(100, 100*float64(success-s.successSeen)/float64(volume))
	}
	s.totalSeen, s.successSeen = total, success
	return rate, volume
}

var _ host.Monitor = (*monitor)(nil)

// PutCode implements host.Monitor.
func (m *monitor) PutCode(status int) {
	m.external.total.Add(1)
	if status < 500 || status > 599 {
		m.external.success.Add(1)
		reset(&m.errors5xx)
		reset(&m.gateway)
		return
	}
	if status >= 502 && status <= 504 {
		m.count(&m.gateway, limitGateway, ConsecutiveGatewayFailure)
	} else {
		reset(&m.gateway)
	}
	m.count(&m.errors5xx, limit5xx, Consecutive5xx)
}

// reset avoids writes to the shared memory of healthy hosts.
func reset(n *atomic.Uint64) {
	if n.Load() != 0 {
		n.Store(0)
	}
}

// count adds one to a run of errors and fires at the limit.
func (m *monitor) count(n *atomic.Uint64, limit setting, k Kind) {
	if n.Add(1) == m.d.number(limit) {
		m.d.fire(m, k, n)
	}
}

// PutResult implements host.Monitor.
func (m *monitor) PutResult(r host.Result, status int) {
	if m.d.c.Settings.SplitLocalErrors {
		m.putSplit(r, status)
		return
	}
	if status == 0 {
		switch r {
		case host.ConnectTimeout, host.RequestTimeout:
			status = 504
		case host.ConnectFailed:
			status = 503
		case host.RequestFailed:
			status = 500
		case host.RequestSuccess:
			status = 200
		default:
			return
		}
	}
	m.PutCode(status)
}

// putSplit separates errors of local origin from answers of the host.
func (m *monitor) putSplit(r host.Result, status int) {
	switch r {
	case host.ConnectTimeout, host.ConnectFailed, host.RequestTimeout:
		m.local.total.Add(1)
		m.count(&m.localFailures, limitLocal, ConsecutiveLocalOriginFailure)
	case host.ConnectSuccess:
		m.local.total.Add(1)
		m.local.success.Add(1)
		reset(&m.localFailures)
	case host.RequestFailed:
		if status == 0 {
			status = 503
		}
		m.PutCode(status)
	case host.RequestSuccess:
		m.PutCode(status)
	}
}
