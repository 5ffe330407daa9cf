package certs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// Inline is the path shown for material that was not read from a file.
const Inline = "<inline>"

// Certificate is what is shown of one certificate.
type Certificate struct {
	Path            string // file name, or Inline
	SerialNumber    string // lower-case hexadecimal without leading zeros
	SubjectAltNames []AltName
	ValidFrom       time.Time
	Expiration      time.Time
	OCSP            *Validity // nil unless an OCSP response is at hand
}

// AltNameKind says what an [AltName] is.
type AltNameKind string

// The kinds of alternative names, as they are shown.
const (
	DNS       AltNameKind = "dns"
	URI       AltNameKind = "uri"
	IPAddress AltNameKind = "ip_address"
)

// AltName is one alternative name of a subject.
type AltName struct {
	Kind  AltNameKind
	Value string
}

// Validity is the time in which something holds.
type Validity struct {
	ValidFrom  time.Time
	Expiration time.Time
}

const day = 24 * time.Hour

// DaysUntilExpiration returns whole days; 0 when the certificate has expired
// or has less than a day left.
func (c *Certificate) DaysUntilExpiration(now time.Time) uint64 {
	return uint64(max(0, c.Expiration.Sub(now)) / day)
}

// maxPEMBytes bounds one file or inline text.
const maxPEMBytes = 16 << 20

// Parse describes the certificates of a PEM text in their order; other blocks
// in it are skipped. path is shown, and is Inline when it is empty. The error
// never holds any of the text.
func Parse(path string, text []byte) ([]Certificate, error) {
	if path == "" {
		path = Inline
	}
	if len(text) > maxPEMBytes {
		return nil, fmt.Errorf("certs: %q: %d bytes are more than %d", path, len(text), maxPEMBytes)
	}
	var list []Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certs: %q: certificate %d: %w", path, len(list)+1, err)
		}
		list = append(list, describe(path, cert))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("certs: %q: no certificate in PEM form", path)
	}
	return list, nil
}

func describe(path string, cert *x509.Certificate) Certificate {
	c := Certificate{
		Path: path, SerialNumber: cert.SerialNumber.Text(16),
		ValidFrom: cert.NotBefore.UTC(), Expiration: cert.NotAfter.UTC(),
	}
	for _, name := range cert.DNSNames {
		c.SubjectAltNames = append(c.SubjectAltNames, AltName{DNS, name})
	}
	for _, uri := range cert.URIs {
		c.SubjectAltNames = append(c.SubjectAltNames, AltName{URI, uri.String()})
	}
	for _, ip := range cert.IPAddresses {
		c.SubjectAltNames = append(c.SubjectAltNames, AltName{IPAddress, ip.String()})
	}
	return c
}
