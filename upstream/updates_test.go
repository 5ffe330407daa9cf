package upstream

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// tally is what clients saw, by the name of the counter that should show it.
type tally struct{ counts sync.Map } // name to *atomic.Uint64

func (t *tally) add(names ...string) {
	for _, name := range names {
		n, _ := t.counts.LoadOrStore(name, new(atomic.Uint64))
		n.(*atomic.Uint64).Add(1)
	}
}

// one makes a request with what goes with it.
func (t *tally) one(c *Cluster, random *rand.Rand) {
	h, err := c.Pick(nil)
	if err != nil {
		c.RequestRefused(nil, RequestEnd{Status: 503})
		t.add("upstream_cx_none_healthy", "upstream_rq_completed", "upstream_rq_5xx", "upstream_rq_503")
		return
	}
	c.ConnStarted(h)
	t.add("upstream_cx_total", "upstream_cx_destroy")
	if random.IntN(10) == 0 {
		c.ConnFailed(h, random.IntN(2) == 0)
		t.add("upstream_cx_connect_fail")
		return
	}
	c.ConnEstablished(h, 0)
	c.RequestStarted(h)
	if random.IntN(20) == 0 {
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond) // in flight across an update
	}
	t.add("upstream_rq_total")
	switch status := []int{200, 204, 404, 500, 503}[random.IntN(5)]; random.IntN(8) {
	case 0:
		c.RequestFinished(h, RequestEnd{BadAnswer: true, Status: 502})
		t.add("upstream_rq_completed", "upstream_rq_5xx", "upstream_rq_502", "upstream_cx_protocol_error")
	case 1:
		c.RequestFinished(h, RequestEnd{Status: status, Retried: true})
		t.add("retry.upstream_rq_completed", fmt.Sprintf("retry.upstream_rq_%dxx", status/100), fmt.Sprintf("retry.upstream_rq_%d", status))
	default:
		c.RequestFinished(h, RequestEnd{Status: status})
		t.add("upstream_rq_completed", fmt.Sprintf("upstream_rq_%dxx", status/100), fmt.Sprintf("upstream_rq_%d", status))
	}
	c.ConnClosed(h, ConnEnd{Local: true, Requests: 1})
	t.add("upstream_cx_destroy_local")
}

// check compares the counters. connect failures end on either side, so the sides
// are compared as a sum.
func (t *tally) check(r *rig) {
	r.t.Helper()
	t.counts.Range(func(name, n any) bool {
		if name != "upstream_cx_destroy_local" {
			r.check("cluster.c.", map[string]uint64{name.(string): n.(*atomic.Uint64).Load()})
		}
		return true
	})
	if local, remote := r.value("cluster.c.upstream_cx_destroy_local"), r.value("cluster.c.upstream_cx_destroy_remote"); local+remote != r.value("cluster.c.upstream_cx_destroy") {
		r.t.Errorf("%d closed by us and %d by hosts are not upstream_cx_destroy", local, remote)
	}
	r.check("cluster.c.", map[string]uint64{"upstream_rq_active": 0, "upstream_cx_active": 0})
}

// names returns the number of stats of the cluster.
func (r *rig) stats() (n int) {
	v := r.st.View()
	defer v.Close()
	for _, sel := range []store.NameSet{store.Scalars, store.Histograms} {
		for c := v.ByName(sel); c.Next(); {
			if len(c.Name()) > 10 && c.Name()[:10] == "cluster.c." {
				n++
			}
		}
	}
	return n
}

// TestUpdatesLoseNoCounts updates a cluster at random while requests run, also
// removes and returns it, and compares every counter with what the clients saw.
func TestUpdatesLoseNoCounts(t *testing.T) {
	for _, removals := range []bool{false, true} {
		t.Run(fmt.Sprintf("removals=%t", removals), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := newRig(t, nil)
			r.Start()
			r.add(static("c", 2, ""))
			var seen tally
			if removals {
				// Without it totals would start from 0 with each return.
				holder := r.st.Root().Scope("cluster.c")
				defer holder.Close()
				for _, prefix := range []string{"", "retry."} {
					for _, name := range []string{
						"upstream_rq_completed", "upstream_rq_2xx", "upstream_rq_4xx", "upstream_rq_5xx", "upstream_rq_200", "upstream_rq_204",
						"upstream_rq_404", "upstream_rq_500", "upstream_rq_502", "upstream_rq_503",
					} {
						holder.Counter(prefix + name)
					}
				}
				for _, name := range []string{
					"upstream_rq_total", "upstream_cx_total", "upstream_cx_destroy", "upstream_cx_destroy_local", "upstream_cx_destroy_remote",
					"upstream_cx_connect_fail", "upstream_cx_none_healthy", "upstream_cx_protocol_error",
				} {
					holder.Counter(name)
				}
			}
			var stop atomic.Bool
			var clients sync.WaitGroup
			for i := range 8 {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				clients.Go(func() {
					for !stop.Load() {
						hd := r.Cluster("c")
						if hd == nil {
							continue
						}
						if c := hd.Acquire(); c != nil {
							seen.one(c, random)
							c.Release()
						}
					}
				})
			}
			random := rand.New(rand.NewPCG(seed, 99))
			for range 150 {
				switch random.IntN(4) {
				case 0:
					if removals {
						r.Remove("c")
					}
				default:
					r.add(static("c", random.IntN(4), fmt.Sprintf("connection_pool_per_downstream_connection: false\nper_connection_buffer_limit_bytes: %d", 1+random.IntN(1<<20))))
				}
				time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
			}
			r.add(static("c", 1, ""))
			stop.Store(true)
			clients.Wait()
			seen.check(r)
			if !removals {
				r.Remove("c")
				if n := r.stats(); n != 0 {
					t.Errorf("%d stats of a removed cluster are left", n)
				}
			}
		})
	}
}

// TestAcquireOfAClosedManager: a request that comes after the manager was closed finds no
// cluster.
func TestAcquireOfAClosedManager(t *testing.T) {
	r, c := started(t, nil, static("c", 1, ""))
	h := r.Cluster("c")
	r.Close()
	if got := h.Acquire(); got != nil {
		t.Errorf("acquired %v", got.Config().Name)
	}
	if h.Current() != c {
		t.Error("the cluster is not shown any more")
	}
}

// TestRequestsInFlightAcrossARemoval keeps the statistics of a removed cluster
// until the last request and the last connection end.
func TestRequestsInFlightAcrossARemoval(t *testing.T) {
	r, c := started(t, nil, static("c", 1, "track_timeout_budgets: true"))
	held := r.Cluster("c").Acquire()
	h := c.Sets()[0].Hosts[0]
	c.ConnStarted(h)
	c.RequestStarted(h)
	r.Remove("c")
	c.RequestFinished(h, RequestEnd{Status: 200})
	held.Release()
	r.check("cluster.c.", map[string]uint64{"upstream_rq_200": 1, "upstream_rq_completed": 1, "upstream_rq_active": 0, "upstream_cx_active": 1})
	r.add(static("c", 1, "")) // returns before the connection ends
	c.ConnClosed(h, ConnEnd{})
	r.check("cluster.c.", map[string]uint64{"upstream_rq_200": 1, "upstream_cx_destroy": 1, "upstream_cx_active": 0})
	if hd := r.Cluster("c"); hd.Acquire() == c {
		t.Error("acquired the removed version")
	} else {
		hd.Current().Release()
	}
	r.Remove("c")
	if n := r.stats(); n != 0 {
		t.Errorf("%d stats are left", n)
	}
}

// TestUnlimitedBreakersShowNoRemaining: the gauge appears with the first limit.
func TestUnlimitedBreakersShowNoRemaining(t *testing.T) {
	rt := &values{}
	r := newRig(t, func(c *Config) { c.Runtime = rt })
	r.Start()
	r.add(static("c", 1, "circuit_breakers: {thresholds: [{track_remaining: true}]}"))
	const name = "cluster.c.circuit_breakers.default.remaining_cx_pools"
	v := r.st.View()
	if _, ok := v.Find(name); ok {
		t.Errorf("%s = %d without a limit", name, r.value(name))
	}
	v.Close()
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"remaining_cx": 1024})
	rt.set("circuit_breakers.c.default.max_connection_pools", 7)
	r.RuntimeChanged()
	r.Cluster("c").Current().Breakers(DefaultPriority).Pools.Take()
	r.check("cluster.c.circuit_breakers.default.", map[string]uint64{"remaining_cx_pools": 6})
}
