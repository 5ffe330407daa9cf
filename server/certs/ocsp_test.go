package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// staple returns a response for a serial number. Status 0 is good, 1 revoked.
func staple(t testing.TB, serial int64, status int, from, until time.Time) []byte {
	t.Helper()
	return stapleOf(t, asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}, nil, about{serial, status, from, until})
}

// about is what an OCSP response says about a certificate.
type about struct {
	serial      int64
	status      int // 0 is good
	from, until time.Time
}

// stapleOf returns an OCSP response of a kind about several certificates, with a tail
// behind its inner part.
func stapleOf(t testing.TB, kind asn1.ObjectIdentifier, tail []byte, list ...about) []byte {
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
			id{null, []byte("n"), []byte("k"), big.NewInt(a.serial)}, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: a.status}, a.from, a.until,
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

// TestStaple checks the response that a client receives, and its expiry.
func TestStaple(t *testing.T) {
	dir := t.TempDir()
	from, until := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 3, 1, 1, 0, 0, 0, time.UTC)
	own := issue(t, template(0x1d03, until.AddDate(1, 0, 0)), nil)
	files := Files{
		Chain: write(t, filepath.Join(dir, "c.pem"), own.pem), Key: write(t, filepath.Join(dir, "k.pem"), own.priv),
		OCSPStaple: write(t, filepath.Join(dir, "c.ocsp"), staple(t, 0x1d03, 0, from, until)), MinVersion: tls.VersionTLS13,
	}
	reg := &certinfo.Registry{Now: func() time.Time { return until.Add(-90 * time.Second) }}
	s, err := Load(reg, files)
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.List()[0].Chain[0].OCSP; got == nil || *got != (certinfo.Validity{From: from, Until: until}) {
		t.Errorf("the response holds %+v", got)
	}
	if seconds, any := reg.SecondsUntilFirstOCSPExpiring(); seconds != 90 || !any {
		t.Errorf("%d seconds, %t", seconds, any)
	}
	state := handshake(t, s.Config(), &tls.Config{InsecureSkipVerify: true})
	if state.Version != tls.VersionTLS13 || len(state.OCSPResponse) == 0 {
		t.Errorf("version %x, %d bytes of OCSP response", state.Version, len(state.OCSPResponse))
	}
	if s.Config().MinVersion != tls.VersionTLS13 {
		t.Errorf("lowest version %x", s.Config().MinVersion)
	}
	for want, der := range map[string][]byte{
		"not an OCSP response in DER form":        []byte("canary"),
		"is for another certificate":              staple(t, 0x1d04, 0, from, until),
		"does not report the certificate as good": staple(t, 0x1d03, 1, from, until),
		"not a successful basic one":              {0x30, 3, 0x0a, 1, 3},
	} {
		write(t, files.OCSPStaple, der)
		if err := s.Reload(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	files.OCSPStaple = filepath.Join(dir, "none")
	if _, err := Load(reg, files); err == nil {
		t.Error("a response that is not there is loaded")
	}
}

// TestResponsesAboutSeveralCertificates: the first one about the certificate counts,
// wherever it is, and has all of its bytes read.
func TestResponsesAboutSeveralCertificates(t *testing.T) {
	basic := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}
	from, until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(7)}
	good, revoked := about{7, 0, from, until}, about{7, 1, from, until}
	other, otherRevoked := about{8, 0, until, until}, about{6, 1, until, until}
	for _, tt := range []struct {
		name string
		der  []byte
		want string // in the error
	}{
		{"alone", stapleOf(t, basic, nil, good), ""},
		{"first", stapleOf(t, basic, nil, good, other, otherRevoked), ""},
		{"middle", stapleOf(t, basic, nil, otherRevoked, good, other), ""},
		{"last", stapleOf(t, basic, nil, other, otherRevoked, good), ""},
		{"good before revoked", stapleOf(t, basic, nil, good, revoked), ""},
		{"revoked before good", stapleOf(t, basic, nil, other, revoked, good), "does not report the certificate as good"},
		{"revoked behind others", stapleOf(t, basic, nil, other, otherRevoked, revoked), "does not report the certificate as good"},
		{"others", stapleOf(t, basic, nil, other, otherRevoked), "is for another certificate"},
		{"nothing", stapleOf(t, basic, nil), "is for another certificate"},
		{"another kind", stapleOf(t, asn1.ObjectIdentifier{1, 2, 3}, nil, good), "not a successful basic one"},
		{"tail", append(stapleOf(t, basic, nil, good), 5), "not an OCSP response in DER form"},
		{"inner tail", stapleOf(t, basic, []byte{5}, good), "is malformed"},
	} {
		v, err := parseOCSP("x", tt.der, leaf)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		} else if err != nil || *v != (certinfo.Validity{From: from, Until: until}) {
			t.Errorf("%s: %v, %v", tt.name, v, err)
		}
	}
	v, err := parseOCSP("x", stapleOf(t, basic, nil, about{serial: 7, from: from}), leaf)
	if err != nil || *v != (certinfo.Validity{From: from}) {
		t.Errorf("without an end: %v, %v", v, err)
	}
}

// handshake returns the connection state of a client.
func handshake(t *testing.T, server, client *tls.Config) tls.ConnectionState {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake() // the client reports the error
			c.Close()
		}
	}()
	c, err := tls.Dial("tcp", ln.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState()
}

// FuzzOCSP checks that no response panics the parser, and that accepted ones have a
// validity period.
func FuzzOCSP(f *testing.F) {
	from := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	f.Add(staple(f, 7, 0, from, from.Add(time.Hour)))
	f.Add([]byte{0x30, 3, 0x0a, 1, 3})
	leaf := &x509.Certificate{SerialNumber: big.NewInt(7)}
	f.Fuzz(func(t *testing.T, der []byte) {
		v, err := parseOCSP("x", der, leaf)
		if err == nil && (v == nil || v.From.IsZero()) {
			t.Errorf("%x is accepted and holds %+v", der, v)
		}
	})
}
