package main

import (
	"errors"
	"slices"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// accept rejects clusters of HTTP listeners that need features this proxy lacks. It
// ignores other clusters, such as clusters of control planes.
func (p *proxy) accept(c *config.Cluster) error {
	if !slices.ContainsFunc(p.http, func(r *httpRoute) bool { return r.Cluster == c.Name }) {
		return nil
	}
	o := &c.HTTP
	const inUse = "this proxy speaks HTTP/1 to hosts"
	var errs []error
	for _, field := range []struct {
		given        bool
		name, reason string
	}{
		{o.Protocol == config.HTTP2, "http2_protocol_options", inUse},
		{o.Protocol == config.HTTP3, "http3_protocol_options", inUse},
		{o.AutoSNI, "upstream_http_protocol_options.auto_sni", "connections are shared by requests for all names"},
		{o.AutoSANValidation, "upstream_http_protocol_options.auto_san_validation", "connections are shared by requests for all names"},
		{o.HTTP1Options.SendFullURL, "http_protocol_options.send_fully_qualified_url", "requests carry paths"},
		{o.HTTP1Options.EnableTrailers, "http_protocol_options.enable_trailers", "trailers are not passed on"},
		{o.HTTP1Options.AllowChunkedLength, "http_protocol_options.allow_chunked_length", "answers with both are refused"},
	} {
		if field.given {
			errs = append(errs, &upstream.Unsupported{Field: field.name, Reason: field.reason})
		}
	}
	return errors.Join(errs...)
}
