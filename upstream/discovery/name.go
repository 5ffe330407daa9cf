package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// names holds the state that the names of one cluster share.
type names struct {
	s       *Sources
	c       *config.Cluster
	servers []netip.AddrPort

	mu   sync.Mutex
	next time.Duration // bound of the delay after the next failure
}

// names checks the DNS settings of a cluster.
func (s *Sources) names(c *config.Cluster) (*names, error) {
	if x := c.DNS.ResolverExtension.Name; x != "" {
		return nil, fmt.Errorf("discovery: %q is not a known resolver", x)
	}
	n := &names{s: s, c: c, next: c.DNS.FailureBase}
	for _, a := range c.DNS.Resolvers {
		server, ok := a.AddrPort()
		if !ok {
			return nil, fmt.Errorf("discovery: resolver %q is not an IP address", a.Host)
		}
		n.servers = append(n.servers, server)
	}
	return n, nil
}

// failed returns the delay after a failure.
func (n *names) failed() time.Duration {
	d := &n.c.DNS
	if !d.HasFailureRate {
		return max(d.FailureBase, time.Millisecond)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delay := time.Duration(n.s.c.Rand() % uint64(max(n.next, 1)))
	if n.next < d.FailureMax/2 {
		n.next *= 2
	} else {
		n.next = d.FailureMax
	}
	return max(delay, time.Millisecond)
}

// succeeded returns the delay after an answer with that TTL.
func (n *names) succeeded(ttl time.Duration) time.Duration {
	d := &n.c.DNS
	n.mu.Lock()
	n.next = d.FailureBase
	n.mu.Unlock()
	delay := d.RefreshRate
	if d.RespectTTL && ttl > 0 {
		delay = max(ttl, d.LeastRefresh)
	}
	if ms := uint64(d.Jitter / time.Millisecond); ms > 0 {
		delay += time.Duration(n.s.c.Rand()%ms) * time.Millisecond
	}
	return max(delay, time.Millisecond)
}

// name is one configured endpoint whose addresses are looked up.
type name struct {
	*names
	locality *config.LocalityEndpoints
	endpoint *config.Endpoint
}

// name checks the address of an endpoint.
func (n *names) name(l *config.LocalityEndpoints, e *config.Endpoint) (*name, error) {
	switch a := &e.Address; {
	case a.Kind != config.SocketAddress:
		return nil, fmt.Errorf("discovery: endpoint %q is not a host name with a port", a.Path+a.Listener)
	case a.NamedPort != "":
		return nil, fmt.Errorf("discovery: endpoint %q: port %q is not a number", a.Host, a.NamedPort)
	}
	return &name{names: n, locality: l, endpoint: e}, nil
}

// lookup returns at least one record or an error. A literal address is its own answer.
func (n *name) lookup(ctx context.Context) ([]Record, error) {
	a := &n.endpoint.Address
	if a.IP.IsValid() {
		return []Record{{Addr: a.IP}}, nil
	}
	d := &n.c.DNS
	records, err := n.s.c.Resolver.Lookup(ctx, Query{
		Name: a.Host, Family: d.Family, Servers: n.servers, TCP: d.UseTCP, NoSearch: d.NoDefaultSearch,
	})
	if err == nil && len(records) == 0 {
		err = ErrNoAddress
	}
	return records, err
}

func (n *name) log() *slog.Logger {
	return n.s.c.Logger.With("cluster", n.c.Name, "name", n.endpoint.Address.Host)
}

// update looks the name up once, counts the lookup, and passes a good answer to take,
// which returns the effective TTL.
func (n *name) update(ctx context.Context, c *upstream.Cluster, take func([]Record) time.Duration) (ttl time.Duration, err error) {
	c.Stats().UpdateAttempt.Inc()
	ok := guard.New(n.s.c.Logger).Run("look-up of a name", func() {
		var records []Record
		if records, err = n.lookup(ctx); err == nil && ctx.Err() == nil {
			ttl = take(records)
		}
	})
	if !ok {
		err = errors.New("discovery: panic during the look-up")
	}
	return ttl, err
}

// follow looks the name up until ctx is done, and passes each good answer to take,
// which returns the effective TTL.
func (n *name) follow(ctx context.Context, c *upstream.Cluster, take func([]Record) time.Duration) {
	failing := false
	wait := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		next := max(n.c.DNS.RefreshRate, time.Millisecond)
		guard.New(n.s.c.Logger).Run("round of look-ups", func() {
			ttl, err := n.update(ctx, c, take)
			if ctx.Err() == nil { // else the answer is of no use
				next = n.judge(c.Stats(), ttl, err, &failing)
			}
		})
		if ctx.Err() != nil {
			return
		}
		wait.Reset(next)
		guard.New(n.s.c.Logger).Run("end of discovery", c.DiscoveryDone)
	}
}

// judge counts and logs the result of a lookup and returns the time of the next.
// failing reports whether lookups fail.
func (n *name) judge(stats *upstream.Stats, ttl time.Duration, err error, failing *bool) time.Duration {
	was := *failing
	if *failing = err != nil; *failing {
		stats.UpdateFailure.Inc()
		if !was {
			n.log().Warn("name cannot be resolved, keeping the hosts it had", "error", err)
		}
		return n.failed()
	}
	stats.UpdateSuccess.Inc()
	if was {
		n.log().Info("name is resolved again")
	}
	return n.succeeded(ttl)
}

func (n *name) spec(a netip.Addr) host.Spec {
	e := n.endpoint
	s := upstream.EndpointSpec(n.locality, e)
	s.Address, s.HealthCheckAddress = n.at(a)
	s.Hostname = cmp.Or(s.Hostname, e.Address.Host)
	return s
}

// at returns the address of the host for a resolved address a, and its address for
// health checks, zero if they are equal.
func (n *name) at(a netip.Addr) (address, check config.Address) {
	e := n.endpoint
	address = config.Address{IP: netip.AddrPortFrom(a, e.Address.Port)}
	switch h := &e.HealthCheckAddress; {
	case h.Kind == config.PipeAddress:
		check = config.Address{Pipe: h.Path}
	case h.IP.IsValid():
		check = config.Address{IP: netip.AddrPortFrom(h.IP, h.Port)}
	case h.Port != 0: // the name with another port
		check = address.WithPort(h.Port)
	}
	return address, check
}
