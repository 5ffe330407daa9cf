package bootstrap

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
	"go.yaml.in/yaml/v4"
)

// sinkTLS are the TLS settings of a sink.
type sinkTLS struct {
	set        bool
	ca         string
	chain, key string
	serverName string
}

func (t *sinkTLS) decode(d *decoder, n *yaml.Node, path string) {
	t.set = true
	seen := d.message(n, path, []field{
		{"ca", inputFile(&t.ca)},
		{"certificate_chain", inputFile(&t.chain)},
		{"private_key", inputFile(&t.key)},
		{"server_name", nonEmpty(&t.serverName)},
	})
	if (seen["certificate_chain"] == nil) != (seen["private_key"] == nil) {
		d.errorf(n, path, "certificate_chain and private_key need each other")
	}
}

// config returns the settings, nil for the defaults. The certificate is read for each
// connection, so that it can be replaced.
func (t *sinkTLS) config() (*tls.Config, error) {
	if !t.set {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.serverName, MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		pem, err := transport.ReadFile(t.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("bootstrap: no certificate in %s", t.ca)
		}
	}
	if t.chain == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		chain, err := transport.ReadFile(t.chain)
		key, kerr := transport.ReadFile(t.key)
		if err = errors.Join(err, kerr); err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(chain, key)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	c.GetClientCertificate = load
	return c, nil
}

// httpFields returns the fields of a sink that posts to a URL.
func (s *Sink) httpFields(c *sinkhttp.Config) []field {
	return []field{
		{"url", func(d *decoder, n *yaml.Node, path string) {
			if !d.scalar(n, path, "a URL") {
				return
			}
			if _, err := sinkhttp.CheckURL(n.Value); err != nil {
				d.errorf(n, path, "%v", err)
			} else {
				c.URL = n.Value
			}
		}},
		{"headers", headers(&c.Headers)},
		{"bearer_token_file", inputFile(&c.BearerTokenFile)},
		{"tls", s.tls.decode},
		{"timeout", period(&c.Timeout, time.Millisecond, time.Hour)},
	}
}

// headers decodes a mapping of header names to values. Errors do not show values.
func headers(to *map[string]string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			d.errorf(n, path, "%s is not a mapping of names to values", conftree.Show(n, true))
			return
		}
		*to = map[string]string{}
		for name, value := range conftree.Pairs(n) {
			if !httpguts.ValidHeaderFieldName(name.Value) || value.Kind != yaml.ScalarNode || conftree.IsNull(value) || !httpguts.ValidHeaderFieldValue(value.Value) {
				d.errorf(name, join(path, conftree.Key(name.Value, false)), "not a header with a value on one line")
				continue
			}
			(*to)[http.CanonicalHeaderKey(name.Value)] = value.Value
		}
	}
}

func (s *Sink) setRemoteWrite(d *decoder, n *yaml.Node, path string) {
	c := &remotewrite.Config{Shards: remotewrite.DefaultShards, Batch: remotewrite.DefaultBatch, Refresh: remotewrite.DefaultRefresh}
	s.RemoteWrite = c
	seen := d.message(n, path, append(s.httpFields(&c.HTTP),
		field{"version", enum(&c.Version, "auto, 1.0, 2.0", remotewrite.Newest, remotewrite.Version1, remotewrite.Version2)},
		field{"histograms", enum(&c.Histograms, "auto, native, classic, both", remotewrite.ByVersion, remotewrite.Native, remotewrite.Classic, remotewrite.Both)},
		field{"shards", whole(&c.Shards, 1, remotewrite.MaxShards)},
		field{"batch_samples", whole(&c.Batch, 1, 100_000)},
		field{"refresh", period(&c.Refresh, time.Millisecond, time.Hour)},
	))
	d.require(n, path, seen, "url")
}

func (s *Sink) setOTLP(d *decoder, n *yaml.Node, path string) {
	c := &otlp.Config{Batch: otlp.DefaultBatch, Refresh: otlp.DefaultRefresh}
	s.OTLP = c
	seen := d.message(n, path, append(s.httpFields(&c.HTTP),
		field{"protocol", enum(&s.grpc, "http, grpc", false, true)},
		field{"compression", enum(&c.Gzip, "none, gzip", false, true)},
		field{"temporality", enum(&c.Delta, "cumulative, delta", false, true)},
		field{"histograms", enum(&c.Explicit, "exponential, explicit", false, true)},
		field{"resource", tagMap(&c.Resource)},
		field{"batch_points", whole(&c.Batch, 1, 100_000)},
		field{"refresh", period(&c.Refresh, time.Millisecond, time.Hour)},
	))
	d.require(n, path, seen, "url")
	if s.grpc && c.HTTP.URL != "" {
		checkGRPC(d, seen["url"], join(path, "url"), c.HTTP, otlp.GRPCPort)
	}
}

// setOpenTelemetry reads the typed_config of Envoy's sink. Without a receiver, Out stays
// nil.
func (s *StatsSink) setOpenTelemetry(d *decoder) {
	if s.Config.Node == nil {
		return
	}
	c := otlp.Config{Explicit: true, Batch: otlp.DefaultBatch, Refresh: -1}
	out := &Sink{Options: sinkqueue.Options{Name: s.Kind}, OTLP: &c}
	var to grpcService
	var histograms bool
	seen := d.message(s.Config.Node, s.Config.Path, []field{
		{"@type", accepted},
		to.field(&c.HTTP.Timeout),
		{"http_service", nested(field{"http_uri", nested(
			field{"uri", func(d *decoder, n *yaml.Node, path string) {
				text(&c.HTTP.URL)(d, n, path)
				if _, err := sinkhttp.CheckURL(c.HTTP.URL); err != nil {
					d.errorf(n, path, "%v", err)
				}
			}},
			field{"cluster", accepted},
			field{"timeout", duration(&c.HTTP.Timeout, time.Millisecond, time.Hour)},
		)})},
		{"report_counters_as_deltas", boolean(&c.Delta)},
		{"report_histograms_as_deltas", boolean(&histograms)},
		{"emit_tags_as_attributes", accepted},
		{"use_tag_extracted_name", accepted},
		{"prefix", text(&out.Options.Prefix)},
	})
	if histograms != c.Delta {
		d.warnf(s.Config.Node, s.Config.Path, "report_histograms_as_deltas is that of counters")
	}
	if seen["http_service"] == nil {
		out.grpc = to.set(d, seen["grpc_service"], s.Config.Path, &c.HTTP, out)
	}
	if c.HTTP.URL != "" {
		s.Out = out
	}
}
