package sinks

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// metricsServer is a metrics service made of go-control-plane's messages.
type metricsServer struct {
	metricsv3.UnimplementedMetricsServiceServer
	address string

	mu      sync.Mutex
	nodes   map[string]bool
	sums    map[string]float64 // of counters, over all reports
	last    map[string]float64 // of counters and gauges
	samples map[string]uint64  // of summaries, over all reports
	above   map[string]uint64  // of histograms: samples above the bound 50
	wrong   []string
}

func serveMetrics(t *testing.T, options ...grpc.ServerOption) *metricsServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &metricsServer{
		address: l.Addr().String(), nodes: map[string]bool{}, sums: map[string]float64{}, last: map[string]float64{},
		samples: map[string]uint64{}, above: map[string]uint64{},
	}
	server := grpc.NewServer(options...)
	metricsv3.RegisterMetricsServiceServer(server, m)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); done.Wait() })
	return m
}

func (m *metricsServer) StreamMetrics(s metricsv3.MetricsService_StreamMetricsServer) error {
	for first := true; ; first = false {
		message, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return s.SendAndClose(&metricsv3.StreamMetricsResponse{})
		}
		if err != nil {
			return err
		}
		m.take(message, first)
	}
}

func (m *metricsServer) take(message *metricsv3.StreamMetricsMessage, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node := message.GetIdentifier().GetNode()
	if first != (node != nil) {
		m.wrong = append(m.wrong, "the identifier is not in the first message")
	}
	m.nodes[node.GetId()+"/"+node.GetCluster()] = true
	for _, family := range message.GetEnvoyMetrics() {
		for _, x := range family.GetMetric() {
			key := family.GetName()
			for _, l := range x.GetLabel() {
				key += "," + l.GetName() + "=" + l.GetValue()
			}
			if x.GetTimestampMs() == 0 {
				m.wrong = append(m.wrong, key+" has no time")
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				m.sums[key] += x.GetCounter().GetValue()
				m.last[key] = x.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				m.last[key] = x.GetGauge().GetValue()
			case dto.MetricType_SUMMARY:
				m.samples[key] += x.GetSummary().GetSampleCount()
			case dto.MetricType_HISTOGRAM:
				h := x.GetHistogram()
				for _, b := range h.GetBucket() {
					if b.GetUpperBound() == 50 {
						m.above[key] += h.GetSampleCount() - b.GetCumulativeCount()
					}
				}
			}
		}
	}
}

// value returns an entry of a map of m.
func value[V float64 | uint64](m *metricsServer, of map[string]V, key string) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return of[key]
}

// TestMetricsService sends to a server that go-control-plane generates the messages
// of, once with increments and labels and once as Envoy's bootstrap says, to a cluster
// with TLS. The first connection breaks twice while counters grow.
func TestMetricsService(t *testing.T) {
	secure := httptest.NewTLSServer(nil) // has a certificate for example.com
	secure.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	increments, totals := serveMetrics(t), serveMetrics(t, grpc.Creds(credentials.NewServerTLSFromCert(&secure.TLS.Certificates[0])))
	g := openTCP(t)
	g.to(increments.address)
	host, port, _ := net.SplitHostPort(totals.address)
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
node: {id: edge-1, cluster: shop}
static_resources:
  clusters:
  - name: metrics
    type: STATIC
    connect_timeout: 5s
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: example.com
        common_tls_context: {validation_context: {trusted_ca: {filename: %s}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: example.com}}]}}
    load_assignment: {cluster_name: metrics, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}
stats_sinks:
- name: envoy.stat_sinks.metrics_service
  typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig, grpc_service: {envoy_grpc: {cluster_name: metrics}}, transport_api_version: V3}
`, authority, host, port) + fmt.Sprintf(settings, "0s", fmt.Sprintf(`
- name: increments
  filters: {include: [{prefix: shop}]}
  tags: {zone: b}
  queue: {max_bytes: 65536}
  metrics_service: {url: "http://%s", temporality: delta}
`, g.address))})
	const orders, latency = "shop.orders,host=h1,zone=b", "shop.latency,zone=b"
	var sent uint64
	burst := func() {
		t.Helper()
		var lines []string
		for i := range 100 {
			lines = append(lines, "shop.orders:1|c|#host:h1", fmt.Sprintf("shop.latency:%d|ms", i+1))
		}
		sent += 100
		send(t, d, append(lines, "shop.depth:2.5|g")...)
	}
	doubt := func(s daemon.Stats, what string) uint64 {
		return uint64(s.Number("sink.ambiguous_"+what+".sink.increments") + s.Number("sink.lost_"+what+".sink.increments"))
	}
	settled := func(s daemon.Stats) bool {
		return uint64(value(increments, increments.sums, orders))+doubt(s, "increments") >= sent && value(increments, increments.samples, latency)+doubt(s, "values") >= sent
	}
	burst()
	d.Wait("the first reports", settled)
	for range 2 {
		refused := g.refused()
		g.shut()
		burst()
		d.Wait("failed attempts", func(s daemon.Stats) bool {
			return g.refused() > refused && s.Number("sink.send_errors.sink.increments") > 0
		})
		burst()
		g.to(increments.address)
		d.Wait("the reports of the outage", settled)
	}
	d.Wait("the totals", func(daemon.Stats) bool { return uint64(value(totals, totals.last, "shop.orders.host.h1")) == sent })
	s := d.Stats()
	got, samples := uint64(value(increments, increments.sums, orders)), value(increments, increments.samples, latency)
	if got > sent || got+doubt(s, "increments") < sent {
		t.Errorf("%d increments arrived, %d are ambiguous or lost, %d were sent", got, doubt(s, "increments"), sent)
	}
	if samples > sent || samples+doubt(s, "values") < sent {
		t.Errorf("%d values arrived, %d are ambiguous or lost, %d were sent", samples, doubt(s, "values"), sent)
	}
	if above := value(increments, increments.above, latency); 2*above != samples {
		t.Errorf("%d of %d values are above 50, want half", above, samples)
	}
	for _, m := range []*metricsServer{increments, totals} {
		m.mu.Lock()
		if len(m.wrong) > 0 || !m.nodes["edge-1/shop"] || len(m.nodes) != 1 {
			t.Errorf("%q, nodes %v", m.wrong, m.nodes)
		}
		m.mu.Unlock()
	}
	if x := value(increments, increments.last, "shop.depth,zone=b"); x != 2.5 {
		t.Errorf("the gauge is %v", x)
	}
	if page := d.Get("/sinks?name=increments"); !strings.Contains(page, "kind: metrics_service\n") || !strings.Contains(page, "target: http://"+g.address+"\n") {
		t.Errorf("/sinks:\n%s", page)
	}
}
