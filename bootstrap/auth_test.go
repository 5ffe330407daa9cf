package bootstrap

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/certs"
)

const digest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func TestAdminSecurity(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  auth:
    tokens_file: /etc/tokens
    tokens: [{name: prometheus, role: metrics, sha256: `+digest+`}]
    client_certificates: [{name: "uri:spiffe://x/ops", role: operate}, {name: "dns:a.b", role: read}, {name: "ip:::1", role: admin}]
    open_paths: [/ready, /live, /stats/prometheus]
  tls:
    certificate_chain: /c.pem
    private_key: /k.pem
    client_ca: /ca.pem
    require_client_certificate: false
    ocsp_staple: /c.ocsp
    tls_minimum_protocol_version: TLSv1_3
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := admin.Token{Name: "prometheus", Role: admin.RoleMetrics}
	for i := range token.Digest {
		token.Digest[i] = byte(i % 16 * 0x11)
	}
	wantAuth := admin.Auth{
		ClientCertificates: []admin.CertificateRole{{Name: "uri:spiffe://x/ops", Role: admin.RoleOperate}, {Name: "dns:a.b", Role: admin.RoleRead}, {Name: "ip:::1", Role: admin.RoleAdmin}},
		OpenPaths:          []string{"/ready", "/live", "/stats/prometheus"},
	}
	wantTLS := &certs.Files{Chain: "/c.pem", Key: "/k.pem", ClientCA: "/ca.pem", OptionalClient: true, OCSPStaple: "/c.ocsp", MinVersion: tls.VersionTLS13}
	got := c.Admin.Auth
	if d := cmp.Diff([]admin.Token{token}, got.Tokens.List()); d != "" || got.TokensFile != "/etc/tokens" {
		t.Error(d, got.TokensFile)
	}
	got.Tokens = nil
	if d := cmp.Diff(wantAuth, got.Auth); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(wantTLS, c.Admin.TLS); d != "" {
		t.Error(d)
	}
	c, err = Parse("a.yaml", []byte("admin: {address: {pipe: {path: /s}}, auth: {unix_peers: [{uid: 0, role: admin}, {gid: 4294967294, role: read}]}}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]admin.PeerRole{{ID: 0, Role: admin.RoleAdmin}, {Group: true, ID: 4294967294, Role: admin.RoleRead}}, c.Admin.Auth.UnixPeers); d != "" {
		t.Error(d)
	}
}

func TestAdminSecurityErrors(t *testing.T) {
	const port = "address: {socket_address: {address: 127.0.0.1, port_value: 0}}"
	const files = "certificate_chain: a, private_key: b"
	for text, want := range map[string]string{
		port + ", auth: {}": "admin.auth: no way to authenticate is configured: set tokens_file",
		port + ", auth: {tokens: [{name: a, role: root, sha256: " + digest + "}]}":        `"root" is not one of metrics, read, operate, admin`,
		port + ", auth: {tokens: [{name: a, role: canarycanary1234, sha256: x}]}":         "[redacted] is not one of metrics, read, operate, admin",
		port + ", auth: {tokens_file: canary0123456789}":                                  "admin.auth.tokens_file: looks like a secret; this is the name of a file",
		port + ", auth: {tokens: [{name: a, role: read}]}":                                "sha256: required field is not set",
		port + ", auth: {tokens: [{name: '', role: read, sha256: " + digest + "}]}":       "admin.auth.tokens[0].name: ",
		port + ", auth: {tokens: [{name: a, role: read, sha256: canary}]}":                "not the SHA-256 digest of a token",
		port + ", auth: {tokens: [{name: a, role: read, sha256: " + digest[2:] + "}]}":    "not the SHA-256 digest of a token",
		port + ", auth: {tokens: [{name: a, role: read, token: canary}]}":                 "tokens[0].token: unknown field; allowed: name, role, sha256",
		port + ", auth: {client_certificates: [{name: 'dns:a', role: read}]}":             "admin.auth.client_certificates: needs tls.client_ca",
		port + ", auth: {client_certificates: [{name: a, role: read}]}":                   `"a" is not dns:name, uri:name or ip:address`,
		port + ", auth: {unix_peers: [{uid: 1, role: read}]}":                             "admin.auth.unix_peers: only for an address of kind pipe",
		"address: {pipe: {path: /s}}, auth: {unix_peers: [{uid: 1, gid: 2, role: read}]}": "only one of uid, gid may be set",
		"address: {pipe: {path: /s}}, auth: {unix_peers: [{role: read}]}":                 "one of uid, gid must be set",
		"address: {pipe: {path: /s}}, auth: {unix_peers: [{uid: -1, role: read}]}":        "is not an integer in [0, 4294967294]",
		"address: {pipe: {path: /s}}, tls: {" + files + "}":                               "admin.tls: only for an address of kind socket_address",
		port + ", auth: {tokens_file: /t, open_paths: [/help]}":                           "is not one of /ready, /live, /stats",
		port + ", tls: {certificate_chain: a}":                                            "admin.tls.private_key: required field is not set",
		port + ", tls: {" + files + ", require_client_certificate: true}":                 "needs client_ca",
		port + ", tls: {" + files + ", client_ca: c, require_client_certificate: false}":  "false without auth would admit every client",
		port + ", tls: {" + files + ", tls_minimum_protocol_version: TLSv1_1}":            "is not one of TLSv1_2, TLSv1_3",
	} {
		_, err := Parse("a.yaml", []byte("admin: {"+text+"}"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestSettingsWithoutAddress expects a warning for each setting of a port that has
// no address.
func TestSettingsWithoutAddress(t *testing.T) {
	c, err := Parse("a.yaml", []byte("admin: {access_log_path: /l, profile_path: /p, tls: {certificate_chain: a, private_key: b}}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(c.Warnings, "\n")
	if len(c.Warnings) != 2 || !strings.Contains(all, "a.yaml:1:26: admin.access_log_path: has no effect without admin.address") || !strings.Contains(all, "admin.tls: has no effect") {
		t.Errorf("%q", c.Warnings)
	}
	_, err = Parse("a.yaml", []byte("admin: {address: '127.0.0.1:80', tls: {certificate_chain: a, private_key: b}}"), Options{})
	if wrong, ok := errors.AsType[*Errors](err); !ok || len(wrong.Warnings) != 0 {
		t.Errorf("with a wrong address: %v, want no warnings", err)
	}
}

func TestAccessLogFormats(t *testing.T) {
	const file = "name: f, typed_config: {'@type': type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /l"
	parse := func(rest string) (AccessLog, error) {
		c, err := Parse("a.yaml", []byte("admin: {address: {pipe: {path: /s}}, access_log: [{"+file+rest+"}}]}"), Options{})
		if err != nil {
			return AccessLog{}, err
		}
		return c.Admin.AccessLog[0], nil
	}
	for rest, want := range map[string]accesslog.Config{
		"":                                      {Path: "/l"},
		", format: x":                           {Path: "/l", Format: "x"},
		", json_format: {a: '%PROTOCOL%'}":      {Path: "/l", JSON: map[string]any{"a": "%PROTOCOL%"}},
		", typed_json_format: {a: {b: [1, x]}}": {Path: "/l", Typed: true, JSON: map[string]any{"a": map[string]any{"b": []any{1.0, "x"}}}},
		", log_format: {json_format: {a: null}, omit_empty_values: true}": {Path: "/l", Typed: true, OmitEmpty: true, JSON: map[string]any{"a": nil}},
		", log_format: {text_format: y}":                                  {Path: "/l", Format: "y"},
	} {
		got, err := parse(rest)
		if err != nil {
			t.Errorf("%s: %v", rest, err)
			continue
		}
		if d := cmp.Diff(want, got.Config); d != "" {
			t.Errorf("%s:\n%s", rest, d)
		}
	}
	for rest, want := range map[string]string{
		", format: x, json_format: {a: b}":                    "only one of format, json_format, typed_json_format, log_format may be set",
		", json_format: {a: b}, typed_json_format: {a: b}":    "only one of format, json_format",
		", log_format: {text_format: x, json_format: {a: b}}": "only one of text_format, text_format_source, json_format may be set",
		", json_format: [a]":                                  "is not a mapping",

		", format: '%NOPE%'": `a.yaml:1:75: admin.access_log[0].typed_config: format: operator "NOPE" is not one of `,
	} {
		if _, err := parse(rest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", rest, err, want)
		}
	}
}

func TestShown(t *testing.T) {
	for text, shown := range map[string]bool{
		"":                true,
		"node: {id: a}":   true,
		"{\"admin\": {}}": true,
		"a: {private_key: {filename: /k}, tls_certificates: []}":                   true,
		"statsd: {listeners: [{tls: {private_key: /k}}]}":                          true,
		"admin: {auth: {tokens_file: /t}}":                                         true,
		"a: {private_key: {inline_string: canary}}":                                false,
		"a: {privateKey: {inlineString: canary}}":                                  false,
		"a: {password: canary}":                                                    false,
		"a: {keys: [canary]}":                                                      false,
		"admin: {auth: {tokens: [{name: a, role: read, sha256: " + digest + "}]}}": false,
		"a: [{b: '-----BEGIN PRIVATE KEY-----'}]":                                  false,
		"x: &a canary\npassword: *a":                                               false,
		"a: [":                                                                     false,
	} {
		want := "[redacted]"
		if shown {
			want = text
		}
		if got := Shown(text); got != want {
			t.Errorf("Shown(%q) = %q", text, got)
		}
	}
}
