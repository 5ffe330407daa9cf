//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"cmp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// cluster compiles a validated message.
func (c *compiler) cluster(m *clusterv3.Cluster, x extra) *config.Cluster {
	out := &config.Cluster{
		Form:     c.form,
		Name:     m.GetName(),
		StatName: statName(m),

		AltStatName: m.GetAltStatName(),
		Type:        config.DiscoveryType(m.GetType()),

		ConnectTimeout:            timer(m.GetConnectTimeout(), defaultConnectTimeout),
		BufferLimitBytes:          given(m.GetPerConnectionBufferLimitBytes(), defaultBufferLimit),
		BufferHighWatermarkWait:   timer(m.GetPerConnectionBufferHighWatermarkTimeout(), 0),
		PerDownstreamConnection:   m.GetConnectionPoolPerDownstreamConnection(),
		WaitForWarmOnInit:         given(m.GetWaitForWarmOnInit(), true),
		CloseOnHealthFailure:      m.GetCloseConnectionsOnHostHealthFailure(),
		IgnoreHealthOnHostRemoval: m.GetIgnoreHealthOnHostRemoval(),
		CleanupInterval:           timer(m.GetCleanupInterval(), defaultCleanup),

		LB:              c.loadBalancing(m),
		HTTP:            c.http(m),
		DNS:             c.dns(m, x),
		Outlier:         c.outlier(m.GetOutlierDetection()),
		CircuitBreakers: c.circuitBreakers(m.GetCircuitBreakers()),
		Sockets:         c.sockets(m),
		Bind:            c.bind(m.GetUpstreamBindConfig()),
		Keepalive:       keepalive(m.GetUpstreamConnectionOptions().GetTcpKeepalive()),

		SetLocalInterfaceName: m.GetUpstreamConnectionOptions().GetSetLocalInterfaceNameOnUpstreamConnections(),
		Track: config.Track{
			TimeoutBudgets:       m.GetTrackTimeoutBudgets() || m.GetTrackClusterStats().GetTimeoutBudgets(),
			RequestResponseSizes: m.GetTrackClusterStats().GetRequestResponseSizes(),
			PerEndpointStats:     m.GetTrackClusterStats().GetPerEndpointStats(),
		},
		Metadata: plainMetadata(m.GetMetadata()),
	}
	if t := m.GetClusterType(); t != nil {
		out.Type = config.CustomDiscovery
		out.CustomType = &config.CustomType{Name: t.GetName(), Config: extensionAny(t.GetTypedConfig())}
	}
	if out.Type == config.EDSDiscovery {
		out.EDS = &config.EDS{ServiceName: m.GetEdsClusterConfig().GetServiceName(), Source: configSource(m.GetEdsClusterConfig().GetEdsConfig())}
		out.EDS.ServiceName = cmp.Or(out.EDS.ServiceName, out.Name)
	} else {
		out.Assignment = c.assignment(m.GetLoadAssignment())
	}
	for _, h := range m.GetHealthChecks() {
		out.HealthChecks = append(out.HealthChecks, c.healthCheck(h))
	}
	for _, f := range m.GetFilters() {
		out.Filters = append(out.Filters, config.Filter{Name: f.GetName(), Config: extensionAny(f.GetTypedConfig())})
	}
	if p := m.GetPreconnectPolicy(); p != nil {
		out.Preconnect = &config.Preconnect{PerUpstreamRatio: given(p.GetPerUpstreamPreconnectRatio(), 1), PredictiveRatio: p.GetPredictivePreconnectRatio().GetValue()}
	}
	if h := m.GetUpstreamConnectionOptions().GetHappyEyeballsConfig(); h != nil {
		out.HappyEyeballs = &config.HappyEyeballs{
			FirstFamilyV4:    h.GetFirstAddressFamilyVersion() == clusterv3.UpstreamConnectionOptions_V4,
			FirstFamilyV6:    h.GetFirstAddressFamilyVersion() == clusterv3.UpstreamConnectionOptions_V6,
			FirstFamilyCount: given(h.GetFirstAddressFamilyCount(), 1),
		}
	}
	out.Unread = unreadFields(m)
	out.ExtensionOptions = typedOptions(m.GetTypedExtensionProtocolOptions())
	for name, s := range x.options {
		if out.UntypedExtensionOptions == nil {
			out.UntypedExtensionOptions = make(map[string]map[string]any, len(x.options))
		}
		out.UntypedExtensionOptions[name] = s.AsMap()
	}
	return out
}

// statName returns the name of a cluster in statistics, without control characters
// that could start a line.
func statName(m *clusterv3.Cluster) string {
	name := m.GetAltStatName()
	name = cmp.Or(name, m.GetName())
	return strings.ReplaceAll(oneline.Clean(name), ":", "_")
}

func typedOptions(options map[string]*anypb.Any) map[string]config.Any {
	if len(options) == 0 {
		return nil
	}
	out := make(map[string]config.Any, len(options))
	for name, a := range options {
		out[name] = extensionAny(a)
	}
	return out
}
