package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

var errDown = errors.New("the server is down")

func TestEveryAddressIsAHost(t *testing.T) {
	const text = `
name: c
type: STRICT_DNS
health_checks: [{timeout: 1s, interval: 1000s, no_traffic_interval: 1000s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
load_assignment:
  cluster_name: c
  policy: {overprovisioning_factor: 200, weighted_priority_health: true}
  endpoints:
  - locality: {region: r, zone: z, sub_zone: s}
    load_balancing_weight: 7
    lb_endpoints:
    - load_balancing_weight: 9
      health_status: DEGRADED
      metadata: {filter_metadata: {proxy.lb: {canary: true, stage: x}}}
      endpoint:
        hostname: shown.example
        address: {socket_address: {address: a.example, port_value: 80}}
        health_check_config: {port_value: 81, hostname: hc.example}
  - priority: 2
    lb_endpoints:
    - endpoint:
        address: {socket_address: {address: b.example, port_value: 82}}
        health_check_config: {disable_active_health_check: true}
    - endpoint:
        address: {socket_address: {address: c.example, port_value: 83}}
        health_check_config: {address: {socket_address: {address: 127.0.0.9, port_value: 84}}}
`
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1", "10.0.0.1", "fd00::1")
		b.put("b.example", "10.0.0.2")
		b.put("c.example", "10.0.0.2")
		r := start(t, Config{Resolver: b}, text, upstream.Hooks{})
		synctest.Wait()
		if got := r.shown(); got != "10.0.0.1:80 [fd00::1]:80 2:10.0.0.2:82 2:10.0.0.2:83" && got != "10.0.0.1:80 [fd00::1]:80 2:10.0.0.2:83 2:10.0.0.2:82" {
			t.Fatalf("hosts %s", got)
		}
		sets := r.c.Sets()
		for i, check := range []string{"10.0.0.1:81", "[fd00::1]:81"} {
			h := sets[0].Hosts[i]
			if h.Hostname() != "shown.example" || h.Weight() != 9 || !h.Canary() || h.Metadata()["proxy.lb"]["stage"] != "x" ||
				h.Locality() != (config.Locality{Region: "r", Zone: "z", SubZone: "s"}) || h.Flags()&status.DegradedEDSHealth == 0 ||
				h.HealthCheckAddress().String() != check || h.HealthCheckHostname() != "hc.example" {
				t.Errorf("host %d: %s %d %t %v %v %s %s %s", i, h.Hostname(), h.Weight(), h.Canary(), h.Metadata(), h.Locality(), h.Flags(), h.HealthCheckAddress(), h.HealthCheckHostname())
			}
		}
		if sets[0].Overprovisioning != 200 || !sets[0].WeightedHealth {
			t.Errorf("factor %d, weighted %t", sets[0].Overprovisioning, sets[0].WeightedHealth)
		}
		if h := sets[2].Hosts[0]; h.Hostname() != "b.example" || !h.DisableActiveHC() || h.Priority() != 2 || h.Weight() != 1 {
			t.Errorf("host of b: %s %t %d %d", h.Hostname(), h.DisableActiveHC(), h.Priority(), h.Weight())
		}
		if h := sets[2].Hosts[1]; h.HealthCheckAddress().String() != "127.0.0.9:84" {
			t.Errorf("host of c is checked at %s", h.HealthCheckAddress())
		}
		r.check(map[string]uint64{"update_attempt": 3, "update_success": 3, "membership_total": 4, "membership_change": 3})
	})
}

func TestLocalityWeightsOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1")
		b.put("b.example", "10.0.0.2")
		r := start(t, Config{Resolver: b}, `
name: c
type: STRICT_DNS
common_lb_config: {locality_weighted_lb_config: {}}
load_assignment:
  cluster_name: c
  endpoints:
  - {locality: {zone: a}, load_balancing_weight: 3, lb_endpoints: [{load_balancing_weight: 9, endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}}]}
  - {locality: {zone: b}, load_balancing_weight: 4, lb_endpoints: [{load_balancing_weight: 5, endpoint: {address: {socket_address: {address: b.example, port_value: 80}}}}]}
`, upstream.Hooks{})
		synctest.Wait()
		l := r.c.Sets()[0].Localities
		if len(l) != 2 || l[0].Weight != 3 || l[1].Weight != 4 {
			t.Errorf("localities %+v", l)
		}
		r.check(map[string]uint64{"max_host_weight": 9}) // whichever answer came last
	})
}

func TestAnswersAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		note := func(what string) func(*upstream.Cluster, *host.Host) {
			return func(_ *upstream.Cluster, h *host.Host) { told = append(told, what+h.AddressText()) }
		}
		var logged bytes.Buffer
		b := newBook()
		b.put("a.example", "10.0.0.1", "10.0.0.2")
		r := start(t, Config{Resolver: b, Logger: slog.New(slog.NewTextHandler(&logged, nil))},
			cluster("STRICT_DNS", "dns_refresh_rate: 2s", "a.example:80"),
			upstream.Hooks{HostAdded: note("+"), HostRemoved: note("-")})
		synctest.Wait()
		first := r.c.Sets()[0].Hosts[0]
		step := func(hosts string, want map[string]uint64) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			r.wantHosts(hosts)
			r.check(want)
		}
		step("10.0.0.1:80 10.0.0.2:80", map[string]uint64{"update_attempt": 2, "update_success": 2, "update_no_rebuild": 1, "membership_change": 1})
		b.put("a.example", "10.0.0.2", "10.0.0.1") // another order is no change
		step("10.0.0.1:80 10.0.0.2:80", map[string]uint64{"update_success": 3, "update_no_rebuild": 2, "membership_change": 1})
		b.put("a.example", "10.0.0.3", "10.0.0.1")
		step("10.0.0.3:80 10.0.0.1:80", map[string]uint64{"update_success": 4, "update_no_rebuild": 2, "membership_change": 2})
		if r.c.Sets()[0].Hosts[1] != first {
			t.Error("a host that stays got a new object")
		}
		b.fail("a.example", errDown)
		step("10.0.0.3:80 10.0.0.1:80", map[string]uint64{"update_success": 4, "update_failure": 1, "membership_change": 2})
		b.put("a.example") // no address counts as a failure
		step("10.0.0.3:80 10.0.0.1:80", map[string]uint64{"update_attempt": 6, "update_success": 4, "update_failure": 2, "update_empty": 0})
		b.put("a.example", "10.0.0.3")
		step("10.0.0.3:80", map[string]uint64{"update_success": 5, "membership_total": 1, "update_no_rebuild": 2})
		want := "+10.0.0.1:80 +10.0.0.2:80 -10.0.0.2:80 +10.0.0.3:80 -10.0.0.1:80"
		if got := strings.Join(told, " "); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != 1 || !strings.Contains(logged.String(), errDown.Error()) || strings.Count(logged.String(), "resolved again") != 1 {
			t.Errorf("log, want one warning and one note of the end:\n%s", logged.String())
		}
	})
}

func TestQueryIsWhatTheClusterSays(t *testing.T) {
	ask := func(more string) Query {
		var q Query
		synctest.Test(t, func(t *testing.T) {
			b := newBook()
			start(t, Config{Resolver: b}, cluster("STRICT_DNS", more, "a.example:80"), upstream.Hooks{})
			synctest.Wait()
			q = b.queries[0]
		})
		return q
	}
	if q := ask(""); q.Name != "a.example" || q.Family != config.FamilyAuto || q.Servers != nil || q.TCP || q.NoSearch {
		t.Errorf("plain: %+v", q)
	}
	q := ask("dns_lookup_family: V6_ONLY\nuse_tcp_for_dns_lookups: true\ndns_resolvers: [{socket_address: {address: 10.0.0.9, port_value: 0}}, {socket_address: {address: '::1', port_value: 54}}]")
	want := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:53"), netip.MustParseAddrPort("[::1]:54")}
	if q.Family != config.FamilyV6Only || !q.TCP || !slices.Equal(q.Servers, want) {
		t.Errorf("with all options: %+v", q)
	}
	q = ask("dns_resolution_config: {resolvers: [{socket_address: {address: 10.0.0.9, port_value: 55}}], dns_resolver_options: {no_default_search_domain: true}}\ndns_lookup_family: ALL")
	if !q.NoSearch || q.Family != config.FamilyAll || q.Servers[0].Port() != 55 {
		t.Errorf("resolution config: %+v", q)
	}
}

// asked runs a cluster for ten minutes at most and returns when its first name was asked
// for, as differences.
func asked(t *testing.T, c Config, more string, b *book, n int) []time.Duration {
	t.Helper()
	c.Resolver = b
	start(t, c, cluster("STRICT_DNS", more, "a.example:80"), upstream.Hooks{})
	var at []time.Duration
	for range 600 {
		time.Sleep(time.Second)
		if at = append(at, b.times("a.example")...); len(at) >= n {
			break
		}
	}
	var gaps []time.Duration
	for i := 1; i < min(len(at), n); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	return gaps
}

func TestRefreshDelay(t *testing.T) {
	draw := func(d time.Duration) func() uint64 { return func() uint64 { return uint64(d) } }
	tests := []struct {
		name, more string
		rand       func() uint64
		answer     []string
		want       []time.Duration
	}{
		{"default", "", nil, []string{"10.0.0.1/1"}, seconds(5, 5)},
		{"rate", "dns_refresh_rate: 7s", nil, []string{"10.0.0.1/1"}, seconds(7, 7)},
		{"least-ttl", "respect_dns_ttl: true", nil, []string{"10.0.0.1/9", "10.0.0.2/3", "10.0.0.3/4"}, seconds(3, 3)},
		{"ttl-0", "respect_dns_ttl: true", nil, []string{"10.0.0.1/9", "10.0.0.2/0"}, seconds(5, 5)},
		{"jitter", "dns_jitter: 2s", func() uint64 { return 1999 }, []string{"10.0.0.1"}, seconds(6.999, 6.999)},
		{"jitter-wraps", "dns_jitter: 2s", func() uint64 { return 2003 }, []string{"10.0.0.1"}, seconds(5.003, 5.003)},
		{"tiny-jitter", "dns_jitter: 0.0005s", func() uint64 { return 2003 }, []string{"10.0.0.1"}, seconds(5, 5)},
		{"one-millisecond", "dns_refresh_rate: 0.001s", nil, []string{"10.0.0.1"}, seconds(0.001, 0.001)},
		{"failure", "dns_refresh_rate: 3s", nil, nil, seconds(3, 3, 3)},
		{"failure-jitter", "dns_refresh_rate: 3s\ndns_jitter: 2s", draw(1), nil, seconds(3, 3, 3)},
		// The draw is 9.9 s modulo 1, 2, 4, 5 and 5 s.
		{"back-off", "dns_failure_refresh_rate: {base_interval: 1s, max_interval: 5s}", draw(9900 * time.Millisecond), nil, seconds(0.9, 1.9, 1.9, 4.9, 4.9)},
		// Modulo 1, 2, 4, 8, 10 s.
		{"default-bound", "dns_failure_refresh_rate: {base_interval: 1s}", draw(9900 * time.Millisecond), nil, seconds(0.9, 1.9, 1.9, 1.9, 9.9, 9.9)},
		{"never-0", "dns_failure_refresh_rate: {base_interval: 1s, max_interval: 1s}", draw(0), nil, seconds(0.001, 0.001)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook()
				b.put("a.example", tt.answer...)
				got := asked(t, Config{Rand: tt.rand}, tt.more, b, len(tt.want)+1)
				if !slices.Equal(got, tt.want) {
					t.Errorf("delays %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestDNSExtensionIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1/2")
		text := strings.Replace(cluster("STRICT_DNS", "", "a.example:80"), "type: STRICT_DNS", "cluster_type: {name: envoy.cluster.dns, typed_config: {"+
			"'@type': type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster, respect_dns_ttl: true, dns_min_refresh_rate: 4s}}", 1)
		r := start(t, Config{Resolver: b}, text, upstream.Hooks{})
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(0, 4, 8)) {
			t.Errorf("asked at %v", got)
		}
		r.check(map[string]uint64{"membership_total": 1})
	})
}

func TestBigTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1/604800")
		start(t, Config{Resolver: b}, cluster("STRICT_DNS", "respect_dns_ttl: true", "a.example:80"), upstream.Hooks{})
		time.Sleep(14 * 24 * time.Hour)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(0, 604800, 1209600)) {
			t.Errorf("asked at %v", got)
		}
	})
}

func TestNamesShareTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.fail("a.example", errDown)
		b.fail("b.example", errDown)
		b.delay["b.example"] = 500 * time.Millisecond // so that a comes first
		start(t, Config{Resolver: b, Rand: func() uint64 { return uint64(79900 * time.Millisecond) }},
			cluster("STRICT_DNS", "dns_refresh_rate: 100s\ndns_failure_refresh_rate: {base_interval: 10s, max_interval: 80s}", "a.example:80", "b.example:80"), upstream.Hooks{})
		// a fails at 0 (delay 9.9 = 79.9 mod 10), b at 0.5 (19.9 mod 20), a at 9.9
		// (39.9 mod 40), b at 20.9 (79.9 mod 80).
		time.Sleep(49 * time.Second)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(0, 9.9)) {
			t.Errorf("a was asked at %v", got)
		}
		if got := b.times("b.example"); !slices.Equal(got, seconds(0, 20.4)) {
			t.Errorf("b was asked at %v", got)
		}
		// A success of one begins anew for both: a is good at 49.8 and from then on
		// every 100 s; b fails at 101.3 and waits 9.9.
		b.put("a.example", "10.0.0.1")
		time.Sleep(63 * time.Second)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(49.8)) {
			t.Errorf("a was asked at %v", got)
		}
		if got := b.times("b.example"); !slices.Equal(got, seconds(100.8, 111.2)) {
			t.Errorf("b was asked at %v", got)
		}
	})
}

func TestLiteralAddressesNeedNoLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		r := start(t, Config{Resolver: b}, cluster("STRICT_DNS", "respect_dns_ttl: true\ndns_lookup_family: V4_ONLY", "::1:80", "10.0.0.1:81"), upstream.Hooks{})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.check(map[string]uint64{"update_attempt": 4, "update_success": 4, "update_no_rebuild": 2, "membership_total": 2})
		if h := r.c.Sets()[0].Hosts; len(b.queries) > 0 || h[0].Hostname() == "" {
			t.Errorf("%d lookups, host name %q", len(b.queries), h[0].Hostname())
		}
	})
}

func TestFirstAnswerMakesReady(t *testing.T) {
	for _, tt := range []struct {
		name, more string
		names      []string
		before     bool // ready before any answer
	}{
		{"good", "", []string{"a.example:80", "slow.example:80"}, false},
		{"bad", "", []string{"bad.example:80", "slow.example:80"}, false},
		{"no-endpoints", "", nil, true},
		{"not-waiting", "wait_for_warm_on_init: false", []string{"slow.example:80"}, true},
		{"logical", "", []string{"a.example:80"}, false},
		{"logical-bad", "", []string{"bad.example:80"}, false},
	} {
		kind := "STRICT_DNS"
		if strings.HasPrefix(tt.name, "logical") {
			kind = "LOGICAL_DNS"
		}
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook()
				b.put("a.example", "10.0.0.1")
				b.fail("bad.example", errDown)
				b.delay["a.example"], b.delay["bad.example"], b.delay["slow.example"] = time.Second, time.Second, time.Hour
				text := cluster(kind, tt.more, tt.names...)
				if tt.names == nil {
					text = "name: c\ntype: STRICT_DNS\n"
				}
				r := start(t, Config{Resolver: b}, text, upstream.Hooks{})
				synctest.Wait()
				if r.c.Ready() != tt.before {
					t.Errorf("ready %t before the answer", r.c.Ready())
				}
				if got := fmt.Sprint(r.Unready()); (got == "[]") != tt.before {
					t.Errorf("unready %s before the answer", got)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if !r.c.Ready() || len(r.Unready()) > 0 {
					t.Error("not ready after the answer")
				}
				select {
				case <-r.Manager.Ready():
				default:
					t.Error("the manager is not ready")
				}
			})
		})
	}
}

func TestSlowLookupsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1")
		b.delay["a.example"] = 30 * time.Second
		start(t, Config{Resolver: b}, cluster("STRICT_DNS", "dns_refresh_rate: 1s", "a.example:80"), upstream.Hooks{})
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(0, 31, 62, 93)) {
			t.Errorf("asked at %v", got)
		}
	})
}

func TestCloseEndsLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.delay["a.example"] = time.Hour
		r := start(t, Config{Resolver: b}, cluster("STRICT_DNS", "", "a.example:80"), upstream.Hooks{})
		synctest.Wait()
		failures := r.c.Stats().UpdateFailure
		r.Close()
		if time.Since(b.began) > 0 {
			t.Error("closing waited for the answer")
		}
		if n := failures.Total(); n != 0 {
			t.Errorf("%d failures of a lookup that was given up", n)
		}
	})
}

// TestRunWaitsForItsLookups: a lookup that ends late may still use what the caller of
// Run frees.
func TestRunWaitsForItsLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.delay["a.example"], b.late = time.Hour, time.Minute
		r := start(t, Config{Resolver: b}, cluster("STRICT_DNS", "", "a.example:80"), upstream.Hooks{})
		synctest.Wait()
		r.Close()
		if got := time.Since(b.began); got != b.late {
			t.Errorf("closed after %v, want %v", got, b.late)
		}
	})
}

// TestHostsOfANameAtTheLimit: the same address counts once, and only addresses that get no
// host are worth a warning.
func TestHostsOfANameAtTheLimit(t *testing.T) {
	for _, tt := range []struct {
		most    int
		answer  []string
		want    string
		warning bool
	}{
		{1, []string{"10.0.0.2", "10.0.0.1"}, "10.0.0.1:80", true},
		{1, []string{"10.0.0.2", "10.0.0.2"}, "10.0.0.2:80", false},
		{2, []string{"10.0.0.2", "10.0.0.1"}, "10.0.0.2:80 10.0.0.1:80", false},
		{2, []string{"10.0.0.2", "10.0.0.1", "10.0.0.2"}, "10.0.0.1:80 10.0.0.2:80", false},
		{2, []string{"10.0.0.3", "10.0.0.2", "10.0.0.3", "10.0.0.1"}, "10.0.0.1:80 10.0.0.2:80", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			b := newBook()
			b.put("a.example", tt.answer...)
			r := start(t, Config{Resolver: b, MaxHosts: tt.most, Logger: slog.New(slog.NewTextHandler(&logged, nil))}, cluster("STRICT_DNS", "", "a.example:80"), upstream.Hooks{})
			synctest.Wait()
			r.wantHosts(tt.want)
			if warned := strings.Contains(logged.String(), "too many addresses"); warned != tt.warning {
				t.Errorf("%q with %d hosts at most: warning %t", tt.answer, tt.most, warned)
			}
		})
	}
}

// fixed is a resolver that returns its own records.
type fixed []Record

func (f fixed) Lookup(context.Context, Query) ([]Record, error) { return f, nil }

// TestRecordsBelongToTheResolver: a resolver can return records that it keeps.
func TestRecordsBelongToTheResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fixed(records("10.0.0.2", "10.0.0.3", "10.0.0.1"))
		r := start(t, Config{Resolver: f, MaxHosts: 2}, cluster("STRICT_DNS", "", "a.example:80"), upstream.Hooks{})
		synctest.Wait()
		r.wantHosts("10.0.0.1:80 10.0.0.2:80")
		if want := records("10.0.0.2", "10.0.0.3", "10.0.0.1"); !slices.Equal(f, want) {
			t.Errorf("the resolver has %v, want %v", f, want)
		}
	})
}

func TestHostsOfANameAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.4", "10.0.0.1", "10.0.0.1", "10.0.0.3", "10.0.0.2", "10.0.0.5")
		r := start(t, Config{Resolver: b, MaxHosts: 3}, cluster("STRICT_DNS", "", "a.example:80"), upstream.Hooks{})
		synctest.Wait()
		r.wantHosts("10.0.0.1:80 10.0.0.2:80 10.0.0.3:80")
		b.put("a.example", "10.0.0.3", "10.0.0.5", "10.0.0.2", "10.0.0.4", "10.0.0.1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.check(map[string]uint64{"update_no_rebuild": 1, "membership_change": 1})
		b.put("a.example", "10.0.0.3", "10.0.0.1", "10.0.0.3", "10.0.0.2") // not too many in truth
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.check(map[string]uint64{"update_no_rebuild": 2})
	})
}
