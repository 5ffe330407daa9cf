package transport

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// revocationList holds the certificates that an authority has revoked.
type revocationList struct {
	list   *x509.RevocationList
	serial map[string]bool
}

// revocationLists parses PEM lists, at least one.
func revocationLists(text []byte) ([]*revocationList, error) {
	var out []*revocationList
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "X509 CRL" {
			continue
		}
		l, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, errors.New("not a revocation list")
		}
		r := &revocationList{list: l, serial: make(map[string]bool)}
		for _, e := range l.RevokedCertificateEntries {
			r.serial[string(e.SerialNumber.Bytes())] = true
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, errors.New("no revocation list found")
	}
	return out, nil
}

// revoked returns an error if a certificate of a chain, or only its first one, has
// been revoked. With lists, every involved authority must have a current one; without
// any, nothing is revoked.
func revoked(chain []*x509.Certificate, lists []*revocationList, now time.Time, leafOnly bool) error {
	if len(lists) == 0 {
		return nil
	}
	checked := chain
	if leafOnly {
		checked = chain[:1]
	}
	for i, c := range checked {
		issuer := chain[min(i+1, len(chain)-1)]
		if i == len(chain)-1 && i > 0 && !bytes.Equal(c.RawSubject, c.RawIssuer) {
			return nil // trusted without being a root: no issuer of it is known
		}
		var found *revocationList
		for _, r := range lists {
			if bytes.Equal(r.list.RawIssuer, c.RawIssuer) && r.list.CheckSignatureFrom(issuer) == nil {
				found = r
			}
		}
		switch {
		case found == nil:
			return fmt.Errorf("no revocation list of %q", c.Issuer)
		case !found.list.NextUpdate.IsZero() && now.After(found.list.NextUpdate):
			return fmt.Errorf("the revocation list of %q has expired", c.Issuer)
		case found.serial[string(c.SerialNumber.Bytes())]:
			return fmt.Errorf("%q is revoked", c.Subject)
		}
	}
	return nil
}
