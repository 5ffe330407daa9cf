package wire

import (
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func bootstrapDump() *adminv3.BootstrapConfigDump {
	return &adminv3.BootstrapConfigDump{Bootstrap: &bootstrapv3.Bootstrap{
		Node:  &corev3.Node{Id: "n", Cluster: "c", Locality: &corev3.Locality{Zone: "z", Region: "r"}},
		Admin: &bootstrapv3.Admin{ProfilePath: "/p"}, FlagsPath: "/f"}}
}

func TestMaskKeeps(t *testing.T) {
	for mask, want := range map[string]*bootstrapv3.Bootstrap{
		"bootstrap.node.id":                              {Node: &corev3.Node{Id: "n"}},
		"bootstrap.node.id,bootstrap.flags_path":         {Node: &corev3.Node{Id: "n"}, FlagsPath: "/f"},
		"bootstrap.node.locality.zone,bootstrap.node.id": {Node: &corev3.Node{Id: "n", Locality: &corev3.Locality{Zone: "z"}}},
		"bootstrap.node,bootstrap.node.id":               {Node: bootstrapDump().Bootstrap.Node},
		"bootstrap.node.id,bootstrap.node":               {Node: bootstrapDump().Bootstrap.Node},
		"bootstrap.node.extensions,":                     {Node: &corev3.Node{}},
		"bootstrap":                                      bootstrapDump().Bootstrap,
		"bootstrap.cluster_manager.local_cluster_name":   {},
		"last_updated":                                   nil,
		"":                                               nil,
	} {
		m := bootstrapDump()
		if err := ParseMask(mask).Keep(m); err != nil {
			t.Errorf("%q: %v", mask, err)
		}
		if !proto.Equal(m, &adminv3.BootstrapConfigDump{Bootstrap: want}) {
			t.Errorf("%q keeps %v, want %v", mask, m, want)
		}
	}
}

func TestMaskErrors(t *testing.T) {
	for _, mask := range []string{"x", "bootstrap.x", "bootstrap.node.id.x", "bootstrap.node.extensions.name", "bootstrap.node.metadata.fields.x",
		"bootstrap.", ".bootstrap", ".", "bootstrap..node", "Bootstrap", "bootstrap.node.dynamic_parameters.key", "bootstrap.node,static_clusters", " bootstrap",
		"bootstrap.stats_sinks.typed_config", strings.Repeat("bootstrap.", 1000)} {
		m := bootstrapDump()
		if err := ParseMask(mask).Keep(m); err == nil || !proto.Equal(m, bootstrapDump()) {
			t.Errorf("%q: error %v, left %v", mask, err, m)
		}
	}
	c := &adminv3.ClustersConfigDump_StaticCluster{}
	if err := ParseMask("cluster.name").Keep(c); err == nil {
		t.Error("a path may not go below a packed message")
	}
}

func TestMaskOfPackedMessages(t *testing.T) {
	entry := func() *adminv3.ClustersConfigDump_DynamicCluster {
		return &adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: "v", Cluster: anyOf(t, &clusterv3.Cluster{Name: "a", AltStatName: "b",
			CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{CloseConnectionsOnHostSetChange: true, IgnoreNewHostsUntilFirstHc: true}})}
	}
	packed := func(c *clusterv3.Cluster) *anypb.Any { return anyOf(t, c) }
	for mask, want := range map[string]*adminv3.ClustersConfigDump_DynamicCluster{
		"version_info":              {VersionInfo: "v"},
		"cluster.name":              {Cluster: packed(&clusterv3.Cluster{Name: "a"})},
		"cluster.name,version_info": {VersionInfo: "v", Cluster: packed(&clusterv3.Cluster{Name: "a"})},
		"version_info,cluster.name": {VersionInfo: "v", Cluster: packed(&clusterv3.Cluster{Name: "a"})},
		"cluster":                   {Cluster: entry().Cluster},
		"cluster,cluster.name":      {Cluster: entry().Cluster},
		"cluster.common_lb_config.ignore_new_hosts_until_first_hc": {Cluster: packed(&clusterv3.Cluster{
			CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{IgnoreNewHostsUntilFirstHc: true}})},
	} {
		m := entry()
		if err := ParseMask(mask).KeepPacked(m); err != nil {
			t.Errorf("%q: %v", mask, err)
		}
		if !proto.Equal(m, want) {
			t.Errorf("%q keeps %v, want %v", mask, m, want)
		}
	}
	for _, mask := range []string{"cluster.x", "cluster.name.x", "x", "cluster.", "version_info.x", "error_state.failed_configuration.x"} {
		m := entry()
		if err := ParseMask(mask).KeepPacked(m); err == nil || !proto.Equal(m, entry()) {
			t.Errorf("%q: error %v, left %v", mask, err, m)
		}
	}
	unknown := &adminv3.ClustersConfigDump_DynamicCluster{Cluster: &anypb.Any{TypeUrl: "a/no.such.Type"}}
	if err := ParseMask("cluster.name").KeepPacked(unknown); err == nil {
		t.Error("a packed message of an unknown type has no fields")
	}
	several := &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{packed(&clusterv3.Cluster{Name: "a"})}}
	if err := ParseMask("resources.name").KeepPacked(several); err == nil {
		t.Error("a list of packed messages has no fields")
	}
	// Fields outside of the mask are not even unpacked.
	odd := &adminv3.ClustersConfigDump_DynamicCluster{Cluster: packed(&clusterv3.Cluster{Name: "a"})}
	odd.Cluster.Value = append(odd.Cluster.Value, 4<<3|2, 1, 0xff) // connect_timeout
	if err := ParseMask("cluster.name").KeepPacked(odd); err != nil || !proto.Equal(odd.Cluster, packed(&clusterv3.Cluster{Name: "a"})) {
		t.Errorf("beside a field that cannot be read: %v, %v", err, odd)
	}
	for _, bytes := range []string{"\x0a\xff", "\x0a\x01a\x07"} {
		odd.Cluster.Value = []byte(bytes)
		if err := ParseMask("cluster.name").KeepPacked(odd); err == nil {
			t.Errorf("%q is a cluster", bytes)
		}
	}
	unset := &adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: "v"}
	if err := ParseMask("cluster.name").KeepPacked(unset); err != nil || unset.VersionInfo != "" {
		t.Errorf("unset: %v, %v", err, unset)
	}
}

// FuzzMask checks that a mask either is an error and leaves a message unchanged, or
// keeps a subset of its fields, and is idempotent.
func FuzzMask(f *testing.F) {
	for _, seed := range []string{"", "bootstrap.node.id", "bootstrap.node,bootstrap.node.id", "a,,b", "bootstrap.node.metadata.fields", "....", "bootstrap.admin.profile_path,last_updated"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := bootstrapDump()
		if err := ParseMask(text).Keep(m); err != nil {
			if !proto.Equal(m, bootstrapDump()) {
				t.Errorf("%q: error %v, and the message changed", text, err)
			}
			return
		}
		once := proto.Clone(m)
		if err := ParseMask(text).Keep(m); err != nil || !proto.Equal(m, once) {
			t.Errorf("%q: the second time %v, %v", text, err, m)
		}
		whole := bootstrapDump()
		proto.Merge(whole, m)
		if !proto.Equal(whole, bootstrapDump()) {
			t.Errorf("%q made up %v", text, m)
		}
	})
}

// FuzzMaskPacked checks that a mask that fits a message with a packed one keeps some
// of its fields, that any other is an error and leaves it unchanged, and that masks
// are idempotent.
func FuzzMaskPacked(f *testing.F) {
	for _, seed := range []string{"", "cluster", "cluster.name", "cluster.name,version_info", "cluster.", "cluster.x", "error_state.failed_configuration",
		"error_state.failed_configuration.name", "cluster.common_lb_config.zone_aware_lb_config,cluster.common_lb_config", "cluster.transport_socket.typed_config.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entry := func() *adminv3.ClustersConfigDump_DynamicCluster {
			return &adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: "v", Cluster: anyOf(t, &clusterv3.Cluster{Name: "a", AltStatName: "b",
				CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{IgnoreNewHostsUntilFirstHc: true}})}
		}
		m, mask := entry(), ParseMask(text)
		fits, err := mask.FitsPacked(m), mask.KeepPacked(m)
		if (fits == nil) != (err == nil) {
			t.Fatalf("%q: fits %v, keeps %v", text, fits, err)
		}
		if err != nil {
			if !proto.Equal(m, entry()) {
				t.Errorf("%q: error %v, and the message changed", text, err)
			}
			return
		}
		once := proto.Clone(m)
		if err := mask.KeepPacked(m); err != nil || !proto.Equal(m, once) {
			t.Errorf("%q: the second time %v, %v", text, err, m)
		}
	})
}

func TestMaskPaths(t *testing.T) {
	mask := ParseMask(",a.b,,c,")
	if got := mask.Paths(); strings.Join(got, " ") != "a.b c" || mask.Has("a") || !mask.Has("c") || mask.Has("") {
		t.Errorf("paths %q", got)
	}
}
