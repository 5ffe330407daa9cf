package transport

import (
	"crypto/tls"
	"strings"

	"github.com/statsd-admin/statsd-admin/store"
)

// tlsStats are the statistics "ssl.…" and "client_ssl_socket_factory.…" of a
// cluster.
type tlsStats struct {
	scope                                            *store.Scope
	connectionError, handshakes, resumed             *store.Counter
	verifyNoCert, verifyError, verifySAN, verifyHash *store.Counter
	keyUsageInvalid                                  *store.Counter
	bySecret, notReady                               *store.Counter // updates; connections without a secret
}

func newTLSStats(scope *store.Scope) *tlsStats {
	c := func(name string) *store.Counter { return scope.Counter("ssl." + name) }
	// These never occur on the client side, but dashboards expect them.
	for _, name := range []string{
		"no_certificate", "ocsp_staple_failed", "ocsp_staple_omitted", "ocsp_staple_responses", "ocsp_staple_requests",
	} {
		c(name)
	}
	factory := func(name string) *store.Counter { return scope.Counter("client_ssl_socket_factory." + name) }
	factory("downstream_context_secrets_not_ready")
	return &tlsStats{
		scope: scope, connectionError: c("connection_error"), handshakes: c("handshake"), resumed: c("session_reused"),
		verifyNoCert: c("fail_verify_no_cert"), verifyError: c("fail_verify_error"), verifySAN: c("fail_verify_san"),
		verifyHash: c("fail_verify_cert_hash"), keyUsageInvalid: c("was_key_usage_invalid"),
		bySecret: factory("ssl_context_update_by_sds"), notReady: factory("upstream_context_secrets_not_ready"),
	}
}

// handshake counts an established connection.
func (s *tlsStats) handshake(c tls.ConnectionState) {
	s.handshakes.Inc()
	if c.DidResume {
		s.resumed.Inc()
	}
	s.scope.Counter("ssl.ciphers." + cipherName(c.CipherSuite)).Inc()
	if c.CurveID != 0 {
		s.scope.Counter("ssl.curves." + curveName(c.CurveID)).Inc()
	}
	s.scope.Counter("ssl.versions." + strings.Replace(tls.VersionName(c.Version), "TLS ", "TLSv", 1)).Inc()
}
