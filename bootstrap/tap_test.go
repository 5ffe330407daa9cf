package bootstrap_test

import (
	"fmt"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestTapOfExtensions checks that /tap exists if the file has a tap extension with an
// ID or the setting for it, and which IDs are known.
func TestTapOfExtensions(t *testing.T) {
	const (
		admin    = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}%s}\n"
		listener = "static_resources: {listeners: [{name: l, filter_chains: [%s]}]}\n"
		filter   = "{filters: [{name: hcm, typed_config: {'@type': t/HttpConnectionManager, http_filters: [{name: envoy.filters.http.tap, %s}]}}]}"
		socket   = "{transport_socket: {name: envoy.transport_sockets.tap, typed_config: {" +
			"'@type': type.googleapis.com/envoy.extensions.transport_sockets.tap.v3.Tap, commonConfig: {adminConfig: {configId: wire}}}}}"
		typed  = "typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap, common_config: %s}"
		packed = "typed_config: {'@type': type.googleapis.com/xds.type.v3.TypedStruct, type_url: t/Tap, value: {common_config: {admin_config: {config_id: packed}}}}"
		older  = "config: {common_config: {admin_config: {config_id: older}}}"
	)
	ask := func(t *testing.T, text, id string) string {
		c, err := bootstrap.Parse("a.yaml", []byte(text), bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := c.Server(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Admin().Request("POST", "/tap", fmt.Appendf(nil, "config_id: %s\ntap_config:\n  match: {any_match: true}\n"+
			"  output_config:\n    sinks: [{buffered_admin: {max_traces: 1, timeout: 0.001s}}]\n", id))
		if r.Status == 400 {
			return string(r.Body)
		}
		return fmt.Sprint(r.Status)
	}
	both := "{filters: [{name: hcm, typed_config: {http_filters: [{" + fmt.Sprintf(typed, "{admin_config: {config_id: first}}") + "}]}}]}, " + socket
	for name, test := range map[string]struct{ admin, chains, id, want string }{
		"none":       {"", "", "statsd", "404"},
		"setting":    {", tap: {}", "", "admin", "200"},
		"no-id":      {"", fmt.Sprintf(filter, fmt.Sprintf(typed, "{static_config: {match_config: {any_match: true}}}")), "statsd", "404"},
		"empty-id":   {"", fmt.Sprintf(filter, fmt.Sprintf(typed, "{admin_config: {config_id: ''}}")), "statsd", "404"},
		"filter":     {"", fmt.Sprintf(filter, fmt.Sprintf(typed, "{admin_config: {config_id: mine}}")), "mine", "200"},
		"unknown":    {"", fmt.Sprintf(filter, fmt.Sprintf(typed, "{admin_config: {config_id: mine}}")), "other", "Unknown config id 'other'. No extension has registered with this id."},
		"own":        {"", fmt.Sprintf(filter, fmt.Sprintf(typed, "{admin_config: {config_id: mine}}")), "admin", "200"},
		"socket":     {"", socket, "wire", "200"},
		"first":      {"", both, "first", "200"},
		"second":     {"", both, "wire", "200"},
		"struct":     {"", fmt.Sprintf(filter, packed), "packed", "200"},
		"older-form": {"", fmt.Sprintf(filter, older), "older", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(admin, test.admin)
			if test.chains != "" {
				text += fmt.Sprintf(listener, test.chains)
			}
			if got := ask(t, text, test.id); got != test.want {
				t.Errorf("%s: %s, want %s", test.id, got, test.want)
			}
		})
	}
}
