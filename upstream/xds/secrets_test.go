package xds

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

func (r *rig) transport() *transport.Factory {
	return transport.New(transport.Config{Secrets: r.c.Secrets(), Registry: &r.certs})
}

// inUse lists the serial numbers of the certificates in use, by context.
func (r *rig) inUse() string {
	var list []string
	for _, m := range r.certs.List() {
		one := ""
		for _, c := range m.CA {
			one += "ca:" + c.SerialNumber
		}
		for _, c := range m.Chain {
			one += " cert:" + c.SerialNumber
		}
		list = append(list, strings.TrimSpace(one))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// states lists the followed secrets with their versions and failures.
func (r *rig) states() string {
	var list []string
	for s := range r.c.SecretStates {
		text := s.Name + "=" + s.Version
		if s.Message == nil {
			text += "?"
		}
		if f := s.Failure; f != nil {
			text += fmt.Sprintf(" (%s: %s)", f.Version, f.Details)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// keyPair returns a certificate with a serial number and its key.
func keyPair(t testing.TB, serial byte) (cert, key string) {
	t.Helper()
	var seed [ed25519.SeedSize]byte
	seed[0] = serial
	private := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(serial)), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func file(name string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: name}}
}

func certificate(name string, cert, key *corev3.DataSource) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: cert, PrivateKey: key}}}
}

func certSecret(t testing.TB, serial byte) *tlsv3.Secret {
	cert, key := keyPair(t, serial)
	return certificate("cert", inline(cert), inline(key))
}

func caSecret(t testing.TB, serial byte) *tlsv3.Secret {
	cert, _ := keyPair(t, serial)
	return &tlsv3.Secret{Name: "ca", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(cert)}}}
}

// badSecret returns a secret whose key does not fit its certificate.
func badSecret(t testing.TB) *tlsv3.Secret {
	cert, _ := keyPair(t, 100)
	_, key := keyPair(t, 101)
	return certificate("cert", inline(cert), inline(key))
}

func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
}

func fromFile(path string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: path}}}
}

// fromPath returns a config source in the older form.
func fromPath(path string) *corev3.ConfigSource {
	//lint:ignore SA1019 the field is still in use
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: path}}
}

// secure returns a STATIC cluster with one host that uses TLS with the secrets "cert"
// and "ca" of those sources; nil omits one.
func secure(t testing.TB, name string, cert, ca *corev3.ConfigSource) *clusterv3.Cluster {
	t.Helper()
	common := new(tlsv3.CommonTlsContext)
	if cert != nil {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: "cert", SdsConfig: cert}}
	}
	if ca != nil {
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "ca", SdsConfig: ca},
		}
	}
	socket, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: common})
	if err != nil {
		t.Fatal(err)
	}
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second), LoadAssignment: endpointsOf(name, 1),
		TransportSocket: &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: socket}},
	}
}

// ready reports whether the manager and all clusters are ready.
func (r *rig) ready() string {
	var list []string
	for _, c := range r.m.Unready() {
		list = append(list, c.Config().Name+":"+strings.Join(c.AwaitedSecrets(), ","))
	}
	if len(list) > 0 {
		return "no, " + strings.Join(list, " ")
	}
	select {
	case <-r.m.Ready():
		return "yes"
	default:
		return "no"
	}
}

func TestSecretsOverTheAggregatedStream(t *testing.T) {
	tests := []struct{ asked, accepted, rotated, refused, mended string }{
		{
			"Cluster node=node version=1 nonce=n1\nSecret node=node names=ca,cert",
			"Secret node=node version=s1 names=ca,cert nonce=n2",
			"Secret node=node version=s2 names=ca,cert nonce=n3",
			`Secret node=node version=s2 names=ca,cert nonce=n4 error="secret \"cert\": tls_certificate.private_key: <inline>: does not match the certificate"`,
			"Secret node=node version=s4 names=ca,cert nonce=n5",
		},
		{
			"Cluster nonce=n1\nSecret subscribe=ca,cert",
			"Secret nonce=n2",
			"Secret nonce=n3",
			`Secret nonce=n4 error="secret \"cert\": tls_certificate.private_key: <inline>: does not match the certificate"`,
			"Secret nonce=n5",
		},
	}
	for i, tt := range tests {
		t.Run(variants[i].name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, variants[i].delta, readInline)
				r.start()
				s := r.open()
				s.says()
				equal(t, "after the cluster", s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", fromADS(), fromADS())}}), tt.asked)
				equal(t, "ready", r.ready(), "no, a:cert,ca")
				equal(t, "states", r.states(), "ca=?; cert=?")
				s.answer(t, answer{kind: secretKind, version: "s0", nonce: "n0"}) // there are none yet
				equal(t, "ready after no secret", r.ready(), "no, a:cert,ca")
				equal(t, "in use", r.inUse(), "")

				equal(t, "after the secrets", s.answer(t, answer{kind: secretKind, version: "s1", nonce: "n2", resources: []proto.Message{certSecret(t, 1), caSecret(t, 2)}}), tt.accepted)
				equal(t, "ready", r.ready(), "yes")
				equal(t, "hosts", r.hosts("a"), ":1")
				equal(t, "states", r.states(), "ca=s1; cert=s1")
				equal(t, "in use", r.inUse(), "ca:2 cert:1")

				equal(t, "after a rotation", s.answer(t, answer{kind: secretKind, version: "s2", nonce: "n3", resources: []proto.Message{certSecret(t, 3), caSecret(t, 2)}}), tt.rotated)
				equal(t, "in use", r.inUse(), "ca:2 cert:3")

				equal(t, "after a bad one", s.answer(t, answer{kind: secretKind, version: "s3", nonce: "n4", resources: []proto.Message{badSecret(t), caSecret(t, 4)}}), tt.refused)
				equal(t, "in use", r.inUse(), "ca:4 cert:3")
				equal(t, "states", r.states(), `ca=s3; cert=s2 (s3: secret "cert": tls_certificate.private_key: <inline>: does not match the certificate)`)
				equal(t, "stats", r.counts("sds.cert.update_success", "sds.cert.update_rejected", "sds.cert.update_attempt", "sds.cert.config_reload", "sds.ca.update_success",
					"sds.ca.config_reload", "sds.cert.key_rotation_failed", "cluster.a.client_ssl_socket_factory.ssl_context_update_by_sds"),
					"update_success=2 update_rejected=1 update_attempt=4 config_reload=2 update_success=3 config_reload=2 key_rotation_failed=0 ssl_context_update_by_sds=4")

				equal(t, "after a good one", s.answer(t, answer{kind: secretKind, version: "s4", nonce: "n5", resources: []proto.Message{certSecret(t, 3), caSecret(t, 4)}}), tt.mended)
				equal(t, "states", r.states(), "ca=s4; cert=s4")
				equal(t, "in use", r.inUse(), "ca:4 cert:3")
				r.stop()
			})
		})
	}
}

// readInline makes the decoder check certificates.
func readInline(c *Config) {
	c.Decoder = decode.NewDecoder(decode.Options{ReadFile: os.ReadFile})
}

func TestSecretsThatAreNoAnswer(t *testing.T) {
	other := func(s *tlsv3.Secret, name string) *tlsv3.Secret { s.Name = name; return s }
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, v.delta, nil) // so that the contexts find the errors
				r.start()
				s := r.open()
				s.says()
				s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", fromADS(), nil)}})
				s.answer(t, answer{kind: secretKind, version: "1", nonce: "n", resources: []proto.Message{certSecret(t, 1)}})
				// Each of these is refused or ignored and changes nothing.
				for i, tt := range []struct {
					secret *tlsv3.Secret
					want   string
				}{
					{badSecret(t), `error="transport: cluster \"a\": secret \"cert\": tls_certificate.private_key: <inline>: does not match the certificate"`},
					{other(caSecret(t, 2), "cert"), `error="xds: secret \"cert\" holds a validation_context, not a tls_certificate"`},
					{&tlsv3.Secret{Name: "cert"}, `error="secret \"cert\": needs one of tls_certificate, session_ticket_keys, validation_context, generic_secret"`},
					{other(certSecret(t, 2), "stranger"), ""},
				} {
					time.Sleep(time.Minute) // consecutive refusals are delayed
					got := s.answer(t, answer{kind: secretKind, version: fmt.Sprint("v", i), nonce: "n", resources: []proto.Message{tt.secret}})
					time.Sleep(time.Minute)
					got += s.says()
					if !strings.Contains(got, tt.want) || (tt.want == "") == strings.Contains(got, "error") {
						t.Errorf("%d: reply %s, want %s", i, got, tt.want)
					}
					equal(t, "in use", r.inUse(), "cert:1")
				}
				// A removed secret stays in effect.
				none := answer{kind: secretKind, version: "5", nonce: "n"}
				want := "Secret node=node version=5 names=cert nonce=n"
				if v.delta {
					none.removed, want = []string{"cert"}, "Secret nonce=n"
				}
				equal(t, "reply", s.answer(t, none), want)
				equal(t, "in use", r.inUse(), "cert:1")
				r.stop()
			})
		})
	}
}

// TestRefusedBytesAreNotKept checks that bytes that are no secret are not shown,
// because private keys in them cannot be found.
func TestRefusedBytesAreNotKept(t *testing.T) {
	broken := append([]byte("\x0a\x04cert\x12\x06"), "\x12\xffhush"...)
	for _, tt := range []struct {
		name string
		raw  *anypb.Any
		kept bool
	}{
		{"broken", &anypb.Any{TypeUrl: secretKind.typeURL(), Value: broken}, false},
		{"another-type", &anypb.Any{TypeUrl: clusterKind.typeURL(), Value: []byte("\x0a\x04cert")}, false},
		{"no-type", &anypb.Any{TypeUrl: "x/no.such.Type", Value: broken}, false},
		{"secret", &anypb.Any{TypeUrl: secretKind.typeURL(), Value: []byte("\x0a\x04cert")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, true, nil) // envelopes name resources without a name
				r.start()
				s := r.open()
				s.says()
				s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", fromADS(), nil)}})
				a := answer{kind: secretKind, version: "1", nonce: "n2", raw: []*anypb.Any{tt.raw}}
				var m discoveryv3.DeltaDiscoveryResponse
				if err := proto.Unmarshal(a.encode(t, true), &m); err != nil {
					t.Fatal(err)
				}
				m.Resources[0].Name = "cert"
				b, err := proto.Marshal(&m)
				if err != nil {
					t.Fatal(err)
				}
				s.responses <- b
				if got := s.says(); !strings.Contains(got, "error=") || strings.Contains(got, "hush") {
					t.Errorf("reply %s", got)
				}
				for x := range r.c.SecretStates {
					if x.Failure == nil || (x.Failure.Config != nil) != tt.kept {
						t.Errorf("failure %+v, kept must be %v", x.Failure, tt.kept)
					}
				}
				r.stop()
			})
		})
	}
}

func TestSecretsDoNotHoldClustersUpForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.says()
		begin := time.Now()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", fromADS(), nil)}})
		<-r.m.Ready()
		if d := time.Since(begin); d != 15*time.Second {
			t.Errorf("ready after %v, want 15s", d)
		}
		equal(t, "stats", r.counts("sds.cert.init_fetch_timeout", "sds.cert.update_success"), "init_fetch_timeout=1 update_success=0")
		equal(t, "states", r.states(), "cert=?")
		s.answer(t, answer{kind: secretKind, version: "1", nonce: "n2", resources: []proto.Message{certSecret(t, 1)}})
		equal(t, "in use", r.inUse(), "cert:1")
		r.stop()
	})
}

// TestContextsShareSecrets adds and removes clusters that use the same secret.
func TestContextsShareSecrets(t *testing.T) {
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.says()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", fromADS(), nil), secure(t, "b", fromADS(), nil)}})
		s.answer(t, answer{kind: secretKind, version: "s1", nonce: "n2", resources: []proto.Message{certSecret(t, 1)}})
		equal(t, "in use", r.inUse(), "cert:1; cert:1")
		equal(t, "stats", r.counts("sds.cert.update_success", "sds.cert.update_attempt"), "update_success=1 update_attempt=2")

		// A later cluster and a new version of one have it at once.
		changed := secure(t, "b", fromADS(), nil)
		changed.ConnectTimeout = durationpb.New(2 * time.Second)
		next := []proto.Message{secure(t, "a", fromADS(), nil), changed, secure(t, "c", fromADS(), nil)}
		got := s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n3", resources: next})
		if strings.Contains(got, "Secret") {
			t.Errorf("the secret is asked for again: %s", got)
		}
		equal(t, "ready", r.ready(), "yes")
		equal(t, "in use", r.inUse(), "cert:1; cert:1; cert:1")
		equal(t, "timeout", r.m.Cluster("b").Current().Config().ConnectTimeout.String(), "2s")

		// Removing the last user ends the subscription.
		gone := answer{kind: clusterKind, version: "3", nonce: "n4", resources: []proto.Message{edsCluster("x")}}
		want := "Secret node=node version=s1 nonce=n2"
		if r.delta {
			gone.removed, want = []string{"a", "b", "c"}, "Secret unsubscribe=cert"
		}
		if got := s.answer(t, gone); !strings.Contains(got, want) {
			t.Errorf("reply %s, want %s", got, want)
		}
		equal(t, "in use", r.inUse(), "")
		equal(t, "states", r.states(), "")
		equal(t, "stats", r.counts("sds.cert.update_success"), "update_success=none")
	})
}

// TestNewVersionWarmsUntilItsSecretsAreThere keeps the version before serving.
func TestNewVersionWarmsUntilItsSecretsAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, nil)
		r.start()
		s := r.open()
		s.says()
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", nil, nil)}})
		equal(t, "ready", r.ready(), "yes")
		s.answer(t, answer{kind: clusterKind, version: "2", nonce: "n2", resources: []proto.Message{secure(t, "a", fromADS(), nil)}})
		before := r.m.Cluster("a").Current()
		equal(t, "unready", r.ready(), "no, a:cert")
		equal(t, "stats", r.counts("cluster_manager.warming_clusters", "cluster_manager.active_clusters"), "warming_clusters=1 active_clusters=1")
		s.answer(t, answer{kind: secretKind, version: "s1", nonce: "n3", resources: []proto.Message{certSecret(t, 1)}})
		equal(t, "unready", r.ready(), "yes")
		if r.m.Cluster("a").Current() == before {
			t.Error("the version before still serves")
		}
		equal(t, "stats", r.counts("cluster_manager.warming_clusters"), "warming_clusters=0")
		r.stop()
	})
}

func TestSecretsOnStreamsOfTheirOwn(t *testing.T) {
	kinds := map[bool]corev3.ApiConfigSource_ApiType{false: corev3.ApiConfigSource_GRPC, true: corev3.ApiConfigSource_DELTA_GRPC}
	methods := map[bool]string{
		false: "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets", true: "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
	}
	inVariants(t, func(t *testing.T, r *rig, s *fakeStream) {
		s.says()
		api := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: kinds[r.delta], TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "agent"}}}},
		}}}
		s.answer(t, answer{kind: clusterKind, version: "1", nonce: "n1", resources: []proto.Message{secure(t, "a", api, nil)}})
		own := r.open()
		equal(t, "method", own.method, methods[r.delta])
		own.says()
		own.answer(t, answer{kind: secretKind, version: "s1", nonce: "n2", resources: []proto.Message{certSecret(t, 1)}})
		equal(t, "in use", r.inUse(), "cert:1")
		equal(t, "stats", r.counts("sds.cert.control_plane.connected_state", "sds.cert.update_success"), "connected_state=1 update_success=1")
		r.refuse.Store(true)
		close(own.broken)
		synctest.Wait()
		equal(t, "in use without the server", r.inUse(), "cert:1")
		equal(t, "stats", r.counts("sds.cert.control_plane.connected_state", "sds.cert.update_failure"), "connected_state=0 update_failure=1")
	})
}

// secretFile is a discovery response with one secret, as JSON, which is YAML too.
func secretFile(t testing.TB, version string, s *tlsv3.Secret) string {
	t.Helper()
	packed, err := anypb.New(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"version_info": %q, "resources": [%s]}`, version, text)
}

const yamlSecret = `version_info: %q
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: cert
  tls_certificate:
    certificate_chain: {filename: %q}
    private_key: {filename: %q}
`

// clusterFile is a discovery response with one cluster.
func clusterFile(t testing.TB, c *clusterv3.Cluster) string {
	t.Helper()
	packed, err := anypb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"resources": [%s]}`, text)
}

func TestSecretFiles(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	cds, cert, ca := filepath.Join(dir, "cds.json"), filepath.Join(dir, "cert.yaml"), filepath.Join(dir, "ca.json")
	chain, key := filepath.Join(files, "chain.pem"), filepath.Join(files, "key.pem")
	rotate := func(serial byte) {
		t.Helper()
		c, k := keyPair(t, serial)
		put(t, chain, c)
		put(t, key, k)
	}
	rotate(1)
	put(t, cert, fmt.Sprintf(yamlSecret, "c1", chain, key))
	put(t, ca, secretFile(t, "a1", caSecret(t, 2)))
	put(t, cds, clusterFile(t, secure(t, "a", fromFile(cert), fromPath(ca))))
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, nil, dir)
	waittest.Equal(t, "in use", "ca:2 cert:1", d.inUse)
	waittest.Equal(t, "states", "ca=a1; cert=c1", d.states)
	waittest.Equal(t, "ready", "yes", d.ready)

	put(t, ca, secretFile(t, "a2", caSecret(t, 3)))
	waittest.Equal(t, "in use", "ca:3 cert:1", d.inUse)

	rotate(4) // the files that the secret names
	waittest.Equal(t, "in use", "ca:3 cert:4", d.inUse)
	_, other := keyPair(t, 5)
	failed := d.counts("sds.cert.key_rotation_failed")
	put(t, key, other)
	waittest.Equal(t, "refusal", "true", func() string { return fmt.Sprint(d.counts("sds.cert.key_rotation_failed") != failed) })
	equal(t, "in use", d.inUse(), "ca:3 cert:4")
	rotate(5)
	waittest.Equal(t, "in use", "ca:3 cert:5", d.inUse)

	put(t, ca, secretFile(t, "a3", certSecret(t, 6)))
	waittest.Equal(t, "stats", "update_rejected=1", func() string { return d.counts("sds.ca.update_rejected") })
	put(t, ca, "resources: [")
	waittest.Equal(t, "stats", "update_rejected=2", func() string { return d.counts("sds.ca.update_rejected") })
	put(t, ca, `{"resources": []}`)
	waittest.Equal(t, "stats", "update_rejected=3", func() string { return d.counts("sds.ca.update_rejected") })
	equal(t, "in use", d.inUse(), "ca:3 cert:5")
	put(t, ca, secretFile(t, "a4", caSecret(t, 7)))
	waittest.Equal(t, "in use", "ca:7 cert:5", d.inUse)
	if d.mu.Lock(); strings.Contains(d.log.String(), "PRIVATE") {
		t.Errorf("a key is logged: %s", d.log.String())
	}
	d.mu.Unlock()
}

// TestSwappedDirectoryRotates replaces a link to the directory of the files, as
// mounted secrets do.
func TestSwappedDirectoryRotates(t *testing.T) {
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprint("watched=", watched), func(t *testing.T) {
			dir := t.TempDir()
			swap := func(serial byte) {
				t.Helper()
				real := filepath.Join(dir, fmt.Sprint("..", serial))
				if err := os.Mkdir(real, 0o700); err != nil {
					t.Fatal(err)
				}
				c, k := keyPair(t, serial)
				put(t, filepath.Join(real, "chain.pem"), c)
				put(t, filepath.Join(real, "key.pem"), k)
				if err := os.Symlink(real, filepath.Join(dir, "..next")); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
					t.Fatal(err)
				}
			}
			swap(1)
			for _, name := range []string{"chain.pem", "key.pem"} {
				if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			sds, cds := filepath.Join(t.TempDir(), "sds.json"), filepath.Join(t.TempDir(), "cds.json")
			s := certificate("cert", file(filepath.Join(dir, "chain.pem")), file(filepath.Join(dir, "key.pem")))
			if watched {
				s.GetTlsCertificate().WatchedDirectory = &corev3.WatchedDirectory{Path: dir}
			}
			put(t, sds, secretFile(t, "1", s))
			put(t, cds, clusterFile(t, secure(t, "a", fromFile(sds), nil)))
			d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, nil, dir)
			waittest.Equal(t, "in use", "cert:1", d.inUse)
			swap(2)
			waittest.Equal(t, "in use", "cert:2", d.inUse)
		})
	}
}

// TestMissingDirectoryOfASecretIsLogged watches a directory that does not exist yet.
func TestMissingDirectoryOfASecretIsLogged(t *testing.T) {
	dir := t.TempDir()
	sds, cds, missing := filepath.Join(dir, "sds.json"), filepath.Join(dir, "cds.json"), filepath.Join(dir, "missing")
	chain, key := keyPair(t, 1)
	put(t, filepath.Join(dir, "chain.pem"), chain)
	put(t, filepath.Join(dir, "key.pem"), key)
	s := certificate("cert", file(filepath.Join(dir, "chain.pem")), file(filepath.Join(dir, "key.pem")))
	s.GetTlsCertificate().WatchedDirectory = &corev3.WatchedDirectory{Path: missing}
	put(t, sds, secretFile(t, "1", s))
	put(t, cds, clusterFile(t, secure(t, "a", fromFile(sds), nil)))
	d := newOnDisk(t, config.ConfigSource{Kind: config.SourcePath, Path: cds}, nil, dir)
	waittest.Equal(t, "warned", "true", func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Sprint(strings.Contains(d.log.String(), `msg="cannot watch directory yet" directory=`+missing+" error="))
	})
}

func TestSourcesOfSecrets(t *testing.T) {
	c, err := New(Config{Store: store.New(store.Options{}), Decoder: decode.NewDecoder(decode.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source config.SecretSource
		want   string
	}{
		{config.SecretSource{Source: &config.ConfigSource{Kind: config.SourcePath, Path: "/x"}}, "a secret needs a name"},
		{config.SecretSource{Name: "s", Source: &config.ConfigSource{Kind: config.SourceADS}}, "needs the aggregated stream, but there is no ads_config"},
		{config.SecretSource{Name: "s", Source: &config.ConfigSource{}}, "no source given, one of path, path_config_source, api_config_source and ads is needed"},
		{config.SecretSource{Name: "s", Source: &config.ConfigSource{Kind: config.SourceAPI, API: &config.APISource{Type: config.APIREST}}}, "api_config_source: api_type is not one of GRPC and DELTA_GRPC"},
	} {
		if err := c.Secrets().Check(&tt.source); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.source, err, tt.want)
		}
	}
}

// TestControlPlaneOverItself refuses a server whose connections need secrets that it
// delivers itself.
func TestControlPlaneOverItself(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cert, ca *corev3.ConfigSource
		want     string
	}{
		{"file", fromFile("/none"), nil, ""},
		{"itself", fromADS(), nil, `xds: ads_config: cluster "control" gets the secrets for its own connections over itself`},
		{"file-and-itself", fromFile("/none"), fromADS(), `xds: ads_config: cluster "control" gets the secrets for its own connections over itself`},
		{"another", overCluster("agent"), overCluster("agent"), ""},
		{"by-way-of-another", overCluster("roundabout"), nil, `xds: ads_config: cluster "control" gets the secrets for its own connections over itself`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, false, func(c *Config) { c.CDS = nil })
				for _, c := range []*clusterv3.Cluster{
					secure(t, "control", tt.cert, tt.ca), secure(t, "agent", nil, nil), secure(t, "roundabout", nil, overCluster("back")), secure(t, "back", fromADS(), nil),
				} {
					p, err := r.c.o.Decoder.ClusterMessage(c, 0)
					if err != nil {
						t.Fatal(err)
					}
					if err := r.m.AddStatic(p); err != nil {
						t.Fatal(err)
					}
				}
				got := ""
				if err := r.c.Check(); err != nil {
					got = err.Error()
				}
				equal(t, "error", got, tt.want)
				r.stop()
			})
		})
	}
}

func overCluster(name string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: name}}}},
	}}}
}

// TestSecretsOfAllSockets: the secrets with a source of each socket are found, behind
// sockets without TLS and static secrets.
func TestSecretsOfAllSockets(t *testing.T) {
	source := &config.ConfigSource{Kind: config.SourceADS}
	by := func(name string) config.SecretSource { return config.SecretSource{Name: name, Source: source} }
	v := by("v")
	cl := &config.Cluster{Sockets: config.Sockets{Matches: []config.SocketMatch{
		{}, {Socket: config.Socket{TLS: &config.TLS{TLSCommon: config.TLSCommon{CertificateSecrets: []config.SecretSource{{Name: "static"}, by("a"), by("b")}}}}},
		{Socket: config.Socket{TLS: &config.TLS{TLSCommon: config.TLSCommon{ValidationSecret: &v}}}},
		{Socket: config.Socket{TLS: &config.TLS{TLSCommon: config.TLSCommon{ValidationSecret: &config.SecretSource{Name: "static"}}}}},
	}}}
	for most := range 4 {
		var got []string
		for s := range remoteSecrets(cl) {
			if got = append(got, s.Name); len(got) > most {
				break
			}
		}
		if want := []string{"a", "b", "v"}[:min(3, most+1)]; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestSecretStatesAreInTheOrderOfNames: and whoever has seen enough is shown no more.
func TestSecretStatesAreInTheOrderOfNames(t *testing.T) {
	var c Client
	c.secrets.feeds = map[string]*secretFeed{}
	for key, name := range map[string]string{"1": "c", "2": "a", "3": "b"} {
		c.secrets.feeds[key] = &secretFeed{source: &config.SecretSource{Name: name}}
	}
	want := []string{"a", "b", "c"}
	for most := range want {
		var got []string
		for s := range c.SecretStates {
			if got = append(got, s.Name); len(got) > most {
				break
			}
		}
		if !slices.Equal(got, want[:most+1]) {
			t.Errorf("got %q, want %q", got, want[:most+1])
		}
	}
}

func TestScopeNames(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "spiffe://a.example/x": "spiffe_a.example/x", "file:/a": "file_a", "a:b": "a_b", ".a.": "a",
	} {
		if got := scopeName(name); got != want {
			t.Errorf("scope of %q: %q, want %q", name, got, want)
		}
	}
}

// slowUser blocks in Prepare until it is released.
type slowUser struct{ begun, release chan struct{} }

func (u *slowUser) Prepare(*transport.Secret) (commit func(), err error) {
	close(u.begun)
	<-u.release
	return func() {}, nil
}

func (*slowUser) Answered() {}

// TestEndOfUseWaitsForNobody ends the use of a secret while another context reads it.
func TestEndOfUseWaitsForNobody(t *testing.T) {
	c, err := New(Config{Store: store.New(store.Options{}), Decoder: decode.NewDecoder(decode.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	src := &config.SecretSource{Name: "cert", Source: &config.ConfigSource{Kind: config.SourcePath, Path: "/none"}}
	slow := &slowUser{make(chan struct{}), make(chan struct{})}
	defer c.Secrets().Follow(src, config.CertificateSecret, slow)()
	stop := c.Secrets().Follow(src, config.CertificateSecret, new(wildUser))
	packed, err := anypb.New(certSecret(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		u := &update{full: true, resources: []decode.Resource{decode.WireResource(packed.GetTypeUrl(), packed.GetValue(), 0)}}
		if changed, faults := c.secrets.feeds[feedKey(src, config.CertificateSecret)].apply(u); !changed || len(faults) > 0 {
			t.Errorf("changed %t, faults %v", changed, faults)
		}
	})
	<-slow.begun
	stopped := make(chan struct{})
	running.Go(func() {
		stop()
		close(stopped)
	})
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Error("the end waits for another context")
	}
	close(slow.release)
	running.Wait()
}

// TestSecretsStartNothingAfterTheEnd follows a secret of a client whose Run has returned:
// nothing would wait for its goroutine.
func TestSecretsStartNothingAfterTheEnd(t *testing.T) {
	c, err := New(Config{Store: store.New(store.Options{}), Decoder: decode.NewDecoder(decode.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.secrets.run(ctx)
	src := &config.SecretSource{Name: "cert", Source: &config.ConfigSource{Kind: config.SourcePath, Path: "/none"}}
	stop := c.Secrets().Follow(src, config.CertificateSecret, new(wildUser))
	started := c.secrets.feeds[feedKey(src, config.CertificateSecret)].cancel != nil
	stop()
	c.secrets.running.Wait()
	if started {
		t.Error("the secret is followed")
	}
}

// pickyUser counts the secrets that it is given.
type pickyUser struct {
	refuse error
	given  int
}

func (u *pickyUser) Prepare(*transport.Secret) (commit func(), err error) {
	u.given++
	return func() {}, u.refuse
}

func (*pickyUser) Answered() {}

// TestSecretsAreAppliedOnceUnlessRefused: a secret that is received again is applied again
// only if its files changed, and files that were refused are tried at each occasion.
func TestSecretsAreAppliedOnceUnlessRefused(t *testing.T) {
	d := decode.NewDecoder(decode.Options{})
	cert, key := keyPair(t, 1)
	text := fmt.Appendf(nil, `{"resources": [{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "cert",
		"tls_certificate": {"certificate_chain": {"inline_string": %q}, "private_key": {"inline_string": %q}}}]}`, cert, key)
	packed, err := anypb.New(certSecret(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		receive func() []decode.Resource
	}{
		{"text", func() []decode.Resource {
			_, list, err := d.ResponseText("f.json", text)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}},
		{"wire", func() []decode.Resource {
			return []decode.Resource{decode.WireResource(packed.GetTypeUrl(), packed.GetValue(), 0)}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(Config{Store: store.New(store.Options{}), Decoder: d, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			f, u := c.newSecretFeed(&config.SecretSource{Name: "cert"}, config.CertificateSecret), new(pickyUser)
			f.join(&secretUse{user: u})
			receive := func(change bool, given int, refused uint64) {
				t.Helper()
				changed, faults := f.apply(&update{full: true, resources: tt.receive()})
				if changed != change || len(faults) > 0 || u.given != given || f.rotated.Value() != refused {
					t.Errorf("changed %t, faults %v, given %d times, %d times refused; want %t, none, %d, %d", changed, faults, u.given, f.rotated.Value(), change, given, refused)
				}
			}
			receive(true, 1, 0)
			receive(false, 1, 0)
			f.digest++ // as if its files had changed
			u.refuse = errors.New("no")
			receive(false, 2, 1)
			receive(false, 3, 2)
			u.refuse = nil
			receive(false, 4, 2)
			receive(false, 4, 2)
		})
	}
}

// TestLargeRefusedSecretsAreNotKept: their errors are.
func TestLargeRefusedSecretsAreNotKept(t *testing.T) {
	for _, size := range []int{maxRefusedSecret, maxRefusedSecret + 1} {
		name := string(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, size-4)))
		r := decode.WireResource(secretKind.typeURL(), []byte(name), 0)
		if a := refusedSecret(&r); len(r.Bytes()) != size || (a == nil) != (size > maxRefusedSecret) {
			t.Errorf("%d bytes: %d kept", size, len(a.GetValue()))
		}
	}
}
