package upstream

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// UpdateHosts replaces the hosts of a group with the hosts of a, and reports
// whether anything changed. Hosts of different groups never replace each other:
// a source whose hosts change independently, for example by name, uses several
// groups, others group 0.
func (c *Cluster) UpdateHosts(group int, a *Assignment) bool {
	c.updating.Lock()
	defer c.updating.Unlock()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	for len(c.groups) <= group {
		c.groups = append(c.groups, nil)
	}
	ch := reconcile(c.groups[group], a.Priorities, rules{
		checked:      c.checker != nil,
		ignoreNew:    c.config.LB.IgnoreNewHostsUntilHC,
		ignoreHealth: c.config.IgnoreHealthOnHostRemoval,
		metadata:     c.dialer.Resolve,
	})
	reweighed := c.takeWeights(a)
	lists := make([][]*host.Host, len(ch.priorities))
	changed := false
	for p := range ch.priorities {
		lists[p] = ch.priorities[p].hosts
		if ch.priorities[p].changed {
			changed = true
		}
	}
	c.groups[group] = lists
	c.dropWeightsLocked(a)
	if !changed && !reweighed {
		c.mu.Unlock()
		c.stats.UpdateNoRebuild.Inc()
		return false
	}
	for p := range max(len(lists), len(*c.sets.Load())) {
		moved := p < len(lists) && len(ch.priorities[p].added)+len(ch.priorities[p].removed) > 0
		if reweighed || p < len(lists) && ch.priorities[p].changed {
			c.publishLocked(p, moved)
			c.heaviest = heaviest((*c.sets.Load())[p].Hosts)
			c.showHeaviest()
		}
		if moved {
			c.stats.MembershipChange.Inc()
		}
	}
	c.mu.Unlock()
	c.hostsChanged(ch.added, ch.removed)
	return true
}

// MoveHost changes the address of a host that stands for a name, such as that of a
// LOGICAL_DNS cluster, and keeps its state. A zero healthCheck means the same address.
// additional are fallback addresses. Sources that move hosts must not replace them.
func (c *Cluster) MoveHost(h *host.Host, to, healthCheck config.Address, additional ...config.Address) {
	c.updating.Lock()
	defer c.updating.Unlock()
	h.SetAddress(to, healthCheck, additional...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.publishLocked(int(h.Priority()), false) // keys of hashes change
	}
}

// heaviest returns the largest weight of hosts, at least 1.
func heaviest(hosts []*host.Host) uint64 {
	w := uint32(1)
	for _, h := range hosts {
		w = max(w, h.Weight())
	}
	return uint64(w)
}

// takeWeights stores the weights and factors of an assignment, and reports whether
// they changed. c.mu must be held.
func (c *Cluster) takeWeights(a *Assignment) bool {
	old := &c.assignment
	changed := old.WeightedHealth != a.WeightedHealth ||
		cmp.Or(old.Overprovisioning, defaultOverprovisioning) != cmp.Or(a.Overprovisioning, defaultOverprovisioning)
	old.Overprovisioning, old.WeightedHealth = a.Overprovisioning, a.WeightedHealth
	c.dropOverload.Store(math.Float64bits(a.DropOverload)) // for [Cluster.DropRequest]
	for p := range a.Priorities {
		to := old.priority(uint32(p))
		var next map[config.Locality]uint32 // published sets keep the old map
		for l, w := range a.Priorities[p].LocalityWeights {
			if was, ok := to.LocalityWeights[l]; ok && was == w {
				continue
			}
			if next == nil {
				next = make(map[config.Locality]uint32, len(to.LocalityWeights)+len(a.Priorities[p].LocalityWeights))
				maps.Copy(next, to.LocalityWeights)
			}
			next[l] = w
			changed = changed || c.config.LB.LocalityWeighted
		}
		if next != nil {
			to.LocalityWeights = next
		}
	}
	return changed
}

// dropWeightsLocked removes the weights of localities that a does not name and that
// have no hosts left. It does nothing with several groups, each of which names only
// some of the configured localities. c.mu must be held.
func (c *Cluster) dropWeightsLocked(a *Assignment) {
	if len(c.groups) != 1 {
		return
	}
	for p := range c.assignment.Priorities {
		to := &c.assignment.Priorities[p]
		var named map[config.Locality]uint32
		if p < len(a.Priorities) {
			named = a.Priorities[p].LocalityWeights
		}
		if len(to.LocalityWeights) == len(named) {
			continue
		}
		next := make(map[config.Locality]uint32, len(named))
		maps.Copy(next, named)
		for _, h := range c.groups[0][p] { // a group never loses a priority
			if w, ok := to.LocalityWeights[h.Locality()]; ok {
				next[h.Locality()] = w
			}
		}
		to.LocalityWeights = next
	}
}

// defaultOverprovisioning is the factor of an assignment without one, in percent.
const defaultOverprovisioning = 140

// hostsChanged notifies the dialer, checker, detector and hooks of added and removed
// hosts.
func (c *Cluster) hostsChanged(added, removed []*host.Host) {
	for _, h := range removed {
		c.dialer.Forget(h)
		if c.checker != nil {
			c.checker.Remove(h)
		}
		if c.detector != nil {
			c.detector.Remove(h)
		}
		c.firstCheckDone(h)
		c.env.Hooks.HostRemoved(c, h)
	}
	for _, h := range added {
		c.dialer.Resolve(h)
		if c.detector != nil {
			c.detector.Add(h)
		}
		if c.checker != nil {
			c.checker.Add(h)
		}
		c.env.Hooks.HostAdded(c, h)
	}
	if c.config.LB.CloseOnHostSetChange && len(added)+len(removed) > 0 {
		c.env.Hooks.CloseConnections(c, nil)
	}
}

func (c *Cluster) checkDone(r health.Report) {
	h := r.Host
	if r.Transition == health.Changed {
		c.healthChanged(h, r.Before)
	}
	if r.Outcome.Kind == health.Passed && c.detector != nil {
		c.detector.CheckPassed(h)
	}
	c.firstCheckDone(h)
	const gone = status.FailedActiveHC | status.PendingDynamicRemoval
	if h.Flags()&gone == gone && c.config.Type == config.EDSDiscovery {
		c.removeHosts(func(x *host.Host) bool { return x == h && x.Flags()&gone == gone }) // it may have come back by then
	}
}

// HasHost reports whether h is a host of the cluster. A new host of an ORIGINAL_DST
// cluster counts before [Cluster.Sets] shows it.
func (c *Cluster) HasHost(h *host.Host) bool {
	if slices.ContainsFunc(c.Sets(), func(s *host.Set) bool { return slices.Contains(s.Hosts, h) }) {
		return true
	}
	if c.original == nil { // else mu is never held for long, such as for a ring
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, priorities := range c.groups {
		for _, list := range priorities {
			if slices.Contains(list, h) {
				return true
			}
		}
	}
	return false
}

// healthChanged publishes a change of the flags of h, which were before until then.
func (c *Cluster) healthChanged(h *host.Host, before status.Flags) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.refreshLocked(int(h.Priority()))
	c.mu.Unlock()
	c.env.Hooks.HealthChanged(c, h)
	if c.config.CloseOnHealthFailure && before.Health() != status.Unhealthy && h.Health() == status.Unhealthy {
		c.endTunnels(h)
		c.env.Hooks.CloseConnections(c, h)
	}
}

// removeHosts removes the hosts for which goes returns true, which it asks while no
// update is under way.
func (c *Cluster) removeHosts(goes func(*host.Host) bool) {
	c.updating.Lock()
	defer c.updating.Unlock()
	c.mu.Lock()
	var removed []*host.Host
	for _, priorities := range c.groups {
		for p, list := range priorities {
			// Published sets keep the old list.
			kept := make([]*host.Host, 0, len(list))
			for _, h := range list {
				if goes(h) {
					removed = append(removed, h)
				} else {
					kept = append(kept, h)
				}
			}
			if len(kept) < len(list) {
				priorities[p] = kept
				c.publishLocked(p, true)
				c.stats.MembershipChange.Inc()
			}
		}
	}
	c.mu.Unlock()
	if len(removed) > 0 {
		c.hostsChanged(nil, removed)
	}
}

// DiscoveryDone is called by a source after its first answer, even if that is an error.
// The cluster is ready once the hosts it has by then were checked.
func (c *Cluster) DiscoveryDone() {
	c.updating.Lock() // an update that is under way has yet to begin the checks of its hosts
	c.mu.Lock()
	if !c.discovered && !c.closed {
		c.discovered = true
		c.unchecked = make(map[*host.Host]bool)
		if c.checker != nil {
			for _, s := range *c.sets.Load() {
				for _, h := range s.Hosts {
					// Hosts that were checked already are not awaited.
					if c.checker.Awaited(h) {
						c.unchecked[h] = true
					}
				}
			}
		}
	}
	c.mu.Unlock()
	c.updating.Unlock()
	c.firstCheckDone(nil)
}

// firstCheckDone records that the first check of h is not awaited any more, and makes
// the cluster ready if none is.
func (c *Cluster) firstCheckDone(h *host.Host) {
	c.mu.Lock()
	delete(c.unchecked, h)
	if c.closed || c.ready || !c.discovered || len(c.unchecked) > 0 {
		c.mu.Unlock()
		return
	}
	c.catchUpLocked() // before ready is set: what follows delivers the sets
	c.ready = true
	c.unchecked = nil
	// From now on changes are delivered.
	c.delivered = slices.Clone(*c.sets.Load())
	c.balanceLocked()
	done := c.onReady
	c.onReady = nil
	c.mu.Unlock()
	for _, f := range done {
		f()
	}
}
