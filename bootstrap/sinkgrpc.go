package bootstrap

import (
	"net"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/flush/metricsservice"
	"github.com/statsd-admin/statsd-admin/flush/sinkgrpc"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func (s *Sink) setMetricsService(d *decoder, n *yaml.Node, path string) {
	c := &metricsservice.Config{}
	s.Metrics = c
	seen := d.message(n, path, append(s.httpFields(&c.Receiver),
		field{"temporality", enum(&c.Delta, "cumulative, delta", false, true)},
		field{"histograms", enum(&c.Histograms, "both, summary, buckets", metricsservice.Both, metricsservice.Summaries, metricsservice.Buckets)},
	))
	d.require(n, path, seen, "url")
	if at, ok := seen["url"]; ok && c.Receiver.URL != "" {
		checkGRPC(d, at, join(path, "url"), c.Receiver, "")
	}
}

// checkGRPC reports a receiver that cannot be reached over gRPC.
func checkGRPC(d *decoder, n *yaml.Node, path string, c sinkhttp.Config, port string) {
	if err := sinkgrpc.Check(c, port); err != nil {
		d.errorf(n, path, "%v", err)
	}
}

// setMetricsService reads the typed_config of Envoy's sink. Out has no URL before
// resolve if the receiver is a cluster.
func (s *StatsSink) setMetricsService(d *decoder) {
	if s.Config.Node == nil {
		return
	}
	c := &metricsservice.Config{FullNames: true}
	var target, cluster string
	var labels bool
	seen := d.message(s.Config.Node, s.Config.Path, []field{
		{"@type", accepted},
		{"grpc_service", nested(
			field{"envoy_grpc", nested(field{"cluster_name", text(&cluster)}, field{"authority", accepted})},
			field{"google_grpc", nested(field{"target_uri", text(&target)}, field{"stat_prefix", accepted})},
			field{"timeout", duration(&c.Receiver.Timeout, time.Millisecond, time.Hour)},
		)},
		{"transport_api_version", accepted},
		{"report_counters_as_deltas", boolean(&c.Delta)},
		{"emit_tags_as_labels", boolean(&labels)},
		{"histogram_emit_mode", enum(&c.Histograms, "SUMMARY_AND_HISTOGRAM, SUMMARY, HISTOGRAM", metricsservice.Both, metricsservice.Summaries, metricsservice.Buckets)},
		{"batch_size", accepted},
	})
	c.FullNames = !labels
	switch at := seen["grpc_service"]; {
	case at == nil:
		return
	case target != "":
		c.Receiver.URL = "http://" + target
		checkGRPC(d, at, join(s.Config.Path, "grpc_service.google_grpc.target_uri"), c.Receiver, "")
	case cluster == "":
		return
	}
	s.Out = &Sink{Options: sinkqueue.Options{Name: s.Kind}, Metrics: c, cluster: cluster}
}

// resolve sets the address of a receiver that is a static cluster: the first endpoint
// with a host and a port. Without one, or if the cluster has a transport socket other
// than plain text, nothing is sent.
func (s *StatsSink) resolve(d *decoder, clusters []*decode.ParsedCluster) {
	if s.Out == nil || s.Out.cluster == "" {
		return
	}
	for _, p := range clusters {
		c := p.Cluster
		if c.Name != s.Out.cluster || c.Assignment == nil || c.Sockets.Default.Kind != config.RawBuffer {
			continue
		}
		for _, l := range c.Assignment.Localities {
			for _, e := range l.Endpoints {
				if e.Address.Host != "" && e.Address.Port != 0 {
					s.Out.Metrics.Receiver.URL = "http://" + net.JoinHostPort(e.Address.Host, strconv.Itoa(int(e.Address.Port)))
					return
				}
			}
		}
	}
	d.warnf(s.Config.Node, s.Config.Path, "nothing is sent: %q is not a static cluster with an address and without TLS", s.Out.cluster)
	s.Out = nil
}
