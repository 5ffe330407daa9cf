package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckFiles: files that are not there are named all at once, with the
// places where they are configured.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("anything"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log_path: %[1]s/none/log
  access_log: [{name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: %[2]s/log}}]
  auth: {tokens_file: %[1]s/none}
  tls: {certificate_chain: %[1]s, private_key: %[2]s, client_ca: %[1]s/ca, ocsp_staple: %[2]s}
statsd:
  listeners: [{address: "tcp://127.0.0.1:0", tls: {certificate_chain: %[2]s, private_key: %[1]s/key}}]
cluster_manager: {outlier_detection: {event_log_path: %[1]s/new}}
`
	c, err := Parse("a.yaml", fmt.Appendf(nil, text, dir, there), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.CheckFiles()
	var all *Errors
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	want := []string{
		`a.yaml:3:20: admin.access_log_path: "` + dir + `/none/log": its directory: no such file or directory`,
		`admin.access_log[0].typed_config.path: "` + there + `/log": "` + there + `" is not a directory`,
		`admin.auth.tokens_file: "` + dir + `/none": no such file or directory`,
		`admin.tls.certificate_chain: "` + dir + `" is not a regular file`,
		`admin.tls.client_ca: "` + dir + `/ca": no such file or directory`,
		`statsd.listeners[0].tls.private_key: "` + dir + `/key": no such file or directory`,
	}
	if len(all.List) != len(want) {
		t.Fatalf("%v", err)
	}
	for i, e := range all.List {
		got := e.Error()
		if i > 0 {
			got = e.Field + ": " + e.Message
		}
		if got != want[i] || e.Position.File != "a.yaml" || e.Position.Line == 0 {
			t.Errorf("%v\nwant %s", e, want[i])
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the check left %v behind, %v", list, err)
	}
}

// TestCheckFilesInUse checks that files of unused settings need not exist.
func TestCheckFilesInUse(t *testing.T) {
	for _, text := range []string{
		"admin: {access_log_path: /no/such/dir/log, auth: {tokens_file: /no/such/file}}",
		"admin: {address: {pipe: {path: /s}}, access_log_path: /dev/null, profile_path: /no/such/dir/p}",
	} {
		c, err := Parse("a.yaml", []byte(text), Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := c.CheckFiles(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCheckFilesBehindUnused checks files of used settings behind a file of an unused one.
func TestCheckFilesBehindUnused(t *testing.T) {
	c, err := Parse("a.yaml", []byte("admin: {profile_path: /no/such/dir/p, auth: {tokens_file: /no/such/file}}\n"+
		"statsd: {listeners: [{address: 'tcp://127.0.0.1:0', tls: {certificate_chain: /no/such/chain, private_key: /no/such/key}}]}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all *Errors
	if err := c.CheckFiles(); !errors.As(err, &all) || len(all.List) != 2 || !strings.HasPrefix(all.List[0].Field, "statsd.listeners[0].tls.") {
		t.Errorf("%v", err)
	}
}

// TestCheckFilesReportsAllErrors has errors in the configuration and in the files that it
// names: each is reported once, in one list, with the warnings.
func TestCheckFilesReportsAllErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tokens": "one\n#\nroot:x:y\n",
		"rules":  "mappings:\n- {match: a.*, name: 'b_$2', labels: {cc: '${3}'}}\n- {match: '$', nam: x}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Appendf(nil, `admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  auth: {tokens_file: %[1]s/tokens}
  tls: {certificate_chain: %[1]s/tokens, private_key: %[1]s/tokens}
statsd:
  mapping: {file: %[1]s/rules}
  listeners:
  - {address: "tcp://127.0.0.1:0", tls: {certificate_chain: %[1]s/tokens, private_key: %[1]s/none}}
  - {address: "tcp://127.0.0.1:0", tls: {certificate_chain: %[1]s/tokens}}
tracing: {}
stats_flush_interval: x
static_resources:
  clusters:
  - name: c
    type: STATIC
    load_assignment: {cluster_name: c, endpoints: []}
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {tls_certificates: [{certificate_chain: {filename: %[1]s/none}, private_key: {filename: %[1]s/none}}]}
`, dir)
	text = bytes.Replace(text, []byte("  tls:"), []byte(`  access_log: [{name: f, typed_config: {"@type": x.FileAccessLog, path: /dev/null, format: "%NO%"}}]`+"\n  tls:"), 1)
	_, err := Parse("a.yaml", text, Options{CheckFiles: true})
	var all *Errors
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	want := []string{
		`a.yaml:3:23: admin.auth.tokens_file: line 1 is not role:sha256:name, in "DIR/tokens"`,
		`a.yaml:3:23: admin.auth.tokens_file: line 3: the role is not one of metrics, read, operate, admin, in "DIR/tokens"`,
		`a.yaml:4:40: admin.access_log[0].typed_config: format: operator "NO" is not one of `,
		`a.yaml:5:8: admin.tls: "DIR/tokens": no certificate in PEM form`,
		`a.yaml:9:N: statsd.listeners[0].tls.private_key: "DIR/none": no such file or directory`,
		`a.yaml:10:41: statsd.listeners[1].tls.private_key: required field is not set`,
		`a.yaml:12:23: stats_flush_interval: "x" is not a duration`,
		`a.yaml:22:N: static_resources.clusters[0].transport_socket.typed_config.common_tls_context.tls_certificates[0].certificate_chain: cluster "c": "DIR/none": no such file or directory`,
		`DIR/rules:3:11: mappings[1].match: "$" is not a glob: `,
		`DIR/rules:3:16: mappings[1].nam: unknown field`,
	}
	for i, e := range all.List {
		got := strings.ReplaceAll(e.Error(), dir, "DIR")
		for _, line := range []string{"a.yaml:9:", "a.yaml:22:"} { // behind the name of the directory
			if strings.HasPrefix(got, line) {
				got = line + "N" + got[strings.Index(got, ": "):]
			}
		}
		if i >= len(want) || !strings.HasPrefix(got, want[i]) {
			t.Errorf("%d: %s", i, got)
		}
	}
	if len(all.List) != len(want) {
		t.Errorf("%d errors, want %d", len(all.List), len(want))
	}
	warnings := strings.ReplaceAll(strings.Join(all.Warnings, "\n"), dir, "DIR")
	const wantWarnings = "a.yaml:11:10: tracing: accepted, but has no effect\n" +
		"DIR/rules:2:22: mappings[0].name: the reference ${2} stays empty: \"a.*\" does not capture it\n" +
		"DIR/rules:2:43: mappings[0].labels.cc: the reference ${3} stays empty: \"a.*\" does not capture it"
	if warnings != wantWarnings {
		t.Errorf("warnings:\n%s\nwant\n%s", warnings, wantWarnings)
	}
	if _, err := Parse("a.yaml", text, Options{}); !errors.As(err, &all) || len(all.List) != 4 {
		t.Errorf("without CheckFiles: %v", err)
	}
	// The name of no file is not looked for.
	secret := []byte("statsd: {mapping: {file: ghp_0123456789abcdef}}")
	if _, err := Parse("a.yaml", secret, Options{CheckFiles: true}); !errors.As(err, &all) || len(all.List) != 1 {
		t.Errorf("a secret in place of a file: %v", err)
	}
}

// TestCheckFilesCountsAllErrors has more errors in a file than are listed.
func TestCheckFilesCountsAllErrors(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte("mappings:\n"+strings.Repeat("- {match: '$', name: x}\n", maxErrors+50)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Parse("a.yaml", fmt.Appendf(nil, "statsd: {mapping: {file: %s}, prefix: []}\n", rules), Options{CheckFiles: true})
	var all *Errors
	if !errors.As(err, &all) || len(all.List) != maxErrors || all.Dropped != 51 {
		t.Errorf("%v", err)
	}
}
