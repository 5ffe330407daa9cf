package certinfo

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The parts of an OCSP response (RFC 6960) that name the certificate and the
// period of validity.
type (
	ocspResponse struct {
		Status asn1.Enumerated
		Bytes  struct {
			Type     asn1.ObjectIdentifier
			Response []byte
		} `asn1:"explicit,tag:0,optional"`
	}
	ocspBasic struct {
		Data      ocspData
		Algorithm asn1.RawValue
		Signature asn1.BitString
		Certs     asn1.RawValue `asn1:"explicit,tag:0,optional"`
	}
	ocspData struct {
		Version    int `asn1:"optional,default:0,explicit,tag:0"`
		Responder  asn1.RawValue
		Produced   time.Time `asn1:"generalized"`
		Responses  []ocspSingle
		Extensions asn1.RawValue `asn1:"explicit,tag:1,optional"`
	}
	ocspSingle struct {
		ID struct {
			Hash      asn1.RawValue
			Name, Key []byte
			Serial    *big.Int
		}
		Status     asn1.RawValue
		ThisUpdate time.Time     `asn1:"generalized"`
		NextUpdate time.Time     `asn1:"generalized,explicit,tag:0,optional"`
		Extensions asn1.RawValue `asn1:"explicit,tag:1,optional"`
	}
)

// ParseStaple returns the validity of an OCSP response in DER form for leaf. It does not
// check the signature; clients do.
func ParseStaple(der []byte, leaf *x509.Certificate) (*Validity, error) {
	var outer ocspResponse
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(rest) > 0 {
		return nil, errors.New("not an OCSP response in DER form")
	}
	basic := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}
	if outer.Status != 0 || !outer.Bytes.Type.Equal(basic) {
		return nil, fmt.Errorf("the OCSP response is not a successful basic one (status %d)", outer.Status)
	}
	var inner ocspBasic
	if rest, err := asn1.Unmarshal(outer.Bytes.Response, &inner); err != nil || len(rest) > 0 {
		return nil, errors.New("the OCSP response is malformed")
	}
	for _, r := range inner.Data.Responses {
		if r.ID.Serial == nil || r.ID.Serial.Cmp(leaf.SerialNumber) != 0 {
			continue
		}
		if r.Status.Tag != 0 {
			return nil, errors.New("the OCSP response does not report the certificate as good")
		}
		return &Validity{From: r.ThisUpdate.UTC(), Until: r.NextUpdate.UTC()}, nil
	}
	return nil, errors.New("the OCSP response is for another certificate")
}
