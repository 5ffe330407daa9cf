package xds

import "strings"

// kind is a resource type.
type kind uint8

const (
	clusterKind kind = iota
	endpointKind
	layerKind
	secretKind
)

const typePrefix = "type.googleapis.com/"

// service describes how resources of a kind are requested.
type service struct {
	message  string // message type of the resources
	name     string // gRPC service of a stream for this kind alone
	method   string // what follows "Stream" or "Delta" in the names of its methods
	wildcard bool   // requests all resources instead of names
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

// aggregated is the service of streams for all kinds.
func aggregated() service {
	return service{name: "envoy.service.discovery.v3.AggregatedDiscoveryService", method: "AggregatedResources"}
}

// stream returns the full method name of a stream.
func (s service) stream(delta bool) string {
	if delta {
		return "/" + s.name + "/Delta" + s.method
	}
	return "/" + s.name + "/Stream" + s.method
}

func messageName(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '/')+1:] }
