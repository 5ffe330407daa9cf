package transport

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
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

// stapleValidity returns the validity of an OCSP response (RFC 6960) in DER form.
func stapleValidity(der []byte) (certinfo.Validity, error) {
	bad := func() (certinfo.Validity, error) { return certinfo.Validity{}, errors.New("not an OCSP response") }
	var response struct {
		Status asn1.Enumerated
		Bytes  struct {
			Type  asn1.ObjectIdentifier
			Basic []byte
		} `asn1:"explicit,tag:0,optional"`
	}
	if rest, err := asn1.Unmarshal(der, &response); err != nil || len(rest) > 0 {
		return bad()
	}
	if response.Status != 0 {
		return certinfo.Validity{}, fmt.Errorf("the OCSP response is an error, status %d", response.Status)
	}
	var basic struct {
		Data struct {
			Version   int           `asn1:"explicit,tag:0,default:0,optional"`
			Responder asn1.RawValue // a choice
			Produced  time.Time     `asn1:"generalized"`
			Responses []struct {
				ID     asn1.RawValue
				Status asn1.RawValue // a choice
				This   time.Time     `asn1:"generalized"`
				Next   time.Time     `asn1:"generalized,explicit,tag:0,optional"`
				Ext    asn1.RawValue `asn1:"explicit,tag:1,optional"`
			}
			Ext asn1.RawValue `asn1:"explicit,tag:1,optional"`
		}
		Algorithm asn1.RawValue
		Signature asn1.BitString
		Certs     asn1.RawValue `asn1:"explicit,tag:0,optional"`
	}
	if _, err := asn1.Unmarshal(response.Bytes.Basic, &basic); err != nil || len(basic.Data.Responses) == 0 {
		return bad()
	}
	if n := len(basic.Data.Responses); n > 1 {
		return certinfo.Validity{}, fmt.Errorf("the OCSP response is about %d certificates, not one", n)
	}
	r := basic.Data.Responses[0]
	return certinfo.Validity{From: r.This.UTC(), Until: r.Next.UTC()}, nil
}
