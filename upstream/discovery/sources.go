package discovery

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// DefaultMaxHosts is the default limit of hosts per name.
const DefaultMaxHosts = 1024

// Config configures [Sources]. The zero value serves the DNS types.
type Config struct {
	// Resolver looks up names; nil means a [Client] with its defaults.
	Resolver Resolver
	// EDS returns the source of a cluster of type EDS. Nil rejects such clusters.
	EDS func(*config.Cluster) (upstream.Source, error)
	// Types are the custom cluster types by name. The caller must not change the map
	// afterwards.
	Types map[string]Type
	// MaxHosts bounds the hosts per name; the lowest addresses are kept. Default
	// [DefaultMaxHosts].
	MaxHosts int
	// Rand returns uniform random numbers and is called concurrently; nil means
	// math/rand/v2.
	Rand func() uint64
	// Logger takes warnings about names that cannot be resolved; nil discards
	// them.
	Logger *slog.Logger
}

// Type is a custom cluster type.
type Type struct {
	// New returns the source of a cluster. The message of the type is at
	// c.CustomType.Config. The source publishes hosts by
	// [upstream.Cluster.UpdateHosts]. A source that needs other clusters first is an
	// [upstream.Dependent].
	New func(c *config.Cluster) (upstream.Source, error)
	// OwnBalancer means that the sources are an [upstream.Provider]. The policy
	// CLUSTER_PROVIDED is required for such types and refused for others.
	OwnBalancer bool
}

// Sources returns sources for clusters by their type. It is safe for concurrent
// use.
type Sources struct {
	c Config
}

// New returns the sources that c describes.
func New(c Config) *Sources {
	if c.Resolver == nil {
		c.Resolver = NewClient(ClientConfig{Logger: c.Logger})
	}
	if c.MaxHosts <= 0 {
		c.MaxHosts = DefaultMaxHosts
	}
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Sources{c: c}
}

// ClusterTypes returns the names of the custom types for the decoder of configurations,
// with true for types that supply their balancer.
func (s *Sources) ClusterTypes() map[string]bool {
	types := make(map[string]bool, len(s.c.Types))
	for name, t := range s.c.Types {
		types[name] = t.OwnBalancer
	}
	return types
}

// Source returns the source of hosts for c. It is an upstream.Config.Source.
func (s *Sources) Source(c *config.Cluster) (upstream.Source, error) {
	switch c.Type {
	case config.StrictDNS:
		return s.strict(c)
	case config.LogicalDNS:
		return s.logical(c)
	case config.EDSDiscovery:
		if s.c.EDS == nil {
			return nil, fmt.Errorf("discovery: clusters of type EDS are not supported by this program")
		}
		return s.c.EDS(c)
	case config.CustomDiscovery:
		return s.custom(c)
	}
	return nil, fmt.Errorf("discovery: type %d has no source", c.Type)
}

func (s *Sources) custom(c *config.Cluster) (upstream.Source, error) {
	name := c.CustomType.Name
	t, known := s.c.Types[name]
	if !known {
		names := "none"
		if len(s.c.Types) > 0 {
			names = strings.Join(slices.Sorted(maps.Keys(s.c.Types)), ", ")
		}
		return nil, fmt.Errorf("discovery: %q is not a known cluster type; known: %s", name, names)
	}
	if t.New == nil {
		return nil, fmt.Errorf("discovery: cluster type %q makes no sources", name)
	}
	source, err := t.New(c)
	if err != nil {
		return nil, fmt.Errorf("discovery: cluster type %q: %w", name, err)
	}
	if _, ok := source.(upstream.Provider); t.OwnBalancer && !ok {
		return nil, fmt.Errorf("discovery: cluster type %q has no balancer although OwnBalancer is set", name)
	}
	return source, nil
}
