package upstream

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// publishLocked makes a new set of priority p from its hosts, publishes it, and
// delivers it to the balancer now or later. membership means that hosts were added or
// removed. c.mu must be held.
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

// healthEvery is the minimum interval between publications of a large priority because
// the health of hosts has changed. Each costs time for every host, and when many hosts
// fail together each of them asks for one.
const healthEvery = 50 * time.Millisecond

// fewHosts is the size up to which a priority is published at each change of health.
const fewHosts = 256

// refresh records when a priority was last published because of health.
type refresh struct {
	shown time.Time
	timer *time.Timer // nil if nothing is to be published
}

// refreshLocked publishes priority p after a change of health: at once, unless it is
// large and was published just before. c.mu must be held.
func (c *Cluster) refreshLocked(p int) {
	if sets := *c.sets.Load(); p >= len(sets) || len(sets[p].Hosts) <= fewHosts {
		c.publishLocked(p, false)
		return
	}
	for len(c.refreshes) <= p {
		c.refreshes = append(c.refreshes, refresh{})
	}
	r := &c.refreshes[p]
	if r.timer != nil {
		return
	}
	if wait := healthEvery - time.Since(r.shown); wait > 0 {
		r.timer = time.AfterFunc(wait, func() {
			c.env.guard.Run("health of hosts", func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.catchUpLocked()
			})
		})
		return
	}
	r.shown = time.Now()
	c.publishLocked(p, false)
}

// catchUpLocked publishes the priorities that wait for it. c.mu must be held.
func (c *Cluster) catchUpLocked() {
	for p := range c.refreshes {
		r := &c.refreshes[p]
		if r.timer == nil || c.closed {
			continue
		}
		r.timer.Stop()
		r.timer, r.shown = nil, time.Now()
		c.publishLocked(p, false)
	}
}

// takeOver sets the gauges, which the previous version has set until now.
func (c *Cluster) takeOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beside = false
	c.showMembership(*c.sets.Load())
	c.showHeaviest()
	c.showBreakers()
	if c.isLocal && c.ready && !c.closed {
		c.balanceLocked() // the other version may have been the last to publish its hosts
	}
}

// followLocal updates the balancer if the hosts of the local cluster have changed since
// c balanced its own, and before c was active.
func (c *Cluster) followLocal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isLocal && c.local != c.env.localSet.Load() && c.ready && !c.closed {
		c.balanceLocked()
	}
}

// showHeaviest sets the gauge of the heaviest host. c.mu must be held.
func (c *Cluster) showHeaviest() {
	if c.heaviest > 0 && !c.beside {
		c.stats.MaxHostWeight.Set(c.heaviest)
	}
}

// showBreakers lets the breakers set their gauges.
func (c *Cluster) showBreakers() {
	for i := range c.breakers {
		for _, r := range c.breakers[i].all() {
			r.reveal()
		}
	}
}

// leaveLocal withdraws the hosts of a closed local cluster, unless another version
// has replaced them.
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

// showMembership sets the gauges. c.mu must be held.
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

// scheduleLocked decides when the balancer gets priority p. Changes of membership are
// delivered at once. Other changes are merged: the first one after a quiet window is
// delivered, later ones wait for the end of the window.
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

// mergeLaterLocked delivers the state of priority p at the end of the window. c.mu
// must be held.
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

// deliverLocked passes the current set of p to the balancer. c.mu must be held.
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

// balanceLocked updates the balancer with the delivered sets. The other clusters
// compare themselves with the local cluster, which has no zone-aware routing itself.
// If the balancer panics, which can be code of the program, this update is lost.
func (c *Cluster) balanceLocked() {
	var local *host.Set
	if !c.isLocal {
		local = c.env.localSet.Load()
	}
	c.local = local
	c.env.guard.Run("balancer", func() { c.balancer.Update(c.delivered, local) })
	if !c.isLocal {
		return
	}
	if len(c.delivered) > 0 {
		c.env.localSet.Store(c.delivered[0])
	}
	// This takes the locks of other clusters, which never take this one's.
	c.env.localChanged()
}

// rebalance updates the balancer after a change other than of hosts.
func (c *Cluster) rebalance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready && !c.closed {
		c.balanceLocked()
	}
}
