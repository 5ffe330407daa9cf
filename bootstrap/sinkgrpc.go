package bootstrap

import (
	"cmp"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/flush/metricsservice"
	"github.com/statsd-admin/statsd-admin/flush/sinkgrpc"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
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

// grpcService is a receiver in Envoy's form.
type grpcService struct{ target, cluster, authority string }

// field returns the field of the receiver.
func (g *grpcService) field(timeout *time.Duration) field {
	return field{"grpc_service", nested(
		field{"envoy_grpc", nested(field{"cluster_name", text(&g.cluster)}, field{"authority", text(&g.authority)})},
		field{"google_grpc", nested(field{"target_uri", text(&g.target)}, field{"stat_prefix", accepted})},
		field{"timeout", duration(timeout, time.Millisecond, time.Hour)},
	)}
}

// set sets the URL and, in s, the cluster. It returns false if there is neither.
func (g *grpcService) set(d *decoder, n *yaml.Node, path string, c *sinkhttp.Config, s *Sink) bool {
	switch {
	case n == nil:
		return false
	case g.target != "":
		c.URL = "http://" + g.target
		checkGRPC(d, n, join(path, "grpc_service.google_grpc.target_uri"), *c, "")
	case g.cluster != "":
		s.cluster, c.URL = g.cluster, "http://"+cmp.Or(g.authority, g.cluster)
		if _, err := sinkhttp.CheckURL(c.URL); err != nil {
			d.errorf(n, join(path, "grpc_service.envoy_grpc"), "%q is not an authority; set authority", cmp.Or(g.authority, g.cluster))
		}
	default:
		return false
	}
	return true
}

// setMetricsService reads the typed_config of Envoy's sink.
func (s *StatsSink) setMetricsService(d *decoder) {
	if s.Config.Node == nil {
		return
	}
	c := &metricsservice.Config{FullNames: true}
	out := &Sink{Options: sinkqueue.Options{Name: s.Kind}, Metrics: c}
	var to grpcService
	var labels bool
	seen := d.message(s.Config.Node, s.Config.Path, []field{
		{"@type", accepted},
		to.field(&c.Receiver.Timeout),
		{"transport_api_version", accepted},
		{"report_counters_as_deltas", boolean(&c.Delta)},
		{"emit_tags_as_labels", boolean(&labels)},
		{"histogram_emit_mode", enum(&c.Histograms, "SUMMARY_AND_HISTOGRAM, SUMMARY, HISTOGRAM", metricsservice.Both, metricsservice.Summaries, metricsservice.Buckets)},
		{"batch_size", accepted},
	})
	c.FullNames = !labels
	if to.set(d, seen["grpc_service"], s.Config.Path, &c.Receiver, out) {
		s.Out = out
	}
}

// check reports a receiver that is not a static cluster. Then nothing is sent.
func (s *StatsSink) check(d *decoder, clusters []*decode.ParsedCluster) {
	if s.Out == nil || s.Out.cluster == "" || slices.ContainsFunc(clusters, func(p *decode.ParsedCluster) bool { return p.Cluster.Name == s.Out.cluster }) {
		return
	}
	d.warnf(s.Config.Node, s.Config.Path, "nothing is sent: %q is not a static cluster", s.Out.cluster)
	s.Out = nil
}
