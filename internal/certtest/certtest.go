// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// Pair is a certificate, its parsed form as Leaf, and its key.
type Pair struct {
	tls.Certificate
	Chain, Key []byte // in PEM form
}

// Issue makes a certificate that by signs, or its own key if by is nil. Unless the
// template says otherwise, the serial number is 1 and the certificate is valid
// from an hour ago to an hour from now.
func Issue(t testing.TB, template *x509.Certificate, by *Pair) *Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(1)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	template.BasicConstraintsValid = true
	p := &Pair{Certificate: tls.Certificate{PrivateKey: key, Leaf: template}}
	if by == nil {
		by = p
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Leaf, key.Public(), by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if p.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p.Certificate.Certificate = [][]byte{der}
	p.Chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return p
}

// Write writes the certificate and the key to files.
func (p *Pair) Write(t testing.TB, chain, key string) {
	t.Helper()
	for path, data := range map[string][]byte{chain: p.Chain, key: p.Key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
