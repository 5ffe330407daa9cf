package upstream

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

const originalText = "name: c\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\ncleanup_interval: 2s\noriginal_dst_lb_config: {use_http_header: true}\n"

func TestOriginalDst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := started(t, nil, originalText)
		h, err := c.Pick(&lb.Context{Destination: spec(1).Address})
		if err != nil || h.AddressText() != "10.0.0.1:80" {
			t.Fatalf("picked %v, %v", h, err)
		}
		r.check("cluster.c.", map[string]uint64{"membership_total": 1, "membership_change": 1}) // the first one at once
		if _, err := c.Pick(&lb.Context{DestinationHeader: "x"}); err != ErrNoHost {
			t.Errorf("err = %v", err)
		}
		c.Pick(&lb.Context{DestinationHeader: "10.0.0.2:80"})
		time.Sleep(originalsEvery)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"original_dst_host_invalid": 1, "upstream_cx_none_healthy": 1, "membership_total": 2, "membership_change": 2})
		time.Sleep(3*time.Second - originalsEvery)
		c.Pick(&lb.Context{Destination: spec(1).Address})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := shown(c); got != "0:1" {
			t.Errorf("hosts %s, want the one in use", got)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_total": 0, "membership_change": 4})
		r.Close()
	})
}

// TestOriginalsHaveNoLocalityWeights: there is no assignment that states them.
func TestOriginalsHaveNoLocalityWeights(t *testing.T) {
	_, c := started(t, nil, originalText+"common_lb_config: {locality_weighted_lb_config: {}}\n")
	if h, err := c.Pick(&lb.Context{Destination: spec(1).Address}); err != nil || h.AddressText() != "10.0.0.1:80" || shown(c) != "0:1" {
		t.Errorf("picked %v, %v; hosts %s", h, err, shown(c))
	}
}

func TestManyOriginalsAreShownAndGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := started(t, nil, originalText)
		for i := range 100 {
			c.Pick(&lb.Context{Destination: spec(i).Address})
		}
		if n := strings.Count(r.events(), "added c "); n != 100 {
			t.Errorf("told of %d hosts at once, want 100", n)
		}
		r.check("cluster.c.", map[string]uint64{"membership_total": 1, "membership_change": 1})
		time.Sleep(originalsEvery)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_total": 100, "membership_healthy": 100, "membership_change": 2})
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_total": 0, "membership_change": 3})
		if n := strings.Count(r.events(), "removed c "); n != 100 {
			t.Errorf("told of %d hosts that went, want 100", n)
		}
		c.Pick(&lb.Context{Destination: spec(1).Address})
		c.Pick(&lb.Context{Destination: spec(2).Address})
		r.Close() // while one waits to be shown
		time.Sleep(time.Second)
	})
}

func TestCheckedOriginals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alwaysGood)
		r.Start()
		if _, err := r.AddOrUpdate(older(t, strings.ReplaceAll(originalText, "2s", "600s")+"connect_timeout: 1s\n"+strings.Replace(ping, "healthy_threshold: 2", "healthy_threshold: 1", 1)), ""); err != nil {
			t.Fatal(err)
		}
		c := r.Cluster("c").Current()
		for i := range 3 {
			c.Pick(&lb.Context{Destination: spec(i).Address})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.check("cluster.c.", map[string]uint64{"membership_healthy": 3, "health_check.attempt": 3})
		r.Close()
	})
}

func TestOriginalsFromManyGoroutines(t *testing.T) {
	r, c := started(t, nil, strings.ReplaceAll(originalText, "2s", "0.002s"))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), byte(g % 2)}), 80)
				if h, err := c.Pick(&lb.Context{Destination: config.Address{IP: a}}); err != nil || h.Address().IP != a {
					t.Errorf("picked %v, %v", h, err)
				}
			}
		})
	}
	wg.Wait()
	waittest.Until(t, "all are gone", func() bool { return r.value("cluster.c.membership_total") == 0 })
}

func TestNumberOfOriginalsIsLimited(t *testing.T) {
	for limit, want := range map[int]uint64{0: 0, 1: 4, 2: 3, -1: 0} {
		r, c := started(t, func(c *Config) { c.OriginalHosts = limit }, originalText)
		for i := range 5 {
			_, err := c.Pick(&lb.Context{Destination: spec(i).Address})
			if (err != nil) != (limit > 0 && i >= limit) {
				t.Errorf("limit %d: host %d: %v", limit, i, err)
			}
		}
		r.check("cluster.c.", map[string]uint64{"original_dst_host_overflow": want, "upstream_cx_none_healthy": want})
	}
	if defaultOriginalHosts != 10_000 {
		t.Error("the default is documented as 10,000")
	}
}

func TestOriginalDstMetadata(t *testing.T) {
	more := "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {metadata_key: {key: k, path: [{key: a}, {key: b}]}}"
	for text, want := range map[string]string{"type: STATIC": "[]", more: "k[a b]"} {
		_, c := started(t, nil, "name: c\n"+text+"\n")
		key, path := c.OriginalDstMetadata()
		if got := key + fmt.Sprint(path); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	_, c := started(t, nil, "name: c\n"+more+"\n")
	if h, err := c.Pick(&lb.Context{DestinationMetadata: "10.0.0.9:9"}); err != nil || h.AddressText() != "10.0.0.9:9" {
		t.Errorf("picked %v, %v", h, err)
	}
}
