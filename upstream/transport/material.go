package transport

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// material is what a context has read. It is immutable.
type material struct {
	config *tls.Config       // without anything of one connection
	roots  *x509.CertPool    // nil: the chain of the peer is not checked
	lists  []*revocationList // by any issuer
	shown  Material

	validation   *config.Validation // nil: the peer is not checked
	sans         []sanCheck
	hashes, keys map[[32]byte]bool // of certificates and of public keys
}

// eternity is the window in which certificates are valid whose dates do not
// matter.
func eternity() (from, until time.Time) {
	return time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
}

// lasting returns a copy of a certificate that is always valid.
func lasting(c *x509.Certificate) *x509.Certificate {
	out := *c
	out.NotBefore, out.NotAfter = eternity()
	return &out
}

// read reads everything that the parts of a context refer to.
func (t *tlsContext) read(p *parts) (*material, error) {
	if err := t.checkValidation(p); err != nil {
		return nil, err
	}
	m := &material{config: t.base.Clone(), validation: p.validation}
	if n := t.t.MaxSessionKeys; n > 0 {
		// New with the certificates: a session must not outlive the material by
		// which its peer was checked.
		m.config.ClientSessionCache = tls.NewLRUClientSessionCache(int(min(n, 1<<20)))
	}
	var own []tls.Certificate
	for _, part := range p.certificates {
		c, shown, err := t.f.certificate(part)
		if err != nil {
			return nil, err
		}
		own = append(own, c)
		m.shown.Chain = append(m.shown.Chain, shown)
	}
	if len(own) > 0 {
		m.config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for i := range own {
				if r.SupportsCertificate(&own[i]) == nil {
					return &own[i], nil
				}
			}
			return &own[0], nil // the server says why it is wrong
		}
	}
	if p.validation != nil {
		if err := t.f.readValidation(p.validation, p.path, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// readValidation reads what the peer is checked against.
func (f *Factory) readValidation(v *config.Validation, at string, m *material) (err error) {
	if m.sans, err = sanChecks(v.SANs, at); err != nil {
		return err
	}
	if m.hashes, m.keys, err = pins(v, at); err != nil {
		return err
	}
	switch {
	case v.TrustedCA.Kind != config.NoData:
		list, err := f.certificates(v.TrustedCA, at+".trusted_ca")
		if err != nil {
			return err
		}
		m.roots = x509.NewCertPool()
		for _, c := range list {
			if v.AllowExpired {
				c = lasting(c)
			}
			m.roots.AddCert(c)
		}
		m.shown.CA = []Certificate{describe(v.TrustedCA.String(), list[0])}
		if v.TrustedCA.Kind != config.DataFile {
			m.shown.CA[0].Path = inline
		}
	case v.SystemRoots:
		roots, err := x509.SystemCertPool()
		if err != nil {
			return fmt.Errorf("%s.system_root_certs: %w", at, err)
		}
		m.roots = roots
	}
	if v.CRL.Kind != config.NoData {
		text, err := f.content(v.CRL, at+".crl")
		if err != nil {
			return err
		}
		if m.lists, err = revocationLists(text); err != nil {
			return fmt.Errorf("%s.crl: %s: %w", at, where(v.CRL), err)
		}
	}
	return nil
}

// certificate reads a certificate chain with its key.
func (f *Factory) certificate(c certificatePart) (tls.Certificate, Certificate, error) {
	at := c.path
	none := func(err error) (tls.Certificate, Certificate, error) { return tls.Certificate{}, Certificate{}, err }
	if err := c.check(); err != nil {
		return none(err)
	}
	list, err := f.certificates(c.Chain, at+".certificate_chain")
	if err != nil {
		return none(err)
	}
	key, err := f.content(c.PrivateKey, at+".private_key")
	if err != nil {
		return none(err)
	}
	var chain []byte
	for _, x := range list {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Raw})...)
	}
	out, err := tls.X509KeyPair(chain, key)
	if err != nil {
		// The cause is left out: it may quote the key.
		return none(fmt.Errorf("%s.private_key: %s: does not fit the certificate", at, where(c.PrivateKey)))
	}
	shown := describe(c.Chain.String(), list[0])
	if c.Chain.Kind != config.DataFile {
		shown.Path = inline
	}
	if c.OCSPStaple.Kind != config.NoData {
		der, err := f.content(c.OCSPStaple, at+".ocsp_staple")
		if err != nil {
			return none(err)
		}
		v, err := stapleValidity(der)
		if err != nil {
			return none(fmt.Errorf("%s.ocsp_staple: %s: %w", at, where(c.OCSPStaple), err))
		}
		shown.OCSP, out.OCSPStaple = &v, der
	}
	return out, shown, nil
}

// inline is the path of what was not read from a file.
const inline = "<inline>"

// where names a piece of data without its content.
func where(d config.Data) string {
	if d.Kind == config.DataFile {
		return fmt.Sprintf("%q", d.Name)
	}
	return d.String()
}

// maxBytes bounds each piece of data.
const maxBytes = 16 << 20

// ReadFile reads a file of certificates, keys and the like: a regular one of at most 16
// MiB, so that nothing that a control plane names holds the process up or fills its
// memory.
func ReadFile(name string) ([]byte, error) { return boundedfile.Read(name, maxBytes) }

// content returns a piece of data.
func (f *Factory) content(d config.Data, at string) ([]byte, error) {
	var b []byte
	switch d.Kind {
	case config.DataFile:
		var err error
		if b, err = f.c.ReadFile(d.Name); err != nil {
			var p *fs.PathError
			if errors.As(err, &p) {
				err = p.Err // the name is said already
			}
			return nil, fmt.Errorf("%s: %s: %w", at, where(d), err)
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

// certificates returns the certificates of a piece of data, at least one.
func (f *Factory) certificates(d config.Data, at string) ([]*x509.Certificate, error) {
	text, err := f.content(d, at)
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: not a certificate", at, where(d))
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %s: no certificate found", at, where(d))
	}
	return list, nil
}
