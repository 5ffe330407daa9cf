package transport_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/ocsptest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// staple returns an OCSP response about certificates.
func staple(t *testing.T, this, next time.Time, serials ...int64) string {
	t.Helper()
	var list []ocsptest.About
	for _, n := range serials {
		list = append(list, ocsptest.About{Serial: big.NewInt(n), From: this, Until: next})
	}
	return string(ocsptest.Response(t, ocsptest.Basic(), nil, list...))
}

func TestCertificatesAreShown(t *testing.T) {
	dir := t.TempDir()
	ca := authorityFor(t, "root", 1, nil)
	leaf := ca.issue(t, 10, func(c *x509.Certificate) {
		c.SerialNumber = big.NewInt(0xabc)
		c.DNSNames, c.EmailAddresses = []string{"b.example.com", "a.example.com"}, []string{"ops@example.com"}
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/x"}}
		c.IPAddresses = []net.IP{net.IPv4(10, 1, 2, 3), net.IPv6loopback}
	})
	chain := write(t, dir, "chain.pem", leaf.chain+ca.pem())
	r := &certinfo.Registry{}
	f := transport.New(transport.Config{Now: start, Registry: r})
	this, next := start().Add(-time.Hour), start().Add(time.Hour)
	c := cluster(trust(ca, func(c *config.TLS) {
		c.Certificates = []config.Certificate{{Chain: file(chain), PrivateKey: inline(leaf.pem), OCSPStaple: inline(staple(t, this, next, 0xabc))}}
	}))
	c.Sockets.Matches = []config.SocketMatch{{Name: "bare", Socket: config.Socket{Kind: config.TLSSocket, TLS: &config.TLS{}}}}
	d := dialerOf(t, f, c)
	want := certinfo.Context{
		CA: []certinfo.Certificate{{Path: "<inline>", SerialNumber: "1", From: start().Add(-24 * time.Hour), Until: start().Add(1000 * time.Hour)}},
		Chain: []certinfo.Certificate{{
			Path: chain, SerialNumber: "abc", From: start().Add(-time.Hour), Until: start().Add(100 * time.Hour),
			AltNames: []certinfo.AltName{
				{Kind: "dns", Value: "b.example.com"}, {Kind: "dns", Value: "a.example.com"}, {Kind: "uri", Value: "spiffe://example.com/x"},
				{Kind: "ip_address", Value: "10.1.2.3"}, {Kind: "ip_address", Value: "::1"},
			},
			OCSP: &certinfo.Validity{From: this, Until: next},
		}},
	}
	list := r.List()
	if len(list) != 2 {
		t.Fatalf("%d contexts, want one for each socket", len(list))
	}
	if len(list[0].CA) == 0 {
		list[0], list[1] = list[1], list[0]
	}
	if diff := cmp.Diff(list, []certinfo.Context{want, {}}); diff != "" {
		t.Errorf("shown (-got +want):\n%s", diff)
	}
	d.Close()
	d.Close()
	if n := len(r.List()); n != 0 {
		t.Errorf("%d contexts after the dialer was closed, want 0", n)
	}
}

func TestRefusedClusterShowsNothing(t *testing.T) {
	r := &certinfo.Registry{}
	c := cluster(&config.TLS{AutoSNISANValidation: true})
	c.Sockets.Matches = []config.SocketMatch{{Name: "good", Socket: config.Socket{Kind: config.TLSSocket, TLS: &config.TLS{}}}}
	if _, err := transport.New(transport.Config{Registry: r}).Dialer(c, dialer(t, cluster(nil)).scope); err == nil || len(r.List()) != 0 {
		t.Errorf("refused with %v and %d contexts shown, want an error and 0", err, len(r.List()))
	}
}

// crl returns a revocation list in PEM form.
func (a *authority) crl(t *testing.T, until time.Time, serials ...int64) string {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: start().Add(-time.Hour), NextUpdate: until}
	for _, n := range serials {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: start()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

func TestRevocation(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	between := authorityFor(t, "between", 3, ca)
	leaf, deep := ca.issue(t, 10, nil), between.issue(t, 11, nil)
	later := start().Add(time.Hour)
	tests := []struct {
		name   string
		server tls.Certificate
		crl    string
		leaf   bool   // only the leaf
		want   string // in the error; empty: accepted
	}{
		{"not-revoked", leaf.tls(), ca.crl(t, later, 99), false, ""},
		{"revoked", leaf.tls(), ca.crl(t, later, 10), false, `"CN=leaf" is revoked`},
		{"expired-list", leaf.tls(), ca.crl(t, start().Add(-time.Minute)), false, `the revocation list of "CN=root" has expired`},
		{"list-missing-in-chain", deep.tls(between), ca.crl(t, later), false, `no revocation list of "CN=between"`},
		{"all-lists", deep.tls(between), ca.crl(t, later) + between.crl(t, later), false, ""},
		{"authority-revoked", deep.tls(between), ca.crl(t, later, 3) + between.crl(t, later), false, `"CN=between" is revoked`},
		{"leaf-only", deep.tls(between), between.crl(t, later), true, ""},
		{"leaf-only-revoked", deep.tls(between), between.crl(t, later, 11), true, `"CN=leaf" is revoked`},
		{"between-other-blocks", leaf.tls(), ca.pem() + ca.crl(t, later, 10) + ca.pem(), false, `"CN=leaf" is revoked`},
		{"second-entry", leaf.tls(), ca.crl(t, later, 99, 10, 98), false, `"CN=leaf" is revoked`},
		{"second-list", leaf.tls(), between.crl(t, later) + ca.crl(t, later, 10), false, `"CN=leaf" is revoked`},
		{"first-list", leaf.tls(), ca.crl(t, later, 10) + between.crl(t, later), false, `"CN=leaf" is revoked`},
		{"ends-now", leaf.tls(), ca.crl(t, start()), false, ""},
		{"forged-list", leaf.tls(), authorityFor(t, "root", 7, nil).crl(t, later), false, `no revocation list of "CN=root"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &tls.Config{Certificates: []tls.Certificate{tt.server}})
			d := dialer(t, cluster(trust(ca, func(c *config.TLS) { c.Validation.CRL, c.Validation.CRLOfLeafOnly = inline(tt.crl), tt.leaf })))
			_, err := d.say(t, hostAt(s.address, nil), transport.Options{})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("dial: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("dial: %v, want %s", err, tt.want)
			}
		})
	}
}

// TestRevocationBelowATrustedIntermediate: there need be no list of the issuer of a
// trusted certificate that is no root.
func TestRevocationBelowATrustedIntermediate(t *testing.T) {
	between := authorityFor(t, "between", 3, authorityFor(t, "root", 1, nil))
	s := serve(t, &tls.Config{Certificates: []tls.Certificate{between.issue(t, 11, nil).tls(between)}})
	d := dialer(t, cluster(trust(between, func(c *config.TLS) { c.Validation.CRL = inline(between.crl(t, start().Add(time.Hour))) })))
	if _, err := d.say(t, hostAt(s.address, nil), transport.Options{}); err != nil {
		t.Error(err)
	}
}

// rotating returns a cluster whose trusted authority is in a file.
func rotating(t *testing.T, dir string, watched string) *config.Cluster {
	t.Helper()
	return cluster(&config.TLS{MaxSessionKeys: 1, TLSCommon: config.TLSCommon{Validation: &config.Validation{
		TrustedCA: file(filepath.Join(dir, "ca.pem")), MaxVerifyDepth: 100, WatchedDirectory: watched,
	}}})
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	ca, next := authorityFor(t, "root", 1, nil), authorityFor(t, "root", 2, nil)
	s := serve(t, &tls.Config{Certificates: []tls.Certificate{next.issue(t, 10, nil).tls()}})
	write(t, dir, "ca.pem", ca.pem())
	r := &certinfo.Registry{}
	f := transport.New(transport.Config{Now: start, Registry: r})
	d := dialerOf(t, f, rotating(t, dir, ""))
	h := hostAt(s.address, nil)
	if _, err := d.say(t, h, transport.Options{}); err == nil {
		t.Fatal("a host of an unknown authority was accepted")
	}
	write(t, dir, "ca.pem", next.pem())
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	d.mustSay(t, h, transport.Options{})
	if got := r.List(); len(got) != 1 || got[0].CA[0].SerialNumber != "2" {
		t.Errorf("shown after the reload: %v, want the new authority", got)
	}

	// An invalid file changes nothing.
	write(t, dir, "ca.pem", "nothing")
	want := `transport: cluster "c": transport_socket.typed_config.common_tls_context.validation_context.trusted_ca: "` +
		filepath.Join(dir, "ca.pem") + `": no certificate in PEM form`
	if err := f.Reload(); err == nil || err.Error() != want {
		t.Errorf("reload: %v, want %s", err, want)
	}
	d.mustSay(t, h, transport.Options{})

	// A session from before a reload is not resumed after it.
	write(t, dir, "ca.pem", ca.pem())
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.say(t, h, transport.Options{}); err == nil {
		t.Error("a host was accepted by an authority that is trusted no more")
	}
	d.Close()
	write(t, dir, "ca.pem", "nothing")
	if err := f.Reload(); err != nil {
		t.Errorf("the files of a closed dialer are read: %v", err)
	}
}

// TestReloadPanics: certificates are reloaded when they change, even after a panic.
func TestReloadPanics(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ca.pem", authorityFor(t, "root", 1, nil).pem())
	panics := guardtest.New(t)
	r := &certinfo.Registry{}
	var wild atomic.Bool
	f := transport.New(transport.Config{Now: start, Registry: r, Logger: panics.Logger(), ReadFile: func(name string) ([]byte, error) {
		if wild.Load() {
			panic(guardtest.Canary)
		}
		return transport.ReadFile(name)
	}})
	d := dialerOf(t, f, rotating(t, dir, dir))
	defer d.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	wild.Store(true)
	go func() { done <- f.Run(ctx) }()
	panics.Caught("certificates of clusters")
	wild.Store(false)
	write(t, dir, "ca.pem", authorityFor(t, "root", 2, nil).pem())
	waittest.Equal(t, "serial number", "2", func() string { return r.List()[0].CA[0].SerialNumber })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatchedDirectoryReloads(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ca.pem", authorityFor(t, "root", 1, nil).pem())
	r := &certinfo.Registry{}
	var log strings.Builder
	f := transport.New(transport.Config{Now: start, Registry: r, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	before := dialerOf(t, f, rotating(t, dir, dir))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	serials := func(want string) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for {
			good := true
			for _, m := range r.List() {
				good = good && m.CA[0].SerialNumber == want
			}
			switch {
			case good:
				return
			case time.Now().After(deadline):
				t.Fatalf("shown: %v, want serial number %s everywhere", r.List(), want)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	write(t, dir, "ca.pem", authorityFor(t, "root", 2, nil).pem())
	serials("2")
	after := dialerOf(t, f, rotating(t, dir, dir)) // joins a running watch
	write(t, dir, "ca.pem", authorityFor(t, "root", 3, nil).pem())
	serials("3")
	before.Close()
	before.Close() // once more: the watch of the other one stays
	write(t, dir, "ca.pem", authorityFor(t, "root", 4, nil).pem())
	serials("4")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, serial := range []byte{5, 6} { // in the directory that was made again
		write(t, dir, "ca.pem", authorityFor(t, "root", serial, nil).pem())
		serials(string("0123456"[serial]))
	}
	after.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v, want nil", err)
	}
	log.Reset()
	dialerOf(t, f, rotating(t, dir, dir)).Close()
	if log.Len() > 0 {
		t.Errorf("a dialer after the end of Run logs %s", log.String())
	}
}

// TestFilesThatChangeWhileTheyAreReadFirst moves a file into place just after its
// predecessor was read for a new dialer.
func TestFilesThatChangeWhileTheyAreReadFirst(t *testing.T) {
	running, dir := t.TempDir(), t.TempDir()
	for _, to := range []string{running, dir} {
		write(t, to, "ca.pem", authorityFor(t, "root", 1, nil).pem())
	}
	r := &certinfo.Registry{}
	var once sync.Once
	f := transport.New(transport.Config{Now: start, Registry: r, ReadFile: func(name string) ([]byte, error) {
		b, err := transport.ReadFile(name)
		if filepath.Dir(name) == dir {
			once.Do(func() { write(t, dir, "ca.pem", authorityFor(t, "root", 3, nil).pem()) })
		}
		return b, err
	}})
	serials := func() string {
		var list []string
		for _, m := range r.List() {
			list = append(list, m.CA[0].SerialNumber)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	dialerOf(t, f, rotating(t, running, running))
	write(t, running, "ca.pem", authorityFor(t, "root", 2, nil).pem())
	waittest.Equal(t, "material", "2", serials) // so it runs
	dialerOf(t, f, rotating(t, dir, dir))
	waittest.Equal(t, "material", "2 3", serials)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "good.pem", "good")
	if err := os.Truncate(filepath.Join(dir, "good.pem"), 4); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "big.pem", "")
	if err := os.Truncate(filepath.Join(dir, "big.pem"), 16<<20+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "good.pem"): "good",
		filepath.Join(dir, "none.pem"): "no such file or directory",
		filepath.Join(dir, "big.pem"):  "more than 16777216 bytes",
		dir:                            "not a regular file",
		os.DevNull:                     "not a regular file",
	} {
		b, err := transport.ReadFile(name)
		got := string(b)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) || err != nil && b != nil {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
