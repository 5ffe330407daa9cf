package decode_test

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// TestElementsBehindASpecialOne puts the element that is treated differently first in
// each list and checks that the elements behind it are compiled.
func TestElementsBehindASpecialOne(t *testing.T) {
	c := mustParse(t, `name: c
lb_subset_config: {subset_selectors: [{keys: []}, {keys: [b, a]}, {keys: [c]}]}
load_assignment:
  cluster_name: c
  endpoints:
  - {locality: {zone: a}, lb_endpoints: [{endpoint: {address: {pipe: {path: /a}}}}]}
  - {locality: {zone: b}, load_balancing_weight: 3, lb_endpoints: [{endpoint: {address: {pipe: {path: /b}}}}, {load_balancing_weight: 7, endpoint: {address: {pipe: {path: /c}}}}]}
`).Cluster
	var keys [][]string
	for _, s := range c.LB.Subset.Selectors {
		keys = append(keys, s.Keys)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"c"}}, keys); diff != "" {
		t.Errorf("selectors behind one without keys (-want +got)\n%s", diff)
	}
	a, b := c.Assignment.Localities[0], c.Assignment.Localities[1]
	if a.Weight != 0 || b.Weight != 3 {
		t.Errorf("weights of localities: %d, %d", a.Weight, b.Weight)
	}
	if len(b.Endpoints) != 2 || b.Endpoints[0].Weight != 1 || b.Endpoints[1].Weight != 7 {
		t.Errorf("endpoints behind one without a weight: %+v", b.Endpoints)
	}

	const policy = "{typed_extension_config: {name: %, typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.%}}}"
	one := func(name, message string) string {
		return strings.Replace(strings.Replace(policy, "%", name, 1), "%", message, 1)
	}
	unknown := "{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}}"
	lb := mustParse(t, "name: c\nload_balancing_policy: {policies: ["+unknown+", "+one("r", "random.v3.Random")+", "+one("m", "maglev.v3.Maglev")+"]}\n").Cluster.LB
	if lb.Policy != config.RandomPolicy {
		t.Errorf("policy %d, want the first known one, %d", lb.Policy, config.RandomPolicy)
	}
}

// TestCertificateBehindAnotherBlock reads a bundle whose first PEM block is no
// certificate, and one whose second certificate is broken.
func TestCertificateBehindAnotherBlock(t *testing.T) {
	other := string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: []byte("x")}))
	broken := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	good, _ := pair(t)
	for content, want := range map[string]string{
		other + string(good):  "",
		other:                 "no certificate in PEM form",
		string(good) + broken: "certificate 2: ",
		other + broken:        "certificate 1: ",
	} {
		o := options()
		o.ReadFile = func(string) ([]byte, error) { return []byte(content), nil }
		_, err := decode.NewDecoder(o).ClusterText("", []byte("name: c\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\ntransport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, "+
			"common_tls_context: {validation_context: {trusted_ca: {filename: /ca}}}}}\n"), v3)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", content[:20], err, want)
		}
	}
}

// TestHTTP2DefaultsOfTheForms checks the limits without HTTP/2 options in both forms.
func TestHTTP2DefaultsOfTheForms(t *testing.T) {
	for form, want := range map[config.Form][3]uint32{
		v2: {1<<31 - 1, 256 << 20, 256 << 20},
		v3: {1024, 16 << 20, 24 << 20},
	} {
		for _, text := range []string{"name: c\nconnect_timeout: 1s\n", "name: c\nconnect_timeout: 1s\nhttp2_protocol_options: {}\n"} {
			p, err := newDecoder().ClusterText("", []byte(text), form)
			if err != nil {
				t.Fatal(err)
			}
			o := p.Cluster.HTTP.HTTP2Options
			if got := [3]uint32{o.MaxConcurrentStreams, o.InitialStreamWindow, o.InitialConnectionWindow}; got != want {
				t.Errorf("form %d: %d, want %d", form, got, want)
			}
		}
	}
}

// TestErrorsBehindErrors: an entry that cannot be decoded hides no error behind it.
func TestErrorsBehindErrors(t *testing.T) {
	for text, want := range map[string][2]string{
		"health_checks: [null, 7]":                                           {"health_checks[0]: null", "health_checks[1]"},
		"metadata: {filter_metadata: {a: null, b: 7}}":                       {`filter_metadata["a"]: null`, `filter_metadata["b"]`},
		"lb_policy: RANDOM\nlbPolicy: RANDOM\ntypo: 1":                       {"lb_policy: set twice", "typo: unknown field"},
		"ring_hash_lb_config: {}\nmaglev_lb_config: {}\ntypo: 1":             {"maglev_lb_config", "typo: unknown field"},
		"typo: 1\nother_typo: 1":                                             {": typo: unknown field", "other_typo: unknown field"},
		"common_lb_config: {healthy_panic_threshold: 7}\nconnect_timeout: x": {"healthy_panic_threshold", "connect_timeout"},
	} {
		_, err := newDecoder().ClusterText("", []byte("name: c\n"+text+"\n"), v3)
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, _, err := newDecoder().ResponseText("", []byte("resources: x\nversion_info: 7\n"))
	if err == nil || !strings.Contains(err.Error(), "resources: ") || !strings.Contains(err.Error(), "version_info: ") {
		t.Errorf("response: %v, want errors of both fields", err)
	}
}

// TestSingleEntries: a map or list of one element is not an empty one.
func TestSingleEntries(t *testing.T) {
	c := mustParse(t, "name: c\ntyped_extension_protocol_options: {takes.options: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}\n").Cluster
	if len(c.ExtensionOptions) != 1 {
		t.Errorf("options of %d extensions, want 1", len(c.ExtensionOptions))
	}
}

// TestEventSinksBehindAFile keeps the files and the other sinks of a check apart.
func TestEventSinksBehindAFile(t *testing.T) {
	file := func(path string) string {
		return "{name: file, typed_config: {'@type': type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: " + path + "}}"
	}
	const other = "{name: other, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}"
	h := mustParse(t, "name: c\nhealth_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}, event_log_path: /a, event_logger: ["+
		file("/b")+", "+other+", "+file("/c")+"]}]\n").Cluster.HealthChecks[0]
	if diff := cmp.Diff([]string{"/a", "/b", "/c"}, h.EventLogs); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	if len(h.EventSinks) != 1 || h.EventSinks[0].Name != "other" {
		t.Errorf("other sinks %+v", h.EventSinks)
	}
}
