package dump

import (
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// key is a private key, which must not be shown.
func key() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("kanarienvogel kanarienvogel")}))
}

const config = `
node: {id: n-17, cluster: edge, metadata: {build_token: kanarienvogel}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
statsd: {listeners: [{name: in, address: "udp://127.0.0.1:0"}]}
dynamic_resources: {cds_config: {path: $DIR/cds.json}}
static_resources:
  clusters:
  - name: checkout
    connect_timeout: 0.25s
    type: STATIC
    outlier_detection: {}
    metadata: {filter_metadata: {net.example: {password: kanarienvogel, note: %q}}}
    load_assignment:
      cluster_name: checkout
      endpoints:
      - locality: {zone: z-2}
        lb_endpoints:
        - {endpoint: {hostname: a1.example.net, address: {socket_address: {address: 10.20.0.7, port_value: 8080}}}, load_balancing_weight: 3}
        - {endpoint: {address: {socket_address: {address: "2001:db8::1", port_value: 443}}}, health_status: UNHEALTHY}
  - {name: by:name, type: STRICT_DNS, load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: localhost, port_value: 81}}}}]}]}}
`

const updates = `{"version_info": "v7", "resources": [
 {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "added", "type": "STATIC", "load_assignment": {"cluster_name": "added",
  "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": "/run/a.sock"}}}}]}]}},
 {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "wrong", "connect_timeout": "-1s"}]}`

func start(t *testing.T, args ...string) *daemon.Daemon {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/cds.json", []byte(updates), 0o600); err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Config{Dir: dir, YAML: fmt.Sprintf(config, key()), Args: args})
	d.Until("the cluster of the update is there", func() bool { return strings.Contains(d.Get("/clusters"), "added::") })
	return d
}

// section returns the message of a type from a dump, like tools that read single
// sections.
func section[M proto.Message](t *testing.T, dump *adminv3.ConfigDump, m M) M {
	t.Helper()
	found := 0
	for _, c := range dump.Configs {
		if c.MessageIs(m) {
			found++
			if err := c.UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found != 1 {
		t.Fatalf("%d sections of type %s", found, m.ProtoReflect().Descriptor().FullName())
	}
	return m
}

func unpack[M proto.Message](t *testing.T, a *anypb.Any, m M) M {
	t.Helper()
	if err := a.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// read decodes an answer as a message. Unknown fields are errors.
func read(t *testing.T, d *daemon.Daemon, path string, m proto.Message) {
	t.Helper()
	body := d.Get(path)
	if strings.Contains(body, "kanarienvogel") || strings.Contains(body, "PRIVATE KEY") {
		t.Errorf("%s shows a secret: %s", path, body)
	}
	if err := protojson.Unmarshal([]byte(body), m); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
}

func TestConfigDump(t *testing.T) {
	d := start(t)
	dump := &adminv3.ConfigDump{}
	read(t, d, "/config_dump?include_eds", dump)

	boot := section(t, dump, &adminv3.BootstrapConfigDump{}).GetBootstrap()
	if boot.GetNode().GetId() != "n-17" || len(boot.GetStaticResources().GetClusters()) != 2 || boot.GetAdmin().GetAddress().GetSocketAddress() == nil {
		t.Errorf("bootstrap: %v", boot)
	}
	clusters := section(t, dump, &adminv3.ClustersConfigDump{})
	var names []string
	for _, c := range clusters.StaticClusters {
		names = append(names, unpack(t, c.Cluster, &clusterv3.Cluster{}).Name)
		if !c.LastUpdated.IsValid() {
			t.Errorf("static cluster without a time: %v", c)
		}
	}
	for _, c := range clusters.DynamicActiveClusters {
		names = append(names, c.VersionInfo+"/"+unpack(t, c.Cluster, &clusterv3.Cluster{}).Name)
	}
	for _, c := range clusters.DynamicWarmingClusters {
		names = append(names, "refused "+unpack(t, c.ErrorState.FailedConfiguration, &clusterv3.Cluster{}).Name)
	}
	if got := strings.Join(names, " "); got != "by:name checkout v7/added refused wrong" {
		t.Errorf("clusters: %s", got)
	}
	var endpoints []string
	eds := section(t, dump, &adminv3.EndpointsConfigDump{})
	collect := func(a *anypb.Any) {
		cla := unpack(t, a, &endpointv3.ClusterLoadAssignment{})
		for _, l := range cla.Endpoints {
			for _, e := range l.LbEndpoints {
				endpoints = append(endpoints, fmt.Sprintf("%s/%s/%v", cla.ClusterName, l.Locality.Zone, e.HealthStatus))
			}
		}
	}
	for _, c := range eds.StaticEndpointConfigs {
		collect(c.EndpointConfig)
	}
	for _, c := range eds.DynamicEndpointConfigs {
		collect(c.EndpointConfig)
	}
	for _, want := range []string{"checkout/z-2/HEALTHY", "checkout/z-2/UNHEALTHY", "by:name//HEALTHY", "added//HEALTHY"} {
		if !slices.Contains(endpoints, want) {
			t.Errorf("no endpoint %s in %s", want, endpoints)
		}
	}
	if l := section(t, dump, &adminv3.ListenersConfigDump{}).StaticListeners; len(l) != 1 {
		t.Errorf("listeners: %v", l)
	}
	section(t, dump, &adminv3.ScopedRoutesConfigDump{})
	section(t, dump, &adminv3.RoutesConfigDump{})
	section(t, dump, &adminv3.SecretsConfigDump{})

	read(t, d, "/config_dump?resource=static_clusters&mask=cluster.name&name_regex=check.*", dump)
	if len(dump.Configs) != 1 {
		t.Fatalf("one name: %v", dump)
	}
	entry := unpack(t, dump.Configs[0], &adminv3.ClustersConfigDump_StaticCluster{})
	if c := unpack(t, entry.Cluster, &clusterv3.Cluster{}); !proto.Equal(c, &clusterv3.Cluster{Name: "checkout"}) {
		t.Errorf("masked: %v", c)
	}
}

// TestDropIn counts the sections under the product name envoy.
func TestDropIn(t *testing.T) {
	d := start(t, "--product-name", "envoy")
	for path, want := range map[string]string{
		"/config_dump":             "Bootstrap Clusters Listeners ScopedRoutes Routes Secrets",
		"/config_dump?include_eds": "Bootstrap Clusters Endpoints Listeners ScopedRoutes Routes Secrets",
	} {
		dump := &adminv3.ConfigDump{}
		read(t, d, path, dump)
		var got []string
		for _, c := range dump.Configs {
			name := strings.TrimPrefix(c.TypeUrl, "type.googleapis.com/envoy.admin.v3.")
			got = append(got, strings.TrimSuffix(name, "ConfigDump"))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", path, s, want)
		}
	}
}

// TestClusters compares the text with the message.
func TestClusters(t *testing.T) {
	d := start(t)
	text := make(map[string]string)
	for _, line := range strings.Split(strings.TrimSuffix(d.Get("/clusters"), "\n"), "\n") {
		at := strings.LastIndex(line, "::")
		if at < 0 {
			t.Fatalf("line %q", line)
		}
		if _, twice := text[line[:at]]; twice {
			t.Errorf("two lines %q", line[:at])
		}
		text[line[:at]] = line[at+2:]
	}
	statuses := &adminv3.Clusters{}
	read(t, d, "/clusters?format=json", statuses)
	if text["version_info"] != "v7" || len(statuses.ClusterStatuses) != 3 {
		t.Fatalf("version %q, %d clusters", text["version_info"], len(statuses.ClusterStatuses))
	}
	hosts := 0
	for _, c := range statuses.ClusterStatuses {
		if got := text[c.Name+"::added_via_api"]; got != fmt.Sprint(c.AddedViaApi) {
			t.Errorf("%s: added via API %s in the text", c.Name, got)
		}
		for _, th := range c.CircuitBreakers.Thresholds {
			name := c.Name + "::" + strings.ToLower(th.Priority.String()) + "_priority::max_connections"
			if got := text[name]; got != fmt.Sprint(th.MaxConnections.Value) {
				t.Errorf("%s: %s in the text, %v", name, got, th.MaxConnections)
			}
		}
		for _, h := range c.HostStatuses {
			hosts++
			prefix := c.Name + "::" + address(h.Address) + "::"
			want := map[string]string{
				"hostname": h.Hostname, "weight": fmt.Sprint(h.Weight), "zone": h.Locality.Zone, "priority": fmt.Sprint(h.Priority), "success_rate": "-1",
			}
			for _, s := range h.Stats {
				want[s.Name] = fmt.Sprint(s.Value)
			}
			if h.HealthStatus.EdsHealthStatus == corev3.HealthStatus_HEALTHY {
				want["health_flags"], want["healthy"] = "healthy", "healthy"
			} else {
				want["health_flags"], want["healthy"] = "/failed_eds_health", "/failed_eds_health"
			}
			for name, value := range want {
				if got, ok := text[prefix+name]; !ok || got != value {
					t.Errorf("%s%s: %q in the text, %q in the message", prefix, name, got, value)
				}
			}
			if len(h.Stats) != 8 {
				t.Errorf("%s: %d stats", prefix, len(h.Stats))
			}
		}
	}
	if hosts < 4 {
		t.Errorf("%d hosts", hosts)
	}
}

func address(a *corev3.Address) string {
	if p := a.GetPipe(); p != nil {
		return p.Path
	}
	return net.JoinHostPort(a.GetSocketAddress().GetAddress(), fmt.Sprint(a.GetSocketAddress().GetPortValue()))
}

// TestCommandLine queries with curl and cuts the answer up with shell tools.
func TestCommandLine(t *testing.T) {
	need.Program(t, "curl")
	d := start(t)
	out, err := exec.Command("sh", "-c", `curl -sf "http://`+d.Admin+`/clusters" | grep "::health_flags::" | grep -v "::healthy$" | awk -F:: '{print $1}'`).CombinedOutput()
	if err != nil || string(out) != "checkout\n" {
		t.Errorf("clusters with unhealthy hosts: %q, %v", out, err)
	}
	out, err = exec.Command("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{content_type}", "http://"+d.Admin+"/config_dump?mask=no.such").CombinedOutput()
	if err != nil || string(out) != "400 text/plain" {
		t.Errorf("a wrong mask: %q, %v", out, err)
	}
}
