package upstream

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Assignment lists the hosts that a source knows, by priority. The other fields
// apply to the whole cluster: if there are several groups, the latest update wins.
type Assignment struct {
	Priorities []PriorityHosts
	// Overprovisioning is the factor in percent; 0 means 140.
	Overprovisioning uint32
	// WeightedHealth makes priority health count weights in place of hosts.
	WeightedHealth bool
	// DropOverload is the percentage of requests to drop.
	DropOverload float64
}

// PriorityHosts lists the hosts of one priority in display order.
type PriorityHosts struct {
	Hosts           []host.Spec
	LocalityWeights map[config.Locality]uint32 // 0 or absent: no traffic under locality weighting
}

// ResolveAssignment returns the hosts of a configured assignment, whose addresses
// must be literal.
func ResolveAssignment(a *config.Assignment) (*Assignment, error) {
	out := &Assignment{Overprovisioning: 140}
	if a == nil {
		return out, nil
	}
	out.Overprovisioning, out.WeightedHealth, out.DropOverload = a.OverprovisioningFactor, a.WeightedPriorityHealth, a.DropOverload
	for i := range a.Localities {
		l := &a.Localities[i]
		p := out.priority(l.Priority)
		p.Hosts = slices.Grow(p.Hosts, len(l.Endpoints))
		for j := range l.Endpoints {
			e := &l.Endpoints[j]
			s := EndpointSpec(l, e)
			var ok bool
			if s.Address, ok = literal(e.Address); !ok {
				return nil, fmt.Errorf("upstream: endpoint %q is not an IP address with a port or a pipe", e.Address.Host)
			}
			for _, more := range e.Additional {
				ip, ok := more.AddrPort()
				if !ok {
					return nil, fmt.Errorf("upstream: additional address %q of endpoint %q is not an IP address with a port", more.Host+more.Path, e.Address.Host)
				}
				s.Additional = append(s.Additional, config.Address{IP: ip})
			}
			p.Hosts = append(p.Hosts, s)
		}
		out.weigh(l)
	}
	return out, nil
}

// EndpointSpec returns the host of a configured endpoint without its addresses,
// which the caller resolves. Endpoints without metadata for transport sockets
// inherit it from the locality.
func EndpointSpec(l *config.LocalityEndpoints, e *config.Endpoint) host.Spec {
	s := host.Spec{
		Hostname: e.Hostname,
		Locality: l.Locality, Priority: l.Priority,
		Weight: e.Weight, Metadata: e.Metadata, Canary: e.Canary, EDS: edsFlags(e.Health),
		HealthCheckHostname: e.HealthCheckHostname, DisableActiveHC: e.DisableActiveHealthCheck,
	}
	for namespace, values := range l.Metadata {
		if _, own := s.Metadata[namespace]; !own && strings.HasSuffix(namespace, ".transport_socket_match") {
			s.Metadata = maps.Clone(s.Metadata)
			if s.Metadata == nil {
				s.Metadata = make(config.Metadata)
			}
			s.Metadata[namespace] = values
		}
	}
	s.HealthCheckAddress, _ = literal(e.HealthCheckAddress)
	return s
}

func literal(a config.AddressSpec) (config.Address, bool) {
	if a.Kind == config.PipeAddress {
		return config.Address{Pipe: a.Path}, true
	}
	ap, ok := a.AddrPort()
	if !ok {
		return config.Address{}, false
	}
	return config.Address{IP: ap}, true
}

func edsFlags(s config.HealthStatus) status.Flags {
	switch s {
	case config.HealthUnhealthy, config.HealthTimeout:
		return status.FailedEDSHealth
	case config.HealthDegraded:
		return status.DegradedEDSHealth
	case config.HealthDraining:
		return status.EDSStatusDraining
	}
	return 0
}

// priority returns the hosts of priority p, which it adds if necessary.
func (a *Assignment) priority(p uint32) *PriorityHosts {
	for uint32(len(a.Priorities)) <= p {
		a.Priorities = append(a.Priorities, PriorityHosts{})
	}
	return &a.Priorities[p]
}

func (a *Assignment) weigh(l *config.LocalityEndpoints) {
	p := a.priority(l.Priority)
	if p.LocalityWeights == nil {
		p.LocalityWeights = make(map[config.Locality]uint32)
	}
	p.LocalityWeights[l.Locality] = l.Weight
}
