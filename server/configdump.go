package server

import (
	"iter"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// makeConfigDump collects what /config_dump shows.
func (s *Server) makeConfigDump() error {
	s.dump = configdump.New()
	file, settings := configdump.Bootstrap(s.cfg.Bootstrap, s.start)
	s.dump.Set("bootstrap", func() configdump.Section { return file })
	if s.cfg.Admin.Product != "envoy" { // whose dump has no such section
		s.dump.Set("settings", func() configdump.Section { return settings })
	}
	s.dump.Set("listeners", s.dumpListeners)
	s.dump.Set("secrets", func() configdump.Section { return dumpSecrets(s.cfg.Clusters.Secrets, s.start, s.control.SecretStates) })
	s.dump.Set("clusters", func() configdump.Section { return dumpClusters(s.clusters, s.control.Failures) })
	s.dump.Set(configdump.EndpointKey, func() configdump.Section {
		return configdump.Endpoints(assignments(s.clusters, false), assignments(s.clusters, true))
	})
	return nil
}

// ConfigDump returns the sections of /config_dump, to which a proxy adds its own:
// its listeners and routes. Keys and passwords are taken out of all of them when they
// are shown.
func (s *Server) ConfigDump() *configdump.Registry { return s.dump }

func (s *Server) configSections(endpoints bool) []admin.ConfigSection {
	var out []admin.ConfigSection
	for _, section := range s.dump.Sections(endpoints) {
		out = append(out, admin.ConfigSection(section))
	}
	return out
}

func (s *Server) dumpListeners() configdump.Section {
	var list []configdump.Listener
	for _, l := range s.listeners.List() {
		shown := configdump.Listener{
			Name: l.Name, UDP: l.Protocol == listeners.UDP,
			Inbound: l.Direction == listeners.Inbound, Outbound: l.Direction == listeners.Outbound,
			Addresses: l.Addresses,
		}
		list = append(list, shown)
	}
	return configdump.Listeners(list, s.start)
}

// dumpClusters shows the clusters of a manager as they were given, with what was
// wrong with those that were refused. A cluster that was refused and has no
// version in force is among the warming ones.
func dumpClusters(m *upstream.Manager, refused func(yield func(*xds.Failure) bool)) configdump.Section {
	type views = func(func(*upstream.View) bool)
	pick := func(viaAPI bool, failures map[string]*configdump.Failure, all views) iter.Seq[configdump.Cluster] {
		return func(yield func(configdump.Cluster) bool) {
			all(func(v *upstream.View) bool {
				parsed, ok := v.Parsed.(*decode.ParsedCluster)
				return v.AddedViaAPI != viaAPI || !ok || yield(configdump.Cluster{
					Name: v.Name, Version: v.Version, Message: parsed.Any(), Updated: v.LastUpdated, Failure: failures[v.Name],
				})
			})
		}
	}
	failures, never := make(map[string]*configdump.Failure), []configdump.Cluster(nil)
	warming := make(map[string]bool)
	for v := range m.Warming {
		warming[v.Name] = true
	}
	for f := range refused {
		failures[f.Name] = &configdump.Failure{Message: f.Config, At: f.Attempt, Details: f.Details, Version: f.Version}
		if m.Cluster(f.Name) == nil && !warming[f.Name] {
			never = append(never, configdump.Cluster{Name: f.Name, Failure: failures[f.Name]})
		}
	}
	return configdump.Clusters(m.Version(), pick(false, nil, m.Clusters), pick(true, failures, m.Clusters), func(yield func(configdump.Cluster) bool) {
		for c := range pick(true, failures, m.Warming) {
			if !yield(c) {
				return
			}
		}
		for _, c := range never {
			if !yield(c) {
				return
			}
		}
	})
}

// assignments shows the hosts of the active clusters of a manager, those that
// came by updates or the others.
func assignments(m *upstream.Manager, viaAPI bool) iter.Seq[configdump.Assignment] {
	return func(yield func(configdump.Assignment) bool) {
		m.Clusters(func(v *upstream.View) bool { return v.AddedViaAPI != viaAPI || yield(assignment(v)) })
	}
}

func assignment(v *upstream.View) configdump.Assignment {
	a := configdump.Assignment{Name: v.Name, DropPercent: v.DropOverload}
	if v.EDSServiceName() != "" {
		a.Name = v.EDSServiceName()
	}
	if given := v.Config.Assignment; given != nil {
		a.Overprovisioning = given.OverprovisioningFactor
	}
	for _, set := range v.Sets {
		a.Overprovisioning = set.Overprovisioning
		for i := range set.Localities {
			l := &set.Localities[i]
			shown := configdump.Locality{
				Region: l.Locality.Region, Zone: l.Locality.Zone, SubZone: l.Locality.SubZone, Priority: set.Priority,
				Apart: v.Config.Type == config.OriginalDst, Endpoints: make([]configdump.Endpoint, 0, len(l.Hosts)),
			}
			if set.LocalityWeighted {
				shown.Weight = &l.Weight
			}
			for _, h := range l.Hosts {
				shown.Endpoints = append(shown.Endpoints, endpoint(h))
			}
			a.Localities = append(a.Localities, shown)
		}
	}
	return a
}

func endpoint(h *host.Host) configdump.Endpoint {
	return configdump.Endpoint{
		Address: h.Address(), Additional: h.Addresses()[1:], HealthCheckAddress: h.HealthCheckAddress(),
		Hostname: h.Hostname(), HealthCheckHostname: h.HealthCheckHostname(),
		Health: configdump.Health(h.Health()), Weight: h.Weight(), Metadata: h.Metadata(),
	}
}
