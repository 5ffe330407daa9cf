package configdump

import (
	"cmp"
	"iter"
	"math"
	"net/netip"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Assignment holds the current endpoints of a cluster.
type Assignment struct {
	Name             string // of the service if it has one, else of the cluster
	Overprovisioning uint32 // percent; 0 means 140
	DropPercent      float64
	// Apart is set if the cluster has no localities: its endpoints are listed
	// separately.
	Apart bool
	Sets  []*host.Set // by priority
}

// Endpoints returns the section of the endpoints of static and dynamic clusters. It
// is empty if there are no assignments.
func Endpoints(static, dynamic iter.Seq[Assignment]) Section {
	if none(static) && none(dynamic) {
		return Section{Key: EndpointKey}
	}
	list := func(all iter.Seq[Assignment], message func(*endpointv3.ClusterLoadAssignment) proto.Message) iter.Seq2[string, proto.Message] {
		return func(yield func(string, proto.Message) bool) {
			for a := range all {
				if !yield(a.Name, message(a.message())) {
					return
				}
			}
		}
	}
	return Section{
		Key:     EndpointKey,
		Message: &adminv3.EndpointsConfigDump{},
		Lists: map[string]iter.Seq2[string, proto.Message]{
			"static_endpoint_configs": list(static, func(a *endpointv3.ClusterLoadAssignment) proto.Message {
				return &adminv3.EndpointsConfigDump_StaticEndpointConfig{EndpointConfig: packed(a)}
			}),
			"dynamic_endpoint_configs": list(dynamic, func(a *endpointv3.ClusterLoadAssignment) proto.Message {
				return &adminv3.EndpointsConfigDump_DynamicEndpointConfig{EndpointConfig: packed(a)}
			}),
		},
	}
}

func none(all iter.Seq[Assignment]) bool {
	for range all {
		return false
	}
	return true
}

func (a *Assignment) message() *endpointv3.ClusterLoadAssignment {
	factor := cmp.Or(a.Overprovisioning, 140)
	m := &endpointv3.ClusterLoadAssignment{ClusterName: a.Name, Policy: &endpointv3.ClusterLoadAssignment_Policy{
		OverprovisioningFactor: wrapperspb.UInt32(factor),
	}}
	if a.DropPercent > 0 {
		m.Policy.DropOverloads = []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{
			Category: "drop_overload", DropPercentage: &typev3.FractionalPercent{
				Numerator: uint32(math.Round(min(a.DropPercent, 100) * 10_000)), Denominator: typev3.FractionalPercent_MILLION,
			},
		}}
	}
	for _, set := range a.Sets {
		for _, l := range set.Localities {
			list := make([]*endpointv3.LbEndpoint, len(l.Hosts))
			for i, h := range l.Hosts {
				list[i] = endpoint(h)
			}
			if a.Apart {
				for i := range list {
					m.Endpoints = append(m.Endpoints, &endpointv3.LocalityLbEndpoints{LbEndpoints: list[i : i+1 : i+1], Priority: set.Priority})
				}
				continue
			}
			out := &endpointv3.LocalityLbEndpoints{
				Locality: &corev3.Locality{Region: l.Locality.Region, Zone: l.Locality.Zone, SubZone: l.Locality.SubZone}, Priority: set.Priority, LbEndpoints: list,
			}
			if set.LocalityWeighted {
				out.LoadBalancingWeight = wrapperspb.UInt32(l.Weight)
			}
			m.Endpoints = append(m.Endpoints, out)
		}
	}
	return m
}

func endpoint(h *host.Host) *endpointv3.LbEndpoint {
	check, own := &endpointv3.Endpoint_HealthCheckConfig{Hostname: h.HealthCheckHostname()}, h.Address()
	if hc := h.HealthCheckAddress(); hc != own {
		check.PortValue = uint32(hc.IP.Port())
		if hc.Pipe != own.Pipe || hc.IP.Addr() != own.IP.Addr() {
			check.Address = address(hc)
		}
	}
	at := &endpointv3.Endpoint{Address: address(own), HealthCheckConfig: check, Hostname: h.Hostname()}
	for _, a := range h.Addresses()[1:] {
		at.AdditionalAddresses = append(at.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: address(a)})
	}
	return &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: at},
		HealthStatus: [...]corev3.HealthStatus{
			status.Healthy: corev3.HealthStatus_HEALTHY, status.Degraded: corev3.HealthStatus_DEGRADED, status.Unhealthy: corev3.HealthStatus_UNHEALTHY,
		}[h.Health()],
		Metadata:            metadata(h.Metadata()),
		LoadBalancingWeight: wrapperspb.UInt32(h.Weight()),
	}
}

func address(a config.Address) *corev3.Address {
	if !a.IP.IsValid() {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: a.Pipe}}}
	}
	return socketAddress(a.IP, corev3.SocketAddress_TCP)
}

func socketAddress(ip netip.AddrPort, p corev3.SocketAddress_Protocol) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Protocol: p, Address: ip.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(ip.Port())},
	}}}
}

// metadata returns the message of free-form values. Values that are not JSON are
// omitted.
func metadata(spaces map[string]map[string]any) *corev3.Metadata {
	m := &corev3.Metadata{FilterMetadata: make(map[string]*structpb.Struct, len(spaces))}
	for name, fields := range spaces {
		if s, err := structpb.NewStruct(fields); err == nil {
			m.FilterMetadata[name] = s
		}
	}
	return m
}
