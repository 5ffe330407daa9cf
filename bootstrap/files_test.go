package bootstrap

import (
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
