package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// eds adds a cluster and returns it with its source running.
func (r *rig) eds(more string) *Cluster {
	r.t.Helper()
	p, err := decode.NewDecoder(decode.Options{HealthCheckers: []string{"ping"}}).ClusterText("test.yaml", []byte(byEDS("c", more)), config.FormV3)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Start()
	if _, err := r.AddOrUpdate(p, ""); err != nil {
		r.t.Fatal(err)
	}
	return r.source("c")
}

const ping = "health_checks: [{timeout: 1s, interval: 1s, no_traffic_interval: 60s, initial_jitter: 0.5s, unhealthy_threshold: 1, healthy_threshold: 2, custom_health_check: {name: ping}}]\n"

func alwaysGood(c *Config) {
	c.Rand = func() uint64 { return uint64(100 * time.Millisecond) }
	c.CustomCheck = func(*config.Cluster) (func(*host.Host) health.Prober, error) {
		return func(*host.Host) health.Prober { return fixed{} }, nil
	}
}

func TestNewHostsAreIgnoredUntilTheirFirstCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping + "common_lb_config: {ignore_new_hosts_until_first_hc: true}")
		c.UpdateHosts(0, hosts(spec(1)))
		if got := shown(c); got != "0:1/failed_active_hc/pending_active_hc" {
			t.Errorf("hosts %s", got)
		}
		r.check("cluster.c.", map[string]uint64{"membership_excluded": 1})
		time.Sleep(time.Second)
		r.check("cluster.c.", map[string]uint64{"membership_excluded": 0, "membership_healthy": 1})
		r.Close()
	})
}

func TestHealthIsIgnoredOnRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping + "ignore_health_on_host_removal: true")
		c.UpdateHosts(0, hosts(spec(1)))
		time.Sleep(time.Second)
		c.UpdateHosts(0, hosts())
		if got := shown(c); got != "" {
			t.Errorf("hosts %s, want none though it was healthy", got)
		}
		r.Close()
	})
}

func TestChecksAreRareWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping)
		c.UpdateHosts(0, hosts(spec(1)))
		time.Sleep(60 * time.Second)
		r.check("cluster.c.health_check.", map[string]uint64{"attempt": 1})
		c.ConnStarted(c.Sets()[0].Hosts[0])
		time.Sleep(5 * time.Second)
		if n := r.value("cluster.c.health_check.attempt"); n < 5 {
			t.Errorf("%d checks after the first connection, want one per second", n)
		}
		r.Close()
	})
}

func TestImmediateFailureAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping)
		c.UpdateHosts(0, hosts(spec(1)))
		h := c.Sets()[0].Hosts[0]
		c.ConnStarted(h)
		time.Sleep(time.Second)
		c.ReportImmediateFailure(h)
		if got := shown(c); got != "0:1/failed_active_hc/excluded_via_immediate_hc_fail" {
			t.Errorf("hosts %s", got)
		}
		r.check("cluster.c.", map[string]uint64{"health_check.passive_failure": 1, "membership_excluded": 1})
		time.Sleep(3 * time.Second)
		if got := shown(c); got != "0:1" {
			t.Errorf("hosts %s after good checks", got)
		}
		r.Close()
	})
}

func TestPassingCheckBringsAnEjectedHostBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		c := r.eds(ping + "outlier_detection: {max_ejection_percent: 100, base_ejection_time: 3600s, max_ejection_time: 3600s}")
		c.UpdateHosts(0, hosts(spec(1)))
		h := c.Sets()[0].Hosts[0]
		c.ConnStarted(h)
		time.Sleep(time.Second)
		for range 5 {
			h.ReportCode(500)
		}
		if got := shown(c); got != "0:1/failed_outlier_check" {
			t.Errorf("hosts %s", got)
		}
		time.Sleep(2 * time.Second)
		if got := shown(c); got != "0:1" {
			t.Errorf("hosts %s after a good check", got)
		}
		r.Close()
	})
}

func TestTrafficFailsOnPanic(t *testing.T) {
	r := newRig(t, nil)
	c := r.eds("common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}")
	c.UpdateHosts(0, hosts(spec(1), spec(2, eds(status.FailedEDSHealth)), spec(3, eds(status.FailedEDSHealth))))
	c.DiscoveryDone()
	if got := picks(c, 1); got != ErrNoHost.Error() {
		t.Errorf("picked %s in panic", got)
	}
}

func TestHashByHostname(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byDNS("c") + "lb_policy: RING_HASH\ncommon_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true}}\n")
	c := r.source("c")
	named := func(n string) func(*host.Spec) { return func(s *host.Spec) { s.Hostname = n } }
	c.UpdateHosts(0, hosts(spec(1, named("one")), spec(2, named("two"))))
	c.DiscoveryDone()
	for i, key := range []string{"one_7", "two_7"} {
		h, err := c.Pick(&lb.Context{Hash: xxhash.Sum64String(key), HasHash: true})
		if err != nil || h != c.Sets()[0].Hosts[i] {
			t.Errorf("%s: %v, %v", key, h, err)
		}
	}
}

func TestPolicyOptionsReachTheBalancer(t *testing.T) {
	r := newRig(t, nil)
	c := r.eds("lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 11}")
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	c.DiscoveryDone()
	r.check("cluster.c.maglev_lb.", map[string]uint64{"min_entries_per_host": 5, "max_entries_per_host": 6})

	drawn := 0
	r = newRig(t, func(c *Config) { c.Rand = func() uint64 { drawn++; return 0 } })
	c = r.eds("lb_policy: LEAST_REQUEST\nleast_request_lb_config: {choice_count: 5}")
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	c.DiscoveryDone()
	drawn = 0
	c.Pick(nil)
	if drawn != 6 { // one for the priority
		t.Errorf("%d numbers drawn, want 6", drawn)
	}
}

func TestOriginalDstHeader(t *testing.T) {
	for more, want := range map[string]string{
		"type: STATIC":       "",
		"type: ORIGINAL_DST": "",
		"type: ORIGINAL_DST\noriginal_dst_lb_config: {use_http_header: true}":                            "x-proxy-original-dst-host",
		"type: ORIGINAL_DST\noriginal_dst_lb_config: {use_http_header: true, http_header_name: x-to-us}": "x-to-us",
	} {
		if strings.Contains(more, "ORIGINAL") {
			more += "\nlb_policy: CLUSTER_PROVIDED"
		}
		_, c := started(t, nil, "name: c\n"+more+"\n")
		if got := c.OriginalDstHeader(); got != want {
			t.Errorf("%s: %q, want %q", more, got, want)
		}
	}
}

func TestHashedLoadIsBounded(t *testing.T) {
	r := newRig(t, nil)
	c := r.eds("lb_policy: MAGLEV\ncommon_lb_config: {consistent_hashing_lb_config: {hash_balance_factor: 100}}")
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	c.DiscoveryDone()
	ctx := &lb.Context{Hash: 7, HasHash: true}
	seen := map[*host.Host]int{}
	for range 10 {
		h, err := c.Pick(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seen[h]++
		c.RequestStarted(h)
	}
	for h, n := range seen {
		if n < 4 || n > 6 {
			t.Errorf("%s got %d of 10 requests at once, want no more than the average", h.AddressText(), n)
		}
	}
}

// TestSlowStartWithoutARuntimeKey: after a quarter of the window, the aggression 2 gives half
// of the weight.
func TestSlowStartWithoutARuntimeKey(t *testing.T) {
	for aggression, share := range map[int]int{1: 198, 2: 331} { // 25 or 50 of 100 to 1
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			c := r.eds(fmt.Sprintf("round_robin_lb_config: {slow_start_config: {slow_start_window: 100s, min_weight_percent: {value: 1}, aggression: {default_value: %d}}}", aggression))
			c.UpdateHosts(0, hosts(spec(1)))
			c.DiscoveryDone()
			time.Sleep(time.Hour)
			c.UpdateHosts(0, hosts(spec(1), spec(2)))
			time.Sleep(25 * time.Second)
			c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
			if n := strings.Count(picks(c, 1000), "2"); n < share-20 || n > share+20 {
				t.Errorf("aggression %d: %d of 1000 picks are the new host, want about %d", aggression, n, share)
			}
			r.Close()
		})
	}
}

func TestSlowStartByRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &values{}
		r := newRig(t, func(c *Config) { c.Runtime = rt })
		c := r.eds("round_robin_lb_config: {slow_start_config: {slow_start_window: 100s, min_weight_percent: {value: 1}, aggression: {default_value: 1, runtime_key: k}}}")
		c.UpdateHosts(0, hosts(spec(1)))
		c.DiscoveryDone()
		time.Sleep(time.Hour)
		c.UpdateHosts(0, hosts(spec(1), spec(2)))
		if n := strings.Count(picks(c, 1000), "2"); n > 20 {
			t.Errorf("%d of 1000 picks are the new host, want about one in a hundred", n)
		}
		time.Sleep(time.Second)
		rt.set("k", 1000) // (1/100)^(1/1000) is nearly 1
		c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
		if n := strings.Count(picks(c, 1000), "2"); n < 250 {
			t.Errorf("%d of 1000 picks are the new host, want about a third", n)
		}
		r.Close()
	})
}

func TestZoneRoutingByRuntime(t *testing.T) {
	rt := &values{}
	zone := config.Locality{Zone: "a"}
	r := newRig(t, func(c *Config) { c.Runtime, c.Local, c.LocalCluster = rt, &zone, "me" })
	r.Start()
	r.add(byEDS("me", ""))
	me := r.source("me")
	me.UpdateHosts(0, hosts(spec(100, inZone("a")), spec(101, inZone("b"))))
	me.DiscoveryDone()
	c := r.eds("")
	c.UpdateHosts(0, hosts(spec(1, inZone("a")), spec(2, inZone("b")), spec(3, inZone("a")), spec(4, inZone("b"))))
	c.DiscoveryDone()
	r.check("cluster.c.", map[string]uint64{"lb_zone_cluster_too_small": 1})
	rt.set("upstream.zone_routing.min_cluster_size", 4)
	r.RuntimeChanged()
	if got := picks(c, 8); strings.ContainsAny(got, "24") {
		t.Errorf("picks %s, want the own zone only", got)
	}
	rt.set("upstream.zone_routing.enabled", 0)
	r.RuntimeChanged()
	if got := picks(c, 8); !strings.ContainsAny(got, "24") {
		t.Errorf("picks %s, want all zones", got)
	}
}
