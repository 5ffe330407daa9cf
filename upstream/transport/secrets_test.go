package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// deliverer delivers secrets on demand.
type deliverer struct {
	mu      sync.Mutex
	users   map[transport.SecretUser]string
	refuse  error
	stopped int
}

func (d *deliverer) Check(*config.SecretSource) error { return d.refuse }

func (d *deliverer) Follow(s *config.SecretSource, k config.SecretKind, u transport.SecretUser) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users == nil {
		d.users = make(map[transport.SecretUser]string)
	}
	d.users[u] = k.String() + " " + s.Name
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.users, u)
		d.stopped++
	}
}

// following returns the subscribers of a secret.
func (d *deliverer) following(s *config.Secret) (list []transport.SecretUser) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for u, what := range d.users {
		if what == s.Kind.String()+" "+s.Name {
			list = append(list, u)
		}
	}
	return list
}

// deliver activates a secret unless a subscriber rejects it.
func (d *deliverer) deliver(s *config.Secret) error {
	var commits []func()
	shared := transport.NewSecret(s)
	for _, u := range d.following(s) {
		commit, err := u.Prepare(shared)
		if err != nil {
			return err
		}
		commits = append(commits, commit)
	}
	for _, f := range commits {
		f()
	}
	return nil
}

func (d *deliverer) mustDeliver(t *testing.T, s *config.Secret) {
	t.Helper()
	if err := d.deliver(s); err != nil {
		t.Fatal(err)
	}
}

// certSecret returns the secret "cert" with a certificate.
func certSecret(i *issued) *config.Secret {
	return &config.Secret{Name: "cert", Kind: config.CertificateSecret, Certificate: &config.Certificate{Chain: inline(i.chain), PrivateKey: inline(i.pem)}}
}

// caSecret returns the secret "ca" that trusts a.
func caSecret(a *authority) *config.Secret {
	return &config.Secret{Name: "ca", Kind: config.ValidationSecret, Validation: &config.Validation{TrustedCA: inline(a.pem()), MaxVerifyDepth: 100}}
}

func remote(name string) config.SecretSource {
	return config.SecretSource{Name: name, Source: &config.ConfigSource{Kind: config.SourceADS}}
}

// bySecrets returns a client whose certificate and checks are secrets.
func bySecrets(c *config.TLS) {
	ca := remote("ca")
	c.Validation, c.CertificateSecrets, c.ValidationSecret = nil, []config.SecretSource{remote("cert")}, &ca
}

// secretFixture is a dialer with its deliverer.
type secretFixture struct {
	*fixture
	deliverer
	certinfo.Registry
	ready int
}

func newSecretFixture(t *testing.T, change func(*transport.Config), c *config.TLS) *secretFixture {
	t.Helper()
	f := &secretFixture{}
	o := transport.Config{Now: start, Secrets: &f.deliverer, Registry: &f.Registry}
	if change != nil {
		change(&o)
	}
	f.fixture = dialerOf(t, transport.New(o), cluster(c))
	f.Follow(func() { f.ready++ })
	return f
}

// Follow resolves the ambiguity between the two methods of that name.
func (f *secretFixture) Follow(ready func()) { f.Dialer.Follow(ready) }

// shown lists the registered serial numbers.
func (f *secretFixture) shown() string {
	var list []string
	for _, m := range f.List() {
		for _, c := range m.CA {
			list = append(list, "ca "+c.SerialNumber+" "+c.Path)
		}
		for _, c := range m.Chain {
			list = append(list, "chain "+c.SerialNumber+" "+c.Path)
		}
	}
	return strings.Join(list, ", ")
}

// asking returns a server that requires client certificates.
func asking(i *issued) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.tls()}, ClientAuth: tls.RequireAnyClientCert}
}

// serial returns the certificate of the client.
func serial(x seen) string {
	if len(x.state.PeerCertificates) == 0 {
		return fmt.Sprint("none: ", x.err)
	}
	return x.state.PeerCertificates[0].SerialNumber.Text(16)
}

func TestSecretsComeLaterAndRotate(t *testing.T) {
	ca, other := authorityFor(t, "one", 1, nil), authorityFor(t, "two", 2, nil)
	s := serve(t, asking(ca.issue(t, 10, nil)))
	moved := serve(t, asking(other.issue(t, 11, nil)))
	f := newSecretFixture(t, nil, trust(ca, bySecrets))
	h, next := hostAt(s.address, nil), hostAt(moved.address, nil)

	missing := func(name string) {
		t.Helper()
		_, err := f.say(t, h, transport.Options{})
		var e *transport.Error
		if !errors.As(err, &e) || !e.Local || e.Stage != transport.Handshake || !strings.HasSuffix(e.Error(), `secret "`+name+`" has not been delivered yet`) {
			t.Fatalf("error %v, want that secret %q is missing here", err, name)
		}
	}
	missing("ca")
	if got := strings.Join(f.Awaited(), " "); got != "cert ca" || f.ready != 0 || !f.Dependent() {
		t.Errorf("awaited %q, ready %d, dependent %v", got, f.ready, f.Dependent())
	}
	f.mustDeliver(t, caSecret(ca))
	missing("cert")
	if got := f.shown(); got != "" {
		t.Errorf("shown before all is there: %s", got)
	}
	first, second := ca.issue(t, 20, nil), ca.issue(t, 21, nil)
	f.mustDeliver(t, certSecret(first))
	f.mustSay(t, h, transport.Options{})
	if got := serial(s.last(t)); got != "14" {
		t.Errorf("client certificate %s, want 14", got)
	}
	if got := f.shown(); got != "ca 1 <inline>, chain 14 <inline>" {
		t.Errorf("shown %s", got)
	}

	f.mustDeliver(t, certSecret(second))
	f.mustSay(t, h, transport.Options{})
	if got := serial(s.last(t)); got != "15" {
		t.Errorf("client certificate %s after the rotation, want 15", got)
	}
	if _, err := f.say(t, next, transport.Options{}); err == nil || f.count("ssl.fail_verify_error") != 1 {
		t.Errorf("a host of an authority that is not trusted: %v", err)
	}
	moved.last(t)
	f.mustDeliver(t, caSecret(other))
	f.mustSay(t, next, transport.Options{})
	if _, err := f.say(t, h, transport.Options{}); err == nil {
		t.Error("a host of the authority before is still trusted")
	}
	if got := f.shown(); got != "ca 2 <inline>, chain 15 <inline>" {
		t.Errorf("shown %s", got)
	}
	if a, b := f.count("client_ssl_socket_factory.ssl_context_update_by_sds"), f.count("client_ssl_socket_factory.upstream_context_secrets_not_ready"); a != 4 || b != 2 {
		t.Errorf("%d updates, %d connections without a secret; want 4 and 2", a, b)
	}
}

// TestConnectionsSurviveRotation uses a connection from before the rotation.
func TestConnectionsSurviveRotation(t *testing.T) {
	ca, other := authorityFor(t, "one", 1, nil), authorityFor(t, "two", 2, nil)
	cfg := asking(ca.issue(t, 10, nil))
	cfg.Time = start
	ln := tls.NewListener(listen(t, "tcp", "127.0.0.1:0"), cfg)
	t.Cleanup(func() { ln.Close() })
	var running sync.WaitGroup
	running.Go(func() {
		conn, err := ln.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	})
	f := newSecretFixture(t, nil, trust(ca, bySecrets))
	f.mustDeliver(t, caSecret(ca))
	f.mustDeliver(t, certSecret(ca.issue(t, 20, nil)))
	a, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(ln.Addr())
	}
	conn, err := f.Dial(context.Background(), hostAt(config.Address{IP: a.AddrPort()}, nil), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		text := fmt.Sprint("after rotation ", i)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(text))
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != text {
			t.Fatalf("%q, %v; want %q", b, err, text)
		}
		f.mustDeliver(t, caSecret(other))
		f.mustDeliver(t, certSecret(other.issue(t, byte(30+i), nil)))
	}
	conn.Close()
	running.Wait()
}

func TestBadSecretsAreRefused(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	s := serve(t, asking(ca.issue(t, 10, nil)))
	good, other := ca.issue(t, 20, nil), ca.issue(t, 21, nil)
	var reports strings.Builder
	f := newSecretFixture(t, func(o *transport.Config) {
		o.ReadFile = func(name string) ([]byte, error) { return nil, errors.New("no file is read here") }
	}, trust(ca, bySecrets))
	f.mustDeliver(t, caSecret(ca))
	f.mustDeliver(t, certSecret(good))
	change := func(c func(*config.Certificate)) *config.Secret {
		x := certSecret(other)
		c(x.Certificate)
		return x
	}
	validation := func(v config.Validation) *config.Secret {
		return &config.Secret{Name: "ca", Kind: config.ValidationSecret, Validation: &v}
	}
	unread := certSecret(other)
	unread.Unread = []string{"tls_certificate.own"}
	for _, bad := range []*config.Secret{
		change(func(c *config.Certificate) { c.PrivateKey = inline(good.pem) }),
		change(func(c *config.Certificate) { c.PrivateKey = inline("hunter2") }),
		change(func(c *config.Certificate) { c.PrivateKey = config.Data{} }),
		change(func(c *config.Certificate) { c.Chain = config.Data{} }),
		change(func(c *config.Certificate) { c.Chain = file("/c.pem") }),
		change(func(c *config.Certificate) { c.Password = inline("hunter2") }),
		change(func(c *config.Certificate) { c.PKCS12 = inline("hunter2") }),
		change(func(c *config.Certificate) { c.PrivateKeyProvider = "p" }),
		unread,
		validation(config.Validation{TrustedCA: inline("hunter2")}),
		validation(config.Validation{CRL: inline("x")}),
		validation(config.Validation{AllowExpired: true}),
		validation(config.Validation{TrustedCA: inline(ca.pem()), Hashes: []string{"xy"}}),
		validation(config.Validation{TrustedCA: inline(ca.pem()), SANs: []config.SAN{san(config.OtherNameSAN, config.MatchExact, "x")}}),
	} {
		err := f.deliver(bad)
		fmt.Fprintln(&reports, err)
		f.mustSay(t, hostAt(s.address, nil), transport.Options{})
		if got := serial(s.last(t)); got != "14" {
			t.Errorf("after %v: client certificate %s, want that from before", err, got)
		}
	}
	if strings.Contains(reports.String(), "hunter2") {
		t.Error("an error shows what is secret")
	}
	golden.Check(t, "bad-secrets", []byte(reports.String()))
	if got := f.count("client_ssl_socket_factory.ssl_context_update_by_sds"); got != 2 {
		t.Errorf("%d updates, want the 2 good ones", got)
	}
}

// TestCombinedChecks has names in the configuration and the authority in a secret.
func TestCombinedChecks(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	named := func(name string, seed byte) *server {
		return serve(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, seed, func(c *x509.Certificate) { c.DNSNames = []string{name} }).tls()}})
	}
	right, second, wrong := named("right", 10), named("second", 11), named("wrong", 12)
	f := newSecretFixture(t, nil, trust(ca, func(c *config.TLS) {
		source := remote("ca")
		c.Validation = &config.Validation{SANs: []config.SAN{san(config.DNSSAN, config.MatchExact, "right")}, MaxVerifyDepth: 100}
		c.ValidationSecret = &source
	}))
	f.mustDeliver(t, caSecret(ca))
	f.mustSay(t, hostAt(right.address, nil), transport.Options{})
	for _, s := range []*server{second, wrong} {
		if _, err := f.say(t, hostAt(s.address, nil), transport.Options{}); err == nil {
			t.Error("a name that is not allowed")
		}
	}
	more := caSecret(ca)
	more.Validation.SANs = []config.SAN{san(config.DNSSAN, config.MatchExact, "second")}
	f.mustDeliver(t, more)
	f.mustSay(t, hostAt(right.address, nil), transport.Options{})
	f.mustSay(t, hostAt(second.address, nil), transport.Options{})
	if _, err := f.say(t, hostAt(wrong.address, nil), transport.Options{}); err == nil {
		t.Error("a name that is not allowed")
	}
}

func TestStaticSecrets(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	s := serve(t, asking(ca.issue(t, 10, nil)))
	validation := caSecret(ca)
	validation.Name = "cert" // names of different kinds do not meet
	f := newSecretFixture(t, func(o *transport.Config) {
		o.Secrets, o.StaticSecrets = nil, []*config.Secret{certSecret(ca.issue(t, 20, nil)), validation}
	}, trust(ca, func(c *config.TLS) {
		c.Validation, c.CertificateSecrets, c.ValidationSecret = nil, []config.SecretSource{{Name: "cert"}}, &config.SecretSource{Name: "cert"}
	}))
	if f.ready != 1 || len(f.Awaited()) != 0 || f.Dependent() {
		t.Errorf("ready %d, awaited %q, dependent %v", f.ready, f.Awaited(), f.Dependent())
	}
	f.mustSay(t, hostAt(s.address, nil), transport.Options{})
	if got := serial(s.last(t)); got != "14" {
		t.Errorf("client certificate %s, want 14", got)
	}
}

func TestSecretsThatCannotCome(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	static := certSecret(ca.issue(t, 20, nil))
	static.Unread = []string{"tls_certificate.own"}
	for _, tt := range []struct {
		name   string
		source config.SecretSource
		want   string
	}{
		{"refused", remote("cert"), `.tls_certificate_sds_secret_configs[0].sds_config: no such source`},
		{"unread", config.SecretSource{Name: "cert"}, ""},
	} {
		o := transport.Config{Secrets: &deliverer{refuse: errors.New("no such source")}, StaticSecrets: []*config.Secret{static}}
		_, err := transport.New(o).Dialer(cluster(trust(ca, func(c *config.TLS) { c.CertificateSecrets = []config.SecretSource{tt.source} })), store.New(store.Options{}).Scope("c"))
		want := `transport: cluster "c": transport_socket.typed_config.common_tls_context` + tt.want
		if tt.want == "" {
			want = `transport: cluster "c": secret "cert": tls_certificate.own: not supported`
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", tt.name, err, want)
		}
	}
	_, err := transport.New(transport.Config{Secrets: &deliverer{}}).Dialer(cluster(trust(ca, func(c *config.TLS) {
		source := remote("ca")
		c.Validation, c.ValidationSecret = &config.Validation{TrustedCA: inline("nothing")}, &source
	})), store.New(store.Options{}).Scope("c"))
	if want := `transport: cluster "c": transport_socket.typed_config.common_tls_context.combined_validation_context.default_validation_context.trusted_ca: <inline>: no certificate in PEM form`; err == nil || err.Error() != want {
		t.Errorf("a broken default: %v, want %s", err, want)
	}
}

// TestTwoSecretsAtOnce activates a secret while another one arrives: neither is lost.
func TestTwoSecretsAtOnce(t *testing.T) {
	ca, other := authorityFor(t, "one", 1, nil), authorityFor(t, "two", 2, nil)
	s := serve(t, asking(other.issue(t, 10, nil)))
	f := newSecretFixture(t, nil, trust(ca, bySecrets))
	f.mustDeliver(t, caSecret(ca))
	f.mustDeliver(t, certSecret(ca.issue(t, 20, nil)))
	late := certSecret(ca.issue(t, 21, nil))
	commit, err := f.following(late)[0].Prepare(transport.NewSecret(late))
	if err != nil {
		t.Fatal(err)
	}
	f.mustDeliver(t, caSecret(other))
	commit()
	f.mustSay(t, hostAt(s.address, nil), transport.Options{})
	if got := serial(s.last(t)); got != "15" {
		t.Errorf("client certificate %s, want 15", got)
	}
}

// TestReloadBetweenSecrets: a reload while the first secret is missing keeps the second.
func TestReloadBetweenSecrets(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	s := serve(t, asking(ca.issue(t, 10, nil)))
	f := &secretFixture{}
	factory := transport.New(transport.Config{Now: start, Secrets: &f.deliverer, Registry: &f.Registry})
	f.fixture = dialerOf(t, factory, cluster(trust(ca, bySecrets)))
	f.Follow(func() {})
	f.mustDeliver(t, caSecret(ca))
	if err := factory.Reload(); err != nil {
		t.Fatal(err)
	}
	f.mustDeliver(t, certSecret(ca.issue(t, 20, nil)))
	f.mustSay(t, hostAt(s.address, nil), transport.Options{})
	if got := serial(s.last(t)); got != "14" {
		t.Errorf("client certificate %s, want 14", got)
	}
	stranger := serve(t, asking(authorityFor(t, "other", 2, nil).issue(t, 11, nil)))
	if _, err := f.say(t, hostAt(stranger.address, nil), transport.Options{}); err == nil {
		t.Error("a server is accepted that the second secret does not trust")
	}
}

// TestSecretsOfMatches: sockets that are chosen by a match await their secrets, too.
func TestSecretsOfMatches(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	c := cluster(trust(ca, bySecrets))
	named := func(name string) config.SocketMatch {
		return config.SocketMatch{Name: name, Socket: config.Socket{Kind: config.TLSSocket, TLS: trust(ca, func(c *config.TLS) { c.CertificateSecrets = []config.SecretSource{remote(name)} })}}
	}
	c.Sockets.Matches = []config.SocketMatch{{Name: "plain", Socket: config.Socket{Kind: config.RawBuffer}}, named("a"), named("b")}
	var d deliverer
	f := dialerOf(t, transport.New(transport.Config{Now: start, Secrets: &d}), c)
	f.Follow(func() {})
	if got := strings.Join(f.Awaited(), " "); got != "a b cert ca" {
		t.Errorf("awaited %q", got)
	}
}

// TestSecretsAreReadOnceForAll counts reads of the files of a secret shared by many
// contexts. The next version reads them again.
func TestSecretsAreReadOnceForAll(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	leaf := ca.issue(t, 20, nil)
	files := map[string]string{"/cert.pem": leaf.chain, "/key.pem": leaf.pem, "/ca.pem": ca.pem(), "/crl.pem": ca.crl(t, start().Add(time.Hour))}
	reads := make(map[string]int)
	var d deliverer
	var r certinfo.Registry
	f := transport.New(transport.Config{Now: start, Secrets: &d, Registry: &r, ReadFile: func(name string) ([]byte, error) {
		reads[name]++
		return []byte(files[name]), nil
	}})
	for i := range 10 {
		one := dialerOf(t, f, cluster(trust(ca, func(c *config.TLS) {
			bySecrets(c)
			if i%2 == 1 { // these have checks of their own beside
				c.Validation = &config.Validation{MaxVerifyDepth: 100, SANs: []config.SAN{san(config.DNSSAN, config.MatchExact, "x")}}
			}
		})))
		one.Follow(func() {})
	}
	cert, authority := certSecret(leaf), caSecret(ca)
	cert.Certificate.Chain, cert.Certificate.PrivateKey = file("/cert.pem"), file("/key.pem")
	authority.Validation.TrustedCA, authority.Validation.CRL = file("/ca.pem"), file("/crl.pem")
	for i := range 3 {
		for _, s := range []*config.Secret{cert, authority} {
			if err := d.deliver(s); err != nil {
				t.Fatal(err)
			}
		}
		for name := range files {
			if reads[name] != i+1 {
				t.Errorf("%s is read %d times by 10 contexts in %d versions", name, reads[name], i+1)
			}
		}
	}
	if n := len(r.List()); n != 10 {
		t.Errorf("%d contexts shown, want 10", n)
	}
}

// TestReadingIsNotSharedByFactories uses two factories with different values of the
// same variable.
func TestReadingIsNotSharedByFactories(t *testing.T) {
	var r certinfo.Registry
	var d deliverer
	for i := range 3 {
		f := transport.New(transport.Config{Now: start, Secrets: &d, Registry: &r, Environment: func(string) (string, bool) {
			return authorityFor(t, "ca", byte(i+1), nil).pem(), true
		}})
		one := dialerOf(t, f, cluster(&config.TLS{TLSCommon: config.TLSCommon{ValidationSecret: &config.SecretSource{Name: "ca", Source: remote("ca").Source}}}))
		one.Follow(func() {})
	}
	if err := d.deliver(&config.Secret{Name: "ca", Kind: config.ValidationSecret, Validation: &config.Validation{TrustedCA: config.Data{Kind: config.DataEnvironment, Name: "CA"}}}); err != nil {
		t.Fatal(err)
	}
	var serials []string
	for _, m := range r.List() {
		serials = append(serials, m.CA[0].SerialNumber)
	}
	slices.Sort(serials)
	if got := strings.Join(serials, " "); got != "1 2 3" {
		t.Errorf("authorities %s, want one for each factory", got)
	}
}

// TestSecretsDoNotNeedTheFilesOfOthers delivers one secret while the files of another
// cannot be read.
func TestSecretsDoNotNeedTheFilesOfOthers(t *testing.T) {
	ca, other := authorityFor(t, "one", 1, nil), authorityFor(t, "two", 2, nil)
	s := serve(t, asking(other.issue(t, 10, nil)))
	leaf := ca.issue(t, 20, nil)
	gone := false
	f := newSecretFixture(t, func(o *transport.Config) {
		o.ReadFile = func(string) ([]byte, error) {
			if gone {
				return nil, errors.New("it is being replaced")
			}
			return []byte(leaf.chain), nil
		}
	}, trust(ca, bySecrets))
	cert := certSecret(leaf)
	cert.Certificate.Chain = file("/cert.pem")
	commit, err := f.following(cert)[0].Prepare(transport.NewSecret(cert))
	if err != nil {
		t.Fatal(err)
	}
	f.mustDeliver(t, caSecret(ca)) // in between
	gone = true
	commit()
	f.mustDeliver(t, caSecret(other))
	f.mustSay(t, hostAt(s.address, nil), transport.Options{})
	if got := serial(s.last(t)); got != "14" {
		t.Errorf("client certificate %s, want 14", got)
	}
}

func TestAnswersAndEndOfSecrets(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	f := newSecretFixture(t, nil, trust(ca, bySecrets))
	good := certSecret(ca.issue(t, 20, nil))
	cert, authority := f.following(good)[0], f.following(caSecret(ca))[0]
	if _, err := cert.Prepare(transport.NewSecret(caSecret(ca))); err == nil {
		t.Error("a secret of another kind is accepted")
	}
	cert.Answered()
	cert.Answered()
	if got := strings.Join(f.Awaited(), " "); f.ready != 0 || got != "ca" {
		t.Errorf("ready %d, awaited %q after one of two answers", f.ready, got)
	}
	authority.Answered()
	if f.ready != 1 || len(f.Awaited()) != 0 {
		t.Errorf("ready %d, awaited %q after all answers", f.ready, f.Awaited())
	}
	f.mustDeliver(t, caSecret(ca))
	commit, err := cert.Prepare(transport.NewSecret(good))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	f.Close()
	if f.stopped != 2 {
		t.Errorf("%d secrets are not followed any more, want 2", f.stopped)
	}
	commit() // too late
	if got := f.shown(); got != "" {
		t.Errorf("shown after the end: %s", got)
	}
}

// TestRotationUnderLoad rotates while connections are made: each of them succeeds.
func TestRotationUnderLoad(t *testing.T) {
	ca := authorityFor(t, "ca", 1, nil)
	s := serve(t, asking(ca.issue(t, 10, nil)))
	f := newSecretFixture(t, nil, trust(ca, bySecrets))
	f.mustDeliver(t, caSecret(ca))
	f.mustDeliver(t, certSecret(ca.issue(t, 20, nil)))
	var running sync.WaitGroup
	for _, secret := range []*config.Secret{caSecret(ca), certSecret(ca.issue(t, 21, nil))} {
		running.Go(func() {
			for range 20 {
				if err := f.deliver(secret); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		f.mustSay(t, hostAt(s.address, nil), transport.Options{})
		s.last(t)
	}
	running.Wait()
	if got := f.count("client_ssl_socket_factory.ssl_context_update_by_sds"); got != 42 {
		t.Errorf("%d updates, want 42", got)
	}
}

// TestStaticSecretsRotate moves files into the directory that a static secret names.
func TestStaticSecretsRotate(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ca.pem", authorityFor(t, "root", 1, nil).pem())
	ca := &config.Secret{Name: "ca", Kind: config.ValidationSecret, Validation: &config.Validation{TrustedCA: file(filepath.Join(dir, "ca.pem")), WatchedDirectory: dir}}
	r := &certinfo.Registry{}
	f := transport.New(transport.Config{Now: start, Registry: r, StaticSecrets: []*config.Secret{ca}})
	dialerOf(t, f, cluster(&config.TLS{TLSCommon: config.TLSCommon{ValidationSecret: &config.SecretSource{Name: "ca"}}}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	write(t, dir, "ca.pem", authorityFor(t, "root", 2, nil).pem())
	waittest.Until(t, "serial number 2 is shown", func() bool {
		m := r.List()
		return len(m) == 1 && m[0].CA[0].SerialNumber == "2"
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
