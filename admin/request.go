package admin

import (
	"cmp"
	"net/netip"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Request is a request to a known path that has passed all checks. It is valid
// until its handler returns.
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
	prefix   string // under which the program mounted the server
	query    Query

	principal Principal

	endpoint *Endpoint
	closing  <-chan struct{}
	changes  []Change
	after    []func()

	bundled bool // the answer is part of a bundle

	dryRun bool
	ttl    time.Duration // of the settings that the request changes
	sets   []string      // names of settings
	edit   *edit         // nil: no settings
	undoes uint64        // entry of the audit log
	again  []setting     // values that are temporary again
}

// Method returns the method, such as "GET".
func (r *Request) Method() string { return r.method }

// Path returns the request target up to the first question mark.
func (r *Request) Path() string { return r.path }

// Target returns the path and the query as sent.
func (r *Request) Target() string { return r.target }

// Base returns the address that precedes paths of endpoints for the client: the
// scheme, the host, and the prefix under which the server is mounted.
func (r *Request) Base() string {
	scheme := "http://"
	if r.tls {
		scheme = "https://"
	}
	return scheme + cmp.Or(r.Header("host"), "localhost") + r.prefix
}

// Query returns the parameters of the query, or of a form in the body if there is no
// query.
func (r *Request) Query() Query { return r.query }

// Header returns the first value of a header field, or "" if it is absent. The name
// is case-insensitive.
func (r *Request) Header(name string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

func (r *Request) headers(name string) []string { return values(r.fields, name) }

// Body returns the body. The handler must not retain it.
func (r *Request) Body() []byte { return r.body }

// Peer returns the client's address, "unix" for a unix socket and "" for a request of
// the program itself.
func (r *Request) Peer() string { return r.peer }

// Principal returns the identity of the client. Without authentication its role is
// always RoleAdmin. Verified credentials are removed from the header fields.
func (r *Request) Principal() Principal { return r.principal }

// Closing returns a channel that is closed when the server shuts down. See
// [Response.Endless] for a channel that is also closed when the client is gone.
func (r *Request) Closing() <-chan struct{} { return r.closing }

// After registers f to run after the response was sent or has failed.
func (r *Request) After(f func()) { r.after = append(r.after, f) }

// settle runs the functions passed to After.
func (r *Request) settle() {
	for _, f := range r.after {
		f()
	}
}

// Changed records a change for the audit log, and for the response to a dry
// run. Values that look secret are masked.
func (r *Request) Changed(what, before, after string) {
	r.changes = append(r.changes, Change{what, redact.Masked(what, before), redact.Masked(what, after)})
}

// withoutHost reports whether r uses HTTP/1.0 and names no host. Browsers never send
// such requests, so a foreign page cannot cause one.
func (r *Request) withoutHost() bool {
	return r.proto == "HTTP/1.0" && r.host == "" && len(r.headers("host")) == 0
}

// formType is the exact content type of a form, without parameters.
const formType = "application/x-www-form-urlencoded"

// parseParams sets the parameters. If they exceed a limit, it returns the reason to
// refuse.
func (r *Request) parseParams(l *Limits) (refused string) {
	_, text, _ := strings.Cut(r.target, "?")
	if text == "" && r.Header("content-type") == formType && r.endpoint.readsForm(string(r.body)) {
		text = strings.ReplaceAll(string(r.body), "+", " ") // %2B stays a plus
	}
	longest := l.QueryValue
	if longest >= 0 {
		longest = max(longest, r.endpoint.maxValue)
	}
	r.query, refused = parseQuery(text, l.QueryParams, longest)
	return refused
}
