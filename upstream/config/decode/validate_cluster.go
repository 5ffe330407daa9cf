//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Limits on names.
const (
	longName   = 60 // longer names are hard to read in statistics and get a warning
	maxName    = 1024
	maxMaglev  = 5000011
	maxWeight  = 100 // of a host, as documented
	maxWeights = 1<<32 - 1
)

// clusterCheck validates rules between fields and against the known extensions.
type clusterCheck struct {
	*report
	d *Decoder
	c *clusterv3.Cluster
	x extra
}

// checkCluster validates c, which is in the v3 form, and compiles it if there are no
// errors so far.
func (d *Decoder) checkCluster(c *clusterv3.Cluster, l *upgraded, r *report) *config.Cluster {
	k := clusterCheck{report: r, d: d, c: c, x: l.extra}
	k.name()
	k.ranges()
	k.discovery()
	k.balancing()
	k.subsets()
	k.dns()
	k.protocols()
	k.health()
	k.breakers()
	k.sockets()
	k.members()
	if len(r.errs) > 0 {
		return nil
	}
	return (&compiler{product: d.opts.Product, form: l.form}).cluster(c, l.extra)
}

// conflict adds an error about several fields.
func (k *clusterCheck) conflict(path, format string, args ...any) {
	k.errorf(Conflict, path, format, args...)
}

func (k *clusterCheck) name() {
	switch n := len(k.c.GetName()); {
	case n > maxName:
		k.errorf(BadValue, "name", "%d bytes exceeds %d", n, maxName)
	case n > longName:
		k.warnf("name", "%d bytes is longer than %d", n, longName)
	}
	if n := len(k.c.GetAltStatName()); n > maxName {
		k.errorf(BadValue, "alt_stat_name", "%d bytes exceeds %d", n, maxName)
	}
}

// ranges checks the rules of single fields that descriptors cannot express.
func (k *clusterCheck) ranges() {
	if n := len(k.c.GetHealthChecks()); n > 1 {
		k.errorf(BadValue, "health_checks", "%d health checks, only one is supported", n)
	}
	if f := k.c.GetDnsFailureRefreshRate(); f.GetMaxInterval() != nil && f.GetBaseInterval() != nil {
		k.notBelow("dns_failure_refresh_rate.max_interval", f.GetMaxInterval(), f.GetBaseInterval(), "base_interval")
	}
	if r := k.c.GetRingHashLbConfig(); r != nil {
		lowest, highest := given(r.GetMinimumRingSize(), defaultMinRingSize), given(r.GetMaximumRingSize(), defaultMaxRingSize)
		if lowest > highest && lowest <= defaultMaxRingSize {
			k.errorf(BadValue, "ring_hash_lb_config", "minimum_ring_size %d exceeds maximum_ring_size %d", lowest, highest)
		}
	}
	if m := k.c.GetMaglevLbConfig(); m.GetTableSize() != nil {
		if n := m.GetTableSize().GetValue(); n <= maxMaglev && !new(big.Int).SetUint64(n).ProbablyPrime(0) {
			k.errorf(BadValue, "maglev_lb_config.table_size", "%d is not a prime number", n)
		}
	}
	if o := k.c.GetOutlierDetection(); o.GetMaxEjectionTime() != nil {
		base := o.GetBaseEjectionTime()
		if base == nil {
			base = durationpb.New((&compiler{}).outlier(&clusterv3.OutlierDetection{}).BaseEjectionTime)
		}
		k.notBelow("outlier_detection.max_ejection_time", o.GetMaxEjectionTime(), base, "base_ejection_time")
	}
}

func (k *clusterCheck) notBelow(path string, v, lowest *durationpb.Duration, name string) {
	if v.AsDuration() < lowest.AsDuration() {
		k.errorf(BadValue, path, "%s is below %s %s", v.AsDuration(), name, lowest.AsDuration())
	}
}

// typeName returns the discovery type for error texts.
func (k *clusterCheck) typeName() string {
	if t := k.c.GetClusterType(); t != nil {
		return quote(t.GetName(), false)
	}
	return k.c.GetType().String()
}

// isType reports whether the cluster has a built-in type in types.
func (k *clusterCheck) isType(types ...clusterv3.Cluster_DiscoveryType) bool {
	return k.c.GetClusterType() == nil && slices.Contains(types, k.c.GetType())
}

// policyName returns the load balancing policy for error texts.
func (k *clusterCheck) policyName() string {
	if k.x.originalDstLB {
		return "ORIGINAL_DST_LB"
	}
	return k.c.GetLbPolicy().String()
}

// provided reports whether the policy of the cluster is CLUSTER_PROVIDED.
func (k *clusterCheck) provided() bool {
	if p := k.c.GetLoadBalancingPolicy(); p != nil {
		for _, entry := range p.GetPolicies() {
			if policy, _, ok := policyOf(entry.GetTypedExtensionConfig()); ok {
				return policy == config.ClusterProvidedPolicy
			}
		}
	}
	return k.c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED
}

func (k *clusterCheck) discovery() {
	t, p := k.typeName(), k.policyName()
	if custom := k.c.GetClusterType(); custom.GetName() != "" {
		own, known := k.d.opts.ClusterTypes[custom.GetName()]
		switch {
		case !known:
			k.errorf(BadValue, "cluster_type.name", "%s is not a known cluster type; known: %s", t, nameList(k.d.knownTypes()))
		case own && !k.provided():
			k.conflict("lb_policy", "cluster type %s brings its own load balancer, use CLUSTER_PROVIDED", t)
		case !own && k.provided() && !k.x.originalDstLB:
			k.conflict("lb_policy", "CLUSTER_PROVIDED, but type %s brings no load balancer", t)
		}
	}
	eds := k.isType(clusterv3.Cluster_EDS)
	switch {
	case eds && k.c.GetEdsClusterConfig() == nil:
		k.conflict("eds_cluster_config", "must be set for type EDS")
	case !eds && k.c.GetEdsClusterConfig() != nil:
		k.conflict("eds_cluster_config", "only allowed for type EDS, got %s", t)
	case eds && k.c.GetEdsClusterConfig().GetEdsConfig() == nil:
		k.conflict("eds_cluster_config.eds_config", "must be set for type EDS")
	}
	if eds && len(k.c.GetLoadAssignment().GetEndpoints()) > 0 {
		k.warnf("load_assignment", "type EDS ignores the endpoints given here")
	}
	switch {
	case k.isType(clusterv3.Cluster_ORIGINAL_DST):
		if !k.provided() {
			k.conflict("lb_policy", "type ORIGINAL_DST needs CLUSTER_PROVIDED or ORIGINAL_DST_LB, got %s", p)
		}
		if k.c.GetLoadAssignment() != nil {
			k.conflict("load_assignment", "type ORIGINAL_DST finds its hosts itself and takes none")
		} else if k.x.hostsGiven {
			k.conflict("hosts", "type ORIGINAL_DST finds its hosts itself and takes none")
		}
	case k.x.originalDstLB:
		k.conflict("lb_policy", "ORIGINAL_DST_LB needs type ORIGINAL_DST, got %s", t)
	case k.provided() && k.c.GetClusterType() == nil:
		k.conflict("lb_policy", "CLUSTER_PROVIDED, but type %s brings no load balancer", t)
	}
}

// nameList lists names for an error text.
func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (k *clusterCheck) balancing() {
	needs := func(set bool, field string, policy clusterv3.Cluster_LbPolicy) {
		if set && (k.c.GetLbPolicy() != policy || k.x.originalDstLB) {
			k.conflict(field, "needs lb_policy %s, got %s", policy, k.policyName())
		}
	}
	needs(k.c.GetRingHashLbConfig() != nil, "ring_hash_lb_config", clusterv3.Cluster_RING_HASH)
	needs(k.c.GetLeastRequestLbConfig() != nil, "least_request_lb_config", clusterv3.Cluster_LEAST_REQUEST)
	needs(k.c.GetMaglevLbConfig() != nil, "maglev_lb_config", clusterv3.Cluster_MAGLEV)
	needs(k.c.GetRoundRobinLbConfig() != nil, "round_robin_lb_config", clusterv3.Cluster_ROUND_ROBIN)
	if o := k.c.GetOriginalDstLbConfig(); o.GetHttpHeaderName() != "" && !o.GetUseHttpHeader() {
		k.conflict("original_dst_lb_config.http_header_name", "needs use_http_header")
	}
	if k.c.GetCommonLbConfig().GetConsistentHashingLbConfig().GetUseHostnameForHashing() && !k.isType(clusterv3.Cluster_STRICT_DNS) {
		k.conflict("common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing", "needs type STRICT_DNS, got %s", k.typeName())
	}
	p := k.c.GetLoadBalancingPolicy()
	if p == nil {
		if k.c.GetLbPolicy() == clusterv3.Cluster_LOAD_BALANCING_POLICY_CONFIG {
			k.conflict("load_balancing_policy", "must be set for lb_policy LOAD_BALANCING_POLICY_CONFIG")
		}
		return
	}
	common := k.c.GetCommonLbConfig()
	for _, other := range []struct {
		set  bool
		name string
	}{
		{k.c.GetLbSubsetConfig() != nil, "lb_subset_config"},
		{common.GetZoneAwareLbConfig() != nil, "common_lb_config.zone_aware_lb_config"},
		{common.GetLocalityWeightedLbConfig() != nil, "common_lb_config.locality_weighted_lb_config"},
		{common.GetConsistentHashingLbConfig() != nil, "common_lb_config.consistent_hashing_lb_config"},
	} {
		if other.set {
			k.conflict("load_balancing_policy", "cannot be combined with %s", other.name)
		}
	}
	if len(p.GetPolicies()) == 0 {
		k.conflict("load_balancing_policy", "no policy given")
		return
	}
	var names []string
	for _, entry := range p.GetPolicies() {
		if _, _, ok := policyOf(entry.GetTypedExtensionConfig()); ok {
			return
		}
		names = append(names, quote(entry.GetTypedExtensionConfig().GetName(), false))
	}
	k.conflict("load_balancing_policy", "none of %s is known", strings.Join(names, ", "))
}

func (k *clusterCheck) subsets() {
	s := k.c.GetLbSubsetConfig()
	if s == nil {
		return
	}
	if k.c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED {
		k.conflict("lb_subset_config", "cannot be used with lb_policy %s", k.policyName())
	}
	if s.GetLocalityWeightAware() && k.c.GetCommonLbConfig().GetLocalityWeightedLbConfig() == nil {
		k.conflict("lb_subset_config.locality_weight_aware", "needs common_lb_config.locality_weighted_lb_config")
	}
	for i, sel := range s.GetSubsetSelectors() {
		path := fmt.Sprintf("lb_subset_config.subset_selectors[%d].fallback_keys_subset", i)
		keys, fallback := keySet(sel.GetKeys()), keySet(sel.GetFallbackKeysSubset())
		if sel.GetSingleHostPerSubset() && len(keys) != 1 {
			k.conflict(fmt.Sprintf("lb_subset_config.subset_selectors[%d].single_host_per_subset", i), "needs exactly one key, got %d", len(keys))
		}
		if sel.GetFallbackPolicy() != clusterv3.Cluster_LbSubsetConfig_LbSubsetSelector_KEYS_SUBSET {
			if len(fallback) > 0 {
				k.conflict(path, "only allowed with fallback_policy KEYS_SUBSET")
			}
			continue
		}
		if len(fallback) == 0 {
			k.conflict(path, "must not be empty with fallback_policy KEYS_SUBSET")
			continue
		}
		foreign := false
		for _, key := range fallback {
			if !slices.Contains(keys, key) {
				k.conflict(path, "%s is not one of the selector's keys", quote(key, false))
				foreign = true
			}
		}
		if !foreign && len(fallback) == len(keys) {
			k.conflict(path, "must be smaller than keys")
		}
	}
}

func (k *clusterCheck) dns() {
	from := dnsOf(k.c)
	for i, r := range from.resolvers {
		a := address(r)
		if _, ok := a.AddrPort(); !ok && !a.IsZero() {
			k.errorf(BadValue, fmt.Sprintf("%s[%d]", from.path, i), "%s is not an IP address", quote(hostText(a), false))
		}
	}
}

func hostText(a config.AddressSpec) string {
	switch a.Kind {
	case config.PipeAddress:
		return a.Path
	case config.InternalAddress:
		return a.Listener
	}
	return a.Host
}

func (k *clusterCheck) protocols() {
	if k.c.GetHttpProtocolOptions() != nil && k.c.GetHttp2ProtocolOptions() != nil &&
		k.c.GetProtocolSelection() == clusterv3.Cluster_USE_CONFIGURED_PROTOCOL {
		k.conflict("http2_protocol_options", "cannot be combined with http_protocol_options under USE_CONFIGURED_PROTOCOL")
	}
	common := protocolOf(k.c).common
	if k.c.GetMaxRequestsPerConnection() != nil && common.GetMaxRequestsPerConnection() != nil {
		k.conflict("max_requests_per_connection", "set twice")
	}
	typed := k.c.GetTypedExtensionProtocolOptions()
	if len(typed) > 0 && len(k.x.options) > 0 {
		k.conflict("typed_extension_protocol_options", "cannot be combined with extension_protocol_options")
	}
	k.filterOptions("extension_protocol_options", slices.Sorted(maps.Keys(k.x.options)))
	k.filterOptions("typed_extension_protocol_options", slices.Sorted(maps.Keys(typed)))
}

func (k *clusterCheck) filterOptions(field string, names []string) {
	for _, name := range names {
		takes, known := k.d.opts.ProtocolFilters[name]
		if name == httpOptionsKey {
			takes, known = true, true
		}
		path := fmt.Sprintf("%s[%s]", field, quote(name, false))
		switch {
		case !known:
			k.errorf(BadValue, path, "no such filter")
		case !takes:
			k.errorf(BadValue, path, "filter takes no options")
		}
	}
}

func (k *clusterCheck) breakers() {
	for i, t := range k.c.GetCircuitBreakers().GetPerHostThresholds() {
		if t.GetMaxPendingRequests() != nil || t.GetMaxRequests() != nil || t.GetMaxRetries() != nil ||
			t.GetRetryBudget() != nil || t.GetMaxConnectionPools() != nil || t.GetTrackRemaining() {
			k.conflict(fmt.Sprintf("circuit_breakers.per_host_thresholds[%d]", i), "only priority and max_connections may be set")
		}
	}
}

func (k *clusterCheck) sockets() {
	names := make(map[string]bool)
	for i, m := range k.c.GetTransportSocketMatches() {
		path := fmt.Sprintf("transport_socket_matches[%d]", i)
		if names[m.GetName()] {
			k.warnf(path+".name", "%s is used by another match, both count under one name", quote(m.GetName(), false))
		}
		names[m.GetName()] = true
		k.socket(path+".transport_socket", m.GetTransportSocket())
	}
	k.socket("transport_socket", k.c.GetTransportSocket())
	if k.c.GetTransportSocketMatcher() != nil {
		k.warnf("transport_socket_matcher", "has no effect here, transport_socket_matches is used")
	}
}

func (k *clusterCheck) socket(path string, s *corev3.TransportSocket) {
	if s.GetName() == "" {
		return
	}
	switch k.d.socketKind(s.GetName()) {
	case config.OtherSocket:
		if !slices.Contains(k.d.opts.TransportSockets, s.GetName()) {
			known := append([]string{"tls", "raw_buffer"}, k.d.opts.TransportSockets...)
			k.errorf(BadValue, path+".name", "%s is not a known transport socket; known: %s", quote(s.GetName(), false), nameList(known))
		}
	case config.TLSSocket:
		t := upstreamTLS(s)
		if t == nil && s.GetTypedConfig().GetTypeUrl() != "" {
			k.errorf(BadValue, path+".typed_config", "%s is not an UpstreamTlsContext", quote(string(s.GetTypedConfig().MessageName()), false))
		}
		k.certificates(path+".typed_config.common_tls_context", t.GetCommonTlsContext())
		if v := t.GetCommonTlsContext().GetValidationContext(); v != nil {
			k.sans(path+".typed_config.common_tls_context.validation_context", v)
		}
		if v := t.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext(); v != nil {
			k.sans(path+".typed_config.common_tls_context.combined_validation_context.default_validation_context", v)
		}
	}
}
