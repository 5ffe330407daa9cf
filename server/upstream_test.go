package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	hosts "github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
)

// fromText returns the configuration for a bootstrap text, with an admin port.
func fromText(t testing.TB, text string) server.Config {
	t.Helper()
	b, err := bootstrap.Parse("boot.yaml", []byte("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+text), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := b.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers = quiet(t)
	return cfg
}

// serveOK answers every request with 200 once release is closed.
func serveOK(t *testing.T, release <-chan struct{}) *net.TCPAddr {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr)
}

func host(at *net.TCPAddr) string {
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %d}}", at.IP, at.Port)
}

// run runs a server without waiting until it is live.
func run(t testing.TB, cfg server.Config) *running {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return &running{Server: s}
}

// TestAwaitedControlPlanes uses clusters and layers whose control planes do not
// respond. The server lists its init targets until it gives up.
func TestAwaitedControlPlanes(t *testing.T) {
	entry := func(name, target string) string {
		return "\n  {\n   \"name\": \"init manager " + name + "\",\n   \"target_names\": [\n    \"target " + target + "\"\n   ]\n  }"
	}
	dump := func(entries ...string) string {
		return "{\n \"unready_targets_dumps\": [" + strings.Join(entries, ",") + "\n ]\n}\n"
	}
	clusters, layers := entry("Clusters", "CDS"), entry("Runtime", "RTDS")
	for _, tt := range []struct {
		cds, rtds string // when each is given up; 0s: never
		masks     map[string]string
	}{
		{"0s", "0s", map[string]string{"": dump(clusters, layers), "cluster": dump(clusters), "runtime": dump(layers), "listener": "{}\n"}},
		{"0.01s", "0s", map[string]string{"": dump(layers)}},
		{"0s", "0.01s", map[string]string{"": dump(clusters)}},
	} {
		const source = "initial_fetch_timeout: %s, api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: plane}}]}"
		r := run(t, fromText(t, fmt.Sprintf(`static_resources: {clusters: [{name: plane, hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]}]}
dynamic_resources: {cds_config: {`+source+`}}
layered_runtime: {layers: [{name: remote, rtds_layer: {name: flags, rtds_config: {`+source+`}}}]}
`, tt.cds, tt.rtds)))
		for mask, want := range tt.masks {
			waittest.Until(t, "the dump of "+mask, func() bool { return r.get(t, "/init_dump?mask="+mask) == want })
		}
		if got := r.get(t, "/ready"); got != "PRE_INITIALIZING\n" {
			t.Errorf("/ready says %q", got)
		}
	}
	r := run(t, fromText(t, "layered_runtime: {layers: [{name: remote, rtds_layer: {name: flags, rtds_config: {path_config_source: {path: /nowhere/at/all}}}}]}\n"))
	waittest.Until(t, "the server is live", func() bool { return r.get(t, "/ready") == "LIVE\n" })
	if got := r.get(t, "/init_dump"); got != "{}\n" {
		t.Errorf("all is there: %s", got)
	}
}

// TestStateGaugeAgreesWithReady: before the first flush, too, the gauge server.state has the
// state that /ready answers with.
func TestStateGaugeAgreesWithReady(t *testing.T) {
	const noFlush = "stats_flush_interval: 299s\n"
	flags := t.TempDir()
	if err := os.WriteFile(filepath.Join(flags, "drain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ config, ready, gauge string }{
		{noFlush + `static_resources: {clusters: [{name: plane, hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]}]}
dynamic_resources: {cds_config: {initial_fetch_timeout: 0s, api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: plane}}]}}}
`, "PRE_INITIALIZING\n", "server.state: 2\n"},
		{noFlush, "LIVE\n", "server.state: 0\n"},
		{noFlush + "flags_path: " + flags + "\n", "DRAINING\n", "server.state: 1\n"},
	} {
		r := run(t, fromText(t, tt.config))
		waittest.Until(t, "/ready is "+tt.ready, func() bool { return r.get(t, "/ready") == tt.ready })
		if got := r.get(t, "/stats?filter=^server.state$"); got != tt.gauge {
			t.Errorf("/ready says %q and the gauge %q", tt.ready, got)
		}
	}
}

// TestWaitsForClusters delays the first health check. Until it completes, the server
// is not live and does not serve its listeners.
func TestWaitsForClusters(t *testing.T) {
	release := make(chan struct{})
	at := serveOK(t, release)
	cfg := fromText(t, fmt.Sprintf(`static_resources:
  clusters:
  - name: slow
    hosts: [%s]
    health_checks: [{timeout: 60s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]
  - name: "fast"
    hosts: [%s]
`, host(at), host(at)))
	served := make(chan struct{})
	cfg.Listeners = []server.Listener{{
		Name: "web", Address: "127.0.0.1:0", Direction: listeners.Inbound,
		Serve: func(ctx context.Context, _ net.Listener) error {
			close(served)
			<-ctx.Done()
			return nil
		},
	}}
	told := make(chan string, 10)
	cfg.Clusters.Hooks.ClusterReady = func(c *upstream.Cluster) { told <- "ready " + c.Config().Name }
	cfg.Clusters.Hooks.HealthChanged = func(c *upstream.Cluster, _ *hosts.Host) { told <- "health " + c.Config().Name }
	r := run(t, cfg)
	const dump = "{\n \"unready_targets_dumps\": [\n  {\n   \"name\": \"init manager Cluster slow\",\n   \"target_names\": [\n    \"target slow health check\"\n   ]\n  }\n ]\n}\n"
	waittest.Until(t, "one cluster is left", func() bool { return r.get(t, "/init_dump") == dump })
	for _, mask := range []string{"cluster", "listener,cluster"} {
		if got := r.get(t, "/init_dump?mask="+mask); got != dump {
			t.Errorf("%s: %s", mask, got)
		}
	}
	if got := r.get(t, "/init_dump?mask=listener"); got != "{}\n" {
		t.Errorf("listeners: %s", got)
	}
	if reply := r.Admin().Request("GET", "/ready", nil); reply.Status != 503 || string(reply.Body) != "PRE_INITIALIZING\n" {
		t.Errorf("/ready says %d %q", reply.Status, reply.Body)
	}
	select {
	case <-served:
		t.Error("a listener is served before the clusters are ready")
	case <-r.Initialized():
		t.Error("initialized before the clusters are ready")
	default:
	}
	close(release)
	waittest.Until(t, "the server is live", func() bool { return r.get(t, "/ready") == "LIVE\n" })
	events := map[string]bool{}
	for range 3 {
		select {
		case e := <-told:
			events[e] = true
		case <-time.After(30 * time.Second):
			t.Fatalf("the program was told of %v only", events)
		}
	}
	if !events["ready fast"] || !events["ready slow"] || !events["health slow"] {
		t.Errorf("the program was told of %v", events)
	}
	<-served
	<-r.Initialized()
	if got := r.get(t, "/init_dump"); got != "{}\n" {
		t.Errorf("all is ready: %s", got)
	}
	for name, want := range map[string]string{
		"cluster_manager.cluster_added": "2", "cluster_manager.active_clusters": "2", "cluster.slow.health_check.success": "1",
		"cluster.slow.membership_healthy": "1", "cluster.fast.membership_total": "1",
	} {
		if got := strings.TrimSpace(r.get(t, "/stats?filter=^"+name+"$")); got != name+": "+want {
			t.Errorf("got %q, want %s: %s", got, name, want)
		}
	}
}

// TestLayersOfOneName has two layers with resources of the same name from different
// sources.
func TestLayersOfOneName(t *testing.T) {
	dir := t.TempDir()
	text := "layered_runtime:\n  layers:\n"
	for _, name := range []string{"one", "two"} {
		path := filepath.Join(dir, name+".yaml")
		resource := "resources: [{'@type': type.googleapis.com/envoy.service.runtime.v3.Runtime, name: flags, layer: {" + name + ": true}}]\n"
		if err := os.WriteFile(path, []byte(resource), 0o600); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("  - {name: %s, rtds_layer: {name: flags, rtds_config: {path_config_source: {path: %q}}}}\n", name, path)
	}
	r := start(t, fromText(t, text))
	got := strings.Join(strings.Fields(r.get(t, "/runtime")), "")
	for _, want := range []string{`"one":{"layer_values":["true",""],"final_value":"true"}`, `"two":{"layer_values":["","true"],"final_value":"true"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestRuntimeReachesClusters changes cluster settings while the server runs.
func TestRuntimeReachesClusters(t *testing.T) {
	cfg := fromText(t, `node: {id: n, cluster: c, locality: {region: r, zone: here}}
stats_sinks: [{name: envoy.stat_sinks.hystrix}]
static_resources:
  clusters:
  - name: backend
    alt_stat_name: back:end
    load_assignment:
      cluster_name: backend
      endpoints: [{locality: {zone: there}, lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]
`)
	r := start(t, cfg)
	c := r.Clusters().Cluster("backend").Current()
	pending := &c.Breakers(upstream.DefaultPriority).Pending
	if pending.Max() != 1024 {
		t.Fatalf("maximum %d", pending.Max())
	}
	for _, n := range []uint64{7, 9007199254740991, 0} { // also the one that stands for none
		if reply := r.post(t, fmt.Sprintf("/runtime_modify?circuit_breakers.backend.default.max_pending_requests=%d", n)); reply.Status != 200 {
			t.Fatalf("%d %s", reply.Status, reply.Body)
		}
		if pending.Max() != n {
			t.Errorf("maximum %d, want %d", pending.Max(), n)
		}
	}
	r.post(t, "/runtime_modify?circuit_breakers.backend.default.max_pending_requests=")
	if pending.Max() != 1024 || c.MaintenanceMode() {
		t.Errorf("maximum %d after the value was removed, maintenance %t", pending.Max(), c.MaintenanceMode())
	}
	r.post(t, "/runtime_modify?upstream.maintenance_mode.backend=100")
	if !c.MaintenanceMode() {
		t.Error("not under maintenance")
	}

	h, err := c.Pick(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.RequestStarted(h)
	c.RequestFinished(h, upstream.RequestEnd{Status: 204})
	const zone = "cluster.back_end.zone.here.there.upstream_rq_204"
	if got := r.get(t, "/stats?filter=^"+zone+"$"); got != zone+": 1\n" {
		t.Errorf("own zone: %q", got)
	}
}

// TestCircuitStreamShowsClusters checks that the stream has the name of a cluster and its
// limit.
func TestCircuitStreamShowsClusters(t *testing.T) {
	cfg := fromText(t, `stats_sinks: [{name: envoy.stat_sinks.hystrix}]
stats_flush_interval: 0.05s
static_resources:
  clusters:
  - name: also
    alt_stat_name: one
    hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]
    circuit_breakers: {thresholds: [{max_pending_requests: 11}]}
  - name: backend
    alt_stat_name: back:end
    hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]
    circuit_breakers: {thresholds: [{max_pending_requests: 33}]}
  - name: one
    alt_stat_name: two
    hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]
    circuit_breakers: {thresholds: [{max_pending_requests: 22}]}
  - name: other
    hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]
`)
	r := start(t, cfg)
	for name, want := range map[string]string{"backend": `"propertyValue_queueSizeRejectionThreshold":33,`, "also": `"propertyValue_queueSizeRejectionThreshold":11,`, "one": `"propertyValue_queueSizeRejectionThreshold":22,`, "other": `"propertyValue_queueSizeRejectionThreshold":1024,`} {
		events := listen(t, r, "/circuit_event_stream", "")
		for {
			event := strings.ReplaceAll(strings.ReplaceAll(events.event(), " ", ""), "\n", "")
			if strings.Contains(event, `"HystrixThreadPool"`) && strings.Contains(event, `"name":"`+name+`"`) {
				if !strings.Contains(event, want) {
					t.Errorf("%s: %s, want %s", name, event, want)
				}
				break
			}
		}
	}
}

// TestClustersInCode adds a cluster without a file.
func TestClustersInCode(t *testing.T) {
	var removed []string
	cfg := server.Config{Admin: anyPort()}
	cfg.Clusters.Hooks.ClusterRemoved = func(c *upstream.Cluster) { removed = append(removed, c.Config().Name) }
	r := start(t, cfg)
	p, err := decode.NewDecoder(decode.Options{}).ClusterText("c.yaml", []byte(
		"name: mine\nload_assignment: {cluster_name: mine, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.1.2.3, port_value: 80}}}}]}]}"), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := r.Clusters().AddOrUpdate(p, "1"); !changed || err != nil {
		t.Fatal(changed, err)
	}
	waittest.Until(t, "the cluster is there", func() bool { return r.Clusters().Cluster("mine") != nil })
	h, err := r.Clusters().Cluster("mine").Current().Pick(nil)
	if err != nil || h.AddressText() != "10.1.2.3:80" {
		t.Errorf("picked %v, %v", h, err)
	}
	if !r.Clusters().Remove("mine") || len(removed) != 1 || removed[0] != "mine" {
		t.Errorf("told of %v", removed)
	}
}

func TestClustersThatCannotBe(t *testing.T) {
	cfg := fromText(t, "static_resources:\n  clusters:\n  - {name: a, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n  - {name: b, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n")
	_, err := server.New(cfg)
	if err == nil || !strings.Contains(err.Error(), `boot.yaml:4:6: upstream: cluster "a"`) || !strings.Contains(err.Error(), `boot.yaml:5:6: upstream: cluster "b"`) {
		t.Errorf("without a stream: %v", err)
	}
}

// TestVersionOfClustersNotLoaded checks that a set of clusters that an API updates is not
// called static before its first update.
func TestVersionOfClustersNotLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	r := start(t, fromText(t, "node: {id: n, cluster: c}\ndynamic_resources: {cds_config: {path: "+path+", initial_fetch_timeout: 0.001s}}\n"))
	if got := r.get(t, "/clusters"); got != "version_info::\n" {
		t.Errorf("before the first update: %q", got)
	}
	if got := start(t, server.Config{Admin: anyPort()}).get(t, "/clusters"); got != "version_info::static\n" {
		t.Errorf("without an API: %q", got)
	}
}

// TestFileOfClusters watches a file of clusters.
func TestFileOfClusters(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "clusters.yaml")
	publish := func(version string, port int) {
		t.Helper()
		text := fmt.Sprintf(`version_info: %q
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}
`, version, port)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	publish("1", 81)
	r := start(t, fromText(t, "node: {id: n, cluster: c}\ndynamic_resources: {cds_config: {path: "+path+"}}\n"))
	shows := func(version string, port int) bool {
		text := r.get(t, "/clusters")
		return strings.HasPrefix(text, "version_info::"+version+"\n") && strings.Contains(text, fmt.Sprintf("backend::127.0.0.1:%d::rq_total::0\n", port))
	}
	if !shows("1", 81) {
		t.Errorf("live without the clusters of the file:\n%s", r.get(t, "/clusters"))
	}
	publish("2", 82)
	waittest.Until(t, "the change is seen", func() bool { return shows("2", 82) })
}

func TestListenersOfTheProgram(t *testing.T) {
	echo := func(ctx context.Context, l net.Listener) error {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				<-ctx.Done()
				return nil
			}
			if err != nil {
				return err
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}
	r := start(t, server.Config{Admin: anyPort(), Listeners: []server.Listener{{Name: "echo", Address: "127.0.0.1:0", Direction: listeners.Inbound, Serve: echo}}})
	name, at, _ := strings.Cut(strings.TrimSpace(r.get(t, "/listeners")), "::")
	if name != "echo" {
		t.Fatalf("listeners: %s", r.get(t, "/listeners"))
	}
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func() {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
	}
	say()
	stats := func() string {
		r.Flusher().FlushNow()
		return r.get(t, "/stats?filter=^(listener\\.127.*|server.total_connections)$")
	}
	prefix := "listener." + strings.ReplaceAll(at, ":", "_")
	if got, want := stats(), prefix+".downstream_cx_active: 1\n"+prefix+".downstream_cx_total: 1\nserver.total_connections: 1\n"+prefix+".downstream_cx_length_ms: No recorded values\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.post(t, "/drain_listeners")
	if c, err := net.Dial("tcp", at); err == nil {
		_ = c.Close()
		t.Error("accepts after a drain")
	}
	say() // goes on
	_ = c.Close()
	waittest.Until(t, "the end is counted", func() bool { return strings.Contains(stats(), "server.total_connections: 0\n") })
	waittest.Until(t, "the length is shown", func() bool { return strings.Contains(stats(), prefix+".downstream_cx_length_ms: P0(") })
}

func TestListenersThatCannotBe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free := closedport.Reserve(t).String()
	serve := func(context.Context, net.Listener) error { return nil }
	for name, second := range map[string]server.Listener{
		"taken": {Name: "b", Address: taken.Addr().String(), Serve: serve},
		"twice": {Name: "a", Address: "127.0.0.1:0", Serve: serve},
	} {
		s, err := server.New(server.Config{Loggers: quiet(t), Listeners: []server.Listener{{Name: "a", Address: free, Serve: serve}, second}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err == nil || !strings.Contains(err.Error(), `"`+second.Name+`"`) {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := net.Dial("tcp", free); err == nil {
			_ = c.Close()
			t.Errorf("%s: the first listener still listens", name)
		}
	}
}

func TestListenerThatFailsEndsTheServer(t *testing.T) {
	broken := errors.New("broken")
	s, err := server.New(server.Config{Loggers: quiet(t), Listeners: []server.Listener{{
		Name: "a", Address: "127.0.0.1:0", Serve: func(context.Context, net.Listener) error { return broken },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Run(ctx); !errors.Is(err, broken) || !strings.Contains(err.Error(), `listener "a"`) {
		t.Errorf("error %v", err)
	}
}

// TestSuccessorIsReadyFirst starts a successor whose clusters are not ready. Until
// they are, the predecessor serves over the same socket.
func TestSuccessorIsReadyFirst(t *testing.T) {
	says := func(name string) func(context.Context, net.Listener) error {
		return func(ctx context.Context, l net.Listener) error {
			for {
				c, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					<-ctx.Done()
					return nil
				}
				if err != nil {
					return err
				}
				_, _ = io.WriteString(c, name)
				_ = c.Close()
			}
		}
	}
	line := newLine(t)
	port := func(name string) []server.Listener {
		return []server.Listener{
			{Name: "says", Address: "127.0.0.1:0", Serve: says(name)},
			{Name: "only " + name, Address: "127.0.0.1:0", Serve: says(name)},
		}
	}
	first := line.config(0, time.Minute)
	first.Listeners = port("first")
	parent := start(t, first)
	address := ""
	for _, l := range parent.Listeners().List() {
		if l.Name == "says" {
			address = l.Addresses[0].String()
		}
	}
	ask := func() string {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		return string(b)
	}

	release := make(chan struct{})
	second := line.config(1, time.Minute)
	second.Listeners = port("second")
	second.Clusters = fromText(t, "static_resources:\n  clusters:\n  - name: slow\n    hosts: ["+host(serveOK(t, release))+
		"]\n    health_checks: [{timeout: 60s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]\n").Clusters
	second.Loggers = quiet(t)
	child := run(t, second)
	waittest.Until(t, "the child waits", func() bool { return child.get(t, "/ready") == "PRE_INITIALIZING\n" })
	for range 20 {
		if got := ask(); got != "first" {
			t.Errorf("before: %q", got)
		}
	}
	close(release)
	waittest.Until(t, "the parent drains", func() bool { return parent.Lifecycle().Draining(true) })
	waittest.Until(t, "the child serves", func() bool { return ask() == "second" })
	waittest.Until(t, "the parent has left", func() bool {
		for range 20 {
			if ask() != "second" {
				return false
			}
		}
		return true
	})
}

// TestProgramRefusesClusters checks that the program can reject clusters.
func TestProgramRefusesClusters(t *testing.T) {
	text := "static_resources:\n  clusters:\n  - {name: c, filters: [{name: f}]}\n"
	_, err := server.New(fromText(t, text))
	var refused *upstream.Unsupported
	if !errors.As(err, &refused) || refused.Field != "filters" {
		t.Errorf("error %v, want filters to be refused", err)
	}
	cfg := fromText(t, text)
	cfg.Clusters.Supported = []string{"filters"}
	if _, err := server.New(cfg); err != nil {
		t.Errorf("refused though the program has filters: %v", err)
	}
	cfg.Clusters.Accept = func(*config.Cluster) error { return errors.New("not that one") }
	if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), `:4:6: upstream: cluster "c": not that one`) {
		t.Errorf("error %v", err)
	}
}

// TestEventsOfHostsAreLogged lets a host fail and recover while both event logs are
// rotated.
func TestEventsOfHostsAreLogged(t *testing.T) {
	var healthy atomic.Bool
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	checks, outliers := filepath.Join(dir, "checks.log"), filepath.Join(dir, "outliers.log")
	at := backend.Listener.Addr().(*net.TCPAddr)
	cfg := fromText(t, fmt.Sprintf(`cluster_manager: {outlier_detection: {event_log_path: %s}}
static_resources:
  clusters:
  - name: backend
    hosts: [%s]
    outlier_detection: {consecutive_5xx: 1, max_ejection_percent: 100, interval: 3600s}
    health_checks: [{timeout: 30s, interval: 0.02s, no_traffic_interval: 0.02s, unhealthy_threshold: 1, healthy_threshold: 1, event_log_path: %s, http_health_check: {path: /}}]
`, outliers, host(at), checks))
	ejected := make(chan bool, 10)
	cfg.Clusters.Hooks.OutlierEvent = func(_ *upstream.Cluster, e outlier.Event) { ejected <- e.Eject }
	r := start(t, cfg)
	sees := func(file, event string) {
		t.Helper()
		waittest.Until(t, file+" has "+event, func() bool {
			b, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(b), `"cluster_name":"backend",`) && strings.Contains(string(b), event)
		})
	}
	one := r.Clusters().Cluster("backend").Current().Sets()[0].Hosts[0]
	sees(checks, `"health_check_failure_event":{`)
	one.ReportCode(500)
	sees(outliers, `"upstream_url":"`+at.String()+`","action":"EJECT","num_ejections":1,"enforced":true,"eject_consecutive_event":{}`)
	if !<-ejected {
		t.Error("the program does not hear of the ejection")
	}

	for _, file := range []string{checks, outliers} {
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
	}
	if reply := r.post(t, "/reopen_logs"); reply.Status != 200 {
		t.Fatalf("%d %s", reply.Status, reply.Body)
	}
	if b, err := os.ReadFile(outliers); err != nil || len(b) != 0 {
		t.Errorf("after the rotation: %q, %v", b, err)
	}
	healthy.Store(true)
	sees(checks, `"add_healthy_event":{`)
	if b, err := os.ReadFile(checks + ".1"); err != nil || !strings.Contains(string(b), `"health_check_failure_event":{`) || strings.Contains(string(b), "add_healthy_event") {
		t.Errorf("before the rotation: %q, %v", b, err)
	}
}

// TestStatsOfHosts checks that a cluster with per-host stats enabled shows them among
// the stats, and that no warning calls the field unsupported.
func TestStatsOfHosts(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	const hosts = "load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 7}}}}]}]}"
	cfg := fromText(t, fmt.Sprintf(`static_resources:
  clusters:
  - {name: "a:b", alt_stat_name: "shown:so", %[1]s, track_cluster_stats: {per_endpoint_stats: true}}
  - {name: quiet, %[1]s}
`, hosts))
	loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Path: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers = loggers
	r := start(t, cfg)
	r.Clusters().Cluster("a:b").Current().Sets()[0].Hosts[0].Stats.RqTotal.Inc()
	want := `cluster.shown_so.endpoint.127.0.0.1_7.cx_connect_fail: 0
cluster.shown_so.endpoint.127.0.0.1_7.cx_total: 0
cluster.shown_so.endpoint.127.0.0.1_7.rq_error: 0
cluster.shown_so.endpoint.127.0.0.1_7.rq_success: 0
cluster.shown_so.endpoint.127.0.0.1_7.rq_timeout: 0
cluster.shown_so.endpoint.127.0.0.1_7.rq_total: 1
cluster.shown_so.endpoint.127.0.0.1_7.cx_active: 0
cluster.shown_so.endpoint.127.0.0.1_7.healthy: 1
cluster.shown_so.endpoint.127.0.0.1_7.rq_active: 0
`
	if got := r.get(t, "/stats?filter=endpoint"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b, err := os.ReadFile(log); err != nil || strings.Contains(string(b), "per_endpoint_stats") {
		t.Errorf("%v, or the log warns:\n%s", err, b)
	}
}

// TestDeprecatedOptions counts uses of deprecated fields, and logs the first use of
// each unless disabled.
func TestDeprecatedOptions(t *testing.T) {
	for _, skip := range []bool{false, true} {
		log := filepath.Join(t.TempDir(), "log")
		cfg := fromText(t, `static_resources:
  clusters:
  - {name: a, hosts: [{socket_address: {address: 127.0.0.1, port_value: 7}}]}
  - {name: b, hosts: [{socket_address: {address: 127.0.0.1, port_value: 7}}], tls_context: {}}
  - {name: c, load_assignment: {cluster_name: c}}
`)
		loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Path: log})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Loggers, cfg.CommandLine.SkipDeprecatedLogs = loggers, skip
		r := start(t, cfg)
		want := "runtime.deprecated_feature_seen_since_process_start: 3\nruntime.deprecated_feature_use: 3\n"
		if got := r.get(t, "/stats?filter=deprecated"); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, option := range []string{"option=envoy.api.v2.Cluster.hosts cluster=a", "option=envoy.api.v2.Cluster.tls_context cluster=b"} {
			want := 1
			if skip {
				want = 0
			}
			if n := strings.Count(string(b), option); n != want || strings.Count(string(b), "Cluster.hosts") != want {
				t.Errorf("skip %t: %q is logged %d times:\n%s", skip, option, n, b)
			}
		}
	}
}
