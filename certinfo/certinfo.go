// Package certinfo describes the TLS certificates that a program has loaded, and
// keeps a registry of the TLS contexts that use them.
//
//	var reg certinfo.Registry
//	h := reg.Add(certinfo.Context{Chain: []certinfo.Certificate{certinfo.Describe("edge.pem", leaf)}})
//	defer h.Remove()
//	days, ok := reg.DaysUntilFirstExpiring()
//
// A [Registry] is safe for concurrent use; everything else is plain values.
package certinfo

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Inline is the path of a certificate that was not read from a file.
const Inline = "<inline>"

// Context holds the certificates of one TLS context. A context without
// certificates is legal.
type Context struct {
	CA    []Certificate // trusted authorities
	Chain []Certificate // own certificate first
}

// Certificate describes one certificate.
type Certificate struct {
	Path         string // file name, or Inline
	SerialNumber string // lower-case hexadecimal without leading zeros
	AltNames     []AltName
	From, Until  time.Time
	OCSP         *Validity // of the stapled OCSP response; nil without one
}

// AltName is a subject alternative name. Kind is "dns", "uri" or "ip_address".
type AltName struct{ Kind, Value string }

// Validity is the period in which an OCSP response is valid. Until is zero if
// the response does not name its end.
type Validity struct{ From, Until time.Time }

// ParsePEM returns the certificates in a PEM text, in order and at least one, and skips
// other blocks.
func ParsePEM(text []byte) (list []*x509.Certificate, err error) {
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
			return nil, fmt.Errorf("certificate %d: %w", len(list)+1, err)
		}
		list = append(list, cert)
	}
	if len(list) == 0 {
		return nil, errors.New("no certificate in PEM form")
	}
	return list, nil
}

// Describe returns the description of a parsed certificate.
func Describe(path string, cert *x509.Certificate) Certificate {
	c := Certificate{
		Path: path, SerialNumber: cert.SerialNumber.Text(16),
		From: cert.NotBefore.UTC(), Until: cert.NotAfter.UTC(),
	}
	for _, name := range cert.DNSNames {
		c.AltNames = append(c.AltNames, AltName{"dns", name})
	}
	for _, uri := range cert.URIs {
		c.AltNames = append(c.AltNames, AltName{"uri", uri.String()})
	}
	for _, ip := range cert.IPAddresses {
		c.AltNames = append(c.AltNames, AltName{"ip_address", ip.String()})
	}
	return c
}

// DaysLeft returns the whole days from now until c expires, or 0 if it has
// expired.
func (c *Certificate) DaysLeft(now time.Time) uint64 {
	return secondsLeft(c.Until, now) / (24 * 3600)
}

// secondsLeft returns the whole seconds from now to t, 0 if t has passed. Unlike
// time.Time.Sub it covers more than 292 years.
func secondsLeft(t, now time.Time) uint64 {
	if !t.After(now) {
		return 0
	}
	seconds := t.Unix() - now.Unix()
	if t.Nanosecond() < now.Nanosecond() {
		seconds--
	}
	return uint64(seconds)
}
