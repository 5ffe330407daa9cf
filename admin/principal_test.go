package admin

import (
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCertificatesStandForNames checks that the first matching row applies,
// regardless of the order of names in the certificate. Without a matching row a
// certificate has a name but no role.
func TestCertificatesStandForNames(t *testing.T) {
	uri := func(text string) *url.URL { return must(url.Parse(text)) }
	a := must(newAuthCheck(&Auth{ClientCertificates: []CertificateRole{
		{"dns:Ops.Test", RoleOperate}, {"uri:spiffe://test/Scraper", RoleMetrics}, {"ip:10.0.0.1", RoleRead},
		{"ip:2001:db8::1", RoleRead}, {"dns:ops.test", RoleAdmin},
	}}))
	for _, tt := range []struct {
		cert   x509.Certificate
		want   Principal
		nobody string // who it is without authentication
	}{
		{x509.Certificate{DNSNames: []string{"OPS.test"}}, Principal{"dns:Ops.Test", RoleOperate}, "dns:ops.test"},
		{x509.Certificate{DNSNames: []string{"x.test", "ops.test"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}},
			Principal{"dns:Ops.Test", RoleOperate}, "dns:x.test"},
		{x509.Certificate{URIs: []*url.URL{uri("spiffe://test/Scraper")}}, Principal{"uri:spiffe://test/Scraper", RoleMetrics}, "uri:spiffe://test/Scraper"},
		{x509.Certificate{URIs: []*url.URL{uri("spiffe://test/scraper")}}, Principal{"uri:spiffe://test/scraper", RoleNone}, "uri:spiffe://test/scraper"},
		{x509.Certificate{IPAddresses: []net.IP{net.ParseIP("10.0.0.1")}}, Principal{"ip:10.0.0.1", RoleRead}, "ip:10.0.0.1"},
		{x509.Certificate{IPAddresses: []net.IP{net.ParseIP("2001:DB8::1")}}, Principal{"ip:2001:db8::1", RoleRead}, "ip:2001:db8::1"},
		{x509.Certificate{DNSNames: []string{"10.0.0.1"}}, Principal{"dns:10.0.0.1", RoleNone}, "dns:10.0.0.1"},
		{x509.Certificate{DNSNames: []string{"a.ops.test", "*.test"}}, Principal{"dns:a.ops.test", RoleNone}, "dns:a.ops.test"},
		{x509.Certificate{EmailAddresses: []string{"ops.test"}}, Principal{"certificate abc", RoleNone}, "certificate abc"},
	} {
		tt.cert.SerialNumber = big.NewInt(0xabc)
		tt.cert.Subject.CommonName = "ops.test" // which counts for nothing
		if got := a.certificate(&tt.cert); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.want, got, tt.want)
		}
		if got, want := (*authCheck)(nil).certificate(&tt.cert), (Principal{tt.nobody, RoleAdmin}); got != want {
			t.Errorf("without authentication: %+v, want %+v", got, want)
		}
	}
}

func TestUnixPeersHaveRoles(t *testing.T) {
	a := &authCheck{cfg: Auth{UnixPeers: []PeerRole{
		{ID: 7, Role: RoleMetrics}, {Group: true, ID: 8, Role: RoleOperate}, {ID: 8, Role: RoleAdmin}, {ID: 7, Role: RoleAdmin},
	}}}
	for _, tt := range []struct {
		uid, gid uint32
		want     Role
	}{{7, 0, RoleMetrics}, {7, 8, RoleMetrics}, {8, 8, RoleOperate}, {1, 8, RoleOperate}, {8, 7, RoleAdmin}, {1, 7, RoleNone}, {0, 0, RoleNone}} {
		if got, want := a.peer(tt.uid, tt.gid), (Principal{fmt.Sprintf("uid %d", tt.uid), tt.want}); got != want {
			t.Errorf("user %d, group %d: %+v, want %+v", tt.uid, tt.gid, got, want)
		}
	}
	if got, want := (*authCheck)(nil).peer(7, 7), (Principal{"uid 7", RoleAdmin}); got != want {
		t.Errorf("without authentication: %+v, want %+v", got, want)
	}
}

// TestFailuresAreDelayed checks that responses to invalid credentials are delayed by
// 100 ms unless the server shuts down.
func TestFailuresAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Auth: &Auth{Tokens: testTokens(t)}})
		ask := func(token string) (int, time.Duration) {
			start := time.Now()
			return s.Request("GET", "/help", nil, bearer(token)).Status, time.Since(start)
		}
		if status, took := ask("wrong"); status != 401 || took != 100*time.Millisecond {
			t.Errorf("a wrong token: status %d after %s", status, took)
		}
		if status, took := ask(secret(RoleRead)); status != 200 || took != 0 {
			t.Errorf("a right token: status %d after %s", status, took)
		}
		go func() {
			time.Sleep(40 * time.Millisecond)
			_ = s.Close()
		}()
		if status, took := ask("wrong"); status != 401 || took != 40*time.Millisecond {
			t.Errorf("at the end of the server: status %d after %s", status, took)
		}
	})
}

// TestTooManyFailuresHangUp sends invalid credentials repeatedly over one connection,
// which is closed after too many failures.
func TestTooManyFailuresHangUp(t *testing.T) {
	s := impatient(start(t, Config{Auth: &Auth{Tokens: testTokens(t)}}))
	answers := parseAnswers(t, talk(t, s, strings.Repeat(request("GET /help HTTP/1.1", "Authorization: Bearer wrong"), 2*failuresPerSec)))
	if len(answers) != failuresPerSec+1 {
		t.Fatalf("%d answers, want %d", len(answers), failuresPerSec+1)
	}
	for _, a := range answers[:failuresPerSec] {
		if a.status != 401 {
			t.Errorf("%+v", a)
		}
	}
	if last := answers[failuresPerSec]; last.status != 429 || last.header.Get("retry-after") != "1" {
		t.Errorf("the last answer is %+v", last)
	}
}

// TestFailuresOfManyAddresses checks that the number of tracked addresses is bounded,
// and that the last ones share a counter.
func TestFailuresOfManyAddresses(t *testing.T) {
	var f failures
	address := netip.MustParseAddr("10.0.0.0")
	within := 0
	for range failureEntries + 100 {
		address = address.Next()
		if f.note(address, testTime()) {
			within++
		}
	}
	if want := failureEntries + failuresPerSec; within != want || len(f.counts) != failureEntries+1 {
		t.Errorf("%d are within the limit, want %d; %d addresses are remembered", within, want, len(f.counts))
	}
	if !f.note(netip.MustParseAddr("10.0.0.1"), testTime()) {
		t.Error("an address that came early shares a count")
	}
}

// TestRolesAreNamed checks that a refusal names the required role.
func TestRolesAreNamed(t *testing.T) {
	s := newServer(t, Config{Auth: &Auth{Tokens: testTokens(t)}})
	for _, tt := range []struct {
		path string
		role Role
		want string
	}{
		{"/help", RoleMetrics, "this needs the role read, yours is metrics\n"},
		{"/reset_counters", RoleRead, "this needs the role operate, yours is read\n"},
		{"/quitquitquit", RoleOperate, "this needs the role admin, yours is operate\n"},
	} {
		if r := s.Request("POST", tt.path, nil, bearer(secret(tt.role))); r.Status != 403 || string(r.Body) != tt.want {
			t.Errorf("%s: %d %q, want %q", tt.path, r.Status, r.Body, tt.want)
		}
	}
}

// TestOpenPathsGiveTheLeastRole checks that open paths ignore credentials.
func TestOpenPathsGiveTheLeastRole(t *testing.T) {
	s := newServer(t, Config{Auth: &Auth{Tokens: testTokens(t), OpenPaths: []string{"/ready"}}})
	for _, fields := range [][]Field{nil, {bearer("wrong")}, {bearer(secret(RoleAdmin))}} {
		r := &Request{method: "GET", host: "localhost", fields: fields, principal: Principal{"uid 7", RoleAdmin}}
		r.setTarget("/ready")
		if want := (Principal{"uid 7", RoleMetrics}); !s.auth.authenticate(r) || r.principal != want || len(r.fields) != 0 {
			t.Errorf("%q: %+v, want %+v; fields %q are left", fields, r.principal, want, r.fields)
		}
	}
}
