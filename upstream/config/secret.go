package config

import "slices"

// SecretKind is what a secret holds.
type SecretKind uint8

// The kinds of secrets.
const (
	OtherSecret       SecretKind = iota // what no cluster uses: keys of session tickets and generic ones
	CertificateSecret                   // a certificate with its key
	ValidationSecret                    // how the certificate of the peer is checked
)

// String returns the field that holds such a secret.
func (k SecretKind) String() string {
	switch k {
	case CertificateSecret:
		return "tls_certificate"
	case ValidationSecret:
		return "validation_context"
	}
	return "session_ticket_keys or generic_secret"
}

// Secret is what TLS contexts name instead of holding it themselves.
type Secret struct {
	Name        string
	Kind        SecretKind
	Certificate *Certificate // of a CertificateSecret
	Validation  *Validation  // of a ValidationSecret
	// Unread are the paths of the fields that were given and have no place here.
	Unread []string
}

// Merge returns the checks of v with those of over on top, as a combined
// validation context has them: single values of over replace those of v, lists are
// joined, and what is switched on in one of both is on. Neither is changed; each
// may be nil.
//
// Names without a type count only if neither has names with one. The depth of over
// counts unless it is the default.
func (v *Validation) Merge(over *Validation) *Validation {
	switch {
	case over == nil:
		return v
	case v == nil:
		return over
	}
	out := *v
	if over.TrustedCA.Kind != NoData {
		out.TrustedCA = over.TrustedCA
	}
	if over.CRL.Kind != NoData {
		out.CRL = over.CRL
	}
	if over.WatchedDirectory != "" {
		out.WatchedDirectory = over.WatchedDirectory
	}
	if over.MaxVerifyDepth != DefaultVerifyDepth {
		out.MaxVerifyDepth = over.MaxVerifyDepth
	}
	out.CRLOfLeafOnly = v.CRLOfLeafOnly || over.CRLOfLeafOnly
	out.SystemRoots = v.SystemRoots || over.SystemRoots
	out.AllowExpired = v.AllowExpired || over.AllowExpired
	out.AcceptUntrusted = v.AcceptUntrusted || over.AcceptUntrusted
	out.SPKI = slices.Concat(v.SPKI, over.SPKI)
	out.Hashes = slices.Concat(v.Hashes, over.Hashes)
	switch {
	case len(over.SANs) == 0 || len(v.SANs) > 0 && over.UntypedSANs && !v.UntypedSANs:
	case len(v.SANs) > 0 && v.UntypedSANs == over.UntypedSANs:
		out.SANs = slices.Concat(v.SANs, over.SANs)
	default:
		out.SANs, out.UntypedSANs = over.SANs, over.UntypedSANs
	}
	return &out
}
