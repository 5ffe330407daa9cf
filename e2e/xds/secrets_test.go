package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// issue makes a certificate for 127.0.0.1. Without a parent it is an authority.
func issue(t *testing.T, serial int64, parent *certtest.Pair) *certtest.Pair {
	t.Helper()
	return certtest.Issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("test ", serial)},
		IsCA: parent == nil, DNSNames: []string{"test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, parent)
}

// backend accepts TLS clients with a certificate of the authority. It sends its
// serial number first and then echoes.
func backend(t *testing.T, ca *certtest.Pair) *net.TCPAddr {
	t.Helper()
	own := issue(t, 1000, ca)
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.Leaf)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{own.Certificate},
		ClientCAs:    trusted, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				secure, ok := conn.(*tls.Conn)
				if !ok || secure.Handshake() != nil {
					return
				}
				fmt.Fprintln(conn, secure.ConnectionState().PeerCertificates[0].SerialNumber)
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	return a
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func certSecret(chain, key *certtest.Pair) *tlsv3.Secret {
	return &tlsv3.Secret{Name: "cert", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(string(chain.Chain)), PrivateKey: inline(string(key.Key)),
	}}}
}

func caSecret(ca *certtest.Pair) *tlsv3.Secret {
	return &tlsv3.Secret{Name: "ca", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(string(ca.Chain))}}}
}

// secure configures a cluster to connect with the secrets "cert" and "ca" of a
// source.
func secure(t *testing.T, from *corev3.ConfigSource) func(*clusterv3.Cluster) {
	config, err := anypb.New(&tlsv3.UpstreamTlsContext{Sni: "test", CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "cert", SdsConfig: from}},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tlsv3.CertificateValidationContext{},
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "ca", SdsConfig: from},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *clusterv3.Cluster) {
		c.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config}}
	}
}

// dial connects to the first host of a cluster and returns the client certificate
// that the backend received.
func (p *proxy) dial(t *testing.T, cluster string) (conn net.Conn, serial string, err error) {
	t.Helper()
	c := p.m.Cluster(cluster).Current()
	h, err := c.Pick(nil)
	if err != nil {
		return nil, "", err
	}
	if conn, err = c.Connect(context.Background(), h, upstream.DefaultPriority, transport.Options{}); err != nil {
		return nil, "", err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(conn, b); err != nil {
			conn.Close()
			return nil, "", err
		}
		if b[0] == '\n' {
			return conn, serial, nil
		}
		serial += string(b)
	}
}

// serial returns the certificate of a new connection, or the reason why there is
// none.
func (p *proxy) serial(t *testing.T, cluster string) string {
	t.Helper()
	conn, serial, err := p.dial(t, cluster)
	if err != nil {
		return err.Error()
	}
	conn.Close()
	return serial
}

// TestSecretsAreFollowed makes a cluster wait for its secrets, rotates them, and
// sends an invalid one.
func TestSecretsAreFollowed(t *testing.T) {
	each(t, func(t *testing.T, p *plane) {
		ca := issue(t, 1, nil)
		one, two := issue(t, 11, ca), issue(t, 12, ca)
		to := map[string][]uint32{"a": {uint32(backend(t, ca).Port)}}
		with := secure(t, p.source())
		p.set("1", to, with)
		x := newProxy(t, p)
		waittest.Equal(t, "waiting", "cert ca", func() string {
			for _, c := range x.m.Unready() {
				if c.Config().Name == "a" {
					return strings.Join(c.AwaitedSecrets(), " ")
				}
			}
			return "no cluster"
		})
		p.secrets = []*tlsv3.Secret{certSecret(one, one), caSecret(ca)}
		p.set("2", to, with)
		select {
		case <-x.m.Ready():
		case <-time.After(time.Minute):
			t.Fatalf("not ready: %s", x.shows())
		}
		waittest.Equal(t, "certificate", "11", func() string { return x.serial(t, "a") })
		held, _, err := x.dial(t, "a")
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()

		p.secrets[0] = certSecret(two, two)
		p.set("3", to, with)
		waittest.Equal(t, "certificate", "12", func() string { return x.serial(t, "a") })
		if _, err := io.WriteString(held, "still"); err != nil {
			t.Errorf("a connection from before the rotation: %v", err)
		}
		b := make([]byte, 5)
		if _, err := io.ReadFull(held, b); err != nil || string(b) != "still" {
			t.Errorf("a connection from before the rotation: %q, %v", b, err)
		}

		p.secrets[0] = certSecret(one, two)
		p.set("4", to, with)
		const problem = `transport: cluster "a": secret "cert": tls_certificate.private_key: <inline>: does not match the certificate`
		waittest.Equal(t, "refusal", problem, p.problem)
		if got := x.serial(t, "a"); got != "12" {
			t.Errorf("certificate %s after a bad one, want that from before", got)
		}
		if got := x.value("sds.cert.update_rejected"); got == "0" {
			t.Error("no refusal is counted")
		}
		p.secrets[0] = certSecret(one, one)
		p.set("5", to, with)
		waittest.Equal(t, "certificate", "11", func() string { return x.serial(t, "a") })

		other := issue(t, 2, nil)
		p.secrets[1] = caSecret(other)
		p.set("6", to, with)
		waittest.Equal(t, "trust", "false", func() string {
			return fmt.Sprint(!strings.Contains(x.serial(t, "a"), "certificate signed by unknown authority"))
		})
	})
}

const withSecrets = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
node: {id: proxy-1, cluster: edge}
dynamic_resources:
  ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: control}}]}
static_resources:
  secrets:
  - name: fixed
    tls_certificate: {certificate_chain: {filename: $DIR/fixed.pem}, private_key: {filename: $DIR/fixed.key}}
  clusters:
  - name: control
    http2_protocol_options: {}
    load_assignment:
      cluster_name: control
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %[1]s, port_value: %[2]s}}}}]}]
%[3]s`

// oneOf returns a cluster whose host is checked over TLS with a certificate from a
// given source.
const oneOf = `  - name: %[1]s
    connect_timeout: 5s
    health_checks: [{timeout: 5s, interval: 0.1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
    load_assignment:
      cluster_name: %[1]s
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}}]}]
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: test
        common_tls_context:
          tls_certificate_sds_secret_configs: [%[3]s]
          validation_context: {trusted_ca: {filename: $DIR/ca.pem}}
`

// shownSecret is the part of a secret in /config_dump that this test reads.
type shownSecret struct {
	Name    string `json:"name"`
	Version string `json:"version_info"`
	Secret  struct {
		Cert struct {
			Key struct {
				Inline string `json:"inline_string"`
				File   string `json:"filename"`
			} `json:"private_key"`
		} `json:"tls_certificate"`
	} `json:"secret"`
	Error struct {
		Details string `json:"details"`
	} `json:"error_state"`
}

// TestDaemonWithSecrets has clusters with a static secret, one from a file and one
// from a control plane.
func TestDaemonWithSecrets(t *testing.T) {
	dir, err := os.MkdirTemp("", "sa")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	put := func(name, text string) {
		t.Helper()
		next := filepath.Join(dir, ".next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ca := issue(t, 1, nil)
	fixed, file, remote, next := issue(t, 11, ca), issue(t, 12, ca), issue(t, 13, ca), issue(t, 14, ca)
	put("ca.pem", string(ca.Chain))
	put("fixed.pem", string(fixed.Chain))
	put("fixed.key", string(fixed.Key))
	put("file.pem", string(file.Chain))
	put("file.key", string(file.Key))
	put("sds.yaml", fmt.Sprintf(`version_info: f1
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: from-file
  tls_certificate: {certificate_chain: {filename: %[1]s/file.pem}, private_key: {filename: %[1]s/file.key}}
`, dir))
	p := newPlane(t, true, false)
	p.secrets = []*tlsv3.Secret{certSecret(remote, remote)}
	p.set("1", nil, nil)
	ip, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	address := backend(t, ca)
	clusters := ""
	for name, secret := range map[string]string{
		"fixed": "{name: fixed}", "file": "{name: from-file, sds_config: {path_config_source: {path: $DIR/sds.yaml}}}", "remote": "{name: cert, sds_config: {ads: {}}}",
	} {
		clusters += fmt.Sprintf(oneOf, name, address.Port, secret)
	}
	d := daemon.Start(t, daemon.Config{Dir: dir, YAML: fmt.Sprintf(withSecrets, ip, port, clusters)})
	healthy := func() string {
		var list []string
		for line := range strings.Lines(d.Get("/clusters")) {
			if name, ok := strings.CutSuffix(strings.TrimSpace(line), "::health_flags::healthy"); ok && !strings.HasPrefix(name, "control") {
				list = append(list, strings.SplitN(name, ":", 2)[0])
			}
		}
		return strings.Join(list, " ")
	}
	waittest.Equal(t, "checks over TLS", "file fixed remote", healthy)

	dump := func() string {
		body := d.Get("/config_dump")
		if strings.Contains(body, "PRIVATE KEY") {
			t.Fatalf("a key is shown: %s", body)
		}
		var all struct {
			Configs []json.RawMessage `json:"configs"`
		}
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Configs {
			if !strings.Contains(string(c), "SecretsConfigDump") {
				continue
			}
			var x struct {
				Static  []shownSecret `json:"static_secrets"`
				Active  []shownSecret `json:"dynamic_active_secrets"`
				Warming []shownSecret `json:"dynamic_warming_secrets"`
			}
			if err := json.Unmarshal(c, &x); err != nil {
				t.Fatal(err)
			}
			var list []string
			for i, part := range [][]shownSecret{x.Static, x.Active, x.Warming} {
				for _, s := range part {
					key := s.Secret.Cert.Key
					list = append(list, strings.TrimSpace(fmt.Sprint([]string{"static ", "active ", "warming "}[i], s.Name, " ", s.Version, " ", key.Inline, key.File, " ", s.Error.Details)))
				}
			}
			return strings.Join(list, "\n")
		}
		return "no section"
	}
	const at1 = "static fixed  [redacted]\nactive cert 1 [redacted]\nactive from-file f1 [redacted]"
	if got := dump(); got != at1 {
		t.Errorf("secrets\n%s\nwant\n%s", got, at1)
	}
	certs := func() string {
		var x struct {
			Certificates []struct {
				Chain []struct {
					Path   string `json:"path"`
					Serial string `json:"serial_number"`
				} `json:"cert_chain"`
			} `json:"certificates"`
		}
		if err := json.Unmarshal([]byte(d.Get("/certs")), &x); err != nil {
			t.Fatal(err)
		}
		found := make(map[string]bool)
		for _, c := range x.Certificates {
			for _, i := range c.Chain {
				found[strings.TrimPrefix(i.Path, dir)+" "+i.Serial] = true
			}
		}
		return fmt.Sprint(found)
	}
	waittest.Equal(t, "certificates", "map[/file.pem c:true /fixed.pem b:true <inline> d:true]", certs)

	// All of them rotate; the static one stays unchanged.
	put("file.pem", string(next.Chain))
	put("file.key", string(next.Key))
	p.secrets = []*tlsv3.Secret{certSecret(next, next)}
	p.set("2", nil, nil)
	waittest.Equal(t, "certificates", "map[/file.pem e:true /fixed.pem b:true <inline> e:true]", certs)
	p.secrets = []*tlsv3.Secret{certSecret(next, remote)}
	p.set("3", nil, nil)
	const problem = `secret "cert": tls_certificate.private_key: <inline>: does not match the certificate`
	waittest.Equal(t, "refusal", problem, p.problem)
	const at3 = "static fixed  [redacted]\nactive cert 2 [redacted] " + problem + "\nactive from-file f1 [redacted]"
	waittest.Equal(t, "secrets", at3, dump)
	if got := healthy(); got != "file fixed remote" {
		t.Errorf("healthy %s", got)
	}
	d.Wait("a refusal", func(s daemon.Stats) bool {
		return s.Number("sds.cert.update_rejected") > 0 && s.Number("sds.cert.update_success") == 2 && s.Number("sds.from-file.update_success") == 1 &&
			s.Number("cluster.remote.client_ssl_socket_factory.ssl_context_update_by_sds") == 2 && s.Number("cluster.fixed.client_ssl_socket_factory.ssl_context_update_by_sds") == 0
	})
	if strings.Contains(d.Output(), "PRIVATE KEY") {
		t.Error("a key is logged")
	}
}
