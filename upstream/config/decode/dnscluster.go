//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Names of the cluster type that the DNS types are as an extension, below
// "envoy." or the product.
const (
	dnsName        = "cluster.dns"
	strictDNSName  = "cluster.strict_dns"
	logicalDNSName = "cluster.logical_dns"
)

// dnsTypeName returns which of the DNS names a cluster type has, empty if it is
// another one or a custom type of that name is known.
func (d *Decoder) dnsTypeName(name string) string {
	if _, custom := d.opts.ClusterTypes[name]; custom {
		return ""
	}
	for _, prefix := range []string{d.opts.Product + ".", "envoy."} {
		switch rest, ok := strings.CutPrefix(name, prefix); {
		case !ok:
		case rest == dnsName, rest == strictDNSName, rest == logicalDNSName:
			return rest
		}
	}
	return ""
}

// plainDNS returns c as a cluster of type STRICT_DNS or LOGICAL_DNS if it names
// one of these by cluster_type, and c itself otherwise. Mistakes are noted in the
// author's names. What a DnsCluster says is in force in place of all that the
// cluster says of DNS.
func (d *Decoder) plainDNS(c *clusterv3.Cluster, x *extra, r *report) *clusterv3.Cluster {
	custom := c.GetClusterType()
	name := d.dnsTypeName(custom.GetName())
	if name == "" {
		return c
	}
	const at = "cluster_type.typed_config"
	var options *dnsv3.DnsCluster
	if custom.GetTypedConfig().GetTypeUrl() != "" {
		m, err := unpack(custom.GetTypedConfig())
		var ok bool
		if options, ok = m.(*dnsv3.DnsCluster); !ok && err == nil { // bad bytes are noted with the fields
			r.errorf(BadValue, at, "%s is not a DnsCluster", quote(string(custom.GetTypedConfig().MessageName()), false))
		}
	}
	single := options.GetAllAddressesInSingleEndpoint()
	if name == strictDNSName && single {
		r.errorf(Conflict, at+".all_addresses_in_single_endpoint", "cannot be combined with cluster type %s", quote(custom.GetName(), false))
	}
	kind := clusterv3.Cluster_STRICT_DNS
	if single || name == logicalDNSName {
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
	out.DnsLookupFamily = clusterv3.Cluster_DnsLookupFamily(max(options.GetDnsLookupFamily()-1, 0)) // this one's 0 is "not given"
	if f := options.GetDnsFailureRefreshRate(); f != nil {
		out.DnsFailureRefreshRate = &clusterv3.Cluster_RefreshRate{BaseInterval: f.GetBaseInterval(), MaxInterval: f.GetMaxInterval()}
	}
	x.leastDNSRefresh = options.GetDnsMinRefreshRate()
	before := r.author
	r.author = func(path string) string {
		for _, field := range dnsFields() {
			if field.here && (path == string(field.name) || strings.HasPrefix(path, string(field.name)+".")) {
				path = at + "." + path
				break
			}
		}
		if before != nil {
			path = before(path)
		}
		return path
	}
	return out
}

// dnsField is a field of a cluster that is about DNS.
type dnsField struct {
	name protoreflect.Name
	here bool // a DnsCluster has it too
}

func dnsFields() []dnsField {
	return []dnsField{
		{"dns_refresh_rate", true}, {"dns_failure_refresh_rate", true}, {"respect_dns_ttl", true}, {"dns_jitter", true},
		{"typed_dns_resolver_config", true}, {"dns_lookup_family", true},
		{"dns_resolvers", false}, {"dns_resolution_config", false}, {"use_tcp_for_dns_lookups", false},
	}
}
