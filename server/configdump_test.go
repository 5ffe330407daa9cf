package server_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

// canary is a secret that must not be shown.
const canary = "kanarienvogel"

// dumpFile is a bootstrap file with a secret in every possible place.
const dumpFile = `
node: {id: n-17, cluster: edge, metadata: {build_token: kanarienvogel, team: edge}}
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  mode: full
  limits: {heavy_running: 8}
statsd:
  listeners: [{address: "udp://127.0.0.1:0", name: in}]
static_resources:
  clusters:
  - name: checkout
    connect_timeout: 0.25s
    type: static
    outlier_detection: {}
    circuit_breakers: {thresholds: [{max_connections: 2048}, {priority: HIGH, max_retries: 9}]}
    load_assignment:
      cluster_name: checkout
      policy: {overprovisioning_factor: 120}
      endpoints:
      - locality: {region: r-1, zone: z-2}
        lb_endpoints:
        - endpoint:
            address: {socket_address: {address: 10.20.0.7, port_value: 8080}}
            hostname: a1.example.net
            health_check_config: {port_value: 8081}
            additional_addresses: [{address: {socket_address: {address: "2001:db8::7", port_value: 8080}}}]
          load_balancing_weight: 3
          metadata: {filter_metadata: {proxy.lb: {canary: true}, net.example: {api_key: kanarienvogel}}}
        - endpoint: {address: {pipe: {path: /run/a.sock}}}
          health_status: DEGRADED
      - locality: {zone: z-3}
        priority: 1
        lb_endpoints:
        - endpoint: {address: {socket_address: {address: "2001:db8::1", port_value: 443}}}
          health_status: DRAINING
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: a.example.net
        common_tls_context:
          tls_certificates:
          - certificate_chain: {inline_string: CERTIFICATE}
            private_key: {inline_string: PRIVATE}
    metadata: {filter_metadata: {net.example: {password: kanarienvogel, tier: 1}}}
  - name: older
    alt_stat_name: older:one
    hosts: [{socket_address: {address: 10.20.0.9, port_value: 80}}]
`

// dumping returns a server for dumpFile that does not listen yet.
func dumping(t *testing.T) *server.Server {
	t.Helper()
	chain, key := certificate(t)
	text := strings.NewReplacer("CERTIFICATE", strconv.Quote(chain), "PRIVATE", strconv.Quote(key)).Replace(dumpFile)
	c, err := bootstrap.Load(bootstrap.Source{YAML: text}, bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers = quiet(t)
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Clusters().Close)
	return s
}

// certificate makes a certificate with its key.
func certificate(t *testing.T) (chain, key string) {
	p := certtest.Issue(t, &x509.Certificate{}, nil)
	return string(p.Chain), string(p.Key)
}

// parsed decodes a cluster in the v3 form.
func parsed(t *testing.T, text string) *decode.ParsedCluster {
	t.Helper()
	p, err := decode.NewDecoder(decode.Options{}).ClusterText("test.yaml", []byte(text), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Parts that differ between runs.
var (
	updated      = regexp.MustCompile(`"last_updated": "[^"]+"`)
	certificates = regexp.MustCompile(`"-----BEGIN CERTIFICATE-----[^"]*"`)
)

// ask returns the body of a response without the parts that differ between runs.
func ask(t *testing.T, s *server.Server, target string) []byte {
	t.Helper()
	reply := s.Admin().Request("GET", target, nil)
	if strings.Contains(string(reply.Body), "PRIVATE KEY") || strings.Contains(string(reply.Body), canary) || strings.Contains(string(reply.Body), "a2FuYXJpZW52b2dlbA") {
		t.Errorf("%s shows a secret: %s", target, reply.Body)
	}
	if reply.Status != 200 {
		t.Errorf("%s: status %d, %s", target, reply.Status, reply.Body)
	}
	body := updated.ReplaceAll(reply.Body, []byte(`"last_updated": "now"`))
	return certificates.ReplaceAll(body, []byte(`"certificate"`))
}

// addByAPI adds clusters as a control plane update does: a ready one, a replacement,
// and a target that is not ready.
func addByAPI(t *testing.T, s *server.Server) {
	t.Helper()
	m := s.Clusters()
	m.Start()
	waittest.Until(t, "the static clusters are ready", func() bool {
		select {
		case <-m.StaticReady():
			return true
		default:
			return false
		}
	})
	for version, text := range map[string]string{
		"v1": "name: added\nload_assignment: {cluster_name: added, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.1.0.1, port_value: 80}}}}]}]}",
		"v2": "name: waiting\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED",
	} {
		if changed, err := m.AddOrUpdate(parsed(t, text), version); err != nil || !changed {
			t.Fatalf("%s: %t, %v", text, changed, err)
		}
	}
	m.SetVersion("v2")
	waittest.Until(t, "the added clusters are ready", func() bool { return m.Cluster("added") != nil && m.Cluster("waiting") != nil })
}

func TestClustersOfTheServer(t *testing.T) {
	s := dumping(t)
	golden.Check(t, "clusters-static", ask(t, s, "/clusters"))
	addByAPI(t, s)
	golden.Check(t, "clusters", ask(t, s, "/clusters"))
	golden.Check(t, "clusters-json", ask(t, s, "/clusters?format=json"))
}

func TestConfigDumpOfTheServer(t *testing.T) {
	s := dumping(t)
	addByAPI(t, s)
	golden.Check(t, "config-dump", ask(t, s, "/config_dump"))
	golden.Check(t, "config-dump-eds", ask(t, s, "/config_dump?include_eds&mask=static_endpoint_configs,dynamic_endpoint_configs"))
	golden.Check(t, "config-dump-names", ask(t, s, "/config_dump?resource=dynamic_active_clusters&mask=cluster.name,version_info"))
	for _, target := range []string{"/config_dump?include_eds&name_regex=.*", "/config_dump?mask=bootstrap", "/config_dump?resource=static_clusters",
		"/config_dump?resource=static_clusters&mask=cluster.transport_socket,cluster.metadata", "/config_dump?resource=static_endpoint_configs&include_eds",
		"/init_dump", "/server_info", "/clusters"} {
		ask(t, s, target)
	}
}

// TestUntypedSecretsOnDemand disables the detection of secrets by name and look.
func TestUntypedSecretsOnDemand(t *testing.T) {
	c, err := bootstrap.Load(bootstrap.Source{YAML: `
node: {id: n, metadata: {build_token: shown}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, redact_untyped: false}
statsd: {listeners: []}`}, bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Clusters().Close()
	for _, target := range []string{"/config_dump", "/server_info"} {
		if got := string(ask(t, s, target)); !strings.Contains(got, `"build_token": "shown"`) {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// TestOriginalDestinationsAreDumpedOneByOne checks a cluster without localities.
func TestOriginalDestinationsAreDumpedOneByOne(t *testing.T) {
	s := dumping(t)
	addByAPI(t, s)
	for _, to := range []string{"10.9.0.1:80", "10.9.0.2:80"} {
		if _, err := s.Clusters().Cluster("waiting").Current().Pick(&lb.Context{Destination: config.Address{IP: netip.MustParseAddrPort(to)}}); err != nil {
			t.Fatal(err)
		}
	}
	var dump struct {
		Configs []struct {
			Config struct {
				Endpoints []struct {
					Locality  *struct{}
					Endpoints []any `json:"lb_endpoints"`
				}
			} `json:"endpoint_config"`
		}
	}
	waittest.Until(t, "both are shown", func() bool {
		dump.Configs = nil
		if err := json.Unmarshal(ask(t, s, "/config_dump?include_eds&resource=dynamic_endpoint_configs&name_regex=waiting"), &dump); err != nil {
			t.Fatal(err)
		}
		return len(dump.Configs) == 1 && len(dump.Configs[0].Config.Endpoints) == 2
	})
	for _, e := range dump.Configs[0].Config.Endpoints {
		if e.Locality != nil || len(e.Endpoints) != 1 {
			t.Errorf("%+v", e)
		}
	}
}

// TestWarmingClusters checks that a cluster that waits for its hosts is listed as
// warming.
func TestWarmingClusters(t *testing.T) {
	s := dumping(t)
	addByAPI(t, s)
	// The host accepts connections and never responds, so its health check stays
	// pending.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port, err := net.SplitHostPort(silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text := `
name: added
health_checks: [{timeout: 600s, interval: 600s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]
load_assignment: {cluster_name: added, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ` + port + `}}}}]}]}`
	if _, err := s.Clusters().AddOrUpdate(parsed(t, text), "v3"); err != nil {
		t.Fatal(err)
	}
	var dump struct {
		Configs []struct {
			Active []struct {
				Version string `json:"version_info"`
			} `json:"dynamic_active_clusters"`
			Warming []struct {
				Version string `json:"version_info"`
			} `json:"dynamic_warming_clusters"`
		}
	}
	if err := json.Unmarshal(ask(t, s, "/config_dump?mask=dynamic_active_clusters,dynamic_warming_clusters&name_regex=added"), &dump); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(dump.Configs); got != "[{[{v1}] [{v3}]}]" {
		t.Errorf("active and warming versions: %s", got)
	}
	if strings.Contains(string(ask(t, s, "/clusters")), "127.0.0.1") {
		t.Error("a warming cluster is among the clusters")
	}
}

// TestRefusedClusters watches a file of clusters, some of which become invalid, and
// checks the versions in use and the errors.
func TestRefusedClusters(t *testing.T) {
	dir := t.TempDir()
	put := func(version, clusters string) {
		next := filepath.Join(dir, ".next")
		if err := os.WriteFile(next, []byte(`{"version_info": "`+version+`", "resources": [`+clusters+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "cds.json")); err != nil {
			t.Fatal(err)
		}
	}
	const kind = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": `
	put("v1", kind+`"good"}, `+kind+`"changing"}`)
	c, err := bootstrap.Load(bootstrap.Source{YAML: `
node: {id: n, cluster: c}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources: {cds_config: {path: ` + dir + `/cds.json}}`}, bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	names := func() string {
		var dump struct {
			Configs []struct {
				VersionInfo string `json:"version_info"`
				Cluster     struct{ Name string }
				ErrorState  struct {
					Version string `json:"version_info"`
					Details string
					Config  struct{ Name string } `json:"failed_configuration"`
				} `json:"error_state"`
			}
		}
		var out []string
		for _, resource := range []string{"dynamic_active_clusters", "dynamic_warming_clusters"} {
			dump.Configs = nil
			if err := json.Unmarshal(ask(t, s.Server, "/config_dump?resource="+resource), &dump); err != nil {
				t.Fatal(err)
			}
			for _, c := range dump.Configs {
				out = append(out, fmt.Sprintf("%s@%s(%s@%s %t)", c.Cluster.Name, c.VersionInfo, c.ErrorState.Config.Name, c.ErrorState.Version, c.ErrorState.Details != ""))
			}
			out = append(out, "|")
		}
		return strings.Join(out, " ")
	}
	wait := func(want string) {
		t.Helper()
		waittest.Until(t, want, func() bool { return names() == want })
	}
	wait("changing@v1(@ false) good@v1(@ false) | |")
	put("v2", kind+`"good", "connect_timeout": "3s"}, `+kind+`"changing", "connect_timeout": "-1s"}, `+kind+`"never", "connect_timeout": "-1s"}`)
	wait("changing@v1(changing@v2 true) good@v2(@ false) | @(never@v2 true) |")
	if reply := string(ask(t, s.Server, "/clusters")); !strings.Contains(reply, "version_info::v") || strings.Contains(reply, "never::") {
		t.Errorf("clusters: %s", reply)
	}
	put("v3", kind+`"changing"}`)
	wait("changing@v1(@ false) | |")
}

// TestListenersAreDumped checks the addresses of the StatsD input.
func TestListenersAreDumped(t *testing.T) {
	cfg := server.Config{Admin: anyPort(), StatsD: statsdOn("udp://127.0.0.1:0", "tcp://127.0.0.1:0")}
	envoyapi.Add(&cfg, envoyapi.Config{})
	s := start(t, cfg)
	var dump struct {
		Configs []struct {
			Listener struct {
				Direction string `json:"traffic_direction"`
				Address   struct {
					Socket struct {
						Protocol string
						Port     uint16 `json:"port_value"`
					} `json:"socket_address"`
				}
			}
		}
	}
	if err := json.Unmarshal(ask(t, s.Server, "/config_dump?resource=static_listeners"), &dump); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range dump.Configs {
		a := c.Listener.Address.Socket
		got = append(got, fmt.Sprint(c.Listener.Direction, " ", a.Protocol, " ", a.Port != 0))
	}
	if s := strings.Join(got, ", "); s != "INBOUND UDP true, INBOUND  true" {
		t.Errorf("listeners: %s", s)
	}
}

// TestOwnSections adds and removes a section as a proxy does.
func TestOwnSections(t *testing.T) {
	s := dumping(t)
	dump, ok := s.Config().Admin.Sources.ConfigDump.(*configdump.Dump)
	if !ok {
		t.Fatalf("the source is a %T", s.Config().Admin.Sources.ConfigDump)
	}
	dump.Set("listeners", func() configdump.Section {
		return configdump.Listeners([]listeners.Listener{{Name: "mine"}}, time.Time{})
	})
	dump.Set("routes", nil)
	if got := string(ask(t, s, "/config_dump?mask=static_listeners")); !strings.Contains(got, `"name": "mine"`) {
		t.Errorf("listeners: %s", got)
	}
	if got := string(ask(t, s, "/config_dump")); strings.Contains(got, "v3.RoutesConfigDump") || !strings.Contains(got, "v3.SecretsConfigDump") {
		t.Errorf("sections: %s", got)
	}
}

// TestPicksGoOnWhileClustersAreShown stops reading in the middle of a response, and
// then picks hosts and changes clusters. Nothing waits for the reader, and the
// response shows the clusters at its start.
func TestPicksGoOnWhileClustersAreShown(t *testing.T) {
	const clusters, hosts = 400, 20
	s := start(t, server.Config{Admin: admin.Config{Address: "127.0.0.1:0", Limits: admin.Limits{StreamStall: time.Hour, ResponseTime: time.Hour}}})
	m := s.Clusters()
	text := func(name string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "name: %s\nload_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [", name, name)
		for i := range hosts {
			fmt.Fprintf(&b, "{endpoint: {address: {socket_address: {address: 10.0.0.%d, port_value: 80}}}},", i+1)
		}
		return b.String() + "]}]}"
	}
	for i := range clusters {
		if _, err := m.AddOrUpdate(parsed(t, text(fmt.Sprintf("cluster_%04d", i))), "v1"); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the clusters are ready", func() bool { h := m.Cluster("cluster_0399"); return h != nil && len(h.Current().Sets()) > 0 })
	for round, target := range []string{"/clusters", "/clusters?format=json"} {
		conn, err := net.Dial("tcp", s.Admin().Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			t.Fatal("not a TCP connection")
		}
		if err := tcp.SetReadBuffer(16 << 10); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target)
		beginning := make([]byte, 1000)
		if _, err := io.ReadFull(conn, beginning); err != nil {
			t.Fatal(err)
		}

		added, done := fmt.Sprintf("late_%d", round), make(chan error, 1)
		go func() {
			_, err := m.Cluster("cluster_0001").Current().Pick(nil)
			_, err2 := m.AddOrUpdate(parsed(t, text(added)), "v2")
			if !m.Remove(fmt.Sprintf("cluster_%04d", round)) {
				err = errors.New("there is no such cluster")
			}
			done <- errors.Join(err, err2)
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a pick or a change waits for the reader of the clusters")
		}

		if err := tcp.SetReadBuffer(4 << 20); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(conn)
		if err != nil || len(rest) < 5<<20 {
			t.Fatalf("%s: %d bytes, %v", target, len(rest), err)
		}
		answer := string(rest)
		if !strings.HasSuffix(answer, "0\r\n\r\n") || !strings.Contains(answer, "cluster_0399") || strings.Contains(answer, added) {
			t.Errorf("%s: not all clusters, or %s, are in the answer that ends with %q", target, added, answer[len(answer)-200:])
		}
	}
}
