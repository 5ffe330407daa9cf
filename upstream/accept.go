package upstream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Unsupported is the error for a cluster field that neither the library nor the
// proxy implements.
type Unsupported struct {
	Field  string // path in the names of the configuration
	Reason string
}

// Error returns the field and the reason.
func (e *Unsupported) Error() string { return e.Field + ": " + e.Reason }

// ask is a field that this library does not implement.
type ask struct {
	field  string
	given  bool // its value differs from the default
	refuse bool // reject the cluster instead of logging a warning
	reason string
}

// asks lists the fields that a proxy can implement itself. Package config documents
// where the other fields take effect.
func asks(c *config.Cluster) []ask {
	list := []ask{
		{"filters", len(c.Filters) > 0, true, "no network filter runs on upstream connections here"},
		{"connection_pool_per_downstream_connection", c.PerDownstreamConnection, true, "connections to hosts are shared here"},
		{"transport_socket_matcher", c.Sockets.Matcher, true, "transport_socket_matches chooses sockets here"},
		{"per_connection_buffer_high_watermark_timeout", c.BufferHighWatermarkWait > 0, false, "full buffers end no connection here"},
		{"preconnect_policy", c.Preconnect != nil && (c.Preconnect.PerUpstreamRatio > 1 || c.Preconnect.PredictiveRatio > 1), false, "no connection is made ahead of need here"},
		{"common_http_protocol_options.headers_with_underscores_action", c.HTTP.HeadersWithUnderscores != config.AllowUnderscores, false, "it is about requests of clients"},
		{"common_lb_config.override_host_status", c.LB.OverrideHostStatusDefined, false, "no request names its host here"},
		{"upstream_connection_options.set_local_interface_name_on_upstream_connections", c.SetLocalInterfaceName, false, "names of interfaces are not published here"},
		{"track_cluster_stats.request_response_sizes", c.Track.RequestResponseSizes, false, "sizes are not measured here"},
		{"track_cluster_stats.per_endpoint_stats", c.Track.PerEndpointStats, false, "hosts have no statistics of their own here"},
		{"circuit_breakers.thresholds.retry_budget.budget_interval", overTime(&c.CircuitBreakers.Default) || overTime(&c.CircuitBreakers.High), false, "the budget is of the requests in flight"},
		{"load_assignment.endpoints.lb_endpoints.endpoint.additional_addresses", c.Type != config.Static && c.Type != config.EDSDiscovery && moreAddresses(c.Assignment), false, "it is for hosts that are not found by a name"},
	}
	if o := c.Outlier; o != nil {
		list = append(list,
			ask{"outlier_detection.detect_degraded_hosts", o.DetectDegraded, false, "no answer makes a host degraded here"},
			ask{"outlier_detection.monitors", len(o.MonitorExtensions) > 0, false, "the built-in detectors watch hosts here"})
	}
	if len(c.HealthChecks) > 0 {
		h := &c.HealthChecks[0]
		list = append(list,
			ask{"health_checks.alt_port", h.HasAltPort, false, "checks go to the port of the host, or of its health_check_config"},
			ask{"health_checks.http_health_check.codec_client_type", h.HTTP.HTTP3, false, "checks are sent over HTTP/1 in place of HTTP/3"},
			ask{"health_checks.http_health_check.use_alpn_protocol", h.HTTP.UseALPN, false, "codec_client_type decides"},
			ask{"health_checks.tcp_health_check.proxy_protocol_config", h.TCP.ProxyProtocol, false, "checks send no header of the PROXY protocol"})
	}
	for _, field := range c.Unread {
		// These two decide where connections come from and lead to.
		refuse := field == "upstream_config" || field == "upstream_bind_config.local_address_selector"
		list = append(list, ask{field, true, refuse, "has no effect here"})
	}
	return list
}

func overTime(t *config.Thresholds) bool {
	return t.RetryBudget != nil && t.RetryBudget.BudgetInterval > 0
}

func moreAddresses(a *config.Assignment) bool {
	return a != nil && slices.ContainsFunc(a.Localities, func(l config.LocalityEndpoints) bool {
		return slices.ContainsFunc(l.Endpoints, func(e config.Endpoint) bool { return len(e.Additional) > 0 })
	})
}

// accept rejects a cluster that needs an unsupported field, and logs unsupported
// fields that it can do without.
func (m *Manager) accept(c *config.Cluster) error {
	var refused []error
	for _, a := range asks(c) {
		switch {
		case !a.given || slices.Contains(m.env.Supported, a.field):
		case a.refuse:
			refused = append(refused, &Unsupported{a.field, a.reason})
		default:
			m.env.Logger.Warn("setting without effect", "cluster", c.Name, "field", a.field, "reason", a.reason)
		}
	}
	if m.env.Accept != nil {
		if err := m.env.Accept(c); err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("upstream: cluster %q: %w", c.Name, errors.Join(refused...))
	}
	return nil
}
