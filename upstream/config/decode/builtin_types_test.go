package decode_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

const dnsClusterType = "type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster"

// byType is a cluster of one name with that cluster type; a DnsCluster is made of
// options unless they are "none".
func byType(name, options, more string) string {
	typed := ""
	if options != "none" {
		typed = ", typed_config: {'@type': " + dnsClusterType + options + "}"
	}
	return "name: c\ncluster_type: {name: " + name + typed + "}\n" + more +
		"load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.example, port_value: 1}}}}]}]}\n"
}

func TestDNSTypesAsExtensions(t *testing.T) {
	tests := []struct {
		name, options string
		want          config.DiscoveryType
	}{
		{"envoy.cluster.dns", "", config.StrictDNS},
		{"proxy.cluster.dns", "none", config.StrictDNS},
		{"envoy.cluster.dns", ", all_addresses_in_single_endpoint: true", config.LogicalDNS},
		{"envoy.cluster.strict_dns", "none", config.StrictDNS},
		{"envoy.cluster.logical_dns", "none", config.LogicalDNS},
		{"envoy.cluster.logical_dns", "", config.LogicalDNS},
	}
	for _, tt := range tests {
		c := mustParse(t, byType(tt.name, tt.options, "")).Cluster
		if c.Type != tt.want || c.CustomType != nil || c.Assignment == nil {
			t.Errorf("%s%s: type %d, custom %v, want %d", tt.name, tt.options, c.Type, c.CustomType, tt.want)
		}
		if diff := cmp.Diff(mustParse(t, byType("envoy.cluster.strict_dns", "none", "")).Cluster.DNS, c.DNS, compare); diff != "" {
			t.Errorf("%s: defaults differ\n%s", tt.name, diff)
		}
	}
	known := options()
	known.ClusterTypes["envoy.cluster.dns"] = false
	p, err := decode.NewDecoder(known).ClusterText("", []byte(byType("envoy.cluster.dns", "", "")), v3)
	if err != nil || p.Cluster.CustomType == nil {
		t.Errorf("a custom type of that name is lost: %v", err)
	}
}

func TestOptionsOfDNSExtensionAreInForce(t *testing.T) {
	p := mustParse(t, byType("envoy.cluster.dns", ", dns_refresh_rate: 7s, dns_failure_refresh_rate: {base_interval: 1s, max_interval: 4s}, respect_dns_ttl: true, "+
		"dns_jitter: 2s, dns_lookup_family: V4_PREFERRED, dns_min_refresh_rate: 3s, typed_dns_resolver_config: {name: r, typed_config: {"+
		"'@type': type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, "+
		"resolvers: [{socket_address: {address: 1.2.3.4, port_value: 5}}], dns_resolver_options: {use_tcp_for_dns_lookups: true}}}", ""))
	want := config.DNS{
		RefreshRate: 7 * time.Second, FailureBase: time.Second, FailureMax: 4 * time.Second, HasFailureRate: true, RespectTTL: true,
		Jitter: 2 * time.Second, Family: config.FamilyV4Preferred, LeastRefresh: 3 * time.Second, UseTCP: true,
		Resolvers: []config.AddressSpec{{Kind: config.SocketAddress, Host: "1.2.3.4", IP: netip.MustParseAddr("1.2.3.4"), Port: 5}},
	}
	if diff := cmp.Diff(want, p.Cluster.DNS, compare); diff != "" {
		t.Error(diff)
	}
	if m := p.Message(); p.TypeURL() != "type.googleapis.com/envoy.config.cluster.v3.Cluster" || len(m.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("%s is not the message as given", p.TypeURL())
	}
	for name, family := range map[string]config.LookupFamily{"AUTO": config.FamilyAuto, "V4_ONLY": config.FamilyV4Only, "V6_ONLY": config.FamilyV6Only, "ALL": config.FamilyAll} {
		if got := mustParse(t, byType("envoy.cluster.dns", ", dns_lookup_family: "+name, "")).Cluster.DNS.Family; got != family {
			t.Errorf("%s: %d, want %d", name, got, family)
		}
	}
}

func TestFieldsBesideDNSExtension(t *testing.T) {
	more := "dns_refresh_rate: 9s\nuse_tcp_for_dns_lookups: true\n"
	p := mustParse(t, byType("envoy.cluster.dns", "", more))
	if d := p.Cluster.DNS; d.RefreshRate != 5*time.Second || d.UseTCP {
		t.Errorf("%+v: what stands beside a DnsCluster is in effect", d)
	}
	var got []string
	for _, w := range p.Warnings() {
		got = append(got, w.Field+": "+w.Message)
	}
	const text = ": has no effect beside the DnsCluster in cluster_type"
	if diff := cmp.Diff([]string{"dns_refresh_rate" + text, "use_tcp_for_dns_lookups" + text}, got); diff != "" {
		t.Error(diff)
	}
	if d := mustParse(t, byType("envoy.cluster.strict_dns", "none", more)).Cluster.DNS; d.RefreshRate != 9*time.Second || !d.UseTCP {
		t.Errorf("%+v: what the cluster says is lost without a DnsCluster", d)
	}
}

func TestDNSExtensionMistakes(t *testing.T) {
	const at = "cluster_type.typed_config"
	runRules(t, []ruleTest{
		{"other-type", v3, "name: c\ncluster_type: {name: envoy.cluster.dns, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}\n",
			one(at + `: "google.protobuf.Struct" is not a DnsCluster`)},
		{"strict-and-single", v3, byType("envoy.cluster.strict_dns", ", all_addresses_in_single_endpoint: true", ""),
			one(at + `.all_addresses_in_single_endpoint: cannot be combined with cluster type "envoy.cluster.strict_dns"`)},
		{"refresh", v3, byType("envoy.cluster.dns", ", dns_refresh_rate: 0.0005s", ""), one(at + ".dns_refresh_rate: 500µs is below the minimum of 1ms")},
		{"refresh-one-millisecond", v3, byType("envoy.cluster.dns", ", dns_refresh_rate: 0.001s", ""), nil},
		{"failure-order", v3, byType("envoy.cluster.dns", ", dns_failure_refresh_rate: {base_interval: 2s, max_interval: 1s}", ""),
			one(at + ".dns_failure_refresh_rate.max_interval: 1s is below base_interval 2s")},
		{"least", v3, byType("envoy.cluster.dns", ", dns_min_refresh_rate: 0.5s", ""), one(at + ".dns_min_refresh_rate: 500ms is below 1s")},
		{"resolver", v3, byType("envoy.cluster.dns", ", typed_dns_resolver_config: {name: r, typed_config: {'@type': type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: [{socket_address: {address: x.example, port_value: 5}}]}}", ""),
			one(at + `.typed_dns_resolver_config.typed_config.resolvers[0]: "x.example" is not an IP address`)},
		{"balancer", v3, byType("envoy.cluster.dns", "", "lb_policy: CLUSTER_PROVIDED\n"), one("lb_policy: CLUSTER_PROVIDED, but type STRICT_DNS brings no load balancer")},
		{"logical-two", v3, "name: c\ncluster_type: {name: envoy.cluster.logical_dns}\nload_assignment: {cluster_name: c}\n", one("load_assignment: type LOGICAL_DNS takes exactly one endpoint, got 0")},
	})
}

func TestBuiltinTypesAsExtensions(t *testing.T) {
	const host = "load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}}}]}]}\n"
	for _, tt := range []struct {
		name, more string
		want       config.DiscoveryType
	}{
		{"cluster.static", host, config.Static},
		{"cluster.eds", "eds_cluster_config: {eds_config: {ads: {}}}\n", config.EDSDiscovery},
		{"cluster.original_dst", "lb_policy: CLUSTER_PROVIDED\n", config.OriginalDst},
	} {
		for _, prefix := range []string{"envoy.", "proxy."} {
			for _, typed := range []string{"", ", typed_config: {'@type': type.googleapis.com/google.protobuf.Empty}"} {
				c := mustParse(t, "name: c\ncluster_type: {name: "+prefix+tt.name+typed+"}\n"+tt.more).Cluster
				if c.Type != tt.want || c.CustomType != nil {
					t.Errorf("%s%s: type %d, custom %v, want %d", prefix, tt.name, c.Type, c.CustomType, tt.want)
				}
			}
		}
	}
	runRules(t, []ruleTest{
		{"static-options", v3, byType("envoy.cluster.static", "", ""), append(one(`cluster_type.typed_config: cluster type "envoy.cluster.static" takes no configuration`),
			`load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: "a.example" is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names`)},
		{"eds-source", v3, "name: c\ncluster_type: {name: envoy.cluster.eds}\n", one("eds_cluster_config: must be set for type EDS")},
		{"original-dst-policy", v3, "name: c\ncluster_type: {name: envoy.cluster.original_dst}\n", one("lb_policy: type ORIGINAL_DST needs CLUSTER_PROVIDED or ORIGINAL_DST_LB, got ROUND_ROBIN")},
	})
}
