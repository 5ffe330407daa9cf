package httptransport

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Accept returns an [*upstream.Unsupported] for each setting of a cluster that
// transports lack. Programs call it in the Accept function of their
// [upstream.Config], for the clusters of their transports.
func Accept(c *config.Cluster) error {
	o := &c.HTTP
	const protocol, shared = "hosts are sent HTTP/1", "connections are shared by requests for all names"
	var errs []error
	for _, setting := range []struct {
		given        bool
		name, reason string
	}{
		{o.Protocol == config.HTTP2, "http2_protocol_options", protocol},
		{o.Protocol == config.HTTP3, "http3_protocol_options", protocol},
		{o.AutoSNI, "upstream_http_protocol_options.auto_sni", shared},
		{o.AutoSANValidation, "upstream_http_protocol_options.auto_san_validation", shared},
		{o.HTTP1Options.SendFullURL, "http_protocol_options.send_fully_qualified_url", "requests carry paths"},
		{o.HTTP1Options.EnableTrailers, "http_protocol_options.enable_trailers", "trailers are not passed on"},
		{o.HTTP1Options.AllowChunkedLength, "http_protocol_options.allow_chunked_length", "answers with both are refused"},
	} {
		if setting.given {
			errs = append(errs, &upstream.Unsupported{Field: setting.name, Reason: setting.reason})
		}
	}
	return errors.Join(errs...)
}

// HashHeader returns a Hash function of a [Transport] that hashes the value of a
// header.
func HashHeader(name string) func(*http.Request) (uint64, bool) {
	return func(r *http.Request) (uint64, bool) {
		v := r.Header.Get(name)
		return xxhash.Sum64String(v), v != ""
	}
}

// ForwardedOrigin is an Origin function of a [Transport] behind a
// [net/http/httputil.ReverseProxy] that sets X-Forwarded-For. A request comes from
// inside if its client has a private address and no other proxy forwarded it.
func ForwardedOrigin(r *http.Request) upstream.Origin {
	a, err := netip.ParseAddr(r.Header.Get("X-Forwarded-For"))
	if err == nil && (a.IsPrivate() || a.IsLoopback()) {
		return upstream.InternalOrigin
	}
	return upstream.ExternalOrigin
}
