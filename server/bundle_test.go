package server_test

import (
	"archive/zip"
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestBundleHidesKeys makes a bundle of a server whose configuration has certificates
// with keys, a generic secret, headers and metadata, and looks for them in all files.
func TestBundleHidesKeys(t *testing.T) {
	const planted = "kanarienvogel"
	chain, key := certificate(t)
	text := strings.NewReplacer("CERTIFICATE", strconv.Quote(chain), "PRIVATE", strconv.Quote(key), "SOURCE", "{ads: {}}").Replace(secretsFile)
	text = strings.ReplaceAll(text, `          validation_context_sds_secret_config: {name: late, sds_config: {ads: {}}}
`, "") + `
  - name: checked
    metadata: {filter_metadata: {app: {api_key: ` + planted + `}}}
    health_checks: [{timeout: 1s, interval: 1000s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /, request_headers_to_add: [{header: {key: authorization, value: "Bearer ` + planted + `"}}]}}]
    load_assignment: {cluster_name: checked}
node: {id: n, cluster: c, metadata: {password: ` + planted + `}}
layered_runtime: {layers: [{name: base, static_layer: {db: {password: ` + planted + `}}}, {name: admin, admin_layer: {}}]}
`
	cfg := fromText(t, text)
	cfg.CommandLine.ConfigYAML, cfg.Admin.ShowUntyped = text, true
	r := run(t, cfg)
	r.post(t, "/runtime_modify?other.token="+planted)
	reply := r.post(t, "/bundle")
	archive, err := zip.NewReader(bytes.NewReader(reply.Body), int64(len(reply.Body)))
	if err != nil {
		t.Fatalf("%d %v", reply.Status, err)
	}
	body := strings.Split(key, "\n")[1] // a line of the key
	seen := ""
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(text)
		for _, secret := range []string{planted, body, "PRIVATE KEY"} {
			if at := bytes.Index(text, []byte(secret)); at >= 0 {
				t.Errorf("%s has a secret: %q", f.Name, text[max(at-100, 0):at+len(secret)])
			}
		}
	}
	for _, want := range []string{`"name": "checked"`, `"name": "unused"`, "other.token", "[redacted]"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the bundle lacks %q", want)
		}
	}
}
