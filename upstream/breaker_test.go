package upstream

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// values is a runtime for tests.
type values struct {
	mu sync.Mutex
	m  map[string]float64
}

func (v *values) set(key string, x float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.m == nil {
		v.m = map[string]float64{}
	}
	v.m[key] = x
}

func (v *values) Float(key string, otherwise float64) float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, ok := v.m[key]; ok {
		return x
	}
	return otherwise
}

func (v *values) Uint(key string, otherwise uint64) uint64 {
	return uint64(v.Float(key, float64(otherwise)))
}

func TestBreakers(t *testing.T) {
	r := newRig(t, nil)
	r.add(static("c", 1, `circuit_breakers:
  thresholds:
  - {priority: HIGH, max_connections: 7}
  - {max_connections: 2, max_pending_requests: 1, max_requests: 1, max_retries: 1, max_connection_pools: 1, track_remaining: true}
  - {max_connections: 99}`))
	b := r.Cluster("c").Current().Breakers(DefaultPriority)
	const p = "cluster.c.circuit_breakers.default."
	r.check(p, map[string]uint64{"cx_open": 0, "remaining_cx": 2, "remaining_pending": 1, "remaining_rq": 1, "remaining_retries": 1, "remaining_cx_pools": 1})
	for i, tt := range []struct {
		r        *Resource
		open     string
		overflow string
		max      int
	}{
		{&b.Connections, "cx_open", "upstream_cx_overflow", 2},
		{&b.Pending, "rq_pending_open", "upstream_rq_pending_overflow", 1},
		{&b.Requests, "rq_open", "upstream_rq_pending_overflow", 1},
		{&b.Retries, "rq_retry_open", "upstream_rq_retry_overflow", 1},
		{&b.Pools, "cx_pool_open", "upstream_cx_pool_overflow", 1},
	} {
		before := r.value("cluster.c." + tt.overflow)
		for range tt.max {
			if !tt.r.TryTake() {
				t.Fatalf("resource %d: refused below its maximum", i)
			}
		}
		r.check(p, map[string]uint64{tt.open: 1})
		if tt.r.TryTake() || r.value("cluster.c."+tt.overflow) != before+1 {
			t.Errorf("resource %d: taken beyond the maximum or not counted", i)
		}
		tt.r.Take() // a first connection may always
		if tt.r.Current() != uint64(tt.max)+1 {
			t.Errorf("resource %d: current %d", i, tt.r.Current())
		}
		tt.r.Release()
		r.check(p, map[string]uint64{tt.open: 1})
		tt.r.Release()
		r.check(p, map[string]uint64{tt.open: 0})
		for range 5 {
			tt.r.Release()
		}
		if tt.r.Current() != 0 {
			t.Errorf("resource %d: current %d after too many releases", i, tt.r.Current())
		}
	}
	if got := r.Cluster("c").Current().Breakers(HighPriority); got.Connections.Max() != 7 || got.Requests.Max() != 1024 || got.Retries.Max() != 3 || got.Pools.Max() != config.NoLimit {
		t.Errorf("high: %d, %d, %d, %d", got.Connections.Max(), got.Requests.Max(), got.Retries.Max(), got.Pools.Max())
	}
	// Without track_remaining the gauges do not exist.
	v := r.st.View()
	defer v.Close()
	for c := v.ByName(store.Scalars); c.Next(); {
		if strings.Contains(c.Name(), "circuit_breakers.high.remaining") {
			t.Errorf("there is a %s", c.Name())
		}
	}
}

func TestBreakerMaximumZeroOpensAtTheFirstChange(t *testing.T) {
	r := newRig(t, nil)
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{max_requests: 0}]}"))
	b := &r.Cluster("c").Current().Breakers(DefaultPriority).Requests
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"rq_open": 0})
	if b.TryTake() {
		t.Error("taken from nothing")
	}
	b.Take()
	b.Release()
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"rq_open": 1})
}

func TestRemainingRequestsOfALargeLimit(t *testing.T) {
	r := newRig(t, nil)
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{max_requests: 4294967295, track_remaining: true}]}"))
	b := r.Cluster("c").Current().Breakers(DefaultPriority)
	for range 2 {
		r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"remaining_rq": math.MaxUint32 - b.Requests.Current()})
		b.Requests.Take()
		b.Pools.Take()
	}
}

func TestRetryBudget(t *testing.T) {
	rt := &values{}
	r := newRig(t, func(c *Config) { c.Runtime = rt })
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{max_retries: 1, track_remaining: true, retry_budget: {budget_percent: {value: 25}, min_retry_concurrency: 2}}]}"))
	b := r.Cluster("c").Current().Breakers(DefaultPriority)
	if b.Retries.Max() != 2 {
		t.Errorf("idle: %d, want the minimum 2", b.Retries.Max())
	}
	for range 15 {
		b.Requests.Take()
	}
	for range 4 {
		b.Pending.Take()
	}
	if b.Retries.Max() != 4 {
		t.Errorf("19 requests: %d, want floor(4.75)", b.Retries.Max())
	}
	b.Retries.Take()
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"remaining_retries": 0, "rq_retry_open": 0})
	rt.set("circuit_breakers.c.default.retry_budget.budget_percent", 50)
	if b.Retries.Max() != 9 {
		t.Errorf("by runtime: %d, want 9", b.Retries.Max())
	}
	rt.set("circuit_breakers.c.default.retry_budget.min_retry_concurrency", 12)
	if b.Retries.Max() != 12 {
		t.Errorf("minimum by runtime: %d, want 12", b.Retries.Max())
	}
}

func TestBreakerRuntime(t *testing.T) {
	rt := &values{}
	rt.set("circuit_breakers.c.high.max_requests", 5)
	r := newRig(t, func(c *Config) { c.Runtime = rt })
	r.add(static("c", 1, ""))
	c := r.Cluster("c").Current()
	if got := c.Breakers(HighPriority).Requests.Max(); got != 5 {
		t.Errorf("at creation: %d, want 5", got)
	}
	b := &c.Breakers(DefaultPriority).Connections
	b.Take()
	rt.set("circuit_breakers.c.default.max_connections", 1)
	r.RuntimeChanged()
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"cx_open": 1})
	if b.TryTake() {
		t.Error("taken beyond the runtime's maximum")
	}
}

// TestEveryMaximumIsByRuntimeToo sets the key of each maximum to a number of its own.
func TestEveryMaximumIsByRuntimeToo(t *testing.T) {
	rt := &values{}
	r := newRig(t, func(c *Config) { c.Runtime = rt })
	r.add(static("c", 1, ""))
	c := r.Cluster("c").Current()
	n := 0.0
	for _, p := range []Priority{DefaultPriority, HighPriority} {
		for _, name := range []string{"max_connections", "max_pending_requests", "max_requests", "max_retries", "max_connection_pools"} {
			n++
			rt.set("circuit_breakers.c."+p.String()+"."+name, n)
		}
	}
	r.RuntimeChanged()
	want := uint64(0)
	for _, p := range []Priority{DefaultPriority, HighPriority} {
		b := c.Breakers(p)
		for i, x := range []*Resource{&b.Connections, &b.Pending, &b.Requests, &b.Retries, &b.Pools} {
			if want++; x.Max() != want {
				t.Errorf("%s priority, resource %d: %d, want %d", p, i, x.Max(), want)
			}
		}
	}
	high := c.Breakers(HighPriority)
	for _, x := range []*Resource{&c.Breakers(DefaultPriority).Requests, &high.Connections, &high.Connections, &high.Pending, &high.Retries} {
		x.Take()
	}
	r.Statuses(func(v *status.Cluster) bool {
		if v.Breakers != [2]status.BreakerLimits{limits(1, 2, 3, 4), limits(6, 7, 8, 9)} {
			t.Errorf("shown %v", v.Breakers)
		}
		if v.InUse != [2]status.BreakerUse{{Requests: 1}, {Connections: 2, PendingRequests: 1, Retries: 1}} {
			t.Errorf("in use %+v", v.InUse)
		}
		return true
	})
}

func limits(connections, pending, requests, retries uint64) status.BreakerLimits {
	return status.BreakerLimits{MaxConnections: connections, MaxPendingRequests: pending, MaxRequests: requests, MaxRetries: retries}
}

func TestRetryBudgetIsShownAsItIsNow(t *testing.T) {
	r := newRig(t, nil)
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{priority: HIGH, max_retries: 1, retry_budget: {budget_percent: {value: 50}}}]}"))
	b := r.Cluster("c").Current().Breakers(HighPriority)
	for requests, want := range []uint64{3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5} {
		r.Statuses(func(v *status.Cluster) bool {
			if v.Breakers[HighPriority].MaxRetries != want || v.Breakers[DefaultPriority].MaxRetries != 3 {
				t.Errorf("%d requests: shown %v, want %d retries", requests, v.Breakers, want)
			}
			return true
		})
		b.Requests.Take()
	}
}

// TestRetryBudgetIsExact compares the budget with what whole numbers give.
func TestRetryBudgetIsExact(t *testing.T) {
	rt := &values{}
	r := newRig(t, func(c *Config) { c.Runtime = rt })
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{retry_budget: {min_retry_concurrency: 0}}]}"))
	b := r.Cluster("c").Current().Breakers(DefaultPriority)
	const key = "circuit_breakers.c.default.retry_budget.budget_percent"
	for busy := uint64(0); busy <= 300; busy++ {
		for percent := range uint64(101) {
			rt.set(key, float64(percent))
			if got, want := b.Retries.Max(), percent*busy/100; got != want {
				t.Fatalf("%d percent of %d: %d, want %d", percent, busy, got, want)
			}
		}
		if busy%2 == 0 {
			b.Requests.Take()
		} else {
			b.Pending.Take()
		}
	}
	for _, tt := range []struct {
		percent float64
		want    uint64
	}{{12.5, 37}, {1.0 / 3, 1}, {-1, 0}, {250, 301}, {math.NaN(), 0}} {
		rt.set(key, tt.percent)
		if got := b.Retries.Max(); got != tt.want {
			t.Errorf("%v percent of 301: %d, want %d", tt.percent, got, tt.want)
		}
	}
}

// TestBreakerGaugeIsRightInTheEnd: however takes and releases race, the gauge
// shows the last state.
func TestBreakerGaugeIsRightInTheEnd(t *testing.T) {
	r := newRig(t, nil)
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{max_requests: 2}]}"))
	b := &r.Cluster("c").Current().Breakers(DefaultPriority).Requests
	for range 50 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					b.Take()
					b.Release()
				}
			})
		}
		wg.Wait()
		if b.Current() != 0 || r.value("cluster.c.circuit_breakers.default.rq_open") != 0 {
			t.Fatalf("current %d, rq_open %d", b.Current(), r.value("cluster.c.circuit_breakers.default.rq_open"))
		}
	}
}
