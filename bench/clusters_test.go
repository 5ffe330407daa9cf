package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// clusterText returns the configuration of a cluster.
func clusterText(name string, hosts int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nconnect_timeout: 1s\noutlier_detection: {}\nload_assignment: {cluster_name: %s, endpoints: [{locality: {zone: z-2}, lb_endpoints: [", name, name)
	for i := range hosts {
		fmt.Fprintf(&b, "{endpoint: {hostname: host-%d.example.net, address: {socket_address: {address: 10.0.%d.%d, port_value: 8080}}}},", i, i/250, i%250+1)
	}
	b.WriteString("]}]}\n")
	return b.String()
}

// showing is a server with clusters and a client of its administration port.
func showing(b *testing.B, clusters, hosts int) *http.Client {
	b.Helper()
	loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Output: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "admin.sock")
	cfg := server.Config{Admin: admin.Config{Address: "unix:" + path}, Loggers: loggers}
	envoyapi.Add(&cfg, envoyapi.Config{}) // for /config_dump
	s, err := server.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	decoder := decode.NewDecoder(decode.Options{})
	for i := range clusters {
		p, err := decoder.ClusterText("bench.yaml", []byte(clusterText(fmt.Sprintf("cluster_%06d", i), hosts)), config.FormV3)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Clusters().AddOrUpdate(p, "v1"); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Listen(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	<-s.Initialized()
	return &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// BenchmarkClusters requests /clusters and /config_dump. B/op is the extra memory of
// a request on both sides.
func BenchmarkClusters(b *testing.B) {
	clusters, hosts := 10_000, 10
	if testing.Short() {
		clusters = 100
	}
	client := showing(b, clusters, hosts)
	for _, endpoint := range []struct{ name, target string }{
		{"clusters/format=text", "/clusters"},
		{"clusters/format=json", "/clusters?format=json"},
		{"config_dump/of=all", "/config_dump"},
		{"config_dump/of=names", "/config_dump?resource=dynamic_active_clusters&mask=cluster.name"},
		{"config_dump/of=endpoints", "/config_dump?include_eds&mask=dynamic_endpoint_configs"},
	} {
		b.Run(fmt.Sprintf("clusters=%d/hosts=%d/%s", clusters, hosts, endpoint.name), func(b *testing.B) {
			b.ReportAllocs()
			var n int64
			for b.Loop() {
				resp, err := client.Get("http://localhost" + endpoint.target)
				if err != nil {
					b.Fatal(err)
				}
				n, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || n < int64(clusters*10) {
					b.Fatalf("status %d, %d bytes, %v", resp.StatusCode, n, err)
				}
			}
			b.SetBytes(n)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clusters*hosts), "ns/host")
		})
	}
}
