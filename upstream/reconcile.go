package upstream

import (
	"reflect"
	"slices"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// rules control how hosts are compared.
type rules struct {
	checked      bool // the cluster has active health checks
	ignoreNew    bool // new hosts are excluded until their first check
	ignoreHealth bool // missing hosts are removed at once
	// metadata is called with each host whose metadata changed, unless it is nil.
	metadata func(*host.Host)
}

// priorityChange is the effect of an update on one priority.
type priorityChange struct {
	hosts          []*host.Host
	added, removed []*host.Host // as this priority sees it
	changed        bool         // lists must be rebuilt
}

// change is the effect of an update on a cluster.
type change struct {
	priorities     []priorityChange
	added, removed []*host.Host // without hosts that moved to another priority
}

// reconcile compares the current hosts, by priority, with the wanted ones. A host is
// identified by its address. Hosts that stay keep their object and are changed in
// place.
func reconcile(old [][]*host.Host, want []PriorityHosts, r rules) change {
	type place struct {
		host     *host.Host
		priority int
	}
	existing := make(map[config.Address]place)
	for p, list := range old {
		for _, h := range list {
			if _, twice := existing[h.Address()]; !twice {
				existing[h.Address()] = place{h, p}
			}
		}
	}
	c := change{priorities: make([]priorityChange, max(len(old), len(want)))}
	seen := make(map[config.Address]bool)
	stays := make(map[*host.Host]int) // to the priority it is in now
	replaced := make(map[*host.Host]bool)
	for p := range want {
		pc := &c.priorities[p]
		for _, s := range want[p].Hosts {
			if seen[s.Address] {
				continue
			}
			seen[s.Address] = true
			s.Priority = uint32(p)
			was, known := existing[s.Address]
			switch h := was.host; {
			case !known:
				n := host.New(s)
				r.begin(n)
				pc.hosts = append(pc.hosts, n)
				pc.added = append(pc.added, n)
				c.added = append(c.added, n)
			case r.replaces(h, &s):
				n := r.replacement(h, s)
				replaced[h] = true
				pc.hosts = append(pc.hosts, n)
				pc.added = append(pc.added, n)
				c.added = append(c.added, n)
			default:
				pc.changed = r.inPlace(h, &s) || pc.changed
				stays[h] = p
				pc.hosts = append(pc.hosts, h)
				if was.priority != p {
					pc.added = append(pc.added, h)
				}
			}
		}
	}
	for p, list := range old {
		pc := &c.priorities[p]
		for _, h := range list {
			now, ok := stays[h]
			switch {
			case ok && now == p:
			case ok: // moved
				pc.removed = append(pc.removed, h)
			case replaced[h] || r.leaves(h):
				pc.removed = append(pc.removed, h)
				c.removed = append(c.removed, h)
			default:
				if h.SetFlags(status.PendingDynamicRemoval)&status.PendingDynamicRemoval == 0 {
					pc.changed = true
				}
				pc.hosts = append(pc.hosts, h)
			}
		}
	}
	for p := range c.priorities {
		pc := &c.priorities[p]
		pc.changed = pc.changed || len(pc.added)+len(pc.removed) > 0
	}
	return c
}

// begin sets the flags of a new host.
func (r *rules) begin(h *host.Host) {
	if !r.checked || h.DisableActiveHC() {
		return
	}
	h.SetFlags(status.FailedActiveHC)
	if r.ignoreNew {
		h.SetFlags(status.PendingActiveHC)
	}
}

// replaces reports whether h must be replaced to become s.
func (r *rules) replaces(h *host.Host, s *host.Spec) bool {
	return h.Locality() != s.Locality || r.checked && !sameCheck(h, s)
}

func sameCheck(h *host.Host, s *host.Spec) bool {
	to := s.HealthCheckAddress
	if to.IsZero() {
		to = s.Address
	}
	return h.HealthCheckAddress() == to && h.DisableActiveHC() == s.DisableActiveHC
}

func (r *rules) replacement(h *host.Host, s host.Spec) *host.Host {
	inherit := r.checked && sameCheck(h, &s)
	n := host.Replace(h, s, inherit)
	if !inherit {
		r.begin(n)
	}
	return n
}

// leaves reports whether a host that is gone from discovery is removed at once. A
// healthy host stays until it fails a check.
func (r *rules) leaves(h *host.Host) bool {
	return !r.checked || r.ignoreHealth || h.DisableActiveHC() || h.Flags()&(status.FailedActiveHC|status.FailedEDSHealth) != 0
}

// inPlace changes h as s says and reports whether lists must be rebuilt.
func (r *rules) inPlace(h *host.Host, s *host.Spec) bool {
	before := h.PutFlags(status.EDSFlags|status.PendingDynamicRemoval, s.EDS)
	after := before&^(status.EDSFlags|status.PendingDynamicRemoval) | s.EDS
	changed := before.Health() != after.Health() || before.Excluded() != after.Excluded()
	if w := max(s.Weight, 1); h.Weight() != w {
		h.SetWeight(w)
		changed = true
	}
	if m := h.Metadata(); len(m)+len(s.Metadata) > 0 && !reflect.DeepEqual(m, s.Metadata) {
		h.SetMetadata(s.Metadata)
		if r.metadata != nil {
			r.metadata(h)
		}
		changed = true
	}
	if now := h.Addresses(); !slices.Equal(now[1:], s.Additional) {
		h.SetAddress(now[0], h.HealthCheckAddress(), s.Additional...)
	}
	h.SetCanary(s.Canary)
	h.SetPriority(s.Priority)
	return changed
}
