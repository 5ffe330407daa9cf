package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// picks returns the addresses of n picks.
func picks(c *Cluster, n int) string {
	var out []string
	for range n {
		h, err := c.Pick(nil)
		if err != nil {
			return err.Error()
		}
		out = append(out, strings.TrimPrefix(strings.TrimSuffix(h.AddressText(), ":80"), "10.0.0."))
	}
	return strings.Join(out, " ")
}

func started(t testing.TB, change func(*Config), text string) (*rig, *Cluster) {
	t.Helper()
	r := newRig(t, change)
	r.Start()
	p := parse(t, text)
	if _, err := r.AddOrUpdate(p, "v1"); err != nil {
		t.Fatal(err)
	}
	if h := r.Cluster(p.Cluster.Name); h != nil {
		return r, h.Current()
	}
	return r, nil
}

func TestPick(t *testing.T) {
	_, c := started(t, nil, static("c", 3, ""))
	if got := picks(c, 6); got != "1 2 3 1 2 3" {
		t.Errorf("picks %s", got)
	}
	_, c = started(t, func(c *Config) { c.Seed = 2 }, static("c", 3, ""))
	if got := picks(c, 3); got != "3 1 2" {
		t.Errorf("picks with a seed %s", got)
	}
	r, c := started(t, nil, "name: empty\nconnect_timeout: 1s\n")
	if _, err := c.Pick(nil); !errors.Is(err, ErrNoHost) {
		t.Errorf("err = %v", err)
	}
	r.check("cluster.empty.", map[string]uint64{"upstream_cx_none_healthy": 1})
}

func TestMembership(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", ""))
	c := r.source("c")
	if r.Cluster("c") != nil {
		t.Error("active before it found anything")
	}
	c.UpdateHosts(0, hosts(spec(1, weighing(7)), spec(2, eds(status.DegradedEDSHealth)), spec(3, eds(status.EDSStatusDraining))))
	c.DiscoveryDone()
	if r.Cluster("c").Current() != c {
		t.Fatal("not active when ready")
	}
	r.check("cluster.c.", map[string]uint64{
		"membership_total": 3, "membership_healthy": 1, "membership_degraded": 1, "membership_excluded": 1,
		"membership_change": 1, "max_host_weight": 7, "warming_state": 0, "update_no_rebuild": 0,
	})
	if r.events() != "added c 10.0.0.1:80\nadded c 10.0.0.2:80\nadded c 10.0.0.3:80\nready c all" {
		t.Errorf("told %q", r.events())
	}
	if c.UpdateHosts(0, hosts(spec(1, weighing(7)), spec(2, eds(status.DegradedEDSHealth)), spec(3, eds(status.EDSStatusDraining)))) {
		t.Error("the same hosts are a change")
	}
	r.check("cluster.c.", map[string]uint64{"update_no_rebuild": 1, "membership_change": 1})
	// A host that moves counts in both priorities and causes no notification.
	c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(1)}}, {Hosts: []host.Spec{spec(2), spec(3)}}}})
	r.check("cluster.c.", map[string]uint64{"membership_change": 3, "membership_total": 3, "membership_healthy": 3})
	if got := shown(c); got != "0:1 1:2 1:3" || r.events() != "" {
		t.Errorf("hosts %s, told %q", got, r.events())
	}
	// The factor alone is a change.
	if !c.UpdateHosts(0, &Assignment{Overprovisioning: 100, Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(1)}}, {Hosts: []host.Spec{spec(2), spec(3)}}}}) {
		t.Error("another factor is no change")
	}
	if c.Sets()[0].Overprovisioning != 100 {
		t.Error("the factor did not arrive")
	}
}

func TestGroupsDoNotReplaceEachOther(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", ""))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	c.UpdateHosts(1, hosts(spec(2), spec(3)))
	if got := shown(c); got != "0:1 0:2 0:2 0:3" {
		t.Errorf("hosts %s", got)
	}
	c.UpdateHosts(0, hosts(spec(4)))
	if got := shown(c); got != "0:4 0:2 0:3" {
		t.Errorf("hosts %s", got)
	}
	c.UpdateHosts(0, hosts())
	if got := shown(c); got != "0:2 0:3" {
		t.Errorf("hosts %s with an empty first group", got)
	}
}

func TestUpdateMergeWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.Start()
		r.add(byEDS("c", "common_lb_config: {update_merge_window: 1s, healthy_panic_threshold: {value: 0}}"))
		c := r.source("c")
		c.UpdateHosts(0, hosts(spec(1), spec(2)))
		c.DiscoveryDone()
		check := func(updated, merged, cancelled, outOf uint64, last string) {
			t.Helper()
			r.check("cluster_manager.", map[string]uint64{
				"cluster_updated": updated, "cluster_updated_via_merge": merged,
				"update_merge_cancelled": cancelled, "update_out_of_merge_window": outOf,
			})
			got := map[string]bool{}
			for _, h := range strings.Fields(picks(c, 6)) {
				got[h] = true
			}
			for _, h := range strings.Fields(last) {
				if !got[h] {
					t.Errorf("host %s is not picked", h)
				}
			}
			if len(got) != len(strings.Fields(last)) {
				t.Errorf("picked %v, want %s", got, last)
			}
		}
		bad, good := eds(status.FailedEDSHealth), eds(0)
		check(0, 0, 0, 0, "1 2")
		c.UpdateHosts(0, hosts(spec(1, bad), spec(2))) // the first one goes through
		check(1, 0, 0, 1, "2")
		c.UpdateHosts(0, hosts(spec(1, good), spec(2, bad))) // the next waits
		check(1, 0, 0, 1, "2")
		r.check("cluster.c.", map[string]uint64{"membership_healthy": 1})
		time.Sleep(500 * time.Millisecond)
		c.UpdateHosts(0, hosts(spec(1, good), spec(2, good)))
		check(1, 0, 0, 1, "2")
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		check(1, 1, 0, 1, "1 2") // both at once
		c.UpdateHosts(0, hosts(spec(1, bad), spec(2)))
		check(1, 1, 0, 1, "1 2")
		c.UpdateHosts(0, hosts(spec(1, bad), spec(2), spec(3))) // members do not wait
		check(2, 1, 1, 1, "2 3")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(2, 1, 1, 1, "2 3") // the timer was dropped
		c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
		check(3, 1, 1, 2, "1 2 3") // quiet for long enough
		time.Sleep(time.Second)
		c.UpdateHosts(0, hosts(spec(1, bad), spec(2), spec(3)))
		check(3, 1, 1, 2, "1 2 3") // the window is not over at its end
	})
}

// TestMergedUpdatesWaitByPriority: what one priority delivers does not carry
// along what another one still merges.
func TestMergedUpdatesWaitByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.Start()
		r.add(byEDS("c", "common_lb_config: {update_merge_window: 1s, healthy_panic_threshold: {value: 0}}"))
		c := r.source("c")
		two := func(a []host.Spec, b ...host.Spec) *Assignment {
			return &Assignment{Priorities: []PriorityHosts{{Hosts: a}, {Hosts: b}}}
		}
		bad := eds(status.FailedEDSHealth)
		c.UpdateHosts(0, two([]host.Spec{spec(1), spec(2)}, spec(3)))
		c.DiscoveryDone()
		c.UpdateHosts(0, two([]host.Spec{spec(1), spec(2, weighing(1), bad)}, spec(3)))
		c.UpdateHosts(0, two([]host.Spec{spec(1, bad), spec(2, bad)}, spec(3))) // waits
		c.UpdateHosts(0, two([]host.Spec{spec(1, bad), spec(2, bad)}, spec(3), spec(4)))
		// P0 still counts as half healthy, so it has 70 of 100, all on host 1.
		if n := strings.Count(" "+picks(c, 300), " 1"); n < 150 || n > 270 {
			t.Errorf("%d of 300 picks at the host that fails, want about 210", n)
		}
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		if got := picks(c, 50); strings.Contains(" "+got, " 1") {
			t.Errorf("picks %s after the window", got)
		}
	})
}

func TestNoMergeWindow(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", "common_lb_config: {update_merge_window: 0s}"))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	c.DiscoveryDone()
	for i := range 4 {
		c.UpdateHosts(0, hosts(spec(1), spec(2, weighing(uint32(i+2)))))
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_updated": 4, "cluster_updated_via_merge": 0, "update_out_of_merge_window": 0})
}

const checks = `health_checks:
- {timeout: 30s, interval: 0.001s, unhealthy_edge_interval: 0.001s, no_traffic_interval: 0.001s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}`

// backend is a real server whose health a test decides.
type backend struct {
	*httptest.Server
	bad atomic.Bool
}

func newBackend(t *testing.T) *backend {
	b := new(backend)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.bad.Load() {
			w.WriteHeader(503)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) spec() host.Spec {
	return host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(b.Listener.Addr().String())}}
}

// TestCheckedCluster: a cluster is ready when its hosts were checked; failing
// ones get no traffic; killed ones neither; a host that discovery forgot stays
// until it fails.
func TestCheckedCluster(t *testing.T) {
	a, b := newBackend(t), newBackend(t)
	b.bad.Store(true)
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", checks+"\nclose_connections_on_host_health_failure: true\ncommon_lb_config: {update_merge_window: 0s}"))
	c := r.source("c")
	zoned := b.spec()
	zoned.Locality = config.Locality{Zone: "b"}
	both := hosts(a.spec(), zoned)
	both.Priorities[0].LocalityWeights = map[config.Locality]uint32{zoned.Locality: 3}
	c.UpdateHosts(0, both)
	c.DiscoveryDone()
	<-c.readyChan()
	only := func(want *backend) bool {
		for range 4 {
			if h, err := c.Pick(nil); err != nil || h.AddressText() != want.Listener.Addr().String() {
				return false
			}
		}
		return true
	}
	if !only(a) {
		t.Errorf("hosts %s", shown(c))
	}
	r.check("cluster.c.", map[string]uint64{"health_check.healthy": 1, "membership_healthy": 1})
	b.bad.Store(false)
	waittest.Until(t, "b turns healthy", func() bool { return r.value("cluster.c.membership_healthy") == 2 })
	r.events()
	a.CloseClientConnections()
	a.Close()
	waittest.Until(t, "a fails", func() bool { return only(b) })
	waittest.Until(t, "its connections are closed", func() bool {
		return strings.Contains(r.events(), "close c "+a.Listener.Addr().String())
	})
	// b is forgotten while healthy.
	c.UpdateHosts(0, hosts(a.spec()))
	if !only(b) || !strings.Contains(shown(c), "/pending_dynamic_removal") {
		t.Errorf("hosts %s", shown(c))
	}
	if w := c.assignment.Priorities[0].LocalityWeights[zoned.Locality]; w != 3 {
		t.Errorf("the weight of the locality of b is %d", w)
	}
	b.bad.Store(true)
	waittest.Until(t, "b is removed", func() bool { return len(c.Sets()[0].Hosts) == 1 })
	r.check("cluster.c.", map[string]uint64{"membership_total": 1})
	if r.value("cluster.c.upstream_cx_total") != 0 {
		t.Error("checks count as connections")
	}
}

// readyChan is closed when the cluster is ready.
func (c *Cluster) readyChan() <-chan struct{} {
	ch := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		close(ch)
		return ch
	}
	c.onReady = append(c.onReady, func() { close(ch) })
	return ch
}

func TestReadyWhenTheUncheckedHostGoes(t *testing.T) {
	stuck, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", strings.Replace(checks, "timeout: 0.05s", "timeout: 60s", 1)))
	c := r.source("c")
	c.UpdateHosts(0, hosts(host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(stuck.Addr().String())}}))
	c.DiscoveryDone()
	if c.Ready() {
		t.Fatal("ready before the first check")
	}
	c.UpdateHosts(0, hosts())
	if !c.Ready() {
		t.Error("not ready though no host is left to be checked")
	}
}

func TestEjectedHostGetsNoTraffic(t *testing.T) {
	r, c := started(t, nil, static("c", 3, "outlier_detection: {max_ejection_percent: 50}\ncommon_lb_config: {update_merge_window: 0s}"))
	bad := c.Sets()[0].Hosts[1]
	for range 5 {
		c.RequestStarted(bad)
		c.RequestFinished(bad, RequestEnd{Status: 503})
	}
	if got := picks(c, 4); strings.Contains(got, "2") {
		t.Errorf("picks %s after the ejection", got)
	}
	r.check("cluster.c.", map[string]uint64{
		"outlier_detection.ejections_active": 1, "outlier_detection.ejections_enforced_consecutive_5xx": 1,
		"membership_healthy": 2, "upstream_rq_5xx": 5, "upstream_rq_503": 5, "upstream_rq_completed": 5,
	})
	if r.events() != "added c 10.0.0.1:80\nadded c 10.0.0.2:80\nadded c 10.0.0.3:80\nready c all\nhealth c 10.0.0.2:80" {
		t.Error("hooks were told otherwise")
	}
}

func TestCloseOnHostSetChange(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", "common_lb_config: {close_connections_on_host_set_change: true}"))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1)))
	r.events()
	c.UpdateHosts(0, hosts(spec(1, weighing(2))))
	if got := r.events(); got != "" {
		t.Errorf("a weight: %q", got)
	}
	c.UpdateHosts(0, hosts(spec(2)))
	if got := r.events(); got != "removed c 10.0.0.1:80\nadded c 10.0.0.2:80\nclose c all" {
		t.Errorf("members: %q", got)
	}
	r.CloseConnections()
	if got := r.events(); got != "close c all" {
		t.Errorf("at the end: %q", got)
	}
}

func TestPanicThresholdByRuntime(t *testing.T) {
	rt := &values{}
	r, c := started(t, func(c *Config) { c.Runtime = rt }, static("c", 2, "common_lb_config: {healthy_panic_threshold: {value: 60}, update_merge_window: 0s}"))
	h := c.Sets()[0].Hosts[0]
	h.SetFlags(status.FailedOutlierCheck)
	c.healthChanged(h, 0)
	if got := picks(c, 4); !strings.Contains(got, "1") {
		t.Errorf("picks %s, want a panic", got)
	}
	r.check("cluster.c.", map[string]uint64{"lb_healthy_panic": 4})
	rt.set("upstream.healthy_panic_threshold", 40)
	r.RuntimeChanged()
	if got := picks(c, 4); strings.Contains(got, "1") {
		t.Errorf("picks %s, want no panic", got)
	}
	h.ClearFlags(status.FailedOutlierCheck)
	c.healthChanged(h, 0)
	rt.set("upstream.healthy_panic_threshold", 1000) // more than all hosts
	r.RuntimeChanged()
	picks(c, 4)
	r.check("cluster.c.", map[string]uint64{"lb_healthy_panic": 4})
}

func TestSenselessBiasIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	rt := &values{}
	_, c := started(t, func(c *Config) { c.Runtime = rt; c.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
		strings.ReplaceAll(static("c", 2, "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {active_request_bias: {default_value: 1, runtime_key: bias}}"),
			"10.0.0.1, port_value: 80}}}", "10.0.0.1, port_value: 80}}}\n      load_balancing_weight: 3"))
	c.Sets()[0].Hosts[0].Stats.RqActive.Inc()
	rt.set("bias", 0)
	if picks(c, 20); log.Len() > 0 {
		t.Errorf("the bias 0 is logged: %s", log.String())
	}
	rt.set("bias", -1)
	picks(c, 20)
	if n := strings.Count(log.String(), "active request bias must be at least 0"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// TestBiasWithoutARuntimeKey: the bias 2 counts requests twice as much as the usual one.
func TestBiasWithoutARuntimeKey(t *testing.T) {
	for bias, share := range map[string]int{"1": 600, "2": 429} { // 3/2 or 3/4 to 1
		_, c := started(t, nil, strings.ReplaceAll(static("c", 2, "lb_policy: LEAST_REQUEST\nleast_request_lb_config: {active_request_bias: {default_value: "+bias+"}}"),
			"10.0.0.1, port_value: 80}}}", "10.0.0.1, port_value: 80}}}\n      load_balancing_weight: 3"))
		h := c.Sets()[0].Hosts
		first := slices.IndexFunc(h, func(h *host.Host) bool { return h.Weight() == 3 })
		h[first].Stats.RqActive.Inc()
		if n := strings.Count(picks(c, 1000), "1"); n < share-20 || n > share+20 {
			t.Errorf("bias %s: %d of 1000 picks are the heavy host, want about %d", bias, n, share)
		}
	}
}

func TestMaintenanceMode(t *testing.T) {
	rt := &values{}
	r, c := started(t, func(c *Config) { c.Runtime = rt; c.Rand = func() uint64 { return 29 } }, static("c", 1, ""))
	if c.MaintenanceMode() {
		t.Error("without a value")
	}
	rt.set("upstream.maintenance_mode.c", 29)
	if c.MaintenanceMode() {
		t.Error("drawn 29 of 29 percent")
	}
	rt.set("upstream.maintenance_mode.c", 30)
	if !c.MaintenanceMode() || r.value("cluster.c.upstream_rq_maintenance_mode") != 1 {
		t.Error("not drawn, or not counted")
	}
}

func TestZoneAwareWithALocalCluster(t *testing.T) {
	zone := config.Locality{Zone: "a"}
	r := newRig(t, func(c *Config) { c.Local, c.LocalCluster = &zone, "me" })
	r.Start()
	r.add(byEDS("me", ""), byEDS("c", ""))
	me, c := r.source("me"), r.source("c")
	me.UpdateHosts(0, hosts(spec(100, inZone("a")), spec(101, inZone("b"))))
	me.DiscoveryDone()
	var list []host.Spec
	for i := range 6 {
		list = append(list, spec(i+1, inZone(string(rune('a'+i%2)))))
	}
	c.UpdateHosts(0, hosts(list...))
	c.DiscoveryDone()
	for _, h := range strings.Fields(picks(c, 12)) {
		if strings.Contains("2 4 6", h) {
			t.Errorf("picked %s of the other zone", h)
		}
	}
	r.check("cluster.c.", map[string]uint64{"lb_zone_routing_all_directly": 12})
	// The local cluster loses its other zone: nothing to balance against.
	me.UpdateHosts(0, hosts(spec(100, inZone("a"))))
	if got := picks(c, 6); !strings.Contains(got, "2") {
		t.Errorf("picks %s, want all zones", got)
	}
}

// TestLocalClusterGoes replaces the local cluster and then removes it. Other clusters
// must not compare themselves with hosts of a removed cluster.
func TestLocalClusterGoes(t *testing.T) {
	zone := config.Locality{Zone: "a"}
	r := newRig(t, func(c *Config) { c.Local, c.LocalCluster = &zone, "me" })
	r.Start()
	r.add(byEDS("me", ""), byEDS("c", ""))
	both := hosts(spec(100, inZone("a")), spec(101, inZone("b")))
	first, c := r.source("me"), r.source("c")
	first.UpdateHosts(0, both)
	first.DiscoveryDone()
	var list []host.Spec
	for i := range 6 {
		list = append(list, spec(i+1, inZone(string(rune('a'+i%2)))))
	}
	c.UpdateHosts(0, hosts(list...))
	c.DiscoveryDone()
	check := func(when string, stays bool) {
		t.Helper()
		got := picks(c, 6)
		if zoned := !strings.Contains(got, "2"); zoned != stays {
			t.Errorf("%s: picks %s; all in the own zone: %t, want %t", when, got, zoned, stays)
		}
	}
	check("at first", true)
	r.add(byEDS("me", "lb_policy: RANDOM"))
	second := r.source("me")
	second.UpdateHosts(0, both)
	check("while a version warms", true)
	second.DiscoveryDone()
	check("with the second version", true)
	second.UpdateHosts(0, hosts(spec(100, inZone("a"))))
	check("with one zone", false)
	second.UpdateHosts(0, both)
	check("with both again", true)
	r.Remove("me")
	check("without the local cluster", false)
	r.add(byEDS("me", ""))
	third := r.source("me")
	third.UpdateHosts(0, both)
	third.DiscoveryDone()
	check("with a new one", true)
}

func TestLocalityWeightsReachTheBalancer(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", "common_lb_config: {locality_weighted_lb_config: {}}"))
	c := r.source("c")
	a := hosts(spec(1, inZone("a")), spec(2, inZone("b")))
	a.Priorities[0].LocalityWeights = map[config.Locality]uint32{{Zone: "a"}: 3, {Zone: "b"}: 1}
	c.UpdateHosts(0, a)
	c.DiscoveryDone()
	n := strings.Count(picks(c, 400), "1")
	if math.Abs(float64(n)-300) > 8 {
		t.Errorf("%d of 400 to the locality with 3 of 4 shares", n)
	}
	b := hosts(spec(1, inZone("a")), spec(2, inZone("b")))
	b.Priorities[0].LocalityWeights = map[config.Locality]uint32{{Zone: "a"}: 0, {Zone: "b"}: 1}
	if !c.UpdateHosts(0, b) {
		t.Fatal("other weights are no change")
	}
}

func TestWeightsOfLocalitiesThatAreGoneAreForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", "common_lb_config: {locality_weighted_lb_config: {}}"))
	c := r.source("c")
	for i := range 20 {
		zone := fmt.Sprint("zone-", i)
		a := hosts(spec(1, inZone(zone)))
		a.Priorities[0].LocalityWeights = map[config.Locality]uint32{{Zone: zone}: 3, {Zone: zone + "-empty"}: 2}
		c.UpdateHosts(0, a)
		if known := c.assignment.Priorities[0].LocalityWeights; len(known) != 2 || known[config.Locality{Zone: zone}] != 3 {
			t.Fatalf("after %d assignments the weights are %v", i+1, known)
		}
	}
	c.UpdateHosts(0, &Assignment{})
	if known := c.assignment.Priorities[0].LocalityWeights; len(known) != 0 {
		t.Errorf("without hosts the weights are %v", known)
	}

	// Of several priorities, only the last one or only the first one changes.
	weights := func(zones ...string) (out []PriorityHosts) {
		for p, zone := range zones {
			at := hosts(spec(1+p, inZone(zone))).Priorities[0]
			at.LocalityWeights = map[config.Locality]uint32{{Zone: zone}: 3}
			out = append(out, at)
		}
		return out
	}
	for _, zones := range [][]string{{"a", "b"}, {"a", "c"}, {"d", "c"}} {
		c.UpdateHosts(0, &Assignment{Priorities: weights(zones...)})
		for p, zone := range zones {
			if known := c.assignment.Priorities[p].LocalityWeights; len(known) != 1 || known[config.Locality{Zone: zone}] != 3 {
				t.Errorf("%v: the weights of priority %d are %v", zones, p, known)
			}
		}
	}

	// The last priority never has hosts.
	a := &Assignment{Priorities: append(weights("a", "b"), PriorityHosts{LocalityWeights: map[config.Locality]uint32{{Zone: "c"}: 3}})}
	c.UpdateHosts(0, a)
	c.UpdateHosts(0, &Assignment{Priorities: weights("a", "b")})
	if known := c.assignment.Priorities[2].LocalityWeights; len(known) != 0 {
		t.Errorf("without hosts the weights of priority 2 are %v", known)
	}

	// Of many localities, one changes.
	at := &a.Priorities[0]
	for i := range 20 {
		at.LocalityWeights[config.Locality{Zone: fmt.Sprint("z", i)}] = 1
	}
	for i := range 20 {
		*at = PriorityHosts{Hosts: at.Hosts, LocalityWeights: maps.Clone(at.LocalityWeights)}
		at.LocalityWeights[config.Locality{Zone: fmt.Sprint("z", i)}] = 2
		c.UpdateHosts(0, a)
		if known := c.assignment.Priorities[0].LocalityWeights; !maps.Equal(known, at.LocalityWeights) {
			t.Errorf("weights %v, want %v", known, at.LocalityWeights)
		}
	}
}

func TestResolveAssignment(t *testing.T) {
	p := parse(t, `
name: c
type: STATIC
connect_timeout: 1s
load_assignment:
  cluster_name: c
  policy: {overprovisioning_factor: 120}
  endpoints:
  - locality: {region: r, zone: z}
    load_balancing_weight: 5
    lb_endpoints:
    - endpoint: {hostname: one, address: {socket_address: {address: "::1", port_value: 81}}, health_check_config: {port_value: 99, hostname: hc}}
      load_balancing_weight: 9
      health_status: DRAINING
      metadata: {filter_metadata: {proxy.lb: {canary: true}}}
  - priority: 1
    lb_endpoints:
    - endpoint: {address: {pipe: {path: /run/x}}}
      health_status: TIMEOUT
`)
	a, err := ResolveAssignment(p.Cluster.Assignment)
	if err != nil {
		t.Fatal(err)
	}
	one := a.Priorities[0].Hosts[0]
	if one.Address.String() != "[::1]:81" || one.HealthCheckAddress.String() != "[::1]:99" || one.Hostname != "one" || one.HealthCheckHostname != "hc" ||
		one.Weight != 9 || !one.Canary || one.EDS != status.EDSStatusDraining || one.Locality != (config.Locality{Region: "r", Zone: "z"}) {
		t.Errorf("first host %+v", one)
	}
	two := a.Priorities[1].Hosts[0]
	if two.Address.String() != "/run/x" || two.Address.Network() != "unix" || two.EDS != status.FailedEDSHealth || two.Priority != 1 {
		t.Errorf("second host %+v", two)
	}
	if a.Overprovisioning != 120 || a.Priorities[0].LocalityWeights[one.Locality] != 5 {
		t.Errorf("assignment %+v", a)
	}
	if _, err := ResolveAssignment(&config.Assignment{Localities: []config.LocalityEndpoints{{Endpoints: []config.Endpoint{{Address: config.AddressSpec{Kind: config.SocketAddress, Host: "a.example"}}}}}}); err == nil {
		t.Error("a name was taken for an address")
	}
}

func TestMoveHost(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", "lb_policy: MAGLEV"))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1)))
	c.DiscoveryDone()
	h := c.Sets()[0].Hosts[0]
	h.Stats.RqTotal.Inc()
	r.events()
	c.MoveHost(h, spec(2).Address, config.Address{})
	if got := picks(c, 1); got != "2" || c.Sets()[0].Hosts[0] != h || h.Stats.RqTotal.Value() != 1 || r.events() != "" {
		t.Errorf("picked %s; hosts %s", got, shown(c))
	}
	c.MoveHost(h, spec(3).Address, config.Address{})
	if got := picks(c, 1); got != "3" {
		t.Errorf("picked %s after a second move", got)
	}
	r.check("cluster.c.", map[string]uint64{"membership_change": 1, "membership_total": 1})
}

// TestHostsThatFailTogether ejects several hosts in one interval: connections to each of
// them are closed, whichever was published first.
func TestHostsThatFailTogether(t *testing.T) {
	r, c := started(t, nil, static("c", 4, "close_connections_on_host_health_failure: true\n"+
		"outlier_detection: {max_ejection_percent: 100, consecutive_5xx: 1000, enforcing_success_rate: 0, enforcing_failure_percentage: 100, failure_percentage_minimum_hosts: 1, failure_percentage_request_volume: 1}"))
	for i, h := range c.Sets()[0].Hosts {
		h.ReportCode(200 + i/2*300)
	}
	r.events()
	c.detector.Tick(time.Now())
	if got := r.events(); strings.Count(got, "close c") != 2 {
		t.Errorf("told %q, want connections to both failed hosts closed", got)
	}
}

func TestOnlyTurningUnhealthyClosesConnections(t *testing.T) {
	r, c := started(t, nil, static("c", 2, "close_connections_on_host_health_failure: true"))
	h := c.Sets()[0].Hosts[0]
	r.events()
	for i, tt := range []struct {
		set, clear status.Flags
		want       string
	}{
		{status.DegradedActiveHC, 0, "health c 10.0.0.1:80"},
		{status.FailedActiveHC, 0, "health c 10.0.0.1:80\nclose c 10.0.0.1:80"},
		{status.ExcludedViaImmediateHCFail, 0, "health c 10.0.0.1:80"},
		{status.FailedOutlierCheck, 0, "health c 10.0.0.1:80"},
		{0, status.FailedActiveHC, "health c 10.0.0.1:80"},
		{0, status.FailedOutlierCheck, "health c 10.0.0.1:80"},
		{status.FailedOutlierCheck, 0, "health c 10.0.0.1:80\nclose c 10.0.0.1:80"},
	} {
		before := h.Flags()
		h.SetFlags(tt.set)
		h.ClearFlags(tt.clear)
		c.healthChanged(h, before)
		if got := r.events(); got != tt.want {
			t.Errorf("step %d: told %q, want %q", i, got, tt.want)
		}
	}
}
