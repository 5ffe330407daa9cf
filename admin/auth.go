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

// Auth says who may do what. A caller proves who it is with a token, the
// certificate of its TLS connection, or by the user that it runs as on a unix
// socket. A token that is sent counts even if there is a certificate.
type Auth struct {
	// Tokens are accepted as Authorization: Bearer, and as the password of
	// Basic with any user name. Nil: none are.
	Tokens *Tokens
	// ClientCertificates give roles to the names in certificates of clients.
	// The first row that fits counts. TLS must ask for certificates.
	ClientCertificates []CertificateRole
	// UnixPeers give roles to users and groups. The first row that fits
	// counts. Only on Linux.
	UnixPeers []PeerRole
	// OpenPaths need no credentials. They may be /ready, /live and the paths
	// of the stats.
	OpenPaths []string
}

// CertificateRole is the role of a subject alternative name: dns:host.example,
// uri:spiffe://example/x or ip:10.0.0.1.
type CertificateRole struct {
	Name string
	Role Role
}

// PeerRole is the role of the processes of a user, or of processes that have a
// group as their own.
type PeerRole struct {
	Group bool // ID is a group
	ID    uint32
	Role  Role
}

// How wrong credentials are answered. So many requests that are refused for other
// reasons have an entry in the audit log, too.
const (
	failureDelay   = 100 * time.Millisecond
	failuresPerSec = 20 // from one address; further ones are turned away
	failureEntries = 4096
)

// authCheck holds what an Auth says. Nil means that everybody may do all.
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
		return nil, errors.New("admin: this system does not tell who is at the other end of a unix socket")
	}
	return a, nil
}

// checkOpen reports an open path that must not be one.
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

// certificate returns who a verified certificate stands for.
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

// peer returns who the process at the other end of a unix socket runs as.
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

// authenticate finds out who sends r, and reports false if it must be refused.
// The credentials are taken out of the request: no handler and no log sees them.
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

// challenge answers a caller that has not proved who it is. Which part of the
// credentials is wrong is kept secret.
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
	delay := time.NewTimer(s.auth.delay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-r.closing:
	}
	w.fields = append(w.fields,
		Field{"www-authenticate", `Basic realm="` + s.product + ` administration", charset="UTF-8"`},
		Field{"www-authenticate", `Bearer realm="` + s.product + ` administration"`})
	return w.text(401, "credentials are needed: a token as Authorization: Bearer or as the password of Basic, "+
		"or a client certificate or user that has a role here\n")
}

// deny answers a caller whose role does not allow a path.
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

// note counts a failure and reports whether it is within the limit. With very
// many addresses in one second, the latecomers share a count.
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
