//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	providedv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/cluster_provided/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	ringv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	roundv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func (c *compiler) loadBalancing(m *clusterv3.Cluster) config.LoadBalancing {
	common := m.GetCommonLbConfig()
	lb := config.LoadBalancing{
		RingHash:              ringHash(m.GetRingHashLbConfig().GetMinimumRingSize(), m.GetRingHashLbConfig().GetMaximumRingSize()),
		Maglev:                config.Maglev{TableSize: given(m.GetMaglevLbConfig().GetTableSize(), defaultMaglevSize)},
		LeastRequest:          config.LeastRequest{ChoiceCount: given(m.GetLeastRequestLbConfig().GetChoiceCount(), defaultChoiceCount), Bias: runtimeDouble(m.GetLeastRequestLbConfig().GetActiveRequestBias())},
		OriginalDst:           originalDst(m.GetOriginalDstLbConfig()),
		Subset:                subset(m.GetLbSubsetConfig()),
		PanicThreshold:        wholePercent(common.GetHealthyPanicThreshold(), defaultPanicThreshold),
		UpdateMergeWindow:     timer(common.GetUpdateMergeWindow(), defaultMergeWindow),
		IgnoreNewHostsUntilHC: common.GetIgnoreNewHostsUntilFirstHc(),
		CloseOnHostSetChange:  common.GetCloseConnectionsOnHostSetChange(),
		UseHostnameForHashing: common.GetConsistentHashingLbConfig().GetUseHostnameForHashing(),
		HashBalanceFactor:     given(common.GetConsistentHashingLbConfig().GetHashBalanceFactor(), 0),
		LocalityWeighted:      common.GetLocalityWeightedLbConfig() != nil,
	}
	if m.GetRingHashLbConfig().GetHashFunction() == clusterv3.Cluster_RingHashLbConfig_MURMUR_HASH_2 {
		lb.RingHash.Function = config.MurmurHash2
	}
	lb.SlowStart = slowStart(m.GetLeastRequestLbConfig().GetSlowStartConfig(), nil)
	lb.SlowStart = slowStart(m.GetRoundRobinLbConfig().GetSlowStartConfig(), lb.SlowStart)
	if !lb.LocalityWeighted {
		lb.ZoneAware = zoneAware(common.GetZoneAwareLbConfig())
	}
	if h := common.GetOverrideHostStatus(); h != nil {
		lb.OverrideHostStatusDefined = true
		for _, s := range h.GetStatuses() {
			lb.OverrideHostStatus = append(lb.OverrideHostStatus, config.HealthStatus(s))
		}
	}
	switch m.GetLbPolicy() {
	case clusterv3.Cluster_LEAST_REQUEST:
		lb.Policy = config.LeastRequestPolicy
	case clusterv3.Cluster_RING_HASH:
		lb.Policy = config.RingHashPolicy
	case clusterv3.Cluster_RANDOM:
		lb.Policy = config.RandomPolicy
	case clusterv3.Cluster_MAGLEV:
		lb.Policy = config.MaglevPolicy
	case clusterv3.Cluster_CLUSTER_PROVIDED:
		lb.Policy = config.ClusterProvidedPolicy
	}
	if p := m.GetLoadBalancingPolicy(); p != nil {
		c.knownPolicy(p, &lb)
	}
	return lb
}

func ringHash(lowest, highest *wrapperspb.UInt64Value) config.RingHash {
	return config.RingHash{MinimumSize: max(1, given(lowest, defaultMinRingSize)), MaximumSize: given(highest, defaultMaxRingSize)}
}

// runtimeDouble returns the value of r, by default 1.
func runtimeDouble(r *corev3.RuntimeDouble) config.RuntimeDouble {
	if r == nil {
		return config.RuntimeDouble{Default: 1}
	}
	return config.RuntimeDouble{Default: r.GetDefaultValue(), Key: r.GetRuntimeKey()}
}

// zoneAware returns the settings of either message of zone aware routing.
func zoneAware(z interface {
	GetRoutingEnabled() *typev3.Percent
	GetMinClusterSize() *wrapperspb.UInt64Value
	GetFailTrafficOnPanic() bool
}) *config.ZoneAware {
	return &config.ZoneAware{
		RoutingEnabled:     wholePercent(z.GetRoutingEnabled(), defaultZoneRouting),
		MinClusterSize:     given(z.GetMinClusterSize(), defaultMinClusterSize),
		FailTrafficOnPanic: z.GetFailTrafficOnPanic(),
	}
}

// slowStart returns the settings of either message of slow start, def if it is absent.
func slowStart(s interface {
	proto.Message
	GetSlowStartWindow() *durationpb.Duration
	GetAggression() *corev3.RuntimeDouble
	GetMinWeightPercent() *typev3.Percent
}, def *config.SlowStart) *config.SlowStart {
	if !s.ProtoReflect().IsValid() {
		return def
	}
	return &config.SlowStart{Window: timer(s.GetSlowStartWindow(), 0), Aggression: runtimeDouble(s.GetAggression()), MinWeightPercent: given(s.GetMinWeightPercent(), 10)}
}

func originalDst(o *clusterv3.Cluster_OriginalDstLbConfig) config.OriginalDstOptions {
	out := config.OriginalDstOptions{
		UseHTTPHeader: o.GetUseHttpHeader(),
		HeaderName:    o.GetHttpHeaderName(),
		PortOverride:  uint16(given(o.GetUpstreamPortOverride(), 0)),
		MetadataKey:   o.GetMetadataKey().GetKey(),
	}
	for _, s := range o.GetMetadataKey().GetPath() {
		out.MetadataPath = append(out.MetadataPath, s.GetKey())
	}
	return out
}

// subset returns nil when no selector has a key, because then there are no
// subsets to balance over.
func subset(s *clusterv3.Cluster_LbSubsetConfig) *config.Subset {
	out := &config.Subset{
		Fallback:            config.Fallback(s.GetFallbackPolicy()) + config.FallbackNone,
		DefaultSubset:       freeForm(s.GetDefaultSubset()),
		LocalityWeightAware: s.GetLocalityWeightAware(),
		ScaleLocalityWeight: s.GetScaleLocalityWeight(),
		PanicModeAny:        s.GetPanicModeAny(),
		ListAsAny:           s.GetListAsAny(),
		MetadataFallback:    s.GetMetadataFallbackPolicy() == clusterv3.Cluster_LbSubsetConfig_FALLBACK_LIST,
	}
	for _, sel := range s.GetSubsetSelectors() {
		keys := keySet(sel.GetKeys())
		if len(keys) == 0 {
			continue
		}
		out.Selectors = append(out.Selectors, config.SubsetSelector{
			Keys:                keys,
			Fallback:            config.Fallback(sel.GetFallbackPolicy()),
			FallbackKeys:        keySet(sel.GetFallbackKeysSubset()),
			SingleHostPerSubset: sel.GetSingleHostPerSubset(),
		})
	}
	if len(out.Selectors) == 0 {
		return nil
	}
	return out
}

// keySet returns the keys sorted and without repetition.
func keySet(keys []string) []string {
	keys = texts(keys)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func policyOf(e *corev3.TypedExtensionConfig) (config.Policy, proto.Message, bool) {
	m, err := unpack(e.GetTypedConfig())
	if err != nil {
		return 0, nil, false
	}
	switch m.(type) {
	case *roundv3.RoundRobin:
		return config.RoundRobinPolicy, m, true
	case *leastv3.LeastRequest:
		return config.LeastRequestPolicy, m, true
	case *ringv3.RingHash:
		return config.RingHashPolicy, m, true
	case *maglevv3.Maglev:
		return config.MaglevPolicy, m, true
	case *randomv3.Random:
		return config.RandomPolicy, m, true
	case *providedv3.ClusterProvided:
		return config.ClusterProvidedPolicy, m, true
	}
	return 0, nil, false
}

// knownPolicy applies the first known policy of the list.
func (c *compiler) knownPolicy(p *clusterv3.LoadBalancingPolicy, lb *config.LoadBalancing) {
	for _, entry := range p.GetPolicies() {
		policy, m, ok := policyOf(entry.GetTypedExtensionConfig())
		if !ok {
			continue
		}
		lb.Policy = policy
		switch m := m.(type) {
		case *roundv3.RoundRobin:
			setLocality(lb, m.GetLocalityLbConfig())
			lb.SlowStart = slowStart(m.GetSlowStartConfig(), lb.SlowStart)
		case *randomv3.Random:
			setLocality(lb, m.GetLocalityLbConfig())
		case *leastv3.LeastRequest:
			lb.LeastRequest = config.LeastRequest{ChoiceCount: given(m.GetChoiceCount(), defaultChoiceCount), Bias: runtimeDouble(m.GetActiveRequestBias())}
			setLocality(lb, m.GetLocalityLbConfig())
			lb.SlowStart = slowStart(m.GetSlowStartConfig(), lb.SlowStart)
		case *ringv3.RingHash:
			lb.RingHash = ringHash(m.GetMinimumRingSize(), m.GetMaximumRingSize())
			if m.GetHashFunction() == ringv3.RingHash_MURMUR_HASH_2 {
				lb.RingHash.Function = config.MurmurHash2
			}
			lb.UseHostnameForHashing = m.GetUseHostnameForHashing()
			lb.HashBalanceFactor = given(m.GetHashBalanceFactor(), 0)
			setHashing(lb, m.GetConsistentHashingLbConfig(), m.GetLocalityWeightedLbConfig() != nil)
		case *maglevv3.Maglev:
			lb.Maglev = config.Maglev{TableSize: given(m.GetTableSize(), defaultMaglevSize)}
			setHashing(lb, m.GetConsistentHashingLbConfig(), m.GetLocalityWeightedLbConfig() != nil)
		}
		return
	}
}

func setHashing(lb *config.LoadBalancing, h *commonv3.ConsistentHashingLbConfig, localityWeighted bool) {
	if h != nil {
		lb.UseHostnameForHashing = h.GetUseHostnameForHashing()
		lb.HashBalanceFactor = given(h.GetHashBalanceFactor(), 0)
	}
	if localityWeighted {
		lb.LocalityWeighted, lb.ZoneAware = true, nil
	}
}

func setLocality(lb *config.LoadBalancing, l *commonv3.LocalityLbConfig) {
	switch {
	case l.GetLocalityWeightedLbConfig() != nil:
		lb.LocalityWeighted, lb.ZoneAware = true, nil
	case l.GetZoneAwareLbConfig() != nil:
		z := l.GetZoneAwareLbConfig()
		lb.ZoneAware = zoneAware(z)
		if f := z.GetForceLocalZone(); f != nil {
			lb.ZoneAware.ForceLocal = &config.ForceLocal{MinSize: given(f.GetMinSize(), 1)}
		}
	}
}
