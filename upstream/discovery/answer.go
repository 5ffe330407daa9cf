package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// maxTTL bounds the time to live of answers, so that one wrong number does not freeze a
// name for years.
const maxTTL = 7 * 24 * time.Hour

// addresses returns the addresses in r for the question q, following aliases. It
// returns [ErrNoAddress] if the answer says that there are none, and another error if r
// is not a valid answer to q.
func addresses(r *dns.Msg, q dns.Question) ([]Record, error) {
	if !r.Response || len(r.Question) != 1 || !sameQuestion(r.Question[0], q) {
		return nil, fmt.Errorf("discovery: the answer is not for %q", q.Name)
	}
	switch r.Rcode {
	case dns.RcodeSuccess:
	case dns.RcodeNameError:
		return nil, ErrNoAddress
	default:
		return nil, &refusal{name: q.Name, code: r.Rcode}
	}
	owner, ttl := canonical(r.Answer, dns.CanonicalName(q.Name))
	var records []Record
	for _, rr := range r.Answer {
		h := rr.Header()
		if h.Class != dns.ClassINET || h.Rrtype != q.Qtype || dns.CanonicalName(h.Name) != owner {
			continue
		}
		if a, ok := addressOf(rr); ok {
			records = append(records, Record{Addr: a, TTL: min(ttl, ttlOf(h))})
		}
	}
	if len(records) == 0 {
		return nil, ErrNoAddress
	}
	return records, nil
}

// refusal is a response code by which a server refuses to answer.
type refusal struct {
	name string
	code int
}

// Error implements error.
func (r *refusal) Error() string {
	text, known := dns.RcodeToString[r.code]
	if !known {
		text = fmt.Sprintf("code %d", r.code)
	}
	return fmt.Sprintf("discovery: the server answers %s for %q", text, r.name)
}

func sameQuestion(a, b dns.Question) bool {
	return a.Qtype == b.Qtype && a.Qclass == b.Qclass && dns.CanonicalName(a.Name) == dns.CanonicalName(b.Name)
}

// canonical follows the aliases of name. It returns the final name and the smallest TTL
// on the way.
func canonical(answer []dns.RR, name string) (string, time.Duration) {
	ttl := maxTTL
	var aliases map[string]*dns.CNAME
	for _, rr := range answer {
		if c, ok := rr.(*dns.CNAME); ok && c.Hdr.Class == dns.ClassINET {
			if aliases == nil {
				aliases = make(map[string]*dns.CNAME)
			}
			if owner := dns.CanonicalName(c.Hdr.Name); aliases[owner] == nil {
				aliases[owner] = c
			}
		}
	}
	for range len(aliases) { // a circle ends too
		if c := aliases[name]; c != nil {
			name, ttl = dns.CanonicalName(c.Target), min(ttl, ttlOf(&c.Hdr))
		}
	}
	return name, ttl
}

func addressOf(rr dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch x := rr.(type) {
	case *dns.A:
		ip = x.A.To4()
	case *dns.AAAA:
		ip = x.AAAA
	}
	return netip.AddrFromSlice(ip)
}

// ttlOf returns the TTL of a record, 0 if its highest bit is set.
func ttlOf(h *dns.RR_Header) time.Duration {
	if h.Ttl > 1<<31-1 {
		return 0
	}
	return min(time.Duration(h.Ttl)*time.Second, maxTTL)
}
