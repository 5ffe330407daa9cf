package config

import "slices"

// SecretKind is the type of a secret.
type SecretKind uint8

// The kinds of secrets.
const (
	OtherSecret       SecretKind = iota // session ticket keys and generic secrets, which no cluster uses
	CertificateSecret                   // a certificate with its key
	ValidationSecret                    // settings for the verification of the peer's certificate
)

// String returns the name of the field that holds such a secret.
func (k SecretKind) String() string {
	switch k {
	case CertificateSecret:
		return "tls_certificate"
	case ValidationSecret:
		return "validation_context"
	}
	return "session_ticket_keys or generic_secret"
}

// Secret is a secret that TLS contexts refer to by name.
type Secret struct {
	Name        string
	Kind        SecretKind
	Certificate *Certificate // of a CertificateSecret
	Validation  *Validation  // of a ValidationSecret
	// Unread lists the paths of the configured fields that have no counterpart here.
	Unread []string
}

// Merge combines v and over as a combined validation context does: single values of
// over replace values of v, lists are concatenated, and a switch is on if it is on in
// either. Both can be nil and are not changed.
//
// Untyped names are ignored if there are typed ones. The depth of over applies unless
// it is the default.
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
	case v.UntypedSANs == over.UntypedSANs:
		out.SANs = slices.Concat(v.SANs, over.SANs)
	default:
		out.SANs, out.UntypedSANs = over.SANs, over.UntypedSANs
	}
	return &out
}
