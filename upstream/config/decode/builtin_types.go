//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"maps"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// builtinTypes are the names that the built-in discovery types have as values of
// cluster_type, without the prefix "envoy." or that of the product.
func builtinTypes() map[string]clusterv3.Cluster_DiscoveryType {
	return map[string]clusterv3.Cluster_DiscoveryType{
		dnsName: clusterv3.Cluster_STRICT_DNS, strictDNSName: clusterv3.Cluster_STRICT_DNS, logicalDNSName: clusterv3.Cluster_LOGICAL_DNS,
		"cluster.static": clusterv3.Cluster_STATIC, "cluster.eds": clusterv3.Cluster_EDS, "cluster.original_dst": clusterv3.Cluster_ORIGINAL_DST,
	}
}

const (
	dnsName        = "cluster.dns"
	strictDNSName  = "cluster.strict_dns"
	logicalDNSName = "cluster.logical_dns"
)

// builtinName returns the name of a built-in cluster type without its prefix. It is
// empty if name is another one or that of a known custom type.
func (d *Decoder) builtinName(name string) string {
	if _, custom := d.opts.ClusterTypes[name]; custom {
		return ""
	}
	for _, prefix := range []string{d.opts.Product + ".", "envoy."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if _, builtin := builtinTypes()[rest]; builtin {
				return rest
			}
		}
	}
	return ""
}

// knownTypes returns all names that cluster_type can have.
func (d *Decoder) knownTypes() []string {
	names := slices.Collect(maps.Keys(d.opts.ClusterTypes))
	for name := range builtinTypes() {
		names = append(names, d.opts.Product+"."+name)
	}
	return names
}

// builtinType returns c with a type in place of a cluster_type that names a built-in
// type, and c itself otherwise. Options in a DnsCluster replace the DNS fields of the
// cluster.
func (d *Decoder) builtinType(c *clusterv3.Cluster, x *extra, r *report) *clusterv3.Cluster {
	custom := c.GetClusterType()
	name := d.builtinName(custom.GetName())
	if name == "" {
		return c
	}
	kind := builtinTypes()[name]
	const at = "cluster_type.typed_config"
	var options *dnsv3.DnsCluster
	if custom.GetTypedConfig().GetTypeUrl() != "" {
		m, err := unpack(custom.GetTypedConfig())
		var ok bool
		switch options, ok = m.(*dnsv3.DnsCluster); {
		case err != nil: // the checker of fields reports it
		case isEmpty(m):
		case kind != clusterv3.Cluster_STRICT_DNS && kind != clusterv3.Cluster_LOGICAL_DNS:
			r.errorf(BadValue, at, "cluster type %s takes no configuration", quote(custom.GetName(), false))
			options = nil
		case !ok:
			r.errorf(BadValue, at, "%s is not a DnsCluster", quote(string(custom.GetTypedConfig().MessageName()), false))
		}
	}
	single := options.GetAllAddressesInSingleEndpoint()
	if name == strictDNSName && single {
		r.errorf(Conflict, at+".all_addresses_in_single_endpoint", "cannot be combined with cluster type %s", quote(custom.GetName(), false))
	}
	if single {
		kind = clusterv3.Cluster_LOGICAL_DNS
	}
	out := proto.Clone(c).(*clusterv3.Cluster)
	out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: kind}
	if options == nil {
		return out
	}
	m := out.ProtoReflect()
	for _, field := range dnsFields() {
		fd := m.Descriptor().Fields().ByName(field.name)
		if m.Has(fd) {
			r.warnf(string(field.name), "has no effect beside the DnsCluster in cluster_type")
			m.Clear(fd)
		}
	}
	out.DnsRefreshRate, out.RespectDnsTtl, out.DnsJitter = options.GetDnsRefreshRate(), options.GetRespectDnsTtl(), options.GetDnsJitter()
	out.TypedDnsResolverConfig = options.GetTypedDnsResolverConfig()
	out.DnsLookupFamily = clusterv3.Cluster_DnsLookupFamily(max(options.GetDnsLookupFamily()-1, 0)) // 0 means not set
	if f := options.GetDnsFailureRefreshRate(); f != nil {
		out.DnsFailureRefreshRate = &clusterv3.Cluster_RefreshRate{BaseInterval: f.GetBaseInterval(), MaxInterval: f.GetMaxInterval()}
	}
	x.leastDNSRefresh = options.GetDnsMinRefreshRate()
	before := r.originalPath
	r.originalPath = func(path string) string {
		if slices.ContainsFunc(dnsFields(), func(f dnsField) bool {
			return f.here && (path == string(f.name) || strings.HasPrefix(path, string(f.name)+"."))
		}) {
			path = at + "." + path
		}
		if before != nil {
			path = before(path)
		}
		return path
	}
	return out
}

func isEmpty(m proto.Message) bool {
	_, ok := m.(*emptypb.Empty)
	return ok
}

// dnsField is a DNS field of a cluster.
type dnsField struct {
	name protoreflect.Name
	here bool // DnsCluster has the same field
}

func dnsFields() []dnsField {
	return []dnsField{
		{"dns_refresh_rate", true}, {"dns_failure_refresh_rate", true}, {"respect_dns_ttl", true}, {"dns_jitter", true},
		{"typed_dns_resolver_config", true}, {"dns_lookup_family", true},
		{"dns_resolvers", false}, {"dns_resolution_config", false}, {"use_tcp_for_dns_lookups", false},
	}
}
