// Package ocsptest makes OCSP responses (RFC 6960) for tests.
package ocsptest

import (
	"encoding/asn1"
	"math/big"
	"testing"
	"time"
)

// About is what an OCSP response says about a certificate.
type About struct {
	Serial      *big.Int
	Status      int // 0 is good
	From, Until time.Time
}

// Basic returns the kind of basic responses, of which alone certificates are read.
func Basic() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1} }

// Response returns an OCSP response of a kind about several certificates, with a tail
// behind its inner part.
func Response(t testing.TB, kind asn1.ObjectIdentifier, tail []byte, list ...About) []byte {
	t.Helper()
	marshal := func(v any) []byte {
		der, err := asn1.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	null := asn1.RawValue{Tag: asn1.TagNull}
	type id struct {
		Hash      asn1.RawValue
		Name, Key []byte
		Serial    *big.Int
	}
	type single struct {
		ID         id
		Status     asn1.RawValue
		ThisUpdate time.Time `asn1:"generalized"`
		NextUpdate time.Time `asn1:"generalized,explicit,tag:0,optional"`
	}
	basic := struct {
		Data struct {
			Responder asn1.RawValue
			Produced  time.Time `asn1:"generalized"`
			Responses []asn1.RawValue
		}
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}{Algorithm: null, Signature: asn1.BitString{Bytes: []byte{1}, BitLength: 8}}
	basic.Data.Responder = asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, IsCompound: true, Bytes: marshal([]byte("key"))}
	basic.Data.Produced = time.Unix(0, 0).UTC()
	for _, a := range list {
		basic.Data.Responses = append(basic.Data.Responses, asn1.RawValue{FullBytes: marshal(single{
			id{null, []byte("n"), []byte("k"), a.Serial}, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: a.Status}, a.From, a.Until,
		})})
	}
	type answer struct {
		Type     asn1.ObjectIdentifier
		Response []byte
	}
	return marshal(struct {
		Status asn1.Enumerated
		Bytes  answer `asn1:"explicit,tag:0"`
	}{0, answer{kind, append(marshal(basic), tail...)}})
}
