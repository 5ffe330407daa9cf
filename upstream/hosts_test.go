package upstream

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestRemovedHostsLeaveOtherPriorities: a removal publishes the priorities that lose hosts,
// and counts a change for each.
func TestRemovedHostsLeaveOtherPriorities(t *testing.T) {
	r, c := started(t, nil, static("c", 1, ""))
	c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{hosts(spec(1), spec(2)).Priorities[0], hosts(spec(3)).Priorities[0]}})
	before, changes := c.Sets(), r.value("cluster.c.membership_change")
	c.removeHosts(func(h *host.Host) bool { return h == before[0].Hosts[1] })
	if after := c.Sets(); shown(c) != "0:1 1:3" || after[1] != before[1] {
		t.Errorf("hosts %s, or the set of another priority was made again", shown(c))
	}
	r.check("cluster.c.", map[string]uint64{"membership_change": changes + 1, "membership_total": 2})
	c.removeHosts(func(h *host.Host) bool { return h == before[0].Hosts[1] })
	r.check("cluster.c.", map[string]uint64{"membership_change": changes + 1, "membership_total": 2})
}

// TestDiscoveryEndsBetweenUpdates: a source whose hosts are of several groups can end its
// discovery while another group is updated. The cluster waits for the checks of all
// hosts of that update.
func TestDiscoveryEndsBetweenUpdates(t *testing.T) {
	var c *Cluster
	done := make(chan struct{})
	r := newRig(t, func(o *Config) {
		added := o.Hooks.HostAdded
		o.Hooks.HostAdded = func(cl *Cluster, h *host.Host) {
			added(cl, h)
			if h.Address() != spec(1).Address {
				return
			}
			go func() { // the second host is not being checked yet
				defer close(done)
				c.DiscoveryDone()
			}()
			for range 10_000 { // long enough for a discovery that does not wait
				runtime.Gosched()
			}
		}
		o.Dial = func(ctx context.Context, _ *config.Cluster, h *host.Host, _ config.Address) (net.Conn, error) {
			if h.Address() == spec(1).Address {
				return nil, errors.New("refused")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	r.Start()
	r.add(byEDS("c", strings.Replace(checks, "timeout: 0.05s", "timeout: 60s", 1)))
	c = r.source("c")
	c.UpdateHosts(1, hosts(spec(1), spec(2)))
	<-done
	if c.Ready() {
		t.Error("ready before the first check of a host is over")
	}
}

// TestHasHostDoesNotWait: a balancer that is updated, which can take long for a ring,
// holds up no request.
func TestHasHostDoesNotWait(t *testing.T) {
	_, c := started(t, nil, static("c", 1, ""))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.HasHost(c.Sets()[0].Hosts[0]) || c.HasHost(host.New(spec(1))) {
		t.Error("the host is not known, or another one is")
	}
}
