package decode_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// TestBothFormsMeanTheSame writes one cluster in both forms.
func TestBothFormsMeanTheSame(t *testing.T) {
	const context = "common_tls_context: {tls_certificates: [{certificate_chain: {filename: /c.pem}, private_key: {filename: /k.pem}}], validation_context: {trusted_ca: {filename: /ca.pem}, %s}}, sni: s"
	check := func(fields string) string {
		return "health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, http_health_check: {path: /, " + fields + "}}]\n"
	}
	v2tls := strings.Replace(context, "%s", "verify_subject_alt_name: [a, b]", 1)
	v3tls := strings.Replace(context, "%s", "match_subject_alt_names: [{exact: a}, {exact: b}]", 1)
	const v2url, v3url = "'@type': type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext", "'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	tests := []struct{ name, v2, v3 string }{
		{"hosts",
			"type: STRICT_DNS\nhosts: [{socket_address: {address: a, port_value: 1}}, {socket_address: {address: b, port_value: 2}}]\n",
			"type: STRICT_DNS\nload_assignment: {cluster_name: '', endpoints: [{load_balancing_weight: 1, lb_endpoints: [{load_balancing_weight: 1, endpoint: {address: {socket_address: {address: a, port_value: 1}}}}, {load_balancing_weight: 1, endpoint: {address: {socket_address: {address: b, port_value: 2}}}}]}]}\n"},
		{"hosts-and-assignment",
			"hosts: [{pipe: {path: /ignored}}]\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n",
			"load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /x}}}}]}]}\n"},
		{"tls-context",
			"tls_context: {" + v2tls + "}\n",
			"transport_socket: {name: envoy.transport_sockets.tls, typed_config: {" + v3url + ", " + v3tls + "}}\n"},
		{"tls-context-and-socket",
			"tls_context: {sni: ignored}\ntransport_socket: {name: raw_buffer}\n",
			"transport_socket: {name: raw_buffer}\n"},
		{"tls-by-typed-config",
			"transport_socket: {name: tls, typed_config: {" + v2url + ", " + v2tls + "}}\n",
			"transport_socket: {name: tls, typed_config: {" + v3url + ", " + v3tls + "}}\n"},
		{"tls-by-config",
			"transport_socket: {name: tls, config: {" + v2tls + "}}\n",
			"transport_socket: {name: tls, typed_config: {" + v3url + ", " + v3tls + "}}\n"},
		{"original-dst",
			"type: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\noriginal_dst_lb_config: {use_http_header: true}\n",
			"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {use_http_header: true}\n"},
		{"drain-on-removal",
			"drain_connections_on_host_removal: true\n",
			"ignore_health_on_host_removal: true\n"},
		{"http-check",
			check("use_http2: true, service_name: loc, receive: {text: '00ff'}"),
			check("codec_client_type: HTTP2, service_name_matcher: {prefix: loc}, receive: [{text: '00ff'}]")},
		{"http-check-matcher-wins",
			check("service_name: ignored, service_name_matcher: {regex: 'a+'}"),
			check("service_name_matcher: {safe_regex: {google_re2: {}, regex: 'a+'}}")},
		{"overprovisioning",
			"load_assignment: {cluster_name: c, policy: {disable_overprovisioning: true}}\n",
			"load_assignment: {cluster_name: c, policy: {overprovisioning_factor: 100}}\n"},
		{"socket-matches",
			"transport_socket_matches: [{name: m, match: {a: b}, transport_socket: {name: tls, typed_config: {" + v2url + ", sni: x}}}]\n",
			"transport_socket_matches: [{name: m, match: {a: b}, transport_socket: {name: tls, typed_config: {" + v3url + ", sni: x}}}]\n"},
		{"lb-policies",
			"load_balancing_policy: {policies: [{name: a, config: {b: 1}}, {name: d, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}]}\n",
			"load_balancing_policy: {policies: [{typed_extension_config: {name: a, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {b: 1}}}}, {typed_extension_config: {name: d, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}}]}\n"},
		{"eds", "type: EDS\neds_cluster_config: {service_name: s, eds_config: {ads: {}}}\n", "type: EDS\neds_cluster_config: {service_name: s, eds_config: {ads: {}}}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDecoder()
			old, err := d.ClusterText("", []byte("name: c\n"+tt.v2), config.FormV2)
			if err != nil {
				t.Fatal(err)
			}
			// A message made in code may leave out what a text must have.
			text := strings.Replace(tt.v3, "cluster_name: ''", "cluster_name: placeholder", 1)
			cur, err := d.ClusterText("", []byte("name: c\n"+text), config.FormV3)
			if err != nil {
				t.Fatal(err)
			}
			got, want := *old.Cluster, *cur.Cluster
			if text != tt.v3 {
				a := *want.Assignment
				a.ClusterName, want.Assignment = "", &a
			}
			got.Form, got.HTTP.HTTP2Options = want.Form, want.HTTP.HTTP2Options // the forms have their own defaults there
			if diff := cmp.Diff(want, got, compare); diff != "" {
				t.Errorf("(-v3 +v2)\n%s", diff)
			}
			again, err := d.ClusterWire(old.TypeURL(), old.Any().Value, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(old.Cluster, again.Cluster, compare); diff != "" {
				t.Errorf("v2 from the wire (-text +wire)\n%s", diff)
			}
		})
	}
}

func TestV2MessagesInsideV3AreLifted(t *testing.T) {
	p, err := newDecoder().ClusterText("", []byte("name: c\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext, sni: s, common_tls_context: {validation_context: {verify_subject_alt_name: [a]}}}}\n"), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	tls := p.Cluster.Sockets.Default.TLS
	if tls.SNI != "s" || len(tls.Validation.SANs) != 1 || tls.Validation.SANs[0].Matcher.Pattern != "a" {
		t.Errorf("TLS = %+v", tls)
	}
}

func TestUntypedConfigurationOfV2(t *testing.T) {
	c := mustParse(t, "name: c\nextension_protocol_options: {takes.options: {a: {b: 1}}}\n"+
		"health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, custom_health_check: {name: known.checker, config: {key: k}}}]\n").Cluster
	if diff := cmp.Diff(map[string]map[string]any{"takes.options": {"a": map[string]any{"b": 1.0}}}, c.UntypedExtensionOptions); diff != "" {
		t.Errorf("options (-want +got)\n%s", diff)
	}
	h := c.HealthChecks[0]
	if diff := cmp.Diff(map[string]any{"key": "k"}, h.CustomUntyped); diff != "" || h.Custom.Name != "known.checker" || h.Custom.Config.TypeURL != "" {
		t.Errorf("custom check %+v (-want +got)\n%s", h.Custom, diff)
	}
}

func TestV2FieldsWithoutAPlaceAreRefused(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"ocsp", "tls_context: {common_tls_context: {validation_context: {require_ocsp_staple: true}}}\n", one("tls_context.common_tls_context.validation_context.require_ocsp_staple: is no longer supported")},
		{"untyped-tls", "transport_socket: {name: tls, config: {snu: x}}\n", one("transport_socket.config: is not an UpstreamTlsContext")},
		{"two-untyped-tls", "transport_socket_matches: [{name: a, transport_socket: {name: tls, config: {sni: " + strings.Repeat("s", 256) + "}}}, {name: b, transport_socket: {name: tls, config: {snu: x}}}]\n", []string{
			`transport_socket_matches[0].transport_socket.config.sni: "` + strings.Repeat("s", 80) + `"… is longer than 255 bytes`, "transport_socket_matches[1].transport_socket.config: is not an UpstreamTlsContext"}},
		{"untyped-tls-rule", "transport_socket: {name: tls, config: {sni: " + strings.Repeat("s", 256) + "}}\n", one(`transport_socket.config.sni: "` + strings.Repeat("s", 80) + `"… is longer than 255 bytes`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newDecoder().ClusterText("", []byte("name: c\n"+tt.text), config.FormV2)
			if diff := cmp.Diff(tt.want, faults(t, err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestV2FieldsWithoutAPlacePassOnTheWire(t *testing.T) {
	text := []byte("name: c\ntype: ORIGINAL_DST\nlb_policy: ORIGINAL_DST_LB\ntls_context: {common_tls_context: {validation_context: {require_ocsp_staple: true}}}\n")
	o := options()
	o.AllowUnknown = true
	allowed, err := decode.NewDecoder(o).ClusterText("f", text, v2)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := newDecoder().ClusterWire(allowed.TypeURL(), allowed.Any().Value, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*decode.ParsedCluster{"text": allowed, "wire": wire} {
		if w := p.Warnings(); p.UnknownFields() != 1 || len(w) != 1 || !strings.HasSuffix(w[0].Error(), "require_ocsp_staple: is no longer supported") {
			t.Errorf("%s: %d unknown fields, warnings %v", name, p.UnknownFields(), w)
		}
	}

	const yes, no = "*\x02\b\x01", "*\x02\b\x00" // require_ocsp_staple, a BoolValue
	value := string(allowed.Any().Value)
	if strings.Count(value, yes) != 1 {
		t.Fatalf("%q has not one %q", value, yes)
	}
	zero, err := newDecoder().ClusterWire(allowed.TypeURL(), []byte(strings.Replace(value, yes, no, 1)), 0)
	if err != nil || zero.UnknownFields() != 0 || len(zero.Warnings()) != 0 {
		t.Errorf("of value 0: %v, %v", zero, err)
	}
}

func TestSpellingsOfTheProduct(t *testing.T) {
	o := options()
	o.Product = "envoy"
	text := []byte("name: c\ntype: STATIC\ntransport_socket: {name: envoy.transport_sockets.raw_buffer}\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 1.2.3.4, port_value: 1}}}, metadata: {filter_metadata: {envoy.lb: {canary: true}}}}]}]}\n")
	for product, want := range map[string]string{"envoy": "envoy.lb", "mine": "mine.lb"} {
		o.Product = product
		p, err := decode.NewDecoder(o).ClusterText("", text, config.FormUnknown)
		if err != nil {
			t.Fatal(err)
		}
		e := p.Cluster.Assignment.Localities[0].Endpoints[0]
		if len(e.Metadata) != 1 || e.Metadata[want] == nil || !e.Canary {
			t.Errorf("product %s: metadata %v, canary %t", product, e.Metadata, e.Canary)
		}
		if ap, ok := e.Address.AddrPort(); !ok || ap != netip.MustParseAddrPort("1.2.3.4:1") {
			t.Errorf("address = %v", ap)
		}
	}
}
