package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// client returns a client of a system with those files.
func client(t *testing.T, resolv, hosts string, change func(*ClientConfig)) *Client {
	t.Helper()
	dir := t.TempDir()
	c := ClientConfig{ResolvConf: filepath.Join(dir, "resolv.conf"), Hosts: filepath.Join(dir, "hosts")}
	write(t, c.ResolvConf, resolv, time.Unix(1e9, 0))
	write(t, c.Hosts, hosts, time.Unix(1e9, 0))
	if change != nil {
		change(&c)
	}
	return NewClient(c)
}

// patient is a configuration with which no answer of a server at hand is missed.
const patient = "options timeout:30 attempts:1\n"

func TestClientAnswers(t *testing.T) {
	aaaa := reply{records: []string{"a.example. 30 IN AAAA fd00::1"}}
	a := reply{records: []string{"a.example. 60 IN A 10.0.0.1", "a.example. 50 IN A 10.0.0.2"}}
	none := reply{}
	fail := reply{rcode: dns.RcodeServerFailure}
	long := reply{}
	for i := range 3000 {
		long.records = append(long.records, fmt.Sprintf("a.example. 60 IN A 10.1.%d.%d", i/256, i%256))
	}
	long.cut = true
	const both = "10.0.0.1/60 10.0.0.2/50"
	tests := []struct {
		name    string
		family  config.LookupFamily
		tcp     bool
		aaaa, a *reply
		want    string // or the number of addresses
		err     string
		asked   string
	}{
		{"auto-v6", config.FamilyAuto, false, &aaaa, &a, "fd00::1/30", "", "udp AAAA"},
		{"auto-no-v6", config.FamilyAuto, false, &none, &a, both, "", "udp AAAA, udp A"},
		{"auto-v6-fails", config.FamilyAuto, false, &fail, &a, both, "", "udp AAAA, udp A"},
		{"auto-no-name", config.FamilyAuto, false, nil, nil, "", "no address", "udp AAAA, udp A"},
		{"auto-v6-fails-no-v4", config.FamilyAuto, false, &fail, &none, "", "SERVFAIL", "udp AAAA, udp A"},
		{"auto-v4-fails", config.FamilyAuto, false, &none, &fail, "", "SERVFAIL", "udp AAAA, udp A"},
		{"v4", config.FamilyV4Only, false, &aaaa, &a, both, "", "udp A"},
		{"v4-none", config.FamilyV4Only, false, &aaaa, &none, "", "no address", "udp A"},
		{"v6", config.FamilyV6Only, false, &aaaa, &a, "fd00::1/30", "", "udp AAAA"},
		{"v6-none", config.FamilyV6Only, false, nil, &a, "", "no address", "udp AAAA"},
		{"v4-preferred", config.FamilyV4Preferred, false, &aaaa, &a, both, "", "udp A"},
		{"v4-preferred-none", config.FamilyV4Preferred, false, &aaaa, &none, "fd00::1/30", "", "udp A, udp AAAA"},
		{"all", config.FamilyAll, false, &aaaa, &a, "fd00::1/30 " + both, "", "udp AAAA, udp A"},
		{"all-v4", config.FamilyAll, false, &fail, &a, both, "", "udp AAAA, udp A"},
		{"all-v6", config.FamilyAll, false, &aaaa, nil, "fd00::1/30", "", "udp AAAA, udp A"},
		{"all-none", config.FamilyAll, false, nil, nil, "", "no address", "udp AAAA, udp A"},
		{"tcp", config.FamilyV4Only, true, nil, &a, both, "", "tcp A"},
		{"truncated", config.FamilyV4Only, false, nil, &long, "3000", "", "udp A, tcp A"},
		{"cut-in-the-middle", config.FamilyV4Only, false, nil,
			&reply{raw: []byte("\x82\x00\x00\x01\x00\x09\x00\x00\x00\x00\x01a\x07exam"), records: a.records}, both, "", "udp A, tcp A"},
		{"truncated-over-tcp", config.FamilyV4Only, true, nil, &reply{records: a.records, cutTCP: true}, "", "truncated answer", "tcp A"},
		{"refused", config.FamilyV4Only, false, nil, &reply{rcode: dns.RcodeRefused}, "", "REFUSED", "udp A"},
		{"malformed", config.FamilyV4Only, false, nil, &reply{raw: []byte("\x80\x00\x00\x01\xff\xff\xff\xff\xff\xff\xc0\x0c\x00\x01")}, "", "asking", "udp A"},
		{"short", config.FamilyV4Only, false, nil, &reply{raw: []byte("\x80")}, "", "asking", "udp A"},
		{"no-edns", config.FamilyV4Only, false, nil, &reply{noEDNS: true, records: a.records}, both, "", "udp A, udp A"},
		{"chain", config.FamilyV4Only, false, nil,
			&reply{records: []string{"a.example. 9 IN CNAME b.example.", "b.example. 60 IN A 10.0.0.3"}}, "10.0.0.3/9", "", "udp A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newNameServer(t)
			if tt.aaaa != nil {
				s.put("a.example. AAAA", *tt.aaaa)
			}
			if tt.a != nil {
				s.put("a.example. A", *tt.a)
			}
			c := client(t, patient, "", nil)
			got, err := c.Lookup(t.Context(), Query{Name: "a.example", Family: tt.family, TCP: tt.tcp, Servers: []netip.AddrPort{s.addr}})
			if line(got) != tt.want && fmt.Sprint(len(got)) != tt.want {
				t.Errorf("addresses %q, want %q", line(got), tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("err = %v, want %q", err, tt.err)
			}
			if asked := strings.ReplaceAll(s.asked(), "a.example. ", ""); asked != tt.asked {
				t.Errorf("asked %s, want %s", asked, tt.asked)
			}
		})
	}
}

func TestServersFollowEachOther(t *testing.T) {
	a := reply{records: []string{"a.example. 60 IN A 10.0.0.1"}}
	for _, tt := range []struct {
		name  string
		first reply
		asked bool // the second one
	}{
		{"good", a, false},
		{"fails", reply{rcode: dns.RcodeServerFailure}, true},
		{"refuses", reply{rcode: dns.RcodeRefused}, true},
		{"malformed", reply{raw: []byte("x")}, true},
		{"no-address", reply{}, false},
		{"no-such-name", reply{rcode: dns.RcodeNameError}, false},
		{"truncated-and-no-tcp", reply{cut: true, network: "udp"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := newNameServer(t), newNameServer(t)
			one.put("a.example. A", tt.first)
			two.put("a.example. A", a)
			got, err := client(t, patient, "", nil).Lookup(t.Context(), Query{Name: "a.example", Family: config.FamilyV4Only, Servers: []netip.AddrPort{one.addr, two.addr}})
			if asked := two.asked() != ""; asked != tt.asked {
				t.Errorf("the second server was asked: %t; %v, %v", asked, got, err)
			}
			if tt.asked && line(got) != "10.0.0.1/60" {
				t.Errorf("addresses %v, %v", got, err)
			}
		})
	}
}

func TestSearchGoesOn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		zone  map[string]reply
		want  string
		err   string
		asked string
	}{
		{"first", map[string]reply{"a.x.example. A": {records: []string{"a.x.example. 1 IN A 10.0.0.1"}}}, "10.0.0.1/1", "", "udp a.x.example. A"},
		{"last", map[string]reply{"a. A": {records: []string{"a. 1 IN A 10.0.0.1"}}}, "10.0.0.1/1", "", "udp a.x.example. A, udp a.y.example. A, udp a. A"},
		{"past-no-address", map[string]reply{"a.x.example. A": {}, "a.y.example. A": {records: []string{"a.y.example. 1 IN A 10.0.0.1"}}}, "10.0.0.1/1", "", "udp a.x.example. A, udp a.y.example. A"},
		{"past-a-failure", map[string]reply{"a.x.example. A": {rcode: dns.RcodeServerFailure}, "a. A": {records: []string{"a. 1 IN A 10.0.0.1"}}}, "10.0.0.1/1", "", "udp a.x.example. A, udp a.y.example. A, udp a. A"},
		{"past-a-bare-refusal", map[string]reply{"a.x.example. A": {raw: []byte{0x80, dns.RcodeRefused, 0, 0, 0, 0, 0, 0, 0, 0}}, "a. A": {records: []string{"a. 1 IN A 10.0.0.1"}}}, "10.0.0.1/1", "", "udp a.x.example. A, udp a.y.example. A, udp a. A"},
		{"nowhere", nil, "", "no address", "udp a.x.example. A, udp a.y.example. A, udp a. A"},
		{"nowhere-but-a-failure", map[string]reply{"a.x.example. A": {rcode: dns.RcodeServerFailure}}, "", "SERVFAIL", "udp a.x.example. A, udp a.y.example. A, udp a. A"},
		{"not-past-a-broken-server", map[string]reply{"a.x.example. A": {raw: []byte("x")}}, "", "asking", "udp a.x.example. A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newNameServer(t)
			for q, r := range tt.zone {
				s.put(q, r)
			}
			got, err := client(t, patient+"search x.example y.example\n", "", nil).Lookup(t.Context(), Query{Name: "a", Family: config.FamilyV4Only, Servers: []netip.AddrPort{s.addr}})
			if line(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v; want %q, %s", line(got), err, tt.want, tt.err)
			}
			if asked := s.asked(); asked != tt.asked {
				t.Errorf("asked %s, want %s", asked, tt.asked)
			}
		})
	}
}

func TestHostsComeFirst(t *testing.T) {
	c := client(t, "", "127.0.0.1 both.example\n::1 both.example\n127.0.0.2 four.example\n", func(c *ClientConfig) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errDown }
	})
	for _, tt := range []struct {
		name   string
		family config.LookupFamily
		want   string // empty: the servers are asked
	}{
		{"Both.Example.", config.FamilyAuto, "::1/0"},
		{"both.example", config.FamilyV4Preferred, "127.0.0.1/0"},
		{"both.example", config.FamilyAll, "::1/0 127.0.0.1/0"},
		{"both.example", config.FamilyV4Only, "127.0.0.1/0"},
		{"four.example", config.FamilyAuto, "127.0.0.2/0"},
		{"four.example", config.FamilyAll, "127.0.0.2/0"},
		{"four.example", config.FamilyV6Only, ""},
		{"none.example", config.FamilyAuto, ""},
		{"", config.FamilyAuto, "no name"},
	} {
		got, err := c.Lookup(t.Context(), Query{Name: tt.name, Family: tt.family})
		switch {
		case tt.want == "no name":
			if !errors.Is(err, ErrNoAddress) || errors.Is(err, errDown) {
				t.Errorf("%q: %v, %v", tt.name, got, err)
			}
		case tt.want == "" && !errors.Is(err, errDown), line(got) != tt.want:
			t.Errorf("%s by %d: %v, %v; want %s", tt.name, tt.family, got, err, tt.want)
		}
	}
}

// pipes connects clients with servers in the same process.
type pipes struct {
	serve func(network, address string, m *dns.Msg) *dns.Msg // nil: never answers

	mu    sync.Mutex
	began time.Time
	log   []string // network, address and when it was asked
	last  context.Context
}

func (p *pipes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	p.last = ctx
	p.log = append(p.log, fmt.Sprintf("%s %s %v", network, address, time.Since(p.began)))
	p.mu.Unlock()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		for {
			b, err := receive(theirs, network == "tcp")
			m := new(dns.Msg)
			if err != nil || m.Unpack(b) != nil {
				return
			}
			if answer := p.serve(network, address, m); answer != nil {
				if b, err = answer.Pack(); err != nil {
					return
				}
				if network == "tcp" {
					b = append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
				}
				_, _ = theirs.Write(b)
			}
		}
	}()
	return ours, nil
}

func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name, resolv string
		servers      []netip.AddrPort
		want         string
	}{
		{"system", "nameserver 10.0.0.1\nnameserver 10.0.0.2\nsearch x.example\n", nil, "udp 10.0.0.1:53 0s, udp 10.0.0.2:53 5s, udp 10.0.0.1:53 10s, udp 10.0.0.2:53 15s"},
		{"options", "nameserver 10.0.0.1\noptions timeout:1 attempts:3\n", nil, "udp 10.0.0.1:53 0s, udp 10.0.0.1:53 1s, udp 10.0.0.1:53 2s"},
		{"own-servers", "nameserver 10.0.0.1\noptions timeout:2 attempts:1\n", []netip.AddrPort{netip.MustParseAddrPort("10.0.0.8:54"), netip.MustParseAddrPort("10.0.0.9:53")}, "udp 10.0.0.8:54 0s, udp 10.0.0.9:53 2s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipes{began: time.Now(), serve: func(string, string, *dns.Msg) *dns.Msg { return nil }}
				c := client(t, tt.resolv, "", func(c *ClientConfig) { c.Dial = p.dial })
				got, err := c.Lookup(t.Context(), Query{Name: "a", Family: config.FamilyV4Only, Servers: tt.servers})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, %v", got, err)
				}
				if log := strings.Join(p.log, ", "); log != tt.want {
					t.Errorf("asked %s, want %s", log, tt.want)
				}
			})
		})
	}
}

func TestSecondServerAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{began: time.Now(), serve: func(_, address string, m *dns.Msg) *dns.Msg {
			if address == "10.0.0.1:53" {
				return nil
			}
			out := message(t, m.Question[0].Name, dns.TypeA, 0, "a.example. 60 IN A 10.9.9.9")
			out.Id = m.Id
			return out
		}}
		c := client(t, "nameserver 10.0.0.1\nnameserver 10.0.0.2\n", "", func(c *ClientConfig) { c.Dial = p.dial })
		got, err := c.Lookup(t.Context(), Query{Name: "a.example", Family: config.FamilyV4Only})
		if line(got) != "10.9.9.9/60" || time.Since(p.began) != 5*time.Second {
			t.Errorf("%v, %v after %v", got, err, time.Since(p.began))
		}
		if p.last.Err() == nil {
			t.Error("the context of a request that was answered still runs")
		}
	})
}

func TestForgedAnswersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{began: time.Now(), serve: func(_, _ string, m *dns.Msg) *dns.Msg {
			out := message(t, m.Question[0].Name, dns.TypeA, 0, "a.example. 60 IN A 10.9.9.9")
			out.Id = m.Id + 1
			return out
		}}
		c := client(t, "nameserver 10.0.0.1\noptions attempts:1\n", "", func(c *ClientConfig) { c.Dial = p.dial })
		if got, err := c.Lookup(t.Context(), Query{Name: "a.example", Family: config.FamilyV4Only}); err == nil || errors.Is(err, ErrNoAddress) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// An answer to another query or question, or without an identifier, is skipped over UDP, where it may
// be late or forged, and an error over TCP.
func TestAnswersToOtherQueries(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		for _, kind := range []string{"identifier", "short", "name", "type", "two questions"} {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				b, err := receive(theirs, network == "tcp")
				if err != nil {
					return
				}
				refused := []byte{b[0], b[1], 0x80, byte(dns.RcodeRefused), 0, 1, 0, 0, 0, 0, 0, 0} // and no question
				other := append([]byte{b[0], b[1] + 1}, refused[2:]...)
				q := question("a.example.", dns.TypeA)
				switch kind {
				case "short":
					other = refused[:1]
				case "name":
					q.Name = dnsmessage.MustNewName("b.example.")
				case "type":
					q.Type = dnsmessage.TypeAAAA
				}
				if kind != "short" && kind != "identifier" {
					m := dnsmessage.Message{Header: dnsmessage.Header{ID: binary.BigEndian.Uint16(b), Response: true}, Questions: []dnsmessage.Question{q}}
					if kind == "two questions" {
						m.Questions = append(m.Questions, q)
					}
					if other, err = m.Pack(); err != nil {
						t.Error(err)
					}
				}
				for _, m := range [][]byte{other, refused} {
					if network == "tcp" {
						m = append([]byte{0, byte(len(m))}, m...)
					}
					_, _ = theirs.Write(m)
				}
			}()
			q := question("a.example.", dns.TypeA)
			a, err := converse(ours, &dnsmessage.Message{Questions: []dnsmessage.Question{q}}, network == "tcp")
			ours.Close()
			if err == nil && network == "tcp" {
				_, err = a.addresses(q)
			}
			if network == "udp" && (err != nil || a.RCode != dns.RcodeRefused) || network == "tcp" && err == nil {
				t.Errorf("%s, %s: %v, %v", network, kind, a, err)
			}
		}
	}
}

func TestLookupEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{began: time.Now(), serve: func(string, string, *dns.Msg) *dns.Msg { return nil }}
		c := client(t, "nameserver 10.0.0.1\n", "", func(c *ClientConfig) { c.Dial, c.Lookups = p.dial, 1 })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // one is under way, two wait for it
			wg.Go(func() {
				if got, err := c.Lookup(ctx, Query{Name: "a.example"}); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		if d := time.Since(p.began); d != time.Second || len(p.log) != 1 {
			t.Errorf("ended after %v, asked %v", d, p.log)
		}
	})
}

func TestLookupsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{began: time.Now(), serve: func(string, string, *dns.Msg) *dns.Msg { return nil }}
		c := client(t, "nameserver 10.0.0.1\noptions attempts:1\n", "", func(c *ClientConfig) { c.Dial, c.Lookups = p.dial, 2 })
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { _, _ = c.Lookup(t.Context(), Query{Name: "a.example", Family: config.FamilyV4Only}) })
		}
		wg.Wait()
		if d := time.Since(p.began); d != 15*time.Second || len(p.log) != 6 {
			t.Errorf("%d lookups took %v, want 3 times two of them", len(p.log), d)
		}
	})
}

// The standard library's resolver finds the same addresses.
func TestAgreesWithTheStandardResolver(t *testing.T) {
	s := newNameServer(t)
	long := reply{cut: true}
	for i := range 200 {
		long.records = append(long.records, fmt.Sprintf("long.example. 60 IN A 10.1.0.%d", i))
	}
	s.put("long.example. A", long)
	s.a("plain.example.", "10.0.0.2", "10.0.0.1")
	s.put("chain.example. A", reply{records: []string{
		"chain.example. 60 IN CNAME b.example.", "b.example. 60 IN CNAME c.example.", "c.example. 60 IN A 10.0.0.3",
	}})
	s.put("both.example. A", reply{records: []string{"both.example. 60 IN A 10.0.0.4"}})
	s.put("both.example. AAAA", reply{records: []string{"both.example. 60 IN AAAA fd00::4"}})
	s.put("empty.example. A", reply{})
	s.put("down.example. A", reply{rcode: dns.RcodeServerFailure})
	standard := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.addr.String())
	}}
	c := client(t, patient, "", nil)
	for _, name := range []string{"plain", "long", "chain", "both", "empty", "down", "none"} {
		for network, family := range map[string]config.LookupFamily{"ip4": config.FamilyV4Only, "ip6": config.FamilyV6Only} {
			want, wantErr := standard.LookupNetIP(t.Context(), network, name+".example.")
			got, err := c.Lookup(t.Context(), Query{Name: name + ".example.", Family: family, Servers: []netip.AddrPort{s.addr}})
			var addrs []netip.Addr
			for _, r := range got {
				addrs = append(addrs, r.Addr)
			}
			slices.SortFunc(addrs, netip.Addr.Compare)
			slices.SortFunc(want, netip.Addr.Compare)
			if !slices.Equal(addrs, want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%s by %s: %v, %v; the standard resolver finds %v, %v", name, network, addrs, err, want, wantErr)
			}
		}
	}
}
