//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// compiler turns validated messages into values.
type compiler struct {
	product string
	form    config.Form
}

// freeForm returns a copy of free-form values, nil for an absent or empty one.
func freeForm(s *structpb.Struct) map[string]any {
	if len(s.GetFields()) == 0 {
		return nil
	}
	return s.AsMap()
}

func plainMetadata(m *corev3.Metadata) config.Metadata {
	if len(m.GetFilterMetadata()) == 0 {
		return nil
	}
	out := make(config.Metadata, len(m.GetFilterMetadata()))
	for ns, s := range m.GetFilterMetadata() {
		out[ns] = s.AsMap()
	}
	return out
}

// hostMetadata returns metadata of an endpoint or locality with the product's names
// for the namespaces that this library reads.
func (c *compiler) hostMetadata(m *corev3.Metadata) config.Metadata {
	out := plainMetadata(m)
	if out == nil {
		return nil
	}
	adopt := func(to string, from ...string) {
		for _, ns := range from {
			if v, ok := out[ns]; ok && ns != to {
				if _, own := out[to]; !own {
					out[to] = v
				}
				delete(out, ns)
			}
		}
	}
	adopt(c.product+".lb", "envoy.lb")
	adopt(c.product+".transport_socket_match", "envoy.transport_socket_match", c.product+".transport_socket", "envoy.transport_socket")
	return out
}

func address(a *corev3.Address) config.AddressSpec {
	switch {
	case a.GetSocketAddress() != nil:
		return socketAddress(a.GetSocketAddress())
	case a.GetPipe() != nil:
		return config.AddressSpec{Kind: config.PipeAddress, Path: a.GetPipe().GetPath()}
	case a.GetEnvoyInternalAddress() != nil:
		return config.AddressSpec{Kind: config.InternalAddress, Listener: a.GetEnvoyInternalAddress().GetServerListenerName()}
	}
	return config.AddressSpec{}
}

func socketAddress(s *corev3.SocketAddress) config.AddressSpec {
	if s == nil {
		return config.AddressSpec{}
	}
	ip, _ := netip.ParseAddr(s.GetAddress()) // the zero address for a name
	return config.AddressSpec{
		Kind: config.SocketAddress, Host: s.GetAddress(), IP: ip,
		Port: uint16(s.GetPortValue()), NamedPort: s.GetNamedPort(),
		UDP:      s.GetProtocol() == corev3.SocketAddress_UDP,
		Resolver: s.GetResolverName(),
	}
}

func (c *compiler) assignment(a *endpointv3.ClusterLoadAssignment) *config.Assignment {
	if a == nil {
		return nil
	}
	out := &config.Assignment{
		ClusterName:            a.GetClusterName(),
		OverprovisioningFactor: given(a.GetPolicy().GetOverprovisioningFactor(), defaultOverprovision),
		EndpointStaleAfter:     timer(a.GetPolicy().GetEndpointStaleAfter(), 0),
		WeightedPriorityHealth: a.GetPolicy().GetWeightedPriorityHealth(),
	}
	for _, drop := range a.GetPolicy().GetDropOverloads() {
		out.DropOverload = fractionalPercent(drop.GetDropPercentage())
	}
	for _, l := range a.GetEndpoints() {
		g := config.LocalityEndpoints{
			Locality: locality(l.GetLocality()),
			Weight:   given(l.GetLoadBalancingWeight(), 0),
			Priority: l.GetPriority(),
			Metadata: c.hostMetadata(l.GetMetadata()),
		}
		for _, e := range l.GetLbEndpoints() {
			g.Endpoints = append(g.Endpoints, c.endpoint(e, a.GetNamedEndpoints()))
		}
		out.Localities = append(out.Localities, g)
	}
	return out
}

func locality(l *corev3.Locality) config.Locality {
	return config.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}

// fractionalPercent returns a fraction in percent.
func fractionalPercent(p *typev3.FractionalPercent) float64 {
	per := 100.0
	switch p.GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		per = 10_000
	case typev3.FractionalPercent_MILLION:
		per = 1_000_000
	}
	return float64(p.GetNumerator()) / per * 100
}

// hostOf returns the host of an entry, which can be given by name.
func hostOf(e *endpointv3.LbEndpoint, named map[string]*endpointv3.Endpoint) *endpointv3.Endpoint {
	if e.GetEndpoint() != nil || e.GetEndpointName() == "" {
		return e.GetEndpoint()
	}
	return named[e.GetEndpointName()]
}

func (c *compiler) endpoint(e *endpointv3.LbEndpoint, named map[string]*endpointv3.Endpoint) config.Endpoint {
	h := hostOf(e, named)
	out := config.Endpoint{
		Address:                  address(h.GetAddress()),
		Hostname:                 h.GetHostname(),
		Health:                   config.HealthStatus(e.GetHealthStatus()),
		Weight:                   max(1, given(e.GetLoadBalancingWeight(), 1)),
		Metadata:                 c.hostMetadata(e.GetMetadata()),
		HealthCheckHostname:      h.GetHealthCheckConfig().GetHostname(),
		DisableActiveHealthCheck: h.GetHealthCheckConfig().GetDisableActiveHealthCheck(),
	}
	out.Canary, _ = out.Metadata[c.product+".lb"]["canary"].(bool)
	for _, a := range h.GetAdditionalAddresses() {
		out.Additional = append(out.Additional, address(a.GetAddress()))
	}
	check := h.GetHealthCheckConfig()
	if check.GetAddress() != nil {
		out.HealthCheckAddress = address(check.GetAddress())
	}
	if port := check.GetPortValue(); port != 0 {
		if out.HealthCheckAddress.IsZero() {
			out.HealthCheckAddress = out.Address
		}
		out.HealthCheckAddress.Port = uint16(port)
	}
	return out
}

func (c *compiler) bind(b *corev3.BindConfig) *config.Bind {
	if b == nil {
		return nil
	}
	out := &config.Bind{Source: socketAddress(b.GetSourceAddress()), Freebind: given(b.GetFreebind(), false)}
	for _, o := range b.GetSocketOptions() {
		_, isInt := o.GetValue().(*corev3.SocketOption_IntValue)
		out.Options = append(out.Options, config.SocketOption{
			Level: o.GetLevel(), Name: o.GetName(),
			IsInt: isInt, Int: o.GetIntValue(), Buf: string(o.GetBufValue()),
			State: config.SocketState(o.GetState()),
		})
	}
	for _, a := range b.GetAdditionalSourceAddresses() {
		out.Additional = append(out.Additional, socketAddress(a))
	}
	for _, a := range b.GetExtraSourceAddresses() {
		out.Additional = append(out.Additional, socketAddress(a.GetAddress()))
	}
	return out
}

func keepalive(k *corev3.TcpKeepalive) *config.Keepalive {
	if k == nil {
		return nil
	}
	return &config.Keepalive{
		Probes:   given(k.GetKeepaliveProbes(), 0),
		Time:     time.Duration(given(k.GetKeepaliveTime(), 0)) * time.Second,
		Interval: time.Duration(given(k.GetKeepaliveInterval(), 0)) * time.Second,
	}
}
