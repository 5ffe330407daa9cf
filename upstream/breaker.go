package upstream

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Priority is the priority of a request. Each has its own circuit breakers.
type Priority uint8

// The request priorities.
const (
	DefaultPriority Priority = iota
	HighPriority
)

// String returns the priority as in the names of statistics.
func (p Priority) String() string {
	if p == HighPriority {
		return "high"
	}
	return "default"
}

// Breakers are the circuit breakers of one request priority.
type Breakers struct {
	Connections, Pending, Requests, Retries, Pools Resource
}

// Resource is a limited number of connections, requests, retries or pools. It is
// safe for concurrent use and takes a lock only when it opens or closes.
//
// [Resource.CanTake] and [Resource.Take] are separate because a pool without a
// connection can exceed the maximum.
type Resource struct {
	current atomic.Int64
	limit   atomic.Uint64

	// budget computes the limit in place of limit; nil for all but retries.
	budget func() uint64

	overflow  *store.Counter
	open      *store.Gauge
	track     func() *store.Gauge         // returns the gauge of the rest; nil unless it is tracked
	remaining atomic.Pointer[store.Gauge] // nil as long as there was no limit
	isOpen    atomic.Bool
	shown     atomic.Bool // the gauges belong to this version of the cluster
	mu        sync.Mutex  // held while isOpen or shown changes

	key        string // of the runtime value
	configured uint64
}

// Max returns the current limit.
func (r *Resource) Max() uint64 {
	if r.budget != nil {
		return r.budget()
	}
	return r.limit.Load()
}

// Current returns the number in use.
func (r *Resource) Current() uint64 { return uint64(max(r.current.Load(), 0)) }

// CanTake reports whether fewer than the maximum are in use. If not, it counts
// the overflow.
func (r *Resource) CanTake() bool {
	if r.Current() < r.Max() {
		return true
	}
	r.overflow.Inc()
	return false
}

// Take takes one regardless of the maximum.
func (r *Resource) Take() {
	r.current.Add(1)
	r.show()
}

// TryTake takes one if the maximum allows it, and reports whether it did.
func (r *Resource) TryTake() bool {
	if !r.CanTake() {
		return false
	}
	r.Take()
	return true
}

// Release gives one back.
func (r *Resource) Release() {
	r.current.Add(-1)
	r.show()
}

// show updates the gauges.
func (r *Resource) show() {
	limit, current := r.Max(), r.Current()
	if r.shown.Load() {
		r.showRemaining(limit, current)
	}
	if (current >= limit) != r.isOpen.Load() {
		r.turn()
	}
}

// showRemaining sets the gauge of how much can still be taken: 0 with a budget,
// nothing without a limit.
func (r *Resource) showRemaining(limit, current uint64) {
	if r.track == nil || r.budget == nil && limit > math.MaxInt64 {
		return
	}
	g := r.remaining.Load()
	if g == nil {
		g = r.track()
		r.remaining.Store(g)
	}
	if r.budget != nil {
		limit = current
	}
	g.Set(limit - min(current, limit))
}

// turn sets the open gauge. A change of current is followed by a look at isOpen,
// and turn looks at current after it has changed isOpen, so no change is missed.
func (r *Resource) turn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		open := r.Current() >= r.Max()
		if open == r.isOpen.Load() {
			return
		}
		r.isOpen.Store(open)
		if r.shown.Load() {
			r.open.Set(oneIf(open))
		}
	}
}

func oneIf(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// reveal takes the gauges over from another version.
func (r *Resource) reveal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Store(true)
	r.showRemaining(r.Max(), r.Current())
	if open := oneIf(r.isOpen.Load()); r.open.Value() != open {
		r.open.Set(open)
	}
}

// hide leaves the gauges to another version.
func (r *Resource) hide() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Store(false)
}

func (b *Breakers) all() []*Resource {
	return []*Resource{&b.Connections, &b.Pending, &b.Requests, &b.Retries, &b.Pools}
}

// init sets up b in place.
func (b *Breakers) init(sc *store.Scope, stats *Stats, cluster string, p Priority, t *config.Thresholds, rt config.Runtime) {
	prefix := "circuit_breakers." + p.String() + "."
	key := "circuit_breakers." + cluster + "." + p.String() + "."
	set := func(r *Resource, name, openName, leftName string, configured uint64, overflow *store.Counter) {
		r.key, r.configured, r.overflow = key+name, configured, overflow
		r.limit.Store(rt.Uint(r.key, configured))
		r.open = sc.Gauge(prefix + openName)
		if t.TrackRemaining {
			r.track = func() *store.Gauge { return sc.Gauge(prefix + leftName) }
		}
	}
	set(&b.Connections, "max_connections", "cx_open", "remaining_cx", t.MaxConnections, stats.CxOverflow)
	set(&b.Pending, "max_pending_requests", "rq_pending_open", "remaining_pending", t.MaxPendingRequests, stats.RqPendingOverflow)
	set(&b.Requests, "max_requests", "rq_open", "remaining_rq", t.MaxRequests, stats.RqPendingOverflow)
	set(&b.Retries, "max_retries", "rq_retry_open", "remaining_retries", t.MaxRetries, stats.RqRetryOverflow)
	set(&b.Pools, "max_connection_pools", "cx_pool_open", "remaining_cx_pools", t.MaxConnectionPools, stats.CxPoolOverflow)
	budget := t.RetryBudget
	if budget == nil {
		return
	}
	percentKey, least := key+"retry_budget.budget_percent", key+"retry_budget.min_retry_concurrency"
	b.Retries.budget = func() uint64 {
		percent := rt.Float(percentKey, budget.BudgetPercent)
		if !(percent > 0) { // also if it is no number
			percent = 0
		}
		busy := float64(b.Requests.Current() + b.Pending.Current())
		// Multiplied first: 29/100*100 would be less than 29.
		return max(uint64(min(percent, 100)*busy/100), rt.Uint(least, uint64(budget.MinRetryConcurrency)))
	}
}

// refresh reads the runtime values again.
func (b *Breakers) refresh(rt config.Runtime) {
	for _, r := range b.all() {
		if limit := rt.Uint(r.key, r.configured); r.limit.Swap(limit) != limit {
			r.show()
		}
	}
}
