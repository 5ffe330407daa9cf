package discovery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"
)

// message returns the answer to a question with records in the form of zone
// files.
func message(t testing.TB, name string, rrtype uint16, rcode int, records ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, rrtype)
	m.Response, m.Rcode = true, rcode
	m.Answer = rrs(t, records...)
	if rcode > 15 {
		m.SetEdns0(udpSize, false)
	}
	return m
}

// parsed returns m as this package reads it.
func parsed(t testing.TB, m *dns.Msg) *answer {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func question(name string, rrtype uint16) dnsmessage.Question {
	return dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: dnsmessage.Type(rrtype), Class: dnsmessage.ClassINET}
}

func rrs(t testing.TB, records ...string) []dns.RR {
	t.Helper()
	var out []dns.RR
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rr)
	}
	return out
}

func line(records []Record) string {
	var list []string
	for _, r := range records {
		list = append(list, fmt.Sprintf("%s/%d", r.Addr, int64(r.TTL.Seconds())))
	}
	return strings.Join(list, " ")
}

func TestAddresses(t *testing.T) {
	a := dns.TypeA
	tests := []struct {
		name   string
		rrtype uint16
		rcode  int
		answer []string
		want   string
		err    string
	}{
		{"plain", a, 0, []string{"a.example. 60 IN A 10.0.0.2", "a.example. 30 IN A 10.0.0.1"}, "10.0.0.2/60 10.0.0.1/30", ""},
		{"v6", dns.TypeAAAA, 0, []string{"a.example. 60 IN AAAA fd00::1", "a.example. 60 IN A 10.0.0.1"}, "fd00::1/60", ""},
		{"case", a, 0, []string{"A.Example. 60 IN A 10.0.0.1"}, "10.0.0.1/60", ""},
		{"of-others", a, 0, []string{"b.example. 60 IN A 10.0.0.1", "a.example. 60 IN TXT x", "a.example. 60 CH A 10.0.0.3", "a.example. 60 IN AAAA fd00::1"}, "", "no address"},
		{"chain", a, 0, []string{
			"a.example. 50 IN CNAME b.example.", "b.example. 40 IN CNAME c.example.", "c.example. 60 IN A 10.0.0.1", "c.example. 20 IN A 10.0.0.2",
		}, "10.0.0.1/40 10.0.0.2/20", ""},
		{"chain-out-of-order", a, 0, []string{
			"c.example. 60 IN A 10.0.0.1", "b.example. 70 IN CNAME C.EXAMPLE.", "a.example. 80 IN CNAME B.example.",
		}, "10.0.0.1/60", ""},
		{"chain-without-end", a, 0, []string{"a.example. 50 IN CNAME b.example."}, "", "no address"},
		{"address-beside-the-chain", a, 0, []string{"a.example. 50 IN CNAME b.example.", "a.example. 50 IN A 10.0.0.1", "b.example. 50 IN A 10.0.0.2"}, "10.0.0.2/50", ""},
		{"circle", a, 0, []string{"a.example. 50 IN CNAME b.example.", "b.example. 50 IN CNAME a.example."}, "", "no address"},
		{"two-aliases", a, 0, []string{"a.example. 50 IN CNAME b.example.", "a.example. 50 IN CNAME c.example.", "c.example. 1 IN A 10.0.0.3", "b.example. 1 IN A 10.0.0.2"}, "10.0.0.2/1", ""},
		{"empty", a, 0, nil, "", "no address"},
		{"no-such-name", a, dns.RcodeNameError, []string{"a.example. 60 IN A 10.0.0.1"}, "", "no address"},
		{"server-failure", a, dns.RcodeServerFailure, []string{"a.example. 60 IN A 10.0.0.1"}, "", `the server answers SERVFAIL for "A.example."`},
		{"strange-code", a, 3000, nil, "", `the server answers code 3000 for "A.example."`},
		{"longest-ttl", a, 0, []string{"a.example. 2147483647 IN A 10.0.0.1"}, "10.0.0.1/604800", ""},
		{"negative-ttl", a, 0, []string{"a.example. 2147483648 IN A 10.0.0.1"}, "10.0.0.1/0", ""},
		{"no-data-in-record", a, 0, []string{"a.example. 60 IN A", "a.example. 60 IN A 10.0.0.1"}, "10.0.0.1/60", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parsed(t, message(t, "a.example.", tt.rrtype, tt.rcode, tt.answer...)).addresses(question("A.example.", tt.rrtype))
			if line(got) != tt.want {
				t.Errorf("addresses %q, want %q", line(got), tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != "discovery: "+tt.err {
				t.Errorf("err = %v, want %s", err, tt.err)
			}
			if errors.Is(err, ErrNoAddress) != (tt.err == "no address") {
				t.Errorf("%v is ErrNoAddress: %t", err, errors.Is(err, ErrNoAddress))
			}
		})
	}
}

func TestAnswersToOtherQuestionsDoNotCount(t *testing.T) {
	q := question("a.example.", dns.TypeA)
	good := func() *dns.Msg { return message(t, "a.example.", dns.TypeA, 0, "a.example. 60 IN A 10.0.0.1") }
	for name, change := range map[string]func(*dns.Msg){
		"a question":    func(m *dns.Msg) { m.Response = false },
		"none":          func(m *dns.Msg) { m.Question = nil },
		"two":           func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
		"another name":  func(m *dns.Msg) { m.Question[0].Name = "b.example." },
		"another type":  func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA },
		"another class": func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
	} {
		m := good()
		change(m)
		if got, err := parsed(t, m).addresses(q); err == nil || errors.Is(err, ErrNoAddress) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := parsed(t, good()).addresses(q); err != nil {
		t.Error(err)
	}
}

// FuzzAnswer checks that no answer causes a panic, and that parsed addresses have the
// wanted family and a valid TTL, and are no more than the records.
func FuzzAnswer(f *testing.F) {
	seeds := []*dns.Msg{
		message(f, "a.example.", dns.TypeA, 0, "a.example. 60 IN A 10.0.0.1", "a.example. 2147483648 IN A 10.0.0.1"),
		message(f, "a.example.", dns.TypeAAAA, 0, "a.example. 60 IN CNAME b.example.", "b.example. 60 IN AAAA fd00::1"),
		message(f, "a.example.", dns.TypeA, dns.RcodeNameError),
		message(f, "a.example.", dns.TypeA, 0, "a.example. 60 IN CNAME a.example."),
	}
	for _, m := range seeds {
		m.Compress = true
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parse(b)
		if err != nil {
			return
		}
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			got, err := a.addresses(question("a.example.", rrtype))
			if (err == nil) != (len(got) > 0) || len(got) > len(a.records) {
				t.Fatalf("%d addresses of %d records, %v", len(got), len(a.records), err)
			}
			for _, r := range got {
				if r.Addr.Is4() != (rrtype == dns.TypeA) || r.TTL < 0 || r.TTL > maxTTL {
					t.Errorf("type %d: %v for %v", rrtype, r.Addr, r.TTL)
				}
			}
		}
	})
}
