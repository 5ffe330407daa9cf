package upstream

import (
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestHostReturnsAsItFails: discovery has forgotten a host, which then fails a check
// while an update that names the host again is under way. The host stays.
func TestHostReturnsAsItFails(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Rand = func() uint64 { return 1 << 40 } }) // the first check is far away
	r.Start()
	r.add(byEDS("c", "health_checks: [{timeout: 1s, interval: 600s, initial_jitter: 3600s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]"))
	c := r.source("c")
	for _, comesBack := range []bool{true, false} {
		c.UpdateHosts(0, hosts(spec(1)))
		h := c.Sets()[0].Hosts[0]
		h.ClearFlags(status.FailedActiveHC)
		c.UpdateHosts(0, hosts())
		h.SetFlags(status.FailedActiveHC)
		c.updating.Lock() // as an update does
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.checkDone(health.Report{Host: h})
		}()
		waittest.Until(t, "the removal waits", func() bool {
			stacks := make([]byte, 1<<20)
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ").removeHosts(")
		})
		if comesBack {
			h.ClearFlags(status.PendingDynamicRemoval)
		}
		c.updating.Unlock()
		<-done
		if got := len(c.Sets()[0].Hosts) > 0; got != comesBack {
			t.Errorf("comes back: %t, stays: %t", comesBack, got)
		}
	}
}
