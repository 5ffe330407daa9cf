package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

func template(serial int64, until time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "t"},
		NotBefore: time.Date(2025, 1, 5, 8, 0, 0, 0, time.UTC), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func write(t *testing.T, path string, parts ...[]byte) string {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParse(t *testing.T) {
	until := time.Date(2025, 4, 5, 8, 0, 0, 0, time.UTC)
	edge := template(0x1d03, until)
	edge.DNSNames = []string{"edge.example.net", "b.example.net"}
	edge.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.net", Path: "/edge"}}
	edge.IPAddresses = []net.IP{net.ParseIP("10.1.2.3"), net.ParseIP("::1")}
	a, b := certtest.Issue(t, edge, nil), certtest.Issue(t, template(0x0a, until.AddDate(1, 0, 0)), nil)
	text := bytes.Join([][]byte{[]byte("a comment\n"), a.Chain, a.Key, b.Chain}, nil)
	want := []certinfo.Certificate{
		{
			Path: certinfo.Inline, SerialNumber: "1d03", From: edge.NotBefore, Until: until,
			AltNames: []certinfo.AltName{
				{Kind: "dns", Value: "edge.example.net"}, {Kind: "dns", Value: "b.example.net"}, {Kind: "uri", Value: "spiffe://example.net/edge"}, {Kind: "ip_address", Value: "10.1.2.3"}, {Kind: "ip_address", Value: "::1"},
			},
		},
		{Path: certinfo.Inline, SerialNumber: "a", From: edge.NotBefore, Until: until.AddDate(1, 0, 0)},
	}
	got, err := Parse("", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := Parse("/etc/ca.Chain", a.Chain); err != nil || got[0].Path != "/etc/ca.Chain" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseErrors(t *testing.T) {
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("canary")})
	for text, want := range map[string]string{
		"": `certs: "x.pem": no certificate in PEM form`, "canary": "no certificate in PEM form",
		string(broken): `certs: "x.pem": certificate 1: `, strings.Repeat("c", maxPEMBytes+1): "bytes are more than",
	} {
		_, err := Parse("x.pem", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("err = %v, want %s", err, want)
		}
	}
}

// pki holds a server's files on disk, and an authority for it and its clients.
type pki struct {
	dir    string
	ca     *certtest.Pair
	files  Files
	client *certtest.Pair

	resumed bool // the last connection was resumed
}

func newPKI(t *testing.T) *pki {
	p := &pki{dir: t.TempDir(), ca: certtest.Issue(t, template(1, time.Now().AddDate(10, 0, 0)), nil)}
	p.files = Files{Chain: filepath.Join(p.dir, "chain.pem"), Key: filepath.Join(p.dir, "key.pem"), ClientCA: write(t, filepath.Join(p.dir, "ca.Chain"), p.ca.Chain)}
	p.rotate(t, 2)
	p.client = certtest.Issue(t, template(99, time.Now().AddDate(1, 0, 0)), p.ca)
	return p
}

// rotate writes a new certificate with that serial number.
func (p *pki) rotate(t *testing.T, serial int64) {
	t.Helper()
	server := template(serial, time.Now().AddDate(1, 0, 0))
	server.DNSNames = []string{"edge"}
	s := certtest.Issue(t, server, p.ca)
	write(t, p.files.Chain, s.Chain)
	write(t, p.files.Key, s.Key)
}

// shake makes a TLS connection and returns the serial number of the server's
// certificate.
func (p *pki) shake(server *tls.Config, client *tls.Config) (int64, error) {
	// Not net.Pipe: both ends may write at the same time.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	b, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return 0, err
	}
	defer b.Close()
	a, err := ln.Accept()
	if err != nil {
		return 0, err
	}
	defer a.Close()
	var wg sync.WaitGroup
	var serverErr error
	wg.Go(func() {
		s := tls.Server(a, server)
		if serverErr = s.Handshake(); serverErr == nil {
			_, serverErr = s.Write([]byte("x"))
		}
		a.Close()
	})
	client.RootCAs, client.ServerName = x509.NewCertPool(), "edge"
	client.RootCAs.AddCert(p.ca.Leaf)
	c := tls.Client(b, client)
	_, err = c.Read(make([]byte, 1))
	serial := int64(0)
	if err == nil {
		state := c.ConnectionState()
		serial, p.resumed = state.PeerCertificates[0].SerialNumber.Int64(), state.DidResume
	}
	b.Close()
	wg.Wait()
	return serial, err
}

func (p *pki) withCertificate(t *testing.T, from *certtest.Pair) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(from.Chain, from.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

func TestServer(t *testing.T) {
	p, r := newPKI(t), &certinfo.Registry{}
	s, err := Load(r, p.files)
	if err != nil {
		t.Fatal(err)
	}
	config := s.Config()
	if config.ClientAuth != tls.RequireAndVerifyClientCert || config.MinVersion != tls.VersionTLS12 {
		t.Errorf("the settings tell of %v and version %x", config.ClientAuth, config.MinVersion)
	}
	if serial, err := p.shake(config, p.withCertificate(t, p.client)); err != nil || serial != 2 {
		t.Errorf("serial %d, %v", serial, err)
	}
	if got := s.Expires(); got.Before(time.Now()) || s.Files() != p.files {
		t.Errorf("expires at %v, files %+v", got, s.Files())
	}
	if _, err := p.shake(config, &tls.Config{}); err == nil {
		t.Error("a client without a certificate was accepted")
	}
	stranger := certtest.Issue(t, template(5, time.Now().AddDate(1, 0, 0)), nil)
	if _, err := p.shake(config, p.withCertificate(t, stranger)); err == nil {
		t.Error("a client of another authority was accepted")
	}
	expired := certtest.Issue(t, template(6, time.Now().AddDate(0, 0, -1)), p.ca)
	if _, err := p.shake(config, p.withCertificate(t, expired)); err == nil {
		t.Error("an expired client was accepted")
	}
	old := p.withCertificate(t, p.client)
	old.MaxVersion = tls.VersionTLS11
	if _, err := p.shake(config, old); err == nil {
		t.Error("TLS 1.1 was accepted")
	}

	p.rotate(t, 3)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if serial, err := p.shake(config, p.withCertificate(t, p.client)); err != nil || serial != 3 {
		t.Errorf("after reload: serial %d, %v", serial, err)
	}
	list := r.List()
	if len(list) != 1 || list[0].Chain[0].SerialNumber != "3" || list[0].CA[0].SerialNumber != "1" || list[0].Chain[0].Path != p.files.Chain {
		t.Errorf("registered %+v", list)
	}

	write(t, p.files.Key, []byte("-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"))
	if err := s.Reload(); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("err = %v", err)
	}
	if serial, err := p.shake(config, p.withCertificate(t, p.client)); err != nil || serial != 3 {
		t.Errorf("after a failed reload: serial %d, %v", serial, err)
	}
}

// TestLastReloadWins: when two reloads run at once, the content that was read later is in use.
func TestLastReloadWins(t *testing.T) {
	dir := t.TempDir()
	swap := func(to int) {
		if err := os.Symlink(fmt.Sprint(to), dir+"/new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/new", dir+"/now"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		pair := certtest.Issue(t, template(int64(i), time.Now().AddDate(1+i, 0, 0)), nil)
		if err := os.Mkdir(fmt.Sprint(dir, "/", i), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, fmt.Sprint(dir, "/", i, "/chain.pem"), pair.Chain)
		write(t, fmt.Sprint(dir, "/", i, "/key.pem"), pair.Key)
	}
	swap(0)
	s, err := Load(nil, Files{Chain: dir + "/now/chain.pem", Key: dir + "/now/key.pem"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		var early sync.WaitGroup
		for range 8 {
			early.Go(func() { _ = s.Reload() }) // the files change meanwhile
		}
		swap(1 - i%2)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		early.Wait()
		if got, want := s.Expires().Year(), time.Now().UTC().AddDate(2-i%2, 0, 0).Year(); got != want {
			t.Fatalf("round %d: the certificate of %d is in use, not that of %d", i, got, want)
		}
	}
}

// TestResumedClientsAreCheckedAgain checks that a client can resume a connection only
// as long as its authority is trusted.
func TestResumedClientsAreCheckedAgain(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, optional := range []bool{false, true} {
			p := newPKI(t)
			p.files.OptionalClient = optional
			s, err := Load(nil, p.files)
			if err != nil {
				t.Fatal(err)
			}
			config, client := s.Config(), p.withCertificate(t, p.client)
			client.ClientSessionCache, client.MaxVersion = tls.NewLRUClientSessionCache(4), version
			for i := range 3 {
				if _, err := p.shake(config, client); err != nil || p.resumed != (i > 0) {
					t.Errorf("version %x, connection %d: %v, resumed %t", version, i, err, p.resumed)
				}
			}
			write(t, p.files.ClientCA, certtest.Issue(t, template(7, time.Now().AddDate(1, 0, 0)), nil).Chain)
			if err := s.Reload(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.shake(config, client); err == nil {
				t.Errorf("version %x, optional %t: a client whose authority is not trusted any more was accepted, resumed %t", version, optional, p.resumed)
			}
		}
	}
}

func TestServerWithoutClientAuthority(t *testing.T) {
	p, r := newPKI(t), &certinfo.Registry{}
	p.files.ClientCA = ""
	s, err := Load(r, p.files)
	if err != nil {
		t.Fatal(err)
	}
	if serial, err := p.shake(s.Config(), &tls.Config{}); err != nil || serial != 2 {
		t.Errorf("serial %d, %v", serial, err)
	}
}

// TestOptionalClient: a client may come without a certificate, but a certificate of
// another authority is refused.
func TestOptionalClient(t *testing.T) {
	p := newPKI(t)
	p.files.OptionalClient = true
	s, err := Load(nil, p.files)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []*tls.Config{{}, p.withCertificate(t, p.client)} {
		if serial, err := p.shake(s.Config(), client); err != nil || serial != 2 {
			t.Errorf("%d certificates: serial %d, %v", len(client.Certificates), serial, err)
		}
	}
	stranger := certtest.Issue(t, template(5, time.Now().AddDate(1, 0, 0)), nil)
	if _, err := p.shake(s.Config(), p.withCertificate(t, stranger)); err == nil {
		t.Error("a client of another authority was accepted")
	}
}

func TestLoadErrors(t *testing.T) {
	p, r := newPKI(t), &certinfo.Registry{}
	garbage := write(t, filepath.Join(p.dir, "garbage.pem"), []byte("canary"))
	other := newPKI(t)
	for name, change := range map[string]func(*Files){
		"no-chain":    func(f *Files) { f.Chain = filepath.Join(p.dir, "none") },
		"no-key":      func(f *Files) { f.Key = filepath.Join(p.dir, "none") },
		"no-staple":   func(f *Files) { f.OCSPStaple = filepath.Join(p.dir, "none") },
		"no-ca":       func(f *Files) { f.ClientCA = filepath.Join(p.dir, "none") },
		"bad-chain":   func(f *Files) { f.Chain = garbage },
		"bad-key":     func(f *Files) { f.Key = garbage },
		"bad-ca":      func(f *Files) { f.ClientCA = garbage },
		"foreign-key": func(f *Files) { f.Key = other.files.Key },
	} {
		files := p.files
		change(&files)
		_, err := Load(r, files)
		if err == nil || !strings.HasPrefix(err.Error(), "certs: ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: err = %v", name, err)
		}
		if strings.HasPrefix(name, "no-") && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want that there is no such file", name, err)
		}
	}
	if len(r.List()) != 0 {
		t.Error("something was registered")
	}
}
