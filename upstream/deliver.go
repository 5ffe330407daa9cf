package upstream

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// publishLocked makes a new set of priority p from its hosts, shows it, and
// delivers it to the balancer at once or later. membership tells that hosts came
// or went. c.mu is held.
func (c *Cluster) publishLocked(p int, membership bool) {
	var hosts []*host.Host
	shared := false
	for _, priorities := range c.groups {
		if p >= len(priorities) || len(priorities[p]) == 0 {
			continue
		}
		if hosts == nil {
			hosts, shared = priorities[p], true
			continue
		}
		if shared {
			hosts, shared = slices.Clone(hosts), false
		}
		hosts = append(hosts, priorities[p]...)
	}
	o := host.SetOptions{
		Local: c.env.local, KnowLocal: c.env.knowLocal,
		Overprovisioning: c.assignment.Overprovisioning, WeightedHealth: c.assignment.WeightedHealth,
	}
	if c.config.LB.LocalityWeighted && p < len(c.assignment.Priorities) {
		o.LocalityWeights = c.assignment.Priorities[p].LocalityWeights
	}
	sets := slices.Clone(*c.sets.Load())
	for len(sets) <= p {
		sets = append(sets, host.NewSet(uint32(len(sets)), nil, host.SetOptions{}))
	}
	sets[p] = host.NewSet(uint32(p), hosts, o)
	c.sets.Store(&sets)
	if !c.beside {
		c.showMembership(sets)
	}
	c.scheduleLocked(p, membership)
}

// takeOver shows the hosts in place of those of the version that served before:
// both have the same gauges.
func (c *Cluster) takeOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beside = false
	c.showMembership(*c.sets.Load())
	c.showHeaviest()
	c.showBreakers()
	if c.isLocal && c.ready && !c.closed {
		c.balanceLocked() // the other one may have been the last to tell of its hosts
	}
}

// showHeaviest sets the gauge of the heaviest host. c.mu is held.
func (c *Cluster) showHeaviest() {
	if c.heaviest > 0 && !c.beside {
		c.stats.MaxHostWeight.Set(c.heaviest)
	}
}

// showBreakers makes the gauges of the breakers those of c.
func (c *Cluster) showBreakers() {
	for i := range c.breakers {
		for _, r := range c.breakers[i].all() {
			r.reveal()
		}
	}
}

// leaveLocal takes the hosts of a closed cluster away from those who compare
// themselves with it, unless there is another version.
func (c *Cluster) leaveLocal() {
	c.mu.Lock()
	if !c.isLocal || len(c.delivered) == 0 {
		c.mu.Unlock()
		return
	}
	mine := c.delivered[0]
	c.mu.Unlock()
	if c.env.localSet.CompareAndSwap(mine, nil) {
		c.env.localChanged()
	}
}

// showMembership sets the gauges. c.mu is held.
func (c *Cluster) showMembership(sets []*host.Set) {
	var total, healthy, degraded, excluded int
	for _, s := range sets {
		total += len(s.Hosts)
		healthy += len(s.Healthy)
		degraded += len(s.Degraded)
		excluded += len(s.Excluded)
	}
	c.stats.MembershipTotal.Set(uint64(total))
	c.stats.MembershipHealthy.Set(uint64(healthy))
	c.stats.MembershipDegraded.Set(uint64(degraded))
	c.stats.MembershipExcluded.Set(uint64(excluded))
}

// scheduleLocked decides when the balancer gets priority p. Changes of
// membership are delivered at once. Others are merged: the first one after a
// quiet time goes through, those that follow wait until the window is over.
func (c *Cluster) scheduleLocked(p int, membership bool) {
	if !c.ready {
		return
	}
	for len(c.deliveries) <= p {
		c.deliveries = append(c.deliveries, delivery{})
	}
	d, m := &c.deliveries[p], &c.env.manager
	window := c.config.LB.UpdateMergeWindow
	if window > 0 {
		now := time.Now()
		if !membership {
			if now.Sub(d.last) <= window {
				if d.timer == nil {
					c.mergeLaterLocked(p, window)
				}
				return
			}
			m.outOfMergeWindow.Inc()
		}
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
			m.mergeCancelled.Inc()
		}
		d.last = now
	}
	m.updated.Inc()
	c.deliverLocked(p)
}

// mergeLaterLocked delivers priority p as it is when the window is over. c.mu is
// held.
func (c *Cluster) mergeLaterLocked(p int, window time.Duration) {
	var t *time.Timer
	deliver := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		d := &c.deliveries[p]
		if c.closed || d.timer != t { // stopped too late
			return
		}
		d.timer = nil
		d.last = time.Now()
		c.env.manager.updatedViaMerge.Inc()
		c.deliverLocked(p)
	}
	t = time.AfterFunc(window, func() { c.env.guard.Run("merged updates", deliver) })
	c.deliveries[p].timer = t
}

// deliverLocked gives the current set of p to the balancer.
func (c *Cluster) deliverLocked(p int) {
	sets := *c.sets.Load()
	next := slices.Clone(c.delivered)
	for i := len(next); i < len(sets); i++ {
		next = append(next, sets[i])
	}
	next[p] = sets[p]
	c.delivered = next
	c.balanceLocked()
}

// balanceLocked updates the balancer from what was delivered. The local cluster
// is what all others compare themselves with; it does not route by zones itself.
// A panic of the balancer, which may be one of the program, costs this update.
func (c *Cluster) balanceLocked() {
	var local *host.Set
	if !c.isLocal {
		local = c.env.localSet.Load()
	}
	c.env.guard.Run("balancer", func() { c.balancer.Update(c.delivered, local) })
	if !c.isLocal {
		return
	}
	if len(c.delivered) > 0 {
		c.env.localSet.Store(c.delivered[0])
	}
	// Takes the locks of other clusters, which never take this one's.
	c.env.localChanged()
}

// rebalance updates the balancer because something beside its hosts changed.
func (c *Cluster) rebalance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready && !c.closed {
		c.balanceLocked()
	}
}
