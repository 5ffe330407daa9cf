package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// DefaultMaxMessageBytes is the default size limit of responses and files.
const DefaultMaxMessageBytes = 64 << 20

// Config configures a [Client].
type Config struct {
	// Store holds the statistics. It must be set.
	Store *store.Store
	// Decoder decodes clusters, load assignments and secrets. It must be set.
	Decoder *decode.Decoder
	// Node identifies this process to servers.
	Node Node

	// ADS is the server of the aggregated stream, or nil if there is none.
	ADS *config.APISource
	// CDS is the source of clusters. If nil, all clusters are static.
	CDS *config.ConfigSource
	// Layers are the runtime layers to follow. SetLayer receives the values of a
	// layer by its name; an error refuses them.
	Layers   []Layer
	SetLayer func(name string, values map[string]any) error

	// Credentials returns the credentials for a target URI. If nil, connections are
	// plain text and targets with credentials are refused.
	Credentials func(config.GRPCService) (credentials.TransportCredentials, error)

	// MaxMessageBytes is the size limit of a response and of a file; 0 means
	// [DefaultMaxMessageBytes].
	MaxMessageBytes int
	// MaxResources and MaxResourceBytes limit the resources of all control planes and
	// files together: their number and their encoded size. A resource beyond a limit is
	// refused and counted in xds.resource_overflow. 0 means [DefaultMaxResources] and
	// [DefaultMaxResourceBytes], a negative value no limit.
	MaxResources, MaxResourceBytes int
	// Rand returns uniform random numbers for delays. It is called concurrently; nil
	// means math/rand/v2.
	Rand func() uint64
	// Logger receives warnings; nil discards them.
	Logger *slog.Logger
}

// Node identifies this process.
type Node struct {
	ID, Cluster    string
	Locality       config.Locality
	Metadata       map[string]any // of the types of JSON
	ClientFeatures []string
	Version        string // of the program
}

// Layer is a layer of runtime values.
type Layer struct {
	Name   string // of the resource
	Source config.ConfigSource
	// Layer is the name of the layer if it differs from that of the resource. Several
	// layers can have one resource from different sources.
	Layer string
}

// Client follows control planes. All methods are safe for concurrent use.
type Client struct {
	o        Config
	log      *slog.Logger
	node     *node
	kept     *budget
	manager  *upstream.Manager
	attached chan struct{} // closed once manager is set
	ads      *mux          // nil: none
	clusters *clusters     // nil: none are followed
	files    files
	secrets  secrets
	open     func(ctx context.Context, api *config.APISource, delta bool, method string) (stream, error)

	layersWaiting sync.WaitGroup
	layersReady   chan struct{}
}

// New returns a client that does nothing yet. It fails if the configuration cannot
// work.
func New(o Config) (*Client, error) {
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Client{o: o, log: o.Logger, attached: make(chan struct{}), layersReady: make(chan struct{})}
	c.files.log, c.open, c.secrets.c, c.kept = o.Logger, c.openGRPC, c, newBudget(&o)
	meta, err := structpb.NewStruct(o.Node.Metadata)
	if err != nil {
		return nil, fmt.Errorf("xds: metadata of the node: %w", err)
	}
	if len(o.Node.Metadata) == 0 {
		meta = nil
	}
	c.node = &corev3.Node{
		Id: o.Node.ID, Cluster: o.Node.Cluster, Metadata: meta, ClientFeatures: clientFeatures(o.Node.ClientFeatures),
		UserAgentName: o.Store.Product(), UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: o.Node.Version},
	}
	if l := o.Node.Locality; l != (config.Locality{}) {
		c.node.Locality = &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
	}
	if o.ADS != nil {
		var delta bool
		switch o.ADS.Type {
		case config.APIGRPC, config.APIAggregatedGRPC:
		case config.APIDeltaGRPC, config.APIAggregatedDeltaGRPC:
			delta = true
		default:
			return nil, errors.New("xds: ads_config: api_type is not one of GRPC, DELTA_GRPC, AGGREGATED_GRPC and AGGREGATED_DELTA_GRPC")
		}
		if err := c.checkTarget(o.ADS); err != nil {
			return nil, fmt.Errorf("xds: ads_config: %w", err)
		}
		c.ads = c.newMux(o.ADS, aggregated().stream(delta), delta, o.Store.Own())
	}
	if o.CDS != nil {
		if err := c.check(o.CDS); err != nil {
			return nil, fmt.Errorf("xds: cds_config: %w", err)
		}
		c.clusters = &clusters{c: c, scope: o.Store.Own().Scope("cluster_manager.cds"), known: make(map[string]*knownCluster), failures: make(map[string]*Failure)}
		c.clusters.stats = newUpdateStats(c.clusters.scope)
	}
	for _, l := range o.Layers {
		if err := c.check(&l.Source); err != nil {
			return nil, fmt.Errorf("xds: runtime layer %q: %w", l.Name, err)
		}
		c.layersWaiting.Add(1)
	}
	return c, nil
}

// checkTarget returns an error if an API source has no usable target.
func (c *Client) checkTarget(api *config.APISource) error {
	if len(api.GRPC) != 1 {
		return fmt.Errorf("grpc_services: %d services, exactly one is supported", len(api.GRPC))
	}
	switch g := &api.GRPC[0]; {
	case g.ClusterName == "" && g.TargetURI == "":
		return errors.New("grpc_services: neither a cluster name nor a target URI")
	case g.Credentials && c.o.Credentials == nil:
		return errors.New("grpc_services[0].google_grpc: credentials are not supported, use envoy_grpc and a cluster with a transport socket")
	}
	return nil
}

// check returns an error if a source is not usable.
func (c *Client) check(s *config.ConfigSource) error {
	switch s.Kind {
	case config.SourcePath:
		return nil
	case config.SourceADS, config.SourceSelf:
		if c.ads == nil {
			return errors.New("needs the aggregated stream, but there is no ads_config")
		}
		return nil
	case config.SourceAPI:
		switch s.API.Type {
		case config.APIGRPC, config.APIDeltaGRPC:
			return c.checkTarget(s.API)
		}
		return errors.New("api_config_source: api_type is not one of GRPC and DELTA_GRPC")
	}
	return errors.New("no source given, one of path, path_config_source, api_config_source and ads is needed")
}

func (c *Client) newMux(api *config.APISource, method string, delta bool, sc *store.Scope) *mux {
	pace := backoff{rand: c.o.Rand, first: firstDelay, last: lastDelay}
	if g := &api.GRPC[0]; g.RetryBase > 0 {
		pace.first, pace.last = g.RetryBase, g.RetryMax
	}
	return &mux{
		method: method, delta: delta, kept: c.kept, nodeAll: !delta && !api.SetNodeOnFirstMessageOnly,
		node: c.node, guard: guard.New(c.o.Logger), stats: newControlStats(sc), limit: newLimiter(api.RateLimit),
		backoff: pace, log: c.log, wake: make(chan struct{}, 1),
		open: func(ctx context.Context) (stream, error) {
			if err := c.wait(ctx); err != nil {
				return nil, err
			}
			return c.open(ctx, api, delta, method)
		},
	}
}

// Attach connects the client with the manager whose clusters it follows. It must be
// called once, before the manager starts. The manager is ready only after the first
// clusters of the control plane are.
func (c *Client) Attach(m *upstream.Manager) {
	c.manager = m
	if c.clusters != nil {
		c.clusters.done = m.Expect()
		m.SetVersion("")
	}
	close(c.attached)
}

// Check returns an error if the cluster of a control plane is missing, or gets its
// hosts or secrets from that control plane itself. Call it once the static clusters
// are added.
func (c *Client) Check() error {
	var errs []error
	check := func(where string, api *config.APISource) {
		if api == nil || api.GRPC[0].ClusterName == "" {
			return
		}
		name := api.GRPC[0].ClusterName
		cl, err := c.control(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("xds: %s: there is no static cluster %q", where, name))
		} else if f := cl.Config(); f.Type == config.EDSDiscovery && f.EDS.Source.Kind != config.SourcePath {
			errs = append(errs, fmt.Errorf("xds: %s: cluster %q gets its own hosts from a control plane", where, name))
		} else if c.needsItself(cl.Config()) {
			errs = append(errs, fmt.Errorf("xds: %s: cluster %q gets the secrets for its own connections over itself", where, name))
		}
	}
	check("ads_config", c.o.ADS)
	if c.o.CDS != nil {
		check("cds_config", c.o.CDS.API)
	}
	for i := range c.o.Layers {
		l := &c.o.Layers[i]
		check(fmt.Sprintf("runtime layer %q", l.Name), l.Source.API)
	}
	return errors.Join(errs...)
}

// wait blocks until Attach was called.
func (c *Client) wait(ctx context.Context) error {
	select {
	case <-c.attached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run follows all configured sources until ctx is done: secrets immediately,
// clusters when the static ones are ready, and runtime layers when the clusters
// that need no other cluster are ready. It returns nil after all goroutines
// have stopped.
func (c *Client) Run(ctx context.Context) error {
	if c.wait(ctx) != nil {
		close(c.layersReady)
		return nil
	}
	var all sync.WaitGroup
	start := func(where string, run func()) {
		all.Go(func() { guard.New(c.o.Logger).Run(where, run) })
	}
	if c.ads != nil {
		start("aggregated stream", func() { c.ads.run(ctx) })
	}
	start("secrets", func() { c.secrets.run(ctx) })
	if c.clusters != nil {
		start("clusters", func() { c.clusters.run(ctx) })
	}
	for i := range c.o.Layers {
		start("runtime layer", func() { c.runLayer(ctx, &c.o.Layers[i]) })
	}
	start("runtime layers", func() {
		defer close(c.layersReady)
		c.layersWaiting.Wait()
	})
	all.Wait()
	return nil
}

// LayersReady is closed when every runtime layer has had a first response,
// valid or not, or has timed out, or when Run returns.
func (c *Client) LayersReady() <-chan struct{} { return c.layersReady }

// follow delivers one resource of src, or all if name is empty, to a sink until ctx
// is done. A stream of its own counts in sc.
func (c *Client) follow(ctx context.Context, k kind, name string, src *config.ConfigSource, to sink, stats updateStats, sc *store.Scope) {
	s := newSubscription(k, name, to, stats, src.InitialFetchTimeout, guard.New(c.o.Logger))
	defer s.answered()
	switch src.Kind {
	case config.SourcePath:
		c.followFile(ctx, src, s)
	case config.SourceAPI:
		delta := src.API.Type == config.APIDeltaGRPC
		m := c.newMux(src.API, k.service().stream(delta), delta, sc)
		m.alone = true
		defer m.follow(s)()
		m.run(ctx)
	default:
		defer c.ads.follow(s)()
		<-ctx.Done()
	}
}
