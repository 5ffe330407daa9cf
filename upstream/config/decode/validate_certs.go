package decode

import (
	"crypto/tls"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
)

// certificates checks that the data sources of a TLS context hold certificates and
// that keys match them. It skips environment variables and secrets that are delivered
// later.
func (k *clusterCheck) certificates(path string, t *tlsv3.CommonTlsContext) {
	for i, c := range t.GetTlsCertificates() {
		k.tlsCertificate(fmt.Sprintf("%s.tls_certificates[%d]", path, i), c)
	}
	k.certificate(path+".validation_context.trusted_ca", t.GetValidationContext().GetTrustedCa())
	combined := t.GetCombinedValidationContext().GetDefaultValidationContext()
	k.certificate(path+".combined_validation_context.default_validation_context.trusted_ca", combined.GetTrustedCa())
	for i, s := range t.GetTlsCertificateSdsSecretConfigs() {
		k.secretName(fmt.Sprintf("%s.tls_certificate_sds_secret_configs[%d]", path, i), s)
	}
	k.secretName(path+".validation_context_sds_secret_config", t.GetValidationContextSdsSecretConfig())
	k.secretName(path+".combined_validation_context.validation_context_sds_secret_config", t.GetCombinedValidationContext().GetValidationContextSdsSecretConfig())
}

// secretName checks a name that becomes part of names of statistics.
func (k *clusterCheck) secretName(path string, s *tlsv3.SdsSecretConfig) {
	if n := len(s.GetName()); n > maxName {
		k.errorf(BadValue, path+".name", "%d bytes exceeds %d", n, maxName)
	}
}

// tlsCertificate reads a certificate chain and checks that its key fits.
func (k *clusterCheck) tlsCertificate(path string, c *tlsv3.TlsCertificate) {
	chain, ok := k.certificate(path+".certificate_chain", c.GetCertificateChain())
	if !ok || c.GetPassword() != nil || c.GetPrivateKeyProvider() != nil {
		return
	}
	key, ok := k.content(path+".private_key", c.GetPrivateKey())
	if !ok {
		return
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		// The error text could quote the key.
		k.conflict(path+".private_key", "%s: does not match the certificate", sourceName(c.GetPrivateKey()))
	}
}

// certificate reads a data source that must hold at least one certificate.
func (k *clusterCheck) certificate(path string, d *corev3.DataSource) ([]byte, bool) {
	b, ok := k.content(path, d)
	if !ok {
		return nil, false
	}
	if _, err := certinfo.ParsePEM(b); err != nil {
		k.errorf(BadValue, path, "%s: %v", sourceName(d), err)
		return nil, false
	}
	return b, true
}

// content returns the data of a data source, false if it is empty, cannot be read or
// is not to be checked.
func (k *clusterCheck) content(path string, d *corev3.DataSource) ([]byte, bool) {
	if k.d.opts.ReadFile == nil {
		return nil, false
	}
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes, true
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString), true
	case *corev3.DataSource_Filename:
		if s.Filename == "" {
			return nil, false // reported by the field rules
		}
		b, err := k.d.opts.ReadFile(s.Filename)
		if err != nil {
			k.errorf(BadValue, path, "%s: %v", sourceName(d), boundedfile.Cause(err))
			return nil, false
		}
		return b, true
	}
	return nil, false
}

// sourceName names a data source without its content.
func sourceName(d *corev3.DataSource) string {
	if name := d.GetFilename(); name != "" {
		return quote(name, false)
	}
	return "<inline>"
}
