package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// strict makes every address of every name a host. Each name has its own group of hosts
// and its own schedule.
type strict struct {
	c     *config.Cluster
	names []*name
}

func (s *Sources) strict(c *config.Cluster) (upstream.Source, error) {
	shared, err := s.names(c)
	if err != nil {
		return nil, err
	}
	out := &strict{c: c}
	if c.Assignment == nil {
		return out, nil
	}
	for i := range c.Assignment.Localities {
		l := &c.Assignment.Localities[i]
		for j := range l.Endpoints {
			n, err := shared.name(l, &l.Endpoints[j])
			if err != nil {
				return nil, err
			}
			out.names = append(out.names, n)
		}
	}
	return out, nil
}

// Run implements [upstream.Source].
func (s *strict) Run(ctx context.Context, c *upstream.Cluster) {
	if len(s.names) == 0 || !s.c.WaitForWarmOnInit {
		c.DiscoveryDone()
	}
	var running sync.WaitGroup
	defer running.Wait()
	for group, n := range s.names {
		running.Go(func() {
			n.follow(ctx, c, func(records []Record) time.Duration {
				c.UpdateHosts(group, n.hosts(records))
				return leastTTL(records)
			})
		})
	}
}

// hosts returns the assignment for the addresses of a name, up to the limit of hosts.
// The selection does not depend on the order of the answer.
func (n *name) hosts(records []Record) *upstream.Assignment {
	if most := n.s.c.MaxHosts; len(records) > most {
		records = slices.Clone(records)
		slices.SortFunc(records, func(a, b Record) int { return a.Addr.Compare(b.Addr) })
		records = slices.CompactFunc(records, func(a, b Record) bool { return a.Addr == b.Addr })
		if len(records) > most {
			n.log().Warn("name has too many addresses", "addresses", len(records), "used", most)
			records = records[:most]
		}
	}
	list := make([]host.Spec, len(records))
	for i, r := range records {
		list[i] = n.spec(r.Addr)
	}
	return n.assignment(n.locality.Priority, list)
}

// assignment returns hosts of priority p with the settings of the cluster.
func (n *name) assignment(p uint32, hosts []host.Spec) *upstream.Assignment {
	a := &upstream.Assignment{
		Priorities:       make([]upstream.PriorityHosts, p+1),
		Overprovisioning: n.c.Assignment.OverprovisioningFactor,
		WeightedHealth:   n.c.Assignment.WeightedPriorityHealth,
		DropOverload:     n.c.Assignment.DropOverload,
	}
	a.Priorities[p] = upstream.PriorityHosts{
		Hosts:           hosts,
		LocalityWeights: map[config.Locality]uint32{n.locality.Locality: n.locality.Weight},
	}
	return a
}

func leastTTL(records []Record) time.Duration {
	ttl := records[0].TTL
	for _, r := range records[1:] {
		ttl = min(ttl, r.TTL)
	}
	return ttl
}
