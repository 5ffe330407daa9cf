package decode_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// pair returns a certificate and its key.
func pair(t *testing.T) (cert, key []byte) {
	p := certtest.Issue(t, &x509.Certificate{}, nil)
	return p.Chain, p.Key
}

func TestCertificatesAreReadAtLoad(t *testing.T) {
	cert, key := pair(t)
	_, other := pair(t)
	files := map[string][]byte{
		"/cert.pem": cert, "/key.pem": key, "/other.pem": other, "/empty.pem": nil,
		"/broken.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
	}
	o := options()
	o.ReadFile = func(name string) ([]byte, error) {
		if b, ok := files[name]; ok {
			return b, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	d := decode.NewDecoder(o)
	certificate := func(chain, key string) string {
		return fmt.Sprintf("tls_context: {common_tls_context: {tls_certificates: [{certificate_chain: {filename: %s}, private_key: {filename: %s}}]}}\n", chain, key)
	}
	const at = "tls_context.common_tls_context."
	tests := []struct {
		name, text string
		want       []string
	}{
		{"good", certificate("/cert.pem", "/key.pem"), nil},
		{"missing", certificate("/none.pem", "/key.pem"), one(at + `tls_certificates[0].certificate_chain: "/none.pem": file does not exist`)},
		{"missing-key", certificate("/cert.pem", "/none.pem"), one(at + `tls_certificates[0].private_key: "/none.pem": file does not exist`)},
		{"empty", certificate("/empty.pem", "/key.pem"), one(at + `tls_certificates[0].certificate_chain: "/empty.pem": no certificate in PEM form`)},
		{"broken", certificate("/broken.pem", "/key.pem"), one(at + `tls_certificates[0].certificate_chain: "/broken.pem": certificate 1: x509: malformed certificate`)},
		{"other-key", certificate("/cert.pem", "/other.pem"), one(at + `tls_certificates[0].private_key: "/other.pem": does not match the certificate`)},
		{"authority", "tls_context: {common_tls_context: {validation_context: {trusted_ca: {filename: /cert.pem}}}}\n", nil},
		{"inline-authority", "tls_context: {common_tls_context: {validation_context: {trusted_ca: {inline_string: x}}}}\n", one(at + "validation_context.trusted_ca: <inline>: no certificate in PEM form")},
		{"bytes-authority", "tls_context: {common_tls_context: {validation_context: {trusted_ca: {inline_bytes: eA==}}}}\n", one(at + "validation_context.trusted_ca: <inline>: no certificate in PEM form")},
		{"combined", "tls_context: {common_tls_context: {combined_validation_context: {default_validation_context: {trusted_ca: {filename: /key.pem}}, validation_context_sds_secret_config: {name: s}}}}\n",
			one(at + `combined_validation_context.default_validation_context.trusted_ca: "/key.pem": no certificate in PEM form`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.ClusterText("", []byte("name: c\n"+tt.text), v2)
			if diff := cmp.Diff(tt.want, faults(t, err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the key is in the error: %v", err)
			}
		})
	}
	if _, err := newDecoder().ClusterText("", []byte("name: c\n"+certificate("/none.pem", "/none.pem")), v2); err != nil {
		t.Errorf("without a reader: %v", err)
	}
}
