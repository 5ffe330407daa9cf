package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// nameServer is a DNS server on a loopback address, UDP and TCP at one port.
type nameServer struct {
	t    testing.TB
	addr netip.AddrPort

	mu   sync.Mutex
	zone map[string]reply // by "name. TYPE"
	log  []string         // queries: "udp name. TYPE"
}

// reply is what a server answers. A zero one is "no such name".
type reply struct {
	rcode   int
	records []string
	cut     bool   // over UDP say that it is truncated
	cutTCP  bool   // the same over TCP
	raw     []byte // sent in place of a message, over UDP; the identifier is filled in
	noEDNS  bool   // questions with EDNS are a format error
	network string // if set, only questions over this are answered like this, others are refused
}

func newNameServer(t testing.TB) *nameServer {
	t.Helper()
	s := &nameServer{t: t, zone: map[string]reply{}}
	var udp net.PacketConn
	var tcp net.Listener
	for range 100 { // until a port is free for both
		var err error
		if udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if tcp, err = net.Listen("tcp", udp.LocalAddr().String()); err == nil {
			break
		}
		udp.Close()
	}
	if tcp == nil {
		t.Fatal("no port is free for UDP and TCP")
	}
	s.addr = netip.MustParseAddrPort(udp.LocalAddr().String())
	for _, server := range []*dns.Server{{PacketConn: udp, Handler: s}, {Listener: tcp, Handler: s}} {
		up := make(chan struct{})
		server.NotifyStartedFunc = func() { close(up) }
		var running sync.WaitGroup
		running.Go(func() { _ = server.ActivateAndServe() })
		<-up
		t.Cleanup(func() {
			_ = server.Shutdown()
			running.Wait()
		})
	}
	return s
}

// put makes the answer to questions for "name. TYPE".
func (s *nameServer) put(question string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[question] = r
}

// a makes the addresses of a name.
func (s *nameServer) a(name string, addrs ...string) {
	var list []string
	for _, a := range addrs {
		list = append(list, fmt.Sprintf("%s 60 IN A %s", name, a))
	}
	s.put(name+" A", reply{records: list})
}

// asked returns the queries since the last call.
func (s *nameServer) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.log, ", ")
	s.log = nil
	return text
}

func (s *nameServer) ServeDNS(w dns.ResponseWriter, m *dns.Msg) {
	q := m.Question[0]
	key := q.Name + " " + dns.TypeToString[q.Qtype]
	network := w.LocalAddr().Network()
	s.mu.Lock()
	s.log = append(s.log, network+" "+key)
	r, known := s.zone[key]
	s.mu.Unlock()
	out := new(dns.Msg)
	out.SetReply(m)
	out.Rcode = r.rcode
	switch {
	case !known:
		out.Rcode = dns.RcodeNameError
	case r.network != "" && r.network != network:
		out.Rcode = dns.RcodeRefused
	case r.noEDNS && m.IsEdns0() != nil:
		out = &dns.Msg{MsgHdr: dns.MsgHdr{Id: m.Id, Response: true, Rcode: dns.RcodeFormatError}}
	case r.raw != nil && network == "udp":
		b := append([]byte{byte(m.Id >> 8), byte(m.Id)}, r.raw...)
		_, _ = w.Write(b)
		return
	case r.cut && network == "udp", r.cutTCP && network == "tcp":
		out.Truncated = true
	default:
		out.Compress = true
		out.Answer = rrs(s.t, r.records...)
	}
	_ = w.WriteMsg(out)
}
