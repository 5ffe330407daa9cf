package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

const secretsFile = `
static_resources:
  secrets:
  - {name: fixed, tls_certificate: {certificate_chain: {inline_string: CERTIFICATE}, private_key: {inline_string: PRIVATE}}}
  - {name: names, validation_context: {verify_subject_alt_name: [a.example.net]}}
  - {name: unused, generic_secret: {secret: {inline_string: kanarienvogel}}}
  clusters:
  - name: control
    http2_protocol_options: {}
    load_assignment: {cluster_name: control, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}
  - name: secure
    load_assignment: {cluster_name: secure, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          tls_certificate_sds_secret_configs: [{name: fixed}]
          validation_context_sds_secret_config: {name: late, sds_config: SOURCE}
`

const lateSecret = `{"version_info": "1", "resources": [{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "late", %s}]}`

// secretServer returns a server for secretsFile.
func secretServer(t *testing.T, source string) *running {
	t.Helper()
	chain, key := certificate(t)
	text := strings.NewReplacer("CERTIFICATE", strconv.Quote(chain), "PRIVATE", strconv.Quote(key), "SOURCE", source).Replace(secretsFile)
	return run(t, fromText(t, text))
}

const onlySecrets = "/config_dump?mask=static_secrets,dynamic_active_secrets,dynamic_warming_secrets"

// TestServerWaitsForSecrets uses a control plane that does not respond.
func TestServerWaitsForSecrets(t *testing.T) {
	r := secretServer(t, "{initial_fetch_timeout: 0s, api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: control}}]}}")
	const dump = "{\n \"unready_targets_dumps\": [\n  {\n   \"name\": \"init manager Cluster secure\",\n   \"target_names\": [\n    \"target SdsApi late\"\n   ]\n  }\n ]\n}\n"
	waittest.Until(t, "only the secret is awaited", func() bool { return r.get(t, "/init_dump") == dump })
	waittest.Until(t, "the server was asked", func() bool {
		return regexp.MustCompile(`sds\.late\.update_failure: [1-9]`).MatchString(r.get(t, "/stats"))
	})
	if reply := r.Admin().Request("GET", "/ready", nil); reply.Status != 503 {
		t.Errorf("/ready says %d %q", reply.Status, reply.Body)
	}
	golden.Check(t, "secrets-waiting", ask(t, r.Server, onlySecrets))
	if got := r.get(t, "/certs"); strings.Contains(got, "serial_number") {
		t.Errorf("certificates before the context is complete: %s", got)
	}
}

// TestServerShowsSecrets checks that secrets are listed without their keys.
func TestServerShowsSecrets(t *testing.T) {
	late := filepath.Join(t.TempDir(), "late.json")
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(late+".next", fmt.Appendf(nil, lateSecret, content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(late+".next", late); err != nil {
			t.Fatal(err)
		}
	}
	authority, _ := certificate(t)
	put(`"validation_context": {"trusted_ca": {"inline_string": ` + strconv.Quote(authority) + `}}`)
	r := secretServer(t, "{path_config_source: {path: "+late+"}}")
	waittest.Until(t, "the server is live", func() bool { return r.get(t, "/ready") == "LIVE\n" })
	golden.Check(t, "secrets-active", ask(t, r.Server, onlySecrets))
	golden.Check(t, "secrets-names", ask(t, r.Server, "/config_dump?resource=dynamic_active_secrets&mask=name,version_info,secret.name&name_regex=l.*"))
	if got := r.get(t, "/certs"); strings.Count(got, `"path": "\u003cinline\u003e"`) != 2 {
		t.Errorf("certificates %s, want one chain and one authority that no file holds", got)
	}

	// The refused version is shown next to the one in use.
	put(`"tls_certificate": {"private_key": {"inline_string": "kanarienvogel"}}`)
	waittest.Until(t, "the refusal is counted", func() bool { return strings.Contains(r.get(t, "/stats"), "sds.late.update_rejected: 1\n") })
	attempt := regexp.MustCompile(`"last_update_attempt": "[^"]+"`)
	golden.Check(t, "secrets-refused", attempt.ReplaceAll(ask(t, r.Server, "/config_dump?resource=dynamic_active_secrets"), []byte(`"last_update_attempt": "then"`)))
	for _, target := range []string{"/config_dump", "/config_dump?mask=bootstrap", "/config_dump?resource=static_secrets", "/config_dump?name_regex=fixed", "/server_info"} {
		ask(t, r.Server, target)
	}
}

// example returns the first example of docs/clusters.md that starts with a line.
func example(t *testing.T, first string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n    "+first+"\n")
	if !found {
		t.Fatalf("docs/clusters.md has no example that begins with %q", first)
	}
	text := first + "\n"
	for line := range strings.Lines(rest) {
		inner, ok := strings.CutPrefix(line, "    ")
		if !ok {
			break
		}
		text += inner
	}
	return text
}

// TestSecretsOfTheDocumentation runs the example in the documentation.
func TestSecretsOfTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	chain, key := certificate(t)
	move := strings.NewReplacer("/etc/statsd-admin", dir, "checkout.internal, port", "localhost, port")
	if err := os.Mkdir(filepath.Join(dir, "tls"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tls/own.pem": chain, "tls/own.key": key, "tls/authority.pem": chain, "authority.yaml": move.Replace(example(t, "resources:")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, fromText(t, move.Replace(example(t, "static_resources:"))))
	waittest.Until(t, "the server is live", func() bool { return r.get(t, "/ready") == "LIVE\n" })
	waittest.Until(t, "both secrets are in effect", func() bool {
		got := r.get(t, "/certs")
		return strings.Contains(got, "tls/own.pem") && strings.Contains(got, "tls/authority.pem")
	})
}
