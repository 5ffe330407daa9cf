package decode_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestFieldsOfTLSThatHaveNoPlace(t *testing.T) {
	const text = `
name: c
connect_timeout: 1s
transport_socket:
  name: tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    sni: a
    enforce_rsa_key_usage: false
    common_tls_context:
      alpn_protocols: [h2]
      key_log: {path: /tmp/keys}
      tls_params: {cipher_suites: [AES128-SHA], compliance_policies: [FIPS_202205]}
      tls_certificates:
      - certificate_chain: {filename: a}
        private_key: {filename: b}
      - certificate_chain: {filename: c}
        signed_certificate_timestamp: [{filename: d}]
      validation_context:
        trusted_ca: {filename: e}
        only_verify_leaf_cert_crl: true
        require_signed_certificate_timestamp: %s
`
	for given, want := range map[string][]string{
		"true": {
			"common_tls_context.key_log", "common_tls_context.tls_certificates[1].signed_certificate_timestamp",
			"common_tls_context.tls_params.compliance_policies", "common_tls_context.validation_context.require_signed_certificate_timestamp",
		},
		"false": {
			"common_tls_context.key_log", "common_tls_context.tls_certificates[1].signed_certificate_timestamp",
			"common_tls_context.tls_params.compliance_policies",
		},
	} {
		p, err := decode.NewDecoder(decode.Options{}).ClusterText("test.yaml", []byte(fmt.Sprintf(text, given)), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		socket := p.Cluster.Sockets.Default.TLS
		if diff := cmp.Diff(socket.Unread, want); diff != "" {
			t.Errorf("unread (-got +want):\n%s", diff)
		}
		if !socket.Validation.CRLOfLeafOnly {
			t.Error("the list speaks of more than the leaf")
		}
	}
}
