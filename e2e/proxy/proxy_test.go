package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

const nodeID = "edge-1"

// plane is a control plane with the aggregated stream.
type plane struct {
	t       *testing.T
	address string
	cache   cache.SnapshotCache
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{t: t, address: l.Addr().String(), cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, p.cache, nil))
	var running sync.WaitGroup
	running.Go(func() { _ = g.Serve(l) }) // ends by Stop
	t.Cleanup(func() {
		cancel()
		g.Stop()
		running.Wait()
	})
	return p
}

// publish publishes the cluster "backend" with a host, or no cluster if host is
// nil.
func (p *plane) publish(version string, timeout time.Duration, host net.Addr) {
	p.t.Helper()
	all := map[resource.Type][]types.Resource{}
	if host != nil {
		at := host.(*net.TCPAddr)
		all[resource.ClusterType] = []types.Resource{&clusterv3.Cluster{
			Name: "backend", ConnectTimeout: durationpb.New(timeout),
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3,
			}},
		}}
		all[resource.EndpointType] = []types.Resource{&endpointv3.ClusterLoadAssignment{
			ClusterName: "backend", Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
					Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
						Address: at.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port)},
					}}},
				}},
			}}}},
		}}
	}
	s, err := cache.NewSnapshot(version, all)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(context.Background(), nodeID, s); err != nil {
		p.t.Fatal(err)
	}
}

// backend is a host that counts requests and answers with its name.
type backend struct {
	address  net.Addr
	requests atomic.Int64
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: l.Addr()}
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.requests.Add(1)
		fmt.Fprint(w, name)
	})}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) }) // ends by Close
	t.Cleanup(func() {
		_ = s.Close()
		running.Wait()
	})
	return b
}

// proxy is the process.
type proxy struct {
	t          *testing.T
	admin, web string
	log        bytes.Buffer
}

func startProxy(t *testing.T, control string) *proxy {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "reverse-proxy")
	build := exec.Command("go", "build", "-o", bin, "./examples/reverse-proxy")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ip, port, _ := net.SplitHostPort(control)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	boot := write("boot.yaml", fmt.Sprintf(`
node: {id: %s, cluster: edge}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {ads: {}, resource_api_version: V3}
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: control}}]}
static_resources:
  clusters:
  - name: control
    http2_protocol_options: {}
    load_assignment:
      cluster_name: control
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, nodeID, ip, port))
	routes := write("listeners.json", `[{"name": "web", "address": "127.0.0.1:0", "cluster": "backend", "timeout": "60s"}]`)
	at := filepath.Join(dir, "address")

	p := &proxy{t: t}
	cmd := exec.Command(bin, "--config", boot, "--listeners", routes, "--admin-address-path", at)
	cmd.Stderr = &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-exited; err != nil {
			t.Errorf("the proxy ends with %v", err)
		}
		if t.Failed() {
			t.Logf("the proxy says\n%s", p.log.String())
		}
	})
	p.eventually("live", func() bool {
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the proxy ends at once: %v", err)
		default:
		}
		b, err := os.ReadFile(at)
		p.admin = "http://" + string(b)
		return err == nil && len(b) > 0 && p.get(p.admin+"/ready") == "200 LIVE\n"
	})
	_, address, _ := strings.Cut(strings.TrimSpace(p.get(p.admin+"/listeners")), "::")
	p.web = "http://" + address + "/"
	return p
}

func (p *proxy) eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not within 60 s: %s", what)
		}
	}
}

// get returns status and body of an answer.
func (p *proxy) get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

// stat returns the value of a stat as text.
func (p *proxy) stat(name string) string {
	_, value, _ := strings.Cut(strings.TrimSpace(p.get(p.admin+"/stats?filter=^"+strings.ReplaceAll(name, ".", "\\.")+"$")), ": ")
	return value
}

func (p *proxy) want(stats map[string]string) {
	p.t.Helper()
	for name, want := range stats {
		if got := p.stat(name); got != want {
			p.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// ask sends requests one after the other.
func (p *proxy) ask(n int, want string) {
	p.t.Helper()
	for range n {
		if got := p.get(p.web); got != want {
			p.t.Errorf("answer %q, want %q", got, want)
		}
	}
}

func TestFollowsControlPlane(t *testing.T) {
	plane, first, second := newPlane(t), newBackend(t, "first"), newBackend(t, "second")
	plane.publish("1", 20*time.Second, first.address)
	p := startProxy(t, plane.address)
	p.ask(20, "200 first")
	p.want(map[string]string{
		"cluster_manager.cluster_added": "2", "cluster_manager.active_clusters": "2", "cluster.backend.membership_change": "1",
		"cluster.backend.upstream_rq_total": "20", "cluster.backend.upstream_cx_total": "1",
	})

	plane.publish("2", 20*time.Second, second.address) // other hosts
	p.eventually("other hosts", func() bool { return p.stat("cluster.backend.membership_change") == "2" })
	p.ask(30, "200 second")
	p.want(map[string]string{
		"cluster_manager.cluster_modified": "0", "cluster.backend.membership_total": "1",
		"cluster.backend.upstream_rq_total": "50", "cluster.backend.upstream_rq_200": "50", "cluster.backend.upstream_cx_total": "2",
	})

	plane.publish("3", 7*time.Second, second.address) // another cluster of that name
	p.eventually("a modified cluster", func() bool {
		return p.stat("cluster_manager.cluster_modified") == "1" && p.stat("cluster_manager.warming_clusters") == "0"
	})
	p.ask(10, "200 second")
	p.want(map[string]string{
		"cluster.backend.upstream_rq_total": "60", "cluster.backend.upstream_cx_total": "3", "cluster_manager.active_clusters": "2",
	})

	plane.publish("4", 0, nil)
	p.eventually("no cluster", func() bool { return p.stat("cluster_manager.cluster_removed") == "1" })
	p.ask(5, "503 Service Unavailable\n")
	p.eventually("no stats of it, once its connections are closed", func() bool { return p.stat("cluster.backend.upstream_rq_total") == "" })
	p.want(map[string]string{
		"cluster_manager.active_clusters": "1",
		"http.web.downstream_rq_total":    "65", "http.web.downstream_rq_2xx": "60", "http.web.downstream_rq_5xx": "5",
	})
	if first.requests.Load() != 20 || second.requests.Load() != 40 {
		t.Errorf("hosts got %d and %d requests, want 20 and 40", first.requests.Load(), second.requests.Load())
	}
}
