package discovery

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// headerSize is the size of the header of a message, in bytes.
const headerSize = 12

// maxTTL bounds the time to live of answers, so that one wrong number does not freeze a
// name for years.
const maxTTL = 7 * 24 * time.Hour

// answer is what this package reads of an answer.
type answer struct {
	dnsmessage.Header // RCode has its extension too
	questions         []dnsmessage.Question
	records           []record
}

// record is an address or an alias.
type record struct {
	dnsmessage.ResourceHeader
	addr   netip.Addr
	target string // of an alias, in canonical form
}

// parse parses an answer. If only the header is valid, it returns that and an error. A
// message of a header alone is valid: some servers refuse like that.
func parse(b []byte) (*answer, error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil {
		return nil, err
	}
	a := &answer{Header: h}
	if len(b) == headerSize {
		return a, nil
	}
	if a.questions, err = p.AllQuestions(); err != nil {
		return a, err
	}
	for {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err == nil {
			err = a.record(&p, h)
		}
		if err != nil {
			return a, err
		}
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return a, err
	}
	for {
		h, err := p.AdditionalHeader()
		switch {
		case errors.Is(err, dnsmessage.ErrSectionDone):
			return a, nil
		case err != nil:
			return a, err
		case h.Type == dnsmessage.TypeOPT:
			a.RCode = h.ExtendedRCode(a.RCode)
		}
		if err := p.SkipAdditional(); err != nil {
			return a, err
		}
	}
}

// record reads the record behind the header h; malformed addresses are skipped.
func (a *answer) record(p *dnsmessage.Parser, h dnsmessage.ResourceHeader) error {
	r := record{ResourceHeader: h}
	switch h.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		body, err := p.UnknownResource()
		if err != nil {
			return err
		}
		var ok bool
		if r.addr, ok = netip.AddrFromSlice(body.Data); !ok || r.addr.Is4() != (h.Type == dnsmessage.TypeA) {
			return nil
		}
	case dnsmessage.TypeCNAME:
		body, err := p.CNAMEResource()
		if err != nil {
			return err
		}
		r.target = canonicalName(body.CNAME)
	default:
		return p.SkipAnswer()
	}
	a.records = append(a.records, r)
	return nil
}

// canonicalName returns n with its ASCII letters in lower case.
func canonicalName(n dnsmessage.Name) string {
	for i, c := range n.Data[:n.Length] {
		if 'A' <= c && c <= 'Z' {
			n.Data[i] += 'a' - 'A'
		}
	}
	return n.String()
}

// addresses returns the addresses in a for the question q, following aliases. It
// returns [ErrNoAddress] if the answer says that there are none, and another error if a
// is not a valid answer to q.
func (a *answer) addresses(q dnsmessage.Question) ([]Record, error) {
	bare := len(a.questions) == 0 && a.RCode != dnsmessage.RCodeSuccess && a.RCode != dnsmessage.RCodeNameError
	if !a.Response || !bare && (len(a.questions) != 1 || !sameQuestion(a.questions[0], q)) {
		return nil, fmt.Errorf("discovery: the answer is not for %q", q.Name)
	}
	switch a.RCode {
	case dnsmessage.RCodeSuccess:
	case dnsmessage.RCodeNameError:
		return nil, ErrNoAddress
	default:
		return nil, &refusal{name: q.Name.String(), code: a.RCode}
	}
	owner, ttl := a.canonical(canonicalName(q.Name))
	var records []Record
	for _, r := range a.records {
		if r.Class == dnsmessage.ClassINET && r.Type == q.Type && canonicalName(r.Name) == owner {
			records = append(records, Record{Addr: r.addr, TTL: min(ttl, r.ttl())})
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
	code dnsmessage.RCode
}

// codes names response codes.
var codes = map[dnsmessage.RCode]string{
	1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED", 6: "YXDOMAIN", 7: "YXRRSET", 8: "NXRRSET", 9: "NOTAUTH", 10: "NOTZONE",
	16: "BADVERS", 23: "BADCOOKIE",
}

// Error implements error.
func (r *refusal) Error() string {
	text, known := codes[r.code]
	if !known {
		text = fmt.Sprintf("code %d", uint16(r.code))
	}
	return fmt.Sprintf("discovery: the server answers %s for %q", text, r.name)
}

// toAnother reports whether a answers another question than that of m, so that it is
// late or forged.
func (a *answer) toAnother(m *dnsmessage.Message) bool {
	return a != nil && len(a.questions) > 0 && (len(a.questions) != 1 || !sameQuestion(a.questions[0], m.Questions[0]))
}

func sameQuestion(a, b dnsmessage.Question) bool {
	return a.Type == b.Type && a.Class == b.Class && canonicalName(a.Name) == canonicalName(b.Name)
}

// canonical follows the aliases of name. It returns the final name and the smallest TTL
// on the way.
func (a *answer) canonical(name string) (string, time.Duration) {
	ttl := maxTTL
	var aliases map[string]record
	for _, r := range a.records {
		if r.Type != dnsmessage.TypeCNAME || r.Class != dnsmessage.ClassINET {
			continue
		}
		if aliases == nil {
			aliases = make(map[string]record)
		}
		owner := canonicalName(r.Name)
		if _, ok := aliases[owner]; !ok {
			aliases[owner] = r
		}
	}
	for range len(aliases) { // a circle ends too
		if r, ok := aliases[name]; ok {
			name, ttl = r.target, min(ttl, r.ttl())
		}
	}
	return name, ttl
}

// ttl returns the TTL of the record, 0 if its highest bit is set.
func (r *record) ttl() time.Duration {
	if r.TTL > 1<<31-1 {
		return 0
	}
	return min(time.Duration(r.TTL)*time.Second, maxTTL)
}
