package host

import (
	"cmp"
	"slices"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// SetOptions are the options of a [Set]. The zero value has no local locality, no
// locality weights and the default factor.
type SetOptions struct {
	// Local is the locality of this process. If KnowLocal is set, its hosts come first.
	Local     config.Locality
	KnowLocal bool
	// LocalityWeights are the configured weights, nil if there are none. A missing
	// locality has weight 0.
	LocalityWeights map[config.Locality]uint32
	// Overprovisioning is the factor in percent; 0 means 140.
	Overprovisioning uint32
	// WeightedHealth makes priority health use host weights instead of numbers of
	// hosts.
	WeightedHealth bool
}

// Set holds the hosts of one priority at one moment. It is immutable, and so are its
// slices.
type Set struct {
	Priority                           uint32
	Hosts, Healthy, Degraded, Excluded []*Host
	// Localities are sorted by name, after the local one if HasLocal.
	Localities []LocalitySet
	HasLocal   bool

	// LocalityWeighted reports whether locality weights were given.
	LocalityWeighted bool
	Overprovisioning uint32
	WeightedHealth   bool

	options SetOptions
	classes []class // of Hosts
}

// LocalitySet holds the hosts of one locality of a [Set].
type LocalitySet struct {
	Locality                           config.Locality
	Weight                             uint32
	Hosts, Healthy, Degraded, Excluded []*Host
}

// class is the state of a host when its set was made.
type class struct {
	health   status.Health
	excluded bool
}

// NewSet returns the set of hosts, sorted by their current flags. It keeps the slice.
func NewSet(priority uint32, hosts []*Host, o SetOptions) *Set {
	classes := make([]class, len(hosts))
	for i, h := range hosts {
		f := h.Flags()
		classes[i] = class{f.Health(), f.Excluded()}
	}
	return build(priority, hosts, classes, o)
}

// Subset returns a set of the hosts at the ascending indexes, with their state
// in s. If weights is nil, the set has no locality weights; otherwise weights
// returns the weight of each locality.
func (s *Set) Subset(indexes []int, weights func(l config.Locality, hosts int) uint32) *Set {
	hosts := make([]*Host, len(indexes))
	classes := make([]class, len(indexes))
	for i, x := range indexes {
		hosts[i], classes[i] = s.Hosts[x], s.classes[x]
	}
	o := s.options
	o.LocalityWeights = nil
	if weights != nil && s.LocalityWeighted {
		count := make(map[config.Locality]int)
		for _, h := range hosts {
			count[h.locality]++
		}
		o.LocalityWeights = make(map[config.Locality]uint32, len(count))
		for l, n := range count {
			o.LocalityWeights[l] = weights(l, n)
		}
	}
	return build(s.Priority, hosts, classes, o)
}

// Weight returns the sum of the weights of hosts.
func Weight(hosts []*Host) uint64 {
	var sum uint64
	for _, h := range hosts {
		sum += uint64(h.Weight())
	}
	return sum
}

func build(priority uint32, hosts []*Host, classes []class, o SetOptions) *Set {
	o.Overprovisioning = cmp.Or(o.Overprovisioning, 140)
	s := &Set{
		Priority: priority, Overprovisioning: o.Overprovisioning, WeightedHealth: o.WeightedHealth,
		LocalityWeighted: o.LocalityWeights != nil, options: o, classes: classes,
	}
	s.Hosts, s.Healthy, s.Degraded, s.Excluded = sortOut(hosts, classes)
	s.group()
	return s
}

// sortOut returns the lists of a set or a locality. They can share memory with hosts.
func sortOut(hosts []*Host, classes []class) (all, healthy, degraded, excluded []*Host) {
	return hosts,
		keep(hosts, classes, func(c class) bool { return c.health == status.Healthy }),
		keep(hosts, classes, func(c class) bool { return c.health == status.Degraded }),
		keep(hosts, classes, func(c class) bool { return c.excluded })
}

// keep returns the hosts whose class is wanted. It returns hosts itself if all are.
func keep(hosts []*Host, classes []class, want func(class) bool) []*Host {
	n := 0
	for _, c := range classes {
		if want(c) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(hosts):
		return hosts
	}
	out := make([]*Host, 0, n)
	for i, c := range classes {
		if want(c) {
			out = append(out, hosts[i])
		}
	}
	return out
}

// group fills s.Localities.
func (s *Set) group() {
	if len(s.Hosts) == 0 {
		return
	}
	first := s.Hosts[0].locality
	if !slices.ContainsFunc(s.Hosts, func(h *Host) bool { return h.locality != first }) {
		s.HasLocal = s.options.KnowLocal && first == s.options.Local
		s.Localities = []LocalitySet{{
			Locality: first, Weight: s.options.LocalityWeights[first],
			Hosts: s.Hosts, Healthy: s.Healthy, Degraded: s.Degraded, Excluded: s.Excluded,
		}}
		return
	}
	type group struct {
		hosts   []*Host
		classes []class
	}
	groups := make(map[config.Locality]*group)
	var order []config.Locality
	for i, h := range s.Hosts {
		g := groups[h.locality]
		if g == nil {
			g = new(group)
			groups[h.locality] = g
			order = append(order, h.locality)
		}
		g.hosts = append(g.hosts, h)
		g.classes = append(g.classes, s.classes[i])
	}
	_, hasLocal := groups[s.options.Local]
	s.HasLocal = hasLocal && s.options.KnowLocal
	slices.SortFunc(order, config.Locality.Compare)
	if s.HasLocal {
		copy(order[1:], order[:slices.Index(order, s.options.Local)])
		order[0] = s.options.Local
	}
	s.Localities = make([]LocalitySet, len(order))
	for i, l := range order {
		ls := &s.Localities[i]
		ls.Locality, ls.Weight = l, s.options.LocalityWeights[l]
		ls.Hosts, ls.Healthy, ls.Degraded, ls.Excluded = sortOut(groups[l].hosts, groups[l].classes)
	}
}
