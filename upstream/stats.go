package upstream

import (
	"slices"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
)

// Stats are the statistics of a cluster, named "cluster.<name>.…". The cluster updates
// discovery, membership and balancing; a proxy updates the others, preferably
// by [Cluster.RequestStarted] and related methods.
type Stats struct {
	// Discovery and membership.
	UpdateAttempt, UpdateSuccess, UpdateFailure, UpdateEmpty, UpdateNoRebuild *store.Counter
	AssignmentTimeoutReceived, AssignmentStale, AssignmentUseCached           *store.Counter
	MembershipChange                                                          *store.Counter
	MembershipTotal, MembershipHealthy, MembershipDegraded                    *store.Gauge
	MembershipExcluded, MaxHostWeight, WarmingState                           *store.Gauge

	// Connections.
	CxTotal, CxHTTP1Total, CxHTTP2Total, CxHTTP3Total          *store.Counter
	CxConnectFail, CxConnectTimeout, CxConnectAttemptsExceeded *store.Counter
	CxDestroy, CxDestroyLocal, CxDestroyRemote                 *store.Counter
	CxDestroyWithActiveRq                                      *store.Counter
	CxDestroyLocalWithActiveRq, CxDestroyRemoteWithActiveRq    *store.Counter
	CxIdleTimeout, CxMaxDurationReached, CxMaxRequests         *store.Counter
	CxCloseNotify, CxProtocolError, CxOverflow, CxPoolOverflow *store.Counter
	CxNoneHealthy, CxRxBytesTotal, CxTxBytesTotal, BindErrors  *store.Counter
	CxActive, CxRxBytesBuffered, CxTxBytesBuffered             *store.Gauge
	CxConnectMS, CxLengthMS                                    *store.Histogram

	// Requests.
	RqTotal, RqPendingTotal, RqPendingOverflow, RqPendingFailureEject               *store.Counter
	RqCancelled, RqMaintenanceMode, RqTimeout, RqPerTryTimeout, RqPerTryIdleTimeout *store.Counter
	RqMaxDurationReached, RqRxReset, RqTxReset                                      *store.Counter
	RqRetry, RqRetrySuccess, RqRetryOverflow, RqRetryLimitExceeded                  *store.Counter
	RqRetryBackoffExponential, RqRetryBackoffRatelimited, RetryOrShadowAbandoned    *store.Counter
	FlowControlPausedReading, FlowControlResumedReading                             *store.Counter
	FlowControlBackedUp, FlowControlDrained                                         *store.Counter
	InternalRedirectFailed, InternalRedirectSucceeded, OriginalDstHostInvalid       *store.Counter
	RqActive, RqPendingActive                                                       *store.Gauge
	RqPerCx                                                                         *store.Histogram

	// TimeoutBudget and TimeoutBudgetPerTry are nil unless budgets are tracked.
	TimeoutBudget, TimeoutBudgetPerTry *store.Histogram
}

func newStats(sc *store.Scope, track config.Track) *Stats {
	c := func(name string) *store.Counter { return sc.Counter(name) }
	own := func(name string) *store.Gauge { return sc.GaugeWithMode(name, store.NeverImport) }
	g := func(name string) *store.Gauge { return sc.Gauge(name) }
	ms := func(name string) *store.Histogram { return sc.Histogram(name, store.Milliseconds) }
	s := &Stats{
		UpdateAttempt: c("update_attempt"), UpdateSuccess: c("update_success"), UpdateFailure: c("update_failure"),
		UpdateEmpty: c("update_empty"), UpdateNoRebuild: c("update_no_rebuild"),
		AssignmentTimeoutReceived: c("assignment_timeout_received"), AssignmentStale: c("assignment_stale"),
		AssignmentUseCached: c("assignment_use_cached"), MembershipChange: c("membership_change"),
		MembershipTotal: own("membership_total"), MembershipHealthy: own("membership_healthy"),
		MembershipDegraded: own("membership_degraded"), MembershipExcluded: own("membership_excluded"),
		MaxHostWeight: own("max_host_weight"), WarmingState: own("warming_state"),

		CxTotal: c("upstream_cx_total"), CxHTTP1Total: c("upstream_cx_http1_total"),
		CxHTTP2Total: c("upstream_cx_http2_total"), CxHTTP3Total: c("upstream_cx_http3_total"),
		CxConnectFail: c("upstream_cx_connect_fail"), CxConnectTimeout: c("upstream_cx_connect_timeout"),
		CxConnectAttemptsExceeded: c("upstream_cx_connect_attempts_exceeded"),
		CxDestroy:                 c("upstream_cx_destroy"), CxDestroyLocal: c("upstream_cx_destroy_local"),
		CxDestroyRemote:             c("upstream_cx_destroy_remote"),
		CxDestroyWithActiveRq:       c("upstream_cx_destroy_with_active_rq"),
		CxDestroyLocalWithActiveRq:  c("upstream_cx_destroy_local_with_active_rq"),
		CxDestroyRemoteWithActiveRq: c("upstream_cx_destroy_remote_with_active_rq"),
		CxIdleTimeout:               c("upstream_cx_idle_timeout"), CxMaxDurationReached: c("upstream_cx_max_duration_reached"),
		CxMaxRequests: c("upstream_cx_max_requests"), CxCloseNotify: c("upstream_cx_close_notify"),
		CxProtocolError: c("upstream_cx_protocol_error"), CxOverflow: c("upstream_cx_overflow"),
		CxPoolOverflow: c("upstream_cx_pool_overflow"), CxNoneHealthy: c("upstream_cx_none_healthy"),
		CxRxBytesTotal: c("upstream_cx_rx_bytes_total"), CxTxBytesTotal: c("upstream_cx_tx_bytes_total"),
		BindErrors: c("bind_errors"), CxActive: g("upstream_cx_active"),
		CxRxBytesBuffered: g("upstream_cx_rx_bytes_buffered"), CxTxBytesBuffered: g("upstream_cx_tx_bytes_buffered"),
		CxConnectMS: ms("upstream_cx_connect_ms"), CxLengthMS: ms("upstream_cx_length_ms"),

		RqTotal: c("upstream_rq_total"), RqPendingTotal: c("upstream_rq_pending_total"),
		RqPendingOverflow: c("upstream_rq_pending_overflow"), RqPendingFailureEject: c("upstream_rq_pending_failure_eject"),
		RqCancelled: c("upstream_rq_cancelled"), RqMaintenanceMode: c("upstream_rq_maintenance_mode"),
		RqTimeout: c("upstream_rq_timeout"), RqPerTryTimeout: c("upstream_rq_per_try_timeout"),
		RqPerTryIdleTimeout: c("upstream_rq_per_try_idle_timeout"), RqMaxDurationReached: c("upstream_rq_max_duration_reached"),
		RqRxReset: c("upstream_rq_rx_reset"), RqTxReset: c("upstream_rq_tx_reset"),
		RqRetry: c("upstream_rq_retry"), RqRetrySuccess: c("upstream_rq_retry_success"),
		RqRetryOverflow: c("upstream_rq_retry_overflow"), RqRetryLimitExceeded: c("upstream_rq_retry_limit_exceeded"),
		RqRetryBackoffExponential: c("upstream_rq_retry_backoff_exponential"),
		RqRetryBackoffRatelimited: c("upstream_rq_retry_backoff_ratelimited"),
		RetryOrShadowAbandoned:    c("retry_or_shadow_abandoned"),
		FlowControlPausedReading:  c("upstream_flow_control_paused_reading_total"),
		FlowControlResumedReading: c("upstream_flow_control_resumed_reading_total"),
		FlowControlBackedUp:       c("upstream_flow_control_backed_up_total"),
		FlowControlDrained:        c("upstream_flow_control_drained_total"),
		InternalRedirectFailed:    c("upstream_internal_redirect_failed_total"),
		InternalRedirectSucceeded: c("upstream_internal_redirect_succeeded_total"),
		OriginalDstHostInvalid:    c("original_dst_host_invalid"),
		RqActive:                  g("upstream_rq_active"), RqPendingActive: g("upstream_rq_pending_active"),
		RqPerCx: sc.Histogram("upstream_rq_per_cx", store.Unspecified),
	}
	if track.TimeoutBudgets {
		s.TimeoutBudget = sc.Histogram("upstream_rq_timeout_budget_percent_used", store.Unspecified)
		s.TimeoutBudgetPerTry = sc.Histogram("upstream_rq_timeout_budget_per_try_percent_used", store.Unspecified)
	}
	return s
}

// balancerStats returns the statistics that the policy updates.
func balancerStats(sc *store.Scope, c *config.LoadBalancing) lb.Stats {
	s := lb.Stats{
		HealthyPanic:              sc.Counter("lb_healthy_panic"),
		RecalculateZoneStructures: sc.Counter("lb_recalculate_zone_structures"),
		LocalClusterNotOK:         sc.Counter("lb_local_cluster_not_ok"),
		ZoneClusterTooSmall:       sc.Counter("lb_zone_cluster_too_small"),
		ZoneNoCapacityLeft:        sc.Counter("lb_zone_no_capacity_left"),
		ZoneRoutingAllDirectly:    sc.Counter("lb_zone_routing_all_directly"),
		ZoneRoutingSampled:        sc.Counter("lb_zone_routing_sampled"),
		ZoneRoutingCrossZone:      sc.Counter("lb_zone_routing_cross_zone"),
	}
	g := func(name string) *store.Gauge { return sc.GaugeWithMode(name, store.NeverImport) }
	switch c.Policy {
	case config.RingHashPolicy:
		s.RingSize, s.RingMinHashes, s.RingMaxHashes =
			g("ring_hash_lb.size"), g("ring_hash_lb.min_hashes_per_host"), g("ring_hash_lb.max_hashes_per_host")
	case config.MaglevPolicy:
		s.MaglevMinEntries, s.MaglevMaxEntries = g("maglev_lb.min_entries_per_host"), g("maglev_lb.max_entries_per_host")
	}
	if c.Subset != nil {
		s.SubsetsActive = g("lb_subsets_active")
		if slices.ContainsFunc(c.Subset.Selectors, func(sel config.SubsetSelector) bool { return sel.SingleHostPerSubset }) {
			s.SubsetsDuplicates = g("lb_subsets_single_host_per_subset_duplicate")
		}
		s.SubsetsCreated, s.SubsetsRemoved = sc.Counter("lb_subsets_created"), sc.Counter("lb_subsets_removed")
		s.SubsetsSelected, s.SubsetsFallback = sc.Counter("lb_subsets_selected"), sc.Counter("lb_subsets_fallback")
		s.SubsetsFallbackPanic = sc.Counter("lb_subsets_fallback_panic")
	}
	return s
}

func healthStats(sc *store.Scope) health.Stats {
	c := func(name string) *store.Counter { return sc.Counter("health_check." + name) }
	g := func(name string) *store.Gauge { return sc.GaugeWithMode("health_check."+name, store.NeverImport) }
	return health.Stats{
		Attempt: c("attempt"), Success: c("success"), Failure: c("failure"), NetworkFailure: c("network_failure"),
		PassiveFailure: c("passive_failure"), VerifyCluster: c("verify_cluster"), Healthy: g("healthy"), Degraded: g("degraded"),
	}
}

func outlierStats(sc *store.Scope) outlier.Stats {
	c := func(name string) *store.Counter { return sc.Counter("outlier_detection." + name) }
	s := outlier.Stats{
		EjectionsActive:        sc.GaugeWithMode("outlier_detection.ejections_active", store.NeverImport),
		EjectionsEnforcedTotal: c("ejections_enforced_total"), EjectionsOverflow: c("ejections_overflow"),
		EjectionsTotal: c("ejections_total"), EjectionsConsecutive5xx: c("ejections_consecutive_5xx"),
		EjectionsSuccessRateSeen: c("ejections_success_rate"),
	}
	for _, k := range outlier.Kinds() {
		s.EjectionsDetected[k] = c("ejections_detected_" + k.String())
		s.EjectionsEnforced[k] = c("ejections_enforced_" + k.String())
	}
	return s
}
