package discovery

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// asking returns the part of a cluster that asks s.
func asking(s *nameServer) string {
	return fmt.Sprintf("dns_refresh_rate: 0.005s\ndns_resolvers: [{socket_address: {address: %s, port_value: %d}}]", s.addr.Addr(), s.addr.Port())
}

func TestClusterFollowsAServer(t *testing.T) {
	s := newNameServer(t)
	s.a("a.example.", "10.0.0.1")
	s.a("b.example.", "10.0.0.8")
	c := client(t, patient, "", nil)
	r := start(t, Config{Resolver: c}, cluster("STRICT_DNS", asking(s), "a.example:80", "b.example:81"), upstream.Hooks{})
	hosts := func(want ...string) {
		t.Helper()
		waittest.Until(t, "the hosts are "+strings.Join(want, " "), func() bool {
			got := r.shown()
			for _, w := range want {
				if !strings.Contains(got, w) {
					return false
				}
			}
			return len(strings.Fields(got)) == len(want)
		})
	}
	stats := r.c.Stats()
	hosts("10.0.0.1:80", "10.0.0.8:81")
	s.a("a.example.", "10.0.0.2", "10.0.0.1")
	hosts("10.0.0.2:80", "10.0.0.1:80", "10.0.0.8:81")
	s.put("a.example. AAAA", reply{records: []string{"a.example. 60 IN AAAA fd00::1"}})
	hosts("[fd00::1]:80", "10.0.0.8:81")
	for _, bad := range []reply{{rcode: dns.RcodeServerFailure}, {rcode: dns.RcodeNameError}, {}, {raw: []byte("\x80\x00\x00\x01")}} {
		failed := stats.UpdateFailure.Total()
		s.put("a.example. AAAA", bad)
		s.put("a.example. A", bad)
		waittest.Until(t, "three failures", func() bool { return stats.UpdateFailure.Total() >= failed+3 })
		hosts("[fd00::1]:80", "10.0.0.8:81")
	}
	s.a("a.example.", "10.0.0.3")
	hosts("10.0.0.3:80", "10.0.0.8:81")
}

func TestLogicalHostFollowsAServer(t *testing.T) {
	s := newNameServer(t)
	s.a("a.example.", "10.0.0.2", "10.0.0.1")
	r := start(t, Config{Resolver: client(t, patient, "", nil)}, cluster("LOGICAL_DNS", asking(s), "a.example:80"), upstream.Hooks{})
	waittest.Until(t, "the host is there", func() bool { return r.shown() == "10.0.0.2:80" })
	h := r.c.Sets()[0].Hosts[0]
	s.a("a.example.", "10.0.0.1", "10.0.0.2")
	waittest.Until(t, "the host moves", func() bool { return h.AddressText() == "10.0.0.1:80" })
	r.wantHosts("10.0.0.1:80")
}

// The largest answer that fits in a message makes no more hosts than allowed.
func TestHugeAnswer(t *testing.T) {
	s := newNameServer(t)
	huge := reply{cut: true}
	for i := range 4000 {
		huge.records = append(huge.records, fmt.Sprintf("a.example. 0 IN A 10.1.%d.%d", i/256, i%256))
	}
	s.put("a.example. A", huge)
	r := start(t, Config{Resolver: client(t, patient, "", nil)}, cluster("STRICT_DNS", asking(s), "a.example:80"), upstream.Hooks{})
	waittest.Until(t, "the name is resolved twice", func() bool { return r.c.Stats().UpdateNoRebuild.Total() >= 1 })
	r.check(map[string]uint64{"membership_total": DefaultMaxHosts, "membership_change": 1})
	if got := r.c.Sets()[0].Hosts[DefaultMaxHosts-1].Address().IP.Addr(); got != netip.MustParseAddr("10.1.3.255") {
		t.Errorf("the last host is %s", got)
	}
}

// A cluster may be replaced and removed while its names change: no lookup is
// left behind, and the last version has the hosts of the last answer.
func TestUpdatesWhileNamesChange(t *testing.T) {
	s := newNameServer(t)
	s.a("a.example.", "10.0.0.1")
	c := client(t, patient, "", nil)
	r := start(t, Config{Resolver: c}, "name: other\n", upstream.Hooks{})
	d := decode.NewDecoder(decode.Options{})
	add := func(i int, kind string) {
		t.Helper()
		p, err := d.ClusterText("test.yaml", []byte(cluster(kind, asking(s)+fmt.Sprintf("\nconnect_timeout: %ds", i+1), "a.example:80")), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := r.AddOrUpdate(p, ""); err != nil || !changed {
			t.Fatalf("version %d: changed %t, %v", i, changed, err)
		}
	}
	for i := range 60 {
		add(i, []string{"STRICT_DNS", "LOGICAL_DNS"}[i%2])
		s.a("a.example.", fmt.Sprintf("10.0.1.%d", i), fmt.Sprintf("10.0.2.%d", i))
		if i%20 == 19 {
			r.Remove("c")
		}
	}
	s.a("a.example.", "10.0.0.9")
	add(60, "STRICT_DNS")
	waittest.Until(t, "the last version serves", func() bool {
		h := r.Manager.Cluster("c")
		if h == nil || h.Current() == nil {
			return false
		}
		sets := h.Current().Sets()
		return h.Current().Config().ConnectTimeout == 61*time.Second && len(sets) == 1 && len(sets[0].Hosts) == 1 && sets[0].Hosts[0].AddressText() == "10.0.0.9:80"
	})
}
