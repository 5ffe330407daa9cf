package decode

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// tlsFields lists, by message, the fields that a [config.TLS] or [config.Secret]
// holds. It includes fields without meaning for clients.
func tlsFields() map[protoreflect.FullName][]protoreflect.Name {
	name := func(m proto.Message) protoreflect.FullName { return m.ProtoReflect().Descriptor().FullName() }
	return map[protoreflect.FullName][]protoreflect.Name{
		name((*tlsv3.UpstreamTlsContext)(nil)): {
			"common_tls_context", "sni", "auto_host_sni", "auto_sni_san_validation", "allow_renegotiation",
			"max_session_keys", "enforce_rsa_key_usage",
		},
		name((*tlsv3.CommonTlsContext)(nil)): {
			"tls_params", "tls_certificates", "tls_certificate_sds_secret_configs", "validation_context",
			"validation_context_sds_secret_config", "combined_validation_context", "alpn_protocols",
		},
		name((*tlsv3.TlsParameters)(nil)): {
			"tls_minimum_protocol_version", "tls_maximum_protocol_version", "cipher_suites", "ecdh_curves", "signature_algorithms",
		},
		name((*tlsv3.TlsCertificate)(nil)): {
			"certificate_chain", "private_key", "pkcs12", "watched_directory", "private_key_provider", "password", "ocsp_staple",
		},
		name((*tlsv3.CertificateValidationContext)(nil)): {
			"trusted_ca", "system_root_certs", "watched_directory", "verify_certificate_spki", "verify_certificate_hash",
			"match_typed_subject_alt_names", "match_subject_alt_names", "crl", "allow_expired_certificate",
			"trust_chain_verification", "only_verify_leaf_cert_crl", "max_verify_depth", "suppress_client_ca_list",
		},
		name((*tlsv3.CommonTlsContext_CombinedCertificateValidationContext)(nil)): {
			"default_validation_context", "validation_context_sds_secret_config",
		},
		name((*tlsv3.Secret)(nil)): {"name", "tls_certificate", "session_ticket_keys", "validation_context", "generic_secret"},
	}
}

// unread returns the sorted paths of the set fields of a TLS context or a secret that
// are not in tlsFields.
func unread(t proto.Message) []string {
	held := tlsFields()
	var out []string
	var walk func(prefix string, m protoreflect.Message)
	walk = func(prefix string, m protoreflect.Message) {
		list, ours := held[m.Descriptor().FullName()]
		if !ours {
			return
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			path := prefix + string(f.Name())
			switch {
			case !slices.Contains(list, f.Name()):
				if !isFalse(f, v) {
					out = append(out, path)
				}
			case f.IsList() && f.Message() != nil:
				for i := range v.List().Len() {
					walk(fmt.Sprintf("%s[%d].", path, i), v.List().Get(i).Message())
				}
			case f.Message() != nil:
				walk(path+".", v.Message())
			}
			return true
		})
	}
	walk("", t.ProtoReflect())
	slices.Sort(out)
	return out
}

// isFalse reports whether v is a boolean set to false.
func isFalse(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	if f.IsList() || f.Message() == nil {
		return false
	}
	b, ok := v.Message().Interface().(*wrapperspb.BoolValue)
	return ok && !b.GetValue()
}

// unreadFields returns the set fields of a cluster that a [config.Cluster] does not
// hold, in the order of their numbers.
func unreadFields(m *clusterv3.Cluster) []string {
	p := protocolOf(m)
	var check *corev3.HealthCheck
	if checks := m.GetHealthChecks(); len(checks) > 0 {
		check = checks[0]
	}
	var out []string
	for _, part := range []struct {
		path   string
		m      proto.Message
		fields []protoreflect.Name
	}{
		{"health_checks.", check, []protoreflect.Name{"event_service"}},
		{"http_protocol_options.", p.http1, []protoreflect.Name{"use_balsa_parser", "ignore_http_11_upgrade"}},
		{"upstream_bind_config.", m.GetUpstreamBindConfig(), []protoreflect.Name{"local_address_selector", "validate_network_namespaces"}},
		{"common_http_protocol_options.", p.common, []protoreflect.Name{"max_connection_duration_jitter"}},
		{"", m, []protoreflect.Name{"lrs_server", "upstream_config"}},
		{"preconnect_policy.", m.GetPreconnectPolicy(), []protoreflect.Name{"preconnect_enabled_metadata"}},
		{"", m, []protoreflect.Name{"lrs_report_endpoint_metrics", "stats_matcher", "queuing_policies"}},
	} {
		r := part.m.ProtoReflect()
		for _, name := range part.fields {
			if r.Has(r.Descriptor().Fields().ByName(name)) {
				out = append(out, part.path+string(name))
			}
		}
	}
	return out
}
