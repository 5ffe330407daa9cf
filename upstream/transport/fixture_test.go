package transport_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the time in all tests.
func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// key returns a key that is determined by seed.
func key(seed byte) ed25519.PrivateKey {
	var s [ed25519.SeedSize]byte
	s[0] = seed
	return ed25519.NewKeyFromSeed(s[:])
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authorityFor returns a self-signed authority, or one signed by parent.
func authorityFor(t testing.TB, name string, seed byte, parent *authority) *authority {
	t.Helper()
	a := &authority{key: key(seed)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(seed)), Subject: pkix.Name{CommonName: name},
		NotBefore: start().Add(-24 * time.Hour), NotAfter: start().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		SubjectKeyId: []byte{seed},
	}
	by := &authority{cert: template, key: a.key}
	if parent != nil {
		by = parent
	}
	der, err := x509.CreateCertificate(nil, template, by.cert, a.key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// pem returns the certificate of the authority.
func (a *authority) pem() string { return certPEM(a.cert.Raw) }

func certPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// issued is a certificate with its key.
type issued struct {
	cert       *x509.Certificate
	key        crypto.Signer
	chain, pem string // with what signed it; of the key
}

// issue signs a certificate; change may alter it before.
func (a *authority) issue(t testing.TB, seed byte, change func(*x509.Certificate)) *issued {
	t.Helper()
	return a.issueFor(t, key(seed), int64(seed), change)
}

func (a *authority) issueFor(t testing.TB, k crypto.Signer, serial int64, change func(*x509.Certificate)) *issued {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"one.example.com"},
		NotBefore: start().Add(-time.Hour), NotAfter: start().Add(100 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(nil, template, a.cert, k.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{
		cert: cert, key: k, chain: certPEM(der),
		pem: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}
}

// tls returns the certificate for a server.
func (i *issued) tls(above ...*authority) tls.Certificate {
	c := tls.Certificate{Certificate: [][]byte{i.cert.Raw}, PrivateKey: i.key}
	for _, a := range above {
		c.Certificate = append(c.Certificate, a.cert.Raw)
	}
	return c
}

// seen is the server's view of a connection.
type seen struct {
	remote net.Addr
	state  tls.ConnectionState
	err    error
}

// server answers each connection with "hello" after the handshake. Without cfg
// it speaks plain text.
type server struct {
	address config.Address
	seen    chan seen
}

func serve(t *testing.T, cfg *tls.Config) *server {
	t.Helper()
	return serveOn(t, listen(t, "tcp", "127.0.0.1:0"), cfg)
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func serveOn(t *testing.T, ln net.Listener, cfg *tls.Config) *server {
	t.Helper()
	s := &server{seen: make(chan seen, 100)}
	switch a := ln.Addr().(type) {
	case *net.TCPAddr:
		s.address = config.Address{IP: a.AddrPort()}
	case *net.UnixAddr:
		s.address = config.Address{Pipe: a.Name}
	}
	if cfg != nil {
		cfg = cfg.Clone()
		cfg.Time = start
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.answer(conn, cfg)
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	return s
}

func (s *server) answer(conn net.Conn, cfg *tls.Config) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	x := seen{remote: conn.RemoteAddr()}
	if cfg != nil {
		c := tls.Server(conn, cfg)
		x.err = c.Handshake()
		x.state = c.ConnectionState()
		conn = c
	}
	if x.err == nil {
		_, x.err = io.WriteString(conn, "hello")
	}
	s.seen <- x
}

// last returns the server's view of its next connection.
func (s *server) last(t *testing.T) seen {
	t.Helper()
	select {
	case x := <-s.seen:
		return x
	case <-time.After(30 * time.Second):
		t.Fatal("the server saw no connection")
	}
	return seen{}
}

// hostAt returns a host.
func hostAt(a config.Address, metadata map[string]any) *host.Host {
	s := host.Spec{Address: a, Hostname: "one.example.com"}
	if metadata != nil {
		s.Metadata = config.Metadata{"proxy.transport_socket_match": metadata}
	}
	return host.New(s)
}

// cluster returns a cluster whose default socket is TLS, or plain text if c is
// nil.
func cluster(c *config.TLS) *config.Cluster {
	out := &config.Cluster{Name: "c", StatName: "c", ConnectTimeout: 30 * time.Second}
	if c != nil {
		out.Sockets.Default = config.Socket{Kind: config.TLSSocket, TLS: c}
	}
	return out
}

// trust returns a client that trusts a.
func trust(a *authority, change func(*config.TLS)) *config.TLS {
	c := &config.TLS{
		MaxSessionKeys: 1, EnforceRSAKeyUsage: true,
		TLSCommon: config.TLSCommon{Validation: &config.Validation{TrustedCA: inline(a.pem()), MaxVerifyDepth: 100}},
	}
	if change != nil {
		change(c)
	}
	return c
}

func inline(text string) config.Data { return config.Data{Kind: config.DataInline, Inline: text} }

func file(name string) config.Data { return config.Data{Kind: config.DataFile, Name: name} }

// fixture is a dialer with its statistics.
type fixture struct {
	*transport.Dialer
	scope *store.Scope
}

// dialer creates a dialer with the time of the tests.
func dialer(t *testing.T, c *config.Cluster) *fixture {
	t.Helper()
	return dialerOf(t, transport.New(transport.Config{Now: start}), c)
}

func dialerOf(t *testing.T, f *transport.Factory, c *config.Cluster) *fixture {
	t.Helper()
	scope := store.New(store.Options{}).Scope("cluster.c")
	d, err := f.Dialer(c, scope)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return &fixture{d, scope}
}

// count returns a counter.
func (f *fixture) count(name string) uint64 { return f.scope.Counter(name).Total() }

// say dials and returns the greeting of the server.
func (f *fixture) say(t *testing.T, h *host.Host, o transport.Options) (string, error) {
	t.Helper()
	conn, err := f.Dial(context.Background(), h, o)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	b, err := io.ReadAll(conn)
	return string(b), err
}

// mustSay fails the test unless the server greets with hello.
func (f *fixture) mustSay(t *testing.T, h *host.Host, o transport.Options) {
	t.Helper()
	if got, err := f.say(t, h, o); err != nil || got != "hello" {
		t.Fatalf("dial: %q, %v; want hello", got, err)
	}
}

// stageOf returns the stage of an error of Dial.
func stageOf(err error) transport.Stage {
	var e *transport.Error
	if errors.As(err, &e) {
		return e.Stage
	}
	return ""
}

func v4(a, b, c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{a, b, c, d}) }
