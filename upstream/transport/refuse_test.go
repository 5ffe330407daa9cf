package transport_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// refusal returns the error for a cluster, and checks that it contains no secret.
func refusal(t *testing.T, c *config.Cluster) string {
	t.Helper()
	f := transport.New(transport.Config{
		Now: start,
		ReadFile: func(name string) ([]byte, error) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		},
		Environment: func(name string) (string, bool) { return "hunter2", name == "SECRET" },
	})
	d, err := f.Dialer(c, store.New(store.Options{}).Scope("cluster.c"))
	if err == nil {
		d.Close()
		t.Fatal("the cluster is not refused")
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error holds a secret: %v", err)
	}
	return err.Error()
}

func TestRefusals(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	own, other := ca.issue(t, 10, nil), ca.issue(t, 11, nil)
	const common = `transport: cluster "c": transport_socket.typed_config.common_tls_context`
	cert := func(change func(*config.Certificate)) func(*config.TLS) {
		return func(c *config.TLS) {
			x := config.Certificate{Chain: inline(own.chain), PrivateKey: inline(own.pem)}
			change(&x)
			c.Certificates = []config.Certificate{x}
		}
	}
	validation := func(change func(*config.Validation)) func(*config.TLS) {
		return func(c *config.TLS) { change(c.Validation) }
	}
	stapled := func(text string) func(*config.TLS) {
		return cert(func(c *config.Certificate) { c.OCSPStaple = inline(text) })
	}
	noCA := func(change func(*config.Validation)) func(*config.TLS) {
		return validation(func(v *config.Validation) { v.TrustedCA = config.Data{}; change(v) })
	}
	tests := []struct {
		name   string
		change func(*config.TLS)
		want   string
	}{
		{"certificate-secret", func(c *config.TLS) {
			c.CertificateSecrets = []config.SecretSource{{Name: "s", Source: &config.ConfigSource{}}}
		},
			common + `.tls_certificate_sds_secret_configs[0].sds_config: secrets from files and control planes are not supported by this program; use a static secret, files or inline data`},
		{"two-kinds-of-certificates", func(c *config.TLS) {
			c.Certificates, c.CertificateSecrets = []config.Certificate{{}}, []config.SecretSource{{Name: "s"}}
		}, common + `.tls_certificate_sds_secret_configs: cannot be combined with tls_certificates`},
		{"unknown-static-secret", func(c *config.TLS) { c.CertificateSecrets = []config.SecretSource{{Name: "s"}} },
			common + `.tls_certificate_sds_secret_configs[0].name: no static secret "s" holds a tls_certificate`},
		{"validation-secret", func(c *config.TLS) { c.Validation, c.ValidationSecret = nil, &config.SecretSource{Name: "s"} },
			common + `.validation_context_sds_secret_config.name: no static secret "s" holds a validation_context`},
		{"combined-secret", func(c *config.TLS) { c.ValidationSecret = &config.SecretSource{Name: "s"} },
			common + `.combined_validation_context.validation_context_sds_secret_config.name: no static secret "s" holds a validation_context`},
		{"unread", func(c *config.TLS) { c.Unread = []string{"common_tls_context.key_log"} },
			common + `.key_log: not supported`},
		{"signature-algorithms", func(c *config.TLS) { c.SignatureAlgorithms = []string{"ed25519"} },
			common + `.tls_params.signature_algorithms: the list cannot be changed here, leave it out`},
		{"cipher", func(c *config.TLS) { c.CipherSuites = []string{"ECDHE-ECDSA-AES128-GCM-SHA256", "RC4"} },
			common + `.tls_params.cipher_suites[1]: "RC4" is not one of ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-ECDSA-CHACHA20-POLY1305, ECDHE-RSA-AES128-GCM-SHA256, ECDHE-RSA-CHACHA20-POLY1305, ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-GCM-SHA384, ECDHE-ECDSA-AES128-SHA, ECDHE-RSA-AES128-SHA, AES128-GCM-SHA256, AES128-SHA, ECDHE-ECDSA-AES256-SHA, ECDHE-RSA-AES256-SHA, AES256-GCM-SHA384, AES256-SHA`},
		{"curve", func(c *config.TLS) { c.Curves = []string{"X25519", "P-224"} },
			common + `.tls_params.ecdh_curves[1]: "P-224" is not one of X25519, P-256, P-384, P-521, X25519MLKEM768`},
		{"versions", func(c *config.TLS) { c.MinVersion, c.MaxVersion = config.TLS13, config.TLS12 },
			common + `.tls_params.tls_minimum_protocol_version: TLS 1.3 is above the maximum TLS 1.2`},
		{"pkcs12", cert(func(c *config.Certificate) { c.PKCS12 = inline("hunter2") }),
			common + `.tls_certificates[0].pkcs12: not supported; use certificate_chain and private_key in PEM form`},
		{"password", cert(func(c *config.Certificate) { c.Password = inline("hunter2") }),
			common + `.tls_certificates[0].password: encrypted private keys are not supported`},
		{"key-provider", cert(func(c *config.Certificate) { c.PrivateKeyProvider = "qat" }),
			common + `.tls_certificates[0].private_key_provider: "qat" is not known; none is`},
		{"no-chain", cert(func(c *config.Certificate) { c.Chain = config.Data{} }),
			common + `.tls_certificates[0].certificate_chain: must be set`},
		{"no-key", cert(func(c *config.Certificate) { c.PrivateKey = config.Data{} }),
			common + `.tls_certificates[0].private_key: must be set`},
		{"wrong-key", cert(func(c *config.Certificate) { c.PrivateKey = inline(other.pem) }),
			common + `.tls_certificates[0].private_key: <inline>: does not match the certificate`},
		{"broken-key", cert(func(c *config.Certificate) { c.PrivateKey = config.Data{Kind: config.DataEnvironment, Name: "SECRET"} }),
			common + `.tls_certificates[0].private_key: $SECRET: does not match the certificate`},
		{"missing-variable", cert(func(c *config.Certificate) { c.PrivateKey = config.Data{Kind: config.DataEnvironment, Name: "NONE"} }),
			common + `.tls_certificates[0].private_key: environment variable "NONE": not set`},
		{"missing-file", cert(func(c *config.Certificate) { c.Chain = file("/none.pem") }),
			common + `.tls_certificates[0].certificate_chain: "/none.pem": file does not exist`},
		{"no-certificate", cert(func(c *config.Certificate) { c.Chain = inline("hunter2") }),
			common + `.tls_certificates[0].certificate_chain: <inline>: no certificate in PEM form`},
		{"broken-certificate", cert(func(c *config.Certificate) { c.Chain = inline(certPEM([]byte("hunter2"))) }),
			common + `.tls_certificates[0].certificate_chain: <inline>: certificate 1: x509: malformed certificate`},
		{"broken-staple", stapled("hunter2"), common + `.tls_certificates[0].ocsp_staple: <inline>: not an OCSP response in DER form`},
		{"staple-of-another", stapled(staple(t, start(), start(), 1<<40)), common + `.tls_certificates[0].ocsp_staple: <inline>: the OCSP response is for another certificate`},
		{"broken-ca", validation(func(v *config.Validation) { v.TrustedCA = inline("hunter2") }),
			common + `.validation_context.trusted_ca: <inline>: no certificate in PEM form`},
		{"broken-crl", validation(func(v *config.Validation) { v.CRL = inline("hunter2") }),
			common + `.validation_context.crl: <inline>: no revocation list found`},
		{"hash", validation(func(v *config.Validation) { v.Hashes = []string{"xy"} }),
			common + `.validation_context.verify_certificate_hash[0]: "xy" is not a SHA-256 hash in hexadecimal`},
		{"spki", validation(func(v *config.Validation) { v.SPKI = []string{"eHk="} }),
			common + `.validation_context.verify_certificate_spki[0]: "eHk=" is not a SHA-256 hash in base64`},
		{"other-name", validation(func(v *config.Validation) { v.SANs = []config.SAN{san(config.OtherNameSAN, config.MatchExact, "x")} }),
			common + `.validation_context.match_typed_subject_alt_names[0].san_type: OTHER_NAME is not supported; use EMAIL, DNS, URI or IP_ADDRESS`},
		{"custom-matcher", validation(func(v *config.Validation) { v.SANs = []config.SAN{san(config.AnySAN, config.MatchCustom, "x")} }),
			common + `.validation_context.match_subject_alt_names[0].matcher: custom matchers are not supported`},
		{"names-without-ca", noCA(func(v *config.Validation) { v.SANs = []config.SAN{san(config.DNSSAN, config.MatchExact, "x")} }),
			common + `.validation_context.match_typed_subject_alt_names: needs trusted_ca`},
		{"crl-without-ca", noCA(func(v *config.Validation) { v.CRL = inline("x") }),
			common + `.validation_context.crl: needs trusted_ca`},
		{"expired-without-ca", noCA(func(v *config.Validation) { v.AllowExpired = true }),
			common + `.validation_context.allow_expired_certificate: needs trusted_ca`},
		{"auto-names-without-ca", func(c *config.TLS) { c.Validation, c.AutoSNISANValidation = nil, true },
			`transport: cluster "c": transport_socket.typed_config.auto_sni_san_validation: needs a validation context with trusted_ca`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := refusal(t, cluster(trust(ca, tt.change))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRefusedSockets(t *testing.T) {
	tests := []struct {
		name   string
		change func(*config.Cluster)
		want   string
	}{
		{"extension", func(c *config.Cluster) { c.Sockets.Default = config.Socket{Kind: config.OtherSocket, Name: "quic"} },
			`transport_socket: "quic" is not supported; known: tls, raw_buffer`},
		{"tls-without-context", func(c *config.Cluster) { c.Sockets.Default = config.Socket{Kind: config.TLSSocket} },
			`transport_socket.typed_config: must be set`},
		{"match", func(c *config.Cluster) {
			c.Sockets.Matches = []config.SocketMatch{{}, {Socket: config.Socket{Kind: config.TLSSocket, TLS: &config.TLS{AutoSNISANValidation: true}}}}
		}, `transport_socket_matches[1].transport_socket.typed_config.auto_sni_san_validation: needs a validation context with trusted_ca`},
		{"source-name", func(c *config.Cluster) {
			c.Bind = &config.Bind{Source: config.AddressSpec{Kind: config.SocketAddress, Host: "localhost"}}
		},
			`upstream_bind_config.source_address: "localhost" is not an IP address with a port number`},
		{"listening-option", func(c *config.Cluster) {
			c.Bind = &config.Bind{Options: []config.SocketOption{{State: config.StateListening}}}
		},
			`upstream_bind_config.socket_options[0].state: STATE_LISTENING is for listeners, not for connections; use STATE_PREBIND or STATE_BOUND`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(nil)
			tt.change(c)
			if got, want := refusal(t, c), `transport: cluster "c": `+tt.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestErrorsUnwrap(t *testing.T) {
	cause := errors.New("cause")
	e := &transport.Error{Cluster: "c", Address: "a", Stage: transport.Connect, Err: cause}
	if !errors.Is(e, cause) || e.Error() != `transport: cluster "c": host a: connect: cause` {
		t.Errorf("%v does not unwrap to its cause", e)
	}
}
