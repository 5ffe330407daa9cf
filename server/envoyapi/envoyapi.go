// Package envoyapi adds to a server the parts that use Envoy's messages: control
// planes (xDS), the sections of /config_dump, and /tap. A program that does not
// import it links neither gRPC nor these messages.
package envoyapi

import (
	"maps"
	"slices"
	"sync"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// Config lists the parts to add. The zero value uses no control plane.
type Config struct {
	// CDS is the source of dynamic clusters, and ADS the server of the aggregated
	// stream. If nil, there is none.
	CDS *config.ConfigSource
	ADS *config.APISource
	// RTDS maps the names of runtime layers of kind RTDS to their sources.
	RTDS map[string]xds.Layer
	// Decoder decodes the resources of control planes. The default is a decoder with
	// default settings.
	Decoder *decode.Decoder
	// Secrets holds the secrets that TLS contexts refer to by name alone.
	Secrets []*decode.ParsedSecret
	// Bootstrap is the bootstrap file as plain values, shown by /config_dump.
	Bootstrap map[string]any
}

// Add adds control planes and /config_dump to a server. It returns the dump, which is
// also the ConfigDump of the sources in cfg unless there is another. A proxy sets its
// listeners and routes there after server.New, which sets the usual sections.
func Add(cfg *server.Config, c Config) *configdump.Dump {
	dump := new(configdump.Dump)
	if cfg.Admin.Sources.ConfigDump == nil {
		cfg.Admin.Sources.ConfigDump = dump
	}
	for _, p := range c.Secrets {
		cfg.Clusters.Secrets = append(cfg.Clusters.Secrets, p.Secret)
	}
	var client *xds.Client
	cfg.Clusters.Control = func(s *server.Server) (server.Control, error) {
		var err error
		client, err = c.client(s)
		return control{client, c.CDS != nil}, err
	}
	cfg.Extend = append(cfg.Extend, func(s *server.Server) error {
		c.addSections(dump, s, client)
		return nil
	})
	return dump
}

// control is the xDS client of a server.
type control struct {
	*xds.Client
	clusters bool
}

// FollowsClusters implements [server.Control].
func (c control) FollowsClusters() bool { return c.clusters }

func (c *Config) client(s *server.Server) (*xds.Client, error) {
	of := s.Config()
	cfg := xds.Config{
		Store: s.Store(), Decoder: c.Decoder, ADS: c.ADS, CDS: c.CDS,
		Logger: s.Logger("upstream"), SetLayer: s.Runtime().SetLayer,
	}
	if cfg.Decoder == nil {
		cfg.Decoder = decode.NewDecoder(decode.Options{Product: s.Store().Product(), V2: v2form.Messages(), ReadFile: transport.ReadFile})
	}
	cfg.Decoder = cfg.Decoder.WithUnknown(s.NoteUnknownFields)
	if n := of.Node; n != nil {
		cfg.Node = xds.Node{
			ID: n.ID, Cluster: n.Cluster, Metadata: n.Metadata, ClientFeatures: n.ClientFeatures, Version: of.Version,
			Locality: config.Locality{Region: n.Region, Zone: n.Zone, SubZone: n.SubZone},
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.RTDS)) {
		l := c.RTDS[name]
		l.Layer = name
		cfg.Layers = append(cfg.Layers, l)
	}
	return xds.New(cfg)
}

func (c *Config) addSections(dump *configdump.Dump, s *server.Server, client *xds.Client) {
	for key, section := range configdump.Usual() {
		dump.Set(key, func() configdump.Section { return section })
	}
	// Made by the first dump: it takes a part of the time of a start.
	file := sync.OnceValues(func() (message, settings configdump.Section) {
		return configdump.Bootstrap(c.Bootstrap, s.Started())
	})
	dump.Set("bootstrap", func() configdump.Section { message, _ := file(); return message })
	if s.Store().Product() != "envoy" { // Envoy's dump has no such section
		dump.Set("settings", func() configdump.Section { _, settings := file(); return settings })
	}
	dump.Set("listeners", func() configdump.Section { return configdump.Listeners(s.Listeners().List(), s.Started()) })
	dump.Set("secrets", func() configdump.Section { return dumpSecrets(c.Secrets, s.Started(), client.SecretStates) })
	dump.Set("clusters", func() configdump.Section { return dumpClusters(s.Clusters(), client.Failures) })
	dump.Set(configdump.EndpointKey, func() configdump.Section {
		return configdump.Endpoints(assignments(s.Clusters(), false), assignments(s.Clusters(), true))
	})
}
