//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"cmp"
	"encoding/hex"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	eventsinkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func extensionAny(a *anypb.Any) config.Any {
	return config.Any{TypeURL: a.GetTypeUrl(), Value: string(a.GetValue())}
}

func extension(e *corev3.TypedExtensionConfig) config.Extension {
	return config.Extension{Name: e.GetName(), Config: extensionAny(e.GetTypedConfig())}
}

// untyped returns the free-form configuration in an Any.
func untyped(a *anypb.Any) (map[string]any, bool) {
	m, err := unpack(a)
	if err != nil {
		return nil, false
	}
	s, ok := m.(*structpb.Struct)
	return freeForm(s), ok
}

func (c *compiler) healthCheck(h *corev3.HealthCheck) config.HealthCheck {
	interval := timer(h.GetInterval(), 0)
	noTraffic := timer(h.GetNoTrafficInterval(), defaultNoTraffic)
	unhealthy := timer(h.GetUnhealthyInterval(), interval)
	out := config.HealthCheck{
		Name:                     h.GetName(),
		Timeout:                  timer(h.GetTimeout(), 0),
		Interval:                 interval,
		InitialJitter:            timer(h.GetInitialJitter(), 0),
		IntervalJitter:           timer(h.GetIntervalJitter(), 0),
		IntervalJitterPercent:    h.GetIntervalJitterPercent(),
		UnhealthyThreshold:       max(1, given(h.GetUnhealthyThreshold(), 1)),
		HealthyThreshold:         max(1, given(h.GetHealthyThreshold(), 1)),
		HasAltPort:               h.GetAltPort() != nil,
		ReuseConnection:          given(h.GetReuseConnection(), true),
		NoTrafficInterval:        noTraffic,
		NoTrafficHealthyInterval: timer(h.GetNoTrafficHealthyInterval(), noTraffic),
		UnhealthyInterval:        unhealthy,
		UnhealthyEdgeInterval:    timer(h.GetUnhealthyEdgeInterval(), unhealthy),
		HealthyEdgeInterval:      timer(h.GetHealthyEdgeInterval(), interval),
		AlwaysLogFailures:        h.GetAlwaysLogHealthCheckFailures(),
		AlwaysLogSuccess:         h.GetAlwaysLogHealthCheckSuccess(),
		ALPN:                     texts(h.GetTlsOptions().GetAlpnProtocols()),
		TransportSocketMatch:     freeForm(h.GetTransportSocketMatchCriteria()),
	}
	out.EventLogs, out.EventSinks = eventSinks(h)
	switch {
	case h.GetTcpHealthCheck() != nil:
		t := h.GetTcpHealthCheck()
		out.Kind = config.TCPCheck
		out.TCP = config.TCPHealthCheck{Send: payload(t.GetSend()), Receive: payloads(t.GetReceive()), ProxyProtocol: t.GetProxyProtocolConfig() != nil}
	case h.GetGrpcHealthCheck() != nil:
		g := h.GetGrpcHealthCheck()
		out.Kind = config.GRPCCheck
		out.GRPC = config.GRPCHealthCheck{ServiceName: g.GetServiceName(), Authority: g.GetAuthority(), Metadata: headersToAdd(g.GetInitialMetadata())}
	case h.GetCustomHealthCheck() != nil:
		x := h.GetCustomHealthCheck()
		out.Kind = config.CustomCheck
		out.Custom = config.Extension{Name: x.GetName(), Config: extensionAny(x.GetTypedConfig())}
		if free, ok := untyped(x.GetTypedConfig()); ok {
			out.CustomUntyped, out.Custom.Config = free, config.Any{}
		}
	default:
		out.HTTP = httpCheck(h.GetHttpHealthCheck())
	}
	return out
}

// eventSinks returns the event log files of a check and its other sinks.
func eventSinks(h *corev3.HealthCheck) (files []string, others []config.Extension) {
	if path := h.GetEventLogPath(); path != "" {
		files = append(files, path)
	}
	for _, l := range h.GetEventLogger() {
		m, err := unpack(l.GetTypedConfig())
		if f, ok := m.(*eventsinkv3.HealthCheckEventFileSink); ok && err == nil {
			files = append(files, f.GetEventLogPath())
			continue
		}
		others = append(others, config.Extension{Name: l.GetName(), Config: extensionAny(l.GetTypedConfig())})
	}
	return files, others
}

func httpCheck(h *corev3.HealthCheck_HttpHealthCheck) config.HTTPHealthCheck {
	out := config.HTTPHealthCheck{
		Host:               h.GetHost(),
		Path:               h.GetPath(),
		Method:             "GET",
		Send:               payload(h.GetSend()),
		Receive:            payloads(h.GetReceive()),
		ResponseBufferSize: given(h.GetResponseBufferSize(), defaultBodyBuffer),
		HeadersToAdd:       headersToAdd(h.GetRequestHeadersToAdd()),
		HeadersToRemove:    texts(h.GetRequestHeadersToRemove()),
		Expected:           statusRanges(h.GetExpectedStatuses()),
		Retriable:          statusRanges(h.GetRetriableStatuses()),
		HTTP2:              h.GetCodecClientType() == typev3.CodecClientType_HTTP2,
		HTTP3:              h.GetCodecClientType() == typev3.CodecClientType_HTTP3,
		UseALPN:            h.GetUseAlpnProtocol(),
	}
	if m := h.GetMethod(); m != corev3.RequestMethod_METHOD_UNSPECIFIED {
		out.Method = m.String()
	}
	if out.Expected == nil {
		out.Expected = []config.StatusRange{{Start: 200, End: 201}}
	}
	if m := h.GetServiceNameMatcher(); m != nil {
		s := stringMatcher(m)
		out.ServiceName = &s
	}
	return out
}

func statusRanges(list []*typev3.Int64Range) []config.StatusRange {
	var out []config.StatusRange
	for _, r := range list {
		out = append(out, config.StatusRange{Start: int(r.GetStart()), End: int(r.GetEnd())})
	}
	return out
}

// payload returns the bytes of a payload; a text is hexadecimal.
func payload(p *corev3.HealthCheck_Payload) []byte {
	if p == nil {
		return nil
	}
	if b := p.GetBinary(); b != nil {
		return append([]byte{}, b...)
	}
	b, err := hex.DecodeString(p.GetText())
	if err != nil { // already validated
		return nil
	}
	return b
}

func payloads(list []*corev3.HealthCheck_Payload) [][]byte {
	var out [][]byte
	for _, p := range list {
		out = append(out, payload(p))
	}
	return out
}

func headersToAdd(list []*corev3.HeaderValueOption) []config.HeaderToAdd {
	var out []config.HeaderToAdd
	for _, h := range list {
		add := config.HeaderToAdd{Name: h.GetHeader().GetKey(), Value: h.GetHeader().GetValue(), KeepEmpty: h.GetKeepEmptyValue()}
		add.Value = cmp.Or(add.Value, string(h.GetHeader().GetRawValue()))
		switch {
		case h.GetAppend() != nil && !h.GetAppend().GetValue():
			add.Append = config.OverwriteOrAdd
		case h.GetAppend() == nil:
			add.Append = config.HeaderAppend(h.GetAppendAction())
		}
		out = append(out, add)
	}
	return out
}

// texts returns a copy, nil for an empty list.
func texts(list []string) []string {
	return append([]string(nil), list...)
}

func stringMatcher(m *matcherv3.StringMatcher) config.StringMatcher {
	out := config.StringMatcher{IgnoreCase: m.GetIgnoreCase()}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		out.Kind, out.Pattern = config.MatchExact, p.Exact
	case *matcherv3.StringMatcher_Prefix:
		out.Kind, out.Pattern = config.MatchPrefix, p.Prefix
	case *matcherv3.StringMatcher_Suffix:
		out.Kind, out.Pattern = config.MatchSuffix, p.Suffix
	case *matcherv3.StringMatcher_SafeRegex:
		out.Kind, out.Pattern = config.MatchRegex, p.SafeRegex.GetRegex()
	case *matcherv3.StringMatcher_Contains:
		out.Kind, out.Pattern = config.MatchContains, p.Contains
	case *matcherv3.StringMatcher_Custom:
		out.Kind, out.Pattern = config.MatchCustom, p.Custom.GetName()
	}
	return out
}

func (c *compiler) outlier(o *clusterv3.OutlierDetection) *config.Outlier {
	if o == nil {
		return nil
	}
	base := timer(o.GetBaseEjectionTime(), 30*time.Second)
	out := &config.Outlier{
		Interval:              timer(o.GetInterval(), 10*time.Second),
		BaseEjectionTime:      base,
		MaxEjectionTime:       timer(o.GetMaxEjectionTime(), max(defaultMaxEjectionTime, base)),
		MaxEjectionTimeJitter: timer(o.GetMaxEjectionTimeJitter(), 0),
		MaxEjectionPercent:    given(o.GetMaxEjectionPercent(), 10),

		Consecutive5xx:            given(o.GetConsecutive_5Xx(), 5),
		ConsecutiveGatewayFailure: given(o.GetConsecutiveGatewayFailure(), 5),
		ConsecutiveLocalFailure:   given(o.GetConsecutiveLocalOriginFailure(), 5),

		EnforcingConsecutive5xx:            given(o.GetEnforcingConsecutive_5Xx(), 100),
		EnforcingConsecutiveGatewayFailure: given(o.GetEnforcingConsecutiveGatewayFailure(), 0),
		EnforcingConsecutiveLocalFailure:   given(o.GetEnforcingConsecutiveLocalOriginFailure(), 100),
		EnforcingSuccessRate:               given(o.GetEnforcingSuccessRate(), 100),
		EnforcingLocalSuccessRate:          given(o.GetEnforcingLocalOriginSuccessRate(), 100),
		EnforcingFailurePercentage:         given(o.GetEnforcingFailurePercentage(), 0),
		EnforcingLocalFailurePercentage:    given(o.GetEnforcingFailurePercentageLocalOrigin(), 0),

		SuccessRateMinimumHosts:  given(o.GetSuccessRateMinimumHosts(), 5),
		SuccessRateRequestVolume: given(o.GetSuccessRateRequestVolume(), 100),
		SuccessRateStdevFactor:   given(o.GetSuccessRateStdevFactor(), 1900),

		FailurePercentageThreshold:     given(o.GetFailurePercentageThreshold(), 85),
		FailurePercentageMinimumHosts:  given(o.GetFailurePercentageMinimumHosts(), 5),
		FailurePercentageRequestVolume: given(o.GetFailurePercentageRequestVolume(), 50),

		SplitLocalErrors: o.GetSplitExternalLocalOriginErrors(),
		UnejectOnCheck:   given(o.GetSuccessfulActiveHealthCheckUnejectHost(), c.form != config.FormV2),
		AlwaysEjectOne:   given(o.GetAlwaysEjectOneHost(), c.form == config.FormV2),
		DetectDegraded:   given(o.GetDetectDegradedHosts(), false),
	}
	for _, m := range o.GetMonitors() {
		out.MonitorExtensions = append(out.MonitorExtensions, extension(m))
	}
	return out
}

func (c *compiler) circuitBreakers(b *clusterv3.CircuitBreakers) config.CircuitBreakers {
	return config.CircuitBreakers{
		Default:        thresholds(firstThresholds(b.GetThresholds(), corev3.RoutingPriority_DEFAULT)),
		High:           thresholds(firstThresholds(b.GetThresholds(), corev3.RoutingPriority_HIGH)),
		PerHostDefault: limit(firstThresholds(b.GetPerHostThresholds(), corev3.RoutingPriority_DEFAULT).GetMaxConnections()),
		PerHostHigh:    limit(firstThresholds(b.GetPerHostThresholds(), corev3.RoutingPriority_HIGH).GetMaxConnections()),
	}
}

// limit returns the value of a limit that is unlimited by default.
func limit(v *wrapperspb.UInt32Value) uint64 {
	if v == nil {
		return config.NoLimit
	}
	return uint64(v.GetValue())
}

// firstThresholds returns the first entry of a priority; later ones are ignored.
func firstThresholds(list []*clusterv3.CircuitBreakers_Thresholds, p corev3.RoutingPriority) *clusterv3.CircuitBreakers_Thresholds {
	for _, t := range list {
		if t.GetPriority() == p {
			return t
		}
	}
	return nil
}

func thresholds(t *clusterv3.CircuitBreakers_Thresholds) config.Thresholds {
	out := config.Thresholds{
		MaxConnections:     uint64(given(t.GetMaxConnections(), 1024)),
		MaxPendingRequests: uint64(given(t.GetMaxPendingRequests(), 1024)),
		MaxRequests:        uint64(given(t.GetMaxRequests(), 1024)),
		MaxRetries:         uint64(given(t.GetMaxRetries(), 3)),
		MaxConnectionPools: limit(t.GetMaxConnectionPools()),
		TrackRemaining:     t.GetTrackRemaining(),
	}
	if b := t.GetRetryBudget(); b != nil {
		out.RetryBudget = &config.RetryBudget{
			BudgetPercent:       given(b.GetBudgetPercent(), defaultBudgetPercent),
			MinRetryConcurrency: given(b.GetMinRetryConcurrency(), defaultRetryFloor),
			BudgetInterval:      timer(b.GetBudgetInterval(), 0),
		}
	}
	return out
}
