package certs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// maxPEMBytes is the limit for one file or inline text.
const maxPEMBytes = 16 << 20

// Parse describes the certificates in a PEM text, in order, and skips other blocks.
// An empty path stands for [certinfo.Inline]. Errors never quote the text.
func Parse(path string, text []byte) ([]certinfo.Certificate, error) {
	if path == "" {
		path = certinfo.Inline
	}
	if len(text) > maxPEMBytes {
		return nil, fmt.Errorf("certs: %q: %d bytes are more than %d", path, len(text), maxPEMBytes)
	}
	var list []certinfo.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certs: %q: certificate %d: %w", path, len(list)+1, err)
		}
		list = append(list, certinfo.Describe(path, cert))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("certs: %q: no certificate in PEM form", path)
	}
	return list, nil
}
