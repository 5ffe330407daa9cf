package discovery

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
)

func TestLogicalHostMoves(t *testing.T) {
	const text = `
name: c
type: LOGICAL_DNS
load_assignment:
  cluster_name: c
  endpoints:
  - priority: 5
    lb_endpoints:
    - endpoint:
        address: {socket_address: {address: a.example, port_value: 80}}
        health_check_config: {port_value: 81}
`
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.fail("a.example", errDown)
		r := start(t, Config{Resolver: b, MaxHosts: 1}, text, upstream.Hooks{})
		synctest.Wait()
		if !r.c.Ready() {
			t.Error("not ready after a failure")
		}
		r.wantHosts("")
		step := func(hosts string, want map[string]uint64) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			r.wantHosts(hosts)
			r.check(want)
		}
		b.put("a.example", "10.0.0.2", "10.0.0.1") // the first one, not the lowest
		step("10.0.0.2:80", map[string]uint64{"update_failure": 1, "update_success": 1, "membership_total": 1, "membership_change": 1})
		h := r.c.Sets()[0].Hosts[0]
		h.Stats.RqTotal.Inc()
		if h.Hostname() != "a.example" || h.Priority() != 0 || h.HealthCheckAddress().String() != "10.0.0.2:81" {
			t.Errorf("host %s of priority %d is checked at %s", h.Hostname(), h.Priority(), h.HealthCheckAddress())
		}
		b.put("a.example", "10.0.0.1", "10.0.0.2")
		step("10.0.0.1:80", map[string]uint64{"update_success": 2, "membership_change": 1, "update_no_rebuild": 0})
		if now := r.c.Sets()[0].Hosts[0]; now != h || h.Stats.RqTotal.Value() != 1 || h.HealthCheckAddress().String() != "10.0.0.1:81" {
			t.Errorf("another host: %t; checked at %s", now != h, h.HealthCheckAddress())
		}
		b.put("a.example", "10.0.0.1", "10.0.0.3")
		set := r.c.Sets()[0]
		step("10.0.0.1:80", map[string]uint64{"update_success": 3, "update_no_rebuild": 1})
		if r.c.Sets()[0] != set {
			t.Error("the same address makes a new host set")
		}
		b.put("a.example")
		step("10.0.0.1:80", map[string]uint64{"update_success": 3, "update_failure": 2})
		b.fail("a.example", errDown)
		step("10.0.0.1:80", map[string]uint64{"update_success": 3, "update_failure": 3, "membership_total": 1})
		if got, err := r.c.Pick(nil); got != h {
			t.Errorf("picked %v, %v", got, err)
		}
	})
}

// TestLogicalHostHasAllAddressesIfAsked follows the addresses of the host through
// three answers.
func TestLogicalHostHasAllAddressesIfAsked(t *testing.T) {
	for family, want := range map[string][]string{
		"ALL":     {"[::1]:80 10.0.0.1:80 10.0.0.2:80", "[::1]:80 10.0.0.2:80", "10.0.0.3:80"},
		"V4_ONLY": {"[::1]:80", "[::1]:80", "10.0.0.3:80"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBook()
			r := start(t, Config{Resolver: b}, cluster("LOGICAL_DNS", "dns_lookup_family: "+family, "a.example:80"), upstream.Hooks{})
			for i, answer := range [][]string{{"::1", "10.0.0.1", "10.0.0.2"}, {"::1", "10.0.0.2"}, {"10.0.0.3"}} {
				b.put("a.example", answer...)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				var got []string
				for _, a := range r.c.Sets()[0].Hosts[0].Addresses() {
					got = append(got, a.String())
				}
				if g := strings.Join(got, " "); g != want[i] {
					t.Errorf("%s, answer %d: %s, want %s", family, i, g, want[i])
				}
			}
			r.check(map[string]uint64{"membership_change": 1, "membership_total": 1})
		})
	}
}

func TestLogicalTTLIsThatOfTheFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1/9", "10.0.0.2/3")
		start(t, Config{Resolver: b}, cluster("LOGICAL_DNS", "respect_dns_ttl: true", "a.example:80"), upstream.Hooks{})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := b.times("a.example"); !slices.Equal(got, seconds(0, 9, 18)) {
			t.Errorf("asked at %v", got)
		}
	})
}

func TestLogicalNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.delay["a.example"] = time.Hour
		r := start(t, Config{Resolver: b}, cluster("LOGICAL_DNS", "wait_for_warm_on_init: false", "a.example:80"), upstream.Hooks{})
		synctest.Wait()
		if !r.c.Ready() {
			t.Error("not ready")
		}
	})
}

func TestLogicalLiteral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Config{Resolver: newBook()}, cluster("LOGICAL_DNS", "", "10.0.0.1:80"), upstream.Hooks{})
		synctest.Wait()
		r.wantHosts("10.0.0.1:80")
	})
}
