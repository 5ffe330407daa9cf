package upstream

import (
	"testing"

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
