package upstream

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

type sourceFunc func(ctx context.Context, c *Cluster)

func (f sourceFunc) Run(ctx context.Context, c *Cluster) { f(ctx, c) }

// TestSourcePanics panics in a source of hosts, and in the hooks that follow. The
// cluster must not be awaited forever, and the process continues.
func TestSourcePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		r, _ := started(t, func(o *Config) {
			o.Logger = panics.Logger()
			o.Source = func(*config.Cluster) (Source, error) {
				return sourceFunc(func(_ context.Context, c *Cluster) {
					c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(1)}}}})
					panic(guardtest.Canary)
				}), nil
			}
			o.Hooks.ClusterReady = func(c *Cluster) {
				if c.Config().Name == "wild" {
					panic(guardtest.Canary)
				}
			}
		}, "name: c\ntype: EDS\neds_cluster_config: {eds_config: {ads: {}}}")
		panics.Caught("source of hosts")
		synctest.Wait()
		if got := picks(r.Cluster("c").Current(), 1); got != "1" {
			t.Errorf("picks %s", got)
		}
		r.add(byEDS("wild", ""))
		panics.Caught("source of hosts")
		panics.Caught("end of discovery")
		r.add(static("d", 2, ""))
		if got := picks(r.Cluster("d").Current(), 2); got != "1 2" {
			t.Errorf("another cluster picks %s", got)
		}
	})
}

// wildBalancer panics when it is updated, if it is lit.
type wildBalancer struct {
	last
	lit bool
}

func (w *wildBalancer) Balancer() lb.Balancer { return w }
func (w *wildBalancer) Update(sets []*host.Set, local *host.Set) {
	if w.lit {
		panic(guardtest.Canary)
	}
	w.last.Update(sets, local)
}

// TestBalancerPanics: a balancer that panics has missed one update.
func TestBalancerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		w := &wildBalancer{last: last{manual: manual{make(chan *Cluster, 1)}}}
		r := newRig(t, func(c *Config) {
			c.Logger = panics.Logger()
			c.Source = func(*config.Cluster) (Source, error) { return w, nil }
		})
		r.Start()
		r.addMine()
		c := <-w.started
		c.UpdateHosts(0, hosts(spec(1)))
		c.DiscoveryDone()
		w.lit = true
		c.UpdateHosts(0, hosts(spec(1), spec(2)))
		panics.Caught("balancer")
		if got := picks(c, 1); got != "1" {
			t.Errorf("picks %s after a panic", got)
		}
		w.lit = false
		c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
		if got := picks(c, 1); got != "3" {
			t.Errorf("picks %s after the next update", got)
		}
	})
}

// wildRuntime panics a given number of times.
type wildRuntime struct{ left atomic.Int32 }

func (w *wildRuntime) Uint(_ string, otherwise uint64) uint64 {
	if w.left.Add(-1) >= 0 {
		panic(guardtest.Canary)
	}
	return otherwise
}

func (w *wildRuntime) Float(_ string, otherwise float64) float64 { return otherwise }

// TestOutlierDetectionPanics: after a panic hosts are judged again, without
// haste when it panics each time.
func TestOutlierDetectionPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		rt := new(wildRuntime)
		r, c := started(t, func(o *Config) { o.Logger, o.Runtime = panics.Logger(), rt },
			static("c", 2, "outlier_detection: {interval: 10s, consecutive_5xx: 3, max_ejection_percent: 100}"))
		synctest.Wait()
		rt.left.Store(4) // of a step, and the next three begins
		begun := time.Now()
		for range 4 {
			panics.Caught("outlier detection")
		}
		if took := time.Since(begun); took != 13*time.Second {
			t.Errorf("four panics within %v", took)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		h, err := c.Pick(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			c.RequestStarted(h)
			c.RequestFinished(h, RequestEnd{Status: 500})
		}
		r.check("cluster.c.outlier_detection.", map[string]uint64{"ejections_active": 1})
		time.Sleep(time.Minute)
		synctest.Wait()
		r.check("cluster.c.outlier_detection.", map[string]uint64{"ejections_active": 0})
	})
}

// TestRemovalPanics removes unused hosts although a hook panics at the first.
func TestRemovalPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		lit := true
		r, c := started(t, func(o *Config) {
			o.Logger = panics.Logger()
			o.Hooks.HostRemoved = func(*Cluster, *host.Host) {
				if lit {
					lit = false
					panic(guardtest.Canary)
				}
			}
		}, originalText)
		pick := func(n int) {
			if _, err := c.Pick(&lb.Context{Destination: spec(n).Address}); err != nil {
				t.Error(err)
			}
		}
		pick(1)
		panics.Caught("removal of hosts")
		pick(2)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_total": 0})
		r.Close()
	})
}

// TestLateChangesPanic lets a change that a timer applies panic, because a
// pointer is nil, and checks that the next change works.
func TestLateChangesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		r, c := started(t, func(o *Config) { o.Logger = panics.Logger() }, originalText)
		pick := func(n int) {
			if _, err := c.Pick(&lb.Context{Destination: spec(n).Address}); err != nil {
				t.Error(err)
			}
		}
		pick(1)
		stats := c.stats
		c.mu.Lock()
		c.stats = nil
		c.mu.Unlock()
		pick(2)
		panics.Caught("new hosts")
		c.mu.Lock()
		c.stats = stats
		c.mu.Unlock()
		pick(3)
		time.Sleep(originalsEvery)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_total": 3})
		r.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		r := newRig(t, func(o *Config) { o.Logger = panics.Logger() })
		r.Start()
		r.add(byEDS("c", "common_lb_config: {update_merge_window: 1s, healthy_panic_threshold: {value: 0}}"))
		c := r.source("c")
		c.UpdateHosts(0, hosts(spec(1), spec(2)))
		c.DiscoveryDone()
		bad, good := eds(status.FailedEDSHealth), eds(0)
		c.UpdateHosts(0, hosts(spec(1, bad), spec(2)))
		c.UpdateHosts(0, hosts(spec(1, good), spec(2)))
		sets := c.sets.Swap(nil)
		panics.Caught("merged updates")
		c.sets.Store(sets)
		c.UpdateHosts(0, hosts(spec(1, good), spec(2, bad)))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := picks(c, 2); got != "1 1" {
			t.Errorf("picks %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		r, c := started(t, func(o *Config) { o.Logger = panics.Logger() }, static("c", 2*fewHosts, ""))
		defer r.Close()
		all := c.Sets()[0].Hosts
		c.healthChanged(all[0], 0)
		c.healthChanged(all[1], 0) // waits
		sets := c.sets.Swap(nil)
		panics.Caught("health of hosts")
		c.sets.Store(sets)
		all[2].SetFlags(status.FailedActiveHC)
		c.healthChanged(all[2], 0)
		time.Sleep(healthEvery)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_healthy": 2*fewHosts - 1})
	})
}
