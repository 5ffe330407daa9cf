package transport_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

func san(kind config.SANType, m config.MatchKind, pattern string) config.SAN {
	return config.SAN{Type: kind, Matcher: config.StringMatcher{Kind: m, Pattern: pattern}}
}

func TestPeerIsChecked(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	other := authorityFor(t, "root", 2, nil)
	between := authorityFor(t, "between", 3, ca)
	plainLeaf := ca.issue(t, 10, nil)
	expired := ca.issue(t, 11, func(c *x509.Certificate) { c.NotAfter = start().Add(-time.Minute) })
	future := ca.issue(t, 12, func(c *x509.Certificate) { c.NotBefore = start().Add(time.Minute) })
	client := ca.issue(t, 13, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	wildcard := ca.issue(t, 14, func(c *x509.Certificate) {
		c.DNSNames = []string{"*.example.com"}
		c.EmailAddresses = []string{"ops@example.com"}
		c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)}
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/web"}}
	})
	deep := between.issue(t, 15, nil)
	above := authorityFor(t, "above", 4, ca)
	crossed := authorityFor(t, "between", 3, above) // the same key, one level deeper
	hash := sha256.Sum256(plainLeaf.cert.Raw)
	spki := sha256.Sum256(plainLeaf.cert.RawSubjectPublicKeyInfo)
	colons := func(b []byte) string {
		var parts []string
		for _, x := range b {
			parts = append(parts, strings.ToUpper(hex.EncodeToString([]byte{x})))
		}
		return strings.Join(parts, ":")
	}
	names := func(list ...config.SAN) func(*config.TLS) {
		return func(c *config.TLS) { c.Validation.SANs = list }
	}
	untrusted := func(c *config.TLS) { c.Validation.TrustedCA = config.Data{} }

	const (
		good  = ""
		chain = "ssl.fail_verify_error"
		name  = "ssl.fail_verify_san"
		pin   = "ssl.fail_verify_cert_hash"
	)
	tests := []struct {
		name   string
		server tls.Certificate
		change func(*config.TLS)
		o      transport.Options
		want   string // the counter of the refusal
	}{
		{"good", plainLeaf.tls(), nil, transport.Options{}, good},
		{"unchecked", other.issue(t, 20, nil).tls(), func(c *config.TLS) { c.Validation = nil }, transport.Options{}, good},
		{"wrong-ca", other.issue(t, 20, nil).tls(), nil, transport.Options{}, chain},
		{"untrusted-accepted", other.issue(t, 20, nil).tls(), func(c *config.TLS) { c.Validation.AcceptUntrusted = true }, transport.Options{}, good},
		{"expired", expired.tls(), nil, transport.Options{}, chain},
		{"expired-allowed", expired.tls(), func(c *config.TLS) { c.Validation.AllowExpired = true }, transport.Options{}, good},
		{"not-yet", future.tls(), nil, transport.Options{}, chain},
		{"not-for-servers", client.tls(), nil, transport.Options{}, chain},
		{"without-intermediate", deep.tls(), nil, transport.Options{}, chain},
		{"with-intermediate", deep.tls(between), nil, transport.Options{}, good},
		{"too-deep", deep.tls(between), func(c *config.TLS) { c.Validation.MaxVerifyDepth = 1 }, transport.Options{}, chain},
		{"deep-enough", deep.tls(between), func(c *config.TLS) { c.Validation.MaxVerifyDepth = 2 }, transport.Options{}, good},
		{"short-chain-first", deep.tls(between, crossed, above), func(c *config.TLS) { c.Validation.MaxVerifyDepth = 2 }, transport.Options{}, good},
		{"short-chain-last", deep.tls(crossed, above, between), func(c *config.TLS) { c.Validation.MaxVerifyDepth = 2 }, transport.Options{}, good},
		{"partial-chain", deep.tls(), func(c *config.TLS) { c.Validation.TrustedCA = inline(between.pem()) }, transport.Options{}, good},
		{"wrong-san", plainLeaf.tls(), names(san(config.DNSSAN, config.MatchExact, "two.example.com")), transport.Options{}, name},
		{"right-san", plainLeaf.tls(), names(san(config.DNSSAN, config.MatchExact, "two"), san(config.DNSSAN, config.MatchExact, "one.example.com")), transport.Options{}, good},
		{"san-wildcard", wildcard.tls(), names(san(config.DNSSAN, config.MatchExact, "any.example.com")), transport.Options{}, good},
		{"san-wildcard-one-label", wildcard.tls(), names(san(config.DNSSAN, config.MatchExact, "a.b.example.com")), transport.Options{}, name},
		{"san-suffix", plainLeaf.tls(), names(san(config.DNSSAN, config.MatchSuffix, ".example.com")), transport.Options{}, good},
		{"san-regex-whole", plainLeaf.tls(), names(san(config.DNSSAN, config.MatchRegex, "one")), transport.Options{}, name},
		{"san-uri", wildcard.tls(), names(san(config.URISAN, config.MatchPrefix, "spiffe://example.com/")), transport.Options{}, good},
		{"san-uri-is-no-dns", plainLeaf.tls(), names(san(config.URISAN, config.MatchExact, "one.example.com")), transport.Options{}, name},
		{"san-ip", wildcard.tls(), names(san(config.IPSAN, config.MatchExact, "10.0.0.1")), transport.Options{}, good},
		{"san-email", wildcard.tls(), names(san(config.EmailSAN, config.MatchContains, "@example")), transport.Options{}, good},
		{"san-any", wildcard.tls(), names(san(config.AnySAN, config.MatchExact, "10.0.0.1")), transport.Options{}, good},
		{"hash", plainLeaf.tls(), func(c *config.TLS) { untrusted(c); c.Validation.Hashes = []string{hex.EncodeToString(hash[:])} }, transport.Options{}, good},
		{"hash-with-colons", plainLeaf.tls(), func(c *config.TLS) { c.Validation.Hashes = []string{colons(hash[:])} }, transport.Options{}, good},
		{"wrong-hash", wildcard.tls(), func(c *config.TLS) { untrusted(c); c.Validation.Hashes = []string{hex.EncodeToString(hash[:])} }, transport.Options{}, pin},
		{"spki", plainLeaf.tls(), func(c *config.TLS) {
			untrusted(c)
			c.Validation.SPKI = []string{base64.StdEncoding.EncodeToString(spki[:])}
		}, transport.Options{}, good},
		{"wrong-spki", wildcard.tls(), func(c *config.TLS) { c.Validation.SPKI = []string{base64.StdEncoding.EncodeToString(spki[:])} }, transport.Options{}, pin},
		{"either-hash-or-spki", plainLeaf.tls(), func(c *config.TLS) {
			c.Validation.Hashes = []string{strings.Repeat("00", 32)}
			c.Validation.SPKI = []string{base64.StdEncoding.EncodeToString(spki[:])}
		}, transport.Options{}, good},
		{"auto-san", plainLeaf.tls(), func(c *config.TLS) { c.SNI, c.AutoSNISANValidation = "one.example.com", true }, transport.Options{}, good},
		{"auto-san-wrong", plainLeaf.tls(), func(c *config.TLS) { c.SNI, c.AutoSNISANValidation = "two.example.com", true }, transport.Options{}, name},
		{"auto-san-without-name", plainLeaf.tls(), func(c *config.TLS) { c.AutoSNISANValidation = true }, transport.Options{}, name},
		{"own-names", plainLeaf.tls(), names(san(config.DNSSAN, config.MatchExact, "two")), transport.Options{SubjectAltNames: []string{"one.example.com"}}, good},
		{"own-names-wrong", plainLeaf.tls(), nil, transport.Options{SubjectAltNames: []string{"10.0.0.1"}}, name},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &tls.Config{Certificates: []tls.Certificate{tt.server}})
			d := dialer(t, cluster(trust(ca, tt.change)))
			got, err := d.say(t, hostAt(s.address, nil), tt.o)
			if tt.want == good {
				if err != nil || got != "hello" || d.count("ssl.handshake") != 1 {
					t.Fatalf("dial: %q, %v, %d handshakes; want hello and 1", got, err, d.count("ssl.handshake"))
				}
				return
			}
			if stageOf(err) != transport.Handshake || !strings.Contains(err.Error(), "certificate of the host: ") {
				t.Fatalf("dial: %v, want a refused certificate", err)
			}
			for _, n := range []string{chain, name, pin, "ssl.handshake", "ssl.connection_error"} {
				if want := map[bool]uint64{true: 1}[n == tt.want]; d.count(n) != want {
					t.Errorf("%s: %d, want %d", n, d.count(n), want)
				}
			}
		})
	}
}

func TestRSAKeyUsage(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	usage := func(u x509.KeyUsage) tls.Certificate {
		return ca.issueFor(t, k, 30, func(c *x509.Certificate) { c.KeyUsage = u }).tls()
	}
	rsaOnly := func(c *config.TLS) { c.MaxVersion, c.CipherSuites = config.TLS12, []string{"AES128-GCM-SHA256"} }
	tests := []struct {
		name    string
		usage   x509.KeyUsage
		change  func(*config.TLS)
		ignored uint64
		good    bool
	}{
		{"signature", x509.KeyUsageDigitalSignature, nil, 0, true},
		{"encipherment-only", x509.KeyUsageKeyEncipherment, nil, 0, false},
		{"not-enforced", x509.KeyUsageKeyEncipherment, func(c *config.TLS) { c.EnforceRSAKeyUsage = false }, 1, true},
		{"key-exchange", x509.KeyUsageKeyEncipherment, rsaOnly, 0, true},
		{"key-exchange-signature-only", x509.KeyUsageDigitalSignature, rsaOnly, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &tls.Config{Certificates: []tls.Certificate{usage(tt.usage)}, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}})
			d := dialer(t, cluster(trust(ca, tt.change)))
			_, err := d.say(t, hostAt(s.address, nil), transport.Options{})
			if (err == nil) != tt.good || d.count("ssl.was_key_usage_invalid") != tt.ignored {
				t.Errorf("dial: %v, %d ignored; want good: %t, %d ignored", err, d.count("ssl.was_key_usage_invalid"), tt.good, tt.ignored)
			}
		})
	}
}

func TestMutualTLS(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	leaf, mine := ca.issue(t, 10, nil), ca.issue(t, 40, nil)
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	s := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf.tls()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients})

	d := dialer(t, cluster(trust(ca, func(c *config.TLS) {
		c.Certificates = []config.Certificate{{Chain: inline(mine.chain), PrivateKey: inline(mine.pem)}}
	})))
	d.mustSay(t, hostAt(s.address, nil), transport.Options{})
	if got := s.last(t).state.PeerCertificates; len(got) != 1 || !got[0].Equal(mine.cert) {
		t.Errorf("the server saw %d certificates, want the configured one", len(got))
	}

	// Without a certificate the server closes the connection; in TLS 1.2 that is part
	// of the handshake.
	d = dialer(t, cluster(trust(ca, func(c *config.TLS) { c.MaxVersion = config.TLS12 })))
	if _, err := d.say(t, hostAt(s.address, nil), transport.Options{}); stageOf(err) != transport.Handshake || d.count("ssl.connection_error") != 1 {
		t.Errorf("dial without a certificate: %v, %d errors counted; want a handshake error, 1", err, d.count("ssl.connection_error"))
	}
}

func TestServerName(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	leaf := ca.issue(t, 10, nil)
	tests := []struct {
		name   string
		change func(*config.TLS)
		o      transport.Options
		want   string
	}{
		{"none", nil, transport.Options{}, ""},
		{"configured", func(c *config.TLS) { c.SNI = "sni.example.com" }, transport.Options{}, "sni.example.com"},
		{"of-the-host", func(c *config.TLS) { c.SNI, c.AutoHostSNI = "sni.example.com", true }, transport.Options{}, "one.example.com"},
		{"of-the-request", func(c *config.TLS) { c.SNI, c.AutoHostSNI = "sni.example.com", true }, transport.Options{ServerName: "rq.example.com"}, "rq.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf.tls()}})
			dialer(t, cluster(trust(ca, tt.change))).mustSay(t, hostAt(s.address, nil), tt.o)
			if got := s.last(t).state.ServerName; got != tt.want {
				t.Errorf("server name %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALPN(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	leaf := ca.issue(t, 10, nil)
	configured := func(c *config.TLS) { c.ALPN = []string{"h2", "http/1.1"} }
	tests := []struct {
		name   string
		change func(*config.TLS)
		o      transport.Options
		want   string
	}{
		{"none", nil, transport.Options{}, ""},
		{"configured", configured, transport.Options{DefaultALPN: []string{"http/1.1"}}, "h2"},
		{"default", nil, transport.Options{DefaultALPN: []string{"http/1.1"}}, "http/1.1"},
		{"own", configured, transport.Options{ALPN: []string{"http/1.1"}}, "http/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf.tls()}, NextProtos: []string{"h2", "http/1.1"}})
			dialer(t, cluster(trust(ca, tt.change))).mustSay(t, hostAt(s.address, nil), tt.o)
			if got := s.last(t).state.NegotiatedProtocol; got != tt.want {
				t.Errorf("protocol %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	leaf := ca.issue(t, 10, nil)
	tests := []struct {
		name   string
		change func(*config.TLS)
		server *tls.Config
		count  []string // of the finished handshake; empty: it fails
	}{
		{"default", nil, &tls.Config{}, []string{"ssl.versions.TLSv1.3"}},
		{"max-version", func(c *config.TLS) { c.MaxVersion = config.TLS12 }, &tls.Config{}, []string{"ssl.versions.TLSv1.2"}},
		{"min-version", func(c *config.TLS) { c.MinVersion = config.TLS13 }, &tls.Config{MaxVersion: tls.VersionTLS12}, nil},
		{"not-below-1.2", nil, &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, nil},
		{"cipher", func(c *config.TLS) {
			c.MaxVersion, c.CipherSuites = config.TLS12, []string{"[ECDHE-RSA-AES256-GCM-SHA384|ECDHE-ECDSA-CHACHA20-POLY1305]"}
		}, &tls.Config{}, []string{"ssl.ciphers.ECDHE-ECDSA-CHACHA20-POLY1305"}},
		{"no-common-cipher", func(c *config.TLS) {
			c.MaxVersion, c.CipherSuites = config.TLS12, []string{"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"}
		}, &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}}, nil},
		{"no-cbc-by-default", nil, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, nil},
		{"cbc-on-request", func(c *config.TLS) { c.CipherSuites = []string{"ECDHE-ECDSA-AES128-SHA"} },
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, []string{"ssl.ciphers.ECDHE-ECDSA-AES128-SHA"}},
		{"curve", func(c *config.TLS) { c.Curves = []string{"P-384"} }, &tls.Config{}, []string{"ssl.curves.P-384"}},
		{"no-common-curve", func(c *config.TLS) { c.Curves = []string{"P-384"} }, &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.server.Certificates = []tls.Certificate{leaf.tls()}
			s := serve(t, tt.server)
			d := dialer(t, cluster(trust(ca, tt.change)))
			_, err := d.say(t, hostAt(s.address, nil), transport.Options{})
			if (err == nil) != (tt.count != nil) {
				t.Fatalf("dial: %v, want success: %t", err, tt.count != nil)
			}
			for _, n := range tt.count {
				if d.count(n) != 1 {
					t.Errorf("%s: %d, want 1", n, d.count(n))
				}
			}
		})
	}
}

func TestSessionKeys(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	leaf := ca.issue(t, 10, nil)
	for n, want := range map[uint32]uint64{0: 0, 1: 1} {
		s := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf.tls()}})
		d := dialer(t, cluster(trust(ca, func(c *config.TLS) { c.MaxSessionKeys = n })))
		d.mustSay(t, hostAt(s.address, nil), transport.Options{})
		d.mustSay(t, hostAt(s.address, nil), transport.Options{})
		if got := d.count("ssl.session_reused"); got != want {
			t.Errorf("with %d keys: %d sessions used again, want %d", n, got, want)
		}
	}
}
