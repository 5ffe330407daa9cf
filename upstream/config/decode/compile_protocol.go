//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"cmp"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// httpOptionsKey is the key of the HTTP options among the typed protocol
// options of a v3 cluster.
const httpOptionsKey = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// typedHTTP returns the HTTP options among the typed protocol options, nil if
// there are none.
func typedHTTP(options map[string]*anypb.Any) *httpv3.HttpProtocolOptions {
	m, err := unpack(options[httpOptionsKey])
	if err != nil {
		return nil
	}
	h, _ := m.(*httpv3.HttpProtocolOptions)
	return h
}

// protocolMessages are the HTTP settings, which can be at several locations.
type protocolMessages struct {
	protocol config.Protocol
	common   *corev3.HttpProtocolOptions
	upstream *corev3.UpstreamHttpProtocolOptions
	http1    *corev3.Http1ProtocolOptions
	http2    *corev3.Http2ProtocolOptions
}

func protocolOf(m *clusterv3.Cluster) protocolMessages {
	t := typedHTTP(m.GetTypedExtensionProtocolOptions())
	if t == nil {
		p := protocolMessages{
			common: m.GetCommonHttpProtocolOptions(), upstream: m.GetUpstreamHttpProtocolOptions(),
			http1: m.GetHttpProtocolOptions(), http2: m.GetHttp2ProtocolOptions(),
		}
		switch {
		case m.GetProtocolSelection() == clusterv3.Cluster_USE_DOWNSTREAM_PROTOCOL:
			p.protocol = config.UseDownstream
		case p.http2 != nil:
			p.protocol = config.HTTP2
		}
		return p
	}
	p := protocolMessages{common: t.GetCommonHttpProtocolOptions(), upstream: t.GetUpstreamHttpProtocolOptions()}
	switch {
	case t.GetUseDownstreamProtocolConfig() != nil:
		d := t.GetUseDownstreamProtocolConfig()
		p.protocol, p.http1, p.http2 = config.UseDownstream, d.GetHttpProtocolOptions(), d.GetHttp2ProtocolOptions()
	case t.GetAutoConfig() != nil:
		a := t.GetAutoConfig()
		p.protocol, p.http1, p.http2 = config.AutoALPN, a.GetHttpProtocolOptions(), a.GetHttp2ProtocolOptions()
	default:
		e := t.GetExplicitHttpConfig()
		p.http1, p.http2 = e.GetHttpProtocolOptions(), e.GetHttp2ProtocolOptions()
		switch {
		case p.http2 != nil:
			p.protocol = config.HTTP2
		case e.GetHttp3ProtocolOptions() != nil:
			p.protocol = config.HTTP3
		}
	}
	return p
}

func (c *compiler) http(m *clusterv3.Cluster) config.HTTPOptions {
	p := protocolOf(m)
	out := config.HTTPOptions{
		Protocol:                 p.protocol,
		MaxRequestsPerConnection: given(p.common.GetMaxRequestsPerConnection(), given(m.GetMaxRequestsPerConnection(), 0)),
		IdleTimeout:              timer(p.common.GetIdleTimeout(), defaultIdleTimeout),
		MaxConnectionDuration:    timer(p.common.GetMaxConnectionDuration(), 0),
		MaxStreamDuration:        timer(p.common.GetMaxStreamDuration(), 0),
		MaxHeadersCount:          given(p.common.GetMaxHeadersCount(), 100),
		MaxResponseHeadersKB:     given(p.common.GetMaxResponseHeadersKb(), 60),
		HeadersWithUnderscores:   config.UnderscoreAction(p.common.GetHeadersWithUnderscoresAction()),
		AutoSNI:                  p.upstream.GetAutoSni(),
		AutoSANValidation:        p.upstream.GetAutoSanValidation(),
		OverrideAutoSNIHeader:    p.upstream.GetOverrideAutoSniHeader(),
		HTTP1Options: config.HTTP1Options{
			AllowAbsoluteURL:    given(p.http1.GetAllowAbsoluteUrl(), true),
			AcceptHTTP10:        p.http1.GetAcceptHttp_10(),
			DefaultHostHTTP10:   p.http1.GetDefaultHostForHttp_10(),
			EnableTrailers:      p.http1.GetEnableTrailers(),
			AllowChunkedLength:  p.http1.GetAllowChunkedLength(),
			ProperCaseHeaders:   p.http1.GetHeaderKeyFormat().GetProperCaseWords() != nil,
			StreamErrorOnBadMsg: given(p.http1.GetOverrideStreamErrorOnInvalidHttpMessage(), false),
			SendFullURL:         p.http1.GetSendFullyQualifiedUrl(),
			AllowCustomMethods:  p.http1.GetAllowCustomMethods(),
		},
		HTTP2Options: c.http2(p.http2),
	}
	return out
}

func (c *compiler) http2(h *corev3.Http2ProtocolOptions) config.HTTP2Options {
	streams, window, connection := uint32(1024), uint32(16<<20), uint32(24<<20)
	if c.form == config.FormV2 {
		streams, window, connection = 1<<31-1, 256<<20, 256<<20
	}
	out := config.HTTP2Options{
		HpackTableSize:                 given(h.GetHpackTableSize(), 4096),
		MaxConcurrentStreams:           given(h.GetMaxConcurrentStreams(), streams),
		InitialStreamWindow:            given(h.GetInitialStreamWindowSize(), window),
		InitialConnectionWindow:        given(h.GetInitialConnectionWindowSize(), connection),
		AllowConnect:                   h.GetAllowConnect(),
		AllowMetadata:                  h.GetAllowMetadata(),
		MaxOutboundFrames:              given(h.GetMaxOutboundFrames(), 10_000),
		MaxOutboundControlFrames:       given(h.GetMaxOutboundControlFrames(), 1_000),
		MaxInboundEmptyFrames:          given(h.GetMaxConsecutiveInboundFramesWithEmptyPayload(), 1),
		MaxInboundPriorityFrames:       given(h.GetMaxInboundPriorityFramesPerStream(), 100),
		MaxInboundWindowUpdatesPerData: given(h.GetMaxInboundWindowUpdateFramesPerDataFrameSent(), 10),
		StreamErrorOnBadMsg:            given(h.GetOverrideStreamErrorOnInvalidHttpMessage(), h.GetStreamErrorOnInvalidHttpMessaging()),
	}
	for _, s := range h.GetCustomSettingsParameters() {
		out.Custom = append(out.Custom, config.HTTP2Setting{Identifier: s.GetIdentifier().GetValue(), Value: s.GetValue().GetValue()})
	}
	if k := h.GetConnectionKeepalive(); k != nil {
		out.KeepaliveInterval = timer(k.GetInterval(), 0)
		out.KeepaliveTimeout = timer(k.GetTimeout(), 0)
		out.KeepaliveIdleInterval = timer(k.GetConnectionIdleInterval(), 0)
		out.KeepaliveJitterPercent = given(k.GetIntervalJitter(), 15)
	}
	return out
}

// dnsMessages are the resolver settings, which can be at several locations.
type dnsMessages struct {
	path      string // of the resolvers
	resolvers []*corev3.Address
	options   *corev3.DnsResolverOptions
	other     *corev3.TypedExtensionConfig // custom resolver
}

// dnsOf returns the settings in effect: a typed resolver wins over a resolution
// config, which wins over the plain fields.
func dnsOf(m *clusterv3.Cluster) dnsMessages {
	if t := m.GetTypedDnsResolverConfig(); t != nil {
		if inner, err := unpack(t.GetTypedConfig()); err == nil {
			if cares, ok := inner.(*caresv3.CaresDnsResolverConfig); ok {
				return dnsMessages{path: "typed_dns_resolver_config.typed_config.resolvers", resolvers: cares.GetResolvers(), options: cares.GetDnsResolverOptions()}
			}
		}
		return dnsMessages{other: t}
	}
	if r := m.GetDnsResolutionConfig(); r != nil {
		return dnsMessages{path: "dns_resolution_config.resolvers", resolvers: r.GetResolvers(), options: r.GetDnsResolverOptions()}
	}
	return dnsMessages{path: "dns_resolvers", resolvers: m.GetDnsResolvers(), options: &corev3.DnsResolverOptions{UseTcpForDnsLookups: m.GetUseTcpForDnsLookups()}}
}

func (c *compiler) dns(m *clusterv3.Cluster, x extra) config.DNS {
	from := dnsOf(m)
	refresh := timer(m.GetDnsRefreshRate(), defaultDNSRefresh)
	out := config.DNS{
		RefreshRate:     refresh,
		Jitter:          timer(m.GetDnsJitter(), 0),
		FailureBase:     refresh,
		FailureMax:      refresh,
		RespectTTL:      m.GetRespectDnsTtl(),
		LeastRefresh:    timer(x.leastDNSRefresh, 0),
		Family:          config.LookupFamily(m.GetDnsLookupFamily()),
		UseTCP:          from.options.GetUseTcpForDnsLookups(),
		NoDefaultSearch: from.options.GetNoDefaultSearchDomain(),
	}
	if f := m.GetDnsFailureRefreshRate(); f != nil {
		out.HasFailureRate = true
		out.FailureBase = timer(f.GetBaseInterval(), refresh)
		out.FailureMax = timer(f.GetMaxInterval(), tenTimes(out.FailureBase))
	}
	for _, r := range from.resolvers {
		a := address(r)
		a.Port = cmp.Or(a.Port, 53)
		out.Resolvers = append(out.Resolvers, a)
	}
	if from.other != nil {
		out.ResolverExtension = extension(from.other)
	}
	return out
}
