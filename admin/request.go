package admin

import (
	"net/netip"
	"strings"
)

// Request is a request whose path is known and whose framing, host and origin
// were checked. It is valid until its handler returns.
type Request struct {
	method   string
	target   string // path and query
	path     string
	proto    string
	host     string // the Host header, or the authority of the target
	fields   []Field
	body     []byte
	peer     string
	from     netip.Addr // of peer
	listener listenerKind
	tls      bool
	query    Query

	principal Principal

	endpoint *Endpoint
	closing  <-chan struct{}
	changes  []Change
	after    []func()
}

// Method returns the method, such as "GET".
func (r *Request) Method() string { return r.method }

// Path returns the request target up to the first question mark.
func (r *Request) Path() string { return r.path }

// Target returns the path and the query as they were sent.
func (r *Request) Target() string { return r.target }

// Query returns the parameters of the query, or of a form in the body if there
// is no query.
func (r *Request) Query() Query { return r.query }

// Header returns the first value of a header field, "" if there is none. The
// name is compared without case.
func (r *Request) Header(name string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

func (r *Request) headers(name string) []string { return values(r.fields, name) }

// Body returns the body. The handler must not keep it.
func (r *Request) Body() []byte { return r.body }

// Peer returns the address that the request came from, "unix" for a unix
// socket and "" for one made by the program itself.
func (r *Request) Peer() string { return r.peer }

// Principal returns who sent the request. Without authentication its role is
// always RoleAdmin. Credentials that were checked are not among the header
// fields any more.
func (r *Request) Principal() Principal { return r.principal }

// Closing returns a channel that is closed when the server shuts down. See
// [Response.Endless] for a channel that is also closed when the client is gone.
func (r *Request) Closing() <-chan struct{} { return r.closing }

// After makes f run once the answer was sent or could not be.
func (r *Request) After(f func()) { r.after = append(r.after, f) }

// Changed notes for the audit log what the request changed.
func (r *Request) Changed(what, before, after string) {
	r.changes = append(r.changes, Change{what, before, after})
}

// withoutHost reports whether r is of HTTP/1.0 and names no host. No browser
// sends such requests, so a foreign page cannot cause one.
func (r *Request) withoutHost() bool {
	return r.proto == "HTTP/1.0" && r.host == "" && len(r.headers("host")) == 0
}

// formType is the content type of a form. Nothing may follow it.
const formType = "application/x-www-form-urlencoded"

// parseParams fills in the parameters. It reports false if they are over a
// limit.
func (r *Request) parseParams(l *Limits) bool {
	_, text, _ := strings.Cut(r.target, "?")
	if text == "" && r.Header("content-type") == formType {
		text = strings.ReplaceAll(string(r.body), "+", " ") // %2B stays a plus
	}
	longest := l.QueryValue
	if longest >= 0 {
		longest = max(longest, r.endpoint.maxValue)
	}
	var ok bool
	r.query, ok = parseQuery(text, l.QueryParams, longest)
	return ok
}
