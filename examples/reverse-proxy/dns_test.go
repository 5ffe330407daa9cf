package main

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

// nameServer is a real DNS server that knows one address at a time.
type nameServer struct {
	dns.Server
	address atomic.Pointer[string]
}

func newNameServer(t *testing.T, address string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{}
	s.PacketConn = conn
	s.address.Store(&address)
	s.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
				A:   net.ParseIP(*s.address.Load()),
			}}
		}
		_ = w.WriteMsg(m) // the resolver asks again
	})
	done := make(chan error, 1)
	go func() { done <- s.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = s.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFollowsDNS(t *testing.T) {
	first := newBackend(t, "127.0.0.2:0")
	_, port, _ := net.SplitHostPort(first.address())
	second := newBackend(t, "127.0.0.3:"+port)
	names := newNameServer(t, "127.0.0.2")
	_, dnsPort, _ := net.SplitHostPort(names.PacketConn.LocalAddr().String())
	r := start(t, fmt.Sprintf(`static_resources:
  clusters:
  - name: backend
    type: STRICT_DNS
    dns_lookup_family: V4_ONLY
    dns_refresh_rate: 0.02s
    dns_resolvers: [{socket_address: {address: 127.0.0.1, port_value: %s}}]
    hosts: [{socket_address: {address: backend.example., port_value: %s}}]
`, dnsPort, port), web(Route{}))
	ask := func(n int, from string) {
		t.Helper()
		for range n {
			if code, body, _ := r.get(); code != 200 || !strings.HasPrefix(body, "hello from "+from+":") {
				t.Errorf("answer %d %q, want one from %s", code, body, from)
			}
		}
	}
	ask(30, "127.0.0.2")
	r.want(map[string]int{"membership_total": 1, "membership_change": 1})

	there := "127.0.0.3"
	names.address.Store(&there)
	eventually(t, "the new address is known", func() bool { return r.stat("cluster.backend.membership_change") == 2 })
	ask(40, "127.0.0.3")
	if first.requests.Load() != 30 || second.requests.Load() != 40 {
		t.Errorf("hosts got %d and %d requests, want 30 and 40", first.requests.Load(), second.requests.Load())
	}
	eventually(t, "the connection to the old host is closed", func() bool { return r.stat("cluster.backend.upstream_cx_active") == 1 })
	r.want(map[string]int{
		"membership_total": 1, "membership_change": 2, "upstream_rq_total": 70, "upstream_rq_200": 70,
		"upstream_cx_total": 2, "upstream_cx_destroy": 1, "upstream_cx_destroy_local": 1, "update_failure": 0,
	})
	if s := &r.host("127.0.0.3:" + port).Stats; s.RqTotal.Value() != 40 || s.RqSuccess.Value() != 40 || s.CxTotal.Value() != 1 {
		t.Errorf("the new host counts %+v", s.All())
	}
}
