package upstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// older parses a cluster in the v2 form.
func older(t *testing.T, text string) *decode.ParsedCluster {
	t.Helper()
	d := decode.NewDecoder(decode.Options{V2: v2form.Messages(), HealthCheckers: []string{"ping"}})
	p, err := d.ClusterText("test.yaml", []byte(text), config.FormV2)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// olderHosts is a cluster in the v2 form with hosts at 10.0.0.1:80 and up, each
// with that metadata for the balancer and locality.
func olderHosts(more string, metadata, zones []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: c\nconnect_timeout: 1s\ntype: STATIC\n%s\nload_assignment:\n  cluster_name: c\n  endpoints:\n", more)
	for i, m := range metadata {
		zone := "z"
		if zones != nil {
			zone = zones[i]
		}
		fmt.Fprintf(&b, `  - locality: {zone: %s}
    load_balancing_weight: %d
    lb_endpoints:
    - metadata: {filter_metadata: {proxy.lb: {%s}}}
      endpoint: {address: {socket_address: {address: 10.0.0.%d, port_value: 80}}}
`, zone, i+1, m, i+1)
	}
	return b.String()
}

// TestBalancingSettingsAreInForce walks the settings of balancing in the v2 form
// from the text to picks. want counts the picks of 60 by host; hosts that were
// not picked are left out.
func TestBalancingSettingsAreInForce(t *testing.T) {
	const subsets = "lb_subset_config: {subset_selectors: [{keys: [v]}], "
	v := func(x any) *lb.Context { return &lb.Context{Criteria: lb.NewCriteria(map[string]any{"v": x})} }
	tags := []string{"v: a", "v: b", "v: b", "v: [c, d]"}
	tests := []struct {
		name, more string
		tags       []string
		zones      []string
		ctx        *lb.Context
		sick       []int // hosts that are not healthy
		want       string
	}{
		{"round-robin", "", tags, nil, nil, nil, "1:15 2:15 3:15 4:15"},
		{"subset", subsets + "fallback_policy: NO_FALLBACK}", tags, nil, v("b"), nil, "2:30 3:30"},
		{"no-fallback", subsets + "fallback_policy: NO_FALLBACK}", tags, nil, v("x"), nil, "none:60"},
		{"any-endpoint", subsets + "fallback_policy: ANY_ENDPOINT}", tags, nil, v("x"), nil, "1:15 2:15 3:15 4:15"},
		{"default-subset", subsets + "fallback_policy: DEFAULT_SUBSET, default_subset: {v: a}}", tags, nil, v("x"), nil, "1:60"},
		{"default-subset-empty", subsets + "fallback_policy: DEFAULT_SUBSET, default_subset: {v: y}}", tags, nil, v("x"), nil, "none:60"},
		{"panic-mode-any", subsets + "fallback_policy: DEFAULT_SUBSET, default_subset: {v: y}, panic_mode_any: true}", tags, nil, v("x"), nil, "1:15 2:15 3:15 4:15"},
		{"list-as-a-whole", subsets + "fallback_policy: NO_FALLBACK}", tags, nil, v("d"), nil, "none:60"},
		{"list-as-any", subsets + "list_as_any: true}", tags, nil, v("d"), nil, "4:60"},
		{"selector-fallback", "lb_subset_config: {fallback_policy: NO_FALLBACK, default_subset: {v: a}, subset_selectors: [{keys: [v], fallback_policy: DEFAULT_SUBSET}]}", tags, nil, v("x"), nil, "1:60"},
		{"keys-subset", "lb_subset_config: {subset_selectors: [{keys: [v]}, {keys: [v, w], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [v]}]}", tags, nil,
			&lb.Context{Criteria: lb.NewCriteria(map[string]any{"v": "a", "w": "x"})}, nil, "1:60"},
		// Locality weights are 1, 2, 3, 4.
		{"locality-weights", "common_lb_config: {locality_weighted_lb_config: {}}", tags, []string{"a", "b", "c", "d"}, nil, nil, "1:6 2:12 3:18 4:24"},
		{"subset-without-locality-weights", "common_lb_config: {locality_weighted_lb_config: {}}\n" + subsets + "}", tags, []string{"a", "b", "c", "d"}, v("b"), nil, "2:30 3:30"},
		{"subset-with-locality-weights", "common_lb_config: {locality_weighted_lb_config: {}}\n" + subsets + "locality_weight_aware: true}", tags, []string{"a", "b", "c", "d"}, v("b"), nil, "2:24 3:36"},
		{"panic", "", tags, nil, nil, []int{1, 2, 3}, "1:15 2:15 3:15 4:15"},
		{"no-panic", "common_lb_config: {healthy_panic_threshold: {value: 0}}", tags, nil, nil, []int{1, 2, 3}, "4:60"},
		{"truncated-threshold", "common_lb_config: {healthy_panic_threshold: {value: 36.9}}", tags, nil, nil, []int{1, 2, 3}, "1:15 2:15 3:15 4:15"},
		{"below-truncated-threshold", "common_lb_config: {healthy_panic_threshold: {value: 25.9}}", tags, nil, nil, []int{1, 2, 3}, "4:60"},
		{"fail-on-panic", "common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}", tags, nil, nil, []int{1, 2, 3}, "none:60"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.Start()
				if _, err := r.AddOrUpdate(older(t, olderHosts(tt.more, tt.tags, tt.zones)), ""); err != nil {
					t.Fatal(err)
				}
				c := r.Cluster("c").Current()
				for _, i := range tt.sick {
					h := c.Sets()[0].Hosts[i-1]
					h.SetFlags(status.FailedOutlierCheck)
					c.healthChanged(h, 0)
				}
				time.Sleep(time.Minute) // beyond the merge window
				got := map[string]int{}
				for range 60 {
					name := "none"
					if h, err := c.Pick(tt.ctx); err == nil {
						name = strings.TrimSuffix(strings.TrimPrefix(h.AddressText(), "10.0.0."), ":80")
					}
					got[name]++
				}
				var list []string
				for name, n := range got {
					list = append(list, fmt.Sprintf("%s:%d", name, n))
				}
				slices.Sort(list)
				if text := strings.Join(list, " "); text != tt.want {
					t.Errorf("picks %s, want %s", text, tt.want)
				}
				r.Close()
			})
		})
	}
}

func TestScaledLocalityWeightsAreInForce(t *testing.T) {
	const text = `
name: c
connect_timeout: 1s
type: STATIC
common_lb_config: {locality_weighted_lb_config: {}}
lb_subset_config: {subset_selectors: [{keys: [v]}], locality_weight_aware: true, scale_locality_weight: %t}
load_assignment:
  cluster_name: c
  endpoints:
  - locality: {zone: a}
    load_balancing_weight: 4
    lb_endpoints:
    - {metadata: {filter_metadata: {proxy.lb: {v: x}}}, endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
    - {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}
  - locality: {zone: b}
    load_balancing_weight: 4
    lb_endpoints:
    - {metadata: {filter_metadata: {proxy.lb: {v: x}}}, endpoint: {address: {socket_address: {address: 10.0.0.3, port_value: 80}}}}
`
	for scale, want := range map[bool]int{false: 30, true: 20} {
		r := newRig(t, nil)
		r.Start()
		if _, err := r.AddOrUpdate(older(t, fmt.Sprintf(text, scale)), ""); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range 60 {
			h, err := r.Cluster("c").Current().Pick(&lb.Context{Criteria: lb.NewCriteria(map[string]any{"v": "x"})})
			if err != nil {
				t.Fatal(err)
			}
			if h.AddressText() == "10.0.0.1:80" {
				n++
			}
		}
		if n < want-2 || n > want+2 {
			t.Errorf("scaled %t: %d of 60 picks, want %d", scale, n, want)
		}
	}
}

func TestRingSettingsAreInForce(t *testing.T) {
	const text = `
name: c
connect_timeout: 1s
lb_policy: RING_HASH
ring_hash_lb_config: {%s}
hosts: [{socket_address: {address: 10.1.2.3, port_value: 8080}}, {socket_address: {address: 10.1.2.4, port_value: 8080}}, {socket_address: {address: "fd00::1", port_value: 8080}}]
`
	for _, tt := range []struct {
		settings string
		size     uint64
		point    uint64 // of 10.1.2.3:8080_0
	}{
		{"", 1026, 11410870849598857684},
		{"minimum_ring_size: 9", 9, 11410870849598857684},
		{"minimum_ring_size: 5, maximum_ring_size: 5", 5, 11410870849598857684},
		{"maximum_ring_size: 1024", 1024, 11410870849598857684},
		{"hash_function: MURMUR_HASH_2", 1026, 14377032246591910286},
	} {
		r := newRig(t, nil)
		r.Start()
		if _, err := r.AddOrUpdate(older(t, fmt.Sprintf(text, tt.settings)), ""); err != nil {
			t.Fatal(err)
		}
		r.check("cluster.c.ring_hash_lb.", map[string]uint64{"size": tt.size})
		h, err := r.Cluster("c").Current().Pick(&lb.Context{Hash: tt.point, HasHash: true})
		if err != nil || h.AddressText() != "10.1.2.3:8080" {
			t.Errorf("%s: picked %v, %v", tt.settings, h, err)
		}
	}
}

func TestZoneRoutingIsInForce(t *testing.T) {
	for settings, want := range map[string]string{
		"":                            "lb_zone_routing_all_directly",
		"routing_enabled: {value: 0}": "",
		"min_cluster_size: 7":         "lb_zone_cluster_too_small",
		"min_cluster_size: 6":         "lb_zone_routing_all_directly",
	} {
		zone := config.Locality{Zone: "a"}
		r := newRig(t, func(c *Config) { c.Local, c.LocalCluster = &zone, "me" })
		r.Start()
		none, zones := make([]string, 6), strings.Fields("a b a b a b")
		me := strings.Replace(olderHosts("", none[:2], zones), "name: c", "name: me", 1)
		more := "common_lb_config: {zone_aware_lb_config: {" + settings + "}}"
		for _, text := range []string{me, olderHosts(more, none, zones)} {
			if _, err := r.AddOrUpdate(older(t, text), ""); err != nil {
				t.Fatal(err)
			}
		}
		r.Cluster("c").Current().Pick(nil)
		for _, name := range []string{"lb_zone_routing_all_directly", "lb_zone_cluster_too_small"} {
			if got := r.value("cluster.c."+name) > 0; got != (name == want) {
				t.Errorf("%q: %s moved: %t", settings, name, got)
			}
		}
	}
}

func TestForcedZoneRoutingIsInForce(t *testing.T) {
	for settings, stays := range map[string]bool{"": false, "force_local_zone: {}": true, "force_local_zone: {min_size: 3}": false} {
		zone := config.Locality{Zone: "a"}
		r := newRig(t, func(c *Config) { c.Local, c.LocalCluster = &zone, "me" })
		r.Start()
		r.add(byEDS("me", ""))
		me := r.source("me")
		me.UpdateHosts(0, hosts(spec(100, inZone("a")), spec(101, inZone("b"))))
		me.DiscoveryDone()
		c := r.eds("load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" +
			"'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin, " +
			"locality_lb_config: {zone_aware_lb_config: {" + settings + "}}}}}]}")
		c.UpdateHosts(0, hosts(spec(1, inZone("a")), spec(2, inZone("a")), spec(3, inZone("b")), spec(4, inZone("b")), spec(5, inZone("b")), spec(6, inZone("b"))))
		c.DiscoveryDone()
		c.Pick(nil)
		if got := r.value("cluster.c.lb_zone_routing_all_directly") > 0; got != stays {
			t.Errorf("%q: all stays: %t", settings, got)
		}
	}
}

func TestHealthIsIgnoredOnRemovalInTheOlderForm(t *testing.T) {
	p := older(t, "name: c\nconnect_timeout: 1s\ndrain_connections_on_host_removal: true\n")
	if !p.Cluster.IgnoreHealthOnHostRemoval {
		t.Error("drain_connections_on_host_removal is lost")
	}
}
