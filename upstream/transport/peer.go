package transport

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// peerError means that the peer failed verification. It has been counted.
type peerError struct{ err error }

func (e *peerError) Error() string { return "certificate of the host: " + e.err.Error() }
func (e *peerError) Unwrap() error { return e.err }

// peer checks the server side of one connection.
type peer struct {
	t    *tlsContext
	m    *material
	sni  string
	sans []string // instead of the configured ones; empty: none
}

// verify runs at the end of every handshake, including resumed ones.
func (p *peer) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		p.t.stats.verifyNoCert.Inc()
		return &peerError{errors.New("none was sent")}
	}
	leaf := s.PeerCertificates[0]
	if err := p.usage(leaf, &s); err != nil {
		return err
	}
	if p.m.trust == nil {
		return nil
	}
	v := p.m.validation
	if p.m.roots != nil {
		if err := p.chain(v, s.PeerCertificates); err != nil && !v.AcceptUntrusted {
			p.t.stats.verifyError.Inc()
			return &peerError{err}
		}
	}
	if err := p.name(leaf); err != nil && !v.AcceptUntrusted {
		p.t.stats.verifySAN.Inc()
		return &peerError{err}
	}
	if err := p.pinned(leaf); err != nil && !v.AcceptUntrusted {
		p.t.stats.verifyHash.Inc()
		return &peerError{err}
	}
	return nil
}

// usage checks that the key usage of an RSA certificate, if present, permits this
// use.
func (p *peer) usage(leaf *x509.Certificate, s *tls.ConnectionState) error {
	if _, ok := leaf.PublicKey.(*rsa.PublicKey); !ok || leaf.KeyUsage == 0 {
		return nil
	}
	need, name := x509.KeyUsageDigitalSignature, "digital signature"
	if s.Version < tls.VersionTLS13 && !strings.HasPrefix(cipherName(s.CipherSuite), "ECDHE") {
		need, name = x509.KeyUsageKeyEncipherment, "key encipherment"
	}
	switch {
	case leaf.KeyUsage&need != 0:
		return nil
	case !p.t.t.EnforceRSAKeyUsage:
		p.t.stats.keyUsageInvalid.Inc()
		return nil
	}
	p.t.stats.verifyError.Inc()
	return &peerError{fmt.Errorf("its key is not for %s", name)}
}

// chain verifies the certificates against the trusted authorities.
func (p *peer) chain(v *config.Validation, sent []*x509.Certificate) error {
	leaf := sent[0]
	between := x509.NewCertPool()
	for _, c := range sent[1:] {
		if v.AllowExpired {
			c = lasting(c)
		}
		between.AddCert(c)
	}
	if v.AllowExpired {
		leaf = lasting(leaf)
	}
	now := p.t.f.c.Now()
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: p.m.roots, Intermediates: between, CurrentTime: now})
	if err != nil {
		return err
	}
	err = fmt.Errorf("the chain is longer than %d", v.MaxVerifyDepth)
	for _, chain := range chains {
		if uint64(len(chain)-1) > uint64(v.MaxVerifyDepth) {
			continue
		}
		if err = revoked(chain, p.m.lists, now, v.CRLOfLeafOnly); err == nil {
			return nil
		}
	}
	return err
}

// name checks the alternative names.
func (p *peer) name(leaf *x509.Certificate) error {
	switch {
	case len(p.sans) > 0:
		if slices.ContainsFunc(p.sans, func(name string) bool { return hasName(leaf, name) }) {
			return nil
		}
		return fmt.Errorf("none of its names is one of %q", p.sans)
	case p.t.t.AutoSNISANValidation:
		if p.sni == "" {
			return errors.New("there is no server name to check its names against")
		}
		if slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return matchDNS(name, p.sni) }) {
			return nil
		}
		return fmt.Errorf("it is not for %q", p.sni)
	case len(p.m.sans) == 0:
		return nil
	}
	for i := range p.m.sans {
		if p.m.sans[i].match(leaf) {
			return nil
		}
	}
	return errors.New("none of its names is allowed")
}

// pinned checks the certificate and its key against the known ones.
func (p *peer) pinned(leaf *x509.Certificate) error {
	if len(p.m.hashes)+len(p.m.keys) == 0 ||
		p.m.hashes[sha256.Sum256(leaf.Raw)] || p.m.keys[sha256.Sum256(leaf.RawSubjectPublicKeyInfo)] {
		return nil
	}
	return errors.New("it is none of the known ones")
}

// pins parses the hashes of known certificates and keys.
func pins(v *config.Validation, at string) (hashes, keys map[[32]byte]bool, err error) {
	put := func(to *map[[32]byte]bool, b []byte) {
		if *to == nil {
			*to = make(map[[32]byte]bool)
		}
		(*to)[[32]byte(b)] = true
	}
	for i, text := range v.Hashes {
		b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		if err != nil || len(b) != sha256.Size {
			return nil, nil, fmt.Errorf("%s.verify_certificate_hash[%d]: %q is not a SHA-256 hash in hexadecimal", at, i, text)
		}
		put(&hashes, b)
	}
	for i, text := range v.SPKI {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(b) != sha256.Size {
			return nil, nil, fmt.Errorf("%s.verify_certificate_spki[%d]: %q is not a SHA-256 hash in base64", at, i, text)
		}
		put(&keys, b)
	}
	return hashes, keys, nil
}
