package admin

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// authority signs certificates for a test.
type authority struct {
	t   testing.TB
	own *certtest.Pair // nil for the first, which signs itself
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	a.own = a.sign(&x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign completes and signs a certificate. By default it is valid for a year around
// testTime.
func (a *authority) sign(template *x509.Certificate) *certtest.Pair {
	a.t.Helper()
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(0xabc)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = testTime().AddDate(0, -6, 0), testTime().AddDate(0, 6, 0)
	}
	template.Subject = pkix.Name{CommonName: "test"}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return certtest.Issue(a.t, template, a.own)
}

func (a *authority) issue(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	return a.sign(template).Certificate
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.own.Leaf)
	return pool
}

// server returns a certificate for loopback.
func (a *authority) server() tls.Certificate {
	return a.issue(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// named returns a certificate of a client.
func (a *authority) named(uri string) tls.Certificate {
	u, err := url.Parse(uri)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.issue(&x509.Certificate{URIs: []*url.URL{u}, DNSNames: []string{"client.test"}})
}

// settings returns the TLS settings of a server that asks for client certificates.
func (a *authority) settings(clients tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.server()}, ClientAuth: clients, ClientCAs: a.pool(), Time: testTime}
}

// client returns a client that trusts a and presents certificates.
func (a *authority) client(certs ...tls.Certificate) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certs, Time: testTime}}
	a.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// ask returns the status and body of a response.
func ask(t testing.TB, c *http.Client, method, url string, fields ...Field) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		req.Header.Add(f.Name, f.Value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode, string(body)
}

func TestVersions(t *testing.T) {
	ca := newAuthority(t)
	s := start(t, Config{TLS: ca.settings(tls.NoClientCert)})
	for _, tt := range []struct {
		version uint16
		ok      bool
	}{{tls.VersionTLS10, false}, {tls.VersionTLS11, false}, {tls.VersionTLS12, true}, {tls.VersionTLS13, true}} {
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime, MinVersion: tt.version, MaxVersion: tt.version})
		if (err == nil) != tt.ok {
			t.Errorf("version %x: %v", tt.version, err)
		}
		if err == nil {
			c.Close()
		}
	}
	c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if st := c.ConnectionState(); st.Version != tls.VersionTLS13 || st.NegotiatedProtocol != "http/1.1" {
		t.Errorf("version %x and protocol %q", st.Version, st.NegotiatedProtocol)
	}
	// The client notices the failure before the server counts it.
	waittest.Until(t, "two failed handshakes", func() bool { return s.metrics.handshakeErrors.Value() >= 2 })
	if got := s.metrics.handshakeErrors.Value(); got != 2 {
		t.Errorf("%d failed handshakes are counted, want 2", got)
	}
	for _, suite := range tls.InsecureCipherSuites() {
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		if err == nil {
			c.Close()
			t.Errorf("the cipher suite %s is spoken", suite.Name)
		}
	}
}

// TestSettingsOfUsersAreBounded checks that user settings, including client-dependent
// ones, cannot enable old TLS versions or another protocol.
func TestSettingsOfUsersAreBounded(t *testing.T) {
	ca := newAuthority(t)
	lax := ca.settings(tls.NoClientCert)
	lax.MinVersion, lax.NextProtos = tls.VersionTLS10, []string{"h2"}
	for name, settings := range map[string]*tls.Config{
		"plain":      lax,
		"per-client": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return lax, nil }},
		"none-for-this-client": {Certificates: lax.Certificates, MinVersion: tls.VersionTLS10,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{TLS: settings})
			client := &tls.Config{RootCAs: ca.pool(), Time: testTime, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
			if c, err := tls.Dial("tcp", s.Addr().String(), client); err == nil {
				c.Close()
				t.Error("TLS 1.1 is spoken")
			}
			client.MaxVersion, client.NextProtos = tls.VersionTLS12, []string{"h2", "http/1.1"}
			c, err := tls.Dial("tcp", s.Addr().String(), client)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
				t.Errorf("protocol %q", got)
			}
		})
	}
	s := start(t, Config{TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return lax, errors.New("no") }}})
	if c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime}); err == nil {
		c.Close()
		t.Error("a client that is refused by the settings is served")
	}
}

// TestPlainHTTPGetsALine sends HTTP to a port with TLS.
func TestPlainHTTPGetsALine(t *testing.T) {
	ca := newAuthority(t)
	s := start(t, Config{TLS: ca.settings(tls.NoClientCert)})
	for _, raw := range []string{probe, request("POST /quitquitquit HTTP/1.1")} {
		a := parseAnswers(t, talk(t, s, raw))
		if len(a) != 1 || a[0].status != 400 || a[0].body != "this port speaks TLS: use https\n" {
			t.Errorf("%q: %+v", raw, a)
		}
	}
	if raw := talk(t, s, "nonsense\r\n\r\n"); strings.Contains(raw, "HTTP") {
		t.Errorf("nonsense is answered with %q", raw)
	}
}

// TestTLSAnswersAreTheSame requests responses of all sizes, whole and in chunks, and
// a cut one.
func TestTLSAnswersAreTheSame(t *testing.T) {
	ca := newAuthority(t)
	s := start(t, Config{TLS: ca.settings(tls.NoClientCert), Store: fixture()})
	s.Handle(Endpoint{Path: "/big", Serve: func(w *Response, r *Request) error {
		for range 40 {
			if _, err := w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<10)); err != nil {
				return err
			}
		}
		if len(r.Query().Keys()) > 0 {
			return errors.New("cut")
		}
		return nil
	}})
	one, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	answers := bufio.NewReader(one)
	for _, path := range []string{"/ready", "/big", "/ready", "/big", "/big", "/ready"} {
		if _, err := io.WriteString(one, request("GET "+path+" HTTP/1.1")); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		want := "LIVE\n"
		if path == "/big" {
			want = strings.Repeat("0123456789abcdef", 40<<10)
		}
		if err != nil || resp.StatusCode != 200 || string(body) != want {
			t.Errorf("%s: status %d, %d bytes, %v", path, resp.StatusCode, len(body), err)
		}
	}
	if got := s.metrics.handshakes.Value(); got != 1 {
		t.Errorf("%d handshakes for one client, want 1", got)
	}
	for _, version := range []string{"1.0", "1.1"} {
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /big?cut HTTP/"+version+"\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if err == nil {
			t.Errorf("HTTP/%s: an answer that was cut looks complete", version)
		}
		c.Close()
	}
}

// TestHalfOpenHandshakesEnd holds connections open without a handshake.
func TestHalfOpenHandshakesEnd(t *testing.T) {
	ca := newAuthority(t)
	s := start(t, Config{TLS: ca.settings(tls.NoClientCert), Limits: Limits{ReadTimeout: 50 * time.Millisecond}})
	for range 20 {
		c := dial(t, s)
		if _, err := c.Write([]byte{22, 3, 1}); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the connections to end", func() bool { return s.metrics.handshakeErrors.Value() == 20 && s.connections.count() == 0 })
}

// TestRotation replaces the certificate while requests run on new and old
// connections.
func TestRotation(t *testing.T) {
	ca := newAuthority(t)
	var current atomic.Pointer[tls.Certificate]
	exchange := func(Serial int64) {
		pair := ca.issue(&x509.Certificate{SerialNumber: big.NewInt(Serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
		current.Store(&pair)
	}
	exchange(1)
	s := start(t, Config{Now: time.Now, TLS: &tls.Config{Time: testTime, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*current.Load()}, Time: testTime}, nil
	}}})
	base := "https://" + s.Addr().String()
	const rotations, requests = 20, 50
	var wg sync.WaitGroup
	for worker := range 4 {
		client := ca.client()
		client.Transport.(*http.Transport).DisableKeepAlives = worker%2 == 0
		wg.Go(func() {
			for range requests {
				if status, body := ask(t, client, "GET", base+"/ready"); status != 200 || body != "LIVE\n" {
					t.Errorf("status %d, %q", status, body)
				}
			}
		})
	}
	for i := range rotations {
		exchange(int64(i) + 2)
	}
	wg.Wait()
	c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.pool(), Time: testTime})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != rotations+1 {
		t.Errorf("the certificate has Serial number %d, want %d", got, rotations+1)
	}
}

// TestWrongClients presents certificates that must not be accepted.
func TestWrongClients(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	expired := ca.issue(&x509.Certificate{DNSNames: []string{"ops.test"}, NotBefore: testTime().AddDate(-1, 0, 0), NotAfter: testTime().Add(-time.Second)})
	s := start(t, Config{
		TLS:  ca.settings(tls.RequireAndVerifyClientCert),
		Auth: &Auth{ClientCertificates: []CertificateRole{{"dns:OPS.test", RoleOperate}}},
	})
	base := "https://" + s.Addr().String()
	good := ca.issue(&x509.Certificate{DNSNames: []string{"ops.test"}})
	if status, _ := ask(t, ca.client(good), "GET", base+"/help"); status != 200 {
		t.Errorf("the right certificate: status %d", status)
	}
	if status, _ := ask(t, ca.client(ca.named("spiffe://test/other")), "GET", base+"/help"); status != 401 {
		t.Errorf("a wrong name: status %d, want 401", status)
	}
	for name, certs := range map[string][]tls.Certificate{
		"none": nil, "expired": {expired}, "of another authority": {other.issue(&x509.Certificate{DNSNames: []string{"ops.test"}})},
	} {
		resp, err := ca.client(certs...).Get(base + "/ready")
		if err == nil {
			resp.Body.Close()
			t.Errorf("a client with certificate %s gets status %d", name, resp.StatusCode)
		}
	}
}

// TestUnverifiedCertificatesGiveNoRole checks that certificates that are requested
// but not verified identify no one.
func TestUnverifiedCertificatesGiveNoRole(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	forged := other.issue(&x509.Certificate{DNSNames: []string{"ops.test"}})
	for _, clients := range []tls.ClientAuthType{tls.RequestClientCert, tls.RequireAnyClientCert} {
		s := impatient(start(t, Config{TLS: ca.settings(clients), Auth: &Auth{ClientCertificates: []CertificateRole{{"dns:ops.test", RoleAdmin}}}, Now: later()}))
		client := ca.client()
		client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &forged, nil // whichever authorities the server names
		}
		if status, _ := ask(t, client, "GET", "https://"+s.Addr().String()+"/help"); status != 401 {
			t.Errorf("%v: status %d, want 401", clients, status)
		}
	}
}

// TestTLSIsNotOnUnixSockets checks that unix sockets do not use TLS.
func TestTLSIsNotOnUnixSockets(t *testing.T) {
	s := start(t, Config{Address: "unix:" + t.TempDir() + "/s", TLS: newAuthority(t).settings(tls.NoClientCert)})
	if a := parseAnswers(t, talk(t, s, probe)); len(a) != 1 || a[0].body != "LIVE\n" {
		t.Errorf("%+v", a)
	}
}

// TestCutAnswersOverTLS: a client sees that an answer without a length is not complete, also
// if the listener of the program does TLS.
func TestCutAnswersOverTLS(t *testing.T) {
	ca := newAuthority(t)
	for name, s := range map[string]*Server{"own": start(t, Config{TLS: ca.settings(tls.NoClientCert)}), "of the program": newServer(t, Config{})} {
		addr := s.Addr()
		if addr == nil {
			ln := must(net.Listen("tcp", "127.0.0.1:0"))
			addr = ln.Addr()
			ended := make(chan error)
			go func() { ended <- s.Serve(tls.NewListener(ln, ca.settings(tls.NoClientCert))) }()
			defer func() {
				s.Close()
				<-ended
			}()
		}
		if err := s.Handle(Endpoint{Path: "/part", Serve: func(w *Response, _ *Request) error {
			w.Endless()
			if _, err := w.WriteString("part"); err != nil {
				return err
			}
			return errors.Join(w.Flush(), errors.New("no more"))
		}}); err != nil {
			t.Fatal(err)
		}
		c, err := tls.Dial("tcp", addr.String(), &tls.Config{RootCAs: ca.pool(), Time: testTime})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request("GET /part HTTP/1.1"))
		if answer, err := io.ReadAll(c); err == nil || !strings.HasSuffix(string(answer), "part") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		c.Close()
	}
}
