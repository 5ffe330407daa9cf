package upstream

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestManyHostsFailTogether: a large cluster sorts its hosts once in a while, not for
// each host that fails, and shows the last failure soon.
func TestManyHostsFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := started(t, nil, static("c", 1000, ""))
		defer r.Close()
		sets := map[*host.Set]bool{}
		all := c.Sets()[0].Hosts
		for _, h := range all[:600] {
			h.SetFlags(status.FailedActiveHC)
			c.healthChanged(h, 0)
			sets[c.Sets()[0]] = true
		}
		if len(sets) != 1 || len(c.Sets()[0].Healthy) != 999 {
			t.Errorf("%d sets for 600 failures, the last one with %d healthy hosts; want the one of the first failure", len(sets), len(c.Sets()[0].Healthy))
		}
		time.Sleep(healthEvery)
		synctest.Wait()
		if n := len(c.Sets()[0].Healthy); n != 400 {
			t.Errorf("%d healthy hosts in the end, want 400", n)
		}
		r.check("cluster.c.", map[string]uint64{"membership_healthy": 400})
		time.Sleep(healthEvery)
		before := c.Sets()[0]
		all[0].ClearFlags(status.FailedActiveHC)
		if c.healthChanged(all[0], 0); c.Sets()[0] == before {
			t.Error("a single change is not shown at once")
		}
	})
}

// TestManyHostsAreReadyTogether: a cluster is ready with what its first checks found.
func TestManyHostsAreReadyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping)
		defer r.Close()
		var specs []host.Spec
		for i := range 512 {
			specs = append(specs, spec(i%250, func(s *host.Spec) {
				s.Address.IP = netip.AddrPortFrom(s.Address.IP.Addr(), uint16(80+i/250))
			}))
		}
		c.UpdateHosts(0, hosts(specs...))
		c.DiscoveryDone()
		for !c.Ready() {
			time.Sleep(time.Millisecond)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(c.delivered[0].Healthy); n != len(specs) {
			t.Errorf("the balancer got %d healthy hosts, want %d", n, len(specs))
		}
	})
}

// TestHostsOfALaterPriorityFail: what waits for one priority is shown although nothing
// waits for the one before it.
func TestHostsOfALaterPriorityFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.Start()
		r.add(byEDS("c", ""))
		c := r.source("c")
		defer r.Close()
		many := func(port int) (p PriorityHosts) {
			for i := range 2 * fewHosts {
				p.Hosts = append(p.Hosts, spec(i%250, func(s *host.Spec) {
					s.Address.IP = netip.AddrPortFrom(s.Address.IP.Addr(), uint16(port+i/250))
				}))
			}
			return p
		}
		c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{many(80), many(180)}})
		c.DiscoveryDone()
		for p, failing := range []int{3, 5} {
			for _, h := range c.Sets()[p].Hosts[:failing] {
				h.SetFlags(status.FailedActiveHC)
				c.healthChanged(h, 0)
			}
			time.Sleep(healthEvery)
			synctest.Wait()
			if got, want := len(c.Sets()[p].Healthy), 2*fewHosts-failing; got != want {
				t.Errorf("%d healthy hosts of priority %d, want %d", got, p, want)
			}
		}
	})
}
