package transport

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// material is the data with which a context connects. It is immutable.
type material struct {
	config *tls.Config // without anything of one connection
	shown  certinfo.Context
	*trust // nil: the peer is not checked
}

// content is the data read for a context or a secret. It is immutable.
type content struct {
	identities []*identity
	trust      *trust // nil: none was given
}

// identity is a client certificate. It is immutable.
type identity struct {
	certificate tls.Certificate
	shown       certinfo.Certificate
}

// trust is the data that peers are checked against. It is immutable.
type trust struct {
	validation   *config.Validation
	roots        *x509.CertPool    // nil: the chain of the peer is not checked
	lists        []*revocationList // by any issuer
	sans         []sanCheck
	hashes, keys map[[32]byte]bool // of certificates and of public keys
	shown        []certinfo.Certificate
}

// authorities are trusted certificates. They are immutable.
type authorities struct {
	list []*x509.Certificate // at least one
	pool *x509.CertPool      // of all
}

// lasting returns a copy of a certificate that never expires.
func lasting(c *x509.Certificate) *x509.Certificate {
	out := *c
	out.NotBefore, out.NotAfter = time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	return &out
}

func (t *tlsContext) material(c content) *material {
	m := &material{config: t.base.Clone(), trust: c.trust}
	if n := t.t.MaxSessionKeys; n > 0 {
		// Created with the certificates, because a session must not outlive the
		// material by which its peer was checked.
		m.config.ClientSessionCache = tls.NewLRUClientSessionCache(int(min(n, 1<<20)))
	}
	for _, own := range c.identities {
		m.shown.Chain = append(m.shown.Chain, own.shown)
	}
	if c.trust != nil {
		m.shown.CA = c.trust.shown
	}
	if own := c.identities; len(own) > 0 {
		m.config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, x := range own {
				if r.SupportsCertificate(&x.certificate) == nil {
					return &x.certificate, nil
				}
			}
			return &own[0].certificate, nil // the server says why it is wrong
		}
	}
	return m
}

// readOwnLocked reads the data that the context itself references. t.loading is held.
func (t *tlsContext) readOwnLocked() (c content, err error) {
	v, at := t.t.Validation, t.common()+".validation_context"
	if t.t.ValidationSecret == nil {
		if err := t.checkValidation(v, at); err != nil {
			return c, err
		}
	} else {
		at = t.common() + ".combined_validation_context.default_validation_context"
		if slices.ContainsFunc(t.slots, func(s *slot) bool { return s.kind == config.ValidationSecret && s.secret != nil }) {
			v = nil // it is read with the secret
		}
	}
	for i := range t.t.Certificates {
		own, err := t.f.identity(&t.t.Certificates[i], fmt.Sprintf("%s.tls_certificates[%d]", t.common(), i))
		if err != nil {
			return c, err
		}
		c.identities = append(c.identities, own)
	}
	if v != nil {
		c.trust, err = t.f.trust(v, at, nil)
	}
	return c, err
}

// trust reads the data that peers are checked against. The data of a secret, which
// may be nil, is read once.
func (f *Factory) trust(v *config.Validation, at string, secret *Secret) (_ *trust, err error) {
	t := &trust{validation: v}
	if t.sans, err = sanChecks(v.SANs, at); err != nil {
		return nil, err
	}
	if t.hashes, t.keys, err = pins(v, at); err != nil {
		return nil, err
	}
	switch {
	case v.TrustedCA.Kind != config.NoData:
		read := func() (*authorities, error) { return f.authorities(v.TrustedCA, at+".trusted_ca") }
		var ca *authorities
		if secret != nil && v.TrustedCA == secret.Validation.TrustedCA {
			ca, err = secret.authorities.get(f, read)
		} else {
			ca, err = read()
		}
		if err != nil {
			return nil, err
		}
		if t.roots = ca.pool; v.AllowExpired {
			t.roots = x509.NewCertPool()
			for _, c := range ca.list {
				t.roots.AddCert(lasting(c))
			}
		}
		t.shown = []certinfo.Certificate{certinfo.Describe(shownPath(v.TrustedCA), ca.list[0])}
	case v.SystemRoots:
		if t.roots, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("%s.system_root_certs: %w", at, err)
		}
	}
	if v.CRL.Kind != config.NoData {
		read := func() ([]*revocationList, error) { return f.revocations(v.CRL, at+".crl") }
		if secret != nil && v.CRL == secret.Validation.CRL {
			t.lists, err = secret.revocations.get(f, read)
		} else {
			t.lists, err = read()
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// authorities reads trusted certificates.
func (f *Factory) authorities(d config.Data, at string) (*authorities, error) {
	list, err := f.certificates(d, at)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c)
	}
	return &authorities{list, pool}, nil
}

// revocations reads certificate revocation lists.
func (f *Factory) revocations(d config.Data, at string) ([]*revocationList, error) {
	text, err := f.data(d, at)
	if err != nil {
		return nil, err
	}
	lists, err := revocationLists(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", at, where(d), err)
	}
	return lists, nil
}

// checkCertificate rejects unsupported settings of a certificate.
func checkCertificate(c *config.Certificate, at string) error {
	refuse := func(field, text string) error { return fmt.Errorf("%s.%s: %s", at, field, text) }
	switch {
	case c.PKCS12.Kind != config.NoData:
		return refuse("pkcs12", "not supported; use certificate_chain and private_key in PEM form")
	case c.Password.Kind != config.NoData:
		return refuse("password", "encrypted private keys are not supported")
	case c.PrivateKeyProvider != "":
		return refuse("private_key_provider", fmt.Sprintf("%q is not known; none is", c.PrivateKeyProvider))
	case c.Chain.Kind == config.NoData:
		return refuse("certificate_chain", "must be set")
	case c.PrivateKey.Kind == config.NoData:
		return refuse("private_key", "must be set")
	}
	return nil
}

// identity reads a certificate chain with its key.
func (f *Factory) identity(c *config.Certificate, at string) (*identity, error) {
	if err := checkCertificate(c, at); err != nil {
		return nil, err
	}
	list, err := f.certificates(c.Chain, at+".certificate_chain")
	if err != nil {
		return nil, err
	}
	key, err := f.data(c.PrivateKey, at+".private_key")
	if err != nil {
		return nil, err
	}
	var chain []byte
	for _, x := range list {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Raw})...)
	}
	out := &identity{shown: certinfo.Describe(shownPath(c.Chain), list[0])}
	if out.certificate, err = tls.X509KeyPair(chain, key); err != nil {
		// The cause is omitted because it could quote the key.
		return nil, fmt.Errorf("%s.private_key: %s: does not match the certificate", at, where(c.PrivateKey))
	}
	if c.OCSPStaple.Kind != config.NoData {
		der, err := f.data(c.OCSPStaple, at+".ocsp_staple")
		if err != nil {
			return nil, err
		}
		if out.shown.OCSP, err = certinfo.ParseStaple(der, list[0]); err != nil {
			return nil, fmt.Errorf("%s.ocsp_staple: %s: %w", at, where(c.OCSPStaple), err)
		}
		out.certificate.OCSPStaple = der
	}
	return out, nil
}

// shownPath returns the path of a certificate for display.
func shownPath(d config.Data) string {
	if d.Kind != config.DataFile {
		return certinfo.Inline
	}
	return d.Name
}

// where describes the origin of data without its content.
func where(d config.Data) string {
	if d.Kind == config.DataFile {
		return fmt.Sprintf("%q", d.Name)
	}
	return d.String()
}

// maxBytes bounds each data source.
const maxBytes = 16 << 20

// ReadFile reads a file of certificates, keys and the like. It must be a regular file
// of at most 16 MiB, so that a name from a control plane can neither block the
// process nor fill its memory.
func ReadFile(name string) ([]byte, error) { return boundedfile.Read(name, maxBytes) }

// data reads a data source.
func (f *Factory) data(d config.Data, at string) ([]byte, error) {
	var b []byte
	switch d.Kind {
	case config.DataFile:
		var err error
		if b, err = f.c.ReadFile(d.Name); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", at, where(d), boundedfile.Cause(err))
		}
	case config.DataInline:
		b = []byte(d.Inline)
	case config.DataEnvironment:
		text, ok := f.c.Environment(d.Name)
		if !ok {
			return nil, fmt.Errorf("%s: environment variable %q: not set", at, d.Name)
		}
		b = []byte(text)
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("%s: %s: %d bytes are more than %d", at, where(d), len(b), maxBytes)
	}
	return b, nil
}

// certificates returns the certificates of a data source, at least one.
func (f *Factory) certificates(d config.Data, at string) ([]*x509.Certificate, error) {
	text, err := f.data(d, at)
	if err != nil {
		return nil, err
	}
	list, err := certinfo.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", at, where(d), err)
	}
	return list, nil
}
