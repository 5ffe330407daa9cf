package bootstrap

import (
	"os"
	"strings"
	"testing"
)

// TestIrregularFilesAreRefused reads a device in place of each file that a configuration
// or a reload reads, as a pipe could block it.
func TestIrregularFilesAreRefused(t *testing.T) {
	_, _, err := (&StatsDMapping{File: os.DevNull}).Load()
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("mapping: %v", err)
	}
	_, err = Parse("a.yaml", []byte(`static_resources: {clusters: [{name: c, connect_timeout: 1s, transport_socket: {name: tls, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
  common_tls_context: {validation_context: {trusted_ca: {filename: `+os.DevNull+`}}}}}}]}`), Options{})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("certificate: %v", err)
	}
}
