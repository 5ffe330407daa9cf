package discovery

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// logical has one host for its name, at the first address of the last good answer.
// Existing connections stay. If both families are requested, the host has the other
// addresses as fallbacks.
type logical struct {
	*name
	host *host.Host // nil before the first answer; the goroutine of Run has it
}

func (s *Sources) logical(c *config.Cluster) (upstream.Source, error) {
	shared, err := s.names(c)
	if err != nil {
		return nil, err
	}
	if a := c.Assignment; a == nil || len(a.Localities) != 1 || len(a.Localities[0].Endpoints) != 1 {
		return nil, errors.New("discovery: type LOGICAL_DNS takes exactly one endpoint")
	}
	l := &c.Assignment.Localities[0]
	n, err := shared.name(l, &l.Endpoints[0])
	return &logical{name: n}, err
}

// Run implements [upstream.Source].
func (l *logical) Run(ctx context.Context, c *upstream.Cluster) {
	if !l.c.WaitForWarmOnInit {
		c.DiscoveryDone()
	}
	l.follow(ctx, c, func(records []Record) time.Duration {
		l.move(c, records)
		return records[0].TTL
	})
}

// move moves the host to the address of the first record. Its priority is always 0.
func (l *logical) move(c *upstream.Cluster, records []Record) {
	var more []config.Address
	if l.c.DNS.Family == config.FamilyAll {
		for _, r := range records[1:] {
			a, _ := l.at(r.Addr)
			more = append(more, a)
		}
	}
	if l.host == nil {
		s := l.spec(records[0].Addr)
		s.Additional = more
		c.UpdateHosts(0, l.assignment(0, []host.Spec{s}))
		if sets := c.Sets(); len(sets) > 0 && len(sets[0].Hosts) == 1 { // or the cluster is closed
			l.host = sets[0].Hosts[0]
		}
		return
	}
	to, check := l.at(records[0].Addr)
	if now := l.host.Addresses(); to == now[0] && slices.Equal(more, now[1:]) {
		c.Stats().UpdateNoRebuild.Inc()
		return
	}
	c.MoveHost(l.host, to, check, more...)
}
