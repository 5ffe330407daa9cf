package certinfo

import (
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/ocsptest"
)

// TestResponsesAboutSeveralCertificates: the first one about the certificate counts,
// wherever it is, and has all of its bytes read.
func TestResponsesAboutSeveralCertificates(t *testing.T) {
	basic := ocsptest.Basic()
	from, until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(7)}
	good, revoked := ocsptest.About{Serial: big.NewInt(7), From: from, Until: until}, ocsptest.About{Serial: big.NewInt(7), Status: 1, From: from, Until: until}
	other, otherRevoked := ocsptest.About{Serial: big.NewInt(8), From: until, Until: until}, ocsptest.About{Serial: big.NewInt(6), Status: 1, From: until, Until: until}
	for _, tt := range []struct {
		name string
		der  []byte
		want string // in the error
	}{
		{"alone", ocsptest.Response(t, basic, nil, good), ""},
		{"first", ocsptest.Response(t, basic, nil, good, other, otherRevoked), ""},
		{"middle", ocsptest.Response(t, basic, nil, otherRevoked, good, other), ""},
		{"last", ocsptest.Response(t, basic, nil, other, otherRevoked, good), ""},
		{"good before revoked", ocsptest.Response(t, basic, nil, good, revoked), ""},
		{"revoked before good", ocsptest.Response(t, basic, nil, other, revoked, good), "does not report the certificate as good"},
		{"revoked behind others", ocsptest.Response(t, basic, nil, other, otherRevoked, revoked), "does not report the certificate as good"},
		{"others", ocsptest.Response(t, basic, nil, other, otherRevoked), "is for another certificate"},
		{"nothing", ocsptest.Response(t, basic, nil), "is for another certificate"},
		{"another kind", ocsptest.Response(t, asn1.ObjectIdentifier{1, 2, 3}, nil, good), "not a successful basic one"},
		{"tail", append(ocsptest.Response(t, basic, nil, good), 5), "not an OCSP response in DER form"},
		{"inner tail", ocsptest.Response(t, basic, []byte{5}, good), "is malformed"},
	} {
		v, err := ParseStaple(tt.der, leaf)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		} else if err != nil || *v != (Validity{From: from, Until: until}) {
			t.Errorf("%s: %v, %v", tt.name, v, err)
		}
	}
	v, err := ParseStaple(ocsptest.Response(t, basic, nil, ocsptest.About{Serial: big.NewInt(7), From: from}), leaf)
	if err != nil || *v != (Validity{From: from}) {
		t.Errorf("without an end: %v, %v", v, err)
	}
}

// FuzzStaple checks that no response panics the parser, and that accepted ones have a
// validity period.
func FuzzStaple(f *testing.F) {
	from := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	f.Add(ocsptest.Response(f, ocsptest.Basic(), nil, ocsptest.About{Serial: big.NewInt(7), From: from, Until: from.Add(time.Hour)}))
	f.Add([]byte{0x30, 3, 0x0a, 1, 3})
	leaf := &x509.Certificate{SerialNumber: big.NewInt(7)}
	f.Fuzz(func(t *testing.T, der []byte) {
		v, err := ParseStaple(der, leaf)
		if err == nil && (v == nil || v.From.IsZero()) {
			t.Errorf("%x is accepted and holds %+v", der, v)
		}
	})
}
