package decode_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDeprecated(t *testing.T) {
	const hosts = `{name: a, type: STATIC, hosts: [{socket_address: {address: 1.2.3.4, port_value: 5}}]`
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`{name: a, load_assignment: {cluster_name: a}}`, nil},
		{`{name: a, load_assignment: {cluster_name: a}, common_lb_config: {override_host_status: {statuses: [HEALTHY, DEGRADED]}}}`, nil},
		{hosts + `}`, []string{"envoy.api.v2.Cluster.hosts"}},
		{hosts + `, tls_context: {}}`, []string{"envoy.api.v2.Cluster.hosts", "envoy.api.v2.Cluster.tls_context"}},
		{`{name: a, type: ORIGINAL_DST, lb_policy: ORIGINAL_DST_LB}`, []string{"envoy.api.v2.Cluster.ORIGINAL_DST_LB"}},
		{`{name: a, type: STRICT_DNS, dns_resolvers: [], dns_refresh_rate: 1s, track_cluster_stats: {}, load_assignment: {cluster_name: a}}`,
			[]string{"envoy.config.cluster.v3.Cluster.dns_refresh_rate"}},
		{`{name: a, load_assignment: {cluster_name: a}, transport_socket: {name: tls, typed_config: {
			"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
			common_tls_context: {tls_params: {tls_minimum_protocol_version: TLSv1_2}, validation_context: {trusted_ca: {filename: /ca.pem}, match_subject_alt_names: [{exact: b}]}}}}}`,
			[]string{"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.match_subject_alt_names"}},
	} {
		if diff := cmp.Diff(tt.want, mustParse(t, tt.text).Deprecated()); diff != "" {
			t.Errorf("%s: %s", tt.text, diff)
		}
	}
}
