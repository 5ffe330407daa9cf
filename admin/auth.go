package admin

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Auth configures authentication and authorization. A client authenticates with a
// token, its TLS certificate, or its user on a unix socket. A token takes precedence
// over a certificate.
type Auth struct {
	// Tokens are accepted as Authorization: Bearer, and as the password of Basic with
	// any user name. Optional.
	Tokens *Tokens
	// ClientCertificates assigns roles to names in client certificates. The first
	// matching row applies. TLS must request certificates.
	ClientCertificates []CertificateRole
	// UnixPeers assigns roles to users and groups. The first matching row applies.
	// Linux only.
	UnixPeers []PeerRole
	// OpenPaths are paths that need no credentials. Only /ready, /live and the
	// paths of the stats are allowed.
	OpenPaths []string
}

// CertificateRole is the role of a subject alternative name: dns:host.example,
// uri:spiffe://example/x or ip:10.0.0.1.
type CertificateRole struct {
	Name string
	Role Role
}

// PeerRole is the role of processes with the given user or primary group.
type PeerRole struct {
	Group bool // ID is a group
	ID    uint32
	Role  Role
}

// Limits for requests with invalid credentials. The same rate limits the audit
// entries for requests refused for other reasons.
const (
	failureDelay   = 100 * time.Millisecond
	failuresPerSec = 20 // per address; further ones are refused
	failureEntries = 4096
)

// authCheck is a compiled Auth. If nil, every client has all permissions.
type authCheck struct {
	cfg      Auth
	delay    time.Duration
	failures failures
}

func newAuthCheck(cfg *Auth) (*authCheck, error) {
	if cfg == nil {
		return nil, nil
	}
	a := &authCheck{cfg: *cfg, delay: failureDelay}
	for _, c := range cfg.ClientCertificates {
		if kind, name, _ := strings.Cut(c.Name, ":"); name == "" || !slices.Contains([]string{"dns", "uri", "ip"}, kind) {
			return nil, fmt.Errorf("admin: certificate name %q is not dns:name, uri:name or ip:address", c.Name)
		}
	}
	if len(cfg.UnixPeers) > 0 && !peersKnown {
		return nil, errors.New("admin: this system cannot identify the peer of a unix socket")
	}
	return a, nil
}

// checkOpen returns an error for a path that cannot be open.
func (a *authCheck) checkOpen(table *endpoints) error {
	if a == nil {
		return nil
	}
	for _, path := range a.cfg.OpenPaths {
		if e := table.byPath[path]; e == nil || !e.metrics {
			return fmt.Errorf("admin: open path %q is not /ready, /live or a path of the stats", path)
		}
	}
	return nil
}

// certificate returns the principal of a verified certificate.
func (a *authCheck) certificate(cert *x509.Certificate) Principal {
	var names []string
	for _, name := range cert.DNSNames {
		names = append(names, "dns:"+strings.ToLower(name))
	}
	for _, uri := range cert.URIs {
		names = append(names, "uri:"+uri.String())
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, "ip:"+ip.String())
	}
	first := "certificate " + cert.SerialNumber.Text(16)
	if len(names) > 0 {
		first = names[0]
	}
	if a == nil {
		return Principal{first, RoleAdmin}
	}
	for _, c := range a.cfg.ClientCertificates {
		want := c.Name
		if host, ok := strings.CutPrefix(want, "dns:"); ok {
			want = "dns:" + strings.ToLower(host)
		}
		if slices.Contains(names, want) {
			return Principal(c)
		}
	}
	return Principal{first, RoleNone}
}

// peer returns the principal of the process at the other end of a unix socket.
func (a *authCheck) peer(uid, gid uint32) Principal {
	p := Principal{Name: fmt.Sprintf("uid %d", uid), Role: RoleAdmin}
	if a == nil {
		return p
	}
	p.Role = RoleNone
	for _, u := range a.cfg.UnixPeers {
		if !u.Group && u.ID == uid || u.Group && u.ID == gid {
			p.Role = u.Role
			break
		}
	}
	return p
}

// credential returns the secret of an Authorization header.
func credential(header string) string {
	scheme, rest, _ := strings.Cut(header, " ")
	rest = strings.Trim(rest, " ")
	switch strings.ToLower(scheme) {
	case "bearer":
		return rest
	case "basic":
		if text, err := base64.StdEncoding.DecodeString(rest); err == nil {
			_, password, _ := strings.Cut(string(text), ":")
			return password
		}
	}
	return ""
}

// authenticate sets the principal of r, and reports false if r must be refused. It
// removes the credentials from the request, so that no handler and no log sees them.
func (a *authCheck) authenticate(r *Request) bool {
	if a == nil {
		r.principal.Role = RoleAdmin
		return true
	}
	headers := r.headers("authorization")
	r.fields = slices.DeleteFunc(slices.Clone(r.fields), func(f Field) bool { return strings.EqualFold(f.Name, "authorization") })
	if slices.Contains(a.cfg.OpenPaths, r.path) {
		r.principal = Principal{Name: r.principal.Name, Role: RoleMetrics}
		return true
	}
	switch len(headers) {
	case 0:
		return r.principal.Role != RoleNone
	case 1:
		if token, ok := a.cfg.Tokens.find(credential(headers[0])); ok {
			r.principal = Principal{cmp.Or(token.Name, "token"), token.Role}
			return true
		}
	}
	r.principal = Principal{}
	return false
}

// challenge answers an unauthenticated client. The response does not reveal which
// part of the credentials is wrong.
func (s *Server) challenge(w *Response, r *Request) error {
	s.metrics.unauthenticated.Inc()
	if !s.auth.failures.note(r.from, s.now()) {
		w.SetHeader("retry-after", "1")
		w.transport.hangUp()
		return w.text(429, "too many requests with wrong credentials\n")
	}
	if r.method != "GET" && r.method != "HEAD" {
		s.audit.add(AuditEntry{Time: s.now(), Method: r.method, Path: r.path, Peer: r.peer, Status: 401, Reason: "not authenticated"})
	}
	select {
	case <-time.After(s.auth.delay):
	case <-r.closing:
	}
	// A browser would open its own dialog, though the script has a form.
	if r.Header("sec-fetch-dest") != "empty" || r.Header(signIn) != "" {
		w.fields = append(w.fields, Field{"www-authenticate", `Basic realm="` + s.product + ` administration", charset="UTF-8"`})
	}
	w.fields = append(w.fields,
		Field{"www-authenticate", `Bearer realm="` + s.product + ` administration"`})
	return w.text(401, "credentials are needed: a token as Authorization: Bearer or as the password of Basic, "+
		"or a client certificate or user that has a role here\n")
}

// signIn is the header field of a script that makes the browser remember credentials.
const signIn = "x-sign-in"

// deny answers a client whose role does not permit a path.
func (s *Server) deny(w *Response, r *Request, need Role) error {
	s.metrics.denied.Inc()
	if r.method != "GET" && r.method != "HEAD" {
		s.auditRefusal(r, "role")
	}
	return w.text(403, "this needs the role "+need.String()+", yours is "+r.principal.Role.String()+"\n")
}

// failures counts refused requests by address and second.
type failures struct {
	mu     sync.Mutex
	second int64
	counts map[netip.Addr]int
}

// note counts a failure and reports whether it is within the limit. If very many
// addresses fail within one second, the last of them share a counter.
func (f *failures) note(from netip.Addr, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if second := now.Unix(); second != f.second || f.counts == nil {
		f.second, f.counts = second, make(map[netip.Addr]int)
	}
	if _, known := f.counts[from]; !known && len(f.counts) >= failureEntries {
		from = netip.Addr{}
	}
	f.counts[from]++
	return f.counts[from] <= failuresPerSec
}
