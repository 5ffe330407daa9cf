package certs

import (
	"cmp"
	"fmt"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// maxPEMBytes is the limit for one file or inline text.
const maxPEMBytes = 16 << 20

// Parse describes the certificates in a PEM text, in order, and skips other blocks.
// An empty path stands for [certinfo.Inline]. Errors never quote the text.
func Parse(path string, text []byte) ([]certinfo.Certificate, error) {
	path = cmp.Or(path, certinfo.Inline)
	if len(text) > maxPEMBytes {
		return nil, fmt.Errorf("certs: %q: %d bytes are more than %d", path, len(text), maxPEMBytes)
	}
	parsed, err := certinfo.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("certs: %q: %w", path, err)
	}
	list := make([]certinfo.Certificate, len(parsed))
	for i, cert := range parsed {
		list[i] = certinfo.Describe(path, cert)
	}
	return list, nil
}
