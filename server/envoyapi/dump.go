package envoyapi

import (
	"cmp"
	"iter"
	"time"

	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// dumpClusters returns the original messages of a manager's clusters, with the errors
// of rejected ones. A rejected cluster without a version in use is listed as warming.
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
	version := m.Version()
	if version == upstream.StaticVersion {
		version = ""
	}
	return configdump.Clusters(version, pick(false, nil, m.Clusters), pick(true, failures, m.Clusters), func(yield func(configdump.Cluster) bool) {
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

// assignments returns the hosts of a manager's active clusters, either the dynamic or
// the static ones.
func assignments(m *upstream.Manager, viaAPI bool) iter.Seq[configdump.Assignment] {
	return func(yield func(configdump.Assignment) bool) {
		m.Clusters(func(v *upstream.View) bool { return v.AddedViaAPI != viaAPI || yield(assignment(v)) })
	}
}

func assignment(v *upstream.View) configdump.Assignment {
	a := configdump.Assignment{
		Name: cmp.Or(v.EDSServiceName(), v.Name), DropPercent: v.DropOverload, Apart: v.Config.Type == config.OriginalDst, Sets: v.Sets,
	}
	if given := v.Config.Assignment; given != nil {
		a.Overprovisioning = given.OverprovisioningFactor
	}
	for _, set := range v.Sets {
		a.Overprovisioning = set.Overprovisioning
	}
	return a
}

// dumpSecrets returns the static and dynamic secrets. Secrets without a valid version
// are listed as warming.
func dumpSecrets(static []*decode.ParsedSecret, read time.Time, followed iter.Seq[*xds.SecretState]) configdump.Section {
	var given, active, warming []configdump.Secret
	for _, s := range static {
		given = append(given, configdump.Secret{Name: s.Secret.Name, Message: s.Any(), Updated: read})
	}
	for s := range followed {
		shown := configdump.Secret{Name: s.Name, Version: s.Version, Message: s.Message, Updated: s.Updated}
		if f := s.Failure; f != nil {
			shown.Failure = &configdump.Failure{Message: f.Config, At: f.Attempt, Details: f.Details, Version: f.Version}
		}
		if s.Message != nil {
			active = append(active, shown)
		} else {
			warming = append(warming, shown)
		}
	}
	return configdump.Secrets(given, active, warming)
}
