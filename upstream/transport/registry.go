package transport

import (
	"crypto/x509"
	"time"
)

// Registry learns which certificates are in use. It must be safe for concurrent
// use.
type Registry interface {
	// Add notes the material of one TLS context.
	Add(Material) Entry
}

// Entry is a TLS context in a [Registry].
type Entry interface {
	// Update replaces the material after a reload.
	Update(Material)
	// Remove forgets the context.
	Remove()
}

// Material is the certificates of one TLS context that are shown: the first one
// of the trusted authorities, and the first one of each own chain.
type Material struct {
	CA, Chain []Certificate
}

// Certificate is what is shown of a certificate.
type Certificate struct {
	Path         string // file name; "<inline>" if it was not read from a file
	SerialNumber string // lower-case hexadecimal without leading zeros
	AltNames     []AltName
	From, Until  time.Time // UTC
	OCSP         *Validity // nil: no OCSP response was given
}

// AltName is an alternative name of a subject.
type AltName struct {
	Kind  string // "dns", "uri" or "ip_address"
	Value string
}

// Validity is the time in which an OCSP response holds. Until is zero if it
// does not say.
type Validity struct{ From, Until time.Time }

// describe returns what is shown of a certificate.
func describe(path string, cert *x509.Certificate) Certificate {
	c := Certificate{
		Path: path, SerialNumber: cert.SerialNumber.Text(16),
		From: cert.NotBefore.UTC(), Until: cert.NotAfter.UTC(),
	}
	for _, name := range cert.DNSNames {
		c.AltNames = append(c.AltNames, AltName{"dns", name})
	}
	for _, u := range cert.URIs {
		c.AltNames = append(c.AltNames, AltName{"uri", u.String()})
	}
	for _, ip := range cert.IPAddresses {
		c.AltNames = append(c.AltNames, AltName{"ip_address", ip.String()})
	}
	return c
}

type noRegistry struct{}

func (noRegistry) Add(Material) Entry { return noRegistry{} }
func (noRegistry) Update(Material)    {}
func (noRegistry) Remove()            {}
