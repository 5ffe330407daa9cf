package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// tlsContext is the client side of TLS as one socket configures it.
type tlsContext struct {
	f           *Factory
	cluster     string
	path        string // of its fields in error texts
	t           *config.TLS
	stats       *tlsStats
	directories []string // watched
	base        *tls.Config
	sans        []sanCheck
	hashes      map[[32]byte]bool // of certificates
	keys        map[[32]byte]bool // of public keys

	loading sync.Mutex // held by those who replace current
	current atomic.Pointer[material]
	entry   Entry // set once; guarded by loading
	closed  bool  // guarded by loading
}

// newTLSContext checks a context and loads its files.
func (f *Factory) newTLSContext(cluster string, c *config.TLS, path string, stats *tlsStats) (*tlsContext, error) {
	if c == nil {
		return nil, fmt.Errorf("%s: must be set", path)
	}
	t := &tlsContext{f: f, cluster: cluster, path: path, t: c, stats: stats}
	if err := t.check(); err != nil {
		return nil, err
	}
	var err error
	if t.base, err = baseConfig(c, path); err != nil {
		return nil, err
	}
	t.base.Time = f.c.Now
	if v := c.Validation; v != nil {
		if t.sans, err = sanChecks(v.SANs, t.validationPath()); err != nil {
			return nil, err
		}
		if t.hashes, t.keys, err = pins(v, t.validationPath()); err != nil {
			return nil, err
		}
	}
	t.watch()
	if err := t.load(); err != nil {
		return nil, err
	}
	f.add(t)
	return t, nil
}

func (t *tlsContext) close() {
	t.f.remove(t)
	t.loading.Lock()
	defer t.loading.Unlock()
	if !t.closed {
		t.closed = true
		t.entry.Remove()
	}
}

// common is the path of the fields that both sides of TLS have.
func (t *tlsContext) common() string { return t.path + ".common_tls_context" }

func (t *tlsContext) validationPath() string {
	if t.t.ValidationSecret != nil {
		return t.common() + ".combined_validation_context.default_validation_context"
	}
	return t.common() + ".validation_context"
}

// check refuses what cannot be in force here.
func (t *tlsContext) check() error {
	c := t.t
	refuse := func(field, text string) error { return fmt.Errorf("%s.%s: %s", t.path, field, text) }
	const secrets = "secrets that are delivered later are not supported; name files or give the data inline"
	switch {
	case len(c.Unread) > 0:
		return refuse(c.Unread[0], "not supported")
	case len(c.CertificateSecrets) > 0:
		return refuse("common_tls_context.tls_certificate_sds_secret_configs", secrets)
	case c.ValidationSecret != nil && c.Validation != nil:
		return refuse("common_tls_context.combined_validation_context.validation_context_sds_secret_config", secrets)
	case c.ValidationSecret != nil:
		return refuse("common_tls_context.validation_context_sds_secret_config", secrets)
	case len(c.SignatureAlgorithms) > 0:
		return refuse("common_tls_context.tls_params.signature_algorithms", "the list cannot be changed here, leave it out")
	}
	for i := range c.Certificates {
		cert, at := &c.Certificates[i], fmt.Sprintf("common_tls_context.tls_certificates[%d]", i)
		switch {
		case cert.PKCS12.Kind != config.NoData:
			return refuse(at+".pkcs12", "not supported; use certificate_chain and private_key in PEM form")
		case cert.Password.Kind != config.NoData:
			return refuse(at+".password", "encrypted private keys are not supported")
		case cert.PrivateKeyProvider != "":
			return refuse(at+".private_key_provider", fmt.Sprintf("%q is not known; none is", cert.PrivateKeyProvider))
		case cert.Chain.Kind == config.NoData:
			return refuse(at+".certificate_chain", "must be set")
		case cert.PrivateKey.Kind == config.NoData:
			return refuse(at+".private_key", "must be set")
		}
	}
	return t.checkValidation()
}

// checkValidation refuses checks that would be without effect because nobody
// says which authorities are trusted.
func (t *tlsContext) checkValidation() error {
	v := t.t.Validation
	if v != nil && (v.TrustedCA.Kind != config.NoData || v.SystemRoots) {
		return nil
	}
	without := func(field string) error {
		return fmt.Errorf("%s.%s: needs trusted_ca", t.validationPath(), field)
	}
	switch {
	case t.t.AutoSNISANValidation:
		return fmt.Errorf("%s.auto_sni_san_validation: needs a validation context with trusted_ca", t.path)
	case v == nil:
		return nil
	case len(v.SANs) > 0:
		return without("match_typed_subject_alt_names")
	case v.CRL.Kind != config.NoData:
		return without("crl")
	case v.AllowExpired:
		return without("allow_expired_certificate")
	}
	return nil
}

// watch notes the directories whose changes reload the files.
func (t *tlsContext) watch() {
	add := func(dir string) {
		if dir != "" {
			t.directories = append(t.directories, filepath.Clean(dir))
		}
	}
	for i := range t.t.Certificates {
		add(t.t.Certificates[i].WatchedDirectory)
	}
	if v := t.t.Validation; v != nil {
		add(v.WatchedDirectory)
	}
}

// watches tells whether a change of that file concerns the context.
func (t *tlsContext) watches(file string) bool {
	for _, dir := range t.directories {
		if filepath.Dir(filepath.Clean(file)) == dir {
			return true
		}
	}
	return false
}

// load reads the files. On an error what was loaded before stays.
func (t *tlsContext) load() error {
	t.loading.Lock()
	defer t.loading.Unlock()
	if t.closed {
		return nil
	}
	m, err := t.read()
	if err != nil {
		return err
	}
	t.current.Store(m)
	if t.entry == nil {
		t.entry = t.f.c.Registry.Add(m.shown)
	} else {
		t.entry.Update(m.shown)
	}
	return nil
}

// handshake makes a TLS connection to h of conn, which stays open on an error.
func (t *tlsContext) handshake(ctx context.Context, conn net.Conn, h *host.Host, o *Options) (net.Conn, error) {
	m := t.current.Load()
	cfg := m.config.Clone()
	cfg.ServerName = t.t.SNI
	if name := h.Hostname(); t.t.AutoHostSNI && name != "" {
		cfg.ServerName = name
	}
	if o.ServerName != "" {
		cfg.ServerName = o.ServerName
	}
	switch {
	case len(o.ALPN) > 0:
		cfg.NextProtos = o.ALPN
	case len(cfg.NextProtos) == 0:
		cfg.NextProtos = o.DefaultALPN
	}
	p := peer{t: t, m: m, sni: cfg.ServerName, sans: o.SubjectAltNames}
	cfg.VerifyConnection = p.verify
	c := tls.Client(conn, cfg)
	err := c.HandshakeContext(ctx)
	if err == nil {
		t.stats.handshake(c.ConnectionState())
		return c, nil
	}
	var refused *peerError
	if !errors.As(err, &refused) {
		t.stats.connectionError.Inc()
	}
	return nil, err
}
