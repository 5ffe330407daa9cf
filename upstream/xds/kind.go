package xds

import "strings"

// kind is a type of resources that can be followed.
type kind uint8

const (
	clusterKind kind = iota
	endpointKind
	layerKind
	secretKind
)

const typePrefix = "type.googleapis.com/"

// service says how a kind is asked for.
type service struct {
	message  string // the type of the resources
	name     string // the gRPC service of streams with this kind only
	method   string // what follows "Stream" or "Delta" in the names of its methods
	wildcard bool   // all there are instead of some by name
}

func (k kind) service() service {
	switch k {
	case clusterKind:
		return service{"envoy.config.cluster.v3.Cluster", "envoy.service.cluster.v3.ClusterDiscoveryService", "Clusters", true}
	case endpointKind:
		return service{"envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.service.endpoint.v3.EndpointDiscoveryService", "Endpoints", false}
	case secretKind:
		return service{"envoy.extensions.transport_sockets.tls.v3.Secret", "envoy.service.secret.v3.SecretDiscoveryService", "Secrets", false}
	}
	return service{"envoy.service.runtime.v3.Runtime", "envoy.service.runtime.v3.RuntimeDiscoveryService", "Runtime", false}
}

func (k kind) typeURL() string { return typePrefix + k.service().message }

// method returns the full name of the method of a stream with k only.
func (k kind) method(delta bool) string {
	s := k.service()
	if delta {
		return "/" + s.name + "/Delta" + s.method
	}
	return "/" + s.name + "/Stream" + s.method
}

// aggregatedMethod is the method of a stream with all kinds.
func aggregatedMethod(delta bool) string {
	if delta {
		return "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
	}
	return "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
}

// messageName returns the message that a type URL names.
func messageName(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '/')+1:] }
